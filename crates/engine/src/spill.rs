//! Where pairs go when memory is full: files without a name, one per worker and spill folder.
//!
//! What has no name vanishes with its worker, however that ends. Whatever is written goes behind what is there; what
//! has been read for the last time is given back to the file system, so that merging takes little more room than the
//! runs themselves. Runs take turns with the folders.

use std::cell::{Cell, OnceCell};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use rustix::fs::{FallocateFlags, fallocate};

use gristmill_os::clock::monotonic_ns;

use crate::shared::{Doing, Failure};

/// Writes that a mean is made of, about: one that had to wait shall not decide.
const WRITES_AVERAGED: f64 = 16.0;

/// The spill files of one worker, opened when the first pair needs them.
pub(crate) struct Spill {
    folders: Vec<Folder>,
    turn: Cell<usize>,
    /// How long a byte took to write lately: a mean in which the last writes weigh most.
    write_ns_per_byte: Cell<f64>,
    tally: Cell<Tally>,
}

/// What was spilled, for statistics and messages.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    pub written_bytes: u64,
    /// Runs written from memory.
    pub runs: u64,
    /// Runs merged into another one.
    pub runs_merged: u64,
}

struct Folder {
    path: PathBuf,
    /// The file has a name and outlives the worker: nothing of it is given back, and nothing is spilled to it.
    lasts: bool,
    file: OnceCell<File>,
    end: Cell<u64>,
    /// Bytes written and not given back.
    live: Cell<u64>,
}

/// Bytes in one spill file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Extent {
    pub folder: usize,
    pub start: u64,
    pub bytes: u64,
}

impl Spill {
    /// Spills to these folders, of which there is at least one.
    pub fn new(folders: &[PathBuf]) -> Spill {
        assert!(!folders.is_empty(), "there is a folder to spill to");
        let folder = |path: &PathBuf| Folder {
            path: path.clone(),
            lasts: false,
            file: OnceCell::new(),
            end: Cell::new(0),
            live: Cell::new(0),
        };
        Spill {
            folders: folders.iter().map(folder).collect(),
            turn: Cell::new(0),
            write_ns_per_byte: Cell::new(0.0),
            tally: Cell::default(),
        }
    }

