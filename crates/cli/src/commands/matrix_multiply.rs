//! `gristmill matrix-multiply`: multiplies two matrices.

use std::io::Write;
use std::num::NonZeroU32;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use gristmill_apps::{Overflow, Product};

use crate::options::inputs::INPUT;
use crate::options::tables::Tables;
use crate::output::column::{ColumnType, Field, matrix_columns, matrix_fields};
use crate::output::side_files::WholeFile;
use crate::run::common_options::CommonOptions;
use crate::run::job_runner::{JobRunner, too_large};
use crate::terminal::failure::Failure;
use crate::terminal::progress::Unit;

/// Multiply two matrices
///
/// The first factor is given with --left, the second as INPUT: CSV files or .npy files of float64;
/// several files of the second are stacked.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct MatrixMultiply {
    /// The first factor
    #[arg(long, short, value_name = "FILE", help_heading = INPUT)]
    left: PathBuf,

    /// Result to print
    #[arg(long, value_enum, default_value_t)]
    print: Print,

    /// How the product gets from the workers to the result
    #[arg(long, value_enum, default_value_t)]
    way: Way,

    /// How often to multiply by the second factor
    #[arg(long, value_name = "N", default_value = "1", conflicts_with = "way")]
    power: NonZeroU32,

    #[command(flatten)]
    tables: Tables,

    #[command(flatten)]
    common: CommonOptions,
}

#[derive(Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum Print {
    /// The product, a row for each of its rows; a .npy file if --output is named so
    #[default]
    Product,
    /// Its trace (the sum of its diagonal, also if it is not square), the sum of its numbers, and its last number
    Summary,
}

#[derive(Clone, Copy, Default, ValueEnum)]
enum Way {
    /// Written into a shared array, each worker's changes merged when a task is done
    #[default]
    SharedOutput,
    /// Rows as pairs, through the exchange
    Pairs,
}

const EXAMPLES: &str = "\
Examples:
  gristmill matrix-multiply --left a.csv b.csv
  gristmill matrix-multiply --left a.npy -o product.npy b.npy
  gristmill matrix-multiply --left a.npy --print summary b.npy
  gristmill matrix-multiply --left start.csv --power 100 transitions.csv";

impl MatrixMultiply {
    pub fn run(&self) -> Result<(), Failure> {
        let unit = match self.power.get() {
            1 => Unit::Share,
            times => Unit::Steps(Some(times as usize)),
        };
        let runs = JobRunner::of_matrices(&self.common)?.counted_in(unit);
        let left = self.tables.text.of(runs.reads("--left", &self.left)?);
        let [a, b] = self.tables.matrices([left, runs.text(&self.tables.text)?], self.common.job.quiet)?;
        let way = match self.way {
            Way::SharedOutput => gristmill_apps::Way::SharedOutput,
            Way::Pairs => gristmill_apps::Way::Pairs,
        };
        let multiply = || match self.power.get() {
            1 => Product::of(&a, &b, way, |job| runs.run(job)),
            times => Product::of_powers(&a, &b, times, |job, state, control| runs.iterate(job, state, control)),
        };
        let summary = match (self.print, self.common.destination.npy()) {
            (Print::Summary, _) => {
                let output = self
                    .common
                    .destination
                    .open([ColumnType::Text.named("name"), ColumnType::Number.named("value")])?;
                let (mut product, summary) = multiply()?;
                let trace = product.trace();
                let values = product.values();
                let numbers = [
                    ("trace", trace),
                    ("sum", values.iter().sum::<f64>()),
                    ("corner", values.last().copied().unwrap_or(0.0)),
                ];
                if let Some((name, _)) = numbers.iter().find(|(_, number)| !number.is_finite()) {
                    return Err(too_large(format_args!("the {name} of the product"), Overflow::Result));
                }
                output.write(numbers.map(|(name, number)| [Field::Bytes(name.as_bytes()), Field::Number(number)]))?;
                summary
            }
            (Print::Product, Some(path)) => {
                let file = WholeFile::begin(path)?;
                let (mut product, summary) = multiply()?;
                file.write(|to| write_npy(to, &mut product))?;
                summary
            }
            (Print::Product, None) => {
                let output = self.common.destination.open(matrix_columns(b.columns).collect::<Vec<_>>())?;
                let (mut product, summary) = multiply()?;
                let columns = product.columns;
                output
                    .write(product.values().chunks_exact(columns).map(|row| matrix_fields(row).collect::<Vec<_>>()))?;
                summary
            }
        };
        runs.finish(&summary, "rows", "rows")
    }
}

fn write_npy(to: &mut dyn Write, product: &mut Product) -> std::io::Result<()> {
    to.write_all(&gristmill_apps::npy_header(product.rows, product.columns))?;
    product.values().iter().try_for_each(|value| to.write_all(&value.to_le_bytes()))
}
