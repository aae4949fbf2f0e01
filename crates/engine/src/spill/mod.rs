//! Spilling: sorted runs on disk for pairs that do not fit in memory, and their merge.
//!
//! In: stores of pairs. Out: one sorted stream, and the values of a key one by one. The rooms `reduce`, `worker` and
//! `coordinator` call it. It never takes more memory than the [share](reduce_memory) that it is given, and returns no
//! pair of a block before the block's checksum is verified.

pub(crate) mod spill_file;
pub(crate) mod run;
pub(crate) mod tournament;
pub(crate) mod merge;
pub(crate) mod values;
pub(crate) mod reduce_memory;
pub(crate) mod sorter;
