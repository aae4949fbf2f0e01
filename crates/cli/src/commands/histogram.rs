//! `gristmill histogram`: counts each value in each colour channel.

use clap::Args;
use gristmill_apps::CHANNELS;

use crate::output::column::{ColumnType, Field};
use crate::run::common_options::CommonOptions;
use crate::run::job_runner::JobRunner;
use crate::terminal::failure::Failure;

/// Count how often each colour value occurs in images (24-bit BMP, PNG, JPEG)
///
/// All images are counted together: 768 rows of channel (blue, green, red), value (0 to 255), and count.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Histogram {
    #[command(flatten)]
    common: CommonOptions,
}

const EXAMPLES: &str = "\
Examples:
  gristmill histogram photo.bmp
  gristmill histogram -o colours.csv ~/pictures          all images below a directory";

impl Histogram {
    pub fn run(&self) -> Result<(), Failure> {
        let runs = JobRunner::new(&self.common)?;
        let output = self.common.destination.open([
            ColumnType::Text.named("channel"),
            ColumnType::Integer.named("value"),
            ColumnType::Integer.named("count"),
        ])?;
        let (counts, summary) = gristmill_apps::Histogram::count(runs.input()?, |job| runs.run(job))?;
        output.write(CHANNELS.iter().zip(&counts).flat_map(|(channel, counts)| {
            let row = |(value, count)| [Field::Bytes(channel.as_bytes()), Field::Integer(value), Field::Integer(count)];
            (0..).zip(counts.iter().copied()).map(row)
        }))?;
        runs.finish(&summary, "partial counts", "colour values")
    }
}
