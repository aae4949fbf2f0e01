//! The place of the file: its folder, its name, and the files that SQLite keeps beside it. All must be this user's own.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::path::{Path, PathBuf};

use gristmill_os::folder::Entry;

/// The ends of the names of the files beside it.
const BESIDE: [&str; 4] = ["", "-wal", "-shm", "-journal"];

/// The place of a history.
pub(crate) struct HistoryPath(Entry);

impl HistoryPath {
    /// Follows the path. The folder stays the one that it leads to now.
    pub(crate) fn find(path: &Path) -> io::Result<HistoryPath> {
        let place = HistoryPath(Entry::find(path)?);
        place.check()?;
        if !place.0.is_there() {
            // SQLite gives the files beside it the permissions of this one.
            match place.0.folder.make_file(&place.0.name, 0o600) {
                // Another process has made it.
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => place.check()?,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(place)
    }

    /// Fails if one of the files is not this user's own. None is opened, because closing it would drop SQLite's locks.
    pub(crate) fn check(&self) -> io::Result<()> {
        for end in BESIDE {
            let mut name = OsString::from(&self.0.name);
            name.push(end);
            let checked = self.0.beside(&name).and_then(|entry| entry.check_own());
            checked.map_err(|why| match end {
                "" => why,
                _ => io::Error::new(why.kind(), format!("{} beside it is not used: {why}", name.display())),
            })?;
        }
        Ok(())
    }

    /// A path to the file through its open folder, which nobody can replace meanwhile.
    pub(crate) fn path(&self) -> PathBuf {
        Path::new("/proc/self/fd").join(self.0.folder.as_fd().as_raw_fd().to_string()).join(&self.0.name)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};

    use crate::History;

    /// Runs were added to a history that another user had put there, or kept in files beside it that another user could
    /// read and change.
    #[test]
    fn a_history_that_is_not_this_users_own_is_not_used() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("h");
        let is_root = fs::metadata("/proc/self").expect("there").uid() == 0;
        let why = || History::open(&path).expect_err("it is not used").to_string();
        drop(History::open(&path).expect("a new file"));
        assert_eq!(fs::metadata(&path).expect("there").mode() & 0o777, 0o600);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).expect("set");
        assert!(why().starts_with("others may write to it"), "{}", why());
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("set");
        fs::hard_link(&path, dir.path().join("other")).expect("linked");
        assert!(why().contains("hard link"), "{}", why());
        fs::remove_file(dir.path().join("other")).expect("removed");
        for end in ["-wal", "-shm", "-journal"] {
            let beside = dir.path().join(format!("h{end}"));
            symlink("/dev/null", &beside).expect("linked");
            assert_eq!(why(), format!("h{end} beside it is not used: it is no regular file"));
            fs::remove_file(&beside).expect("removed");
            // Only root can give files away.
            if is_root {
                fs::write(&beside, "planted").and_then(|()| chown(&beside, Some(1000), None)).expect("given away");
                assert!(why().contains("it belongs to user 1000"), "{}", why());
                fs::remove_file(&beside).expect("removed");
            }
        }
        assert!(History::open(&path).is_ok());
        if is_root {
            chown(&path, Some(1000), None).expect("given away");
            assert!(why().contains("it belongs to user 1000"), "{}", why());
        }
    }
}
