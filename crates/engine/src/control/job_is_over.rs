//! The panic by which a worker leaves its map function when the job is over.

/// Unwinds a worker thread whose job is over before its map function has returned.
pub(crate) struct JobIsOver;
