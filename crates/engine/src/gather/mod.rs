//! Pairs in memory on the reduce side: combined by key, or kept as they came.
//!
//! In: the pairs of pages. Out: rows of pairs that can be sorted. The rooms `spill` and `reduce` call it. It knows no disk, no worker and
//! no order of arrival; what it holds is charged by those who fill it.

pub(crate) mod combined;
pub(crate) mod heavy_keys;
pub(crate) mod store;
