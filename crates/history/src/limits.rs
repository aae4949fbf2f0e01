//! Limits of what is kept. What exceeds them is removed whenever runs are added, in the same transaction.

use std::collections::BTreeSet;

use rusqlite::{Connection, Row, Transaction, params};

use crate::file::{History, Problem, rows};

/// How much is kept of runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The number of runs of each program with the same input on the same host; the newest are kept.
    pub runs: u64,
    /// The age of a run, in days.
    pub days: u64,
    /// The size of all that the file holds, in bytes; the oldest runs go first.
    pub bytes: u64,
}

impl Default for Limits {
    /// A hundred runs of each program and input, a year, and 64 MiB, which are about 300,000 runs.
    fn default() -> Limits {
        Limits { runs: 100, days: 365, bytes: 64 << 20 }
    }
}

/// The least size that may be asked for. An empty history has about a tenth of it.
pub const BYTES_MIN: u64 = 1 << 20;

/// The old runs that one addition removes at most, so that it takes little time, and a clock that is wrong for a moment
/// costs little.
const REMOVED_MAX: u64 = 2000;
pub(crate) const DAY_MS: u64 = 24 * 60 * 60 * 1000;

/// The queries by which runs are removed.
const BEYOND: &str = "
    delete from runs where id in
        (select id from runs where program = ?1 and input = ?2 and host = ?3 order by id desc limit ?5 offset ?4)";
const OLD: &str = "
    delete from runs where id in (select id from runs where began_ms < ?1 order by began_ms limit ?2) returning program, input";
const OLDEST: &str = "
    delete from runs where id in (select id from runs order by began_ms limit ?1) returning program, input";
const HAS_RUNS: &str = "select exists (select 1 from runs where program = ?1 and input = ?2)";

/// A program and its input, of which runs were removed.
type Removed = (i64, String);

fn removed(row: &Row<'_>) -> rusqlite::Result<Removed> {
    Ok((row.get(0)?, row.get(1)?))
}

impl History {
    /// Returns the limits of this file: the defaults, unless others were set.
    ///
    /// # Errors
    ///
    /// See [`Problem`].
    pub fn limits(&self) -> Result<Limits, Problem> {
        limits(&self.connection)
    }

    /// Sets the limits of this file for all that write to it, and removes what exceeds them. Returns the number of runs
    /// that were removed.
    ///
    /// `now_ms` is the time, in milliseconds since 1970.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// use gristmill_history::{History, Limits};
    ///
    /// let mut history = History::open(&dir.path().join("history.sqlite"))?;
    /// history.set_limits(Limits { runs: 10, ..Limits::default() }, 1_800_000_000_000)?;
    /// assert_eq!(history.limits()?.runs, 10);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// See [`Problem`].
    pub fn set_limits(&mut self, limits: Limits, now_ms: u64) -> Result<u64, Problem> {
        let transaction = self.write()?;
        for (name, value) in [("runs", limits.runs), ("days", limits.days), ("bytes", limits.bytes)] {
            let value = i64::try_from(value).unwrap_or(i64::MAX);
            transaction.execute("insert or replace into limits values (?1, ?2)", params![name, value])?;
        }
        let count = |transaction: &Transaction<'_>| {
            transaction.query_row("select count(*) from runs", (), |row| row.get::<_, i64>(0))
        };
        let before = count(&transaction)?;
        let select = "select distinct program, input, host from runs";
        let keys: Vec<(i64, String, i64)> =
            rows(&transaction, select, (), |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
        for (program, input, host) in &keys {
            while remove_beyond(&transaction, &limits, (*program, input), *host)? > 0 {}
        }
        while remove_old(&transaction, &limits, now_ms)? > 0 {}
        let removed = before - count(&transaction)?;
        transaction.commit()?;
        // The file shrinks, unless another process reads it now, or the disk has no room for a copy.
        let _ = self.connection.execute_batch("vacuum; pragma wal_checkpoint(truncate)");
        Ok(removed as u64)
    }

    /// Returns the bytes that the file holds.
    ///
    /// # Errors
    ///
    /// See [`Problem`].
    pub fn bytes(&self) -> Result<u64, Problem> {
        bytes(&self.connection)
    }
}

pub(crate) fn limits(connection: &Connection) -> Result<Limits, Problem> {
    let mut limits = Limits::default();
    let set: Vec<(String, i64)> =
        rows(connection, "select name, value from limits", (), |row| Ok((row.get(0)?, row.get(1)?)))?;
    for (name, value) in set {
        let value = value.max(0) as u64;
        match name.as_str() {
            "runs" => limits.runs = value,
            "days" => limits.days = value,
            "bytes" => limits.bytes = value,
            _ => {}
        }
    }
    Ok(limits)
}

