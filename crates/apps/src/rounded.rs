//! Fast sums: fractions are rounded after each addition.
//!
//! Whole numbers are added in 128 bits, with a count of overflows, so their sum is exact in any order. The first
//! fraction turns the sum into an `f64`.

use std::ops::{Add, AddAssign};

use gristmill::Datum;

use crate::number::Number;
use crate::sum::{CONTENT_BITS, COUNT, Content, Sum, datum_of_sum, of_words, words};

/// A sum of numbers: exact for whole numbers, rounded after each addition for fractions.
///
/// ```
/// use gristmill_apps::{Number, RoundedSum, Sum};
///
/// let add = |numbers: &[&str]| {
///     numbers.iter().fold(RoundedSum::default(), |sum, text| sum + Number::of(text.as_bytes()).unwrap().into())
/// };
/// assert_eq!(add(&["9007199254740993", "-1"]).value().unwrap(), Some(Number::Whole(9007199254740992)));
/// assert_eq!(add(&["0.1", "1e20", "0.2", "-1e20"]).value().unwrap(), Some(Number::Fraction(0.0)));
/// assert_eq!(add(&[]).value().unwrap(), None);
/// assert!(add(&["1e308", "1e308"]).value().is_err());
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct RoundedSum {
    /// A whole number, or an `f64` in the lower word.
    number: [u64; 2],
    /// The content, and above it the number of overflows of the whole number: upward less downward.
    tag: i64,
}

const WHOLE: i64 = Content::Whole as i64;
const FRACTIONS: i64 = Content::Fractions as i64;
const OVERFLOW: i64 = 1 << CONTENT_BITS;

impl From<Number> for RoundedSum {
    #[inline(always)]
    fn from(number: Number) -> RoundedSum {
        match number {
            Number::Whole(number) => RoundedSum { number: words(number), tag: WHOLE },
            // -0 becomes 0, as in a sum with a whole number.
            Number::Fraction(number) => RoundedSum::fraction(number + 0.0),
        }
    }
}

impl RoundedSum {
    #[inline(always)]
    fn fraction(number: f64) -> RoundedSum {
        RoundedSum { number: [number.to_bits(), 0], tag: FRACTIONS }
    }

    #[inline(always)]
    fn as_fraction(self) -> f64 {
        f64::from_bits(self.number[0])
    }

    /// Adds two sums of which at least one is not of fractions.
    #[inline(always)]
    fn add_apart(self, other: RoundedSum) -> RoundedSum {
        if self.tag == FRACTIONS || other.tag == FRACTIONS {
            return RoundedSum::fraction(self.nearest() + other.nearest());
        }
        let (a, b) = (of_words(self.number), of_words(other.number));
        let (number, has_overflowed) = a.overflowing_add(b);
        let once_more = match has_overflowed {
            false => 0,
            true if b < 0 => -OVERFLOW,
            true => OVERFLOW,
        };
        let content = self.content().max(other.content());
        let overflows = (self.tag & -OVERFLOW) + (other.tag & -OVERFLOW) + once_more;
        RoundedSum { number: words(number), tag: overflows | content as i64 }
    }
}

impl Sum for RoundedSum {
    fn rows(count: u64) -> RoundedSum {
        RoundedSum { number: words(i128::from(count) + COUNT), tag: Content::Rows as i64 }
    }

    #[inline(always)]
    fn content(&self) -> Content {
        Content::of(self.tag as u64)
    }

    fn exact(&self) -> Option<i128> {
        (self.tag < OVERFLOW && self.tag >= 0).then(|| of_words(self.number))
    }

    #[inline(never)]
    fn nearest(&self) -> f64 {
        match self.content() {
            Content::Fractions => self.as_fraction(),
            _ => of_words(self.number) as f64 + (self.tag >> CONTENT_BITS) as f64 * 2f64.powi(128),
        }
    }
}

impl Add for RoundedSum {
    type Output = RoundedSum;

    #[inline(always)]
    fn add(self, other: RoundedSum) -> RoundedSum {
        if self.tag == FRACTIONS && other.tag == FRACTIONS {
            return RoundedSum::fraction(self.as_fraction() + other.as_fraction());
        }
        self.add_apart(other)
    }
}

impl AddAssign for RoundedSum {
    #[inline(always)]
    fn add_assign(&mut self, other: RoundedSum) {
        *self = *self + other;
    }
}

impl Datum for RoundedSum {
    datum_of_sum!();

    const WIDTH: Option<usize> = Some(24);

