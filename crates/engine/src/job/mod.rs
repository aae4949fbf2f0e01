//! What a caller holds: a job to be described and run, and its input, which may be looked at before.
//!
//! In: calls of the builder. Out: a [`Request`](crate::coordinator::Request) to the coordinator. Only callers outside the engine use it.

pub(crate) mod bad_files;
pub(crate) mod opening;
pub(crate) mod builder;