fn bytes(connection: &Connection) -> Result<u64, Problem> {
    let number = |name: &str| connection.query_row(&format!("pragma {name}"), (), |row| row.get::<_, i64>(0));
    Ok(((number("page_count")? - number("freelist_count")?) * number("page_size")?).max(0) as u64)
}

/// Removes all but the newest runs of a program with an input on a host. Returns the number of runs that it removed:
/// some thousand at most.
pub(crate) fn remove_beyond(
    transaction: &Transaction<'_>,
    limits: &Limits,
    (program, input): (i64, &str),
    host: i64,
) -> Result<usize, Problem> {
    let runs = i64::try_from(limits.runs.max(1)).unwrap_or(i64::MAX);
    Ok(transaction.prepare(BEYOND)?.execute(params![program, input, host, runs, REMOVED_MAX as i64])?)
}

/// Removes runs that are too old, and the oldest while the file is too large, with what is known about programs and
/// inputs that then have no run left. Returns the number of runs that it removed: some thousand at most.
pub(crate) fn remove_old(transaction: &Transaction<'_>, limits: &Limits, now_ms: u64) -> Result<u64, Problem> {
    let before_ms = now_ms.saturating_sub(limits.days.saturating_mul(DAY_MS)) as i64;
    let mut gone: Vec<Removed> = rows(transaction, OLD, [before_ms, REMOVED_MAX as i64], removed)?;
    if bytes(transaction)? > limits.bytes {
        gone.extend(rows::<_, Vec<_>>(transaction, OLDEST, [(REMOVED_MAX / 2) as i64], removed)?);
    }
    let count = gone.len() as u64;
    let different: BTreeSet<Removed> = gone.into_iter().collect();
    for (program, input) in &different {
        if !transaction.prepare(HAS_RUNS)?.query_row(params![program, input], |row| row.get(0))? {
            for table in ["instructions", "inputs"] {
                let delete = format!("delete from {table} where program = ?1 and input = ?2");
                transaction.prepare(&delete)?.execute(params![program, input])?;
            }
        }
    }
    let programs: BTreeSet<i64> = different.into_iter().map(|(program, _)| program).collect();
    for program in programs {
        remove_unused(transaction, program)?;
    }
    Ok(count)
}

/// Removes a program of which neither runs nor times with several numbers of workers are kept.
fn remove_unused(transaction: &Transaction<'_>, program: i64) -> Result<(), Problem> {
    let has = |table: &str| {
        let select = format!("select exists (select 1 from {table} where program = ?1)");
        transaction.prepare(&select)?.query_row([program], |row| row.get::<_, bool>(0))
    };
    if has("runs")? || (has_measured(transaction)? && has("measured")?) {
        return Ok(());
    }
    let pairs = "delete from dropped_pairs where one = (select build from programs where id = ?1) \
                 or other = (select build from programs where id = ?1)";
    transaction.execute(pairs, [program])?;
    transaction.execute("delete from programs where id = ?1", [program])?;
    Ok(())
}

