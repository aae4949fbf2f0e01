//! What is told of a job beside its result.

pub mod bad_records;
pub mod stats;
