//! Map-side buffers between the map function and the pages.
//!
//! - [`ArrayBuffer`] appends every pair to the open page of its partition.
//! - [`RangeBuffer`] does the same if partitions are ranges of pairs.
//! - [`HashBuffer`] combines pairs in a table that fits in the cache, and appends its content when it is full.
//! - [`DenseBuffer`] combines pairs in an array with a place for each key of a small domain.

mod array;
mod range;
mod dense;
mod slots;
mod hash;

use crate::data::datum::{Datum, Key};
use crate::data::digest::Digest;
use crate::program::map_reduce::Emit;

pub(crate) use array::ArrayBuffer;
pub(crate) use dense::{DenseArray, DenseBuffer};
pub(crate) use hash::{HashBuffer, HashTable};
pub(crate) use range::RangeBuffer;

/// A buffer that takes the pairs of one task.
pub(crate) trait MapBuffer<K: Key, V: Datum>: Emit<K, V> {
    /// Returns the digest of the pairs so far.
    fn digest(&self) -> Digest;
}
