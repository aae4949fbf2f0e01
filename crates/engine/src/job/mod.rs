//! The API of a caller: a builder that describes and runs a job, and an input that can be inspected before the job.
//!
//! In: calls of the builder. Out: a [`Request`](crate::coordinator::Request) to the coordinator. Only callers outside
//! the engine use it.

pub(crate) mod bad_files;
pub(crate) mod opening;
pub(crate) mod builder;
mod settings;
mod joins;
