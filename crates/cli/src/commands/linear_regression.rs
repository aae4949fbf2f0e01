//! `gristmill linear-regression`: fits a straight line through pairs of numbers.

use clap::{Args, ValueEnum};
use gristmill::Input;
use gristmill_apps::{BinnedSum, BytePairs, Column, Columns, RoundedSum};

use crate::options::inputs::INPUT;
use crate::options::tables::{Contents, Tables, tell_left_out, tell_notes};
use crate::output::column::{ColumnType, Field};
use crate::run::common_options::CommonOptions;
use crate::run::job_runner::JobRunner;
use crate::terminal::failure::Failure;

/// Fit a line through pairs of numbers, by least squares
///
/// Prints n (the number of pairs), slope, intercept, and r (the coefficient of correlation; NaN when every y is the
/// same). Their last digits may differ from run to run, unless --deterministic is given.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct LinearRegression {
    /// Column of x in CSV files: its number, from 1, or its name in the first line. Digits are a name if the first line
    /// has it, else a number; name:2019 and number:2 say which. Rows where x or y is empty are left out, and counted on
    /// standard error
    #[arg(long, value_name = "COLUMN", requires = "y", help_heading = INPUT)]
    x: Option<Column>,

    /// Column of y
    #[arg(long, value_name = "COLUMN", requires = "x", help_heading = INPUT)]
    y: Option<Column>,

    /// Format of the input [default: csv if its files are text; without --x and --y, pairs if they are not]
    #[arg(long, value_enum, help_heading = INPUT)]
    input_format: Option<PairFormat>,

    /// Treat an empty x or y as an error
    #[arg(long, requires = "x", help_heading = INPUT)]
    strict: bool,

    #[command(flatten)]
    tables: Tables,

    #[command(flatten)]
    common: CommonOptions,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum PairFormat {
    /// Comma-separated rows, quoted as in RFC 4180
    Csv,
    /// Binary: a byte of x and a byte of y in turn
    Pairs,
}

const EXAMPLES: &str = "\
Examples:
  gristmill linear-regression --input-format pairs pairs.bin
  gristmill linear-regression --x height --y weight people.csv
  gristmill linear-regression --x 1 --y 3 --header no --format jsonl *.csv";

impl LinearRegression {
    pub fn run(&self) -> Result<(), Failure> {
        let dialect = self.tables.dialect().map_err(Failure::Usage)?;
        let runs = JobRunner::new(&self.common)?;
        let output =
            self.common.destination.open([ColumnType::Text.named("name"), ColumnType::Number.named("value")])?;
        let mut input = match self.input_format {
            Some(PairFormat::Pairs) if self.tables.text.is_named() => {
                return Err(Failure::Usage("pairs of bytes are no text: leave out --encoding".into()));
            }
            Some(PairFormat::Pairs) => runs.input()?,
            _ => runs.text(&self.tables.text)?,
        };
        let quiet = self.common.job.quiet;
        let (line, summary) = match (self.pairs(&mut input)?, &self.x, &self.y) {
            (PairFormat::Csv, Some(x), Some(y)) => {
                let columns = [x.clone(), y.clone()];
                let (fit, summary) = if self.common.job.engine().is_deterministic() {
                    Columns::<BinnedSum>::fit(input, &dialect, columns, self.strict, |job| runs.run(job))?
                } else {
                    Columns::<RoundedSum>::fit(input, &dialect, columns, self.strict, |job| runs.run(job))?
                };
                tell_notes(&fit.notes, quiet);
                tell_left_out(fit.left_out, "x or y", quiet);
                (fit.line, summary)
            }
            (PairFormat::Csv, ..) => return Err(Failure::Usage("name the columns with --x and --y".into())),
            (PairFormat::Pairs, Some(_), _) => {
                return Err(Failure::Usage("pairs of bytes have no columns: leave out --x and --y".into()));
            }
            (PairFormat::Pairs, ..) => {
                self.tables.refuse_for("pairs of bytes")?;
                BytePairs::fit(input, |job| runs.run(job))?
            }
        };
        if line.r.is_none() {
            tell_notes(&["r is not defined: every y is the same".to_owned()], quiet);
        }
        let r = line.r.unwrap_or(f64::NAN);
        let rows = [("n", line.n as f64), ("slope", line.slope), ("intercept", line.intercept), ("r", r)];
        output.write(rows.map(|(name, value)| [Field::Bytes(name.as_bytes()), Field::Number(value)]))?;
        runs.finish(&summary, "partial sums", "sums")
    }

    /// Determines the format of the input from the option, or from the first bytes of its files.
    fn pairs(&self, input: &mut Input) -> Result<PairFormat, Failure> {
        if let Some(pairs) = self.input_format {
            return Ok(pairs);
        }
        let Contents { csv, json, binary } = Contents::of(input)?;
        if let Some((json, _)) = json {
            return Err(Failure::Usage(format!(
                "{} has JSON lines, as it seems, and linear-regression reads CSV: let jq -r '[.x, .y] | @csv' make it of them, or \
                 say --input-format csv if it is CSV",
                json.display()
            )));
        }
        match (csv, binary, &self.x) {
            (Some(text), Some(binary), _) => Err(Failure::Usage(format!(
                "{} is text, and {binary}: say with --input-format what they all are",
                text.display()
            ))),
            (Some(text), None, None) => Err(Failure::Usage(format!(
                "{} is text: select its columns with --x and --y, or read the file as pairs of bytes with --input-format pairs",
                text.display()
            ))),
            (None, Some(binary), Some(_)) => Err(Failure::Usage(format!(
                "{binary}, and --x selects a column: use --input-format csv to read it all the same, or leave out --x and --y if it \
                 holds pairs of bytes"
            ))),
            (None, Some(binary), None) => {
                self.tables.binary(input, &binary.path, "pairs of bytes")?;
                let note = format!(
                    "{} was read as pairs of bytes; if it is a table, use --input-format csv",
                    binary.path.display()
                );
                tell_notes(&[note], self.common.job.quiet);
                Ok(PairFormat::Pairs)
            }
            (Some(_), None, Some(_)) | (None, None, Some(_)) => Ok(PairFormat::Csv),
            (None, None, None) => Ok(PairFormat::Pairs),
        }
    }
}
