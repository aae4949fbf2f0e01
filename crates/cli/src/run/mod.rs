//! Runs the job of a command, from its options to its result.

mod checkpoint_folder;
pub mod common_options;
pub mod learned;
mod request;
mod reports;
pub mod job_runner;
