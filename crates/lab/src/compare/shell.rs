//! Shell quoting, so that the commands in the report can be copied and run.

use std::ffi::OsStr;
use std::fmt::Write;
use std::os::unix::ffi::OsStrExt;

/// Joins words to a command line.
pub fn line<W: AsRef<OsStr>>(words: impl IntoIterator<Item = W>) -> String {
    words.into_iter().map(|word| quoted(word.as_ref())).collect::<Vec<_>>().join(" ")
}

/// Quotes a word if a shell would change it.
pub fn quoted(word: &OsStr) -> String {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_./:=,+@%".contains(byte);
    match word.to_str() {
        Some(text) if !text.is_empty() && text.bytes().all(|byte| is_plain(&byte)) => text.to_owned(),
        Some(text) if !text.contains(char::is_control) => format!("'{}'", text.replace('\'', r"'\''")),
        // bash, zsh and ksh understand this form.
        _ => {
            let mut escaped = "$'".to_owned();
            for byte in word.as_bytes() {
                match byte {
                    b'\'' | b'\\' => write!(escaped, "\\{}", *byte as char),
                    b' '..=b'~' => write!(escaped, "{}", *byte as char),
                    _ => write!(escaped, "\\{byte:03o}"),
                }
                .expect("a string takes everything");
            }
            escaped + "'"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_reads_back_the_same_words() {
        let words = ["printf", "%s|", "a b", "it's", "", "$HOME", "-k=1", "é", "#", "~", "a\\b"];
        let told = std::process::Command::new("sh").arg("-c").arg(line(words)).output().expect("a shell");
        assert_eq!(String::from_utf8_lossy(&told.stdout), words[2..].join("|") + "|");
    }

    #[test]
    fn bytes_that_are_not_utf8_are_escaped() {
        assert_eq!(quoted(OsStr::from_bytes(b"a\xff\n'b")), r"$'a\377\012\'b'");
    }
}
