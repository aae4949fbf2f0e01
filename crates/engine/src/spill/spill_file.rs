//! Where pairs go when memory is full: files without a name, one per worker and spill folder.
//!
//! What has no name vanishes with its worker, however that ends, and nobody else can open it: so the folders may be those of all
//! users, as `/tmp` is. Whatever is written goes behind what is there. Runs take
//! turns with the folders.
//!
//! What has been read for the last time is given back where a file system has little room left, so that merging takes
//! little more than the runs themselves. Elsewhere it is not: before ext4 and XFS take a piece out of a file they write it to the
//! disk, and wait.

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use rustix::fs::{FallocateFlags, fallocate, fstatvfs};

use gristmill_os::clock::monotonic_ns;
use gristmill_os::folder;

use crate::failure::{Doing, Failure};

/// Writes that a mean is made of, about: one that had to wait shall not decide.
const WRITES_AVERAGED: f64 = 16.0;

/// A file system with less room than this has little.
const ROOM_BYTES_MIN: u64 = 4 << 30;
/// Bytes that are read for the last time before one looks how much room there is.
const DEAD_BYTES: u64 = 8 << 20;

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
    /// Bytes that will be read.
    live: Cell<u64>,
    /// What has been read for the last time and was not given back: for the end of each piece, its beginning.
    dead: RefCell<BTreeMap<u64, u64>>,
    /// Bytes that died since one looked how much room there is.
    died: Cell<u64>,
}

/// Bytes in one spill file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FileRange {
    pub folder: usize,
    pub start: u64,
    pub bytes: u64,
}

impl Spill {
    /// Spills to these folders, of which there is at least one.
    pub fn new(folders: &[PathBuf]) -> Spill {
        assert!(!folders.is_empty(), "there is a folder to spill to");
        Spill {
            folders: folders.iter().map(|path| Folder::new(path.clone(), false, 0)).collect(),
            turn: Cell::new(0),
            write_ns_per_byte: Cell::new(0.0),
            tally: Cell::default(),
        }
    }

    /// The same, and beside them a file of `folder` that outlives the worker, made if it is not there, and written from byte
    /// `end` on. Returns also the number by which it goes.
    pub fn with_file(
        folders: &[PathBuf],
        folder: &folder::Folder,
        name: &str,
        end: u64,
    ) -> Result<(Spill, usize), Failure> {
        let mut spill = Spill::new(folders);
        let number = spill.folders.len();
        let opened = folder.open_file(name, true, false);
        spill.folders.push(Folder::new(name.into(), true, end));
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
    pub fn append(&self, folder: usize, bytes: &[u8]) -> Result<FileRange, Failure> {
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
        Ok(FileRange { folder, start, bytes })
    }

    /// Reads what was appended there.
    pub fn read(&self, folder: usize, start: u64, to: &mut [u8]) -> Result<(), Failure> {
        self.file(folder)?.read_exact_at(to, start).map_err(self.failed(folder, Doing::Read))
    }

    /// Takes note that nobody will read `extent` again.
    pub fn free(&self, extent: FileRange) {
        self.folders[extent.folder].free(extent);
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

impl Folder {
    fn new(path: PathBuf, lasts: bool, end: u64) -> Folder {
        let (file, end, live, died) = (OnceCell::new(), Cell::new(end), Cell::new(0), Cell::new(0));
        Folder { path, lasts, file, end, live, dead: RefCell::default(), died }
    }

    fn free(&self, extent: FileRange) {
        let Some(file) = self.file.get().filter(|_| !self.lasts) else { return };
        let mut dead = self.dead.borrow_mut();
        self.live.update(|live| live - extent.bytes);
        // A file system that cannot give room back keeps it until the worker ends, which is right too.
        if self.live.get() == 0 {
            dead.clear();
            self.end.set(0);
            let _ = file.set_len(0);
            return;
        }
        // One piece with what died before it.
        let start = dead.remove(&extent.start).unwrap_or(extent.start);
        dead.insert(extent.start + extent.bytes, start);
        self.died.update(|died| died + extent.bytes);
        if self.died.get() < DEAD_BYTES {
            return;
        }
        self.died.set(0);
        if fstatvfs(file).is_ok_and(|at| at.f_bavail * at.f_frsize < ROOM_BYTES_MIN) {
            give_back(file, &mut dead);
        }
    }
}

/// Takes dead pieces out of a file.
fn give_back(file: &File, dead: &mut BTreeMap<u64, u64>) {
    for (end, start) in std::mem::take(dead) {
        let _ = fallocate(file, FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, start, end - start);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

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
    fn what_dies_side_by_side_is_one_piece_and_takes_no_room_when_it_was_given_back() {
        const MIB: usize = 1 << 20;
        let dir = tempfile::tempdir().expect("a folder");
        let spill = Spill::new(&[dir.path().to_owned()]);
        let [a, b, c, d] = [1, 2, 3, 4].map(|byte| spill.append(0, &vec![byte; MIB]).expect("written"));
        [a, c, b].into_iter().for_each(|extent| spill.free(extent));
        let folder = &spill.folders[0];
        let (file, mut dead) = (folder.file.get().expect("open"), folder.dead.borrow_mut());
        // What died before it is found, what died behind it is not: a run is read from its beginning.
        assert_eq!(*dead, BTreeMap::from([(b.start + b.bytes, a.start), (c.start + c.bytes, c.start)]));
        let blocks = || file.metadata().expect("it is open").blocks() * 512;
        let before = blocks();
        give_back(file, &mut dead);
        assert!(dead.is_empty() && before - blocks() >= 2 * MIB as u64, "{before} bytes, then {}", blocks());
        let mut found = vec![0; MIB];
        spill.read(0, d.start, &mut found).expect("read");
        assert_eq!(found, vec![4; MIB]);
    }

    #[test]
    fn a_folder_that_is_not_there_is_a_failure_that_names_it() {
        let spill = Spill::new(&[PathBuf::from("/nowhere/at/all")]);
        let failure = spill.append(0, b"x").expect_err("nothing can be opened there");
        let errno = rustix::io::Errno::NOENT.raw_os_error();
        assert_eq!(failure, Failure::Spill { folder: 0, doing: Doing::Open, errno, bytes: 0 });
    }
}
