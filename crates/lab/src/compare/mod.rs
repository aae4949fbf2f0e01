//! Compares strategies: runs them as programs, in turn, round after round, and reports which is the fastest.
//!
//! ```text
//!  time         the time that decides
//!  machine      the machine on which it is measured
//!  shell        commands to copy and run
//!  subject      a workload of an application with its input
//!  comparison   the strategies of one choice, each defined by a few arguments
//!  trial        the runs of a comparison on one application
//!               (the load of other programs: `gristmill_counters::load`)
//!  verdict      the fastest strategies
//!  chart        bars and curves
//!  conclusion   one sentence per comparison
//!  report       a page with a chart for each application and each comparison
//! ```

pub mod time;
pub mod machine;
mod shell;
pub mod subject;
pub mod comparison;
pub mod trial;
pub mod verdict;
mod chart;
pub mod conclusion;
pub mod report;
