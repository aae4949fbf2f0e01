//! Group by: the sum of a number, or the count, of all records that have the same key.

use gristmill::{Bytes, Combine, Emit, Input, Job, MapReduce, Records, Split};

use crate::columns::{Column, Table};
use crate::error::{Error, Result, whole_records};
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

/// Sums over a column of CSV files, or counts of rows, for each key in another column.
///
/// ```
/// use gristmill::{Input, Isolation};
/// use gristmill_apps::{Column, GroupBy};
///
/// let mut input = Input::bytes("fruit", b"fruit,kg\napple,2\npear,1.5\napple,0.5\n")?;
/// let program = GroupBy::new(&mut input, Column::Name("fruit".into()), Some(Column::Number(2)))?;
/// // This doctest runs beside others in one process, so its workers are threads.
/// let (sums, _) = program.job(input).isolation(Isolation::Thread).run()?;
/// assert_eq!(sums.iter().collect::<Vec<_>>(), [(&b"apple"[..], 2.5), (b"pear", 1.5)]);
/// # Ok::<(), gristmill_apps::Error>(())
/// ```
pub struct GroupBy {
    /// The key; the number to sum, or the key once more.
    table: Table<2>,
    counts: bool,
}

impl GroupBy {
    /// Groups by column `by` and sums column `sum`; without one, counts rows.
    ///
    /// # Errors
    /// A column that is not there, files with different first lines, an empty input.
    pub fn new(input: &mut Input, by: Column, sum: Option<Column>) -> Result<GroupBy> {
        let counts = sum.is_none();
        let wanted = [by.clone(), sum.unwrap_or(by)];
        match Table::look(input.sources()?, &wanted)? {
            Some(table) => Ok(GroupBy { table, counts }),
            None => Err(Error::Question("the columns of an empty input are not known".into())),
        }
    }

    /// The job over the rows of `input`. A field of the summed column that is no finite number ends it with an error that
    /// names file, line, and column.
    pub fn job(&self, input: Input) -> Job<'_, GroupBy> {
        Job::new(self, input).records(Records::Csv(b','))
    }
}

impl MapReduce for GroupBy {
    type Key = Bytes;
    type Value = f64;
    const COMBINE: Option<Combine<f64>> = Some(|a, b| a + b);

    fn map(&self, split: &mut Split<'_>, out: &mut impl Emit<Bytes, f64>) {
        self.table.for_each_row(split, |[key, field]| {
            out.emit(key, if self.counts { 1.0 } else { finite(field).map_err(|why| (1, why))? });
            Ok(())
        });
    }
}
