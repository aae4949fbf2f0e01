//! Arrays that map functions write into: twin and diff.
//!
//! In: writes of a task to its private view. Out: the elements that it changed, merged under a latch. Workers call it at the end of each
//! task, the coordinator when a job begins and ends. A task that does not commit leaves no trace in a job that fails.

pub(crate) mod diff;
pub(crate) mod array;
