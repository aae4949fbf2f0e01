//! Sums that are the same bits whatever the order of what is added.
//!
//! Adding floating-point numbers rounds after each step, so a sum depends on who added what first. A [`Sum`] does not round before it
//! is asked for its value. It is binned, as in Demmel and Nguyen, "Parallel Reproducible Summation" (2015) and in ReproBLAS, but
//! with whole numbers for bins:
//!
//! ```text
//!             2^80             2^0            2^-80           2^-160
//!  ... | bin 1 | bin 0          | bin -1         | bin -2        | ...     each 80 bits of the number line
//!
//!  sum:  | lower, 16 | upper, 16 | top, 1 | content, 1 |
//!        upper counts 2^(80 top), lower counts 2^(80 (top - 1)); both are whole numbers of 128 bits
//! ```
//!
//! A number is cut at the borders of the bins, which is exact, and each part is added to its bin. There is no carry from bin to bin,
//! so what a bin holds is the sum of parts that depend on nothing but the number that they are of. A sum keeps two neighbouring
//! bins: the highest that a number of its has needed, and the one below; parts below both are left out, whoever came first.
//! A bin has 47 bits of room, for 10^14 numbers.
//!
//! - Whole numbers need bins 0 and 1 only: their sum is exact.
//! - Fractions are exact where all bits of all numbers lie within the two bins, as those between 2^-28 and 2^80 do; else what is left
//!   out of each is less than 2^-79 of the largest number. The value is rounded once, to the nearest `f64`.

use std::cmp::Ordering;
use std::io::Write;

use gristmill::{Combine, Datum};

/// Bits of the number line that a bin covers.
const BIN_BITS: i32 = 80;
const BIN_MASK: u128 = (1 << BIN_BITS) - 1;

/// The place of a bin beyond all finite numbers: 2^40 of it is more than all of them together.
const BEYOND: i8 = 13;

/// The place of the upper bin of a sum without a number other than zero: below all others.
const NOTHING: i8 = i8::MIN;

/// A sum of numbers, exact or nearly (see the module), and the same in whatever order they were added.
///
/// ```
/// use gristmill_apps::{Number, Sum};
///
/// let add = |numbers: &[&str]| numbers.iter().fold(Sum::default(), |sum, text| sum + Number::of(text.as_bytes()).unwrap().into());
/// assert_eq!(add(&["9007199254740993", "-1"]).value().unwrap(), Some(Number::Whole(9007199254740992)));
/// assert_eq!(add(&["0.1", "1e20", "0.2", "-1e20"]).value().unwrap(), Some(Number::Fraction(0.30000000000000004)));
/// assert_eq!(add(&[]).value().unwrap(), None);
/// assert!(add(&["1e308", "1e308"]).value().is_err());
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Sum {
    /// Two bins, each in two words so that a sum is aligned to eight bytes.
    lower: [u64; 2],
    upper: [u64; 2],
    /// The place of the upper bin.
    top: i8,
    content: Content,
}

/// What was added: of two sums together, the greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Content {
    Nothing,
    Whole,
    Fractions,
    /// Rows that had no number, which are counted under a key of their own.
    Rows,
}

/// Rows without a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowsLeftOut {
    /// How many they are.
    pub rows: u64,
    /// How many pairs the map function has emitted to count them.
    pub pairs: u64,
}

/// One pair that counts rows; below it are the rows.
const COUNT: i128 = 1 << BIN_BITS;

/// A number as it was written, or the value of a sum.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    /// Digits and a sign.
    Whole(i128),
    /// Anything else; finite.
    Fraction(f64),
}

/// A sum that no number of its kind can hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Overflow {
    /// Of whole numbers.
    #[error("the sum of its whole numbers is beyond 128 bits, about 1.7e38")]
    Whole,
    /// Of fractions.
    #[error("the sum of its numbers is beyond the largest floating-point number, about 1.8e308")]
    Fraction,
    /// Of whole numbers whose sum is kept in 64 bits.
    #[error("the sum is beyond 64 bits, about 1.8e19")]
    Word,
}

/// Adds two sums that nearly always fit into 64 bits. One that does not stays the largest number, in whatever order its numbers
/// come.
pub(crate) const ADD_WHOLE: Combine<u64> = u64::saturating_add;

