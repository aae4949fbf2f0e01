//! Messages on standard error, one line each.

pub use gristmill_report::messages::{line, printable, printable_lines, tell};
