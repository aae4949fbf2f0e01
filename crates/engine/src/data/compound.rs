//! Data made of other data: tuples, arrays, options, and data in reverse order.
//!
//! ```text
//!  tuple, array   the fields one after the other; of variable width may be any field, and each but the last such field
//!                 has its length in front, in 4 bytes, little-endian
//!  Option<T>      0, and zeros as wide as T if T has a fixed width; or 1, and the value
//!  Reverse<T>     as T
//! ```

use std::cmp::{Ordering, Reverse};

use crate::data::datum::{Datum, Key, trust, written_equal, written_short};
use crate::data::key::width;
use crate::data::short::Short;

/// The length of a field's length.
const LENGTH_BYTES: usize = 4;

/// Writes a field to the front of `to`, and returns the rest. `is_last` says that no later field has a variable width.
#[inline(always)]
fn put<'t, D: Datum>(value: D::Ref<'_>, to: &'t mut [u8], is_last: bool) -> &'t mut [u8] {
    let bytes = width::<D>(value);
    let to = match (D::WIDTH, is_last) {
        (None, false) => {
            let (length, rest) = to.split_at_mut(LENGTH_BYTES);
            length.copy_from_slice(&u32::try_from(bytes).expect("a pair has less than 4 GiB").to_le_bytes());
            rest
        }
        _ => to,
    };
    let (here, rest) = to.split_at_mut(bytes);
    D::write(value, here);
    rest
}

/// Reads a field from the front of `from`, and returns the rest. `after` is the total width of all later fields, if
/// all of them have a fixed width.
#[inline(always)]
fn get<D: Datum>(from: &[u8], after: Option<usize>) -> (D::Ref<'_>, &[u8]) {
    let (bytes, from) = match (D::WIDTH, after) {
        (Some(bytes), _) => (bytes, from),
        (None, Some(after)) => (from.len() - after, from),
        (None, None) => {
            let (length, rest) = from.split_first_chunk().expect("a field has its length in front");
            (u32::from_le_bytes(*length) as usize, rest)
        }
    };
    let (here, rest) = from.split_at(bytes);
    (D::read(here), rest)
}

/// Returns the total width, if all of these have a fixed width.
const fn total(widths: &[Option<usize>]) -> Option<usize> {
    let (mut sum, mut at) = (0, 0);
    while at < widths.len() {
        match widths[at] {
            Some(bytes) => sum += bytes,
            None => return None,
        }
        at += 1;
    }
    Some(sum)
}

/// Returns the total width of the fields after `field`, if all of them have a fixed width.
const fn after(widths: &[Option<usize>], field: usize) -> Option<usize> {
    total(widths.split_at(field + 1).1)
}

/// Returns the bytes of all lengths that are written in front of fields.
const fn lengths(widths: &[Option<usize>]) -> usize {
    let (mut variable, mut at) = (0, 0);
    while at < widths.len() {
        variable += widths[at].is_none() as usize;
        at += 1;
    }
    LENGTH_BYTES * variable.saturating_sub(1)
}

/// The widths of a tuple's fields.
trait Fields {
    const WIDTHS: &'static [Option<usize>];
}

