//! Finds where more workers stop helping, and why: the work of `gristmill scale`, without its command line.
//!
//! ```text
//!  diagnose  laws of scaling, accounts of the workers' time, and what stops them; only computes
//!  section   the parts of a report
//!  run       one run of a command with all its processes, and the order of the runs
//!  request   a request of the command
//!  measure   all runs: those whose times count, those whose threads are sampled, and experiments
//!  report    the report for a terminal, a page, and a program
//!  scale     from a request to its report
//! ```
//!
//! The process that calls [`measure()`] forks, so it starts no threads before.

#![forbid(unsafe_code)]
#![cfg_attr(not(test), warn(clippy::too_many_lines))]

pub mod diagnose;
mod section;
mod run;
mod request;
mod measure;
mod report;
mod scale;

pub use request::{Request, When};
pub use run::applications::Applications;
pub use run::parameters::Parameter;
pub use run::reads::Reads;
pub use run::words::PLACE;
pub use scale::{Report, analyse, measure};
