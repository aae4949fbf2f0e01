//! The locks on files that processes hold, as `/proc/locks` lists them.

use std::fs;
use std::os::unix::fs::MetadataExt;

use crate::files::here;
use crate::sleep::Sleep;

/// All locks on files for writing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileLocks(Vec<Held>);

/// A lock that is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Held {
    process: u32,
    inode: u64,
    /// The first byte of the file that is locked.
    first: u64,
}

/// The bytes that sqlite locks: of a database with a rollback journal, and of the index of its write-ahead log.
const OF_SQLITE: [std::ops::RangeInclusive<u64>; 2] = [0x4000_0000..=0x4000_01ff, 120..=127];

impl FileLocks {
    /// Reads the locks of this machine; none if the kernel does not tell them.
    pub fn read() -> FileLocks {
        FileLocks::of(&here("/proc/locks").unwrap_or_default())
    }

    fn of(text: &str) -> FileLocks {
        FileLocks(text.lines().filter_map(Held::of).collect())
    }

    /// Tells what a process waits for that sleeps for a time: the lock on a file that it has open, if another process
    /// holds that, or another of its threads may.
    pub fn held_against(&self, process: u32, threads: usize) -> Option<Sleep> {
        let others: Vec<&Held> = self.0.iter().filter(|held| held.process != process || threads > 1).collect();
        if others.is_empty() {
            return None;
        }
        let files = fs::read_dir(format!("/proc/{process}/fd")).ok()?.flatten();
        let open: Vec<u64> = files.filter_map(|file| Some(fs::metadata(file.path()).ok()?.ino())).collect();
        let held = others.into_iter().find(|held| open.contains(&held.inode))?;
        let is_of_sqlite = OF_SQLITE.iter().any(|bytes| bytes.contains(&held.first));
        Some(if is_of_sqlite { Sleep::Database } else { Sleep::FileLock })
    }
}

impl Held {
    /// Parses a line: a number, the kind, `ADVISORY`, `WRITE`, the process, the device and inode, the first byte and
    /// the last.
    fn of(line: &str) -> Option<Held> {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        // Those that wait have an arrow as second word.
        let [_, "POSIX" | "OFDLCK" | "FLOCK", _, "WRITE", process, file, first, ..] = words[..] else { return None };
        Some(Held {
            // Locks of open files belong to no process.
            process: process.parse().unwrap_or(0),
            inode: file.rsplit(':').next()?.parse().ok()?,
            first: first.parse().ok()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;

    #[test]
    fn locks_for_writing_are_read() {
        let text = "1: POSIX  ADVISORY  WRITE 812 fe:00:5678 1073741825 1073741825\n\
                    1: -> POSIX  ADVISORY  WRITE 813 fe:00:5678 1073741825 1073741825\n\
                    2: POSIX  ADVISORY  READ 812 fe:00:99 128 128\n\
                    3: OFDLCK ADVISORY  WRITE -1 00:1b:7 0 EOF\n4: LEASE  ACTIVE    READ 5 00:1b:7 0 EOF\n";
        let held = |process, inode, first| Held { process, inode, first };
        assert_eq!(FileLocks::of(text), FileLocks(vec![held(812, 5678, 0x4000_0001), held(0, 7, 0)]));
    }

    /// Writers of a database were said to wait for the clock: they sleep before they try again.
    #[test]
    fn a_process_that_sleeps_beside_a_locked_file_waits_for_the_lock() {
        let dir = tempfile::tempdir().expect("a directory");
        let file = File::create(dir.path().join("data")).expect("made");
        let inode = file.metadata().expect("it is there").ino();
        let here = std::process::id();
        let held_by = |process, first| FileLocks(vec![Held { process, inode, first }]);
        assert_eq!(held_by(here + 1, 0x4000_0001).held_against(here, 1), Some(Sleep::Database));
        assert_eq!(held_by(here + 1, 0).held_against(here, 1), Some(Sleep::FileLock));
        // Its own lock is in nobody's way, unless another of its threads has it.
        assert_eq!(
            (held_by(here, 0).held_against(here, 1), held_by(here, 0).held_against(here, 2)),
            (None, Some(Sleep::FileLock))
        );
        drop(file);
        assert_eq!(held_by(here + 1, 0).held_against(here, 1), None);
    }
}
