//! The shell that runs a line, and quotes for it.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::job::Job;
use crate::placeholder::{Piece, Placeholder};

/// The shells that understand the quotes of [`in_line`].
const QUOTED_AS_SH: [&str; 8] = ["sh", "bash", "dash", "ash", "ksh", "mksh", "yash", "zsh"];

/// Words that a shell does not take as the name of a program.
const RESERVED: [&str; 20] = [
    "!", "case", "coproc", "do", "done", "elif", "else", "esac", "fi", "for", "function", "if", "in", "select", "then",
    "time", "until", "while", "repeat", "foreach",
];

/// A program that runs a line: `sh`, or another one with its options.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shell {
    words: Vec<OsString>,
}

impl Default for Shell {
    fn default() -> Shell {
        Shell { words: vec!["sh".into()] }
    }
}

impl Shell {
    /// Makes a shell of its name and options, which blanks separate.
    ///
    /// # Errors
    ///
    /// A sentence, if there is no name.
    ///
    /// ```
    /// let shell = gristmill_queue::Shell::parse("bash -o pipefail")?;
    /// assert_eq!(shell.job("zcat a | wc".into()).words, ["bash", "-o", "pipefail", "-c", "zcat a | wc"]);
    /// # Ok::<(), String>(())
    /// ```
    pub fn parse(text: &str) -> Result<Shell, String> {
        let words: Vec<OsString> = text.split_ascii_whitespace().map(OsString::from).collect();
        if words.is_empty() {
            return Err("write the name of a shell, such as bash, or 'bash -o pipefail'".to_owned());
        }
        Ok(Shell { words })
    }

    /// Makes a job of a line.
    pub fn job(&self, line: OsString) -> Job {
        let name = line.to_string_lossy().into_owned();
        let words = self.words.iter().cloned().chain(["-c".into(), line]).collect();
        Job { name, words, threads: 1, ..Job::default() }
    }

    /// The number of words before the line.
    pub(crate) fn words_before(&self) -> usize {
        self.words.len() + 1
    }

    /// Refuses a shell that does not understand the quotes of values, and placeholders that stand in quotes.
    pub(crate) fn check(&self, line: &[Piece]) -> Result<(), String> {
        let is_known =
            |word: &OsString| QUOTED_AS_SH.iter().any(|name| Path::new(word).file_name() == Some(OsStr::new(name)));
        if !self.words.iter().any(is_known) {
            let name = self.words[0].to_string_lossy();
            return Err(format!(
                "values cannot be quoted for {name}: with values, --shell is one of {}",
                QUOTED_AS_SH.join(", ")
            ));
        }
        let mut quotes = Quotes::default();
        for piece in line {
            match piece {
                Piece::Text(text) => text.iter().for_each(|byte| quotes.take(*byte)),
                Piece::Placeholder(Placeholder::Number | Placeholder::Slot) => quotes.take(b'1'),
                Piece::Placeholder(_) if quotes.are_open() => {
                    return Err(
                        "a placeholder stands in quotes, in backticks or behind <<, but its value is quoted already: \
                         write it outside, as in \"before \"{}\" after\""
                            .to_owned(),
                    );
                }
                Piece::Placeholder(_) => quotes.take(b'v'),
            }
        }
        Ok(())
    }
}

/// The quotes that are open somewhere in a line.
#[derive(Default)]
struct Quotes {
    /// The sign that ends them; `<` for never.
    open: Option<u8>,
    /// The two bytes before.
    before: [u8; 2],
    is_escaped: bool,
}

impl Quotes {
    fn are_open(&self) -> bool {
        self.open.is_some() || self.is_escaped
    }

    fn take(&mut self, byte: u8) {
        let was_escaped = std::mem::take(&mut self.is_escaped);
        match (self.open, byte) {
            _ if was_escaped => {}
            (None | Some(b'"'), b'\\') => self.is_escaped = true,
            (None, b'\'') if self.before[1] == b'$' => self.open = Some(b'<'),
            (None, b'\'' | b'"' | b'`') => self.open = Some(byte),
            // The shells differ in where these end, so they are taken to have no end.
            (None, after) if self.before == *b"<<" && after != b'<' && after != b'=' => self.open = Some(b'<'),
            (Some(quote), byte) if quote == byte && quote != b'<' => self.open = None,
            _ => {}
        }
        self.before = if self.before == *b"<<" && byte == b'<' { [0, 0] } else { [self.before[1], byte] };
    }
}

/// Quotes a value in a line for the shell, where anything may stand beside it.
pub(crate) fn in_line(value: &[u8]) -> Vec<u8> {
    // Before a >, a number would be that of a file.
    if is_plain(value) && !value.iter().all(u8::is_ascii_digit) {
        return value.to_vec();
    }
    let inner = value.split(|byte| *byte == b'\'').collect::<Vec<_>>().join(&b"'\\''"[..]);
    [b"'", &inner[..], b"'"].concat()
}

