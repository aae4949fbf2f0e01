//! The checkpoint of a job on disk, from which a later run continues.
//!
//! In: facts (tasks that are done, runs that are saved). Out: the same facts, or an error that says why the folder is
//! not trusted. Reducers write runs and results, the coordinator the log; both
//! read the log. Nothing is recorded before it is on disk.

pub(crate) mod log;
