//! How the jobs of a queue came out, once it is over: one count for the summary, its line of JSON, and the log.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::queue::{BatchJob, Counts, Outcome, State};
use gristmill_schedule::Reason;
use serde_json::{Value, json};

use super::record::{Record, short, word};
use gristmill_report::text::counted;

/// A job that has no end when the queue is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left<'r> {
    /// A job before it failed.
    Skipped,
    /// It never began.
    DidNotRun,
    /// It was ended, on request or with the queue, before it ended by itself.
    WasEnded,
    /// Its last attempt failed like this, and the queue was over before the next one.
    NotTriedAgain(&'r Outcome),
}

impl Left<'_> {
    /// The status of its last line in the log; `None` if that of its attempt says all.
    pub fn status(self) -> Option<&'static str> {
        match self {
            Left::Skipped => Some("skipped"),
            Left::DidNotRun => Some("did not run"),
            Left::NotTriedAgain(_) => Some("not tried again"),
            Left::WasEnded => None,
        }
    }
}

/// Returns what is left of each job; `None` for one that has ended.
pub fn left<'r>(states: &[State], records: &'r [Record]) -> Vec<Option<Left<'r>>> {
    let mut last: Vec<Option<&Record>> = vec![None; states.len()];
    records.iter().for_each(|record| last[record.job] = Some(record));
    let remnant = |(state, last): (&State, Option<&'r Record>)| match (state, last) {
        (State::Ended(_), _) => None,
        (State::Skipped(_), _) => Some(Left::Skipped),
        (State::Waiting | State::Running, None) => Some(Left::DidNotRun),
        (State::Waiting | State::Running, Some(record)) => {
            Some(record.outcome.as_ref().map_or(Left::WasEnded, Left::NotTriedAgain))
        }
    };
    states.iter().zip(last).map(remnant).collect()
}

/// The number of jobs that came out in each way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    pub succeeded: usize,
    /// With those that had an attempt left.
    pub failed: usize,
    pub not_tried_again: usize,
    pub were_ended: usize,
    pub skipped: usize,
    pub did_not_run: usize,
    /// Those that did not run because they had ended before. They are counted above, too.
    pub ended_before: usize,
}

impl Tally {
    pub fn of(counts: &Counts, left: &[Option<Left<'_>>]) -> Tally {
        let count = |is_so: fn(Left<'_>) -> bool| left.iter().flatten().filter(|left| is_so(**left)).count();
        let not_tried_again = count(|left| matches!(left, Left::NotTriedAgain(_)));
        Tally {
            succeeded: counts.succeeded,
            failed: counts.failed + not_tried_again,
            not_tried_again,
            were_ended: count(|left| left == Left::WasEnded),
            skipped: counts.skipped,
            did_not_run: count(|left| left == Left::DidNotRun),
            ended_before: counts.ended_before,
        }
    }

    /// The counts in words, without those of nothing.
    pub fn words(&self) -> String {
        let ended = if self.were_ended == 1 { "was ended" } else { "were ended" };
        let others = [
            (self.failed, "failed"),
            (self.were_ended, ended),
            (self.skipped, "skipped"),
            (self.did_not_run, "did not run"),
        ];
        let others = others.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!(", {count} {what}"));
        format!("{} succeeded{}", self.succeeded, others.collect::<String>())
    }
}

/// The number of failures that the summary names.
const FAILURES_NAMED: usize = 5;

/// Returns the summary: a line of counts, and a line for each of the first failures.
pub fn summary(
    jobs: &[BatchJob],
    states: &[State],
    counts: &Counts,
    records: &[Record],
    took: Duration,
) -> Vec<String> {
    let busy_us: u64 = records.iter().map(|record| record.used.user_us + record.used.sys_us).sum();
    let left = left(states, records);
    let tally = Tally::of(counts, &left);
    let seconds = took.as_secs_f64();
    let busy = busy_us as f64 / 1e6 / seconds.max(1e-6);
    let before = match tally.ended_before {
        0 => String::new(),
        before => format!(" ({before} had ended before)"),
    };
    let programs = counted(jobs.len() as u64, "program");
    let mut lines = vec![format!("{programs}: {}{before}; {seconds:.1} s, {busy:.2} processors busy", tally.words())];
    let failure = |((job, state), left): ((&BatchJob, &State), &Option<Left<'_>>)| match (state, left) {
        (State::Ended(outcome), _) if !outcome.is_success() => Some(format!("{}: {outcome}", short(&job.name))),
        (_, Some(Left::NotTriedAgain(outcome))) => {
            Some(format!("{}: {outcome}, and not tried again, because the queue ended", short(&job.name)))
        }
        _ => None,
    };
    let failures: Vec<String> = jobs.iter().zip(states).zip(&left).filter_map(failure).collect();
    lines.extend(failures.iter().take(FAILURES_NAMED).cloned());
    if failures.len() > FAILURES_NAMED {
        lines.push(format!("and {} more that failed", failures.len() - FAILURES_NAMED));
    }
    lines
}

/// Returns the last line of JSON. Its `quanta` are counted by the reason of their decision; there are none if there
/// was nothing to choose.
pub fn json_summary(tally: &Tally, took: Duration, decided: &BTreeMap<Reason, u64>) -> Value {
    let quanta: BTreeMap<&str, u64> = decided.iter().map(|(reason, quanta)| (word(*reason), *quanta)).collect();
    json!({ "summary": {
        "succeeded": tally.succeeded,
        "failed": tally.failed,
        "not_tried_again": tally.not_tried_again,
        "were_ended": tally.were_ended,
        "skipped": tally.skipped,
        "did_not_run": tally.did_not_run,
        "ended_before": tally.ended_before,
        "seconds": took.as_secs_f64(),
        "quanta": quanta,
    }})
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::Shell;

    #[test]
    fn a_tally_of_one_and_of_several_is_said_without_counts_of_nothing() {
        let one = Tally { failed: 2, not_tried_again: 1, were_ended: 1, ..Tally::default() };
        assert_eq!(one.words(), "0 succeeded, 2 failed, 1 was ended");
        let all = Tally { succeeded: 1, were_ended: 2, skipped: 3, did_not_run: 4, ..Tally::default() };
        assert_eq!(all.words(), "1 succeeded, 2 were ended, 3 skipped, 4 did not run");
    }

    #[test]
    fn the_summary_counts_all_and_names_the_first_failures() {
        let jobs: Vec<BatchJob> = (0..8).map(|at| Shell::default().job(format!("job {at}").into())).collect();
        let mut states = vec![State::Ended(Outcome::Exited(3)); 7];
        states.push(State::Ended(Outcome::Exited(0)));
        let counts = Counts { succeeded: 1, failed: 7, ended_before: 3, ..Counts::default() };
        let lines = summary(&jobs, &states, &counts, &[], Duration::from_secs(2));
        assert_eq!(lines[0], "8 programs: 1 succeeded, 7 failed (3 had ended before); 2.0 s, 0.00 processors busy");
        assert_eq!((lines[1].as_str(), lines.len()), ("job 0: exit 3", 7));
        assert_eq!(lines[6], "and 2 more that failed");
    }

    #[test]
    fn the_line_of_json_counts_the_quanta_by_their_reason() {
        let decided = BTreeMap::from([(Reason::NoContention, 5), (Reason::Chosen, 3), (Reason::NotCovered, 2)]);
        let summary = json_summary(&Tally::default(), Duration::ZERO, &decided);
        let quanta = json!({ "no contention": 5, "chosen": 3, "not known well enough": 2 });
        assert_eq!(summary["summary"]["quanta"], quanta);
    }
}
