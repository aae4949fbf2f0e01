//! Reading ahead of the walk: a disk that must be waited for is asked for several files at once.
//!
//! The walk reads the first bytes of every file, one file after the other. If they are in the page cache, that takes
//! some microseconds. If not, each file waits for the disk; so once one had to wait, the kernel is asked for the next
//! ones, and reads them while the walk goes on. Workers find them in the page cache later.

use std::fs::{DirEntry, File};
use std::num::NonZeroU64;
use std::os::unix::fs::OpenOptionsExt;

use gristmill_os::clock::monotonic_ns;
use rustix::fs::{Advice, OFlags, fadvise};

/// The time from which a file had to wait.
const WAITED_NS: u64 = 50_000;
/// The number of files that are asked for at once.
const FILES: usize = 32;
/// The bytes of each: a small file as a whole.
const BYTES: NonZeroU64 = NonZeroU64::new(256 << 10).expect("it is not zero");

/// The entries of a directory, of which some are read ahead.
pub(super) struct ReadAhead<'e> {
    entries: &'e [DirEntry],
    /// The entries before this one were asked for.
    asked: usize,
}

impl<'e> ReadAhead<'e> {
    pub fn new(entries: &'e [DirEntry]) -> ReadAhead<'e> {
        ReadAhead { entries, asked: 0 }
    }

    /// Calls `visit` with each entry, and asks for the next ones if it took long.
    pub fn try_for_each<E>(mut self, mut visit: impl FnMut(&DirEntry) -> Result<(), E>) -> Result<(), E> {
        for (at, entry) in self.entries.iter().enumerate() {
            let began_ns = monotonic_ns();
            visit(entry)?;
            if at >= self.asked && is_file(entry) && monotonic_ns() - began_ns > WAITED_NS {
                let next = self.entries[at + 1..].iter().take(FILES);
                self.asked = at + 1 + next.len();
                next.filter(|entry| is_file(entry)).for_each(ask_for);
            }
        }
        Ok(())
    }
}

fn is_file(entry: &DirEntry) -> bool {
    entry.file_type().is_ok_and(|kind| kind.is_file())
}

/// Asks the kernel to read a file. If that fails, the walk will say why, unless it leaves the file out.
fn ask_for(entry: &DirEntry) {
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    if let Ok(file) = File::options().read(true).custom_flags(flags.bits() as i32).open(entry.path()) {
        let _ = fadvise(&file, 0, Some(BYTES), Advice::WillNeed);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn every_entry_is_visited_once_however_long_it_takes() {
        let dir = tempfile::tempdir().expect("a folder");
        std::fs::create_dir(dir.path().join("folder")).expect("made");
        for number in 0..FILES * 2 {
            std::fs::write(dir.path().join(number.to_string()), "frog").expect("written");
        }
        let entries: Vec<DirEntry> = std::fs::read_dir(dir.path()).expect("a folder").flatten().collect();
        for wait in [Duration::ZERO, Duration::from_nanos(WAITED_NS + 1)] {
            let mut visited = Vec::new();
            let all = ReadAhead::new(&entries).try_for_each(|entry| {
                std::thread::sleep(wait);
                visited.push(entry.file_name());
                Ok::<(), ()>(())
            });
            assert_eq!(all, Ok(()));
            assert!(entries.iter().map(DirEntry::file_name).eq(visited));
        }
        let mut left = 3;
        let stopped = ReadAhead::new(&entries).try_for_each(|_| {
            left -= 1;
            if left > 0 { Ok(()) } else { Err("no more") }
        });
        assert_eq!((stopped, left), (Err("no more"), 0));
    }
}
