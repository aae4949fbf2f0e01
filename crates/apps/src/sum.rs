//! Sums of numbers: exact for whole numbers, with two ways to add fractions.
//!
//! | | fractions | bytes |
//! |---|---|---|
//! | [`RoundedSum`](crate::RoundedSum) | rounded after each addition: the last digits depend on the order | 24 |
//! | [`BinnedSum`](crate::BinnedSum) | rounded once, at the end: the same in any order | 32 |
//!
//! A program that sums is generic over [`Sum`].

use std::cmp::Ordering;
use std::fmt::Debug;
use std::io::Write;
use std::ops::{Add, AddAssign};

use gristmill::Datum;

use crate::number::{Number, Overflow};

/// A sum of numbers. For whole numbers it is exact and independent of their order; a result beyond 128 bits is
/// detected at the end.
pub trait Sum:
    for<'a> Datum<Ref<'a> = Self, Owned = Self> + Add<Output = Self> + AddAssign + From<Number> + Copy + Default + Debug
{
    /// Makes a count of rows without a number. Such counts are added up under a separate key.
    fn rows(count: u64) -> Self;

    /// The kind of numbers that were added.
    fn content(&self) -> Content;

    /// Returns the value of a sum of whole numbers, if an `i128` can hold it.
    fn exact(&self) -> Option<i128>;

    /// Returns the nearest `f64`, which is not finite if the sum is too large.
    fn nearest(&self) -> f64;

    /// Returns the value: whole if only whole numbers were added, else the nearest `f64`; `None` if nothing was
    /// added.
    ///
    /// # Errors
    /// The value is beyond `i128`, or beyond the largest finite `f64`.
    fn value(&self) -> Result<Option<Number>, Overflow> {
        match self.content() {
            Content::Nothing => Ok(None),
            Content::Whole | Content::Rows => {
                self.exact().map(|value| Some(Number::Whole(value))).ok_or(Overflow::Whole)
            }
            Content::Fractions => match self.nearest() {
                value if value.is_finite() => Ok(Some(Number::Fraction(value))),
                _ => Err(Overflow::Fraction),
            },
        }
    }

    /// Returns the counts if this is a count of rows without a number, under the key
    /// [`SumBy::LEFT_OUT`](crate::SumBy::LEFT_OUT).
    fn rows_left_out(&self) -> Option<RowsLeftOut> {
        let counts = (self.content() == Content::Rows).then(|| self.exact().unwrap_or(i128::MAX))?;
        Some(RowsLeftOut { rows: (counts % COUNT) as u64, pairs: (counts / COUNT) as u64 })
    }
}

/// The kind of numbers in a sum. Adding two sums gives the greater of both.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Content {
    /// No number.
    Nothing,
    /// Whole numbers.
    Whole,
    /// Rows without a number, which are counted under a separate key.
    Rows,
    /// Fractions, possibly with whole numbers.
    Fractions,
}

/// The count of rows without a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowsLeftOut {
    /// The number of rows.
    pub rows: u64,
    /// The number of pairs that the map function emitted to count them.
    pub pairs: u64,
}

/// Counts one pair that counts rows. The low 64 bits count the rows.
pub(crate) const COUNT: i128 = 1 << 64;

/// The number of bits that hold a [`Content`].
pub(crate) const CONTENT_BITS: u32 = 2;

impl Content {
    /// Reads the content from the lowest bits of a word.
    #[inline(always)]
    pub(crate) fn of(word: u64) -> Content {
        match word & ((1 << CONTENT_BITS) - 1) {
            0 => Content::Nothing,
            1 => Content::Whole,
            2 => Content::Rows,
            _ => Content::Fractions,
        }
    }
}

/// Adds two sums: the combiner of programs that sum. A function, because closures are not always inlined.
#[inline(always)]
pub(crate) fn add<S: Sum>(a: S, b: S) -> S {
    a + b
}

/// Adds two sums that nearly always fit in 64 bits. One that does not saturates, whatever the order of its numbers.
pub(crate) const ADD_WHOLE: fn(u64, u64) -> u64 = u64::saturating_add;

/// Returns the value of a sum by [`ADD_WHOLE`]. The largest number means overflow.
pub(crate) fn whole(sum: u64) -> Result<u64, Overflow> {
    if sum == u64::MAX { Err(Overflow::Word) } else { Ok(sum) }
}

/// Splits 128 bits into two words, so that a sum is aligned to eight bytes.
#[inline(always)]
pub(crate) fn words(number: i128) -> [u64; 2] {
    [number as u64, (number >> 64) as u64]
}

#[inline(always)]
pub(crate) fn of_words(words: [u64; 2]) -> i128 {
    (u128::from(words[0]) | u128::from(words[1]) << 64) as i128
}

/// Returns a number that sorts like the value. A sum without a number sorts first, counts of rows sort last.
fn rank(sum: &impl Sum) -> f64 {
    match sum.content() {
        Content::Nothing => f64::NEG_INFINITY,
        Content::Whole | Content::Fractions => sum.nearest(),
        Content::Rows => f64::INFINITY,
    }
}

/// Orders sums of equal rank. Sums that print the same are equal here.
fn rank_of_equals(sum: &impl Sum) -> i128 {
    match sum.content() {
        Content::Nothing => i128::MIN,
        Content::Whole => sum.exact().unwrap_or(0),
        Content::Rows => i128::MAX,
        Content::Fractions => sum.nearest() as i128,
    }
}

/// [`Datum::compare`] of sums.
pub(crate) fn compare<S: Sum>(a: &S, b: &S) -> Ordering {
    // The rank is never -0, which would sort before 0.
    rank(a).total_cmp(&rank(b)).then_with(|| rank_of_equals(a).cmp(&rank_of_equals(b)))
}

/// [`Datum::prefix`] of sums.
pub(crate) fn prefix(sum: &impl Sum) -> u64 {
    <f64 as Datum>::prefix(rank(sum))
}

/// [`Datum::to_text`] of sums.
pub(crate) fn to_text(sum: &impl Sum, to: &mut Vec<u8>) {
    let written = match sum.value() {
        Ok(None) => Ok(()),
        Ok(Some(Number::Whole(value))) => write!(to, "{value}"),
        Ok(Some(Number::Fraction(value))) => write!(to, "{value}"),
        Err(overflow) => write!(to, "{overflow}"),
    };
    written.expect("writing to a Vec cannot fail");
}

/// The parts of [`Datum`] that are the same for all sums.
macro_rules! datum_of_sum {
    () => {
        type Ref<'a> = Self;
        type Owned = Self;

        #[inline(always)]
        fn own(sum: Self) -> Self {
            sum
        }
        #[inline(always)]
        fn lend(sum: &Self) -> Self {
            *sum
        }
        fn compare(a: Self, b: Self) -> std::cmp::Ordering {
            $crate::sum::compare(&a, &b)
        }
        fn prefix(sum: Self) -> u64 {
            $crate::sum::prefix(&sum)
        }
        fn to_text(sum: Self, to: &mut Vec<u8>) {
            $crate::sum::to_text(&sum, to);
        }
    };
}

pub(crate) use datum_of_sum;
