//! Looks at the input before the job starts, which leave no trace in its result.
//!
//! In: sources. Out: a [`Sample`](crate::plan::sample::Sample), the cuts of ranges, the state of CSV at each cut. The coordinator calls it
//! while it prepares a job. What it maps it maps in a child process that may die; a look that fails costs the answer nothing.

pub(crate) mod sampler;
pub(crate) mod range_finder;
pub(crate) mod quote_scan;
