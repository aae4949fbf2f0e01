//! The parts of the report.

use crate::diagnose::Conclusion;

use gristmill_report::chart::milliseconds;
use gristmill_report::text::escape;

/// A part of the report, for the terminal and for the page. Both may be empty.
#[derive(Default)]
pub struct Section {
    pub text: String,
    pub html: String,
}

/// A table of right-aligned cells: the heads, then the rows.
pub struct Grid(pub Vec<Vec<String>>);

impl Grid {
    /// Formats it for the terminal. `width` returns the width of a column, with the room before it.
    pub fn text(&self, width: impl Fn(usize) -> usize) -> String {
        let line = |row: &Vec<String>| {
            let cells = row.iter().enumerate().map(|(column, cell)| format!("{cell:>0$}", width(column)));
            cells.collect::<String>() + "\n"
        };
        self.0.iter().map(line).collect()
    }

    /// Formats it for the page, where the row at `first` stands out.
    pub fn html(&self, first: Option<usize>) -> String {
        let row = |(at, cells): (usize, &Vec<String>)| {
            let (tag, class) = (if at == 0 { "th" } else { "td" }, if first == Some(at) { " first" } else { "" });
            let cell = |cell: &String| format!("<{tag} class='number{class}'>{}</{tag}>", escape(cell));
            format!("<tr>{}</tr>", cells.iter().map(cell).collect::<String>())
        };
        let rows: String = self.0.iter().enumerate().map(row).collect();
        format!("<div class='scroll'><table>{rows}</table></div>")
    }
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
