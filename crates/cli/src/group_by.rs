//! `gristmill group-by`: sums and counts by key.

use clap::Args;
use gristmill_apps::{Column, GroupBy as Columns, NumberPairs};

use crate::common::Common;
use crate::failure::Failure;
use crate::inputs::{INPUT, column};
use crate::output::Ranking;
use crate::rows::Kind;
use crate::runs::Runs;

/// Sum a number, or count, over all records that have the same key
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct GroupBy {
    /// Column of the key in CSV files: its number, from 1, or its name in the first line [default: the input is binary,
    /// a key and a value in turn, 32-bit numbers, little end first]
    #[arg(long, value_name = "COLUMN", value_parser = column, help_heading = INPUT)]
    by: Option<Column>,

    /// Column of the number to sum [default: count rows]
    #[arg(long, value_name = "COLUMN", requires = "by", value_parser = column, help_heading = INPUT)]
    sum: Option<Column>,

    #[command(flatten)]
    ranking: Ranking,

    #[command(flatten)]
    common: Common,
}

const EXAMPLES: &str = "\
Examples:
  gristmill group-by --by country --sum population cities.csv
  gristmill group-by --by 3 --top 10 'logs/*.csv.gz'    the ten most frequent values of the third column
  gristmill group-by pairs.bin";

impl GroupBy {
    pub fn run(&self) -> Result<(), Failure> {
        let runs = Runs::new(&self.common)?;
        let counts = self.by.is_some() && self.sum.is_none();
        let (key, value) = if self.by.is_some() { (Kind::Bytes, Kind::Number) } else { (Kind::Integer, Kind::Integer) };
        let columns = [key.named("key"), value.named(if counts { "count" } else { "sum" })];
        let output = self.common.destination.open(columns)?;
        let mut input = self.common.inputs.input()?;
        let summary = match &self.by {
            Some(by) => {
                let program = Columns::new(&mut input, by.clone(), self.sum.clone())?;
                runs.write(program.job(input), &self.ranking, output)?
            }
            None => runs.write(NumberPairs.job(input)?, &self.ranking, output)?,
        };
        runs.finish(&summary, "keys", "distinct")
    }
}
