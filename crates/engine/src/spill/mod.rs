//! More pairs than memory holds: sorted runs on disk, and their merge.
//!
//! In: stores of pairs. Out: one sorted stream, and the values of a key one by one. The rooms `reduce`, `worker` and `coordinator`
//! call it. It never takes more memory than the [share](reduce_memory) that it is given, and gives no pair of a block before its
//! checksum has been compared.

pub(crate) mod spill_file;
pub(crate) mod run;
pub(crate) mod merge;
pub(crate) mod values;
pub(crate) mod reduce_memory;
pub(crate) mod sorter;
