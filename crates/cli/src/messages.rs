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

/// The text with escapes in the place of what a terminal does not show as it is: control characters, which move the cursor or end
/// the line, and characters that have no width or turn the order of others around.
pub fn printable(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\n' | '\r' | '\t' => shown.extend(character.escape_default()),
            '\0'..='\x7f' if character.is_control() => shown.push_str(&format!("\\x{:02x}", character as u32)),
            _ if character.is_control() || is_unseen(character) => shown.extend(character.escape_unicode()),
            _ => shown.push(character),
        }
    }
    shown
}

/// The same for what may have more than one line.
pub fn printable_lines(text: &str) -> String {
    text.split('\n').map(printable).collect::<Vec<_>>().join("\n")
}

/// Characters that Unicode calls formats or separators of lines and paragraphs, fillers without ink, and tags.
fn is_unseen(character: char) -> bool {
    matches!(character,
        '\u{ad}' | '\u{34f}' | '\u{600}'..='\u{605}' | '\u{61c}' | '\u{6dd}' | '\u{70f}' | '\u{890}'..='\u{891}' | '\u{8e2}'
        | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}' | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}'
        | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{feff}' | '\u{ffa0}'
        | '\u{fff0}'..='\u{fffb}' | '\u{110bd}' | '\u{110cd}' | '\u{13430}'..='\u{1343f}' | '\u{1bca0}'..='\u{1bca3}'
        | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// The text of an error without what it says to those who call the library: after the name of an option, that of a
/// method, as in `--memory (Job::memory)`.
pub fn of_the_command(text: &str) -> String {
    let mut said = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((at, named)) =
        ["Job::", "Input::", "MapReduce::"].iter().filter_map(|named| Some((rest.find(named)?, named))).min()
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
        // A name that ends with gpj.exe read backwards looked like that of a picture.
        assert_eq!(printable("a\u{202e}gpj.exe\u{200b}\u{2066}"), "a\\u{202e}gpj.exe\\u{200b}\\u{2066}");
        assert_eq!(printable("naïve 日本 עברית 🎉"), "naïve 日本 עברית 🎉");
        assert_eq!(printable_lines("a\x1b\nb"), "a\\x1b\nb");
    }

    #[test]
    fn a_user_of_the_command_hears_nothing_of_methods() {
        for (text, expected) in [
            ("Raise --memory (Job::memory), or take fewer", "Raise --memory, or take fewer"),
            ("aside (--skip-bad-records, Job::skip_bad_records) had", "aside (--skip-bad-records) had"),
            ("--memory (Job::memory) or --keep-bytes (Job::keep_bytes), or", "--memory or --keep-bytes, or"),
            ("folder with --spill-dir (Input::spool_dir)", "folder with --spill-dir"),
            ("declares no domain of keys (MapReduce::keys); use", "declares no domain of keys; use"),
            ("nothing of it", "nothing of it"),
        ] {
            assert_eq!(of_the_command(text), expected);
        }
    }
}