macro_rules! tuple {
    ($first:ident $(, $other:ident)*; $($name:ident $field:tt),*) => {
        impl<$($name: Datum),*> Fields for ($($name,)*) {
            const WIDTHS: &'static [Option<usize>] = &[$($name::WIDTH),*];
        }

        /// Tuples are ordered by their first field, then by the second, and so on. As text, their fields have tabs
        /// between them. At most eight fields.
        impl<$($name: Datum),*> Datum for ($($name,)*) {
            type Ref<'a> = ($($name::Ref<'a>,)*);
            type Owned = ($($name::Owned,)*);
            const WIDTH: Option<usize> = total(Self::WIDTHS);
            const EXACT: bool = $($name::EXACT)&&*;
            const TRUSTED: trust::Trusted = trust::Trusted($($name::TRUSTED.0)&&*);

            #[inline(always)]
            fn width(value: Self::Ref<'_>) -> usize {
                (const { lengths(Self::WIDTHS) }) $(+ width::<$name>(value.$field))*
            }
            #[inline(always)]
            fn write(value: Self::Ref<'_>, to: &mut [u8]) {
                $(let to = put::<$name>(value.$field, to, const { after(Self::WIDTHS, $field).is_some() });)*
                debug_assert!(to.is_empty(), "{} bytes are left of a tuple", to.len());
            }
            #[inline(always)]
            #[allow(non_snake_case, reason = "a field's value is named as its type")]
            fn read(from: &[u8]) -> Self::Ref<'_> {
                $(let ($name, from) = get::<$name>(from, const { after(Self::WIDTHS, $field) });)*
                debug_assert!(from.is_empty(), "{} bytes are left of a tuple", from.len());
                ($($name,)*)
            }
            #[inline(always)]
            fn own(value: Self::Ref<'_>) -> Self::Owned {
                ($($name::own(value.$field),)*)
            }
            #[inline(always)]
            fn lend(value: &Self::Owned) -> Self::Ref<'_> {
                ($($name::lend(&value.$field),)*)
            }
            fn compare(a: Self::Ref<'_>, b: Self::Ref<'_>) -> Ordering {
                Ordering::Equal $(.then_with(|| $name::compare(a.$field, b.$field)))*
            }
            fn prefix(value: Self::Ref<'_>) -> u64 {
                $first::prefix(value.0)
            }
            fn to_text(value: Self::Ref<'_>, to: &mut Vec<u8>) {
                $first::to_text(value.0, to);
                tuple!(text value to $($name $field),*);
            }
        }

        impl<$($name: Key),*> Key for ($($name,)*) {
            #[inline(always)]
            fn short(key: Self::Ref<'_>) -> Option<Short> {
                written_short::<Self>(key)
            }
            #[inline(always)]
            fn equal(a: Self::Ref<'_>, b: Self::Ref<'_>) -> bool {
                $($name::equal(a.$field, b.$field))&&*
            }
        }
    };
    (text $value:ident $to:ident $first:ident $zero:tt $(, $name:ident $field:tt)*) => {
        $($to.push(b'\t'); $name::to_text($value.$field, $to);)*
    };
}

tuple!(A; A 0);
tuple!(A, B; A 0, B 1);
tuple!(A, B, C; A 0, B 1, C 2);
tuple!(A, B, C, D; A 0, B 1, C 2, D 3);
tuple!(A, B, C, D, E; A 0, B 1, C 2, D 3, E 4);
tuple!(A, B, C, D, E, F; A 0, B 1, C 2, D 3, E 4, F 5);
tuple!(A, B, C, D, E, F, G; A 0, B 1, C 2, D 3, E 4, F 5, G 6);
tuple!(A, B, C, D, E, F, G, H; A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7);

/// Arrays of fixed-width data are ordered by their first element, then by the second, and so on. As text, their
/// elements have tabs between them. At most 32 elements, because only such arrays have a default.
impl<T: Datum, const N: usize> Datum for [T; N]
where
    [T::Owned; N]: Default,
{
    type Ref<'a> = [T::Ref<'a>; N];
    type Owned = [T::Owned; N];
    const WIDTH: Option<usize> = match T::WIDTH {
        Some(bytes) => Some(bytes * N),
        None => panic!("the elements of an array have a fixed width; use a tuple"),
    };
    const EXACT: bool = T::EXACT;
    const TRUSTED: trust::Trusted = trust::Trusted(T::TRUSTED.0);

    #[inline(always)]
    fn write(value: Self::Ref<'_>, to: &mut [u8]) {
        let _ = value.into_iter().fold(to, |to, element| put::<T>(element, to, true));
    }
    #[inline(always)]
    fn read(mut from: &[u8]) -> Self::Ref<'_> {
        std::array::from_fn(|_| {
            let (element, rest) = get::<T>(from, Some(0));
            from = rest;
            element
        })
    }
    #[inline(always)]
    fn own(value: Self::Ref<'_>) -> Self::Owned {
        value.map(T::own)
    }
    #[inline(always)]
    fn lend(value: &Self::Owned) -> Self::Ref<'_> {
        value.each_ref().map(T::lend)
    }
    fn compare(a: Self::Ref<'_>, b: Self::Ref<'_>) -> Ordering {
        let orders = a.into_iter().zip(b).map(|(a, b)| T::compare(a, b));
        orders.into_iter().find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
    }
    fn prefix(value: Self::Ref<'_>) -> u64 {
        value.first().map_or(0, |first| T::prefix(*first))
    }
    fn to_text(value: Self::Ref<'_>, to: &mut Vec<u8>) {
        for (number, element) in value.into_iter().enumerate() {
            if number > 0 {
                to.push(b'\t');
            }
            T::to_text(element, to);
        }
    }
}

