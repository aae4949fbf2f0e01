//! The journal's file: lines are appended and synced, a torn end is cut off, one queue uses it at a time.

use std::cell::Cell;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::queue::{Entry, Past, line};
use gristmill::Error;
use gristmill_os::folder::Entry as Name;
use rustix::fs::{FlockOperation, fdatasync, flock, major, minor};

use gristmill_report::messages::{printable, tell};

/// A journal that is open.
pub struct Journal {
    path: PathBuf,
    file: File,
    /// The whole lines. The guard and the scheduler each have this count, and only one of them writes at a time.
    whole_bytes: Cell<u64>,
}

/// The time to wait for a queue that is cleaning up after its death.
const PATIENCE: Duration = Duration::from_secs(10);

/// Milliseconds since 1970.
pub fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_millis() as u64)
}

/// Reads a journal without opening it for writing. There is no past without a file.
pub fn past(path: &Path) -> Result<Past, Error> {
    let whole = || -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        Name::find(path)?.open_own(false)?.read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let bytes = match whole() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        read => read.map_err(|source| Error::Input { path: path.to_owned(), source })?,
    };
    read(path, &bytes)
}

fn read(path: &Path, bytes: &[u8]) -> Result<Past, Error> {
    let wrong = |error| Error::Input { path: path.to_owned(), source: io::Error::other(error) };
    Past::read(bytes).map_err(wrong)
}

impl Journal {
    /// Opens a new journal, or one to be continued with its past.
    pub fn open(path: &Path, resume: bool) -> Result<(Journal, Past), Error> {
        let failed = |source| Error::Output { path: path.to_owned(), source };
        // What another user wrote there is not believed.
        let name = Name::find(path).map_err(failed)?;
        let mut file = name.open_own(true).map_err(failed)?;
        lock(path, &file).map_err(failed)?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(failed)?;
        if !bytes.is_empty() && !resume {
            return Err(Error::Setting(format!(
                "the journal {} has been begun already: --resume continues it; or name another, or remove it",
                path.display()
            )));
        }
        let past = read(path, &bytes)?;
        file.set_len(past.whole_bytes as u64).map_err(failed)?;
        let whole_bytes = Cell::new(past.whole_bytes as u64);
        let journal = Journal { path: path.to_owned(), file, whole_bytes };
        if past.whole_bytes == 0 {
            journal.append(&[Entry::first()]).and_then(|()| journal.sync()).map_err(failed)?;
            // The name of a new file must survive a crash too.
            name.folder.sync().map_err(failed)?;
        }
        Ok((journal, past))
    }

    /// Appends lines.
    ///
    /// If the disk is full, the part of a line that was written is cut off again.
    pub fn append(&self, entries: &[Entry]) -> io::Result<()> {
        let text: String = entries.iter().map(line).collect();
        if let Err(error) = (&self.file).write_all(text.as_bytes()) {
            self.file.set_len(self.whole_bytes.get())?;
            return Err(error);
        }
        self.whole_bytes.set(self.whole_bytes.get() + text.len() as u64);
        Ok(())
    }

    /// Waits until all lines are on the disk.
    pub fn sync(&self) -> io::Result<()> {
        Ok(fdatasync(&self.file)?)
    }

    /// Takes over from the other process: what it has written is whole up to its last line.
    pub fn take_over(&self) -> io::Result<()> {
        // Its name may have changed since.
        let mut bytes = vec![0; self.file.metadata()?.len() as usize];
        self.file.read_exact_at(&mut bytes, 0)?;
        let past = Past::read(&bytes).map_err(io::Error::other)?;
        self.file.set_len(past.whole_bytes as u64)?;
        self.whole_bytes.set(past.whole_bytes as u64);
        Ok(())
    }

    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// Locks the journal. The lock ends with the last process of a queue, which may still be cleaning up.
fn lock(path: &Path, file: &File) -> io::Result<()> {
    let (began, mut is_told) = (Instant::now(), false);
    loop {
        match flock(file, FlockOperation::NonBlockingLockExclusive) {
            Err(rustix::io::Errno::WOULDBLOCK) if began.elapsed() < PATIENCE => {
                if !is_told {
                    let (path, other, seconds) = (path.display().to_string(), other(file), PATIENCE.as_secs());
                    tell(format_args!(
                        "{other} uses the journal {}; waiting for it to end, {seconds} s at most",
                        printable(&path)
                    ));
                    is_told = true;
                }
                std::thread::sleep(Duration::from_millis(10));
            }
            Err(rustix::io::Errno::WOULDBLOCK) => {
                return Err(io::Error::other(format!(
                    "{} still uses this journal after {} s; try again when it has ended, or name another journal",
                    other(file),
                    PATIENCE.as_secs()
                )));
            }
            other => return Ok(other?),
        }
    }
}

/// Names the queue that has locked a file.
fn other(file: &File) -> String {
    let locks = fs::read_to_string("/proc/locks").unwrap_or_default();
    match file.metadata().ok().and_then(|facts| holder(&locks, facts.dev(), facts.ino())) {
        Some(pid) => format!("another gristmill batch (process {pid})"),
        None => "another gristmill batch".to_owned(),
    }
}

/// Finds the process that has locked this file in `/proc/locks`.
fn holder(locks: &str, device: u64, inode: u64) -> Option<u32> {
    let file = format!("{:02x}:{:02x}:{inode}", major(device), minor(device));
    locks.lines().find_map(|line| match line.split_ascii_whitespace().collect::<Vec<_>>()[..] {
        [_, "FLOCK", _, _, pid, of, ..] if of == file => pid.parse().ok(),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_process_that_has_locked_a_file_is_found() {
        let locks = "1: POSIX  ADVISORY  WRITE 7 fe:00:42 0 EOF\n2: FLOCK  ADVISORY  WRITE 4121 fe:00:42 0 EOF\n\
                     2: -> FLOCK  ADVISORY  WRITE 9 fe:00:42 0 EOF\n3: FLOCK  ADVISORY  WRITE -1 00:2f:43 0 EOF\n";
        let device = rustix::fs::makedev(0xfe, 0);
        assert_eq!([holder(locks, device, 42), holder(locks, device, 43), holder("x", 0, 0)], [Some(4121), None, None]);
        assert_eq!(holder(locks, rustix::fs::makedev(0, 0x2f), 43), None);
    }
}
