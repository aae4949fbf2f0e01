//! The file of bad records and files: a line of JSON for each, with its place, its cause, and the record itself.

use std::cell::RefCell;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use gristmill::files::BadFile;
use gristmill::stats::BadRecord;
use serde_json::{Value, json};

use crate::output::side_files::WholeFile;
use crate::terminal::failure::Failure;
use crate::terminal::messages::tell;
use crate::terminal::settings::as_options;
use gristmill_report::text::counted;

/// The file, written when the job has ended. It appears only if something was set aside.
pub struct BadRecords {
    file: WholeFile,
    /// Whether the path is [`unused_name`].
    is_default: bool,
    found: RefCell<Vec<BadRecord>>,
}

impl BadRecords {
    /// Begins the file, so that a failure to write shows before the job begins. If `is_default`, it gets another
    /// [`unused_name`] if somebody makes a file at `path` meanwhile.
    pub fn open(path: &Path, is_default: bool) -> Result<BadRecords, Failure> {
        Ok(BadRecords { file: WholeFile::begin(path)?, is_default, found: RefCell::default() })
    }

    /// Adds the records that one job has set aside.
    pub fn take(&self, found: &[BadRecord]) {
        self.found.borrow_mut().extend_from_slice(found);
    }

    /// Writes the file, and reports it unless `quiet`.
    pub fn finish(self, files: &[BadFile], quiet: bool) -> Result<(), Failure> {
        if self.is_default && is_there(&self.file.path) {
            let anew = BadRecords::open(&unused_name(), false)?;
            anew.take(&self.found.take());
            return anew.finish(files, quiet);
        }
        let found = self.found.into_inner();
        if found.is_empty() && files.is_empty() {
            return Ok(());
        }
        let path = self.file.path.clone();
        let mut lines = files.iter().map(line_of_file).chain(found.iter().map(line_of_record));
        self.file.write(|to| lines.try_for_each(|line| writeln!(to, "{line}")))?;
        if !quiet {
            let both = [(files.len(), "file"), (found.len(), "record")].into_iter().filter(|(count, _)| *count > 0);
            let what: Vec<String> = both.map(|(count, noun)| counted(count as u64, noun)).collect();
            let were = if files.len() + found.len() == 1 { "was" } else { "were" };
            let (what, path) = (what.join(" and "), path.display());
            tell(format_args!("{what} {were} set aside and not counted; {path} says which and why"));
        }
        Ok(())
    }
}

/// Returns the place of the list: as asked for, beside the output, or in the working directory.
pub fn place(asked: Option<&Path>, output: Option<&Path>) -> PathBuf {
    match (asked, output) {
        (Some(path), _) => path.to_owned(),
        (None, Some(output)) => {
            let mut name = output.to_owned().into_os_string();
            name.push(".bad.jsonl");
            name.into()
        }
        (None, None) => unused_name(),
    }
}

/// Returns the name of the list if no option gives one: the first of `bad-records.jsonl`, `bad-records.2.jsonl` and so
/// on that is no file yet, so that the list of an earlier run is kept.
fn unused_name() -> PathBuf {
    let mut names = (1..).map(|number| match number {
        1 => PathBuf::from("bad-records.jsonl"),
        _ => PathBuf::from(format!("bad-records.{number}.jsonl")),
    });
    names.find(|name| !is_there(name)).expect("numbers do not end")
}

fn is_there(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

fn line_of_file(bad: &BadFile) -> Value {
    let mut line = json!({ "cause": as_options(&bad.cause) });
    set_bytes(&mut line, "file", bad.path.as_os_str().as_bytes());
    line
}

fn line_of_record(bad: &BadRecord) -> Value {
    let mut line = json!({ "line": bad.line, "offset": bad.offset, "cause": as_options(&bad.cause) });
    set_bytes(&mut line, "file", bad.path.as_os_str().as_bytes());
    set_bytes(&mut line, "record", &bad.record);
    line
}

/// Sets a member to bytes that are text; otherwise sets `<name>_hex` to them in hexadecimal.
fn set_bytes(line: &mut Value, name: &str, bytes: &[u8]) {
    match str::from_utf8(bytes) {
        Ok(text) => line[name] = text.into(),
        Err(_) => {
            line[format!("{name}_hex")] = bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>().into()
        }
    }
}
