//! Accounts of programs, and exports.

use rusqlite::{Row, params};
use serde_json::{Value, json};

use crate::file::{History, Problem, rows};
use crate::measured::counted;

/// A program's earlier runs, summed up.
#[derive(Clone, Debug, PartialEq)]
pub struct Account {
    /// The digest of its file.
    pub build: String,
    /// Its name.
    pub name: String,
    /// The number of runs.
    pub runs: u64,
    /// The number of runs that succeeded.
    pub succeeded: u64,
    /// The number of different inputs.
    pub inputs: u64,
    /// The shortest, mean and longest time of successful runs, in seconds.
    pub seconds: Option<[f64; 3]>,
    /// The most memory of any run.
    pub memory_bytes: u64,
    /// When it last began, in milliseconds since 1970.
    pub last_ms: u64,
}

const ACCOUNT: &str = "
    select build, name, count(runs.id), total(outcome = 'exit 0'), count(distinct input),
           min(seconds) filter (where outcome = 'exit 0'), avg(seconds) filter (where outcome = 'exit 0'),
           max(seconds) filter (where outcome = 'exit 0'), coalesce(max(memory_bytes), 0), coalesce(max(began_ms), 0)
    from programs left join runs on program = programs.id";

impl Account {
    /// A sentence: `31 runs, 30 succeeded, 2 inputs; 0.5 to 2.0 s, 1.1 s in the mean; 12 MB`.
    pub fn sentence(&self) -> String {
        let times = self.seconds.map_or(String::new(), |[least, mean, most]| {
            format!("; {least:.2} to {most:.2} s, {mean:.2} s in the mean")
        });
        format!(
            "{}, {} succeeded, {}{times}; at most {:.1} MB",
            counted(self.runs, "run"),
            self.succeeded,
            counted(self.inputs, "input"),
            self.memory_bytes as f64 / 1e6
        )
    }
}

fn account(row: &Row<'_>) -> rusqlite::Result<Account> {
    let [least, mean, most] = [row.get(5)?, row.get(6)?, row.get::<_, Option<f64>>(7)?];
    Ok(Account {
        build: row.get(0)?,
        name: row.get(1)?,
        runs: row.get::<_, i64>(2)? as u64,
        succeeded: row.get::<_, f64>(3)? as u64,
        inputs: row.get::<_, i64>(4)? as u64,
        seconds: least.zip(mean).zip(most).map(|((least, mean), most)| [least, mean, most]),
        memory_bytes: row.get::<_, i64>(8)? as u64,
        last_ms: row.get::<_, i64>(9)? as u64,
    })
}

impl History {
    /// Returns all programs, or those of this name or build, the latest first.
    ///
    /// # Errors
    ///
    /// See [`Problem`].
    pub fn accounts(&self, of: Option<&str>) -> Result<Vec<Account>, Problem> {
        let text = format!(
            "{ACCOUNT} where ?1 is null or name = ?1 or build = ?1 group by programs.id order by max(began_ms) desc, build"
        );
        Ok(rows(&self.connection, &text, [of], account)?)
    }

    /// Returns every run, or those of one program, as JSON, in the order in which they were added.
    ///
    /// # Errors
    ///
    /// See [`Problem`].
    pub fn export(&self, of: Option<&str>) -> Result<Vec<Value>, Problem> {
        let select = "select hosts.name, build, programs.name, input, began_ms, seconds, user_seconds, system_seconds, memory_bytes, outcome, chosen \
             from runs join programs on program = programs.id join hosts on host = hosts.id \
             where ?1 is null or programs.name = ?1 or build = ?1 order by runs.id";
        let run = |row: &Row<'_>| {
            Ok(json!({
                "host": row.get::<_, String>(0)?,
                "build": row.get::<_, String>(1)?,
                "name": row.get::<_, String>(2)?,
                "input": row.get::<_, String>(3)?,
                "began_ms": row.get::<_, i64>(4)?,
                "seconds": row.get::<_, f64>(5)?,
                "user_seconds": row.get::<_, f64>(6)?,
                "system_seconds": row.get::<_, f64>(7)?,
                "memory_bytes": row.get::<_, i64>(8)?,
                "outcome": row.get::<_, String>(9)?,
                "chosen": row.get::<_, f64>(10)?,
            }))
        };
        Ok(rows(&self.connection, select, [of], run)?)
    }
}

/// The generations that are kept. A process that misses more of them than these writes what it has.
const GENERATIONS: i64 = 1000;

impl History {
    /// Removes a program, by name or build, with all that is known of it. Returns the number of programs that were
    /// removed.
    ///
    /// A process that has the history open does not write back what it knew of the program: neither runs that it had
    /// not written yet, nor what it had learned of its demand.
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
        let delete = "delete from programs where name = ?1 or build = ?1 returning build";
        let builds: Vec<String> = rows(&transaction, delete, [of], |row| row.get(0))?;
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
    use crate::PastRun;
    use crate::runs::tests::run;

    #[test]
    fn programs_are_listed_explained_exported_and_forgotten() {
        let dir = tempfile::tempdir().expect("a directory");
        let mut history = History::open(&dir.path().join("h")).expect("a new file");
        let failed = PastRun { outcome: "signal 9".into(), input: "j".into(), ..run("a", 50.0) };
        let later = PastRun { began_ms: 2000, ..run("b", 4.0) };
        history.add_runs("here", &[run("a", 1.0), run("a", 2.0), failed, later]).expect("added");
        let accounts = history.accounts(None).expect("read");
        assert_eq!(accounts.iter().map(|account| account.build.as_str()).collect::<Vec<_>>(), ["b", "a"]);
        assert_eq!(
            accounts[1].sentence(),
            "3 runs, 2 succeeded, 2 inputs; 1.00 to 2.00 s, 1.50 s in the mean; at most 0.0 MB"
        );
        assert_eq!(history.accounts(Some("program b")).expect("read"), accounts[..1]);
        assert_eq!(history.export(None).expect("read").len(), 4);
        assert_eq!(history.export(Some("b")).expect("read")[0]["seconds"], 4.0);
        assert_eq!(history.forget("program a").expect("removed"), 1);
        assert_eq!((history.export(None).expect("read").len(), history.forget("a").expect("read")), (1, 0));
    }

    /// `gristmill history xz` knew nothing of xz, if its demand had been kept before its first run.
    #[test]
    fn a_program_whose_demand_was_kept_first_has_its_name() {
        let dir = tempfile::tempdir().expect("a directory");
        let mut history = History::open(&dir.path().join("h")).expect("a new file");
        let store =
            gristmill_schedule::Store { programs: [("a".to_owned(), Default::default())].into(), ..Default::default() };
        history.save("here", &store).expect("saved");
        history.add_runs("here", &[run("a", 1.0)]).expect("added");
        history.save("here", &store).expect("saved");
        assert_eq!(history.accounts(Some("program a")).expect("read").len(), 1);
    }
}

#[cfg(test)]
mod forget_tests {
    use super::*;
    use crate::PastRun;
    use crate::runs::tests::run;
    use gristmill_schedule::{BlockVector, KnownProgram, Similarity, Store};

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
        let mut program = KnownProgram::default();
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
        let new = PastRun { build: "new-1".into(), name: "program new".into(), ..run("a", 1.0) };
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