/// Quotes a word, so that it can be pasted into a shell.
///
/// The text is printable: other bytes are written as `"$(printf '\033')"`.
///
/// ```
/// let quoted = ["a", "a b", "it's", "caf\u{e9}\x1b"].map(|word| gristmill_queue::quoted(word.as_ref()));
/// assert_eq!(quoted, ["a", "'a b'", r"'it'\''s'", r#"'café'"$(printf '\033')""#]);
/// ```
pub fn quoted(word: &OsStr) -> String {
    let bytes = word.as_bytes();
    if is_plain(bytes) {
        return String::from_utf8_lossy(bytes).into_owned();
    }
    let mut quoted = String::new();
    let mut plain = String::new();
    let end_plain = |plain: &mut String, quoted: &mut String| {
        if !plain.is_empty() {
            quoted.push_str(&format!("'{}'", plain.replace('\'', r"'\''")));
            plain.clear();
        }
    };
    for chunk in bytes.utf8_chunks() {
        for letter in chunk.valid().chars() {
            // Other letters may move the cursor of a terminal, or turn the direction of text.
            if letter == '\n' || letter == ' ' || letter.is_ascii_graphic() || letter.is_alphanumeric() {
                plain.push(letter);
            } else {
                end_plain(&mut plain, &mut quoted);
                quoted.push_str(&octal(letter.encode_utf8(&mut [0; 4]).as_bytes()));
            }
        }
        if !chunk.invalid().is_empty() {
            end_plain(&mut plain, &mut quoted);
            quoted.push_str(&octal(chunk.invalid()));
        }
    }
    end_plain(&mut plain, &mut quoted);
    if quoted.is_empty() { "''".to_owned() } else { quoted }
}

fn octal(bytes: &[u8]) -> String {
    let digits: String = bytes.iter().map(|byte| format!("\\{byte:03o}")).collect();
    format!("\"$(printf '{digits}')\"")
}

/// Returns true for a word that means itself in every shell.
fn is_plain(word: &[u8]) -> bool {
    let is_safe = |byte: &u8| byte.is_ascii_alphanumeric() || b"_-./:=@%+,".contains(byte);
    let may_assign = word.contains(&b'=') && !word.starts_with(b"-");
    let is_reserved = RESERVED.iter().any(|reserved| reserved.as_bytes() == word);
    !word.is_empty() && word.iter().all(is_safe) && !may_assign && !is_reserved
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_words_that_mean_themselves_stay_without_quotes() {
        for (value, expected) in [
            ("a.b", "a.b"),
            ("--x=y", "--x=y"),
            ("2", "'2'"),
            ("A=b", "'A=b'"),
            ("if", "'if'"),
            ("", "''"),
            ("~", "'~'"),
            ("-x", "-x"),
            ("a'b", r"'a'\''b'"),
            ("$(x)", "'$(x)'"),
            ("*", "'*'"),
            ("#", "'#'"),
        ] {
            assert_eq!(String::from_utf8(in_line(value.as_bytes())).as_deref(), Ok(expected));
        }
        assert_eq!(quoted("2".as_ref()), "2");
        assert_eq!(quoted(OsStr::from_bytes(b"caf\xe9")), r#"'caf'"$(printf '\351')""#);
    }

    /// In double quotes, a file named `$(touch hacked)` would be a command again, quoted or not.
    #[test]
    fn a_place_in_quotes_of_the_line_is_refused() {
        let check =
            |line: &str| Shell::default().check(&crate::placeholder::pieces(line.as_bytes()).expect("placeholders"));
        for line in ["echo {}", "a 'b' {} \"c\"", r"echo \' {}", "wc <<< {}", "echo '{#}'", "x=\"it's\" {}"] {
            assert_eq!(check(line), Ok(()), "{line}");
        }
        for line in [
            "echo \"{}\"",
            "echo '{}'",
            "echo `cat {}`",
            "cat << E\n{}\nE",
            r"echo \{}",
            "echo \"\\\"{}\"",
            "echo \"it's {}\"",
            r"echo $'\'{}'",
        ] {
            assert!(check(line).is_err_and(|wrong| wrong.contains("in quotes")), "{line}");
        }
        let fish = Shell::parse("/usr/bin/fish").and_then(|shell| shell.check(&[]));
        assert!(fish.is_err_and(|wrong| wrong.contains("quoted for /usr/bin/fish")));
        assert_eq!(Shell::parse("busybox sh").and_then(|shell| shell.check(&[])), Ok(()));
        assert!(Shell::parse("  ").is_err());
    }
}
