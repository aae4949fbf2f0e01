//! Options that several commands understand, and what they mean.

pub mod units;
pub mod patterns;
pub mod inputs;
pub mod job_options;
pub mod tables;
