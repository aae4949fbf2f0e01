//! Open folders, and the names in them.
//!
//! A path is followed name by name, each in a folder that is already open. Files are made, replaced and removed by
//! their name in an open folder. So a folder on the way that is replaced meanwhile changes nothing.
//!
//! Symbolic links are followed, with one exception, the rule of the kernel's `fs.protected_symlinks`, `protected_fifos`
//! and `protected_regular` for every name of a path and whatever the kernel's settings: **in a folder that everybody
//! may write to (such as `/tmp`), the link, file or FIFO of another user is not used**, unless it belongs to the owner
//! of that folder.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{
    AtFlags, CWD, FileType, Gid, Mode, OFlags, PROC_SUPER_MAGIC, Stat, Uid, XattrFlags, fchmod, fchown, fremovexattr,
    fsetxattr, fstat, fstatfs, fsync, lgetxattr, linkat, mkdirat, openat, readlinkat, renameat, statat, unlinkat,
};
use rustix::io::Errno;
use rustix::process::geteuid;
use rustix::rand::{GetRandomFlags, getrandom};

/// An open folder. Its methods take names without a `/`.
#[derive(Debug)]
pub struct Folder {
    /// Opened with `O_PATH`: a folder may be one that can be entered and not listed.
    fd: OwnedFd,
}

/// A name in an open folder, with its status when it was found.
#[derive(Debug)]
pub struct Entry {
    /// The folder of the name.
    pub folder: Folder,
    /// The name; `.` for the folder itself.
    pub name: OsString,
    /// `None` if the name does not exist.
    facts: Option<Stat>,
    /// It is a link of `/proc` to something without a path, such as `/proc/self/fd/63` to a pipe.
    is_open_file: bool,
}

/// The most links in one path, as in the kernel.
const LINKS_MAX: u32 = 40;
/// The permission bits of a file, without setuid, setgid and sticky.
const PERMISSIONS: u32 = 0o777;

impl Entry {
    /// The entry that `path` leads to. A last name that is a link is followed.
    ///
    /// # Errors
    /// The system's error, or an error that another user put something on the way there.
    pub fn find(path: &Path) -> io::Result<Entry> {
        walk(path, true, false)
    }

    /// As [`Entry::find`], but a last name that is a link is not followed.
    ///
    /// # Errors
    /// As [`Entry::find`].
    pub fn find_itself(path: &Path) -> io::Result<Entry> {
        walk(path, false, false)
    }

    /// True if the name exists.
    pub fn is_there(&self) -> bool {
        self.facts.is_some()
    }

    /// True for a regular file: no folder, link, device, FIFO or socket.
    pub fn is_file(&self) -> bool {
        self.is(FileType::RegularFile)
    }

    /// True for a folder.
    pub fn is_folder(&self) -> bool {
        self.is(FileType::Directory)
    }

    /// True for a symbolic link, which only [`Entry::find_itself`] returns.
    pub fn is_link(&self) -> bool {
        self.is(FileType::Symlink)
    }

    /// True if it lies in another file system than its folder.
    pub fn is_mount_point(&self) -> io::Result<bool> {
        let folder = fstat(&self.folder.fd)?;
        Ok(self.facts.is_some_and(|facts| facts.st_dev != folder.st_dev))
    }

    fn is(&self, kind: FileType) -> bool {
        self.facts.is_some_and(|facts| kind_of(&facts) == kind)
    }

    /// Opens a device, FIFO or socket for writing.
    ///
    /// # Errors
    /// The system's error.
    pub fn open_special(&self) -> io::Result<File> {
        let follow = if self.is_open_file { OFlags::empty() } else { OFlags::NOFOLLOW };
        let flags = OFlags::WRONLY | OFlags::NOCTTY | OFlags::CLOEXEC | follow;
        let file = openat(&self.folder.fd, &self.name, flags, Mode::empty())?;
        let (opened, found) = (fstat(&file)?, self.facts);
        match found.is_some_and(|found| is_same(&found, &opened)) {
            true => Ok(file.into()),
            false => Err(io::Error::other("it was replaced while it was opened")),
        }
    }

