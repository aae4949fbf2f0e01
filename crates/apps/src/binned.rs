//! Sums whose bits do not depend on the order in which their numbers are added.
//!
//! Floating-point addition rounds after each step, so an ordinary sum depends on the order of its numbers. A
//! [`BinnedSum`] rounds only when it is asked for its value. It is binned, as in Demmel and Nguyen, "Parallel
//! Reproducible Summation" (2015) and in ReproBLAS, but its bins are whole numbers:
//!
//! ```text
//!             2^72             2^0            2^-72           2^-144
//!  ... | bin 1 | bin 0          | bin -1         | bin -2        | ...     each 72 bits of the number line
//!
//!  sum:  | tag, 1 | lower, 15 | upper, 16 |
//!        upper counts 2^(72 top), lower counts 2^(72 (top - 1)); both are whole numbers
//!        tag: which kinds of numbers were added, and top
//! ```
//!
//! A number is cut at the borders of the bins, which is exact, and each part is added to its bin. Bins do not carry
//! into each other, so each part depends on its number alone. A sum keeps two neighbouring bins: the highest that any
//! of its numbers has needed, and the one below. Parts below both are dropped, whatever the order of the numbers. A
//! bin has 47 spare bits, enough for 10^14 numbers.
//!
//! - Whole numbers need only bins 0 and 1, so their sum is exact.
//! - Fractions are exact if all bits of all numbers lie within the two bins, as those between 2^-20 and 2^72 do.
//!   Otherwise the part dropped from each number is less than 2^-71 of the largest number. The value is rounded once,
//!   to the nearest `f64`.

use std::ops::{Add, AddAssign};

use gristmill::Datum;

use crate::number::Number;
use crate::sum::{CONTENT_BITS, COUNT, Content, Sum, datum_of_sum, of_words, words};

/// The number of bits of the number line that a bin covers.
const BIN_BITS: i32 = 72;
const BIN_MASK: u128 = (1 << BIN_BITS) - 1;

/// The bin of numbers that are not finite. 2^40 of its units are more than all finite numbers together.
const BEYOND: i32 = 15;

/// The upper bin of a sum that has only zeros. It is below all other bins.
const NOTHING: i32 = -16;

/// A sum of numbers, exact or nearly so (see the module). It does not depend on the order of its numbers.
///
/// ```
/// use gristmill_apps::{BinnedSum, Number, Sum};
///
/// let add = |numbers: &[&str]| {
///     numbers.iter().fold(BinnedSum::default(), |sum, text| sum + Number::of(text.as_bytes()).unwrap().into())
/// };
/// assert_eq!(add(&["9007199254740993", "-1"]).value().unwrap(), Some(Number::Whole(9007199254740992)));
/// assert_eq!(add(&["0.1", "1e20", "0.2", "-1e20"]).value().unwrap(), Some(Number::Fraction(0.30000000000000004)));
/// assert_eq!(add(&[]).value().unwrap(), None);
/// assert!(add(&["1e308", "1e308"]).value().is_err());
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct BinnedSum {
    /// Two bins, each in two words so that a sum is aligned to eight bytes. The low byte of the lower bin is the tag.
    lower: [u64; 2],
    upper: [u64; 2],
}

/// The number of bits of the tag: the content, and above it the upper bin's place.
const TAG_BITS: u32 = 8;
const TAG: u64 = (1 << TAG_BITS) - 1;

impl From<Number> for BinnedSum {
    #[inline(always)]
    fn from(number: Number) -> BinnedSum {
        match number {
            Number::Whole(number) => BinnedSum::whole(number),
            Number::Fraction(number) => BinnedSum::fraction(number),
        }
    }
}

impl BinnedSum {
    /// Makes a sum from its bins, the place of the upper bin, and the content.
    #[inline(always)]
    fn of(upper: i128, lower: i128, top: i32, content: Content) -> BinnedSum {
        let tag = ((top - NOTHING) as u64) << CONTENT_BITS | content as u64;
        let [low, high] = words(lower << TAG_BITS);
        BinnedSum { lower: [low | tag, high], upper: words(upper) }
    }

    #[inline(always)]
    fn top(&self) -> i32 {
        ((self.lower[0] & TAG) >> CONTENT_BITS) as i32 + NOTHING
    }

