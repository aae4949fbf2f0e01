//! Messages: what goes to standard error, a line each.

use std::fmt::Display;
use std::io::{self, Write};

/// Prints `gristmill: ` and the message.
pub fn tell(message: impl Display) {
    line(format_args!("gristmill: {message}"));
}

/// Prints one line. A closed or full standard error has nobody to tell.
pub fn line(text: impl Display) {
    let _ = io::stderr().write_all(format!("{}\n", printable(&text.to_string())).as_bytes());
}

/// The text with its control characters as escapes: the name of a file may hold a line end, or what moves the cursor.
pub fn printable(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\n' | '\r' | '\t' => shown.extend(character.escape_default()),
            '\0'..='\x7f' if character.is_control() => shown.push_str(&format!("\\x{:02x}", character as u32)),
            _ if character.is_control() => shown.extend(character.escape_unicode()),
            _ => shown.push(character),
        }
    }
    shown
}

/// The text of an error without what it says to those who call the library: after the name of an option, that of a
/// method, as in `--memory (Job::memory)`.
pub fn of_the_command(text: &str) -> String {
    let mut said = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((at, named)) = ["Job::", "Input::"].iter().filter_map(|named| Some((rest.find(named)?, named))).min()
    {
        let (before, method) = rest.split_at(at);
        let is_over = |letter: char| !letter.is_ascii_lowercase() && letter != '_';
        let end = method[named.len()..].find(is_over).unwrap_or(0) + named.len();
        match (before.strip_suffix(" ("), method[end..].strip_prefix(')')) {
            (Some(before), Some(behind)) => {
                said.push_str(before);
                rest = behind;
            }
            _ => {
                said.push_str(before.strip_suffix(", ").unwrap_or(before));
                rest = &method[end..];
            }
        }
    }
    said + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_move_the_cursor_is_shown_as_an_escape() {
        assert_eq!(printable("a\nb\x1b[2J\u{9b}é \u{7f}"), "a\\nb\\x1b[2J\\u{9b}é \\x7f");
    }

    #[test]
    fn a_user_of_the_command_hears_nothing_of_methods() {
        for (text, expected) in [
            ("Raise --memory (Job::memory), or take fewer", "Raise --memory, or take fewer"),
            ("aside (--skip-bad-records, Job::skip_bad_records) had", "aside (--skip-bad-records) had"),
            ("--memory (Job::memory) or --keep-bytes (Job::keep_bytes), or", "--memory or --keep-bytes, or"),
            ("folder with --spill-dir (Input::spool_dir)", "folder with --spill-dir"),
            ("nothing of it", "nothing of it"),
        ] {
            assert_eq!(of_the_command(text), expected);
        }
    }
}
