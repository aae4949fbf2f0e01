//! Pairs in memory on the reduce side: combined by key, or kept as they came.
//!
//! In: the pairs of pages. Out: rows of pairs that can be sorted. The rooms `spill` and `reduce` call it. It knows
//! nothing of disks, workers or the order of arrival. Its callers account for the memory that it uses.

pub(crate) mod combined;
pub(crate) mod partitions;
pub(crate) mod heavy_keys;
pub(crate) mod store;
