//! Records that were set aside, as a file: a line of JSON for each, with its place, its cause, and the record itself.

use std::cell::RefCell;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use gristmill::BadRecord;
use serde_json::json;

use crate::aside::Aside;
use crate::failure::Failure;
use crate::messages::tell;

/// The file, to be written when the job has ended; it appears only if there is something to tell.
pub struct BadRecords {
    path: PathBuf,
    aside: Aside,
    found: RefCell<Vec<BadRecord>>,
}

impl BadRecords {
    /// Begins the file, so that what cannot be written fails before the job begins.
    pub fn open(path: &Path) -> Result<BadRecords, Failure> {
        let aside = Aside::create(path).map_err(|source| Failure::output(path, source))?;
        Ok(BadRecords { path: path.to_owned(), aside, found: RefCell::default() })
    }

    /// Takes those that one job has set aside.
    pub fn take(&self, found: &[BadRecord]) {
        self.found.borrow_mut().extend_from_slice(found);
    }

    /// Writes the file, and says so unless `quiet`.
    pub fn finish(self, quiet: bool) -> Result<(), Failure> {
        let BadRecords { path, aside, found } = self;
        let found = found.into_inner();
        if found.is_empty() {
            return Ok(());
        }
        let written = || -> io::Result<()> {
            let mut to = BufWriter::new(&aside.file);
            found.iter().try_for_each(|bad| write(bad, &mut to))?;
            to.flush()?;
            drop(to);
            aside.publish()
        };
        written().map_err(|source| Failure::output(&path, source))?;
        if !quiet {
            let records = if found.len() == 1 { "1 record was" } else { &format!("{} records were", found.len()) };
            tell(format_args!("{records} set aside and not counted; {} says which and why", path.display()));
        }
        Ok(())
    }
}

fn write(bad: &BadRecord, to: &mut impl Write) -> io::Result<()> {
    let mut line = json!({
        "file": bad.path.to_string_lossy(),
        "line": bad.line,
        "offset": bad.offset,
        "cause": bad.cause,
    });
    match str::from_utf8(&bad.record) {
        Ok(text) => line["record"] = text.into(),
        Err(_) => line["record_hex"] = bad.record.iter().map(|byte| format!("{byte:02x}")).collect::<String>().into(),
    }
    writeln!(to, "{line}")
}
