//! Keys and values as bytes.
//!
//! A [`Datum`] has no pointers and is read back from exactly the bytes that were written, in any process. Numbers and
//! fixed-size tuples have a width known to the compiler, so a table of them is a plain array. The width of [`Bytes`] is
//! stored in front of it.

use std::cmp::Ordering;
use std::convert::identity;
use std::fmt::Debug;

use crate::data::short::{SHORT_BYTES, Short, word4, word8};

/// A type whose values travel in pages.
///
/// User code sees `Ref`: the number itself for numbers, a borrowed slice for [`Bytes`], a `&str` for `String`, and a
/// tuple of what its fields are seen as for a tuple.
///
/// `#[derive(Datum)]` implements this for structs and enums. Your own implementation must keep this contract. A job
/// that meets a pair which breaks it ends with an error that says how:
///
/// - [`write`](Datum::write) fills exactly [`width`](Datum::width) bytes, always with the same ones for the same value,
///   and [`read`](Datum::read) makes that value of them again. So does [`lend`](Datum::lend) of what
///   [`own`](Datum::own) returned.
/// - [`compare`](Datum::compare) is a total order, and [`prefix`](Datum::prefix) follows it. Two keys compare as equal
///   only if they are written as the same bytes: these bytes are the key.
pub trait Datum: 'static {
    /// The form in which user code sees a value: borrowed from a page for types of variable width.
    type Ref<'a>: Copy + Debug;
    /// An owned value, as a combiner takes and returns it: the number itself, or a `Vec<u8>`.
    type Owned: Clone + Default;
    /// The width in bytes, if it is the same for all values.
    const WIDTH: Option<usize>;
    /// Whether the order in which values are combined does not matter. True for whole numbers; false for floating-point
    /// numbers, which are rounded at each step, and for bytes, which may hold such numbers.
    const EXACT: bool = false;
    /// Whether the engine relies on this type without checks. Only the engine's own types can say so.
    #[doc(hidden)]
    const TRUSTED: trust::Trusted = trust::Trusted(false);

    /// Returns the width of this value in bytes. A type whose values all have the same width need not say it again.
    #[inline(always)]
    fn width(_value: Self::Ref<'_>) -> usize {
        const { Self::WIDTH.expect("values of several widths say which they have") }
    }
    /// Writes the value into `to`, whose length is the value's width.
    fn write(value: Self::Ref<'_>, to: &mut [u8]);
    /// Reads a value from exactly the bytes that [`Datum::write`] wrote.
    fn read(from: &[u8]) -> Self::Ref<'_>;
    /// Returns the value, no longer borrowed.
    fn own(value: Self::Ref<'_>) -> Self::Owned;
    /// Returns the value, borrowed.
    fn lend(value: &Self::Owned) -> Self::Ref<'_>;
    /// Compares two values in a total order: numbers by size (`f64` as [`f64::total_cmp`]), bytes lexicographically.
    fn compare(a: Self::Ref<'_>, b: Self::Ref<'_>) -> Ordering;
    /// Returns eight bytes that sort as the value does: a smaller prefix means a smaller value.
    fn prefix(value: Self::Ref<'_>) -> u64;
    /// Appends the value as text, as in TSV and CSV output.
    fn to_text(value: Self::Ref<'_>, to: &mut Vec<u8>);

    /// Returns everything that [`Datum::write`] writes, in four words, if that is faster than writing it. Used for
    /// values only.
    #[doc(hidden)]
    #[inline(always)]
    fn words(_value: Self::Ref<'_>) -> Option<[u64; 4]> {
        None
    }

    /// Returns the bytes that [`Datum::write`] writes, if they are already in memory. Such values compare as these
    /// bytes do.
    #[doc(hidden)]
    #[inline(always)]
    fn written<'v>(_value: &'v Self::Ref<'_>) -> Option<&'v [u8]> {
        None
    }
}

pub(crate) mod trust {
    /// Whether the engine relies on a type without checks. No other crate can name this type.
    #[derive(Clone, Copy, Debug)]
    pub struct Trusted(pub(crate) bool);
}

/// A [`Datum`] that pairs can be grouped by.
///
/// Two keys are the same if they are written as the same bytes. Everything here follows from that, so your own key type
/// needs only `#[derive(Key)]` or `impl Key for MyKey {}`. The engine calls `short` and `equal` only on its own types;
/// of any other type it uses the width and the written bytes.
pub trait Key: Datum {
    /// Returns the key's bytes padded with zeros, if there are at most [`SHORT_BYTES`] of them.
    fn short(key: Self::Ref<'_>) -> Option<Short> {
        written_short::<Self>(key)
    }
    /// Returns whether two keys are equal.
    fn equal(a: Self::Ref<'_>, b: Self::Ref<'_>) -> bool {
        written_equal::<Self>(a, b)
    }

    /// The number of keys, if keys can serve as array indexes: every key is then a number below this one. 0 for types
    /// whose keys cannot.
    const DENSE: u64 = 0;
    /// Returns the array index that `key` stands for. Called only if `DENSE` is not 0.
    fn place(_key: Self::Ref<'_>) -> usize {
        unreachable!("the plan uses a dense buffer for unsigned integers only")
    }
    /// Returns the key that stands for the array index `place`.
    fn at_place(_place: usize) -> Self::Ref<'static> {
        unreachable!("the plan uses a dense buffer for unsigned integers only")
    }
}

/// The length up to which a key is written to the stack to be compared or hashed; longer keys go to the heap.
const NEAR_BYTES: usize = 64;

/// Returns the written form of a key in two words, if it fits.
#[inline(always)]
pub(crate) fn written_short<D: Datum + ?Sized>(key: D::Ref<'_>) -> Option<Short> {
    let bytes = D::WIDTH.unwrap_or_else(|| D::width(key));
    (bytes <= SHORT_BYTES).then(|| {
        let mut written = [0; SHORT_BYTES];
        D::write(key, &mut written[..bytes]);
        Short::padded(&written, bytes)
    })
}

/// Returns whether two keys are written as the same bytes.
#[inline]
pub(crate) fn written_equal<D: Datum + ?Sized>(a: D::Ref<'_>, b: D::Ref<'_>) -> bool {
    match (written_short::<D>(a), written_short::<D>(b)) {
        (Some(a), Some(b)) => a == b,
        (None, None) => with_written::<D, _>(a, |a| with_written::<D, _>(b, |b| a == b)),
        _ => false,
    }
}

/// Calls `look` with the written form of a value.
pub(crate) fn with_written<D: Datum + ?Sized, R>(value: D::Ref<'_>, look: impl FnOnce(&[u8]) -> R) -> R {
    let bytes = D::WIDTH.unwrap_or_else(|| D::width(value));
    let (mut near, mut far) = ([0; NEAR_BYTES], Vec::new());
    let to = if bytes <= NEAR_BYTES {
        &mut near[..bytes]
    } else {
        far.resize(bytes, 0);
        &mut far[..]
    };
    D::write(value, to);
    look(to)
}

/// The owned form of a value.
pub(crate) type Owned<V> = <V as Datum>::Owned;

/// Byte strings shorter than 4 GiB: words, lines, UTF-8 text.
#[derive(Debug)]
pub enum Bytes {}

impl Datum for Bytes {
    type Ref<'a> = &'a [u8];
    type Owned = Vec<u8>;
    const WIDTH: Option<usize> = None;
    const TRUSTED: trust::Trusted = trust::Trusted(true);

    #[inline(always)]
    fn width(value: &[u8]) -> usize {
        value.len()
    }
    #[inline(always)]
    fn write(value: &[u8], to: &mut [u8]) {
        copy_short(value, to);
    }
    #[inline(always)]
    fn read(from: &[u8]) -> &[u8] {
        from
    }
    fn own(value: &[u8]) -> Vec<u8> {
        value.to_vec()
    }
    fn lend(value: &Vec<u8>) -> &[u8] {
        value
    }
    fn compare(a: &[u8], b: &[u8]) -> Ordering {
        a.cmp(b)
    }
    #[inline]
    fn prefix(value: &[u8]) -> u64 {
        if let Some(first) = value.first_chunk() {
            return u64::from_be_bytes(*first);
        }
        let mut first = [0; 8];
        let bytes = value.len();
        first[..bytes].copy_from_slice(&value[..bytes]);
        u64::from_be_bytes(first)
    }
    fn to_text(value: &[u8], to: &mut Vec<u8>) {
        to.extend_from_slice(value);
    }
    #[inline(always)]
    fn written<'v>(value: &'v &[u8]) -> Option<&'v [u8]> {
        Some(value)
    }
}

