//! `gristmill group-by`: sums, counts and other figures by key.

use std::path::Path;

use clap::{Args, ValueEnum};
use gristmill::{Bytes, Datum, Input, Job, MapReduce, Summary};
use gristmill_apps::{Column, CountBy, DescribeBy, Described, Number, NumberPairs, RowsLeftOut, Sum, SumBy};

use crate::options::inputs::INPUT;
use crate::options::tables::{Contents, Tables, tell_left_out, tell_notes};
use crate::output::column::{ColumnType, Field};
use crate::output::destination::{Output, Ranking};
use crate::run::common_options::CommonOptions;
use crate::run::job_runner::{JobRunner, too_large};
use crate::terminal::failure::Failure;
use crate::terminal::progress::Besides;

/// Sum or describe a number, or count, over all records that have the same key
///
/// Sums of whole numbers are exact, up to 128 bits. Those of other numbers are rounded as they are added, so their last
/// digits may differ from run to run; with --deterministic they are rounded once, at the end, and are the same on every
/// run. A sum that is too large is an error that names the key. In Arrow and Parquet files the column sum is a float64,
/// and sum_whole, a decimal of 38 digits, has the exact sum where all numbers were whole.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct GroupBy {
    /// The key: a column of CSV, by its name or its number from 1, or a field of JSON lines. Digits are a name if the
    /// first line has it, otherwise a number; name:2019 and number:2 say which. A key is its text as written: in JSON
    /// lines 1 and "1" are one key, and 1.0 is another
    #[arg(long, value_name = "COLUMN", help_heading = INPUT)]
    by: Option<String>,

    /// The number to sum: a column or field. Rows where it is empty (in JSON, null) are skipped, and a message says how
    /// many; the sum of a key without any number is empty [default: count rows]
    #[arg(long, value_name = "COLUMN", requires = "by", group = "number", help_heading = INPUT)]
    sum: Option<String>,

    /// The number to describe: each key has the count of its numbers, their mean, their standard deviation (std, of a
    /// sample, divided by the count less one; empty for one number), the least (min) and the greatest (max). Numbers
    /// are rounded to 64-bit floating point, and the last digits of std may differ from run to run. Rows where it is
    /// empty (in JSON, null) are skipped, as for --sum, and nan and inf are errors. --top is by count
    #[arg(long, value_name = "COLUMN", requires = "by", group = "number", help_heading = INPUT)]
    describe: Option<String>,

    /// The format of the input [default: jsonl if files are named .jsonl or .ndjson or begin with {, csv if they are
    /// other text; without --by, pairs if they are not text]
    #[arg(long, value_enum, help_heading = INPUT)]
    input_format: Option<Rows>,

    /// Treat an empty number, or null, as an error
    #[arg(long, requires = "number", help_heading = INPUT)]
    strict: bool,

    #[command(flatten)]
    tables: Tables,

    #[command(flatten)]
    ranking: Ranking,

    #[command(flatten)]
    common: CommonOptions,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Rows {
    /// Comma-separated rows, quoted as in RFC 4180
    Csv,
    /// One JSON object per line; a field is selected by its name, at the top level only
    Jsonl,
    /// Binary: a key and a value in turn, 32-bit numbers, little end first, which are summed
    Pairs,
}

const EXAMPLES: &str = "\
Examples:
  gristmill group-by --by country --sum population cities.csv
  gristmill group-by --by 3 --top 10 'logs/*.csv.gz'    the ten most frequent values of the third column
  gristmill group-by --by country --sum name:2019 --delimiter ';' years.csv
  gristmill group-by --by user --sum bytes requests.jsonl.zst
  gristmill group-by --by city --describe price --output prices.parquet 'sales/*.csv'
  gristmill group-by --input-format pairs pairs.bin";

