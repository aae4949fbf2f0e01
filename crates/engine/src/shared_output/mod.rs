//! Arrays that map functions write to: twin and diff.
//!
//! In: the writes of a task to its private view. Out: the elements that it changed, merged under a latch. Workers call
//! it at the end of each task, and the coordinator at the start and end of a job. A task that does not commit leaves no
//! trace in a job that fails.

pub(crate) mod diff;
pub(crate) mod array;