impl Key for Bytes {
    #[inline(always)]
    fn short(key: &[u8]) -> Option<Short> {
        (key.len() <= SHORT_BYTES).then(|| Short::of(key))
    }
    #[inline(always)]
    fn equal(a: &[u8], b: &[u8]) -> bool {
        equal_short(a, b)
    }
}

/// Copies `from` to `to`, of equal length, without a call into the C library if it is short: most keys are.
#[inline(always)]
fn copy_short(from: &[u8], to: &mut [u8]) {
    let n = from.len();
    debug_assert_eq!(n, to.len());
    if n > 16 {
        to.copy_from_slice(from);
    } else if n >= 8 {
        let (head, tail) = (word8(from, 0), word8(from, n - 8));
        to[..8].copy_from_slice(&head.to_le_bytes());
        to[n - 8..].copy_from_slice(&tail.to_le_bytes());
    } else if n >= 4 {
        let (head, tail) = (word4(from, 0), word4(from, n - 4));
        to[..4].copy_from_slice(&head.to_le_bytes());
        to[n - 4..].copy_from_slice(&tail.to_le_bytes());
    } else if n > 0 {
        to[0] = from[0];
        to[n / 2] = from[n / 2];
        to[n - 1] = from[n - 1];
    }
}

/// Compares two slices, without a call into the C library if they are short.
#[inline(always)]
fn equal_short(a: &[u8], b: &[u8]) -> bool {
    let n = a.len();
    if n != b.len() {
        return false;
    }
    if n > 16 {
        a == b
    } else if n >= 8 {
        word8(a, 0) == word8(b, 0) && word8(a, n - 8) == word8(b, n - 8)
    } else if n >= 4 {
        word4(a, 0) == word4(b, 0) && word4(a, n - 4) == word4(b, n - 4)
    } else {
        n == 0 || (a[0] == b[0] && a[n / 2] == b[n / 2] && a[n - 1] == b[n - 1])
    }
}

