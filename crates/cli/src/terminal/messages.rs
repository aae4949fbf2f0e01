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

/// What the library calls a setting, and how the command line sets it. The first that is found counts.
const OPTIONS: [(&str, &str); 15] = [
    ("Job::skip_bad_records(1)", "--skip-bad-records 1"),
    ("Job::skip_bad_records", "--skip-bad-records"),
    ("Job::record_bytes_max", "--record-bytes-max"),
    ("Job::combine_after", "--combine-after"),
    ("Job::max_failures", "--max-failures"),
    ("Job::keep_bytes", "--keep-bytes"),
    ("Job::spill_dirs", "--spill-dir"),
    ("Job::checkpoint", "--checkpoint"),
    ("Job::memory", "--memory"),
    ("Input::skip_bad_files", "--skip-bad-files"),
    ("Input::spool_dir", "--spill-dir"),
    ("Input::read_once", "--no-retry"),
    ("Buffer::Array", "--buffer array"),
    ("Buffer::Hash", "--buffer hash"),
    (" (MapReduce::keys)", ""),
];

/// The text of an error of the library, in which settings are called what `command` calls them. What it cannot set is left out.
pub fn of_the_command(text: &str, command: &clap::Command) -> String {
    let has = |option: &str| {
        let name = option.trim_start_matches("--").split(' ').next();
        command.get_arguments().any(|argument| argument.get_long() == name)
    };
    OPTIONS.iter().fold(text.to_owned(), |text, (setting, option)| match option.is_empty() || has(option) {
        true => text.replace(setting, option),
        false => text.replace(&format!(" or {setting}"), "").replace(setting, option),
    })
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
    fn errors_call_settings_what_the_command_calls_them() {
        let command = clap::Command::new("sort").args(["memory", "buffer"].map(|name| clap::Arg::new(name).long(name)));
        for (text, expected) in [
            ("Raise Job::memory, or take fewer", "Raise --memory, or take fewer"),
            ("Rerun with Job::skip_bad_records(1) to set", "Rerun with --skip-bad-records 1 to set"),
            ("Raise Job::memory or Job::keep_bytes, or stop", "Raise --memory, or stop"),
            (
                "declares no domain of keys (MapReduce::keys); use Buffer::Hash",
                "declares no domain of keys; use --buffer hash",
            ),
            ("nothing of it", "nothing of it"),
        ] {
            assert_eq!(of_the_command(text, &command), expected);
        }
    }

    #[test]
    fn every_setting_that_the_library_names_in_an_error_has_an_option() {
        fn sources(folder: &std::path::Path, to: &mut String) {
            for entry in std::fs::read_dir(folder).expect("the library lies beside the command").flatten() {
                let path = entry.path();
                if path.is_dir() {
                    sources(&path, to);
                } else if path.extension().is_some_and(|extension| extension == "rs") {
                    to.push_str(&std::fs::read_to_string(&path).expect("text"));
                }
            }
        }
        let mut text = String::new();
        sources(&std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../engine/src"), &mut text);
        let is_comment = |line: &&str| line.trim_start().starts_with("//") || line.trim_start().starts_with("#[doc");
        let mut found = 0;
        for line in text.lines().filter(|line| !is_comment(line)) {
            for quoted in line.split('"').skip(1).step_by(2) {
                for name in ["Job::", "Input::"] {
                    for (at, _) in quoted.match_indices(name) {
                        found += 1;
                        // Not a setting: what a program calls that has shared outputs.
                        let is_known = OPTIONS.iter().any(|(setting, _)| quoted[at..].starts_with(setting))
                            || quoted[at..].starts_with("Job::writes");
                        assert!(is_known, "{quoted} names a setting that has no option here");
                    }
                }
            }
        }
        assert!(found > 10, "errors name settings");
    }
}
