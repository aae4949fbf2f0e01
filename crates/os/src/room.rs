//! Folders for temporary files, and the room that these leave free.

use std::fs::{File, Permissions};
use std::io;
use std::ops::Range;
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FallocateFlags, StatVfs, fallocate, fstatvfs, statvfs};
use rustix::io::Errno;
use tempfile::TempDir;

/// By default, one part in so many of what is free at the start stays free.
const PARTS_KEPT_FREE: u64 = 10;

/// The folder for temporary files if none is named: `TMPDIR`, or `/tmp` if that is not set or empty.
///
/// ```
/// assert!(!gristmill_os::room::temporary_folder().as_os_str().is_empty());
/// ```
pub fn temporary_folder() -> PathBuf {
    tmpdir().unwrap_or_else(|| PathBuf::from("/tmp"))
}

/// Makes a folder beneath `place` that only its owner may enter, whatever the umask is: copies of private input may lie
/// in it. It is removed when it is dropped.
pub fn private_folder(place: &Path) -> io::Result<TempDir> {
    tempfile::Builder::new().permissions(Permissions::from_mode(0o700)).tempdir_in(place)
}

/// Explains why a temporary file or folder cannot be made.
pub fn no_temporary(error: io::Error) -> io::Error {
    let folder = temporary_folder();
    let why = format!("no temporary file can be made in {} ({error}); set TMPDIR to another folder", folder.display());
    io::Error::new(error.kind(), why)
}

fn tmpdir() -> Option<PathBuf> {
    std::env::var_os("TMPDIR").filter(|path| !path.is_empty()).map(PathBuf::from)
}

/// A path in words: with the name of the variable, if it is the folder that `TMPDIR` names.
///
/// ```
/// use std::path::Path;
///
/// assert_eq!(gristmill_os::room::named(Path::new("/no/such/folder")), "/no/such/folder");
/// ```
pub fn named(folder: &Path) -> String {
    let shown = folder.display();
    if tmpdir().is_some_and(|path| path == folder) { format!("{shown} (TMPDIR)") } else { shown.to_string() }
}

/// A folder for temporary files, on a disk that others use too.
///
/// ```
/// use gristmill_os::room::TemporaryFolder;
///
/// let folder = TemporaryFolder::new("/tmp", None);
/// let file = tempfile::tempfile_in(&folder.path)?;
/// assert!(folder.has_room(&file));
/// assert!(!TemporaryFolder::new("/tmp", Some(u64::MAX)).has_room(&file));
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct TemporaryFolder {
    /// Its path.
    pub path: PathBuf,
    /// Bytes that stay free on its file system.
    pub kept_free_bytes: u64,
}

impl TemporaryFolder {
    /// The folder, in which this much stays free: by default, a tenth of what is free now.
    pub fn new(path: impl Into<PathBuf>, kept_free_bytes: Option<u64>) -> TemporaryFolder {
        let path = path.into();
        let kept_free_bytes = kept_free_bytes.unwrap_or_else(|| free_bytes_at(&path) / PARTS_KEPT_FREE);
        TemporaryFolder { path, kept_free_bytes }
    }

    /// True if more is free than is to stay free where `file` lies. A file system that does not tell has room.
    pub fn has_room(&self, file: impl AsFd) -> bool {
        self.kept_free_bytes == 0 || free_bytes_of(file).map_or(true, |free| free >= self.kept_free_bytes)
    }

    /// Gives room on the disk to these bytes of a file in this folder, so that a write to them through a mapping cannot
    /// fail.
    ///
    /// # Errors
    ///
    /// [`NoRoom::Kept`] when less is free than is to stay free; or that of the system.
    pub fn allocate(&self, file: &File, bytes: Range<usize>) -> Result<(), NoRoom> {
        if !self.has_room(file) {
            return Err(NoRoom::Kept);
        }
        loop {
            match fallocate(file, FallocateFlags::empty(), bytes.start as u64, bytes.len() as u64) {
                Err(Errno::INTR) => {}
                // The file system has no call for it.
                Err(Errno::OPNOTSUPP) => {
                    return file.write_all_at(&vec![0; bytes.len()], bytes.start as u64).map_err(NoRoom::System);
                }
                result => return result.map_err(|error| NoRoom::System(error.into())),
            }
        }
    }

    /// Bytes that may still be written here: those that are free beyond what is to stay free. 0 if the file system does
    /// not tell.
    pub fn room_bytes(&self) -> u64 {
        free_bytes_at(&self.path).saturating_sub(self.kept_free_bytes)
    }
}

/// The reason why a file got no room on its disk.
#[derive(Debug)]
pub enum NoRoom {
    /// Less is free than is to stay free.
    Kept,
    /// The system refused it.
    System(io::Error),
}

/// Bytes that are free on the file system of a folder, for users other than root. 0 if it does not tell.
fn free_bytes_at(folder: &Path) -> u64 {
    statvfs(folder).as_ref().map_or(0, free_bytes)
}

/// The same for the file system of an open file.
///
/// # Errors
///
/// When the file system does not tell.
pub fn free_bytes_of(file: impl AsFd) -> io::Result<u64> {
    Ok(free_bytes(&fstatvfs(file)?))
}

fn free_bytes(facts: &StatVfs) -> u64 {
    facts.f_bavail.saturating_mul(facts.f_frsize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_default_a_tenth_of_what_is_free_stays_free() {
        let dir = tempfile::tempdir().unwrap();
        let free = free_bytes_at(dir.path());
        let kept = TemporaryFolder::new(dir.path(), None).kept_free_bytes;
        // Others use the disk meanwhile.
        assert!((free / 20..=free / 5).contains(&kept), "{kept} of {free} bytes");
        assert_eq!(TemporaryFolder::new("/proc", None).kept_free_bytes, 0);
    }
}