    /// The same, and beside them the file of `path` that outlives the worker, made if it is not there, and written from byte
    /// `end` on. Returns also the number by which it goes.
    pub fn with_file(folders: &[PathBuf], path: PathBuf, end: u64) -> Result<(Spill, usize), Failure> {
        let mut spill = Spill::new(folders);
        let number = spill.folders.len();
        let opened = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path);
        let file = OnceCell::new();
        spill.folders.push(Folder { path, lasts: true, file, end: Cell::new(end), live: Cell::new(0) });
        let opened = opened.map_err(spill.failed(number, Doing::Open))?;
        drop(spill.folders[number].file.set(opened));
        Ok((spill, number))
    }

    /// Returns when the disk has what was written to the file of `folder`.
    pub fn sync(&self, folder: usize) -> Result<(), Failure> {
        self.file(folder)?.sync_data().map_err(self.failed(folder, Doing::Write))
    }

    /// What was spilled so far.
    pub fn tally(&self) -> Tally {
        self.tally.get()
    }

    /// Nanoseconds that it takes to write a byte: a fraction of one while the page cache takes it.
    pub fn write_ns_per_byte(&self) -> f64 {
        self.write_ns_per_byte.get()
    }

    /// For tests: a disk of this speed.
    #[cfg(test)]
    pub fn expect_ns_per_byte(&self, ns_per_byte: f64) {
        self.write_ns_per_byte.set(ns_per_byte);
    }

    /// A run was written from memory.
    pub fn count_run(&self) {
        self.tally.update(|tally| Tally { runs: tally.runs + 1, ..tally });
    }

    /// So many runs were merged into one.
    pub fn count_merged(&self, runs: usize) {
        self.tally.update(|tally| Tally { runs_merged: tally.runs_merged + runs as u64, ..tally });
    }

    /// The folder whose turn it is.
    pub fn next_folder(&self) -> usize {
        let folder = self.turn.get();
        let turns = self.folders.iter().filter(|folder| !folder.lasts).count();
        self.turn.set((folder + 1) % turns);
        folder
    }

    /// Writes `bytes` behind what is in the file of `folder`.
    pub fn append(&self, folder: usize, bytes: &[u8]) -> Result<Extent, Failure> {
        let start = self.folders[folder].end.get();
        let file = self.file(folder)?;
        let began_ns = monotonic_ns();
        file.write_all_at(bytes, start).map_err(self.failed(folder, Doing::Write))?;
        let ns_per_byte = (monotonic_ns() - began_ns) as f64 / bytes.len().max(1) as f64;
        self.write_ns_per_byte.update(|mean| mean + (ns_per_byte - mean) / WRITES_AVERAGED);
        let Folder { end, live, .. } = &self.folders[folder];
        let bytes = bytes.len() as u64;
        end.set(start + bytes);
        live.set(live.get() + bytes);
        self.tally.update(|tally| Tally { written_bytes: tally.written_bytes + bytes, ..tally });
        Ok(Extent { folder, start, bytes })
    }

    /// Reads what was appended there.
    pub fn read(&self, folder: usize, start: u64, to: &mut [u8]) -> Result<(), Failure> {
        self.file(folder)?.read_exact_at(to, start).map_err(self.failed(folder, Doing::Read))
    }

    /// Gives the room of `extent` back, which nobody will read again.
    pub fn free(&self, extent: Extent) {
        let Folder { lasts, file, end, live, .. } = &self.folders[extent.folder];
        if *lasts {
            return;
        }
        live.set(live.get() - extent.bytes);
        let Some(file) = file.get() else { return };
        // A file system that cannot do this keeps the room until the worker ends, which is right too.
        if live.get() == 0 {
            end.set(0);
            let _ = file.set_len(0);
        } else if extent.bytes > 0 {
            let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
            let _ = fallocate(file, flags, extent.start, extent.bytes);
        }
    }

    /// The failure of a block that is not what was written.
    pub fn damaged(&self, folder: usize, start: u64) -> Failure {
        Failure::Spill { folder, doing: Doing::Check, errno: 0, bytes: start }
    }

    /// For tests: another byte than was written.
    #[cfg(test)]
    pub fn overwrite(&self, at: u64, byte: u8) {
        self.file(0).expect("open").write_all_at(&[byte], at).expect("written");
    }

    fn file(&self, folder: usize) -> Result<&File, Failure> {
        let Folder { path, file, .. } = &self.folders[folder];
        if file.get().is_none() {
            let made = tempfile::tempfile_in(path).map_err(self.failed(folder, Doing::Open))?;
            drop(file.set(made));
        }
        Ok(file.get().expect("made above"))
    }

    fn failed(&self, folder: usize, doing: Doing) -> impl Fn(io::Error) -> Failure {
        let bytes = self.tally().written_bytes;
        move |error| Failure::Spill { folder, doing, errno: error.raw_os_error().unwrap_or(0), bytes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_appended_is_read_and_room_that_was_given_back_is_used_again() {
        let dirs = [tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder")];
        let spill = Spill::new(&dirs.each_ref().map(|dir| dir.path().to_owned()));
        assert_eq!([spill.next_folder(), spill.next_folder(), spill.next_folder()], [0, 1, 0]);
        let first = spill.append(1, b"first").expect("written");
        let second = spill.append(1, b"second").expect("written");
        let mut found = [0; 6];
        spill.read(1, second.start, &mut found).expect("read");
        assert_eq!(&found, b"second");
        spill.free(first);
        spill.read(1, second.start, &mut found).expect("what was not given back is still there");
        assert_eq!(&found, b"second");
        spill.free(second);
        assert_eq!(spill.append(1, b"third").expect("written").start, 0);
        assert_eq!(std::fs::read_dir(dirs[1].path()).expect("a folder").count(), 0, "the file has no name");
    }

    #[test]
    fn a_folder_that_is_not_there_is_a_failure_that_names_it() {
        let spill = Spill::new(&[PathBuf::from("/nowhere/at/all")]);
        let failure = spill.append(0, b"x").expect_err("nothing can be opened there");
        let errno = rustix::io::Errno::NOENT.raw_os_error();
        assert_eq!(failure, Failure::Spill { folder: 0, doing: Doing::Open, errno, bytes: 0 });
    }
}
