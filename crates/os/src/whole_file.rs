//! Files that appear under their name whole, or not at all.
//!
//! A file is written without a name in its folder, synced, and only then given its name. A file without a name
//! vanishes with this process, however the process ends. If the file system cannot do this, the file gets a hidden name
//! instead. It is removed on failure or, if this process is killed, by the next run: the file is locked as long as a
//! process of its run lives. Devices and pipes are written directly: they have no earlier content to protect.
//!
//! The folder is opened once, at the beginning, so it does not matter what its path leads to later.
//! [`crate::folder`] defines which links are followed. A file that replaces another gets its owner and
//! permissions, or the job does not begin.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::rc::Rc;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use crate::folder::{Entry, Folder, hidden_name, is_hidden_name};
use crate::standard::standard_output;

/// A file being written.
///
/// ```
/// use std::io::Write;
/// use gristmill_os::whole_file::Aside;
///
/// let folder = tempfile::tempdir()?;
/// let mut aside = Aside::create(&folder.path().join("counts"))?;
/// aside.file.write_all(b"frog 1")?;
/// assert_eq!(std::fs::read_dir(&folder)?.count(), 0);
/// aside.publish()?;
/// assert_eq!(std::fs::read(folder.path().join("counts"))?, b"frog 1");
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct Aside {
    /// The content so far.
    pub file: File,
    /// `None` for a device or a pipe, which is written directly.
    place: Option<FutureName>,
}

/// The future name.
struct FutureName {
    target: Rc<Entry>,
    /// The temporary name, if the file must have one.
    hidden: Option<Hidden>,
}

/// A name in the folder of an entry, removed when it is dropped.
struct Hidden {
    beside: Rc<Entry>,
    name: OsString,
}

impl Drop for Hidden {
    fn drop(&mut self) {
        // The file may be gone already.
        let _ = self.beside.folder.remove(&self.name);
    }
}

/// The bytes that are written at once.
const BUFFER_BYTES: usize = 64 << 10;

impl Aside {
    /// Begins a file that [`Aside::publish`] will name `path`. A file that exists there stays until then.
    pub fn create(path: &Path) -> io::Result<Aside> {
        Aside::create_of(path, Entry::open_special)
    }

    /// As [`Aside::create`], but a device or a FIFO, which might be waited for without end, is an error.
    pub fn create_file(path: &Path) -> io::Result<Aside> {
        Aside::create_of(path, |_| Err(io::Error::other("it is no regular file")))
    }

    fn create_of(path: &Path, special: impl FnOnce(&Entry) -> io::Result<File>) -> io::Result<Aside> {
        // Standard output may be redirected to a longer file that others write to, so that file is not replaced.
        let stream = match standard(path) {
            Some(Standard::Output) => Some(standard_output()?),
            Some(Standard::Error) => Some(io::stderr().as_fd().try_clone_to_owned()?.into()),
            None => None,
        };
        if let Some(file) = stream {
            return Ok(Aside { file, place: None });
        }
        // A link stays, and its target is replaced.
        let entry = Entry::find(path)?;
        if entry.is_folder() || path.as_os_str().as_bytes().ends_with(b"/") {
            return Err(Errno::ISDIR.into());
        }
        if entry.is_there() && !entry.is_file() {
            return Ok(Aside { file: special(&entry)?, place: None });
        }
        let mode = if entry.is_there() { 0o600 } else { 0o666 };
        let aside = Aside::begin(Rc::new(entry), mode)?;
        aside.remove_left_over();
        aside.target().hand_down(&aside.file)?;
        Ok(aside)
    }

    /// Begins a file in the folder of `beside`. [`Aside::name`] gives it a name, which may be elsewhere on the same
    /// file system.
    pub fn create_beside(beside: &Rc<Entry>) -> io::Result<Aside> {
        Aside::begin(beside.clone(), 0o666)
    }

    fn begin(target: Rc<Entry>, mode: u32) -> io::Result<Aside> {
        match target.folder.make_unnamed(mode) {
            Ok(file) => Ok(Aside { file, place: Some(FutureName { target, hidden: None }) }),
            // The file system does not support files without a name, or the kernel does not.
            Err(Errno::OPNOTSUPP | Errno::ISDIR) => Aside::begin_hidden(target, mode),
            Err(error) => Err(target.folder.explain(error)),
        }
    }

    fn begin_hidden(target: Rc<Entry>, mode: u32) -> io::Result<Aside> {
        loop {
            let name = hidden_name(&target.name)?;
            let file = target.folder.make_file(&name, mode).map_err(|error| target.folder.explain(error))?;
            let locked = flock(&file, FlockOperation::NonBlockingLockExclusive);
            // Another run may have removed it as a leftover.
            if locked != Err(Errno::WOULDBLOCK) && target.folder.has(&name, &file)? {
                let hidden = Some(Hidden { beside: target.clone(), name });
                return Ok(Aside { file, place: Some(FutureName { target, hidden }) });
            }
        }
    }

    /// Removes the hidden files of this name that killed runs have left: those that are not locked.
    pub fn remove_left_over(&self) {
        let Some(FutureName { target, hidden: Some(_) }) = &self.place else { return };
        let Entry { folder, name, .. } = &**target;
        for other in folder.names().unwrap_or_default().iter().filter(|other| is_hidden_name(other, name)) {
            let Ok(file) = folder.open_file(other, false, false) else { continue };
            if flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok() {
                let _ = folder.remove(other);
            }
        }
    }

    fn target(&self) -> &Entry {
        &self.place.as_ref().expect("it is begun beside a name").target
    }

