//! What a job gives back: pairs in memory, or parts that its reducers write to their places.
//!
//! In: the stream of a reducer. Out: rows in a file, and what it took to make them. Workers and the coordinator call it. It never moves a
//! part once its place is fixed.

pub(crate) mod parts;
pub(crate) mod outcome;