impl GroupBy {
    pub fn run(&self) -> Result<(), Failure> {
        let dialect = self.tables.dialect().map_err(Failure::Usage)?;
        let runs = JobRunner::new(&self.common)?;
        let columns = match (&self.by, &self.sum, &self.describe) {
            (None, ..) => vec![ColumnType::Integer.named("key"), ColumnType::Integer.named("sum")],
            (Some(_), None, None) => vec![ColumnType::Bytes.named("key"), ColumnType::Integer.named("count")],
            (Some(_), Some(_), _) => vec![ColumnType::Bytes.named("key"), ColumnType::Sum.named("sum")],
            (Some(_), None, Some(_)) if self.common.job.engine().is_deterministic() => {
                return Err(Failure::Usage(
                    "the last digits of a standard deviation depend on the order of the rows, and --deterministic cannot change \
                     that: leave it out, or ask for the --sum"
                        .into(),
                ));
            }
            (Some(_), None, Some(_)) => {
                let figures = ["mean", "std", "min", "max"].map(|name| ColumnType::OptionalNumber.named(name));
                let keys = [ColumnType::Bytes.named("key"), ColumnType::Integer.named("count")];
                keys.into_iter().chain(figures).collect()
            }
        };
        let output = self.common.destination.open(columns)?;
        let mut input = match self.input_format {
            Some(Rows::Pairs) if self.tables.text.is_named() => {
                return Err(Failure::Usage("pairs of numbers are no text: leave out --encoding".into()));
            }
            Some(Rows::Pairs) => runs.input()?,
            _ => runs.text(&self.tables.text)?,
        };
        let quiet = self.common.job.quiet;
        let column = |text: &str| text.parse::<Column>().map_err(Failure::Usage);
        let rows = self.rows(&mut input)?;
        match rows {
            Rows::Csv => {}
            Rows::Jsonl => self.tables.refuse_for("JSON lines")?,
            Rows::Pairs => self.tables.refuse_for("pairs of numbers")?,
        }
        let summary = match (rows, &self.by, self.sum.as_ref().or(self.describe.as_ref())) {
            (Rows::Pairs, None, _) => self.write_pairs(input, &runs, output)?,
            (Rows::Pairs, Some(_), _) => {
                return Err(Failure::Usage("pairs of numbers have no columns: leave out --by".into()));
            }
            (_, None, _) => return Err(Failure::Usage("say with --by which column or field is the key".into())),
            (Rows::Csv, Some(by), Some(number)) if self.describe.is_some() => {
                let program = DescribeBy::csv(&mut input, &dialect, column(by)?, column(number)?)?;
                self.write_figures(&program.strict(self.strict), input, &runs, number, output)?
            }
            (Rows::Csv, Some(by), Some(sum)) => {
                let program = SumBy::csv(&mut input, &dialect, column(by)?, column(sum)?)?;
                self.write_sums(program.strict(self.strict), input, &runs, sum, output)?
            }
            (Rows::Csv, Some(by), None) => {
                let program = CountBy::csv(&mut input, &dialect, column(by)?)?;
                tell_notes(program.notes(), quiet);
                runs.write(program.job(input), &self.ranking, output)?
            }
            (Rows::Jsonl, Some(by), Some(number)) if self.describe.is_some() => {
                let program = DescribeBy::json_lines(by.clone(), number.clone());
                self.write_figures(&program.strict(self.strict), input, &runs, number, output)?
            }
            (Rows::Jsonl, Some(by), Some(sum)) => {
                let program = SumBy::json_lines(by.clone(), sum.clone());
                self.write_sums(program.strict(self.strict), input, &runs, sum, output)?
            }
            (Rows::Jsonl, Some(by), None) => {
                let program = CountBy::json_lines(by.clone());
                runs.write(program.job(input), &self.ranking, output)?
            }
        };
        runs.finish(&summary, "keys", "distinct")
    }

    /// Writes the sum of each key, with the kind of sum that the options select.
    fn write_sums(
        &self,
        program: SumBy,
        input: Input,
        runs: &JobRunner<'_>,
        column: &str,
        output: Output,
    ) -> Result<Summary, Failure> {
        if self.common.job.engine().is_deterministic() {
            return self.write_sums_of(&program.reproducible(), input, runs, column, output);
        }
        self.write_sums_of(&program, input, runs, column, output)
    }

    /// Writes the sum of each key.
    fn write_sums_of<S: Sum>(
        &self,
        program: &SumBy<S>,
        input: Input,
        runs: &JobRunner<'_>,
        column: &str,
        output: Output,
    ) -> Result<Summary, Failure> {
        tell_notes(program.notes(), self.common.job.quiet);
        self.write_numbers(
            program.job(input),
            runs,
            column,
            output,
            |sum| sum.rows_left_out(),
            |key, sum| {
                let value = sum
                    .value()
                    .map_err(|why| too_large(format_args!("key {:?}", String::from_utf8_lossy(key)), why))?;
                Ok([match value {
                    None => Field::Nothing,
                    Some(Number::Whole(value)) => Field::Whole(value),
                    Some(Number::Fraction(value)) => Field::Number(value),
                }])
            },
        )
    }