/// Returns whether the table of times with several numbers of workers has been made.
pub(crate) fn has_measured(connection: &Connection) -> rusqlite::Result<bool> {
    let is_there = "select exists (select 1 from sqlite_schema where name = 'measured')";
    connection.prepare(is_there)?.query_row((), |row| row.get(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PastRun;
    use crate::runs::tests::run;

    fn history(dir: &tempfile::TempDir) -> History {
        History::open(&dir.path().join("h")).expect("it opens")
    }

    fn count(history: &History, table: &str) -> i64 {
        let select = format!("select count(*) from {table}");
        history.connection.query_row(&select, (), |row| row.get(0)).expect("read")
    }

    /// A history of a batch that ran each night had each of its runs after ten years.
    #[test]
    fn only_the_newest_runs_of_each_program_and_input_are_kept() {
        let dir = tempfile::tempdir().expect("a directory");
        let mut history = history(&dir);
        history.set_limits(Limits { runs: 3, ..Limits::default() }, 0).expect("set");
        for night in 0..5 {
            let other = PastRun { input: "j".into(), ..run("a", 50.0) };
            history.add_runs("here", &[run("a", f64::from(night)), other, run("b", 1.0)]).expect("added");
            history.add_runs("there", &[run("a", 100.0)]).expect("added");
        }
        let seconds: Vec<f64> = history
            .export(Some("a"))
            .expect("read")
            .iter()
            .filter(|run| run["input"] == "i" && run["host"] == "here")
            .map(|run| run["seconds"].as_f64().expect("a number"))
            .collect();
        assert_eq!(seconds, [2.0, 3.0, 4.0]);
        assert_eq!(count(&history, "runs"), 12);
    }

    #[test]
    fn runs_that_are_too_old_go_with_all_that_is_known_of_their_programs() {
        let dir = tempfile::tempdir().expect("a directory");
        let mut history = history(&dir);
        let at = |build: &str, day: u64| PastRun { began_ms: day * DAY_MS, ..run(build, 1.0) };
        history.add_runs("here", &[at("old", 1), at("both", 1), at("both", 300)]).expect("added");
        let learned = gristmill_schedule::Store {
            programs: [("old".to_owned(), crate::profiles::tests::program(3))].into(),
            dropped: [("new".to_owned(), "old".to_owned())].into(),
        };
        history.save("here", &learned).expect("saved");
        assert!(count(&history, "phases") > 0 && count(&history, "instructions") > 0);
        history.add_runs("here", &[at("new", 367)]).expect("added");
        let builds: Vec<String> =
            history.accounts(None).expect("read").into_iter().map(|account| account.build).collect();
        assert_eq!(builds, ["new", "both"]);
        for table in ["phases", "inputs", "instructions", "transitions", "dropped_pairs"] {
            assert_eq!(count(&history, table), 0, "{table}");
        }
    }

    #[test]
    fn a_program_that_scale_has_measured_stays() {
        let dir = tempfile::tempdir().expect("a directory");
        let mut history = history(&dir);
        let of = crate::Question { name: "a".into(), build: "a".into(), options: "o".into() };
        history.add_measured("here", &of, &[]).expect("added");
        history.add_runs("here", &[PastRun { began_ms: 1, ..run("a", 1.0) }]).expect("added");
        let time = crate::Measured {
            processors: 8,
            files: 1,
            input_bytes: 1,
            workers: 1,
            map_at_once: None,
            chunk_bytes: None,
            seconds: 1.0,
            runs: 1,
            at_ms: 1,
        };
        history.add_measured("here", &of, &[time]).expect("added");
        history.add_runs("here", &[PastRun { began_ms: 400 * DAY_MS, ..run("b", 1.0) }]).expect("added");
        assert_eq!(history.accounts(None).expect("read").len(), 2);
        assert_eq!(count(&history, "runs"), 1);
    }

    #[test]
    fn a_file_that_is_too_large_loses_its_oldest_runs() {
        let dir = tempfile::tempdir().expect("a directory");
        let mut history = history(&dir);
        // Each run has an input of its own, so none is beyond the number of runs.
        let numbered = |number: u64| PastRun { input: format!("{number:0200}"), began_ms: number, ..run("a", 1.0) };
        for part in 0..10 {
            let runs: Vec<PastRun> = (part * 500..(part + 1) * 500).map(numbered).collect();
            history.add_runs("here", &runs).expect("added");
        }
        assert_eq!(count(&history, "runs"), 5000);
        let limits = Limits { bytes: BYTES_MIN, ..Limits::default() };
        let removed = history.set_limits(limits, 0).expect("set");
        assert!(removed >= 1000 && history.bytes().expect("read") <= BYTES_MIN, "{removed}");
        let size = std::fs::metadata(dir.path().join("h")).expect("there").len();
        assert!(size <= 2 * BYTES_MIN, "{size}");
        let mut next = 5000;
        while next < 20_000 {
            history.add_runs("here", &(next..next + 500).map(numbered).collect::<Vec<_>>()).expect("added");
            next += 500;
        }
        assert!(history.bytes().expect("read") < 2 * BYTES_MIN);
        let last = history.export(None).expect("read");
        assert_eq!(last.last().expect("some are left")["began_ms"], 19_999);
    }

    #[test]
    fn limits_are_kept_in_the_file() {
        let dir = tempfile::tempdir().expect("a directory");
        assert_eq!(history(&dir).limits().expect("read"), Limits::default());
        let limits = Limits { runs: 7, days: 8, bytes: 9 << 20 };
        history(&dir).set_limits(limits, 0).expect("set");
        assert_eq!(history(&dir).limits().expect("read"), limits);
    }

    /// The start of a batch and each of its writes read the whole history.
    #[test]
    fn runs_are_found_and_removed_by_indexes() {
        let dir = tempfile::tempdir().expect("a directory");
        let history = history(&dir);
        for sql in [BEYOND, OLD, OLDEST, HAS_RUNS, crate::runs::USUAL] {
            let mut explain = history.connection.prepare(&format!("explain query plan {sql}")).expect("sql");
            let nulls = rusqlite::params_from_iter(vec![None::<i64>; explain.parameter_count()]);
            let steps: Vec<String> =
                explain.query_map(nulls, |row| row.get(3)).expect("a plan").map(|step| step.expect("text")).collect();
            let reads_all =
                |step: &String| (step.starts_with("SCAN runs") && !step.contains("INDEX")) || step.contains("TEMP");
            assert!(!steps.iter().any(reads_all), "{sql}: {steps:?}");
        }
    }
}
