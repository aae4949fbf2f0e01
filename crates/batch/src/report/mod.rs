//! Reports on the programs: printed, and kept.
//!
//! ```text
//!  record    the report on an attempt: its status, and a line of JSON
//!  tally     how the jobs came out, once the queue is over: the summary
//!  log       a table of all attempts
//!  timeline  a page with a bar for each program
//!  recorder  writes runs to the history
//!  tagged    the lines of a program, for --live
//!  written   text that is being printed
//!  live      the table on a terminal
//!  printer   prints the output of programs, in the order of --order
//!  reporter  reports on the programs with all of these
//! ```

pub mod record;
pub mod tally;
pub mod log;
pub mod timeline;
pub mod recorder;
pub mod tagged;
pub mod written;
pub mod live;
pub mod printer;
pub mod reporter;
