//! Forgets programs, also in processes that had something of them in memory.
//!
//! A process remembers the last generation of `forgotten` that it has seen. Before it writes, it looks for later ones, and leaves out what they
//! name. A clock would not do: it may be set back.

use std::collections::BTreeSet;

use rusqlite::{Connection, Transaction, params};

use crate::file::{History, Problem};

/// The generations that are kept. A process that misses more of them than these writes what it has.
const GENERATIONS: i64 = 1000;

/// What was forgotten while a process had the history open.
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
    pub(crate) fn since_now(connection: &Connection) -> Result<Forgotten, Problem> {
        let last = "select coalesce(max(generation), 0) from forgotten";
        Ok(Forgotten { generation: connection.query_row(last, (), |row| row.get(0))?, ..Forgotten::default() })
    }

    /// Looks for what was forgotten since the last look.
    pub(crate) fn look(&mut self, transaction: &Transaction<'_>) -> Result<(), Problem> {
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

impl History {
    /// Removes a program, by name or build, with all that is known of it. Returns the number of programs that were removed.
    ///
    /// A process that has the history open does not write back what it knew of the program: neither runs that it had not written yet, nor
    /// what it had learned of its demand.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// use gristmill_history::History;
    ///
    /// let mut history = History::open(&dir.path().join("history.sqlite"))?;
    /// assert_eq!(history.forget("xz")?, 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// See [`Problem`].
    pub fn forget(&mut self, of: &str) -> Result<usize, Problem> {
        let transaction = self.write()?;
        let mut delete = transaction.prepare("delete from programs where name = ?1 or build = ?1 returning build")?;
        let builds: Vec<String> = delete.query_map([of], |row| row.get(0))?.collect::<Result<_, _>>()?;
        drop(delete);
        for build in &builds {
            transaction.execute("delete from dropped_pairs where one = ?1 or other = ?1", [build])?;
        }
        for what in builds.iter().map(String::as_str).chain([of]) {
            transaction.execute("insert into forgotten (what) values (?1)", [what])?;
        }
        let old = transaction.last_insert_rowid() - GENERATIONS;
        transaction.execute("delete from forgotten where generation <= ?1", params![old])?;
        transaction.commit()?;
        Ok(builds.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Run;
    use crate::runs::tests::run;
    use gristmill_schedule::{BlockVector, Program, Similarity, Store};

    /// Opens a history twice, as two processes do, with a run of the programs "a" and "b".
    fn twice(dir: &tempfile::TempDir) -> [History; 2] {
        let path = dir.path().join("h");
        let mut history = History::open(&path).expect("a new file");
        history.add_runs("here", &[run("a", 1.0), run("b", 1.0)]).expect("added");
        [history, History::open(&path).expect("it opens")]
    }

    fn builds(history: &History) -> Vec<String> {
        let mut builds: Vec<String> =
            history.accounts(None).expect("read").into_iter().map(|account| account.build).collect();
        builds.sort_unstable();
        builds
    }

    fn store() -> Store {
        let mut program = Program::default();
        program.phases.recognise(&BlockVector::default(), &Similarity::default());
        Store { programs: [("a".to_owned(), program)].into(), ..Store::default() }
    }

    /// `gristmill history xz --forget` while a batch ran: at its end, the batch wrote xz back.
    #[test]
    fn what_is_forgotten_is_not_written_back_by_a_process_that_had_it_in_memory() {
        let dir = tempfile::tempdir().expect("a directory");
        let [mut batch, mut user] = twice(&dir);
        batch.load_program("here", "a").expect("read");
        assert_eq!(user.forget("program a").expect("removed"), 1);
        batch.save("here", &store()).expect("saved");
        batch.add_runs("here", &[run("a", 2.0), run("b", 2.0)]).expect("added");
        assert_eq!(builds(&user), ["b"]);
        // A run that ends later is new, what was learned before is not.
        batch.add_runs("here", &[run("a", 3.0)]).expect("added");
        batch.save("here", &store()).expect("saved");
        assert_eq!(builds(&user), ["a", "b"]);
        assert_eq!(user.demands("a").expect("read"), []);
        assert_eq!(user.export(Some("a")).expect("read").len(), 1);
    }

    #[test]
    fn a_program_that_is_not_in_the_file_yet_is_forgotten_in_memory_too() {
        let dir = tempfile::tempdir().expect("a directory");
        let [mut batch, mut user] = twice(&dir);
        assert_eq!(user.forget("program new").expect("nothing there"), 0);
        let new = Run { build: "new-1".into(), name: "program new".into(), ..run("a", 1.0) };
        batch.add_runs("here", &[new]).expect("added");
        assert_eq!(builds(&user), ["a", "b"]);
    }

    #[test]
    fn a_process_that_opens_the_history_afterwards_learns_it_anew() {
        let dir = tempfile::tempdir().expect("a directory");
        let [batch, mut user] = twice(&dir);
        drop(batch);
        user.forget("a").expect("removed");
        let mut next = History::open(&dir.path().join("h")).expect("it opens");
        next.save("here", &store()).expect("saved");
        assert_eq!(next.demands("a").expect("read").len(), 1);
    }

    #[test]
    fn few_generations_are_kept() {
        let dir = tempfile::tempdir().expect("a directory");
        let [_, mut user] = twice(&dir);
        user.connection.execute("insert into forgotten values (5000, 'x')", ()).expect("added");
        user.forget("y").expect("nothing there");
        let count = "select count(*) from forgotten";
        assert_eq!(user.connection.query_row(count, (), |row| row.get::<_, i64>(0)).expect("read"), 2);
        user.connection.execute("insert into forgotten values (6500, 'x')", ()).expect("added");
        user.forget("y").expect("nothing there");
        assert_eq!(user.connection.query_row(count, (), |row| row.get::<_, i64>(0)).expect("read"), 2);
    }
}
