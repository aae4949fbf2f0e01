//! Spill files for pairs that do not fit in memory: files without a name, one per worker and spill folder.
//!
//! A file without a name vanishes with its worker, however that ends, and no other user can open it. So the folders may
//! be public ones such as `/tmp`. Data is always appended. Runs use the folders in turn.
//!
//! Where a file system has little room left, the room of data that has been read for the last time is given back, so
//! that merging takes little more room than the runs themselves. Elsewhere it is not given back: before ext4 and XFS
//! remove a piece of a file they write it to the disk, and wait.

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use rustix::fs::{FallocateFlags, fallocate};

use gristmill_os::clock::monotonic_ns;
use gristmill_os::folder;
use gristmill_os::room::{TemporaryFolder, free_bytes_of};

use crate::failure::{Doing, Failure};

/// The approximate number of writes in a mean, so that a single slow one does not decide.
const WRITES_AVERAGED: f64 = 16.0;

/// A file system with less free room than this, beyond the bytes to be kept free, is short of room.
const ROOM_BYTES_MIN: u64 = 4 << 30;
/// The number of bytes written between two checks of the free room: some file systems ask a server for it.
const UNCHECKED_BYTES: u64 = 8 << 20;
/// The number of bytes read for the last time between two checks of the free room.
const DEAD_BYTES: u64 = 8 << 20;

/// The spill files of one worker, opened when they are first needed.
pub(crate) struct Spill {
    folders: Vec<Folder>,
    turn: Cell<usize>,
    /// The recent time to write a byte: a mean that gives the last writes the most weight.
    write_ns_per_byte: Cell<f64>,
    tally: Cell<Tally>,
}

/// Sizes of spilled runs, for statistics and messages.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    pub written_bytes: u64,
    /// The number of runs written from memory.
    pub runs: u64,
    /// The number of runs merged into others.
    pub runs_merged: u64,
}

struct Folder {
    place: TemporaryFolder,
    /// Whether the file has a name and outlives the worker: none of its room is given back, and no runs are spilled to
    /// it.
    lasts: bool,
    file: OnceCell<File>,
    end: Cell<u64>,
    /// The number of bytes that will still be read.
    live: Cell<u64>,
    /// Pieces that have been read for the last time and whose room has not been given back; maps the end of each to its
    /// beginning.
    dead: RefCell<BTreeMap<u64, u64>>,
    /// The number of bytes that died since the last check of the free room.
    died: Cell<u64>,
    /// The number of bytes that may be written before the next check.
    unchecked: Cell<u64>,
}

/// A range of bytes in one spill file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FileRange {
    pub folder: usize,
    pub start: u64,
    pub bytes: u64,
}

impl Spill {
    /// Makes spill files in these folders, of which there must be at least one.
    pub fn new(folders: &[TemporaryFolder]) -> Spill {
        assert!(!folders.is_empty(), "there is a folder to spill to");
        Spill {
            folders: folders.iter().map(|place| Folder::new(place.clone(), false, 0)).collect(),
            turn: Cell::new(0),
            write_ns_per_byte: Cell::new(0.0),
            tally: Cell::default(),
        }
    }

    /// Makes spill files, and a further file in `folder` that outlives the worker. That file is created if it does not
    /// exist, and written from byte `end` on. Also returns its number.
    pub fn with_file(
        folders: &[TemporaryFolder],
        folder: &folder::Folder,
        kept_free_bytes: u64,
        name: &str,
        end: u64,
    ) -> Result<(Spill, usize), Failure> {
        let mut spill = Spill::new(folders);
        let number = spill.folders.len();
        let opened = folder.open_file(name, true, false);
        spill.folders.push(Folder::new(TemporaryFolder { path: name.into(), kept_free_bytes }, true, end));
        let opened = opened.map_err(spill.failed(number, Doing::Open))?;
        drop(spill.folders[number].file.set(opened));
        Ok((spill, number))
    }

    /// Waits until the disk has everything written to the file of `folder`.
    pub fn sync(&self, folder: usize) -> Result<(), Failure> {
        self.file(folder)?.sync_data().map_err(self.failed(folder, Doing::Write))
    }

    /// Returns the tally of what was spilled so far.
    pub fn tally(&self) -> Tally {
        self.tally.get()
    }

    /// Returns the nanoseconds to write a byte: less than one while the page cache absorbs it.
    pub fn write_ns_per_byte(&self) -> f64 {
        self.write_ns_per_byte.get()
    }

    /// Simulates a disk of this speed, for tests.
    #[cfg(test)]
    pub fn expect_ns_per_byte(&self, ns_per_byte: f64) {
        self.write_ns_per_byte.set(ns_per_byte);
    }

    /// Counts a run written from memory.
    pub fn count_run(&self) {
        self.tally.update(|tally| Tally { runs: tally.runs + 1, ..tally });
    }

    /// Counts `runs` runs merged into one.
    pub fn count_merged(&self, runs: usize) {
        self.tally.update(|tally| Tally { runs_merged: tally.runs_merged + runs as u64, ..tally });
    }

    /// Returns the folder whose turn it is, or the next one that has room, if there are several.
    pub fn next_folder(&self) -> usize {
        let turn = self.turn.get();
        let turns = self.folders.iter().filter(|folder| !folder.lasts).count();
        // A file that cannot be made is an error when it is written.
        let has_room =
            |folder: &usize| self.file(*folder).map_or(true, |file| self.folders[*folder].place.has_room(file));
        let folder = match turns {
            1 => turn,
            _ => (0..turns).map(|next| (turn + next) % turns).find(has_room).unwrap_or(turn),
        };
        self.turn.set((folder + 1) % turns);
        folder
    }

