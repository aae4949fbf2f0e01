//! Group by: the sum of a number, or the count, of all records that have the same key.

use gristmill::{Bytes, Combine, Emit, Input, Job, MapReduce, Records, Split};

use crate::columns::{Column, Fault, Table};
use crate::error::{Error, Result, whole_records};
use crate::fields::Fields;
use crate::matrix::finite;

/// Sums over pairs of 32-bit numbers, key and value, little end first. Exact: 64 bits hold the sum of 2^32 values.
pub struct NumberPairs;

impl NumberPairs {
    /// The job over the pairs of `input`.
    ///
    /// # Errors
    /// A file whose bytes are no multiple of eight.
    pub fn job(&self, mut input: Input) -> Result<Job<'_, NumberPairs>> {
        whole_records(&mut input, 8, "pairs of two 32-bit numbers need a multiple of 8")?;
        Ok(Job::new(self, input).records(Records::Fixed(8)))
    }
}

impl MapReduce for NumberPairs {
    type Key = u32;
    type Value = u64;
    const COMBINE: Option<Combine<u64>> = Some(|a, b| a + b);

    fn map(&self, split: &mut Split<'_>, out: &mut impl Emit<u32, u64>) {
        for pair in split.bytes().as_chunks::<8>().0 {
            let pair = u64::from_le_bytes(*pair);
            out.emit(pair as u32, pair >> 32);
        }
    }
}

/// Rows of files, and some of their fields.
enum Rows<const N: usize> {
    Csv(Table<N>),
    Json(Fields<N>),
}

impl<const N: usize> Rows<N> {
    /// Rows of CSV files.
    fn csv(input: &mut Input, columns: &[Column; N]) -> Result<Rows<N>> {
        match Table::look(input.sources()?, columns)? {
            Some(table) => Ok(Rows::Csv(table)),
            None => Err(Error::Question("the columns of an empty input are not known".into())),
        }
    }

    fn records(&self) -> Records {
        match self {
            Rows::Csv(_) => Records::Csv(b','),
            Rows::Json(_) => Records::Lines,
        }
    }

    fn for_each(&self, split: &mut Split<'_>, take: impl FnMut([&[u8]; N]) -> std::result::Result<(), Fault>) {
        match self {
            Rows::Csv(table) => table.for_each_row(split, take),
            Rows::Json(fields) => fields.for_each_row(split, take),
        }
    }
}

/// The sum of one field of all rows that have the same in another one: rows of CSV files, or JSON lines. In JSON, a key is a text, a
/// number or a truth, as it is written, and the number may stand in quotes.
///
/// ```
/// use gristmill::{Input, Isolation};
/// use gristmill_apps::{Column, SumBy};
///
/// let mut csv = Input::bytes("fruit", b"fruit,kg\napple,2\npear,1.5\napple,0.5\n")?;
/// let json = Input::bytes("fruit", b"{\"fruit\":\"apple\",\"kg\":2.5}\n{\"fruit\":\"pear\",\"kg\":1.5}\n")?;
/// for (program, input) in [
///     (SumBy::csv(&mut csv, Column::Name("fruit".into()), Column::Number(2))?, csv),
///     (SumBy::json_lines("fruit".into(), "kg".into()), json),
/// ] {
///     // This doctest runs beside others in one process, so its workers are threads.
///     let (sums, _) = program.job(input).isolation(Isolation::Thread).run()?;
///     assert_eq!(sums.iter().collect::<Vec<_>>(), [(&b"apple"[..], 2.5), (b"pear", 1.5)]);
/// }
/// # Ok::<(), gristmill_apps::Error>(())
/// ```
pub struct SumBy(Rows<2>);

impl SumBy {
    /// Groups rows of CSV by column `by` and sums column `sum`.
    ///
    /// # Errors
    /// A column that is not there, files with different first lines, an empty input.
    pub fn csv(input: &mut Input, by: Column, sum: Column) -> Result<SumBy> {
        Rows::csv(input, &[by, sum]).map(SumBy)
    }

    /// Groups objects, one in each line, by field `by` and sums field `sum`.
    pub fn json_lines(by: String, sum: String) -> SumBy {
        SumBy(Rows::Json(Fields { names: [by, sum] }))
    }

    /// The job over the rows of `input`. A row without the field, or whose number is no finite number, ends it with an error that
    /// names file, line, and field.
    pub fn job(&self, input: Input) -> Job<'_, SumBy> {
        Job::new(self, input).records(self.0.records())
    }
}

impl MapReduce for SumBy {
    type Key = Bytes;
    type Value = f64;
    const COMBINE: Option<Combine<f64>> = Some(|a, b| a + b);

    fn map(&self, split: &mut Split<'_>, out: &mut impl Emit<Bytes, f64>) {
        self.0.for_each(split, |[key, field]| {
            out.emit(key, finite(field).map_err(|why| (1, why))?);
            Ok(())
        });
    }
}

/// How many rows have the same in one field: rows of CSV files, or JSON lines.
pub struct CountBy(Rows<1>);

impl CountBy {
    /// Counts rows of CSV by column `by`.
    ///
    /// # Errors
    /// As [`SumBy::csv`].
    pub fn csv(input: &mut Input, by: Column) -> Result<CountBy> {
        Rows::csv(input, &[by]).map(CountBy)
    }

    /// Counts objects, one in each line, by field `by`.
    pub fn json_lines(by: String) -> CountBy {
        CountBy(Rows::Json(Fields { names: [by] }))
    }

    /// The job over the rows of `input`. A row without the field ends it with an error that names file and line.
    pub fn job(&self, input: Input) -> Job<'_, CountBy> {
        Job::new(self, input).records(self.0.records())
    }
}

impl MapReduce for CountBy {
    type Key = Bytes;
    type Value = u64;
    const COMBINE: Option<Combine<u64>> = Some(|a, b| a + b);

    fn map(&self, split: &mut Split<'_>, out: &mut impl Emit<Bytes, u64>) {
        self.0.for_each(split, |[key]| {
            out.emit(key, 1);
            Ok(())
        });
    }
}
