//! The file: where it is, and why it may be of no use.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, Params, Row, Transaction, TransactionBehavior};

use crate::forgotten::Forgotten;
use crate::place::HistoryPath;
use crate::schema::{ADDED_IN_2, ADDED_IN_3, ADDED_IN_4, ADDED_IN_5, TABLES, VERSION};

/// An open history.
#[derive(Debug)]
pub struct History {
    pub(crate) connection: Connection,
    /// The programs that other processes have forgotten since it was opened.
    pub(crate) forgotten: Forgotten,
    pub(crate) loaded: Loaded,
}

/// The state of the file when a process loaded a program, by host and build. A program that was not there has seen
/// nothing.
pub(crate) type Loaded = BTreeMap<(String, String), Seen>;

/// How far the phases of a program had been learned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) quanta: i64,
    pub(crate) phases: i64,
}

/// The reason why the history cannot be used. The work goes on without it.
#[derive(Debug)]
pub enum Problem {
    /// It is damaged, or no history.
    Damaged,
    /// A later version wrote it.
    Newer(i64),
    /// The disk is full.
    Full,
    /// It, or its folder, may only be read.
    ReadOnly,
    /// Something else, such as a folder that cannot be written.
    Other(String),
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Problem::Damaged => f.write_str("it is damaged, or no history; remove it to begin anew"),
            Problem::Newer(version) => write!(f, "a newer gristmill wrote it (form {version})"),
            Problem::Full => f.write_str("the disk is full"),
            Problem::ReadOnly => f.write_str("it, or its folder, may only be read"),
            Problem::Other(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for Problem {}

impl From<rusqlite::Error> for Problem {
    fn from(error: rusqlite::Error) -> Problem {
        match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => Problem::Damaged,
            Some(ErrorCode::DiskFull) => Problem::Full,
            Some(ErrorCode::ReadOnly) => Problem::ReadOnly,
            // Another program's database, or a table was lost.
            Some(ErrorCode::Unknown) if error.to_string().contains("no such") => Problem::Damaged,
            _ => Problem::Other(error.to_string()),
        }
    }
}

/// Returns `gristmill/history.sqlite` in `$XDG_DATA_HOME`, which defaults to `~/.local/share`. `None` if neither is an
/// absolute path.
///
/// ```
/// let variable = |name: &str| (name == "HOME").then(|| "/home/frog".into());
/// let path = gristmill_history::in_home(variable).expect("there is a home");
/// assert_eq!(path.to_str(), Some("/home/frog/.local/share/gristmill/history.sqlite"));
/// ```
pub fn in_home(variable: impl Fn(&str) -> Option<PathBuf>) -> Option<PathBuf> {
    let absolute = |name| variable(name).filter(|path| path.is_absolute());
    let data = absolute("XDG_DATA_HOME").or_else(|| Some(absolute("HOME")?.join(".local/share")))?;
    Some(data.join("gristmill/history.sqlite"))
}

/// The time to wait for another process that writes.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);

impl History {
    /// Opens the file, or makes it. A connection must not be used on both sides of a fork.
    ///
    /// # Errors
    ///
    /// See [`Problem`].
    pub fn open(path: &Path) -> Result<History, Problem> {
        let other = |error: io::Error| Problem::Other(error.to_string());
        if let Some(folder) = path.parent() {
            DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(other)?;
        }
        let place = HistoryPath::find(path).map_err(other)?;
        let mut connection = Connection::open(place.path())?;
        connection.busy_timeout(PATIENCE)?;
        if connection.is_readonly("main")? {
            return Err(Problem::ReadOnly);
        }
        let version =
            |connection: &Connection| connection.query_row("pragma user_version", (), |row| row.get::<_, i64>(0));
        match version(&connection)? {
            VERSION => {}
            newer if newer > VERSION => return Err(Problem::Newer(newer)),
            _ => {
                connection.pragma_update(None, "journal_mode", "wal")?;
                let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
                // Another process may have made the tables meanwhile.
                let found = version(&transaction)?;
                if found > VERSION {
                    return Err(Problem::Newer(found));
                }
                if found == 0 {
                    let is_empty = "select count(*) from sqlite_schema";
                    if transaction.query_row(is_empty, (), |row| row.get::<_, i64>(0))? > 0 {
                        return Err(Problem::Damaged);
                    }
                    transaction.execute_batch(TABLES)?;
                }
                for (version, added) in [(2, ADDED_IN_2), (3, ADDED_IN_3), (4, ADDED_IN_4), (5, ADDED_IN_5)] {
                    if found < version {
                        transaction.execute_batch(added)?;
                    }
                }
                transaction.pragma_update(None, "user_version", VERSION)?;
                transaction.commit()?;
            }
        }
        // The files beside it are there now.
        place.check().map_err(other)?;
        connection.pragma_update(None, "synchronous", "normal")?;
        connection.pragma_update(None, "foreign_keys", "on")?;
        let forgotten = Forgotten::since_now(&connection)?;
        Ok(History { connection, forgotten, loaded: Loaded::default() })
    }