    #[inline(always)]
    fn whole(number: i128) -> BinnedSum {
        // The common case: the bins above and below stay empty.
        if number as i64 as i128 == number && number != 0 {
            return BinnedSum::of(number, 0, 0, Content::Whole);
        }
        let signed = |part: u128| if number < 0 { -(part as i128) } else { part as i128 };
        let size = number.unsigned_abs();
        let (high, low) = (size >> BIN_BITS, size & BIN_MASK);
        let (top, upper, lower) = match (high, low) {
            (0, 0) => (NOTHING, 0, 0),
            (0, low) => (0, low, 0),
            (high, low) => (1, high, low),
        };
        BinnedSum::of(signed(upper), signed(lower), top, Content::Whole)
    }

    /// Makes a sum of one number. A number that is not finite makes every sum overflow.
    #[inline(always)]
    pub(crate) fn fraction(number: f64) -> BinnedSum {
        let bits = number.to_bits();
        let shift = ((bits >> 52 & 0x7ff) as u32).wrapping_sub(1011);
        if shift < 64 {
            // For numbers from 2^-12 to 2^52. The unit of the 53 digits is 2^(shift - 64).
            let digits = bits & ((1 << 52) - 1) | 1 << 52;
            let sign = bits as i64 >> 63;
            let (high, low) = ((digits >> 1) >> (63 - shift), digits << shift);
            let upper = i128::from((high as i64 ^ sign) - sign);
            let lower = (i128::from(low) ^ i128::from(sign)) - i128::from(sign);
            return BinnedSum::of(upper, lower << (BIN_BITS - 64), 0, Content::Fractions);
        }
        BinnedSum::far_fraction(number)
    }

    /// Makes a sum of one number of any size.
    #[inline(never)]
    fn far_fraction(number: f64) -> BinnedSum {
        let content = Content::Fractions;
        let bits = number.to_bits();
        let exponent = (bits >> 52 & 0x7ff) as i32;
        if exponent == 0x7ff {
            return BinnedSum::of(1 << 40, 0, BEYOND, content);
        }
        let digits = bits & ((1 << 52) - 1) | u64::from(exponent > 0) << 52;
        if digits == 0 {
            return BinnedSum::of(0, 0, NOTHING, content);
        }
        // The number is digits * 2^place.
        let place = exponent.max(1) - 1075;
        let (lowest, shift) = (place.div_euclid(BIN_BITS), place.rem_euclid(BIN_BITS));
        let low = u128::from(digits) << shift & BIN_MASK;
        let high = u128::from(digits) >> (BIN_BITS - shift).min(127);
        let signed = |part: u128| if number < 0.0 { -(part as i128) } else { part as i128 };
        // A number whose bits all lie between 2^-72 and 2^72 gets bin 0 as its upper bin, so most sums share the same
        // two bins.
        let (top, upper, lower) = match (lowest, high) {
            (-1, high) => (0, high, low),
            (lowest, 0) => (lowest, low, 0),
            (lowest, high) => (lowest + 1, high, low),
        };
        BinnedSum::of(signed(upper), signed(lower), top, content)
    }

    /// Returns the upper bin with the carry of the lower one, and the rest of the lower bin: 0 to 2^72.
    fn carried(&self) -> (i128, u128) {
        let (upper, lower) = (of_words(self.upper), of_words(self.lower) >> TAG_BITS);
        (upper + (lower >> BIN_BITS), lower as u128 & BIN_MASK)
    }
}

impl Sum for BinnedSum {
    fn rows(count: u64) -> BinnedSum {
        BinnedSum::of(i128::from(count) + COUNT, 0, 0, Content::Rows)
    }

    #[inline(always)]
    fn content(&self) -> Content {
        Content::of(self.lower[0])
    }

    fn exact(&self) -> Option<i128> {
        let (high, low) = self.carried();
        match self.top() {
            1 if (high << BIN_BITS) >> BIN_BITS == high => Some(high << BIN_BITS | low as i128),
            1 => None,
            _ => Some(high),
        }
    }

    fn nearest(&self) -> f64 {
        if self.top() == NOTHING {
            return 0.0;
        }
        let (high, low) = self.carried();
        let negative = high < 0;
        let (high, low) = match (negative, low) {
            (false, low) => (high.unsigned_abs(), low),
            (true, 0) => (high.unsigned_abs(), 0),
            (true, low) => ((high + 1).unsigned_abs(), (1 << BIN_BITS) - low),
        };
        // The leading 128 bits. The bits below them only break a tie between two neighbours.
        let shift = (high.leading_zeros() as i32).min(BIN_BITS);
        let more = low << shift & BIN_MASK != 0;
        let digits = high.unbounded_shl(shift as u32) | low >> (BIN_BITS - shift) | u128::from(more);
        let place = BIN_BITS * self.top() - shift;
        // All numbers are multiples of 2^-1074, so a subnormal result needs no rounding. Scaling in two steps keeps
        // the first step in range.
        let power = |of_two: i32| f64::from_bits(((of_two + 1023) as u64) << 52);
        let value = digits as f64 * power(place / 2) * power(place - place / 2);
        if negative { -value } else { value }
    }
}