macro_rules! number {
    ($($t:ty as $number:ty, $read:expr, $exact:expr, $compare:expr, $prefix:expr, $text:expr;)*) => {$(
        impl Datum for $t {
            type Ref<'a> = $t;
            type Owned = $t;
            const WIDTH: Option<usize> = Some(size_of::<$number>());
            const EXACT: bool = $exact;
            const TRUSTED: trust::Trusted = trust::Trusted(true);

            #[inline(always)]
            fn write(value: $t, to: &mut [u8]) {
                to.copy_from_slice(&<$number>::from(value).to_le_bytes());
            }
            #[inline(always)]
            fn read(from: &[u8]) -> $t {
                $read(<$number>::from_le_bytes(from.try_into().expect("a number of this width")))
            }
            #[inline(always)]
            fn own(value: $t) -> $t {
                value
            }
            #[inline(always)]
            fn lend(value: &$t) -> $t {
                *value
            }
            fn compare(a: $t, b: $t) -> Ordering {
                $compare(&a, &b)
            }
            #[inline]
            fn prefix(value: $t) -> u64 {
                $prefix(value)
            }
            fn to_text(value: $t, to: &mut Vec<u8>) {
                $text(value, to);
            }
        }
    )*};
}

macro_rules! integer_key {
    ($($t:ty),*) => {$(
        number! { $t as $t, identity, true, <$t>::cmp, |value: $t| (value as i64 as u64) ^ (if <$t>::MIN == 0 { 0 } else { 1 << 63 }), number_text; }
        impl Key for $t {
            #[inline(always)]
            fn short(key: $t) -> Option<Short> {
                let bits = key as u64 & (u64::MAX >> (64 - 8 * size_of::<$t>()));
                Some(Short { words: [bits, 0], len: size_of::<$t>() as u32 })
            }
            #[inline(always)]
            fn equal(a: $t, b: $t) -> bool {
                a == b
            }

            const DENSE: u64 = if <$t>::MIN == 0 { (<$t>::MAX as u64).saturating_add(1) } else { 0 };
            #[inline(always)]
            fn place(key: $t) -> usize {
                key as usize
            }
            #[inline(always)]
            fn at_place(place: usize) -> $t {
                place as $t
            }
        }
    )*};
}

integer_key!(u8, u16, u32, u64, i8, i16, i32, i64);
number! {
    u128 as u128, identity, true, u128::cmp, |value: u128| (value >> 64) as u64, number_text;
    i128 as i128, identity, true, i128::cmp, |value: i128| (value >> 64) as u64 ^ 1 << 63, number_text;
    f64 as f64, identity, false, f64::total_cmp, |value: f64| float_prefix(value.to_bits()), number_text;
    f32 as f32, identity, false, f32::total_cmp, |value: f32| float_prefix(u64::from(value.to_bits()) << 32), |value: f32, to: &mut Vec<u8>| number_text(f64::from(value), to);
    bool as u8, |byte| byte != 0, true, bool::cmp, u64::from, number_text;
    char as u32, |number| char::from_u32(number).expect("a character was written"), true, char::cmp, u64::from, number_text;
}

