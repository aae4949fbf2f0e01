//! Options that several commands share.

pub mod patterns;
pub mod inputs;
pub mod job_options;
pub mod text;
pub mod tables;
pub mod streams;
