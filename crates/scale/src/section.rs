//! The parts of the report.

use crate::diagnose::Conclusion;

use gristmill_report::chart::milliseconds;

/// A part of the report, for the terminal and for the page. Both may be empty.
#[derive(Default)]
pub struct Section {
    pub text: String,
    pub html: String,
}

/// The content of a report other than the curve and the account.
pub struct About {
    /// The command that was run.
    pub title: String,
    /// The circumstances, as names and values.
    pub facts: Vec<(String, String)>,
    /// The result of the runs.
    pub conclusion: Conclusion,
    /// Notes for the reader.
    pub notes: Vec<String>,
    /// The name of the times: not simply `time` if they are divided by the workers.
    pub time: &'static str,
    /// A table with a row for each combination of parameters.
    pub varied: Section,
    /// The phases of our own applications.
    pub phases: Section,
}

/// Formats a time with three digits.
pub fn shown(seconds: f64) -> String {
    milliseconds(seconds * 1e3)
}
