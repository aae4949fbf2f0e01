//! Identity of keys: two keys are the same if they are written as the same bytes.
//!
//! Hash, equality and shortness are all derived from the bytes that [`Datum::write`] gives, so they agree wherever a
//! key is stored: in a buffer, table, page or run. The engine's own types implement them directly, because that is
//! faster. Of any other type the engine uses only width and bytes, whatever its [`Key`] impl says.

use crate::data::datum::{Datum, Key, with_written, written_equal, written_short};
use crate::data::seed::Seed;
use crate::data::short::{SHORT_BYTES, Short};

/// Returns the key in two words, if it has at most [`SHORT_BYTES`].
#[inline(always)]
pub(crate) fn short<K: Key>(key: K::Ref<'_>) -> Option<Short> {
    if const { K::TRUSTED.0 } { K::short(key) } else { written_short::<K>(key) }
}

/// Returns the hash of a key, the same in every worker of a job.
#[inline(always)]
pub(crate) fn hash<K: Key>(key: K::Ref<'_>, seed: &Seed) -> u64 {
    match short::<K>(key) {
        Some(short) => seed.hash(short),
        None => hash_long::<K>(key, seed),
    }
}

/// Returns the hash of a value, whose type need not be a [`Key`].
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

/// Returns the hash of a value of more than [`SHORT_BYTES`].
#[inline]
fn hash_long<D: Datum>(value: D::Ref<'_>, seed: &Seed) -> u64 {
    match lying::<D>(&value) {
        Some(bytes) => seed.hash_long(bytes),
        None => with_written::<D, _>(value, |bytes| seed.hash_long(bytes)),
    }
}

/// Returns the written form of a value, if it is already in memory.
#[inline(always)]
fn lying<'v, D: Datum>(value: &'v D::Ref<'_>) -> Option<&'v [u8]> {
    if const { D::TRUSTED.0 } { D::written(value) } else { None }
}

/// Returns whether two keys are the same.
#[inline(always)]
pub(crate) fn equal<K: Key>(a: K::Ref<'_>, b: K::Ref<'_>) -> bool {
    if const { K::TRUSTED.0 } { K::equal(a, b) } else { written_equal::<K>(a, b) }
}

/// Returns the number of bytes that a value takes when it is written.
#[inline(always)]
pub(crate) fn width<D: Datum>(value: D::Ref<'_>) -> usize {
    match D::WIDTH {
        Some(width) => width,
        None => D::width(value),
    }
}