impl Add for BinnedSum {
    type Output = BinnedSum;

    #[inline(always)]
    fn add(self, other: BinnedSum) -> BinnedSum {
        if (self.lower[0] ^ other.lower[0]) & TAG != 0 {
            return self.add_apart(other);
        }
        let lower = add(self.lower, [other.lower[0] & !TAG, other.lower[1]]);
        BinnedSum { lower, upper: add(self.upper, other.upper) }
    }
}

#[inline(always)]
fn add(a: [u64; 2], b: [u64; 2]) -> [u64; 2] {
    words(of_words(a).wrapping_add(of_words(b)))
}

impl BinnedSum {
    /// Adds two sums whose bins or contents differ.
    #[inline(always)]
    fn add_apart(self, other: BinnedSum) -> BinnedSum {
        let content = self.content().max(other.content());
        let (high, low) = if self.top() >= other.top() { (self, other) } else { (other, self) };
        let untagged = |sum: BinnedSum| of_words(sum.lower) >> TAG_BITS;
        let (upper, lower) = match high.top() - low.top() {
            0 => (of_words(high.upper).wrapping_add(of_words(low.upper)), untagged(high).wrapping_add(untagged(low))),
            1 => (of_words(high.upper), untagged(high).wrapping_add(of_words(low.upper))),
            _ => (of_words(high.upper), untagged(high)),
        };
        BinnedSum::of(upper, lower, high.top(), content)
    }
}

impl AddAssign for BinnedSum {
    #[inline(always)]
    fn add_assign(&mut self, other: BinnedSum) {
        *self = *self + other;
    }
}

impl Datum for BinnedSum {
    datum_of_sum!();

    const WIDTH: Option<usize> = Some(32);
    const EXACT: bool = true;

    #[inline(always)]
    fn write(sum: BinnedSum, to: &mut [u8]) {
        let to: &mut [u8; 32] = to.try_into().expect("as wide as a sum");
        to[..16].copy_from_slice(&of_words(sum.lower).to_le_bytes());
        to[16..].copy_from_slice(&of_words(sum.upper).to_le_bytes());
    }
    #[inline(always)]
    fn read(from: &[u8]) -> BinnedSum {
        let from: &[u8; 32] = from.try_into().expect("as wide as a sum");
        let word = |at: usize| u64::from_le_bytes(from[at..at + 8].try_into().expect("eight bytes"));
        BinnedSum { lower: [word(0), word(8)], upper: [word(16), word(24)] }
    }
    #[inline(always)]
    fn words(sum: BinnedSum) -> Option<[u64; 4]> {
        Some([sum.lower[0], sum.lower[1], sum.upper[0], sum.upper[1]])
    }
}

#[cfg(test)]
mod tests {
    use std::cmp::Ordering;

    use proptest::prelude::*;

    use super::*;
    use crate::Overflow;

