//! Which keys are one: those whose written bytes are the same.
//!
//! Hash, equality and shortness all follow from the bytes that [`Datum::write`] gives, so they cannot disagree, in whatever buffer,
//! table, page or run a key lies. The engine's own types answer by themselves, because that is faster; of any other type
//! only width and bytes are asked for, whatever its [`Key`] says.

use crate::data::datum::{Datum, Key, with_written, written_equal, written_short};
use crate::data::seed::Seed;
use crate::data::short::{SHORT_BYTES, Short};

/// The key in two words, if it has at most [`SHORT_BYTES`].
#[inline(always)]
pub(crate) fn short<K: Key>(key: K::Ref<'_>) -> Option<Short> {
    if const { K::TRUSTED.0 } { K::short(key) } else { written_short::<K>(key) }
}

/// The hash of a key, the same in every worker of a job.
#[inline(always)]
pub(crate) fn hash<K: Key>(key: K::Ref<'_>, seed: &Seed) -> u64 {
    match short::<K>(key) {
        Some(short) => seed.hash(short),
        None => hash_long::<K>(key, seed),
    }
}

/// The hash of a value that need be no key.
#[inline(always)]
pub(crate) fn hash_of_value<D: Datum>(value: D::Ref<'_>, seed: &Seed) -> u64 {
    if let Some(words) = D::words(value) {
        return seed.hash_words(words);
    }
    let short = match lying::<D>(&value) {
        Some(bytes) => (bytes.len() <= SHORT_BYTES).then(|| Short::of(bytes)),
        None => written_short::<D>(value),
    };
    match short {
        Some(short) => seed.hash(short),
        None => hash_long::<D>(value, seed),
    }
}

/// The hash of more than [`SHORT_BYTES`].
#[inline]
fn hash_long<D: Datum>(value: D::Ref<'_>, seed: &Seed) -> u64 {
    match lying::<D>(&value) {
        Some(bytes) => seed.hash_long(bytes),
        None => with_written::<D, _>(value, |bytes| seed.hash_long(bytes)),
    }
}

/// What is written of a value, if it lies somewhere already.
#[inline(always)]
fn lying<'v, D: Datum>(value: &'v D::Ref<'_>) -> Option<&'v [u8]> {
    if const { D::TRUSTED.0 } { D::written(value) } else { None }
}

/// Whether two keys are one.
#[inline(always)]
pub(crate) fn equal<K: Key>(a: K::Ref<'_>, b: K::Ref<'_>) -> bool {
    if const { K::TRUSTED.0 } { K::equal(a, b) } else { written_equal::<K>(a, b) }
}

/// The bytes that a value takes when it is written.
#[inline(always)]
pub(crate) fn width<D: Datum>(value: D::Ref<'_>) -> usize {
    match D::WIDTH {
        Some(width) => width,
        None => D::width(value),
    }
}