impl<T: Key, const N: usize> Key for [T; N]
where
    [T::Owned; N]: Default,
{
    #[inline(always)]
    fn equal(a: Self::Ref<'_>, b: Self::Ref<'_>) -> bool {
        written_equal::<Self>(a, b)
    }
}

/// `None` sorts before every value, and is empty as text.
impl<T: Datum> Datum for Option<T> {
    type Ref<'a> = Option<T::Ref<'a>>;
    type Owned = Option<T::Owned>;
    const WIDTH: Option<usize> = match T::WIDTH {
        Some(bytes) => Some(1 + bytes),
        None => None,
    };
    const EXACT: bool = T::EXACT;
    const TRUSTED: trust::Trusted = trust::Trusted(T::TRUSTED.0);

    #[inline(always)]
    fn width(value: Self::Ref<'_>) -> usize {
        Self::WIDTH.unwrap_or_else(|| 1 + value.map_or(0, T::width))
    }
    #[inline(always)]
    fn write(value: Self::Ref<'_>, to: &mut [u8]) {
        to[0] = value.is_some().into();
        match value {
            Some(value) => T::write(value, &mut to[1..]),
            None => to[1..].fill(0),
        }
    }
    #[inline(always)]
    fn read(from: &[u8]) -> Self::Ref<'_> {
        (from[0] == 1).then(|| T::read(&from[1..]))
    }
    #[inline(always)]
    fn own(value: Self::Ref<'_>) -> Self::Owned {
        value.map(T::own)
    }
    #[inline(always)]
    fn lend(value: &Self::Owned) -> Self::Ref<'_> {
        value.as_ref().map(T::lend)
    }
    fn compare(a: Self::Ref<'_>, b: Self::Ref<'_>) -> Ordering {
        match (a, b) {
            (Some(a), Some(b)) => T::compare(a, b),
            (a, b) => a.is_some().cmp(&b.is_some()),
        }
    }
    fn prefix(value: Self::Ref<'_>) -> u64 {
        value.map_or(0, |value| 1 << 63 | T::prefix(value) >> 1)
    }
    fn to_text(value: Self::Ref<'_>, to: &mut Vec<u8>) {
        if let Some(value) = value {
            T::to_text(value, to);
        }
    }
}

impl<T: Key> Key for Option<T> {}

/// The order is reversed; everything else is as for `T`.
impl<T: Datum> Datum for Reverse<T> {
    type Ref<'a> = Reverse<T::Ref<'a>>;
    type Owned = Reverse<T::Owned>;
    const WIDTH: Option<usize> = T::WIDTH;
    const EXACT: bool = T::EXACT;
    const TRUSTED: trust::Trusted = trust::Trusted(T::TRUSTED.0);