    /// Returns the nearest f64 to the exact sum, by arithmetic of arbitrary width: a whole number of 2^-1074, as
    /// words in two's complement, least significant first.
    fn by_long_addition(numbers: &[Number]) -> f64 {
        const WORDS: usize = 36;
        let mut total = [0u64; WORDS];
        for number in numbers {
            let (negative, digits, place) = match *number {
                Number::Whole(number) => (number < 0, number.unsigned_abs(), 1074),
                Number::Fraction(number) => {
                    let exponent = (number.to_bits() >> 52 & 0x7ff) as u32;
                    let digits = number.to_bits() & ((1 << 52) - 1) | u64::from(exponent > 0) << 52;
                    (number.is_sign_negative(), u128::from(digits), exponent.max(1) - 1)
                }
            };
            let mut addend = [0u64; WORDS];
            for bit in (0..128).filter(|bit| digits >> bit & 1 == 1) {
                let at = (place + bit) as usize;
                addend[at / 64] |= 1 << (at % 64);
            }
            let mut carry = negative;
            for (word, addend) in total.iter_mut().zip(addend) {
                let addend = if negative { !addend } else { addend };
                let (sum, over) = word.overflowing_add(addend);
                let (sum, over_again) = sum.overflowing_add(carry.into());
                (*word, carry) = (sum, over || over_again);
            }
        }
        let negative = total[WORDS - 1] >> 63 == 1;
        if negative {
            let mut carry = true;
            for word in &mut total {
                (*word, carry) = (!*word).overflowing_add(carry.into());
            }
        }
        let bit = |at: usize| total[at / 64] >> (at % 64) & 1;
        let Some(first) = (0..WORDS * 64).rev().find(|at| bit(*at) == 1) else { return 0.0 };
        let last = (first + 1).saturating_sub(53);
        let digits = (last..=first).rev().fold(0u64, |digits, at| digits << 1 | bit(at));
        let half = last > 0 && bit(last - 1) == 1;
        let more = last > 1 && (0..last - 1).any(|at| bit(at) == 1);
        let digits = digits + u64::from(half && (more || digits & 1 == 1));
        let exponent = last as i32 - 1074;
        let value = digits as f64 * 2f64.powi(exponent / 2) * 2f64.powi(exponent - exponent / 2);
        if negative { -value } else { value }
    }

    fn sum(numbers: &[Number]) -> BinnedSum {
        numbers.iter().fold(BinnedSum::default(), |sum, number| sum + BinnedSum::from(*number))
    }

    fn bytes(sum: BinnedSum) -> [u8; 32] {
        let mut bytes = [0; 32];
        BinnedSum::write(sum, &mut bytes);
        bytes
    }

    fn finite() -> impl Strategy<Value = f64> {
        any::<u64>().prop_map(f64::from_bits).prop_filter("finite", |number| number.is_finite())
    }

    /// Generates whole numbers and fractions of any size.
    fn any_number() -> impl Strategy<Value = Number> {
        prop_oneof![
            any::<i128>().prop_map(Number::Whole),
            any::<i64>().prop_map(|number| Number::Whole(number.into())),
            finite().prop_map(Number::Fraction),
            (-50i32..50, 0i32..100).prop_map(|(number, place)| Number::Fraction(f64::from(number) * 2f64.powi(-place))),
            Just(Number::Fraction(-0.0)),
        ]
    }

    /// Generates numbers whose sums drop nothing.
    fn ordinary_number() -> impl Strategy<Value = Number> {
        prop_oneof![
            any::<i64>().prop_map(|number| Number::Whole(number.into())),
            (-1_000_000i64..1_000_000).prop_map(|cents| Number::Fraction(cents as f64 / 100.0)),
            (-1e18..1e18).prop_map(Number::Fraction),
            (1e-8..1e-3).prop_map(Number::Fraction),
        ]
    }

