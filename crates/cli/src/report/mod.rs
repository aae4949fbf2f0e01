//! Reports of a job other than its result, and of programs.

pub mod bad_records;
pub mod gain;
pub mod stats;
pub mod timeline;
