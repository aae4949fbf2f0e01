//! Describe: count, mean, standard deviation and extremes of a number, over all records with the same key.

use std::cmp::Ordering;

use gristmill::aggregates::Numbers;
use gristmill::{Aggregate, Bytes, Chunk, Datum, Emit, Input, Job, MapReduce, ProgramError};

use crate::columns::Column;
use crate::error::Result;
use crate::group_by::{KeyedNumbers, SumBy};
use crate::heading::Dialect;
use crate::number::{Overflow, finite};
use crate::sum::RowsLeftOut;

/// Describes the numbers of one field over all rows that agree in another: rows of CSV files, or JSON lines.
///
/// Numbers are `f64`, and the squares of their differences from the mean are rounded at each addition. So the last
/// digits of a standard deviation depend on the order in which workers read the rows. A row whose number is empty (in
/// JSON also `null`) is left out; a key with only such rows has a count of 0. If there are such rows, the result holds
/// their count under the key [`SumBy::LEFT_OUT`].
///
/// ```
/// use gristmill::{Input, Isolation};
/// use gristmill_apps::{Column, DescribeBy, Dialect};
///
/// let mut input = Input::bytes("fruit", b"fruit,kg\napple,2\npear,1.5\napple,4\n")?;
/// let [fruit, kg] = ["fruit", "kg"].map(|name| Column::Name(name.into()));
/// let program = DescribeBy::csv(&mut input, &Dialect::default(), fruit, kg)?;
/// // Doctests share a process, so the workers are threads.
/// let (found, _) = program.job(input).isolation(Isolation::Thread).run()?;
/// let apples = found.get(b"apple").unwrap();
/// assert_eq!((apples.count(), apples.figures()?), (2, [Some(3.0), Some(2f64.sqrt()), Some(2.0), Some(4.0)]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct DescribeBy(KeyedNumbers);

impl DescribeBy {
    /// Groups CSV rows by column `by` and describes column `number`.
    ///
    /// # Errors
    /// A column that does not exist or that files name differently; an empty input.
    pub fn csv(input: &mut Input, dialect: &Dialect, by: Column, number: Column) -> Result<DescribeBy> {
        KeyedNumbers::csv(input, dialect, by, number).map(DescribeBy)
    }

    /// Groups objects, one per line, by field `by` and describes field `number`.
    pub fn json_lines(by: String, number: String) -> DescribeBy {
        DescribeBy(KeyedNumbers::json_lines(by, number))
    }

    /// Refuses rows whose number is empty, like those whose number is malformed.
    pub fn strict(mut self, strict: bool) -> DescribeBy {
        self.0.strict(strict);
        self
    }

    /// Guesses about the input, one sentence each, for the caller to show.
    pub fn notes(&self) -> &[String] {
        self.0.notes()
    }

    /// Makes the job over the rows of `input`. A row without the field, or whose field is not a finite number, ends
    /// the job with an error that names file, line, and field.
    pub fn job(&self, input: Input) -> Job<'_, DescribeBy> {
        Job::new(self, input).records(self.0.records())
    }
}

impl MapReduce for DescribeBy {
    type Key = Bytes;
    type Value = Described;

    fn combiner(&self) -> Option<impl Fn(Described, Described) -> Described> {
        Some(Described::merged)
    }

    fn map(&self, chunk: &mut Chunk<'_>, out: &mut impl Emit<Bytes, Described>) -> Result<(), ProgramError> {
        let rows = self.0.for_each(chunk, |key, number| {
            match number {
                Some(number) => out.add(key, finite(number)?),
                None => out.emit(key, Described::default()),
            }
            Ok(())
        })?;
        if rows > 0 {
            out.emit(SumBy::LEFT_OUT, Described { left_out: [rows, 1], ..Described::default() });
        }
        Ok(())
    }
}

/// The figures that [`DescribeBy`] finds for a key. They are ordered by their count.
#[derive(Clone, Copy, Debug, Default)]
pub struct Described {
    numbers: Numbers,
    /// Rows without a number, and the pairs that were emitted to count them; both are 0 if this is about numbers.
    left_out: [u64; 2],
}

impl Described {
    /// Returns how many numbers there were.
    pub fn count(self) -> u64 {
        self.numbers.count()
    }

    /// Returns the mean, the standard deviation (of the population from which the numbers are a sample; `None` if
    /// there is only one), the least and the greatest of the numbers, if there are any.
    ///
    /// # Errors
    /// A sum of the numbers, or of the squares of their differences from the mean, is beyond the largest `f64`.
    pub fn figures(self) -> std::result::Result<[Option<f64>; 4], Overflow> {
        let Described { numbers, .. } = self;
        let std = numbers.sample_variance().map(f64::sqrt);
        let figures = [numbers.mean(), std, numbers.least(), numbers.greatest()];
        if figures.iter().flatten().all(|figure| figure.is_finite()) { Ok(figures) } else { Err(Overflow::Result) }
    }

    /// Returns the counts if this is a count of rows without a number, under the key [`SumBy::LEFT_OUT`].
    pub fn rows_left_out(self) -> Option<RowsLeftOut> {
        let [rows, pairs] = self.left_out;
        (pairs > 0).then_some(RowsLeftOut { rows, pairs })
    }
}

impl Aggregate for Described {
    type Item = f64;

    fn add(described: &mut Described, number: f64) {
        Numbers::add(&mut described.numbers, number);
    }

    fn merge(described: &mut Described, other: Described) {
        Numbers::merge(&mut described.numbers, other.numbers);
        described.left_out.iter_mut().zip(other.left_out).for_each(|(count, more)| *count += more);
    }
}

/// The form in which it travels.
type Travelling = (Numbers, (u64, u64));

impl Described {
    fn travelling(self) -> (Numbers, (u64, u64)) {
        (self.numbers, self.left_out.into())
    }
}

impl Datum for Described {
    type Ref<'a> = Described;
    type Owned = Described;
    const WIDTH: Option<usize> = Travelling::WIDTH;

    fn write(described: Described, to: &mut [u8]) {
        Travelling::write(described.travelling(), to);
    }

    fn read(from: &[u8]) -> Described {
        let (numbers, left_out) = Travelling::read(from);
        Described { numbers, left_out: left_out.into() }
    }

    fn own(described: Described) -> Described {
        described
    }

    fn lend(described: &Described) -> Described {
        *described
    }

    /// The count of rows without a number is greater than all others.
    fn compare(a: Described, b: Described) -> Ordering {
        (a.left_out, a.count()).cmp(&(b.left_out, b.count()))
    }

    fn prefix(described: Described) -> u64 {
        if described.left_out[0] > 0 { u64::MAX } else { described.count() }
    }

    fn to_text(described: Described, to: &mut Vec<u8>) {
        Travelling::to_text(described.travelling(), to);
    }
}