    proptest! {
        #[test]
        fn order_and_grouping_do_not_change_a_bit(
            numbers in prop::collection::vec(any_number(), 0..40),
            keys in prop::collection::vec(any::<u32>(), 40),
            groups in prop::collection::vec(0usize..4, 40),
        ) {
            let mut order: Vec<usize> = (0..numbers.len()).collect();
            order.sort_by_key(|at| keys[*at]);
            let mut partial = [BinnedSum::default(); 4];
            for at in order {
                // Writes the sum to bytes and reads it back.
                partial[groups[at]] = BinnedSum::read(&bytes(partial[groups[at]] + BinnedSum::from(numbers[at])));
            }
            let [a, b, c, d] = partial;
            prop_assert_eq!(bytes((d + b) + (a + c)), bytes(sum(&numbers)));
        }

        #[test]
        fn sums_of_ordinary_numbers_are_exact_and_rounded_once(
            numbers in prop::collection::vec(ordinary_number(), 0..60),
        ) {
            prop_assert_eq!(sum(&numbers).nearest(), by_long_addition(&numbers));
        }

        #[test]
        fn a_number_alone_is_itself(number in finite()) {
            prop_assert_eq!(BinnedSum::fraction(number).value(), Ok(Some(Number::Fraction(number))));
            // Two halves make the number; subtracting it leaves nothing.
            let half = BinnedSum::fraction(number / 2.0);
            if number.abs() > 1e-300 {
                prop_assert_eq!((half + half).nearest(), number);
            }
            prop_assert_eq!((BinnedSum::fraction(number) + BinnedSum::fraction(-number)).nearest(), 0.0);
        }

        #[test]
        fn the_fast_path_cuts_a_number_like_the_general_one(cents in -1_000_000_000i64..1_000_000_000, place in -20i32..20) {
            let number = cents as f64 * 2f64.powi(place) / 100.0;
            prop_assert_eq!(bytes(BinnedSum::fraction(number)), bytes(BinnedSum::far_fraction(number)));
            let whole = BinnedSum::whole(cents.into()) + BinnedSum::fraction(0.0);
            prop_assert_eq!(bytes(whole), bytes(BinnedSum::fraction(cents as f64)));
        }

        #[test]
        fn whole_numbers_are_exact_or_too_large(numbers in prop::collection::vec(any::<i128>(), 1..20)) {
            // The sums of the upper and lower halves, with a carry between them, cannot overflow.
            let (high, low) = numbers.iter().fold((0i128, 0i128), |(high, low), number| {
                (high + (number >> 64), low + (number & i128::from(u64::MAX)))
            });
            let expected = high.checked_add(low >> 64).and_then(|high| i64::try_from(high).ok())
                .map(|high| i128::from(high) << 64 | low & i128::from(u64::MAX));
            let numbers: Vec<_> = numbers.into_iter().map(Number::Whole).collect();
            prop_assert_eq!(sum(&numbers).value(), expected.map(|value| Some(Number::Whole(value))).ok_or(Overflow::Whole));
        }

        #[test]
        fn the_error_of_a_sum_is_a_small_part_of_its_largest_number(numbers in prop::collection::vec(any_number(), 1..40)) {
            let (found, exact) = (sum(&numbers).nearest(), by_long_addition(&numbers));
            let largest = numbers.iter().map(|number| number.nearest().abs()).fold(0.0, f64::max);
            if exact.is_finite() {
                prop_assert!((found - exact).abs() <= largest * 1e-20 + exact.abs() * 3e-16, "{found} {exact}");
            } else {
                prop_assert_eq!(found, exact);
            }
        }

        #[test]
        fn sums_have_equal_words_exactly_if_their_bytes_are_equal(a in any_number(), b in any_number(), c in any_number()) {
            let sums = [sum(&[a]), sum(&[b]), sum(&[a, b]), sum(&[b, c]), sum(&[c, b]), BinnedSum::rows(3), sum(&[Number::Whole(3)])];
            for (a, b) in sums.iter().flat_map(|a| sums.iter().map(move |b| (*a, *b))) {
                prop_assert_eq!(BinnedSum::words(a) == BinnedSum::words(b), bytes(a) == bytes(b));
            }
        }

        #[test]
        fn sums_sort_as_their_values_do(a in any_number(), b in any_number()) {
            let (by_sum, prefixes) = (
                BinnedSum::compare(a.into(), b.into()),
                BinnedSum::prefix(a.into()).cmp(&BinnedSum::prefix(b.into())),
            );
            match (a, b) {
                (Number::Whole(a), Number::Whole(b)) => prop_assert_eq!(by_sum, a.cmp(&b)),
                (a, b) if a.nearest() != b.nearest() => prop_assert_eq!(Some(by_sum), a.nearest().partial_cmp(&b.nearest())),
                _ => {}
            }
            prop_assert!(prefixes == Ordering::Equal || prefixes == by_sum);
        }
    }

    #[test]
    fn a_sum_of_the_largest_whole_numbers_is_exact_in_any_order() {
        let [most, least, one] = [i128::MAX, i128::MIN, 1].map(|number| BinnedSum::from(Number::Whole(number)));
        assert_eq!((most + one).value(), Err(Overflow::Whole));
        assert_eq!((most + one + least).value(), Ok(Some(Number::Whole(0))));
        assert_eq!((least + most).value(), Ok(Some(Number::Whole(-1))));
        assert_eq!(least.value(), Ok(Some(Number::Whole(i128::MIN))));
    }

    #[test]
    fn infinities_and_nan_always_overflow() {
        let [inf, nan, most] = [f64::INFINITY, f64::NAN, -f64::MAX].map(BinnedSum::fraction);
        let most = (0..40).fold(most, |sum, _| sum + sum);
        for sum in [inf, nan, inf + BinnedSum::fraction(f64::NEG_INFINITY), inf + most, most] {
            assert_eq!(sum.value(), Err(Overflow::Fraction));
        }
        assert_eq!((inf + most).nearest(), f64::INFINITY);
    }
}
