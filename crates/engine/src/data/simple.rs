//! Text and vectors of bytes as data.

use std::cmp::Ordering;

use crate::data::datum::{Bytes, Datum, Key, trust};
use crate::data::short::Short;

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
