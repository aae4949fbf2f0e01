//! A result in parts: a folder of files that follow each other, with a list of them, that appears whole or not at all.
//!
//! ```text
//!  sorted/part-00000  sorted/part-00001  ...  sorted/manifest.json
//! ```
//!
//! The parts are written without names beside the folder. When all are whole they get their names in a hidden folder, which
//! then gets its own: only who is killed in these few milliseconds leaves something, and that is hidden.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use base64::prelude::{BASE64_STANDARD, Engine};
use gristmill::Part;
use serde_json::{Map, Value, json};

use crate::aside::{Aside, directory, sync_directory};
use crate::failure::Failure;

/// The folder being written.
pub struct Parts {
    pub dir: PathBuf,
    files: Vec<Aside>,
}

impl Parts {
    /// Begins a folder, which is not there yet or empty.
    pub fn begin(dir: &Path) -> Result<Parts, Failure> {
        let is_free = match fs::read_dir(dir) {
            Ok(mut entries) => entries.next().is_none(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => true,
            Err(source) => return Err(Failure::output(dir, source)),
        };
        match is_free && dir.file_name().is_some() {
            true => Ok(Parts { dir: dir.to_owned(), files: Vec::new() }),
            false => Err(Failure::Usage(format!(
                "{} is not empty: --parts makes a new folder, or fills an empty one. Name another, or remove it first",
                dir.display()
            ))),
        }
    }

    /// Makes so many files.
    pub fn make(&mut self, count: usize) -> io::Result<Vec<File>> {
        self.files = (0..count).map(|_| Aside::create_beside(&self.dir)).collect::<io::Result<_>>()?;
        self.files.iter().map(|aside| aside.file.try_clone()).collect()
    }

    /// Names the parts, now that they are written, and lists them.
    pub fn finish(self, parts: &[Part]) -> Result<(), Failure> {
        let dir = self.dir.clone();
        self.publish(parts).map_err(|source| Failure::output(dir, source))
    }

    fn publish(self, parts: &[Part]) -> io::Result<()> {
        let beside = directory(&self.dir);
        let mut prefix = std::ffi::OsString::from(".");
        prefix.push(self.dir.file_name().unwrap_or_default());
        prefix.push(".partial-");
        // Removed again if anything fails.
        let hidden = tempfile::Builder::new().prefix(&prefix).tempdir_in(beside)?;
        for (number, file) in self.files.into_iter().enumerate() {
            file.name(hidden.path().join(part_name(number)))?;
        }
        let mut manifest = File::create(hidden.path().join("manifest.json"))?;
        serde_json::to_writer_pretty(&mut manifest, &list(parts))?;
        manifest.write_all(b"\n")?;
        manifest.sync_all()?;
        sync_directory(hidden.path())?;
        // As open to others as a folder that mkdir makes.
        let mask = fs::metadata(hidden.path().join("manifest.json"))?.permissions();
        fs::set_permissions(hidden.path(), folder_permissions(&mask))?;
        fs::rename(hidden.path(), &self.dir)?;
        let _ = hidden.keep();
        sync_directory(beside)
    }
}

/// Who may read the files may enter the folder.
fn folder_permissions(of_file: &fs::Permissions) -> fs::Permissions {
    use std::os::unix::fs::PermissionsExt;
    let mode = of_file.mode() & 0o666;
    fs::Permissions::from_mode(mode | (mode & 0o444) >> 2)
}

fn part_name(number: usize) -> String {
    format!("part-{number:05}")
}

fn list(parts: &[Part]) -> Value {
    let entry = |(number, part): (usize, &Part)| {
        let mut entry = Map::new();
        entry.insert("name".into(), part_name(number).into());
        entry.insert("records".into(), part.records.into());
        entry.insert("bytes".into(), part.bytes.into());
        entry.insert("crc32".into(), format!("{:08x}", part.checksum).into());
        if let Some([first, last]) = &part.keys {
            for (name, key) in [("first_key", first), ("last_key", last)] {
                match str::from_utf8(key) {
                    Ok(text) => entry.insert(name.into(), text.into()),
                    Err(_) => entry.insert(format!("{name}_base64"), BASE64_STANDARD.encode(key).into()),
                };
            }
        }
        Value::Object(entry)
    };
    json!({
        "records": parts.iter().map(|part| part.records).sum::<u64>(),
        "bytes": parts.iter().map(|part| part.bytes).sum::<u64>(),
        "parts": parts.iter().enumerate().map(entry).collect::<Vec<_>>(),
    })
}
