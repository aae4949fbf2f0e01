//! Group by: the sum of a number, or the count, over all records with the same key.

use std::marker::PhantomData;

use gristmill::{Bytes, Chunk, Emit, Input, Job, MapReduce, ProgramError, Records};

use crate::binned::BinnedSum;
use crate::columns::{Column, Fault, Table};
use crate::error::{Error, Result, whole_records};
use crate::fields::Fields;
use crate::heading::Dialect;
use crate::number::{Number, Overflow};
use crate::rounded::RoundedSum;
use crate::sum::{self, Sum, whole};

/// Sums over pairs of 32-bit numbers, key and value, little-endian. Exact: 64 bits hold the sum of any 2^32 values,
/// and [`NumberPairs::sum`] detects an overflow beyond that.
pub struct NumberPairs;

impl NumberPairs {
    /// Returns the value of a sum in the result.
    ///
    /// # Errors
    /// The sum is 2^64 - 1 or more.
    pub fn sum(sum: u64) -> std::result::Result<u64, Overflow> {
        whole(sum)
    }

    /// Makes the job over the pairs of `input`.
    ///
    /// # Errors
    /// A file whose length is not a multiple of eight bytes.
    pub fn job(&self, mut input: Input) -> Result<Job<'_, NumberPairs>> {
        whole_records(&mut input, 8, "pairs of two 32-bit numbers need a multiple of 8")?;
        Ok(Job::new(self, input).records(Records::Fixed(8)))
    }
}

impl MapReduce for NumberPairs {
    type Key = u32;
    type Value = u64;

    fn combiner(&self) -> Option<impl Fn(u64, u64) -> u64> {
        Some(sum::ADD_WHOLE)
    }

    fn map(&self, chunk: &mut Chunk<'_>, out: &mut impl Emit<u32, u64>) -> Result<(), ProgramError> {
        for pair in chunk.bytes().as_chunks::<8>().0 {
            let pair = u64::from_le_bytes(*pair);
            out.emit(pair as u32, pair >> 32);
        }
        Ok(())
    }
}

/// Rows of files, and selected fields of them.
pub(crate) enum Rows<const N: usize> {
    Csv(Table<N>),
    Json(Fields<N>),
}

impl<const N: usize> Rows<N> {
    /// Rows of CSV files.
    pub fn csv(input: &mut Input, dialect: &Dialect, columns: &[Column; N], numbers: [bool; N]) -> Result<Rows<N>> {
        match Table::look(input, dialect, columns, numbers)? {
            Some(table) => Ok(Rows::Csv(table)),
            None => Err(Error::Question("the columns of an empty input are not known".into())),
        }
    }

    pub fn records(&self) -> Records {
        match self {
            Rows::Csv(table) => table.records(),
            Rows::Json(_) => Records::Lines,
        }
    }

    pub fn notes(&self) -> &[String] {
        match self {
            Rows::Csv(table) => &table.notes,
            Rows::Json(_) => &[],
        }
    }

    pub fn for_each(
        &self,
        chunk: &Chunk<'_>,
        take: impl FnMut([&[u8]; N]) -> Result<(), Fault>,
    ) -> Result<(), ProgramError> {
        match self {
            Rows::Csv(table) => table.for_each_row(chunk, take),
            Rows::Json(fields) => fields.for_each_row(chunk, take),
        }
    }
}

/// Rows that each have a key, and a number that may be empty.
pub(crate) struct KeyedNumbers {
    rows: Rows<2>,
    strict: bool,
}

impl KeyedNumbers {
    pub fn csv(input: &mut Input, dialect: &Dialect, by: Column, number: Column) -> Result<KeyedNumbers> {
        Ok(KeyedNumbers { rows: Rows::csv(input, dialect, &[by, number], [false, true])?, strict: false })
    }

    pub fn json_lines(by: String, number: String) -> KeyedNumbers {
        let fields = Fields { names: [by, number], nulls: [false, true], numbers: [false, true] };
        KeyedNumbers { rows: Rows::Json(fields), strict: false }
    }

