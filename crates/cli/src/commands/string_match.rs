//! `gristmill string-match`: counts the lines that equal each key.

use std::path::PathBuf;

use clap::Args;
use gristmill_apps::Keys;

use crate::options::inputs::INPUT;
use crate::options::text::Text;
use crate::output::column::{ColumnType, Field};
use crate::run::common_options::CommonOptions;
use crate::run::job_runner::JobRunner;
use crate::terminal::failure::Failure;

/// Count how many lines equal each key
///
/// Prints each key and its count, in the order of the keys file. Whole lines are compared, byte by byte; a carriage
/// return at the end of a line does not count.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct StringMatch {
    /// The keys, one per line, without escapes; empty lines are left out; the file may be compressed. With --encoding
    /// they are UTF-8, as the input is when it is decoded
    #[arg(long, short, value_name = "FILE", help_heading = INPUT)]
    keys: PathBuf,

    #[command(flatten)]
    text: Text,

    #[command(flatten)]
    common: CommonOptions,
}

const EXAMPLES: &str = "\
Examples:
  gristmill string-match --keys passwords.txt leaked.txt
  cut -d, -f1 visits.csv | gristmill string-match --keys users.txt";

impl StringMatch {
    pub fn run(&self) -> Result<(), Failure> {
        let runs = JobRunner::new(&self.common)?;
        let input = runs.reads("--keys", &self.keys)?;
        let output =
            self.common.destination.open([ColumnType::Bytes.named("key"), ColumnType::Integer.named("count")])?;
        let keys = Keys::read_from(&self.keys, input)?;
        if self.text.is_named() && !keys.are_utf8() {
            let what = "the keys are not UTF-8, and --encoding says how the input is decoded to it: convert them, as iconv does";
            let path = self.keys.clone();
            return Err(Failure::Application(gristmill_apps::Error::File { path, what: what.to_owned() }));
        }
        let (counts, summary) = keys.count(runs.text(&self.text)?, |job| runs.run(job))?;
        output.write(counts.iter().map(|(key, count)| [Field::Bytes(key), Field::Integer(*count)]))?;
        runs.finish(&summary, "matches", "keys found")
    }
}
