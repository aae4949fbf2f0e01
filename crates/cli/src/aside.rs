//! A file that appears under its name whole, or not at all.
//!
//! It is written without a name in the directory where it will appear, synced, and only then given its
//! name. What has no name vanishes with this process, however that ends. A file system that cannot do so
//! gets a hidden name instead, removed on failure. Devices and pipes have nothing to protect: they are written
//! as they are.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, linkat, open};
use rustix::io::Errno;
use tempfile::TempPath;

use crate::output::standard_output;

/// A file being written.
pub struct Aside {
    pub file: File,
    target: PathBuf,
    place: Place,
}

/// Where the bytes are until they get their name.
enum Place {
    Unnamed,
    Hidden(TempPath),
    /// The target is a device or a pipe.
    Target,
}

impl Aside {
    /// Begins a file that [`Aside::publish`] will name `path`. What is there now stays until then.
    pub fn create(path: &Path) -> io::Result<Aside> {
        // The file that it is redirected to may be longer, and others write there: it is not replaced.
        let stream = match standard(path) {
            Some(Standard::Output) => Some(standard_output()?),
            Some(Standard::Error) => Some(io::stderr().as_fd().try_clone_to_owned()?.into()),
            None => None,
        };
        if let Some(file) = stream {
            return Ok(Aside { file, target: path.to_owned(), place: Place::Target });
        }
        // A link keeps pointing where it points: what it points at is replaced.
        let target = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let present = match fs::metadata(&target) {
            Ok(facts) => Some(facts),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        if let Some(facts) = &present
            && !facts.is_file()
        {
            let file = OpenOptions::new().write(true).open(&target)?; // A directory is refused here.
            return Ok(Aside { file, target, place: Place::Target });
        }
        if target.file_name().is_none() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "this is no name for a file"));
        }
        let (file, place) = begin(&target)?;
        if let Some(facts) = present {
            file.set_permissions(facts.permissions())?;
        }
        Ok(Aside { file, target, place })
    }

    /// Begins a file in the directory of `beside` that gets its name, and that elsewhere in the same file system, from
    /// [`Aside::name`].
    pub fn create_beside(beside: &Path) -> io::Result<Aside> {
        let (file, place) = begin(beside)?;
        Ok(Aside { file, target: beside.to_owned(), place })
    }

    /// Gives the file this name, once the disk has what was written. That the disk has the name too is the caller's business.
    pub fn name(self, target: PathBuf) -> io::Result<()> {
        Aside { target, ..self }.place()
    }

    /// Gives the file its name, once everything has been written and the disk has it.
    pub fn publish(self) -> io::Result<()> {
        if let Place::Target = self.place {
            return Ok(());
        }
        let directory = directory(&self.target).to_owned();
        self.place()?;
        sync_directory(&directory)
    }

    fn place(self) -> io::Result<()> {
        let Aside { file, target, place } = self;
        match place {
            Place::Target => {}
            Place::Unnamed => {
                file.sync_all()?;
                let from = format!("/proc/self/fd/{}", file.as_raw_fd());
                let link = |to: &Path| linkat(CWD, &from, CWD, to, AtFlags::SYMLINK_FOLLOW);
                match link(&target) {
                    Err(Errno::EXIST) => {
                        // A link does not replace; a rename does. The process id keeps runs apart, and whatever
                        // an earlier process of the same id left is of no use to anyone.
                        let name = hidden_name(&target, &std::process::id().to_string());
                        match fs::remove_file(&name) {
                            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                                return Err(error);
                            }
                            _ => link(&name)?,
                        }
                        TempPath::try_from_path(name)?.persist(&target)?;
                    }
                    linked => linked?,
                }
            }
            Place::Hidden(path) => {
                file.sync_all()?;
                path.persist(&target)?;
            }
        }
        Ok(())
    }
}

/// A stream that is open before this program begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standard {
    Output,
    Error,
}

/// The stream that a path is another name of.
pub fn standard(path: &Path) -> Option<Standard> {
    match path.to_str()? {
        "/dev/stdout" | "/dev/fd/1" | "/proc/self/fd/1" => Some(Standard::Output),
        "/dev/stderr" | "/dev/fd/2" | "/proc/self/fd/2" => Some(Standard::Error),
        _ => None,
    }
}

/// The disk has the names in a directory.
pub fn sync_directory(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

/// Begins a file in the directory of `target`.
fn begin(target: &Path) -> io::Result<(File, Place)> {
    unnamed(directory(target)).or_else(|error| match error {
        // The file system has no files without a name, or the kernel does not know of them.
        Errno::OPNOTSUPP | Errno::ISDIR => hidden(target),
        error => Err(error.into()),
    })
}

fn unnamed(directory: &Path) -> Result<(File, Place), Errno> {
    let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
    let file = open(directory, flags, Mode::from_raw_mode(0o666))?;
    Ok((file.into(), Place::Unnamed))
}

fn hidden(target: &Path) -> io::Result<(File, Place)> {
    use std::os::unix::fs::PermissionsExt;
    let file = tempfile::Builder::new()
        .prefix(&hidden_name(target, "").file_name().unwrap_or_default().to_owned())
        .permissions(fs::Permissions::from_mode(0o666))
        .tempfile_in(directory(target))?;
    let (file, path) = file.into_parts();
    Ok((file, Place::Hidden(path)))
}

/// `counts.tsv` is `.counts.tsv.partial-17` until it is whole.
fn hidden_name(target: &Path, end: &str) -> PathBuf {
    let mut name = OsString::from(".");
    name.push(target.file_name().unwrap_or_default());
    name.push(".partial-");
    name.push(end);
    target.with_file_name(name)
}

pub fn directory(target: &Path) -> &Path {
    match target.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn names(directory: &Path) -> Vec<String> {
        let entries = fs::read_dir(directory).expect("a directory");
        entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("text")).collect()
    }

    #[test]
    fn nothing_is_seen_before_the_file_is_published_and_nothing_else_after() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("counts.tsv");
        for content in ["first", "second"] {
            let before = names(dir.path());
            let mut aside = Aside::create(&path).expect("created");
            aside.file.write_all(content.as_bytes()).expect("written");
            assert_eq!(names(dir.path()), before);
            aside.publish().expect("published");
            assert_eq!(names(dir.path()), ["counts.tsv"]);
            assert_eq!(fs::read_to_string(&path).expect("readable"), content);
        }
    }

    #[test]
    fn a_hidden_file_is_published_or_removed() {
        let dir = tempfile::tempdir().expect("a directory");
        let target = dir.path().join("counts.tsv");
        let (file, place) = hidden(&target).expect("created");
        assert!(names(dir.path())[0].starts_with(".counts.tsv.partial-"));
        drop((file, place));
        assert!(names(dir.path()).is_empty());
        let (file, place) = hidden(&target).expect("created");
        Aside { file, target, place }.publish().expect("published");
        assert_eq!(names(dir.path()), ["counts.tsv"]);
    }

    #[test]
    fn what_a_link_points_at_is_replaced_and_keeps_its_permissions() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let dir = tempfile::tempdir().expect("a directory");
        let (file, link) = (dir.path().join("file"), dir.path().join("link"));
        fs::write(&file, "old").expect("written");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).expect("set");
        symlink("file", &link).expect("linked");
        Aside::create(&link).expect("created").publish().expect("published");
        assert!(link.is_symlink());
        let facts = fs::metadata(&file).expect("there");
        assert_eq!((facts.len(), facts.permissions().mode() & 0o777), (0, 0o640));
    }
}
