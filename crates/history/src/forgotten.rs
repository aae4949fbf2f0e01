//! Programs that other processes have forgotten, so that they are not written back.
//!
//! A process remembers the last generation of `forgotten` that it has seen. Before it writes, it looks for later ones,
//! and leaves out what they name. A clock would not do: it may be set back.

use std::collections::BTreeSet;

use rusqlite::{Connection, Transaction};

/// The programs that were forgotten while a process had the history open.
#[derive(Clone, Debug, Default)]
pub struct Forgotten {
    generation: i64,
    /// Names and builds, since the history was opened.
    all: BTreeSet<String>,
    /// Those that were forgotten since runs were added last.
    since_runs: BTreeSet<String>,
}

impl Forgotten {
    /// Forgets nothing of what went before.
    pub(crate) fn since_now(connection: &Connection) -> rusqlite::Result<Forgotten> {
        let last = "select coalesce(max(generation), 0) from forgotten";
        Ok(Forgotten { generation: connection.query_row(last, (), |row| row.get(0))?, ..Forgotten::default() })
    }

    /// Looks for what was forgotten since the last look.
    pub(crate) fn look(&mut self, transaction: &Transaction<'_>) -> rusqlite::Result<()> {
        let mut select =
            transaction.prepare("select generation, what from forgotten where generation > ?1 order by generation")?;
        let mut rows = select.query([self.generation])?;
        while let Some(row) = rows.next()? {
            let what: String = row.get(1)?;
            self.generation = row.get(0)?;
            self.since_runs.insert(what.clone());
            self.all.insert(what);
        }
        Ok(())
    }

    /// Returns the names and builds of which runs that ended before now are not to be written.
    pub(crate) fn before_runs(&mut self) -> BTreeSet<String> {
        std::mem::take(&mut self.since_runs)
    }

    /// Returns whether a program, by its build, was forgotten at any time since the history was opened.
    pub(crate) fn has(&self, build: &str) -> bool {
        self.all.contains(build)
    }
}
