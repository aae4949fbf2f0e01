//! Reports of a job other than its result.

pub mod bad_records;
pub mod stats;
pub mod timeline;
