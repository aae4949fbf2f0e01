//! `gristmill linear-regression`: the straight line through pairs of numbers.

use clap::Args;
use gristmill_apps::{BytePairs, Column, Columns};

use crate::common::Common;
use crate::failure::Failure;
use crate::inputs::{INPUT, column};
use crate::rows::{Field, Kind};
use crate::runs::Runs;

/// Fit a line through pairs of numbers, by least squares
///
/// Prints n (the number of pairs), slope, intercept, and r (the coefficient of correlation; NaN when every y is the same).
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct LinearRegression {
    /// Column of x in CSV files: its number, from 1, or its name in the first line [default: the input is binary,
    /// a byte of x and a byte of y in turn]
    #[arg(long, value_name = "COLUMN", requires = "y", value_parser = column, help_heading = INPUT)]
    x: Option<Column>,

    /// Column of y
    #[arg(long, value_name = "COLUMN", requires = "x", value_parser = column, help_heading = INPUT)]
    y: Option<Column>,

    #[command(flatten)]
    common: Common,
}

const EXAMPLES: &str = "\
Examples:
  gristmill linear-regression pairs.bin
  gristmill linear-regression --x height --y weight people.csv
  gristmill linear-regression --x 1 --y 3 --format jsonl *.csv";

impl LinearRegression {
    pub fn run(&self) -> Result<(), Failure> {
        let runs = Runs::new(&self.common)?;
        let mut output = self.common.destination.open([Kind::Text.named("name"), Kind::Number.named("value")])?;
        let input = runs.input()?;
        let (line, summary) = match (&self.x, &self.y) {
            (Some(x), Some(y)) => Columns::fit(input, [x.clone(), y.clone()], |job| runs.run(job))?,
            _ => BytePairs::fit(input, |job| runs.run(job))?,
        };
        let r = line.r.unwrap_or(f64::NAN);
        let rows = [("n", line.n as f64), ("slope", line.slope), ("intercept", line.intercept), ("r", r)];
        let written = rows
            .iter()
            .try_for_each(|(name, value)| output.row(&[Field::Bytes(name.as_bytes()), Field::Number(*value)]));
        output.finish(written)?;
        runs.finish(&summary, "partial sums", "sums")
    }
}