    pub fn strict(&mut self, strict: bool) {
        self.strict = strict;
        if let Rows::Json(fields) = &mut self.rows {
            fields.nulls[1] = !strict;
        }
    }

    pub fn notes(&self) -> &[String] {
        self.rows.notes()
    }

    pub fn records(&self) -> Records {
        self.rows.records()
    }

    /// Calls `take` with the key and the number of each row, and again with `None` where the number was refused because
    /// it is empty. Returns how many rows these were. They are an error if the numbers are strict.
    #[inline(always)]
    pub fn for_each(
        &self,
        chunk: &Chunk<'_>,
        mut take: impl FnMut(&[u8], Option<&[u8]>) -> Result<(), String>,
    ) -> Result<u64, ProgramError> {
        let mut left_out = 0;
        self.rows.for_each(chunk, |[key, number]| {
            if key == SumBy::LEFT_OUT {
                return Err((0, "this key is kept for the count of rows without a number".to_owned()));
            }
            let mut taken = take(key, Some(number));
            if taken.is_err() && !self.strict && number.trim_ascii().is_empty() {
                left_out += 1;
                taken = take(key, None);
            }
            taken.map_err(|why| (1, why))
        })?;
        Ok(left_out)
    }
}

/// Sums one field over all rows that agree in another: rows of CSV files, or JSON lines. Sums of whole numbers are
/// exact. Sums of fractions are rounded after each addition, unless they are [`reproducible`](SumBy::reproducible).
/// In JSON, a key is a string, a number or a boolean as written, and the number may be quoted.
///
/// As in SQL, a row whose number is empty (in JSON also `null`) does not count towards the sum of its key, and a key
/// with only such rows has no sum. If there are such rows, the result holds their count under the key
/// [`SumBy::LEFT_OUT`].
///
/// ```
/// use gristmill::{Input, Isolation};
/// use gristmill_apps::{Column, Dialect, Number, Sum, SumBy};
///
/// let mut csv = Input::bytes("fruit", b"fruit,kg\napple,2\npear,1.5\napple,3\n")?;
/// let json = Input::bytes("fruit", b"{\"fruit\":\"apple\",\"kg\":5}\n{\"fruit\":\"pear\",\"kg\":1.5}\n")?;
/// let [fruit, kg] = ["fruit", "kg"].map(|name| Column::Name(name.into()));
/// for (program, input) in [
///     (SumBy::csv(&mut csv, &Dialect::default(), fruit, kg)?, csv),
///     (SumBy::json_lines("fruit".into(), "kg".into()), json),
/// ] {
///     // Doctests share a process, so the workers are threads.
///     let (sums, _) = program.job(input).isolation(Isolation::Thread).run()?;
///     assert_eq!(sums.get(b"apple").unwrap().value().unwrap(), Some(Number::Whole(5)));
///     assert_eq!(sums.get(b"pear").unwrap().value().unwrap(), Some(Number::Fraction(1.5)));
/// }
/// # Ok::<(), gristmill_apps::Error>(())
/// ```
pub struct SumBy<S = RoundedSum> {
    numbers: KeyedNumbers,
    sums: PhantomData<fn() -> S>,
}

impl SumBy {
    /// The key under which rows without a number are counted. An input row with this key is refused.
    pub const LEFT_OUT: &'static [u8] = b"\xff\xfe gristmill: rows without a number \xfe\xff";

    /// Groups CSV rows by column `by` and sums column `sum`.
    ///
    /// # Errors
    /// A column that does not exist or that files name differently; an empty input.
    pub fn csv(input: &mut Input, dialect: &Dialect, by: Column, sum: Column) -> Result<SumBy> {
        Ok(SumBy { numbers: KeyedNumbers::csv(input, dialect, by, sum)?, sums: PhantomData })
    }

    /// Groups objects, one per line, by field `by` and sums field `sum`.
    pub fn json_lines(by: String, sum: String) -> SumBy {
        SumBy { numbers: KeyedNumbers::json_lines(by, sum), sums: PhantomData }
    }