    /// Opens or makes a file that is this user's own, to read it and to write at its end.
    ///
    /// A new file is readable by this user only.
    ///
    /// # Errors
    /// The system's error; or an error that says why it is not this user's own, as [`Entry::check_own`] has it.
    ///
    /// ```
    /// use gristmill_os::folder::Entry;
    ///
    /// let folder = tempfile::tempdir()?;
    /// let entry = Entry::find(&folder.path().join("journal"))?;
    /// assert!(entry.open_own(false).is_err() && entry.open_own(true).is_ok());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn open_own(&self, makes: bool) -> io::Result<File> {
        // Opening some devices starts something.
        self.check_own()?;
        let (file, facts) = open_at_once(&self.folder.fd, &self.name, makes, true).map_err(OpenError::about_it)?;
        check_own_alone(&facts)?;
        Ok(file)
    }

    /// Fails if something is there that is not this user's own: no regular file, another user's, one with a second name
    /// elsewhere, or one that others may write to.
    ///
    /// It is not opened, so a program that uses it keeps its locks.
    ///
    /// # Errors
    /// An error that says which of these it is.
    ///
    /// ```
    /// use gristmill_os::folder::Entry;
    ///
    /// let folder = tempfile::tempdir()?;
    /// std::fs::create_dir(folder.path().join("below"))?;
    /// let why = Entry::find(&folder.path().join("below"))?.check_own().expect_err("a folder");
    /// assert_eq!(why.to_string(), "it is no regular file");
    /// assert!(Entry::find(&folder.path().join("free"))?.check_own().is_ok());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn check_own(&self) -> io::Result<()> {
        self.facts.as_ref().map_or(Ok(()), check_own_alone)
    }

    /// The entry of another name in the same folder, which is not followed if it is a link.
    ///
    /// # Errors
    /// The system's error.
    pub fn beside(&self, name: impl Into<OsString>) -> io::Result<Entry> {
        let (fd, name) = (self.folder.fd.try_clone()?, name.into());
        let facts = facts_of(&fd, &name)?;
        Ok(Entry { folder: Folder { fd }, name, facts, is_open_file: false })
    }

    /// Gives the replacement `new` the owner, group, permissions and access control list of this entry.
    ///
    /// A file never gets the setuid or the setgid bit. A folder keeps these bits, which mean something else there.
    ///
    /// # Errors
    /// The system's error; or the entry belongs to another user, and this process may not give files away.
    pub fn hand_down(&self, new: impl AsFd) -> io::Result<()> {
        let Some(old) = self.facts else { return Ok(()) };
        let made = fstat(&new)?;
        let mode = |of_group: u32| {
            let kept = if kind_of(&old) == FileType::Directory { 0o7777 } else { PERMISSIONS };
            Mode::from_raw_mode(old.st_mode & kept & (of_group | !0o070))
        };
        // A group that is not the right one may do what everybody may.
        let others = (old.st_mode & 0o007) << 3;
        fchmod(&new, mode(others))?;
        let is_of_its_group = if made.st_uid != old.st_uid {
            let kept = fchown(&new, Some(Uid::from_raw(old.st_uid)), Some(Gid::from_raw(old.st_gid)));
            kept.map_err(|_| belongs_to(old.st_uid, "what replaces it would not. Remove it first, or name another"))?;
            true
        } else {
            made.st_gid == old.st_gid || fchown(&new, None, Some(Gid::from_raw(old.st_gid))).is_ok()
        };
        // A list changes the permissions of the group.
        let has_its_lists = self.hand_down_lists(&new);
        Ok(fchmod(&new, mode(if is_of_its_group && has_its_lists { 0o070 } else { others }))?)
    }

    /// Copies the access control lists; false if one cannot be copied.
    fn hand_down_lists(&self, new: impl AsFd) -> bool {
        let mut path = OsString::from(format!("/proc/self/fd/{}/", self.folder.fd.as_raw_fd()));
        path.push(&self.name);
        let mut all = true;
        for list in ["system.posix_acl_access", "system.posix_acl_default"] {
            // Longer than any that a file system takes.
            let mut bytes = vec![0; 64 << 10];
            match lgetxattr(&path, list, &mut bytes[..]) {
                Ok(length) => all &= fsetxattr(&new, list, &bytes[..length], XattrFlags::empty()).is_ok(),
                // It may have one from its folder, which the old one had not.
                Err(_) => drop(fremovexattr(&new, list)),
            }
        }
        all
    }

    /// Fails if the name now leads to another user's file, and `new` is to replace it.
    ///
    /// # Errors
    /// That, and the system's errors.
    pub fn check_before_replacing(&self, new: impl AsFd) -> io::Result<()> {
        let (new, now) = (fstat(new)?, facts_of(&self.folder.fd, &self.name)?);
        match now {
            // What was there before belongs to the owner of `new`.
            Some(now) if now.st_uid != new.st_uid => Err(belongs_to(now.st_uid, "was put there meanwhile")),
            _ => Ok(()),
        }
    }
}