    /// Begins to write; others wait.
    pub(crate) fn write(&mut self) -> Result<Transaction<'_>, Problem> {
        Ok(write(&mut self.connection)?)
    }
}

/// Begins to write; others wait.
pub(crate) fn write(connection: &mut Connection) -> rusqlite::Result<Transaction<'_>> {
    connection.transaction_with_behavior(TransactionBehavior::Immediate)
}

/// Returns what `row` makes of the rows that a query finds.
pub(crate) fn rows<T, C: FromIterator<T>>(
    connection: &Connection,
    select: &str,
    by: impl Params,
    row: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
) -> rusqlite::Result<C> {
    connection.prepare(select)?.query_map(by, row)?.collect()
}

/// Returns the number of a host, which is made if it is new.
pub(crate) fn host(transaction: &Transaction<'_>, name: &str) -> Result<i64, Problem> {
    transaction.execute("insert into hosts (name) values (?1) on conflict do nothing", [name])?;
    Ok(transaction.query_row("select id from hosts where name = ?1", [name], |row| row.get(0))?)
}

/// Returns the number of a program, which is made if it is new. One that was made without a name, which is then its
/// build, gets this name.
pub(crate) fn program(transaction: &Transaction<'_>, build: &str, name: &str) -> Result<i64, Problem> {
    transaction.execute("insert into programs (build, name) values (?1, ?2) on conflict do update set name = excluded.name where name = build", [build, name])?;
    Ok(transaction.query_row("select id from programs where build = ?1", [build], |row| row.get(0))?)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn problem(content: &[u8]) -> Problem {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("history.sqlite");
        fs::write(&path, content).expect("written");
        let problem = History::open(&path).expect_err("it is of no use");
        assert_eq!(fs::read(&path).expect("it is there"), content, "it was changed");
        problem
    }

    #[test]
    fn a_file_that_is_no_history_is_left_alone() {
        assert!(matches!(problem(b"dear diary, this is a long text that is no database at all"), Problem::Damaged));
        assert!(matches!(
            problem(&[b"SQLite format 3\0" as &[u8], &[7; 4000]].concat()),
            Problem::Damaged | Problem::Other(_)
        ));
    }

    #[test]
    fn a_newer_file_is_left_alone() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("below/history.sqlite");
        drop(History::open(&path).expect("a new file"));
        Connection::open(&path).and_then(|file| file.pragma_update(None, "user_version", 99)).expect("changed");
        assert!(matches!(History::open(&path), Err(Problem::Newer(99))));
    }

    #[test]
    fn a_file_of_the_first_version_keeps_its_runs_and_gets_the_new_tables() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("h");
        let old = Connection::open(&path).expect("a new file");
        old.execute_batch(TABLES).and_then(|()| old.pragma_update(None, "user_version", 1)).expect("made");
        old.execute_batch("insert into hosts values (1, 'here')").expect("added");
        drop(old);
        let mut history = History::open(&path).expect("it opens");
        history.add_runs("here", &[crate::runs::tests::run("a", 1.0)]).expect("added");
        history.add_decisions("here", 5, "B", &[("chosen", 3)]).expect("added");
        history.save_ceiling("here", "probe_us", 5, 15.5).expect("added");
        let count: i64 =
            history.connection.query_row("select count(*) from hosts", (), |row| row.get(0)).expect("read");
        assert_eq!(count, 1);
        drop(history);
        assert!(History::open(&path).is_ok());
    }

    #[test]
    fn a_full_disk_is_a_problem_of_its_own() {
        let dir = tempfile::tempdir().expect("a directory");
        let mut history = History::open(&dir.path().join("h")).expect("a new file");
        let pages: i64 = history.connection.query_row("pragma page_count", (), |row| row.get(0)).expect("a count");
        history.connection.pragma_update(None, "max_page_count", pages).expect("a limit");
        let run = crate::PastRun { name: "x".repeat(100_000), ..crate::runs::tests::run("a", 1.0) };
        assert!(matches!(history.add_runs("host", &[run]), Err(Problem::Full)));
    }
}
