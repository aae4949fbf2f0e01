//! The command under test, and ten sequential lines that compute the expected answer.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// A folder for the files of a test, removed at its end.
#[allow(dead_code)]
pub struct Folder(tempfile::TempDir);

#[allow(dead_code)]
impl Folder {
    pub fn new() -> Folder {
        Folder(tempfile::tempdir().expect("a directory"))
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Writes a file and returns its path.
    pub fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path().join(name);
        fs::write(&path, content).expect("written");
        path
    }
}

/// The program under test. The tests of `gristmill-lab` use these functions, too.
pub const PROGRAM: &str = match (option_env!("CARGO_BIN_EXE_gristmill"), option_env!("CARGO_BIN_EXE_gristmill-lab")) {
    (Some(program), _) | (None, Some(program)) => program,
    (None, None) => panic!("no program is tested"),
};

/// Returns the program under test with empty standard input.
#[allow(dead_code)]
pub fn gristmill<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Command {
    let mut command = Command::new(PROGRAM);
    command.args(arguments).stdin(Stdio::null());
    // Tests of `make test &` waited for ever for a queue that rightly ignored Ctrl-C. No test sends SIGHUP, so a run
    // under `nohup` survives its terminal.
    gristmill_os::signals::heed(&mut command);
    command
}

/// Returns `gristmill word-count` with empty standard input and two workers.
#[allow(dead_code)]
pub fn word_count<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Command {
    let mut command = Command::new(PROGRAM);
    command.arg("word-count").args(arguments).stdin(Stdio::null());
    command
}

/// Returns the answer for `text` as TSV, from ten sequential lines.
#[allow(dead_code)]
pub fn oracle(text: &[u8], alpha: bool) -> Vec<u8> {
    let mut counts: BTreeMap<Vec<u8>, u64> = BTreeMap::new();
    let text = if alpha { text.to_ascii_uppercase() } else { text.to_vec() };
    let separates = |byte: &u8| {
        if alpha { !byte.is_ascii_uppercase() && *byte != b'\'' } else { b" \t\n\x0b\x0c\r".contains(byte) }
    };
    for word in text.split(separates) {
        let first = if alpha { word.iter().position(|byte| *byte != b'\'') } else { Some(0) };
        let word = &word[first.unwrap_or(word.len())..];
        if !word.is_empty() {
            *counts.entry(word.to_vec()).or_default() += 1;
        }
    }
    counts
        .iter()
        .flat_map(|(word, count)| [&escaped(word)[..], b"\t", count.to_string().as_bytes(), b"\n"].concat())
        .collect()
}

/// Escapes a field as in PostgreSQL's text format.
#[allow(dead_code)]
pub fn escaped(field: &[u8]) -> Vec<u8> {
    let with_escape = |byte: &u8| match *byte {
        b'\\' => b"\\\\".to_vec(),
        b'\t' => b"\\t".to_vec(),
        b'\n' => b"\\n".to_vec(),
        b'\r' => b"\\r".to_vec(),
        0x08 => b"\\b".to_vec(),
        0x0b => b"\\v".to_vec(),
        0x0c => b"\\f".to_vec(),
        other => vec![other],
    };
    field.iter().flat_map(with_escape).collect()
}

/// Returns the standard output of a run that succeeds without complaints.
pub fn answer(command: &mut Command) -> Vec<u8> {
    let Output { status, stdout, stderr } = command.output().expect("the command starts");
    let complaint = String::from_utf8_lossy(&stderr);
    assert!(status.success() && complaint.is_empty(), "{command:?}\n{status}: {complaint}");
    stdout
}

/// Returns the one-line complaint of a run that fails with `status` and prints no result.
#[allow(dead_code)]
pub fn complaint(command: &mut Command, status: i32) -> String {
    let output = command.output().expect("the command starts");
    let complaint = String::from_utf8(output.stderr).expect("messages are text");
    assert_eq!(output.status.code(), Some(status), "{command:?}: {complaint}");
    assert!(output.stdout.is_empty(), "{command:?} printed a result");
    complaint
}

/// Returns the names in a directory, including hidden ones.
#[allow(dead_code)]
pub fn names(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).expect("a directory");
    let mut names: Vec<_> =
        entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// Copies the program to `path`, for another user or another name.
///
/// A separate process copies it: another test might fork this one while the copy is open for writing, and the kernel
/// would then refuse to run the copy.
#[allow(dead_code)]
pub fn copy_of_program(path: impl AsRef<Path>) {
    let copied = Command::new("cp").arg(PROGRAM).arg(path.as_ref()).status();
    assert!(copied.expect("cp starts").success());
}
