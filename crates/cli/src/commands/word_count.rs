//! `gristmill word-count`: counts each word.

use clap::{Args, ValueEnum};
use gristmill::{Bytes, Job, MapReduce, Records};

use crate::options::inputs::INPUT;
use crate::options::text::Text;
use crate::output::column::ColumnType;
use crate::output::destination::Ranking;
use crate::run::common_options::CommonOptions;
use crate::run::job_runner::JobRunner;
use crate::terminal::failure::Failure;

/// Count how often each word occurs
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct WordCount {
    /// Rule that splits text into words
    #[arg(long, value_enum, default_value_t, help_heading = INPUT)]
    tokens: Tokens,

    #[command(flatten)]
    text: Text,

    #[command(flatten)]
    ranking: Ranking,

    #[command(flatten)]
    common: CommonOptions,
}

const EXAMPLES: &str = "\
Examples:
  gristmill word-count --top 20 ~/src                   the 20 most frequent words below a directory
  gristmill word-count --tokens alpha -o words.csv *.txt
  zcat logs.gz | gristmill word-count --sort count | head
  gristmill word-count --stats run.json --workers 8 big.txt > counts.tsv";

#[derive(Clone, Copy, Default, ValueEnum)]
enum Tokens {
    /// Bytes between ASCII white space (space, tab, line feed, vertical tab, form feed, carriage return), unchanged; a
    /// UTF-8 character is never cut
    #[default]
    Space,
    /// A letter (A-Z) and the letters and apostrophes after it, in upper case
    Alpha,
}

impl WordCount {
    pub fn run(&self) -> Result<(), Failure> {
        match self.tokens {
            Tokens::Space => self.count(gristmill_apps::space_words()),
            Tokens::Alpha => self.count(gristmill_apps::alpha_words()),
        }
    }

    fn count<J: MapReduce<Key = Bytes, Value = u64>>(&self, (program, records): (J, Records)) -> Result<(), Failure> {
        let runs = JobRunner::new(&self.common)?;
        let output =
            self.common.destination.open([ColumnType::Bytes.named("word"), ColumnType::Integer.named("count")])?;
        let job = Job::new(&program, runs.text(&self.text)?).records(records);
        let summary = runs.write(job, &self.ranking, output)?;
        runs.finish(&summary, "words", "distinct")
    }
}
