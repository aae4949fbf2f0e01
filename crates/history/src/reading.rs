//! Opens a history to look at it, also where nothing may be written.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, ErrorCode, OpenFlags};

use crate::file::{History, Loaded, Problem};
use crate::forgotten::Forgotten;
use crate::schema::{LISTED_FROM, VERSION};

impl History {
    /// Opens the file to read it. It is not made, and may lie where nothing can be written.
    ///
    /// An older file is brought up to date, if that is possible.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// use gristmill_history::History;
    ///
    /// let path = dir.path().join("history.sqlite");
    /// assert!(History::read(&path).is_err());
    /// drop(History::open(&path)?);
    /// assert!(History::read(&path)?.accounts(None)?.is_empty());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// See [`Problem`]. The history may also be in parts: what was written last lies in a second file, which can be
    /// read only where its folder can be written.
    pub fn read(path: &Path) -> Result<History, Problem> {
        // SQLite would wait for the other end of a pipe.
        let facts = path.metadata().map_err(|error| Problem::Other(error.to_string()))?;
        if !facts.is_file() {
            return Err(Problem::Other("it is no regular file".to_owned()));
        }
        let (connection, version) = match connect(path) {
            // Without its log, SQLite would have to make files beside it.
            Err(error) if may_be_read_alone(&error) => match has_log(path) {
                true => return Err(in_parts(path)),
                false => connect_alone(path)?,
            },
            other => other?,
        };
        match version {
            newer if newer > VERSION => Err(Problem::Newer(newer)),
            LISTED_FROM..=VERSION => {
                Ok(History { connection, forgotten: Forgotten::default(), loaded: Loaded::default() })
            }
            older => {
                drop(connection);
                History::open(path).map_err(|problem| match problem {
                    Problem::ReadOnly => Problem::Other(format!(
                        "an older gristmill wrote it (form {older}), and it may only be read; copy it to a folder of your own, and name the copy with --history"
                    )),
                    problem => problem,
                })
            }
        }
    }
}

fn version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.query_row("pragma user_version", (), |row| row.get(0))
}

fn connect(path: &Path) -> rusqlite::Result<(Connection, i64)> {
    let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    connection.busy_timeout(crate::file::PATIENCE)?;
    let version = version(&connection)?;
    Ok((connection, version))
}

/// Opens a file to which nobody writes.
fn connect_alone(path: &Path) -> Result<(Connection, i64), Problem> {
    let mut address = "file:".to_owned();
    for byte in path.as_os_str().as_bytes() {
        match byte {
            b'/' | b'.' | b'-' | b'_' => address.push(char::from(*byte)),
            byte if byte.is_ascii_alphanumeric() => address.push(char::from(*byte)),
            byte => address += &format!("%{byte:02x}"),
        }
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
    let connection = Connection::open_with_flags(format!("{address}?immutable=1"), flags)?;
    let version = version(&connection)?;
    Ok((connection, version))
}

fn may_be_read_alone(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly))
}

/// The file that has what was written last.
fn log(path: &Path) -> PathBuf {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    log.into()
}

fn has_log(path: &Path) -> bool {
    log(path).metadata().is_ok_and(|log| log.len() > 0)
}

fn in_parts(path: &Path) -> Problem {
    let log = log(path);
    let log = log.file_name().unwrap_or(log.as_os_str()).to_string_lossy();
    Problem::Other(format!(
        "its last runs are in {log} beside it, which can be read only where the folder can be written; copy both to a folder of your own, and name the copy with --history"
    ))
}