    /// Makes the sums of fractions independent of the order of their numbers. This takes about a fifth more time.
    pub fn reproducible(self) -> SumBy<BinnedSum> {
        SumBy { numbers: self.numbers, sums: PhantomData }
    }
}

impl<S: Sum> SumBy<S> {
    /// Refuses rows whose number is empty, like those whose number is malformed.
    pub fn strict(mut self, strict: bool) -> SumBy<S> {
        self.numbers.strict(strict);
        self
    }

    /// Guesses about the input, one sentence each, for the caller to show.
    pub fn notes(&self) -> &[String] {
        self.numbers.notes()
    }

    /// Makes the job over the rows of `input`. A row without the field, or whose field is not a finite number, ends
    /// the job with an error that names file, line, and field.
    pub fn job(&self, input: Input) -> Job<'_, SumBy<S>> {
        Job::new(self, input).records(self.numbers.records())
    }
}

impl<S: Sum> MapReduce for SumBy<S> {
    type Key = Bytes;
    type Value = S;

    fn combiner(&self) -> Option<impl Fn(S, S) -> S> {
        Some(sum::add)
    }

    fn map(&self, chunk: &mut Chunk<'_>, out: &mut impl Emit<Bytes, S>) -> Result<(), ProgramError> {
        let left_out = self.numbers.for_each(chunk, |key, number| {
            out.emit(key, number.map(Number::of).transpose()?.map_or_else(S::default, S::from));
            Ok(())
        })?;
        if left_out > 0 {
            out.emit(SumBy::LEFT_OUT, S::rows(left_out));
        }
        Ok(())
    }
}

/// Counts the rows that agree in one field: rows of CSV files, or JSON lines.
pub struct CountBy(Rows<1>);

impl CountBy {
    /// Counts CSV rows by column `by`.
    ///
    /// # Errors
    /// As [`SumBy::csv`].
    pub fn csv(input: &mut Input, dialect: &Dialect, by: Column) -> Result<CountBy> {
        Rows::csv(input, dialect, &[by], [false]).map(CountBy)
    }

    /// Counts objects, one per line, by field `by`.
    pub fn json_lines(by: String) -> CountBy {
        CountBy(Rows::Json(Fields { names: [by], nulls: [false], numbers: [false] }))
    }

    /// Guesses about the input, one sentence each, for the caller to show.
    pub fn notes(&self) -> &[String] {
        self.0.notes()
    }

    /// Makes the job over the rows of `input`. A row without the field ends it with an error that names file and
    /// line.
    pub fn job(&self, input: Input) -> Job<'_, CountBy> {
        Job::new(self, input).records(self.0.records())
    }
}

impl MapReduce for CountBy {
    type Key = Bytes;
    type Value = u64;

    fn combiner(&self) -> Option<impl Fn(u64, u64) -> u64> {
        Some(|a, b| a + b)
    }

    fn map(&self, chunk: &mut Chunk<'_>, out: &mut impl Emit<Bytes, u64>) -> Result<(), ProgramError> {
        self.0.for_each(chunk, |[key]| {
            out.emit(key, 1);
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// A sum of more than 2^32 pairs with one key used to wrap around silently.
        #[test]
        fn a_sum_of_pairs_is_exact_or_too_large_in_any_order(
            parts in prop::collection::vec(prop_oneof![any::<u64>(), any::<u32>().prop_map(u64::from)], 1..6),
        ) {
            let add = sum::ADD_WHOLE;
            let exact: u128 = parts.iter().copied().map(u128::from).sum();
            let expected = u64::try_from(exact).ok().filter(|sum| *sum < u64::MAX).ok_or(Overflow::Word);
            for first in 0..parts.len() {
                let (later, sooner) = parts.split_at(first);
                let sum = sooner.iter().chain(later).copied().reduce(add).expect("there is one");
                prop_assert_eq!(NumberPairs::sum(sum), expected);
                prop_assert_eq!(crate::Palindromes::total(parts.iter().copied()), expected);
            }
        }
    }
}
