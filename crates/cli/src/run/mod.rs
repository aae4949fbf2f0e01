//! Runs the job of a command, from its options to its result.

mod checkpoint_folder;
mod reports;
pub mod common_options;
pub mod learned;
mod request;
pub mod job_runner;
