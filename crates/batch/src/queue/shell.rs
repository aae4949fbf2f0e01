//! The shell that runs a line, and quotes for it.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::queue::job::BatchJob;
use crate::queue::placeholder::{Placeholder, TemplatePiece};
use crate::queue::places;

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
    /// let shell = gristmill_batch::queue::Shell::parse("bash -o pipefail")?;
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
    pub fn job(&self, line: OsString) -> BatchJob {
        let name = line.to_string_lossy().into_owned();
        let words = self.words.iter().cloned().chain(["-c".into(), line]).collect();
        BatchJob { name, words, threads: 1, ..BatchJob::default() }
    }

    /// The number of words before the line.
    pub(crate) fn words_before(&self) -> usize {
        self.words.len() + 1
    }

    /// Refuses a value in the text that a command gives to a shell, where nothing quotes it. A value that is all of
    /// the text is meant to be run.
    pub(crate) fn check_words(words: &[Vec<TemplatePiece>]) -> Result<(), String> {
        let text = |word: &[TemplatePiece]| match word {
            [TemplatePiece::Text(text)] => text.clone(),
            _ => Vec::new(),
        };
        let is_value = |piece: &TemplatePiece| {
            !matches!(
                piece,
                TemplatePiece::Text(_) | TemplatePiece::Placeholder(Placeholder::Number | Placeholder::Slot)
            )
        };
        let Some((program, mut rest)) = words.split_first() else { return Ok(()) };
        if !QUOTED_AS_SH.iter().any(|name| has_name(OsStr::from_bytes(&text(program)), name)) {
            return Ok(());
        }
        // Options may stand before -c, and letters within it.
        while let Some((option, behind)) = rest.split_first() {
            rest = behind;
            match &text(option)[..] {
                [b'-', b'-', ..] => {}
                [b'-', .., b'c'] => break,
                [b'-' | b'+', .., b'o' | b'O'] => rest = rest.get(1..).unwrap_or_default(),
                [b'-' | b'+', ..] => {}
                // A script.
                _ => return Ok(()),
            }
        }
        match rest.first() {
            Some(script) if script.len() > 1 && script.iter().any(is_value) => Err(
                "a placeholder stands in the text behind -c, which a shell would run with the value as a part of it: name the shell by --shell sh instead, \
                 which quotes values, or pass the value as an argument: -- sh -c 'basename \"$1\"' sh {}"
                    .to_owned(),
            ),
            _ => Ok(()),
        }
    }

    /// Refuses a shell that does not understand the quotes of values, and placeholders that stand where these may not
    /// hold.
    pub(crate) fn check(&self, line: &[TemplatePiece]) -> Result<(), String> {
        let is_known = |word: &OsString| QUOTED_AS_SH.iter().any(|name| has_name(word, name));
        // It would give the line to a second shell, which takes the quotes off.
        let is_remote = self.words.iter().any(|word| has_name(word, "ssh"));
        if is_remote || !self.words.iter().any(is_known) {
            let name = self.words[0].to_string_lossy();
            return Err(format!(
                "values cannot be quoted for {name}: with values, --shell is one of {}",
                QUOTED_AS_SH.join(", ")
            ));
        }
        let mut places = Vec::new();
        for piece in line {
            match piece {
                TemplatePiece::Text(text) => places.extend(text.iter().copied().map(Some)),
                TemplatePiece::Placeholder(Placeholder::Number | Placeholder::Slot) => places.push(Some(b'1')),
                TemplatePiece::Placeholder(_) => places.push(None),
            }
        }
        places::check(&places)
    }
}

fn has_name(word: &OsStr, name: &str) -> bool {
    Path::new(word).file_name() == Some(OsStr::new(name))
}

/// Quotes a value in a line for the shell. Plain ones too, because of what may stand beside them: `$x` and the value
/// `y` are not `$xy`.
pub(crate) fn in_line(value: &[u8]) -> Vec<u8> {
    let inner = value.split(|byte| *byte == b'\'').collect::<Vec<_>>().join(&b"'\\''"[..]);
    [b"'", &inner[..], b"'"].concat()
}

