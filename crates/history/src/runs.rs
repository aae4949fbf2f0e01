//! Runs of programs.

use std::collections::BTreeSet;

use rusqlite::params;

use crate::file::{History, Problem, host, program, write};
use crate::limits::{limits, remove_beyond, remove_old};

/// A run that has ended.
#[derive(Clone, Debug, PartialEq)]
pub struct PastRun {
    /// The program: a digest of its file.
    pub build: String,
    /// Its name.
    pub name: String,
    /// Its input: a digest of its arguments and files.
    pub input: String,
    /// When it began, in milliseconds since 1970.
    pub began_ms: u64,
    /// The time from its start to its end.
    pub seconds: f64,
    /// Processor time in user mode.
    pub user_seconds: f64,
    /// Processor time in the kernel.
    pub system_seconds: f64,
    /// The most memory that one of its processes held.
    pub memory_bytes: u64,
    /// How it ended, such as `exit 0`.
    pub outcome: String,
    /// The share of its processor time in which the scheduler chose what runs, instead of the system.
    pub chosen: f64,
}

/// The successful runs from which the usual time is computed: the newest of a program with an input on a host.
pub(crate) const USUAL: &str = "
    select avg(seconds), avg(processor) from (
        select seconds, user_seconds + system_seconds as processor from runs
        where program = (select id from programs where build = ?1) and input = ?2
        and host = (select id from hosts where name = ?3) and outcome = 'exit 0' order by id desc limit 16)";

impl History {
    /// Adds runs on a host, all or none, and removes what exceeds the [`Limits`](crate::Limits). Programs that another
    /// process has forgotten meanwhile are left out.
    ///
    /// # Errors
    ///
    /// See [`Problem`].
    pub fn add_runs(&mut self, on: &str, runs: &[PastRun]) -> Result<(), Problem> {
        let transaction = write(&mut self.connection)?;
        self.forgotten.look(&transaction)?;
        let forgotten = self.forgotten.before_runs();
        let (host, limits) = (host(&transaction, on)?, limits(&transaction)?);
        let mut keys = BTreeSet::new();
        let mut insert = transaction.prepare(
            "insert into runs (host, program, input, began_ms, seconds, user_seconds, system_seconds, memory_bytes, outcome, chosen) \
             values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
        )?;
        let is_known = |run: &&PastRun| !forgotten.contains(&run.build) && !forgotten.contains(&run.name);
        for run in runs.iter().filter(is_known) {
            let program = program(&transaction, &run.build, &run.name)?;
            insert.execute(params![
                host,
                program,
                run.input,
                run.began_ms as i64,
                run.seconds,
                run.user_seconds,
                run.system_seconds,
                run.memory_bytes as i64,
                run.outcome,
                run.chosen
            ])?;
            keys.insert((program, run.input.as_str()));
        }
        drop(insert);
        for key in keys {
            remove_beyond(&transaction, &limits, key, host)?;
        }
        let last_ms = runs.iter().map(|run| run.began_ms).max().unwrap_or(0);
        remove_old(&transaction, &limits, last_ms)?;
        Ok(transaction.commit()?)
    }

    /// Returns the mean time, and the mean processor time, in seconds, of the last successful runs of a program with an
    /// input on a host; `None` without any.
    ///
    /// # Errors
    ///
    /// See [`Problem`].
    pub fn usual_seconds(&self, on: &str, build: &str, input: &str) -> Result<Option<[f64; 2]>, Problem> {
        let mut select = self.connection.prepare(USUAL)?;
        let means = select.query_row([build, input, on], |row| Ok([row.get::<_, Option<f64>>(0)?, row.get(1)?]))?;
        Ok(means[0].zip(means[1]).map(|(seconds, processor)| [seconds, processor]))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub fn run(build: &str, seconds: f64) -> PastRun {
        PastRun {
            build: build.into(),
            name: format!("program {build}"),
            input: "i".into(),
            began_ms: 1000,
            seconds,
            user_seconds: 0.5,
            system_seconds: 0.25,
            memory_bytes: 4096,
            outcome: "exit 0".into(),
            chosen: 0.0,
        }
    }

    #[test]
    fn the_usual_time_is_the_mean_of_successful_runs_with_this_input() {
        let dir = tempfile::tempdir().expect("a directory");
        let mut history = History::open(&dir.path().join("h")).expect("a new file");
        let failed = PastRun { outcome: "exit 1".into(), ..run("a", 100.0) };
        let other = PastRun { input: "j".into(), ..run("a", 100.0) };
        history.add_runs("here", &[run("a", 1.0), run("a", 3.0), failed, other, run("b", 100.0)]).expect("added");
        assert_eq!(history.usual_seconds("here", "a", "i").expect("read"), Some([2.0, 0.75]));
        assert_eq!(history.usual_seconds("there", "a", "i").expect("read"), None);
    }

    #[test]
    fn the_usual_time_is_that_of_the_last_sixteen_runs_and_takes_as_long_in_a_long_history() {
        let dir = tempfile::tempdir().expect("a directory");
        let mut history = History::open(&dir.path().join("h")).expect("a new file");
        let mut steps = Vec::new();
        for count in [20, 2000] {
            let others: Vec<PastRun> =
                (0..count).map(|at| PastRun { input: format!("{at}"), ..run("a", 100.0) }).collect();
            history.add_runs("here", &others).expect("added");
            history.add_runs("here", &vec![run("a", f64::from(count)); 50]).expect("added");
            assert_eq!(history.usual_seconds("here", "a", "i").expect("read"), Some([f64::from(count), 0.75]));
            let mut select = history.connection.prepare(USUAL).expect("sql");
            select.query_row(["a", "i", "here"], |_| Ok(())).expect("read");
            steps.push(select.get_status(rusqlite::StatementStatus::VmStep));
        }
        assert_eq!(steps[0], steps[1]);
    }

    #[test]
    fn several_processes_add_runs_at_the_same_time() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("h");
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let mut history = History::open(&path).expect("it opens");
                    (0..25).for_each(|_| history.add_runs("here", &[run("a", 1.0)]).expect("added"));
                });
            }
        });
        let history = History::open(&path).expect("it opens");
        let count: i64 = history.connection.query_row("select count(*) from runs", (), |row| row.get(0)).expect("read");
        assert_eq!(count, 100);
    }
}
