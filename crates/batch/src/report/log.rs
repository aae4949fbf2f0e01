//! The log: a table of all attempts, a line for each, in a file with tabs (`--log FILE.tsv`).
//!
//! Names and commands are escaped as in a text of JSON, without its quotes: `\t`, `\n`, `\"`, `\\`, `\u001b`. So each
//! line is an attempt, and each tab separates two fields, for `cut` as for `pandas.read_csv(sep="\t")`. Bytes that are
//! not UTF-8 are written as Python does (`surrogateescape`): `\udcff` for the byte ff.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use crate::queue::{BatchJob, quoted};
use gristmill::Error;
use gristmill_os::folder::Entry;

use super::record::Record;

/// The names of the fields. Only `job`, `attempt`, `name`, `status` and `command` have a value in the line of a job
/// without an end.
const HEADER: &str =
    "job\tattempt\tname\tstart_utc\tseconds\tstatus\tmemory_bytes\tuser_seconds\tsystem_seconds\tcommand\n";

/// A log that is open.
pub struct Log {
    path: PathBuf,
    file: File,
    /// A line could not be written, and none was since.
    is_broken: Cell<bool>,
}

impl Log {
    /// Opens a log for its next lines, or makes one.
    ///
    /// # Errors
    ///
    /// When the file is none of this user's own regular files, when it is no such log, or when it cannot be written.
    pub fn open(path: &Path) -> Result<Log, Error> {
        let failed = |source| Error::Output { path: path.to_owned(), source };
        let mut file = Entry::find(path).and_then(|entry| entry.open_own(true)).map_err(failed)?;
        let mut head = Vec::new();
        (&mut file).take(HEADER.len() as u64).read_to_end(&mut head).map_err(failed)?;
        if !HEADER.as_bytes().starts_with(&head) {
            return Err(Error::Setting(format!(
                "{} is not a log of gristmill batch: its first line is another. Name another file, or remove it",
                path.display()
            )));
        }
        if head.len() < HEADER.len() {
            // It is new, or was cut off in its first line.
            file.set_len(0).and_then(|()| file.write_all(HEADER.as_bytes())).map_err(failed)?;
        } else {
            cut_torn_line(&file).map_err(failed)?;
        }
        Ok(Log { path: path.to_owned(), file, is_broken: Cell::new(false) })
    }

    /// Writes the line of an attempt.
    ///
    /// # Errors
    ///
    /// A sentence, the first time that a line cannot be written. No further ones are.
    pub fn attempt(&self, job: &BatchJob, record: &Record) -> Result<(), String> {
        let start = humantime::format_rfc3339_millis(UNIX_EPOCH + Duration::from_millis(record.at_ms)).to_string();
        let seconds = |us: u64| format!("{:.6}", us as f64 / 1e6);
        self.line(&[
            &(record.job + 1).to_string(),
            &record.attempt.to_string(),
            &escaped(job.name.as_bytes()),
            start.trim_end_matches('Z').replace('T', " ").as_str(),
            &format!("{:.3}", record.took.as_secs_f64()),
            &escaped(record.status().as_bytes()),
            &record.used.memory_bytes.to_string(),
            &seconds(record.used.user_us),
            &seconds(record.used.sys_us),
            &command(job),
        ])
    }

    /// Writes the line of a job that has no end when the queue is over.
    ///
    /// # Errors
    ///
    /// As [`Log::attempt`].
    pub fn left(&self, number: usize, job: &BatchJob, status: &str) -> Result<(), String> {
        // Nobody knows in which slot it would have run, but one there is.
        let (number, name, command) =
            ((number + 1).to_string(), escaped(job.name.as_bytes()), command(&job.in_slot(1)));
        self.line(&[&number, "0", &name, "", "", status, "", "", "", &command])
    }

    fn line(&self, fields: &[&str]) -> Result<(), String> {
        if self.is_broken.get() {
            return Ok(());
        }
        // In one piece, so that lines of two queues do not mix.
        (&self.file).write_all(format!("{}\n", fields.join("\t")).as_bytes()).map_err(|error| {
            self.is_broken.set(true);
            let path = self.path.display();
            format!("the log {path} cannot be written: {error}. The queue goes on, and what ends from now on is missing there")
        })
    }
}

/// Cuts off what follows the last whole line, after a crash or on a disk that was full.
fn cut_torn_line(file: &File) -> io::Result<()> {
    let mut end = file.metadata()?.len();
    let mut piece = [0; 4096];
    while end > 0 {
        let begin = end.saturating_sub(piece.len() as u64);
        let bytes = &mut piece[..(end - begin) as usize];
        file.read_exact_at(bytes, begin)?;
        if let Some(at) = bytes.iter().rposition(|byte| *byte == b'\n') {
            let whole = begin + at as u64 + 1;
            return if whole < file.metadata()?.len() { file.set_len(whole) } else { Ok(()) };
        }
        end = begin;
    }
    Ok(())
}

/// Returns the command of a job: the line for the shell, or its words, quoted where a shell would change them.
fn command(job: &BatchJob) -> String {
    match &job.words[..] {
        [shell, flag, line] if shell == "sh" && flag == "-c" => escaped(line.as_bytes()),
        words => escaped(words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ").as_bytes()),
    }
}

/// Escapes a text for a field.
fn escaped(bytes: &[u8]) -> String {
    let mut text = String::new();
    for chunk in bytes.utf8_chunks() {
        let quoted = serde_json::to_string(chunk.valid()).expect("a text has a form in JSON");
        text.push_str(&quoted[1..quoted.len() - 1]);
        chunk.invalid().iter().for_each(|byte| text.push_str(&format!("\\udc{byte:02x}")));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::Shell;

    #[test]
    fn fields_have_no_tabs_line_ends_or_quotes() {
        assert_eq!(escaped(b"a\t\"b\"\\\n\r\x1b\xff\xc3\xa9"), "a\\t\\\"b\\\"\\\\\\n\\r\\u001b\\udcff\u{e9}");
        assert_eq!(command(&Shell::default().job("sort a | uniq".into())), "sort a | uniq");
        assert_eq!(command(&BatchJob::words(vec!["cp".into(), "it's b".into(), "".into()])), "cp 'it'\\\\''s b' ''");
    }

    #[test]
    fn a_torn_line_is_cut_off_and_whole_ones_stay() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("log.tsv");
        let long = format!("{HEADER}1\t1\n{}", "x".repeat(10_000));
        for (before, after) in
            [("", HEADER), ("job\tatt", HEADER), (HEADER, HEADER), (&long, &format!("{HEADER}1\t1\n"))]
        {
            std::fs::write(&path, before).expect("written");
            drop(Log::open(&path).unwrap_or_else(|error| panic!("{error}")));
            assert_eq!(std::fs::read_to_string(&path).expect("there"), *after, "{before}");
        }
    }
}