impl Folder {
    /// Opens the folder at `path`.
    ///
    /// # Errors
    /// The system's error, or an error that another user put something on the way there.
    pub fn open(path: &Path) -> io::Result<Folder> {
        Folder::of(walk(path, true, false)?)
    }

    /// As [`Folder::open`], and makes missing folders.
    ///
    /// # Errors
    /// As [`Folder::open`].
    pub fn make(path: &Path) -> io::Result<Folder> {
        let entry = walk(path, true, true)?;
        if !entry.is_there() {
            entry.folder.make_folder(&entry.name, 0o777)?;
        }
        Folder::of(entry)
    }

    /// Opens or makes a folder that only this user may write to, and missing parents.
    ///
    /// # Errors
    /// The system's error; or the folder is a symbolic link, belongs to another user, or others may write to it.
    pub fn private(path: &Path) -> io::Result<Folder> {
        let entry = walk(path, false, true)?;
        if entry.is_link() {
            return Err(io::Error::other(
                "it is a symbolic link, which somebody may change. Name the folder that it leads to",
            ));
        }
        if !entry.is_there() {
            match mkdirat(&entry.folder.fd, &entry.name, Mode::RWXU) {
                // Another run has made it.
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Folder::of(entry)?.ours_alone()
    }

    /// As [`Folder::private`], for a folder that exists.
    ///
    /// # Errors
    /// As there, or the folder does not exist.
    pub fn open_private(path: &Path) -> io::Result<Folder> {
        let entry = walk(path, false, false)?;
        match entry.is_there() {
            true => Folder::of(entry)?.ours_alone(),
            false => Err(Errno::NOENT.into()),
        }
    }

    fn ours_alone(self) -> io::Result<Folder> {
        let facts = fstat(&self.fd)?;
        if facts.st_uid != geteuid().as_raw() {
            return Err(belongs_to(facts.st_uid, "could change what is in it"));
        }
        check_nobody_else_writes(&facts)?;
        Ok(self)
    }

    fn of(entry: Entry) -> io::Result<Folder> {
        Ok(Folder { fd: open_folder(&entry.folder.fd, &entry.name)? })
    }

    /// Begins a file without a name, for writing.
    ///
    /// It gets those of these permissions that the process's mask grants.
    ///
    /// # Errors
    /// The system's error: `EOPNOTSUPP` or `EISDIR` if the file system has no such files.
    pub fn make_unnamed(&self, mode: u32) -> Result<File, Errno> {
        let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
        Ok(openat(&self.fd, ".", flags, Mode::from_raw_mode(mode))?.into())
    }

    /// Explains why no file could be made here: a folder that was deleted while it was open gives odd errors.
    pub fn explain(&self, error: Errno) -> io::Error {
        match fstat(&self.fd) {
            Ok(facts) if facts.st_nlink == 0 => io::Error::other("its folder was deleted: cd to one that is there"),
            _ => error.into(),
        }
    }

    /// Names an unnamed file. The name must be free.
    ///
    /// # Errors
    /// The system's error.
    pub fn name(&self, file: impl AsFd, name: impl AsRef<OsStr>) -> Result<(), Errno> {
        let from = format!("/proc/self/fd/{}", file.as_fd().as_raw_fd());
        linkat(CWD, from, &self.fd, name.as_ref(), AtFlags::SYMLINK_FOLLOW)
    }

    /// Makes a file for writing. The name must be free.
    ///
    /// # Errors
    /// The system's error.
    pub fn make_file(&self, name: impl AsRef<OsStr>, mode: u32) -> Result<File, Errno> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(openat(&self.fd, name.as_ref(), flags, Mode::from_raw_mode(mode))?.into())
    }

    /// Opens or makes a file of this user, for reading and writing.
    ///
    /// A new file is readable by this user only. With `appends`, writes go to the end.
    ///
    /// # Errors
    /// The system's error; or it is no regular file, belongs to another user, or has a second name elsewhere.
    pub fn open_file(&self, name: impl AsRef<OsStr>, makes: bool, appends: bool) -> io::Result<File> {
        let name = name.as_ref();
        let about_name = |error: OpenError| match error {
            OpenError::System(error) => error.into(),
            OpenError::NotOwn(why) => io::Error::other(format!("{} in it {why}", name.display())),
        };
        let (file, _) = open_at_once(&self.fd, name, makes, appends).map_err(about_name)?;
        Ok(file)
    }

    /// Makes a folder and opens it. The name must be free.
    ///
    /// # Errors
    /// The system's error.
    pub fn make_folder(&self, name: impl AsRef<OsStr>, mode: u32) -> io::Result<Folder> {
        mkdirat(&self.fd, name.as_ref(), Mode::from_raw_mode(mode))?;
        Ok(Folder { fd: open_folder(&self.fd, name.as_ref())? })
    }

    /// Renames an entry of this folder to a name in another, which it replaces.
    ///
    /// # Errors
    /// The system's error.
    pub fn rename(&self, from: impl AsRef<OsStr>, folder: &Folder, to: impl AsRef<OsStr>) -> io::Result<()> {
        Ok(renameat(&self.fd, from.as_ref(), &folder.fd, to.as_ref())?)
    }

    /// Removes an entry that is no folder. It may be gone already.
    ///
    /// # Errors
    /// The system's error.
    pub fn remove(&self, name: impl AsRef<OsStr>) -> io::Result<()> {
        match unlinkat(&self.fd, name.as_ref(), AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Removes an empty folder.
    ///
    /// # Errors
    /// The system's error.
    pub fn remove_folder(&self, name: impl AsRef<OsStr>) -> io::Result<()> {
        Ok(unlinkat(&self.fd, name.as_ref(), AtFlags::REMOVEDIR)?)
    }

    /// True if the name leads to `file`.
    ///
    /// # Errors
    /// The system's error.
    pub fn has(&self, name: impl AsRef<OsStr>, file: impl AsFd) -> io::Result<bool> {
        let (named, file) = (facts_of(&self.fd, name.as_ref())?, fstat(file)?);
        Ok(named.is_some_and(|named| is_same(&named, &file)))
    }

    /// The names in it, in no order, without `.` and `..`.
    ///
    /// # Errors
    /// The system's error.
    pub fn names(&self) -> io::Result<Vec<OsString>> {
        let mut names = Vec::new();
        for entry in rustix::fs::Dir::read_from(self.opened()?)? {
            let name = OsString::from_vec(entry?.file_name().to_bytes().to_vec());
            if name != "." && name != ".." {
                names.push(name);
            }
        }
        Ok(names)
    }

    /// Returns when the names of the folder are on the disk.
    ///
    /// A user that may not list a folder cannot ask for that, and need not.
    ///
    /// # Errors
    /// The system's error.
    pub fn sync(&self) -> io::Result<()> {
        match self.opened() {
            Ok(fd) => Ok(fsync(fd)?),
            Err(Errno::ACCESS) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Opens the folder for reading, to list it or to change its permissions.
    ///
    /// # Errors
    /// The system's error.
    pub fn opened(&self) -> Result<OwnedFd, Errno> {
        openat(&self.fd, ".", OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
    }
}

impl AsFd for Folder {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// The reason why a file is not opened: the system's, or the end of a sentence about it.
enum OpenError {
    System(Errno),
    NotOwn(String),
}

impl OpenError {
    fn about_it(self) -> io::Error {
        match self {
            OpenError::System(error) => error.into(),
            OpenError::NotOwn(why) => io::Error::other(format!("it {why}")),
        }
    }
}

/// Opens or makes a file of this user without waiting, and returns its status.
fn open_at_once(at: &OwnedFd, name: &OsStr, makes: bool, appends: bool) -> Result<(File, Stat), OpenError> {
    // A FIFO would be waited for otherwise.
    let mut flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    flags.set(OFlags::CREATE, makes);
    flags.set(OFlags::APPEND, appends);
    let not_own = |why: &str| OpenError::NotOwn(why.to_owned());
    let file = openat(at, name, flags, Mode::RUSR | Mode::WUSR).map_err(|error| match error {
        Errno::LOOP => not_own("is a symbolic link, and a file is expected"),
        Errno::ISDIR => not_own("is a folder, and a file is expected"),
        // A socket, or a device that has no driver.
        Errno::NXIO | Errno::NODEV => not_own(NO_FILE),
        error => OpenError::System(error),
    })?;
    let facts = fstat(&file).map_err(OpenError::System)?;
    match why_not_own(&facts) {
        Some(why) => Err(OpenError::NotOwn(why)),
        None => Ok((file.into(), facts)),
    }
}

const NO_FILE: &str = "is no regular file";

/// Says why a file is not this user's own, as the end of a sentence; `None` if it is.
fn why_not_own(facts: &Stat) -> Option<String> {
    match () {
        () if kind_of(facts) != FileType::RegularFile => Some(NO_FILE.to_owned()),
        () if facts.st_uid != geteuid().as_raw() => {
            Some(format!("belongs to user {}, who could change what is in it", facts.st_uid))
        }
        () if facts.st_nlink > 1 => Some("has another name elsewhere (it is a hard link)".to_owned()),
        () => None,
    }
}

/// Fails unless a file is this user's own, and no other user may write to it.
fn check_own_alone(facts: &Stat) -> io::Result<()> {
    match why_not_own(facts) {
        Some(why) => Err(OpenError::NotOwn(why).about_it()),
        None => check_nobody_else_writes(facts),
    }
}

fn check_nobody_else_writes(facts: &Stat) -> io::Result<()> {
    if facts.st_mode & 0o022 == 0 {
        return Ok(());
    }
    let mode = facts.st_mode & 0o7777;
    Err(io::Error::other(format!(
        "others may write to it (its mode is {mode:04o}): take that right from them with chmod go-w"
    )))
}

/// An unpredictable name for an unfinished `name`: `.counts.tsv.partial-8c2f6a1be09d4437`.
///
/// # Errors
/// If the system has no random numbers.
pub fn hidden_name(name: &OsStr) -> io::Result<OsString> {
    let mut random = [0; 8];
    getrandom(&mut random[..], GetRandomFlags::empty())?;
    // It must fit into the 255 bytes that a name may have.
    let name = &name.as_bytes()[..name.len().min(200)];
    let mut hidden = OsString::from(".");
    hidden.push(OsStr::from_bytes(name));
    hidden.push(format!(".partial-{:016x}", u64::from_ne_bytes(random)));
    Ok(hidden)
}

/// True if [`hidden_name`] may have made `hidden` of `name`.
pub fn is_hidden_name(hidden: &OsStr, name: &OsStr) -> bool {
    let name = &name.as_bytes()[..name.len().min(200)];
    let rest = hidden.as_bytes().strip_prefix(b".").and_then(|rest| rest.strip_prefix(name));
    let random = rest.and_then(|rest| rest.strip_prefix(b".partial-"));
    random.is_some_and(|random| random.len() == 16 && random.iter().all(u8::is_ascii_hexdigit))
}

/// Follows `path`. A last name that is a link is followed if `to_end`.
///
/// If `makes`, missing folders are made, except the last one.
fn walk(path: &Path, to_end: bool, makes: bool) -> io::Result<Entry> {
    if path.as_os_str().is_empty() {
        return Err(Errno::NOENT.into());
    }
    let root = || open_folder(CWD, OsStr::new("/"));
    let mut at = if path.is_absolute() { root()? } else { open_folder(CWD, OsStr::new("."))? };
    // What messages call the way so far; and the names that are left, the next one last.
    let mut shown = PathBuf::from(if path.is_absolute() { "/" } else { "" });
    let mut left: Vec<OsString> = names_of(path).rev().collect();
    let mut links = 0;
    let mut expected: Option<Stat> = None;
    let entry = |at, name, facts, is_open_file| Entry { folder: Folder { fd: at }, name, facts, is_open_file };
    loop {
        let Some(name) = left.pop() else {
            let facts = fstat(&at)?;
            return Ok(entry(at, ".".into(), Some(facts), false));
        };
        let is_last = left.is_empty();
        let Some(mut facts) = facts_of(&at, &name)? else {
            match (is_last, makes) {
                _ if expected.is_some() => return Err(io::Error::other("the open file has no name any more")),
                (true, _) => return Ok(entry(at, name, None, false)),
                (false, false) => return Err(Errno::NOENT.into()),
                (false, true) => match mkdirat(&at, &name, Mode::from_raw_mode(0o777)) {
                    Ok(()) | Err(Errno::EXIST) => {
                        left.push(name);
                        continue;
                    }
                    Err(error) => return Err(error.into()),
                },
            }
        };
        shown.push(&name);
        if kind_of(&facts) == FileType::Symlink && (to_end || !is_last) {
            links += 1;
            if links > LINKS_MAX {
                return Err(Errno::LOOP.into());
            }
            let link = openat(&at, &name, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?;
            refuse_planted(&at, &fstat(&link)?, &shown)?;
            if fstatfs(&at)?.f_type == PROC_SUPER_MAGIC {
                // The kernel knows where it leads; its text need not be a path.
                facts = statat(&at, &name, AtFlags::empty())?;
                match kind_of(&facts) {
                    FileType::Directory => {
                        at = openat(&at, &name, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
                        continue;
                    }
                    FileType::RegularFile => expected = Some(facts),
                    _ if is_last => return Ok(entry(at, name, Some(facts), true)),
                    _ => return Err(Errno::NOTDIR.into()),
                }
            }
            let to = PathBuf::from(OsString::from_vec(readlinkat(&link, "", Vec::new())?.into_bytes()));
            shown.pop();
            if to.is_absolute() {
                (at, shown) = (root()?, PathBuf::from("/"));
            }
            left.extend(names_of(&to).rev());
        } else if is_last {
            if expected.is_some_and(|expected| !is_same(&expected, &facts)) {
                return Err(io::Error::other("the open file has no name any more"));
            }
            if !to_end || kind_of(&facts) != FileType::Directory {
                refuse_planted(&at, &facts, &shown)?;
            }
            return Ok(entry(at, name, Some(facts), false));
        } else {
            at = open_folder(&at, &name)?;
        }
    }
}

/// The names of a path, including `..`.
fn names_of(path: &Path) -> impl DoubleEndedIterator<Item = OsString> {
    path.components().filter_map(|component| match component {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
    })
}

/// Opens the folder of that name, which must not be a link.
fn open_folder(at: impl AsFd, name: &OsStr) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(at, name, flags, Mode::empty())
}

/// The status of a name, if it exists; of a link, its own.
fn facts_of(at: impl AsFd, name: &OsStr) -> Result<Option<Stat>, Errno> {
    match statat(at, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(facts) => Ok(Some(facts)),
        Err(Errno::NOENT) => Ok(None),
        Err(error) => Err(error),
    }
}

fn kind_of(facts: &Stat) -> FileType {
    FileType::from_raw_mode(facts.st_mode)
}

fn is_same(one: &Stat, other: &Stat) -> bool {
    (one.st_dev, one.st_ino) == (other.st_dev, other.st_ino)
}

/// Fails if another user may have planted this entry.
fn refuse_planted(folder: impl AsFd, facts: &Stat, shown: &Path) -> io::Result<()> {
    let folder = fstat(folder)?;
    if !is_planted(folder.st_mode, folder.st_uid, facts.st_uid, geteuid().as_raw()) {
        return Ok(());
    }
    let (what, is_not) = match kind_of(facts) {
        FileType::Symlink => ("a symbolic link", "is not followed. Name what it leads to"),
        FileType::Fifo => ("a FIFO", "is not written to. Name another"),
        FileType::Directory => ("a folder", "is not used. Name another"),
        _ => ("a file", "is not replaced. Name another"),
    };
    let (shown, owner) = (shown.display(), facts.st_uid);
    let why = format!("{shown} is {what} of user {owner} in a folder that others may write to, and {is_not}");
    Err(io::Error::new(io::ErrorKind::PermissionDenied, why))
}

/// True if `owner` may have planted an entry in a folder of this mode and owner.
fn is_planted(folder_mode: u32, folder_owner: u32, owner: u32, user: u32) -> bool {
    let is_open_to_all = folder_mode & 0o002 != 0;
    let is_shared_and_sticky = folder_mode & 0o1020 == 0o1020;
    (is_open_to_all || is_shared_and_sticky) && owner != user && owner != folder_owner
}

fn belongs_to(owner: u32, why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, format!("it belongs to user {owner}, and {why}"))
}

#[cfg(test)]
mod tests;
