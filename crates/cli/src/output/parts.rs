//! Results in parts: a folder of consecutive files and a manifest, which appears whole or not at all.
//!
//! ```text
//!  sorted/part-00000  sorted/part-00001  ...  sorted/manifest.json
//! ```
//!
//! The parts are written without names next to the folder. When all are complete, they get their names in a hidden
//! folder, which is then renamed. Only a process killed within these few milliseconds leaves something behind, and it
//! is hidden. An existing folder must be empty. It is replaced by one with the same owner and permissions.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use base64::prelude::{BASE64_STANDARD, Engine};
use gristmill::sinks::Part;
use gristmill_os::folder::{Entry, Folder, hidden_name};
use rustix::io::Errno;
use serde_json::{Map, Value, json};

use crate::output::side_files::Aside;
use crate::terminal::failure::Failure;

/// The folder being written.
pub struct Parts {
    pub dir: PathBuf,
    target: Rc<Entry>,
    files: Vec<Aside>,
}

/// The folder under its temporary name. Dropping it removes it with its content.
struct HiddenFolder<'p> {
    beside: &'p Folder,
    name: OsString,
    folder: Folder,
    has_its_name: bool,
}

impl Drop for HiddenFolder<'_> {
    fn drop(&mut self) {
        if self.has_its_name {
            return;
        }
        // The files may be gone already.
        for name in self.folder.names().unwrap_or_default() {
            let _ = self.folder.remove(name);
        }
        let _ = self.beside.remove_folder(&self.name);
    }
}

impl Parts {
    /// Begins a folder, which must not exist or be empty.
    pub fn begin(dir: &Path) -> Result<Parts, Failure> {
        let failed = |source| Failure::output(dir, source);
        let target = Entry::find_itself(dir).map_err(failed)?;
        let refused = |why: &str| Err(Failure::Usage(format!("{} {why}", dir.display())));
        if target.is_link() {
            return refused(
                "is a symbolic link, and --parts replaces an empty folder by a full one. Name the folder itself",
            );
        } else if target.is_there() && !target.is_folder() {
            return Err(failed(Errno::NOTDIR.into()));
        } else if target.name == "." || target.is_mount_point().map_err(failed)? {
            return refused("cannot be replaced by another folder: --parts makes a new one. Name one in it");
        } else if target.is_there() {
            let there = Folder::open(dir).map_err(failed)?;
            if !there.names().map_err(failed)?.is_empty() {
                return refused(
                    "is not empty: --parts makes a new folder, or fills an empty one. Name another, or remove it first",
                );
            }
        }
        let parts = Parts { dir: dir.to_owned(), target: Rc::new(target), files: Vec::new() };
        // Fails before the job if the folder cannot be made or given its owner.
        parts.hidden().and_then(|hidden| parts.target.hand_down(hidden.folder.opened()?)).map_err(failed)?;
        Ok(parts)
    }

    /// Makes `count` files.
    pub fn make(&mut self, count: usize) -> io::Result<Vec<File>> {
        self.files = (0..count).map(|_| Aside::create_beside(&self.target)).collect::<io::Result<_>>()?;
        self.files.first().inspect(|first| first.remove_left_over());
        self.files.iter().map(|aside| aside.file.try_clone()).collect()
    }

    /// Names the parts after they were written, and writes the manifest.
    pub fn finish(self, parts: &[Part]) -> Result<(), Failure> {
        let dir = self.dir.clone();
        self.publish(parts).map_err(|source| Failure::output(dir, source))
    }

    fn publish(mut self, parts: &[Part]) -> io::Result<()> {
        let files = std::mem::take(&mut self.files);
        let mut hidden = self.hidden()?;
        for (number, file) in files.into_iter().enumerate() {
            file.name(&hidden.folder, part_name(number).as_ref())?;
        }
        let mut manifest = hidden.folder.make_file("manifest.json", 0o666)?;
        serde_json::to_writer_pretty(&mut manifest, &list(parts))?;
        manifest.write_all(b"\n")?;
        manifest.sync_all()?;
        hidden.folder.sync()?;
        let Entry { folder, name, .. } = &*self.target;
        self.target.hand_down(hidden.folder.opened()?)?;
        folder.rename(&hidden.name, folder, name)?;
        hidden.has_its_name = true;
        folder.sync()
    }

    /// Makes the hidden folder with mkdir's default permissions, or closed to others while it replaces another.
    fn hidden(&self) -> io::Result<HiddenFolder<'_>> {
        let beside = &self.target.folder;
        let name = hidden_name(&self.target.name)?;
        let folder = beside.make_folder(&name, if self.target.is_there() { 0o700 } else { 0o777 })?;
        Ok(HiddenFolder { beside, name, folder, has_its_name: false })
    }
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
