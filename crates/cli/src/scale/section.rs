//! A part of the report.

use crate::experiment::chart::milliseconds;

/// A part of the report, for the terminal and for the page. Both may be empty.
#[derive(Default)]
pub struct Section {
    pub text: String,
    pub html: String,
}

/// Formats a time with three digits.
pub fn shown(seconds: f64) -> String {
    milliseconds(seconds * 1e3)
}