    /// Writes count, mean, standard deviation and extremes of each key.
    fn write_figures(
        &self,
        program: &DescribeBy,
        input: Input,
        runs: &JobRunner<'_>,
        column: &str,
        output: Output,
    ) -> Result<Summary, Failure> {
        tell_notes(program.notes(), self.common.job.quiet);
        self.write_numbers(program.job(input), runs, column, output, Described::rows_left_out, |key, described| {
            let figures = described.figures().map_err(|why| {
                too_large(
                    format_args!("the mean or the standard deviation of key {:?}", String::from_utf8_lossy(key)),
                    why,
                )
            })?;
            let [mean, std, min, max] = figures.map(|figure| figure.map_or(Field::Nothing, Field::Number));
            Ok([Field::Integer(described.count()), mean, std, min, max])
        })
    }

    /// Writes what `fields` makes of each key and its value, and tells how many rows have no number. One value counts
    /// these; `left_out` knows it.
    fn write_numbers<P, V, const FIELDS: usize>(
        &self,
        job: Job<'_, P>,
        runs: &JobRunner<'_>,
        column: &str,
        output: Output,
        left_out: impl Fn(V) -> Option<RowsLeftOut>,
        fields: impl Fn(&[u8], V) -> Result<[Field<'static>; FIELDS], Failure>,
    ) -> Result<Summary, Failure>
    where
        V: Copy + for<'r> Datum<Ref<'r> = V>,
        P: MapReduce<Key = Bytes, Value = V>,
    {
        let mut rows = 0;
        let is_row = |value| left_out(value).is_none();
        let summary =
            runs.write_fields(job, &self.ranking, is_row, output, |key: &[u8], value: V| match left_out(value) {
                Some(counted) => {
                    rows = counted.rows;
                    runs.leave_out(Besides { pairs: counted.pairs, keys: 1 });
                    Ok(None)
                }
                None => fields(key, value).map(Some),
            })?;
        tell_left_out(rows, column, self.common.job.quiet);
        Ok(summary)
    }

    /// Writes the sum of each key of pairs of numbers.
    fn write_pairs(&self, input: Input, runs: &JobRunner<'_>, output: Output) -> Result<Summary, Failure> {
        runs.write_fields(
            NumberPairs.job(input)?,
            &self.ranking,
            |_| true,
            output,
            |key, sum| {
                NumberPairs::sum(sum)
                    .map(|sum| Some([Field::Integer(sum)]))
                    .map_err(|why| too_large(format_args!("key {key}"), why))
            },
        )
    }

    /// Determines the format of the input from the option, or from the names and first bytes of its files.
    fn rows(&self, input: &mut Input) -> Result<Rows, Failure> {
        if let Some(rows) = self.input_format {
            return Ok(rows);
        }
        let found = Contents::of(input)?;
        let shown = |path: &Path| path.display().to_string();
        match (&found.csv, &found.json, &found.binary) {
            (Some(csv), Some((json, _)), _) => Err(Failure::Usage(format!(
                "{} has JSON lines, and {} has not, as it seems: say with --input-format what they all are",
                shown(json),
                shown(csv)
            ))),
            (Some(text), None, Some(binary)) | (None, Some((text, _)), Some(binary)) => Err(Failure::Usage(format!(
                "{} is text, and {binary}: say with --input-format what they all are",
                shown(text)
            ))),
            (None, None, Some(binary)) if self.by.is_some() => Err(Failure::Usage(format!(
                "{binary}, and --by selects a column: use --input-format csv or jsonl to read it all the same, or leave out --by if it \
                 holds pairs of numbers"
            ))),
            (None, None, Some(binary)) => {
                self.tables.binary(input, &binary.path, "pairs of numbers")?;
                let note = format!(
                    "{} was read as pairs of 32-bit numbers; if it is a table, use --by or --input-format",
                    shown(&binary.path)
                );
                tell_notes(&[note], self.common.job.quiet);
                Ok(Rows::Pairs)
            }
            (Some(text), None, None) | (None, Some((text, _)), None) if self.by.is_none() => {
                Err(Failure::Usage(format!(
                    "{} is text: select the key with --by, or read the file as pairs of numbers with --input-format pairs",
                    shown(text)
                )))
            }
            (None, Some((json, by_name)), None) => {
                if !by_name {
                    let note = format!("{} was read as JSON lines; if it is CSV, use --input-format csv", shown(json));
                    tell_notes(&[note], self.common.job.quiet);
                }
                Ok(Rows::Jsonl)
            }
            (Some(_), None, None) => Ok(Rows::Csv),
            (None, None, None) if self.by.is_some() => Ok(Rows::Csv),
            (None, None, None) => Ok(Rows::Pairs),
        }
    }
}
