//! Runs a list of programs: the work of `gristmill batch`, without its command line.
//!
//! ```text
//!  queue         jobs, their states, and the lines of the journal; makes no system call
//!  list          the jobs of a file, of the command line, or of standard input
//!  journal_file  the file with what has ended
//!  program       one running program, and what it writes
//!  report        reports on the programs: printed, and kept
//!  run           the guard and the scheduler: programs begin, and end
//!  choose        the programs that run in a quantum, by their demand for memory bandwidth
//!  request       a request of the command
//!  batch         from a request to its end
//! ```
//!
//! The process that calls [`run()`] forks, so it starts no threads before.

#![forbid(unsafe_code)]
#![cfg_attr(not(test), warn(clippy::too_many_lines))]

pub mod queue;
mod list;
mod journal_file;
mod program;
mod report;
mod run;
mod choose;
mod request;
mod batch;

pub use batch::run;
pub use choose::choice::ByBandwidth;
pub use list::values::Values;
pub use queue::{Halt, Shell, digest};
pub use report::printer::Order;
pub use request::Request;
pub use run::admission::StartLimits;
pub use run::slots::{Slots, slots};
