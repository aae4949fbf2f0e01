//! The functions that a user writes (map, combine, reduce and partition) and the types of their arguments.
//!
//! In: a type that implements [`MapReduce`](map_reduce::MapReduce). Out: calls of its functions. Every later room calls
//! it. It makes no choices: the plan decides which function runs when.

pub(crate) mod pairs;
pub(crate) mod aggregate;
pub(crate) mod accumulator;
pub(crate) mod map_reduce;
pub(crate) mod ending;
pub(crate) mod partition;
pub(crate) mod ranges;