/// The keys of these types are compared as they are written. So floating-point numbers are grouped by their bits: -0.0
/// and 0.0 are two keys, and so are NaNs with different bits.
macro_rules! written_key {
    ($($t:ty),*) => {$(
        impl Key for $t {}
    )*};
}

written_key!(u128, i128, f64, f32, bool, char, ());

/// Returns the bits of a float, the sign first, in the order of [`f64::total_cmp`].
fn float_prefix(bits: u64) -> u64 {
    if bits >> 63 == 1 { !bits } else { bits | 1 << 63 }
}

fn number_text(value: impl std::fmt::Display, to: &mut Vec<u8>) {
    use std::io::Write;
    write!(to, "{value}").expect("writing to a Vec cannot fail");
}

/// No value, for pairs that consist of a key only. As text it is empty.
impl Datum for () {
    type Ref<'a> = ();
    type Owned = ();
    const WIDTH: Option<usize> = Some(0);
    const EXACT: bool = true;
    const TRUSTED: trust::Trusted = trust::Trusted(true);

    #[inline(always)]
    fn write((): (), _: &mut [u8]) {}
    #[inline(always)]
    fn read(_: &[u8]) {}
    fn own((): ()) {}
    fn lend((): &()) {}
    fn compare((): (), (): ()) -> Ordering {
        Ordering::Equal
    }
    fn prefix((): ()) -> u64 {
        0
    }
    fn to_text((): (), _: &mut Vec<u8>) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn bytes_are_read_as_written(a in prop::collection::vec(any::<u8>(), 0..40), b in prop::collection::vec(0u8..3, 0..40)) {
            let mut written = vec![0; a.len()];
            Bytes::write(&a, &mut written);
            prop_assert_eq!(Bytes::read(&written), &a[..]);
            prop_assert_eq!(Bytes::equal(&a, &b), a == b);
        }

        #[test]
        fn a_short_key_does_not_depend_on_its_place(text in prop::collection::vec(any::<u8>(), 0..40), start in 0usize..40, len in 0usize..18) {
            let start = start.min(text.len());
            let end = (start + len).min(text.len());
            let mut padded = text[start..end].to_vec();
            let expected = (padded.len() <= SHORT_BYTES).then(|| {
                padded.resize(SHORT_BYTES, 0);
                Short { words: [word8(&padded, 0), word8(&padded, 8)], len: (end - start) as u32 }
            });
            prop_assert_eq!(Short::within(&text, start..end), expected);
            prop_assert_eq!(Bytes::short(&text[start..end]), expected);
            if let Some(short) = expected {
                prop_assert_eq!(&short.bytes()[..end - start], &text[start..end]);
            }
        }

        #[test]
        fn short_keys_are_equal_only_if_all_bytes_are_equal(a in prop::collection::vec(0u8..2, 0..20), at in 0usize..20) {
            let mut b = a.clone();
            prop_assert!(Bytes::equal(&a, &b));
            if at < b.len() {
                b[at] ^= 1;
                prop_assert!(!Bytes::equal(&a, &b));
            }
        }

        #[test]
        fn pairs_are_read_as_written(a in any::<u32>(), b in any::<f64>()) {
            let mut written = [0; 12];
            <(u32, f64)>::write((a, b), &mut written);
            let read = <(u32, f64)>::read(&written);
            prop_assert_eq!((read.0, read.1.to_bits()), (a, b.to_bits()));
        }
    }

    #[test]
    fn only_whole_numbers_are_exact() {
        let exact = [u8::EXACT, i64::EXACT, <()>::EXACT, <(u64, i8)>::EXACT];
        let rounded = [f32::EXACT, f64::EXACT, <(u64, f32)>::EXACT, Bytes::EXACT];
        assert_eq!((exact, rounded), ([true; 4], [false; 4]));
    }

    #[test]
    fn numbers_are_printed_in_plain_decimal() {
        let mut text = Vec::new();
        <(i64, f64)>::to_text((-3, 0.5), &mut text);
        assert_eq!(text, b"-3\t0.5");
    }
}