/// Quotes a word, so that it can be pasted into a shell.
///
/// The text is printable: other bytes are written as `"$(printf '\033')"`.
///
/// ```
/// let quoted = ["a", "a b", "it's", "caf\u{e9}\x1b"].map(|word| gristmill_batch::queue::quoted(word.as_ref()));
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
        for (word, expected) in [
            ("a.b", "a.b"),
            ("--x=y", "--x=y"),
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
            assert_eq!(quoted(word.as_ref()), expected);
        }
        assert_eq!(quoted("2".as_ref()), "2");
        assert_eq!(quoted(OsStr::from_bytes(b"caf\xe9")), r#"'caf'"$(printf '\351')""#);
        assert_eq!([in_line(b"a"), in_line(b"it's")], [b"'a'".to_vec(), br"'it'\''s'".to_vec()]);
    }

    fn check(line: &str) -> Result<(), String> {
        Shell::default().check(&crate::queue::placeholder::pieces(line.as_bytes()).expect("placeholders"))
    }

    /// `n="$(basename "{}" .txt)"` ran a file with the name `$(touch hacked)`: quotes were counted as if there were no
    /// `$(`.
    #[test]
    fn a_place_where_quotes_would_not_hold_is_refused_by_name() {
        for (line, place) in [
            (r#"n="$(basename "{}" .txt)""#, "in double quotes"),
            (r#"[ "$(wc -l < "{}")" -gt 3 ]"#, "in double quotes"),
            (r#"x="`basename "{}"`""#, "in or behind backticks"),
            ("echo `cat {}`", "in or behind backticks"),
            (r#"echo "${x:-"{}"}""#, "in or behind ${...}"),
            (r#"echo "$(case x in x) echo "{}";; esac)""#, "in or behind case"),
            ("# don't stop\necho '{}'", "in single quotes"),
            ("echo a # don't\necho '{}'", "in single quotes"),
            ("echo a # {}", "in a comment"),
            ("echo \"{}\"", "in double quotes"),
            (r#"echo "\"{}""#, "in double quotes"),
            (r#"echo "it's {}""#, "in double quotes"),
            (r"echo \{}", "behind a backslash"),
            ("echo ${}", "behind a dollar sign"),
            ("echo ${1}", "behind a dollar sign"),
            ("cat << E\n{}\nE", "a here-document"),
            (r"echo $'\'' {}", "$'...'"),
            ("echo $((1 + {}))", "$((...))"),
            ("((x = {}))", "arithmetic"),
            ("a[{}]=1", "the index of an array"),
            ("a=([{}]=1)", "a parenthesis"),
            ("ls *({})", "a parenthesis"),
            ("ls >&{}", "behind >&"),
            ("ls 2>&1{}", "behind >&"),
            (
                r#"x="$(a # it's
            b {})""#,
                "a comment",
            ),
        ] {
            let wrong = check(line).expect_err(line);
            assert!(wrong.contains(place) && wrong.contains("sh -c 'basename \"$1\"' sh {}"), "{line}: {wrong}");
        }
    }

    /// The right form, `x="$(basename {})"`, was refused, and a hint led to the dangerous one.
    #[test]
    fn a_place_in_a_command_is_taken_wherever_that_command_stands() {
        for line in [
            "echo {}",
            r#"a 'b' {} "c""#,
            r"echo \' {}",
            "wc <<< {}",
            "echo '{#}'",
            r#"x="it's" {}"#,
            r#"x="$(basename {})""#,
            r#"x="$(cat "$(realpath {})/"{/})" && echo "$x" > {.}.txt"#,
            "(cd {//} && wc -l < {/}) | tee {}.out",
            "diff <(sort {1}) <(sort {2})",
            "echo $(( 1 << 2 )) {}",
            "cut -d $'\\t' -f 1 {}",
            "# it's\necho {}",
            "a; # it's\n{}",
            "echo a#b 'c' {}",
            "echo ${x%.txt} \"${HOME}/$y\" $$ {}",
            "if test -e {}; then rm {}; fi",
            "f() { wc \"$@\"; }; f {}",
            "sort \\\n  {}",
            "ls {} 2>&1 3>&- <&0 >&2; cat {}",
            "case {} in *.gz) zcat {};; *) cat {};; esac",
            "[[ -e {} ]] && a[1]={}",
            // Nothing is behind what is not known.
            "cat {} << E\n'\nE",
            "cat {} `date",
        ] {
            assert_eq!(check(line), Ok(()), "{line}");
        }
    }

    /// `-- sh -c 'wc -l {}'` ran a file with the name `$(touch hacked)`, though values are said to reach a program as
    /// they are.
    #[test]
    fn a_value_is_no_part_of_a_text_that_a_command_gives_to_a_shell() {
        let check = |words: &[&str]| {
            let words =
                words.iter().map(|word| crate::queue::placeholder::pieces(word.as_bytes()).expect("placeholders"));
            Shell::check_words(&words.collect::<Vec<_>>())
        };
        for words in [&["sh", "-c", "wc -l {}"][..], &["/bin/bash", "-o", "pipefail", "-ec", "cat \"{.}\" | wc"]] {
            assert!(check(words).is_err_and(|wrong| wrong.contains("--shell sh")), "{words:?}");
        }
        for words in [
            &["sh", "-c", "wc -l \"$1\"", "sh", "{}"][..],
            &["sh", "-c", "{}"],
            &["sh", "-c", "echo {#} {%}", "{}.txt"],
            &["sh", "run.sh", "-c", "a{}"],
            &["grep", "sh", "-c", "a{}"],
            &["python3", "-c", "print({})"],
            &["sh"],
            &["sh", "-c"],
        ] {
            assert_eq!(check(words), Ok(()), "{words:?}");
        }
    }

    #[test]
    fn a_shell_with_other_quotes_is_refused() {
        for shell in ["/usr/bin/fish", "ssh host bash"] {
            let wrong = Shell::parse(shell).and_then(|shell| shell.check(&[]));
            assert!(wrong.is_err_and(|wrong| wrong.starts_with("values cannot be quoted for ")), "{shell}");
        }
        assert_eq!(Shell::parse("busybox sh").and_then(|shell| shell.check(&[])), Ok(()));
        assert!(Shell::parse("  ").is_err());
    }
}
