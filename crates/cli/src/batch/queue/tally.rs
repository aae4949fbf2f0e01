//! How the jobs of a queue came out, once it is over: one count for the summary, its line of JSON, and the log.

use gristmill_queue::{Counts, Outcome, State};

use super::record::Record;

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
    let of = |(state, last): (&State, Option<&'r Record>)| match (state, last) {
        (State::Ended(_), _) => None,
        (State::Skipped(_), _) => Some(Left::Skipped),
        (State::Waiting | State::Running, None) => Some(Left::DidNotRun),
        (State::Waiting | State::Running, Some(record)) => {
            Some(record.outcome.as_ref().map_or(Left::WasEnded, Left::NotTriedAgain))
        }
    };
    states.iter().zip(last).map(of).collect()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tally_of_one_and_of_several_is_said_without_counts_of_nothing() {
        let one = Tally { failed: 2, not_tried_again: 1, were_ended: 1, ..Tally::default() };
        assert_eq!(one.words(), "0 succeeded, 2 failed, 1 was ended");
        let all = Tally { succeeded: 1, were_ended: 2, skipped: 3, did_not_run: 4, ..Tally::default() };
        assert_eq!(all.words(), "1 succeeded, 2 were ended, 3 skipped, 4 did not run");
    }
}
