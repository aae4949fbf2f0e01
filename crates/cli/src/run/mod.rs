//! Runs the job of a command, from its options to its result.

mod checkpoint_folder;
mod request;
mod reports;
pub mod common_options;
pub mod learned;
pub mod job_runner;
