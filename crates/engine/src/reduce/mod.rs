//! The partitions of one reduce worker, from the first page to its part of the result.
//!
//! In: pages of pairs. Out: a sorted, combined, reduced stream. The rooms `exchange` and `worker` call it. It does not
//! communicate with other workers.

pub(crate) mod reduction;
pub(crate) mod delivery;
