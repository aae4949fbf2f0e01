//! What a user writes: map, combine, reduce and partition functions, and what these are given.
//!
//! In: a type that implements [`MapReduce`](map_reduce::MapReduce). Out: calls of its functions. Every room behind this one calls it. It
//! makes no choice: which function runs when is the plan's to say.

pub(crate) mod pairs;
pub(crate) mod map_reduce;
pub(crate) mod partition;
pub(crate) mod ranges;
