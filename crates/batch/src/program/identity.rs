//! The names under which the history keeps a program and its input. Arguments themselves are not kept.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::queue::{BatchJob, digest};

/// Programs that take a line after `-c`.
const SHELLS: [&str; 5] = ["sh", "bash", "dash", "ksh", "zsh"];
/// The number of programs of a shell's line that its name shows.
const NAMES_MAX: usize = 4;

/// The identity of a program and its input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The file name of the program, or those of all programs in a shell's line: `cat+xz`.
    pub name: String,
    /// The name and a digest of the files of these programs: path, size and time.
    pub build: String,
    /// A digest of the arguments, and of the sizes of the files that they name.
    pub input: String,
}

impl Identity {
    pub fn of(job: &BatchJob) -> Identity {
        let directory = job.directory.as_deref().unwrap_or(Path::new(""));
        let commands = commands(job);
        let programs: Vec<&Path> = commands.iter().filter_map(|words| words.first()).map(Path::new).collect();
        let name_of =
            |program: &Path| program.file_name().unwrap_or(program.as_os_str()).to_string_lossy().into_owned();
        let mut names: Vec<String> = programs.iter().map(|program| name_of(program)).collect();
        names.dedup();
        let name = match names.get(..NAMES_MAX) {
            Some(first) if names.len() > NAMES_MAX => format!("{}+...", first.join("+")),
            _ => names.join("+"),
        };
        let about = |path: &Path| fs::metadata(path).map(|file| format!("{} {}", file.size(), file.mtime()));
        let files = programs.iter().map(|program| found(program, directory));
        let parts = files.flat_map(|file| {
            let about = file.as_ref().and_then(|path| about(path).ok()).unwrap_or_default();
            [file.map(PathBuf::into_os_string).unwrap_or_default().into_vec(), about.into_bytes()]
        });
        let parts: Vec<Vec<u8>> = parts.collect();
        let build = digest(parts.iter().map(Vec::as_slice));
        let arguments = commands.iter().flat_map(|words| &words[1..]);
        let files = arguments.map(PathBuf::from).chain(job.inputs.iter().cloned());
        let sizes: Vec<String> = files
            .filter_map(|path| fs::metadata(directory.join(path)).ok())
            .filter(fs::Metadata::is_file)
            .map(|file| file.size().to_string())
            .collect();
        let parts = job.words.iter().map(|word| word.as_bytes()).chain(sizes.iter().map(String::as_bytes));
        Identity { build: format!("{name}-{build:016x}"), input: format!("{:016x}", digest(parts)), name }
    }
}

/// Returns the words of each command that a job runs: those in a shell's line, if there are any.
fn commands(job: &BatchJob) -> Vec<Vec<OsString>> {
    let in_line = match &job.words[..] {
        [shell, .., flag, line] if flag == "-c" && SHELLS.iter().any(|name| Path::new(shell).ends_with(name)) => {
            line.to_str().map(in_shell_line).unwrap_or_default()
        }
        _ => Vec::new(),
    };
    if in_line.is_empty() { vec![job.words.clone()] } else { in_line }
}

/// Takes a shell's line apart into commands: without assignments, keywords, and where output goes. Files that are read
/// are among the words.
///
/// This is not a whole shell: it need only give the same commands for the same line, and those that a reader would
/// name.
fn in_shell_line(line: &str) -> Vec<Vec<OsString>> {
    const KEYWORDS: [&str; 13] =
        ["if", "then", "elif", "else", "fi", "while", "until", "do", "done", "{", "}", "!", "time"];
    let mut commands: Vec<Vec<OsString>> = vec![Vec::new()];
    let (mut word, mut goes_to_file) = (None::<String>, false);
    let end_word = |word: &mut Option<String>, goes_to_file: &mut bool, commands: &mut Vec<Vec<OsString>>| {
        let Some(word) = word.take() else { return };
        let command = commands.last_mut().expect("there is one");
        let is_before = command.is_empty() && (KEYWORDS.contains(&&word[..]) || word.contains('='));
        if !std::mem::take(goes_to_file) && !is_before {
            command.push(word.into());
        }
    };
    let mut letters = line.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '\'' | '"' => {
                let word = word.get_or_insert_default();
                while let Some(quoted) = letters.next().filter(|next| *next != letter) {
                    let escaped = if quoted == '\\' && letter == '"' { letters.next() } else { None };
                    word.push(escaped.unwrap_or(quoted));
                }
            }
            '\\' => word.get_or_insert_default().extend(letters.next()),
            '#' if word.is_none() => while letters.next_if(|next| *next != '\n').is_some() {},
            '<' | '>' => {
                // The number of a file is not a word.
                word = word.filter(|word| !word.bytes().all(|byte| byte.is_ascii_digit()));
                end_word(&mut word, &mut goes_to_file, &mut commands);
                goes_to_file = letter == '>' || letters.peek() == Some(&'<');
                while letters.next_if(|next| ['<', '>', '&'].contains(next)).is_some() {}
            }
            '|' | '&' | ';' | '\n' | '(' | ')' | '`' => {
                end_word(&mut word, &mut goes_to_file, &mut commands);
                goes_to_file = false;
                commands.push(Vec::new());
            }
            space if space.is_ascii_whitespace() => end_word(&mut word, &mut goes_to_file, &mut commands),
            other => word.get_or_insert_default().push(other),
        }
    }
    end_word(&mut word, &mut goes_to_file, &mut commands);
    commands
        .retain(|command| command.first().is_some_and(|program| !["", "for", "case"].iter().any(|no| program == no)));
    commands
}