    /// Appends `bytes` to the file of `folder`.
    pub fn append(&self, folder: usize, bytes: &[u8]) -> Result<FileRange, Failure> {
        let start = self.folders[folder].end.get();
        let file = self.file(folder)?;
        if !self.folders[folder].has_room(file, bytes.len() as u64) {
            return Err(Failure::Spill { folder, doing: Doing::KeepFree, errno: 0, bytes: self.tally().written_bytes });
        }
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

    /// Reads bytes that were appended.
    pub fn read(&self, folder: usize, start: u64, to: &mut [u8]) -> Result<(), Failure> {
        self.file(folder)?.read_exact_at(to, start).map_err(self.failed(folder, Doing::Read))
    }

    /// Marks `extent` as never to be read again.
    pub fn free(&self, extent: FileRange) {
        self.folders[extent.folder].free(extent);
    }

    /// Returns the failure of a damaged block.
    pub fn damaged(&self, folder: usize, start: u64) -> Failure {
        Failure::Spill { folder, doing: Doing::Check, errno: 0, bytes: start }
    }

    /// Overwrites one byte, for tests.
    #[cfg(test)]
    pub fn overwrite(&self, at: u64, byte: u8) {
        self.file(0).expect("open").write_all_at(&[byte], at).expect("written");
    }

    fn file(&self, folder: usize) -> Result<&File, Failure> {
        let Folder { place, file, .. } = &self.folders[folder];
        if file.get().is_none() {
            let made = tempfile::tempfile_in(&place.path).map_err(self.failed(folder, Doing::Open))?;
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
    fn new(place: TemporaryFolder, lasts: bool, end: u64) -> Folder {
        let (file, end, dead) = (OnceCell::new(), Cell::new(end), RefCell::default());
        Folder { place, lasts, file, end, live: Cell::new(0), dead, died: Cell::new(0), unchecked: Cell::new(0) }
    }

    /// Returns whether `bytes` more may be written.
    fn has_room(&self, file: &File, bytes: u64) -> bool {
        if let Some(left) = self.unchecked.get().checked_sub(bytes) {
            self.unchecked.set(left);
            return true;
        }
        self.unchecked.set(UNCHECKED_BYTES);
        self.place.has_room(file)
    }

    fn free(&self, extent: FileRange) {
        let Some(file) = self.file.get().filter(|_| !self.lasts) else { return };
        let mut dead = self.dead.borrow_mut();
        self.live.update(|live| live - extent.bytes);
        // A file system that cannot give room back keeps it until the worker ends, which is fine too.
        if self.live.get() == 0 {
            dead.clear();
            self.end.set(0);
            let _ = file.set_len(0);
            return;
        }
        // Join it with a dead piece that ends where it begins.
        let start = dead.remove(&extent.start).unwrap_or(extent.start);
        dead.insert(extent.start + extent.bytes, start);
        self.died.update(|died| died + extent.bytes);
        if self.died.get() < DEAD_BYTES {
            return;
        }
        self.died.set(0);
        if free_bytes_of(file).is_ok_and(|free| free < self.place.kept_free_bytes.saturating_add(ROOM_BYTES_MIN)) {
            give_back(file, &mut dead);
        }
    }
}

/// Gives the room of dead pieces of a file back.
fn give_back(file: &File, dead: &mut BTreeMap<u64, u64>) {
    for (end, start) in std::mem::take(dead) {
        let _ = fallocate(file, FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, start, end - start);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    /// One of two spill folders was full, and the job failed although the other had room.
    #[test]
    fn a_full_folder_is_passed_over() {
        let dirs = [(); 3].map(|()| tempfile::tempdir().expect("a folder"));
        let folders: Vec<_> = { dirs.iter().zip([0, u64::MAX, 0]) }
            .map(|(dir, kept_free_bytes)| TemporaryFolder { path: dir.path().to_owned(), kept_free_bytes })
            .collect();
        let spill = Spill::new(&folders);
        assert_eq!([(); 5].map(|()| spill.next_folder()), [0, 2, 0, 2, 0]);
        assert_eq!(Spill::new(&folders[1..2]).next_folder(), 0);
    }

    #[test]
    fn appended_bytes_are_read_back_and_freed_room_is_reused() {
        let dirs = [tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder")];
        let spill = Spill::new(&dirs.each_ref().map(|dir| TemporaryFolder::new(dir.path(), Some(0))));
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
    fn adjacent_dead_pieces_are_joined_and_their_room_is_given_back() {
        const MIB: usize = 1 << 20;
        let dir = tempfile::tempdir().expect("a folder");
        let spill = Spill::new(&[TemporaryFolder::new(dir.path(), Some(0))]);
        let [a, b, c, d] = [1, 2, 3, 4].map(|byte| spill.append(0, &vec![byte; MIB]).expect("written"));
        [a, c, b].into_iter().for_each(|extent| spill.free(extent));
        let folder = &spill.folders[0];
        let (file, mut dead) = (folder.file.get().expect("open"), folder.dead.borrow_mut());
        // A piece is joined with the one before it, not with the one after it: a run is read from its beginning.
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
    fn a_missing_folder_is_a_failure_that_names_it() {
        let spill = Spill::new(&[TemporaryFolder::new("/nowhere/at/all", None)]);
        let failure = spill.append(0, b"x").expect_err("nothing can be opened there");
        let errno = rustix::io::Errno::NOENT.raw_os_error();
        assert_eq!(failure, Failure::Spill { folder: 0, doing: Doing::Open, errno, bytes: 0 });
    }
}
