//! The journal's file: lines are appended and synced, a torn end is cut off, one queue uses it at a time.

use std::cell::Cell;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use gristmill::Error;
use gristmill_queue::{Entry, Past, line};
use rustix::fs::{FlockOperation, fdatasync, flock};

use crate::terminal::failure::Failure;

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
pub fn past(path: &Path) -> Result<Past, Failure> {
    let whole = || -> io::Result<Vec<u8>> {
        regular(&fs::metadata(path)?)?;
        fs::read(path)
    };
    let bytes = match whole() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        read => read.map_err(|source| Failure::Job(Error::Input { path: path.to_owned(), source }))?,
    };
    read(path, &bytes)
}

fn read(path: &Path, bytes: &[u8]) -> Result<Past, Failure> {
    let wrong = |error| Failure::Job(Error::Input { path: path.to_owned(), source: io::Error::other(error) });
    Past::read(bytes).map_err(wrong)
}

impl Journal {
    /// Opens a new journal, or one to be continued with its past.
    pub fn open(path: &Path, resume: bool) -> Result<(Journal, Past), Failure> {
        let failed = |source| Failure::output(path, source);
        let mut file =
            OpenOptions::new().read(true).append(true).create(true).mode(0o600).open(path).map_err(failed)?;
        file.metadata().and_then(|about| regular(&about)).map_err(failed)?;
        lock(&file).map_err(failed)?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(failed)?;
        if !bytes.is_empty() && !resume {
            return Err(Failure::Usage(format!(
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
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
            File::open(folder).and_then(|folder| folder.sync_all()).map_err(failed)?;
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

/// Refuses what has no end to read, such as a device, or may never have one, such as a pipe.
fn regular(about: &fs::Metadata) -> io::Result<()> {
    if about.is_file() { Ok(()) } else { Err(io::Error::other("a journal must be a regular file")) }
}

/// Locks the journal. The lock ends with the last process of a queue, which may still be cleaning up.
fn lock(file: &File) -> io::Result<()> {
    let began = Instant::now();
    loop {
        match flock(file, FlockOperation::NonBlockingLockExclusive) {
            Err(rustix::io::Errno::WOULDBLOCK) if began.elapsed() < PATIENCE => {
                std::thread::sleep(Duration::from_millis(10));
            }
            Err(rustix::io::Errno::WOULDBLOCK) => {
                return Err(io::Error::other("another gristmill batch is using this journal"));
            }
            other => return Ok(other?),
        }
    }
}