    #[inline(always)]
    fn write(sum: RoundedSum, to: &mut [u8]) {
        let to: &mut [u8; 24] = to.try_into().expect("as wide as a sum");
        to[..16].copy_from_slice(&of_words(sum.number).to_le_bytes());
        to[16..].copy_from_slice(&sum.tag.to_le_bytes());
    }
    #[inline(always)]
    fn read(from: &[u8]) -> RoundedSum {
        let from: &[u8; 24] = from.try_into().expect("as wide as a sum");
        let word = |at: usize| u64::from_le_bytes(from[at..at + 8].try_into().expect("eight bytes"));
        RoundedSum { number: [word(0), word(8)], tag: word(16) as i64 }
    }
    #[inline(always)]
    fn words(sum: RoundedSum) -> Option<[u64; 4]> {
        Some([sum.number[0], sum.number[1], sum.tag as u64, 0])
    }
}

#[cfg(test)]
mod tests {
    use std::cmp::Ordering;

    use proptest::prelude::*;

    use super::*;
    use crate::Overflow;

    fn sum(numbers: &[Number]) -> RoundedSum {
        numbers.iter().fold(RoundedSum::default(), |sum, number| sum + RoundedSum::from(*number))
    }

    fn number() -> impl Strategy<Value = Number> {
        prop_oneof![
            any::<i128>().prop_map(Number::Whole),
            any::<i32>().prop_map(|number| Number::Whole(number.into())),
            (-1e9..1e9).prop_map(Number::Fraction),
            Just(Number::Fraction(-0.0)),
        ]
    }

    proptest! {
        /// The fast sum must be as exact as the command promises: it once lost the last digits of whole numbers that
        /// a float cannot hold.
        #[test]
        fn whole_numbers_are_exact_or_too_large_in_any_order_and_grouping(
            numbers in prop::collection::vec(any::<i128>(), 1..20), turn in 0usize..20, group in 1usize..20,
        ) {
            let (high, low) = numbers.iter().fold((0i128, 0i128), |(high, low), number| {
                (high + (number >> 64), low + (number & i128::from(u64::MAX)))
            });
            let expected = high.checked_add(low >> 64).and_then(|high| i64::try_from(high).ok())
                .map(|high| i128::from(high) << 64 | low & i128::from(u64::MAX));
            let mut numbers: Vec<_> = numbers.into_iter().map(Number::Whole).collect();
            let turn = turn % numbers.len();
            numbers.rotate_left(turn);
            // Writes each sum to bytes and reads it back.
            let found = numbers.chunks(group).map(sum).fold(RoundedSum::default(), |total, sum| {
                let mut bytes = [0; 24];
                RoundedSum::write(sum, &mut bytes);
                total + RoundedSum::read(&bytes)
            });
            prop_assert_eq!(found.value(), expected.map(|value| Some(Number::Whole(value))).ok_or(Overflow::Whole));
        }

        #[test]
        fn sums_sort_as_their_values_do(a in number(), b in number()) {
            let order = RoundedSum::compare(a.into(), b.into());
            match (a, b) {
                (Number::Whole(a), Number::Whole(b)) => prop_assert_eq!(order, a.cmp(&b)),
                (a, b) if a.nearest() != b.nearest() => prop_assert_eq!(Some(order), a.nearest().partial_cmp(&b.nearest())),
                _ => {}
            }
            let prefixes = RoundedSum::prefix(a.into()).cmp(&RoundedSum::prefix(b.into()));
            prop_assert!(prefixes == Ordering::Equal || prefixes == order);
        }
    }

    #[test]
    fn one_fraction_makes_the_sum_a_fraction_and_no_sum_is_minus_zero() {
        let [one, half, zero] = [Number::Whole(1), Number::Fraction(0.5), Number::Fraction(-0.0)];
        for numbers in [[one, one, half], [half, one, one], [one, half, one]] {
            assert_eq!(sum(&numbers).value(), Ok(Some(Number::Fraction(2.5))));
        }
        assert_eq!(sum(&[zero, zero]).nearest().to_bits(), 0);
        assert_eq!(sum(&[half, Number::Fraction(-0.5)]).nearest().to_bits(), 0);
        assert_eq!(sum(&[]).value(), Ok(None));
        let largest = Number::Fraction(f64::MAX);
        assert_eq!(sum(&[largest, largest]).value(), Err(Overflow::Fraction));
        assert_eq!(
            (RoundedSum::rows(3) + RoundedSum::rows(4)).rows_left_out().map(|left| (left.rows, left.pairs)),
            Some((7, 2))
        );
    }
}
