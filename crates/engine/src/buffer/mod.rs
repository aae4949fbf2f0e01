//! Map-side buffers between the map function and the pages.
//!
//! - [`ArrayBuffer`] appends every pair to the open page of its partition.
//! - [`RangeBuffer`] does the same if partitions are ranges of pairs.
//! - [`HashBuffer`] combines pairs in a table that fits in the cache, and appends its content when it is full.
//! - [`DenseBuffer`] combines pairs in an array with a place for each key of a small domain.

mod map_buffer;
mod marks;
mod value_bytes;
mod array;
mod range;
mod dense;
mod slots;
mod hash;

pub(crate) use array::ArrayBuffer;
pub(crate) use dense::{DenseArray, DenseBuffer};
pub(crate) use hash::{HashBuffer, HashTable};
pub(crate) use map_buffer::MapBuffer;
pub(crate) use range::RangeBuffer;
