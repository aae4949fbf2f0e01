//! The output of a job: pairs in memory, or parts that its reducers write.
//!
//! In: the stream of a reducer. Out: rows in a file, pairs in a sink, and statistics of the run. Workers and the
//! coordinator call it. It never moves a part once its place is fixed.

pub(crate) mod parts;
pub(crate) mod sink;
pub(crate) mod part_files;
pub(crate) mod pair_files;
pub(crate) mod timeline;
pub(crate) mod outcome;