/// The value of a sum by [`ADD_WHOLE`]. The largest number counts as too large.
pub(crate) fn whole(sum: u64) -> Result<u64, Overflow> {
    if sum == u64::MAX { Err(Overflow::Word) } else { Ok(sum) }
}

fn words(bin: i128) -> [u64; 2] {
    [bin as u64, (bin >> 64) as u64]
}

#[inline(always)]
fn bin(words: [u64; 2]) -> i128 {
    (u128::from(words[0]) | u128::from(words[1]) << 64) as i128
}

impl Default for Sum {
    /// Of nothing.
    fn default() -> Sum {
        Sum { lower: [0; 2], upper: [0; 2], top: NOTHING, content: Content::Nothing }
    }
}

impl From<Number> for Sum {
    #[inline(always)]
    fn from(number: Number) -> Sum {
        match number {
            Number::Whole(number) => Sum::whole(number),
            Number::Fraction(number) => Sum::fraction(number),
        }
    }
}

impl Sum {
    #[inline(always)]
    fn whole(number: i128) -> Sum {
        let signed = |part: u128| if number < 0 { -(part as i128) } else { part as i128 };
        let size = number.unsigned_abs();
        let (high, low) = (size >> BIN_BITS, size & BIN_MASK);
        let (top, upper, lower) = match (high, low) {
            (0, 0) => (NOTHING, 0, 0),
            (0, low) => (0, low, 0),
            (high, low) => (1, high, low),
        };
        Sum { lower: words(signed(lower)), upper: words(signed(upper)), top, content: Content::Whole }
    }

    /// A number. A sum with one that is not finite overflows.
    #[inline(always)]
    pub(crate) fn fraction(number: f64) -> Sum {
        let content = Content::Fractions;
        let bits = number.to_bits();
        let exponent = (bits >> 52 & 0x7ff) as i32;
        if exponent == 0x7ff {
            return Sum { lower: [0; 2], upper: words(1 << 40), top: BEYOND, content };
        }
        let digits = bits & ((1 << 52) - 1) | u64::from(exponent > 0) << 52;
        if digits == 0 {
            return Sum { content, ..Sum::default() };
        }
        // The number is digits * 2^place.
        let place = exponent.max(1) - 1075;
        let (lowest, shift) = (place.div_euclid(BIN_BITS), place.rem_euclid(BIN_BITS));
        let low = u128::from(digits) << shift & BIN_MASK;
        let high = u128::from(digits) >> (BIN_BITS - shift).min(127);
        let signed = |part: u128| words(if number < 0.0 { -(part as i128) } else { part as i128 });
        // What lies between 2^-80 and 2^80, to its last bit, has bin 0 for its upper one: so most sums have the same two bins.
        let (top, upper, lower) = match (lowest, high) {
            (-1, high) => (0, high, low),
            (lowest, 0) => (lowest, low, 0),
            (lowest, high) => (lowest + 1, high, low),
        };
        Sum { lower: signed(lower), upper: signed(upper), top: top as i8, content }
    }

    /// So many rows without a number, to be added up under a key of their own.
    pub(crate) fn rows(count: u64) -> Sum {
        Sum { content: Content::Rows, ..Sum::whole(i128::from(count) + COUNT) }
    }

    /// What was counted, if this is a count of rows without a number, under the key
    /// [`SumBy::LEFT_OUT`](crate::SumBy::LEFT_OUT).
    pub fn rows_left_out(&self) -> Option<RowsLeftOut> {
        let counts = (self.content == Content::Rows).then(|| self.exact().unwrap_or(i128::MAX))?;
        Some(RowsLeftOut { rows: (counts % COUNT) as u64, pairs: (counts / COUNT) as u64 })
    }

