//! Runs the job of a command, from its options to its result.

pub mod common;
pub mod runs;
