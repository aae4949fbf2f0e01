//! Truth values, characters, text and vectors of bytes as data.

use std::cmp::Ordering;

use crate::data::datum::{Bytes, Datum, Key, trust};
use crate::data::short::Short;

/// Data that are written as another type.
macro_rules! written_as {
    ($($t:ty as $other:ty, $read:expr;)*) => {$(
        impl Datum for $t {
            type Ref<'a> = $t;
            type Owned = $t;
            const WIDTH: Option<usize> = <$other>::WIDTH;
            const EXACT: bool = true;
            const TRUSTED: trust::Trusted = trust::Trusted(true);

            #[inline(always)]
            fn width(value: $t) -> usize {
                <$other>::width(value.into())
            }
            #[inline(always)]
            fn write(value: $t, to: &mut [u8]) {
                <$other>::write(value.into(), to);
            }
            #[inline(always)]
            fn read(from: &[u8]) -> $t {
                $read(<$other>::read(from))
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
                a.cmp(&b)
            }
            fn prefix(value: $t) -> u64 {
                <$other>::prefix(value.into())
            }
            fn to_text(value: $t, to: &mut Vec<u8>) {
                to.extend_from_slice(value.to_string().as_bytes());
            }
        }

        impl Key for $t {
            #[inline(always)]
            fn short(key: $t) -> Option<Short> {
                <$other>::short(key.into())
            }
            #[inline(always)]
            fn equal(a: $t, b: $t) -> bool {
                a == b
            }
        }
    )*};
}

written_as! {
    bool as u8, |byte| byte != 0;
    char as u32, |number| char::from_u32(number).expect("a character was written");
}

/// Data of variable width that are written as [`Bytes`].
macro_rules! bytes_of {
    ($(#[$documentation:meta])* $t:ty as $seen:ty, $read:expr, $own:expr;) => {
        $(#[$documentation])*
        impl Datum for $t {
            type Ref<'a> = &'a $seen;
            type Owned = $t;
            const WIDTH: Option<usize> = None;
            const TRUSTED: trust::Trusted = trust::Trusted(true);

            #[inline(always)]
            fn width(value: &$seen) -> usize {
                value.len()
            }
            #[inline(always)]
            fn write(value: &$seen, to: &mut [u8]) {
                Bytes::write(value.as_ref(), to);
            }
            #[inline(always)]
            fn read(from: &[u8]) -> &$seen {
                $read(from)
            }
            fn own(value: &$seen) -> $t {
                $own(value)
            }
            fn lend(value: &$t) -> &$seen {
                value
            }
            fn compare(a: &$seen, b: &$seen) -> Ordering {
                a.cmp(b)
            }
            #[inline]
            fn prefix(value: &$seen) -> u64 {
                Bytes::prefix(value.as_ref())
            }
            fn to_text(value: &$seen, to: &mut Vec<u8>) {
                to.extend_from_slice(value.as_ref());
            }
            #[inline(always)]
            fn written<'v>(value: &'v &$seen) -> Option<&'v [u8]> {
                Some((*value).as_ref())
            }
        }

        impl Key for $t {
            #[inline(always)]
            fn short(key: &$seen) -> Option<Short> {
                Bytes::short(key.as_ref())
            }
            #[inline(always)]
            fn equal(a: &$seen, b: &$seen) -> bool {
                Bytes::equal(a.as_ref(), b.as_ref())
            }
        }
    };
}

bytes_of! {
    /// UTF-8 text shorter than 4 GiB, ordered by its bytes. Reading it checks that it is UTF-8; [`Bytes`] does not.
    String as str, |from| str::from_utf8(from).expect("text was written"), str::to_owned;
}
bytes_of! {
    /// Bytes as a field of a struct that derives [`Datum`]; otherwise use [`Bytes`].
    Vec<u8> as [u8], |from| from, <[u8]>::to_vec;
}