    /// Syncs the file and gives it this name, which is free. The caller must sync the folder.
    pub fn name(self, folder: &Folder, name: &OsStr) -> io::Result<()> {
        self.file.sync_all()?;
        match &self.place.as_ref().expect("it is begun beside a name").hidden {
            None => Ok(folder.name(&self.file, name)?),
            Some(hidden) => hidden.beside.folder.rename(&hidden.name, folder, name),
        }
    }

    /// Writes the rest of the file by a function, and publishes it.
    pub fn write(self, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
        let mut to = BufWriter::with_capacity(BUFFER_BYTES, &self.file);
        write(&mut to)?;
        to.flush()?;
        drop(to);
        self.publish()
    }

    /// Syncs the file and gives it its name, once everything has been written.
    pub fn publish(self) -> io::Result<()> {
        let Aside { file, place } = self;
        let Some(FutureName { target, hidden }) = place else { return Ok(()) };
        file.sync_all()?;
        target.check_before_replacing(&file)?;
        let Entry { folder, name, .. } = &*target;
        let hidden = match hidden {
            Some(hidden) => Some(hidden),
            None => match folder.name(&file, name) {
                // A link cannot replace a file; a rename can.
                Err(Errno::EXIST) => {
                    let hidden = Hidden { beside: target.clone(), name: hidden_name(name)? };
                    folder.name(&file, &hidden.name)?;
                    Some(hidden)
                }
                named => {
                    named?;
                    None
                }
            },
        };
        if let Some(hidden) = hidden {
            folder.rename(&hidden.name, folder, name)?;
        }
        folder.sync()
    }
}

/// A standard stream, open before this program begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standard {
    /// Standard output.
    Output,
    /// Standard error.
    Error,
}

/// Returns the stream that a path is another name of.
pub fn standard(path: &Path) -> Option<Standard> {
    match path.to_str()? {
        "/dev/stdout" | "/dev/fd/1" | "/proc/self/fd/1" => Some(Standard::Output),
        "/dev/stderr" | "/dev/fd/2" | "/proc/self/fd/2" => Some(Standard::Error),
        _ => None,
    }
}

/// Returns the folder of a path.
pub fn directory(target: &Path) -> &Path {
    match target.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::io::Write;
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

    fn names(directory: &Path) -> Vec<String> {
        let entries = fs::read_dir(directory).expect("a directory");
        entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("text")).collect()
    }

    #[test]
    fn only_the_published_file_is_ever_visible() {
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
        let target = Rc::new(Entry::find(&dir.path().join("counts.tsv")).expect("free"));
        let aside = Aside::begin_hidden(target.clone(), 0o666).expect("created");
        assert!(names(dir.path())[0].starts_with(".counts.tsv.partial-"));
        drop(aside);
        assert!(names(dir.path()).is_empty());
        Aside::begin_hidden(target, 0o666).expect("created").publish().expect("published");
        assert_eq!(names(dir.path()), ["counts.tsv"]);
    }

    #[test]
    fn files_left_by_a_killed_run_are_removed_by_the_next() {
        // On a file system without unnamed files, a run stopped by SIGTERM once left `.counts.tsv.partial-...` for
        // ever.
        let dir = tempfile::tempdir().expect("a directory");
        let target = Rc::new(Entry::find(&dir.path().join("counts.tsv")).expect("free"));
        let alive = Aside::begin_hidden(target.clone(), 0o666).expect("created");
        let [left, named, elsewhere] =
            [".counts.tsv.partial-0123456789abcdef", ".counts.tsv.partial-mine", ".sums.tsv.partial-0123456789abcdef"];
        [left, named, elsewhere].iter().for_each(|name| fs::write(dir.path().join(name), "left").expect("written"));
        let next = Aside::begin_hidden(target, 0o666).expect("created");
        next.remove_left_over();
        let found = names(dir.path());
        assert!(!found.contains(&left.to_owned()) && found.len() == 4, "{found:?}");
        alive.publish().and_then(|()| next.publish()).expect("published");
        assert_eq!(names(dir.path()).len(), 3);
    }

    #[test]
    fn the_target_of_a_link_is_replaced_and_keeps_its_permissions() {
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

    #[test]
    fn replacing_the_folder_meanwhile_does_not_redirect_the_file() {
        // Another user who may rename a folder of the path could otherwise redirect the result while the job ran.
        let dir = tempfile::tempdir().expect("a directory");
        let [folder, moved, victim] = ["folder", "moved", "victim"].map(|name| dir.path().join(name));
        [&folder, &victim].iter().for_each(|dir| fs::create_dir(dir).expect("made"));
        let aside = Aside::create(&folder.join("out")).expect("created");
        fs::rename(&folder, &moved).and_then(|()| symlink(&victim, &folder)).expect("replaced");
        aside.publish().expect("published");
        assert_eq!((names(&moved), names(&victim)), (vec!["out".to_owned()], vec![]));
    }

    #[test]
    fn files_that_others_create_meanwhile_are_not_taken_over() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("out");
        let aside = Aside::create(&path).expect("created");
        fs::write(&path, "ours, and new").expect("written");
        aside.publish().expect("ours is replaced");
        if rustix::process::geteuid().is_root() {
            let aside = Aside::create(&path).expect("created");
            fs::remove_file(&path).and_then(|()| fs::write(&path, "theirs")).expect("written");
            std::os::unix::fs::chown(&path, Some(1000), Some(1000)).expect("given away");
            let why = aside.publish().expect_err("refused").to_string();
            assert_eq!(why, "it belongs to user 1000, and was put there meanwhile");
            assert_eq!(
                (fs::read(&path).expect("there"), fs::metadata(&path).expect("there").uid()),
                (b"theirs".into(), 1000)
            );
        }
        assert_eq!(names(dir.path()), ["out"]);
    }
}