    /// Its value: whole if all that was added is, else the nearest `f64`; `None` if nothing was added.
    ///
    /// # Errors
    /// No `i128`, or no finite `f64`, is as large.
    pub fn value(&self) -> Result<Option<Number>, Overflow> {
        match self.content {
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

    /// The upper bin with the carry of the lower one, and what is then left in that: 0 to 2^80.
    fn carried(&self) -> (i128, u128) {
        let (upper, lower) = (bin(self.upper), bin(self.lower));
        (upper + (lower >> BIN_BITS), lower as u128 & BIN_MASK)
    }

    /// The value of a sum of whole numbers, if an `i128` can hold it.
    fn exact(&self) -> Option<i128> {
        let (high, low) = self.carried();
        match self.top {
            1 if (high << BIN_BITS) >> BIN_BITS == high => Some(high << BIN_BITS | low as i128),
            1 => None,
            _ => Some(high),
        }
    }

    /// The nearest `f64`, an even one of two: infinite if there is none.
    pub(crate) fn nearest(&self) -> f64 {
        if self.top == NOTHING {
            return 0.0;
        }
        let (high, low) = self.carried();
        let negative = high < 0;
        let (high, low) = match (negative, low) {
            (false, low) => (high.unsigned_abs(), low),
            (true, 0) => (high.unsigned_abs(), 0),
            (true, low) => ((high + 1).unsigned_abs(), (1 << BIN_BITS) - low),
        };
        // The 128 bits from the first one on; whether there are more decides between two neighbours.
        let shift = (high.leading_zeros() as i32).min(BIN_BITS);
        let more = low << shift & BIN_MASK != 0;
        let digits = high.unbounded_shl(shift as u32) | low >> (BIN_BITS - shift) | u128::from(more);
        let place = BIN_BITS * i32::from(self.top) - shift;
        // All numbers are multiples of 2^-1074, so whatever is below the normal numbers needs no rounding: in two steps, of which
        // none leaves the range before the last one does.
        let power = |of_two: i32| f64::from_bits(((of_two + 1023) as u64) << 52);
        let value = digits as f64 * power(place / 2) * power(place - place / 2);
        if negative { -value } else { value }
    }

    /// What sorts as the value does, and the same for all sums that are printed the same.
    fn rank(&self) -> (f64, i128) {
        match self.content {
            // Before all, and behind all: a sum without a number is less than any, rows without one are looked for at the end.
            Content::Nothing => (f64::NEG_INFINITY, i128::MIN),
            Content::Rows => (f64::INFINITY, i128::MAX),
            Content::Whole => (self.nearest(), self.exact().unwrap_or(0)),
            Content::Fractions => {
                let value = self.nearest();
                (value, value as i128)
            }
        }
    }
}

impl std::ops::Add for Sum {
    type Output = Sum;

    #[inline(always)]
    fn add(self, other: Sum) -> Sum {
        if self.top != other.top {
            return self.add_apart(other);
        }
        let (lower, upper) = (add(self.lower, other.lower), add(self.upper, other.upper));
        Sum { lower, upper, top: self.top, content: self.content.max(other.content) }
    }
}

#[inline(always)]
fn add(a: [u64; 2], b: [u64; 2]) -> [u64; 2] {
    words(bin(a).wrapping_add(bin(b)))
}

impl Sum {
    /// The sum of two that do not have the same bins: few numbers are so far from each other.
    #[inline(never)]
    fn add_apart(self, other: Sum) -> Sum {
        let (high, low) = if self.top >= other.top { (self, other) } else { (other, self) };
        let is_next = i32::from(high.top) - i32::from(low.top) == 1;
        let lower = if is_next { add(high.lower, low.upper) } else { high.lower };
        Sum { lower, content: self.content.max(other.content), ..high }
    }
}

impl std::ops::AddAssign for Sum {
    #[inline(always)]
    fn add_assign(&mut self, other: Sum) {
        *self = *self + other;
    }
}

/// Adds two sums: the combiner of programs that sum.
pub(crate) const ADD: Combine<Sum> = |a, b| a + b;

impl Datum for Sum {
    type Ref<'a> = Sum;
    type Owned = Sum;
    const WIDTH: Option<usize> = Some(34);
    const EXACT: bool = true;

    #[inline(always)]
    fn width(_: Sum) -> usize {
        const { Self::WIDTH.unwrap() }
    }
    #[inline(always)]
    fn write(sum: Sum, to: &mut [u8]) {
        let to: &mut [u8; 34] = to.try_into().expect("as wide as a sum");
        to[..16].copy_from_slice(&bin(sum.lower).to_le_bytes());
        to[16..32].copy_from_slice(&bin(sum.upper).to_le_bytes());
        to[32] = sum.top as u8;
        to[33] = sum.content as u8;
    }
    #[inline(always)]
    fn read(from: &[u8]) -> Sum {
        let from: &[u8; 34] = from.try_into().expect("as wide as a sum");
        let word = |at: usize| u64::from_le_bytes(from[at..at + 8].try_into().expect("eight bytes"));
        let content = match from[33] {
            0 => Content::Nothing,
            1 => Content::Whole,
            2 => Content::Fractions,
            _ => Content::Rows,
        };
        Sum { lower: [word(0), word(8)], upper: [word(16), word(24)], top: from[32] as i8, content }
    }
    #[inline(always)]
    fn own(sum: Sum) -> Sum {
        sum
    }
    #[inline(always)]
    fn lend(sum: &Sum) -> Sum {
        *sum
    }
    fn compare(a: Sum, b: Sum) -> Ordering {
        let (a, b) = (a.rank(), b.rank());
        // Never -0, which would be less than 0.
        a.0.total_cmp(&b.0).then_with(|| a.1.cmp(&b.1))
    }
    fn prefix(sum: Sum) -> u64 {
        <f64 as Datum>::prefix(sum.rank().0)
    }
    /// Of all that is written, without writing it: every pair that is emitted is hashed.
    #[inline(always)]
    fn digest(sum: Sum) -> Option<u64> {
        let fold = |a: u64, b: u64| {
            let product = u128::from(a) * u128::from(b);
            product as u64 ^ (product >> 64) as u64
        };
        let kind = u64::from(sum.top as u8) << 8 | u64::from(sum.content as u8);
        // Digits of pi: any numbers without a pattern would do.
        let lower = fold(sum.lower[0] ^ 0x243f_6a88_85a3_08d3, sum.lower[1] ^ 0x1319_8a2e_0370_7344);
        let upper = fold(sum.upper[0] ^ 0xa409_3822_299f_31d0, sum.upper[1] ^ 0x082e_fa98_ec4e_6c89);
        Some(fold(lower ^ 0x4528_21e6_38d0_1377, upper ^ kind ^ 0xbe54_66cf_34e9_0c6c))
    }
    fn to_text(sum: Sum, to: &mut Vec<u8>) {
        let written = match sum.value() {
            Ok(None) => Ok(()),
            Ok(Some(Number::Whole(value))) => write!(to, "{value}"),
            Ok(Some(Number::Fraction(value))) => write!(to, "{value}"),
            Err(overflow) => write!(to, "{overflow}"),
        };
        written.expect("writing to a Vec cannot fail");
    }
}

impl Number {
    /// The number that a field says, spaces around it left out; or why it says none.
    #[inline]
    pub fn of(field: &[u8]) -> Result<Number, String> {
        if let Some(number) = of_few_digits(field) {
            return Ok(number);
        }
        let field = field.trim_ascii();
        Number::of_text(field).ok_or_else(|| {
            if is_whole(field) {
                format!("{} is beyond 128 bits, about 1.7e38", quoted(field))
            } else {
                format!("{} is not a finite number", quoted(field))
            }
        })
    }

    #[inline(never)]
    fn of_text(field: &[u8]) -> Option<Number> {
        let text = str::from_utf8(field).ok()?;
        if is_whole(field) {
            return text.parse().ok().map(Number::Whole);
        }
        text.parse().ok().filter(|value: &f64| value.is_finite()).map(Number::Fraction)
    }

    /// The nearest `f64`.
    pub fn nearest(self) -> f64 {
        match self {
            Number::Whole(number) => number as f64,
            Number::Fraction(number) => number,
        }
    }
}

/// The finite number nearest to what a field says, spaces around it left out; or why there is none.
pub(crate) fn finite(field: &[u8]) -> Result<f64, String> {
    match Number::of(field) {
        Ok(number) => Ok(number.nearest()),
        // More digits than a whole number may have are no reason not to round it.
        Err(why) => str::from_utf8(field.trim_ascii())
            .ok()
            .and_then(|text| text.parse().ok())
            .filter(|value: &f64| value.is_finite())
            .ok_or(why),
    }
}

/// The number that most fields say: at most 15 digits, with a point among them or not.
#[inline(always)]
fn of_few_digits(field: &[u8]) -> Option<Number> {
    const TENS: [f64; 16] = [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15];
    let (negative, digits) = match field {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    if digits.is_empty() || digits.len() > 16 {
        return None;
    }
    let (mut number, mut point) = (0u64, None);
    for (at, byte) in digits.iter().enumerate() {
        match byte {
            b'0'..=b'9' => number = number * 10 + u64::from(byte - b'0'),
            b'.' if point.is_none() => point = Some(digits.len() - 1 - at),
            _ => return None,
        }
    }
    Some(match point {
        _ if digits.len() == 16 && point.is_none() => return None,
        None => Number::Whole(if negative { -i128::from(number) } else { number.into() }),
        Some(_) if digits.len() == 1 => return None,
        Some(places) => {
            // Both are exact, so their quotient is the nearest number to the decimal one.
            let size = number as f64 / TENS[places];
            Number::Fraction(if negative { -size } else { size })
        }
    })
}

/// Digits, and a sign perhaps.
fn is_whole(field: &[u8]) -> bool {
    let digits = field.strip_prefix(b"-").or(field.strip_prefix(b"+")).unwrap_or(field);
    !digits.is_empty() && digits.iter().all(u8::is_ascii_digit)
}

/// A field as a message shows it.
fn quoted(field: &[u8]) -> String {
    let shown = String::from_utf8_lossy(&field[..field.len().min(40)]);
    format!("{shown:?}{}", if field.len() > 40 { "..." } else { "" })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The nearest f64 of an exact sum, by arithmetic with as many bits as it takes: a whole number of 2^-1074, as its words,
    /// little end first, in two's complement.
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

    fn sum(numbers: &[Number]) -> Sum {
        numbers.iter().fold(Sum::default(), |sum, number| sum + Sum::from(*number))
    }

    fn bytes(sum: Sum) -> [u8; 34] {
        let mut bytes = [0; 34];
        Sum::write(sum, &mut bytes);
        bytes
    }

    fn finite() -> impl Strategy<Value = f64> {
        any::<u64>().prop_map(f64::from_bits).prop_filter("finite", |number| number.is_finite())
    }

    /// Whole numbers and fractions of any size.
    fn any_number() -> impl Strategy<Value = Number> {
        prop_oneof![
            any::<i128>().prop_map(Number::Whole),
            any::<i64>().prop_map(|number| Number::Whole(number.into())),
            finite().prop_map(Number::Fraction),
            (-50i32..50, 0i32..100).prop_map(|(number, place)| Number::Fraction(f64::from(number) * 2f64.powi(-place))),
            Just(Number::Fraction(-0.0)),
        ]
    }

    /// Such that no sum of them leaves anything out.
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
        fn a_field_of_few_digits_says_what_any_other_way_of_reading_it_says(field in "-?[0-9]{0,9}[.]?[0-9]{0,9}|[-0-9.]{0,5}") {
            let expected = Number::of_text(field.as_bytes());
            prop_assert_eq!(of_few_digits(field.as_bytes()).or(expected), expected);
            prop_assert_eq!(Number::of(field.as_bytes()).ok(), expected);
        }

        #[test]
        fn no_order_and_no_grouping_changes_a_bit(
            numbers in prop::collection::vec(any_number(), 0..40),
            keys in prop::collection::vec(any::<u32>(), 40),
            groups in prop::collection::vec(0usize..4, 40),
        ) {
            let mut order: Vec<usize> = (0..numbers.len()).collect();
            order.sort_by_key(|at| keys[*at]);
            let mut partial = [Sum::default(); 4];
            for at in order {
                // Through a page and back.
                partial[groups[at]] = Sum::read(&bytes(partial[groups[at]] + Sum::from(numbers[at])));
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
            prop_assert_eq!(Sum::fraction(number).value(), Ok(Some(Number::Fraction(number))));
            // Half of it twice, and nothing left when it is taken away.
            let half = Sum::fraction(number / 2.0);
            if number.abs() > 1e-300 {
                prop_assert_eq!((half + half).nearest(), number);
            }
            prop_assert_eq!((Sum::fraction(number) + Sum::fraction(-number)).nearest(), 0.0);
        }

        #[test]
        fn whole_numbers_are_exact_or_too_large(numbers in prop::collection::vec(any::<i128>(), 1..20)) {
            // Sums of the halves, with a carry between them, hold any of these.
            let (high, low) = numbers.iter().fold((0i128, 0i128), |(high, low), number| {
                (high + (number >> 64), low + (number & i128::from(u64::MAX)))
            });
            let expected = high.checked_add(low >> 64).and_then(|high| i64::try_from(high).ok())
                .map(|high| i128::from(high) << 64 | low & i128::from(u64::MAX));
            let numbers: Vec<_> = numbers.into_iter().map(Number::Whole).collect();
            prop_assert_eq!(sum(&numbers).value(), expected.map(|value| Some(Number::Whole(value))).ok_or(Overflow::Whole));
        }

        #[test]
        fn any_numbers_are_summed_to_within_a_part_of_the_largest(numbers in prop::collection::vec(any_number(), 1..40)) {
            let (found, exact) = (sum(&numbers).nearest(), by_long_addition(&numbers));
            let largest = numbers.iter().map(|number| number.nearest().abs()).fold(0.0, f64::max);
            if exact.is_finite() {
                prop_assert!((found - exact).abs() <= largest * 1e-20 + exact.abs() * 3e-16, "{found} {exact}");
            } else {
                prop_assert_eq!(found, exact);
            }
        }

        #[test]
        fn two_sums_have_one_digest_only_if_they_are_written_the_same(a in any_number(), b in any_number(), c in any_number()) {
            let sums = [sum(&[a]), sum(&[b]), sum(&[a, b]), sum(&[b, c]), sum(&[c, b]), Sum::rows(3), sum(&[Number::Whole(3)])];
            for (a, b) in sums.iter().flat_map(|a| sums.iter().map(move |b| (*a, *b))) {
                prop_assert_eq!(Sum::digest(a) == Sum::digest(b), bytes(a) == bytes(b));
            }
        }

        #[test]
        fn sums_sort_as_their_values_do(a in any_number(), b in any_number()) {
            let (by_sum, prefixes) = (
                Sum::compare(a.into(), b.into()),
                Sum::prefix(a.into()).cmp(&Sum::prefix(b.into())),
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
    fn a_sum_of_the_largest_whole_numbers_is_exact_whoever_comes_first() {
        let [most, least, one] = [i128::MAX, i128::MIN, 1].map(|number| Sum::from(Number::Whole(number)));
        assert_eq!((most + one).value(), Err(Overflow::Whole));
        assert_eq!((most + one + least).value(), Ok(Some(Number::Whole(0))));
        assert_eq!((least + most).value(), Ok(Some(Number::Whole(-1))));
        assert_eq!(least.value(), Ok(Some(Number::Whole(i128::MIN))));
    }

    #[test]
    fn what_is_not_finite_overflows_whatever_else_is_added() {
        let [inf, nan, most] = [f64::INFINITY, f64::NAN, -f64::MAX].map(Sum::fraction);
        let most = (0..40).fold(most, |sum, _| sum + sum);
        for sum in [inf, nan, inf + Sum::fraction(f64::NEG_INFINITY), inf + most, most] {
            assert_eq!(sum.value(), Err(Overflow::Fraction));
        }
        assert_eq!((inf + most).nearest(), f64::INFINITY);
    }

    #[test]
    fn fields_say_whole_numbers_fractions_or_what_is_wrong() {
        let whole = |number| Ok(Number::Whole(number));
        let fraction = |number| Ok(Number::Fraction(number));
        for (field, expected) in [
            (" 12 ", whole(12)),
            ("+3", whole(3)),
            ("-0", whole(0)),
            ("9007199254740993", whole(9_007_199_254_740_993)),
            ("-170141183460469231731687303715884105728", whole(i128::MIN)),
            ("1.0", fraction(1.0)),
            ("1e3", fraction(1000.0)),
            (".5", fraction(0.5)),
            ("170141183460469231731687303715884105728", Err("beyond 128 bits")),
            ("1e309", Err("is not a finite number")),
            ("inf", Err("is not a finite number")),
            ("NaN", Err("is not a finite number")),
            ("", Err("\"\" is not a finite number")),
            ("+", Err("is not a finite number")),
        ] {
            match (Number::of(field.as_bytes()), expected) {
                (Err(why), Err(expected)) => assert!(why.contains(expected), "{why}"),
                (found, expected) => assert_eq!(found, expected.map_err(str::to_owned), "{field}"),
            }
        }
    }
}