    #[inline(always)]
    fn width(Reverse(value): Self::Ref<'_>) -> usize {
        T::width(value)
    }
    #[inline(always)]
    fn write(Reverse(value): Self::Ref<'_>, to: &mut [u8]) {
        T::write(value, to);
    }
    #[inline(always)]
    fn read(from: &[u8]) -> Self::Ref<'_> {
        Reverse(T::read(from))
    }
    #[inline(always)]
    fn own(Reverse(value): Self::Ref<'_>) -> Self::Owned {
        Reverse(T::own(value))
    }
    #[inline(always)]
    fn lend(Reverse(value): &Self::Owned) -> Self::Ref<'_> {
        Reverse(T::lend(value))
    }
    fn compare(Reverse(a): Self::Ref<'_>, Reverse(b): Self::Ref<'_>) -> Ordering {
        T::compare(b, a)
    }
    fn prefix(Reverse(value): Self::Ref<'_>) -> u64 {
        !T::prefix(value)
    }
    fn to_text(Reverse(value): Self::Ref<'_>, to: &mut Vec<u8>) {
        T::to_text(value, to);
    }
}

impl<T: Key> Key for Reverse<T> {
    #[inline(always)]
    fn short(Reverse(key): Self::Ref<'_>) -> Option<Short> {
        T::short(key)
    }
    #[inline(always)]
    fn equal(Reverse(a): Self::Ref<'_>, Reverse(b): Self::Ref<'_>) -> bool {
        T::equal(a, b)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::data::contract::check_key;
    use crate::data::datum::{Bytes, Datum};

    use super::*;

    type Wide = (u8, String, Option<Bytes>, [i16; 3], Reverse<String>, f32, char, Option<u128>);

    #[test]
    fn a_tuple_is_written_as_its_documentation_says() {
        let mut written = vec![0xff; <(u16, Bytes, u8)>::width((1, b"abc", 2))];
        <(u16, Bytes, u8)>::write((1, b"abc", 2), &mut written);
        assert_eq!(written, b"\x01\x00abc\x02");
        let mut written = vec![0xff; <(Bytes, String)>::width((b"ab", "c"))];
        <(Bytes, String)>::write((b"ab", "c"), &mut written);
        assert_eq!(written, b"\x02\0\0\0abc");
        let mut written = [0xff; 3];
        <Option<u16>>::write(None, &mut written);
        assert_eq!(written, [0; 3]);
        assert_eq!((<(u8, [u32; 4])>::WIDTH, <(u8, Bytes)>::WIDTH, <Option<Bytes>>::WIDTH), (Some(17), None, None));
    }

    #[test]
    fn text_has_tabs_between_fields() {
        let mut text = Vec::new();
        <(String, [i8; 2], Option<u8>, bool)>::to_text(("a", [1, -2], None, true), &mut text);
        assert_eq!(text, b"a\t1\t-2\t\ttrue");
    }

    proptest! {
        #[test]
        fn a_wide_tuple_is_read_as_written_and_ordered_as_in_rust(
            rows in prop::collection::vec(
                (any::<u8>(), "[a-c]{0,3}", prop::option::of("[a-b]{0,2}"), any::<[i16; 3]>(), "[a-c]{0,3}", any::<char>(), any::<Option<u128>>()),
                1..12,
            ),
        ) {
            let keys = || rows.iter().map(|(a, b, c, d, e, f, g)| {
                (*a % 2, b.as_str(), c.as_ref().map(String::as_bytes), *d, Reverse(e.as_str()), f32::from(*a), *f, *g)
            });
            check_key::<Wide>(keys());
            for a in keys() {
                for b in keys() {
                    let expected = a.partial_cmp(&b).expect("no number is NaN");
                    prop_assert_eq!(Wide::compare(a, b), expected);
                }
            }
        }

        #[test]
        fn options_and_reversed_numbers_are_ordered_as_in_rust(keys in prop::collection::vec(any::<Option<i64>>(), 0..9)) {
            check_key::<Option<Reverse<i64>>>(keys.iter().map(|key| key.map(Reverse)));
            check_key::<Reverse<Option<i64>>>(keys.iter().map(|key| Reverse(*key)));
        }
    }
}
