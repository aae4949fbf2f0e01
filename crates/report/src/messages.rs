//! Messages on standard error, one line each.

use std::fmt::Display;
use std::io::{self, Write};

pub use crate::text::printable;

/// Prints `gristmill: ` and the message.
pub fn tell(message: impl Display) {
    line(format_args!("gristmill: {message}"));
}

/// Prints one line. If standard error is closed or full, the line is lost.
pub fn line(text: impl Display) {
    let _ = io::stderr().write_all(format!("{}\n", printable(&text.to_string())).as_bytes());
}

/// Escapes text that may have several lines.
pub fn printable_lines(text: &str) -> String {
    text.split('\n').map(printable).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_stay_lines() {
        assert_eq!(printable_lines("a\x1b\nb"), "a\\x1b\nb");
    }
}