/// Returns the file of a program.
fn found(program: &Path, directory: &Path) -> Option<PathBuf> {
    if program.as_os_str().as_bytes().contains(&b'/') {
        return Some(directory.join(program));
    }
    let path = std::env::var_os("PATH");
    let folders = std::env::split_paths(path.as_deref().unwrap_or(OsStr::new(""))).collect::<Vec<_>>();
    folders.into_iter().map(|folder| folder.join(program)).find(|file| file.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::Shell;

    #[test]
    fn a_program_is_known_by_its_file_and_its_input_by_arguments_and_sizes() {
        let dir = tempfile::tempdir().expect("a directory");
        let file = dir.path().join("in");
        let identity = |line: &str, size: usize| {
            fs::write(&file, vec![0; size]).expect("written");
            Identity::of(&BatchJob { directory: Some(dir.path().into()), ..Shell::default().job(line.into()) })
        };
        let first = identity("cat in", 5);
        assert_eq!((first.name.as_str(), &first), ("cat", &identity("cat in", 5)));
        assert_eq!((&identity("cat in", 6).build, identity("cat in", 6).input == first.input), (&first.build, false));
        assert_ne!(identity("cat -n in", 5).input, first.input);
        assert_ne!(identity("wc in", 5).build, first.build);
        assert_eq!(identity("./cat in", 5).name, "cat");
        // Where the output goes does not make it another program, and what it reads counts.
        assert_eq!(identity("cat in > out", 5).build, first.build);
        assert_ne!(identity("cat < in", 6).input, identity("cat < in", 5).input);
        assert_eq!(identity("cat in | wc", 5).name, "cat+wc");
        assert_ne!(identity("cat in | wc", 5).build, identity("cat in | sort", 5).build);
    }

    /// All lines with a pipe or a `>` were one program, whose phases never became known.
    #[test]
    fn a_shells_line_is_known_by_the_programs_in_it() {
        for (line, name) in [
            ("xz -c 'a; b' > /dev/null 2>&1", "xz"),
            ("LC_ALL=C sort a 2> log | uniq -c >> b &", "sort+uniq"),
            ("for i in $(seq 20); do cat \"a $i\"; done | zstd -1", "seq+cat+zstd"),
            ("cd /tmp && if test -e a; then ./b/run; fi # make", "cd+test+run"),
            ("grep -E '(1.*2|3)\\2' a|tail", "grep+tail"),
            ("echo \"a \\\" | b\" \\| c", "echo"),
            ("a; b; c; d; e", "a+b+c+d+..."),
            ("a && a; x=`b`", "a+b"),
            ("> empty", "sh"),
            ("x=1", "sh"),
            ("'", "sh"),
        ] {
            assert_eq!(Identity::of(&Shell::default().job(line.into())).name, name, "{line}");
        }
        let words = |words: [&str; 3]| Identity::of(&BatchJob::words(words.map(OsString::from).into())).name;
        assert_eq!(words(["/bin/bash", "-c", "cat a | wc"]), "cat+wc");
        assert_eq!(words(["grep", "-c", "a | b"]), "grep");
        let strict = ["bash", "-o", "pipefail", "-c", "cat a | wc"].map(OsString::from);
        assert_eq!(Identity::of(&BatchJob::words(strict.into())).name, "cat+wc");
    }
}
