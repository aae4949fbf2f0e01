//! `gristmill group-by`: sums and counts by key.

use clap::{Args, ValueEnum};
use gristmill::Input;
use gristmill_apps::{CountBy, NumberPairs, SumBy};

use crate::common::Common;
use crate::failure::Failure;
use crate::inputs::{INPUT, column};
use crate::output::{Ranking, extension};
use crate::rows::Kind;
use crate::runs::Runs;

/// Sum a number, or count, over all records that have the same key
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct GroupBy {
    /// The key: in CSV a column, by its number, from 1, or its name in the first line; in JSON lines a field, by its name
    /// [default: the input is binary, a key and a value in turn, 32-bit numbers, little end first]
    #[arg(long, value_name = "COLUMN", help_heading = INPUT)]
    by: Option<String>,

    /// The number to sum: a column or field [default: count rows]
    #[arg(long, value_name = "COLUMN", requires = "by", help_heading = INPUT)]
    sum: Option<String>,

    /// What the rows are [default: by the names of the files: jsonl for .jsonl and .ndjson, else csv]
    #[arg(long, value_enum, requires = "by", help_heading = INPUT)]
    input_format: Option<Rows>,

    #[command(flatten)]
    ranking: Ranking,

    #[command(flatten)]
    common: Common,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Rows {
    /// Rows of fields with commas between them; quotes as in RFC 4180
    Csv,
    /// One JSON object per line; its fields are asked for by name, and those of objects in it cannot be
    Jsonl,
}

const EXAMPLES: &str = "\
Examples:
  gristmill group-by --by country --sum population cities.csv
  gristmill group-by --by 3 --top 10 'logs/*.csv.gz'    the ten most frequent values of the third column
  gristmill group-by --by user --sum bytes requests.jsonl.zst
  gristmill group-by pairs.bin";

impl GroupBy {
    pub fn run(&self) -> Result<(), Failure> {
        let runs = Runs::new(&self.common)?;
        let columns = match (&self.by, &self.sum) {
            (None, _) => [Kind::Integer.named("key"), Kind::Integer.named("sum")],
            (Some(_), None) => [Kind::Bytes.named("key"), Kind::Integer.named("count")],
            (Some(_), Some(_)) => [Kind::Bytes.named("key"), Kind::Number.named("sum")],
        };
        let output = self.common.destination.open(columns)?;
        let mut input = runs.input()?;
        let Some(by) = &self.by else {
            let summary = runs.write(NumberPairs.job(input)?, &self.ranking, output)?;
            return runs.finish(&summary, "keys", "distinct");
        };
        let column = |text: &str| column(text).map_err(Failure::Usage);
        let summary = match (self.rows(&mut input)?, &self.sum) {
            (Rows::Csv, Some(sum)) => {
                let program = SumBy::csv(&mut input, column(by)?, column(sum)?)?;
                runs.write(program.job(input), &self.ranking, output)?
            }
            (Rows::Csv, None) => {
                let program = CountBy::csv(&mut input, column(by)?)?;
                runs.write(program.job(input), &self.ranking, output)?
            }
            (Rows::Jsonl, Some(sum)) => {
                let program = SumBy::json_lines(by.clone(), sum.clone());
                runs.write(program.job(input), &self.ranking, output)?
            }
            (Rows::Jsonl, None) => {
                let program = CountBy::json_lines(by.clone());
                runs.write(program.job(input), &self.ranking, output)?
            }
        };
        runs.finish(&summary, "keys", "distinct")
    }

    /// What the rows of the input are, by option or by the names of the files.
    fn rows(&self, input: &mut Input) -> Result<Rows, Failure> {
        if let Some(rows) = self.input_format {
            return Ok(rows);
        }
        let (mut csv, mut json) = (None, None);
        for source in input.sources()? {
            match extension(&source.name).as_deref() {
                Some("jsonl" | "ndjson") => json.get_or_insert(&source.name),
                _ => csv.get_or_insert(&source.name),
            };
        }
        match (csv, json) {
            (Some(csv), Some(json)) => Err(Failure::Usage(format!(
                "{} has JSON lines by its name, and {} has not: say with --input-format what they all are",
                json.display(),
                csv.display()
            ))),
            (None, Some(_)) => Ok(Rows::Jsonl),
            _ => Ok(Rows::Csv),
        }
    }
}
