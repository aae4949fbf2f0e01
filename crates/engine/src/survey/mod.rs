//! Surveys of the input before the job starts, which leave no trace in its result.
//!
//! In: sources. Out: a [`Sample`](crate::plan::sample::Sample), the cuts of ranges, the weights of partitions, the
//! state of CSV at each cut. The coordinator calls it while it prepares a job. Maps run in a child process that may
//! die; a survey that fails does not affect the result.

mod reading;
pub(crate) mod sampler;
pub(crate) mod range_finder;
pub(crate) mod weigher;
pub(crate) mod quote_scan;
