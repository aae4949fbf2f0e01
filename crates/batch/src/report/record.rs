//! The report on an attempt that has ended: its status, and a line of JSON.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use crate::queue::{BatchJob, Outcome};
use gristmill_history::CHOSEN;
use gristmill_os::program::Used;
use gristmill_schedule::Reason;
use serde_json::{Value, json};

use crate::program::identity::Identity;
use gristmill_report::messages::printable;

/// One attempt of a job, after its end.
#[derive(Default)]
pub struct Record {
    pub job: usize,
    pub attempt: u32,
    /// Milliseconds since 1970.
    pub at_ms: u64,
    pub took: Duration,
    /// `None` if it was ended before it ended by itself.
    pub outcome: Option<Outcome>,
    /// Nobody asked for that end: the queue's other process had died.
    pub ended_with_queue: bool,
    /// It failed, and has an attempt left.
    pub again: bool,
    pub used: Used,
    /// It left processes running, which were ended.
    pub left_processes: bool,
    pub folder: Option<PathBuf>,
    /// The tier in which programs were chosen; `None` if each had a processor.
    pub tier: Option<&'static str>,
    /// The share of its processor time in which programs were chosen.
    pub chosen: f64,
    /// The name of the program in the history; `None` if nobody asks.
    pub identity: Option<Identity>,
}

impl Record {
    /// How it ended, in the words of the log, of the lines of JSON and of the timeline.
    pub fn status(&self) -> String {
        match &self.outcome {
            Some(outcome) => outcome.to_string(),
            None if self.ended_with_queue => "ended with the queue".to_owned(),
            None => "ended on request".to_owned(),
        }
    }

    pub fn json(&self, job: &BatchJob) -> Value {
        let outcome = self.outcome.as_ref();
        json!({
            "job": self.job + 1,
            "name": job.name,
            "attempt": self.attempt,
            "outcome": self.status(),
            "exit": match outcome { Some(Outcome::Exited(code)) => Some(code), _ => None },
            "attempts_left": if self.again { (job.retries.unwrap_or(0) + 1).saturating_sub(self.attempt) } else { 0 },
            "began_ms": self.at_ms,
            "seconds": self.took.as_secs_f64(),
            "user_seconds": self.used.user_us as f64 / 1e6,
            "system_seconds": self.used.sys_us as f64 / 1e6,
            "memory_bytes": self.used.memory_bytes,
            "left_processes": self.left_processes,
            "tier": self.tier,
            "chosen": self.chosen,
            "output": self.folder.as_ref().map(|folder| folder.to_string_lossy()),
        })
    }
}

/// The longest name of a job that the summary prints whole.
const NAME_MAX: usize = 200;

/// Returns the beginning of a job's name, which may be a line of any length.
pub fn short(name: &str) -> String {
    match name.char_indices().nth(NAME_MAX) {
        Some((end, _)) => format!("{}...", printable(&name[..end])),
        None => printable(name),
    }
}

/// The name of a reason in the history and in the summary.
pub fn word(reason: Reason) -> &'static str {
    match reason {
        Reason::Start => "start",
        Reason::NothingToChoose => "nothing to choose",
        Reason::NotCovered => "not known well enough",
        Reason::NoContention => "no contention",
        Reason::NoGain => "no gain measured",
        Reason::Finishing => "too little left",
        Reason::Chosen => CHOSEN,
    }
}

/// Returns a sentence about the choice of programs, if there was any to make.
pub fn decisions(decided: &BTreeMap<Reason, u64>) -> Option<String> {
    let all: u64 = decided.values().sum();
    let chosen = decided.get(&Reason::Chosen).copied().unwrap_or(0);
    let left = decided.iter().filter(|(reason, _)| **reason != Reason::Chosen);
    let left: Vec<String> = left.map(|(reason, quanta)| format!("{quanta} {}", word(*reason))).collect();
    let rest =
        if left.is_empty() { String::new() } else { format!("; the others as the system does: {}", left.join(", ")) };
    (all > 0).then(|| format!("programs were chosen in {chosen} of {all} quanta{rest}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_says_how_often_programs_were_chosen_and_why_not() {
        let decided = BTreeMap::from([(Reason::NoContention, 5), (Reason::Chosen, 3), (Reason::NotCovered, 2)]);
        assert_eq!(
            decisions(&decided).as_deref(),
            Some(
                "programs were chosen in 3 of 10 quanta; the others as the system does: 2 not known well enough, 5 no contention"
            )
        );
        assert_eq!(decisions(&BTreeMap::new()), None);
    }

    /// A line of 300,000 characters that the kernel refused was printed whole.
    #[test]
    fn the_summary_cuts_long_names() {
        assert_eq!(short(&"a".repeat(NAME_MAX)), "a".repeat(NAME_MAX));
        assert_eq!(short(&"\u{e4}".repeat(300_000)), format!("{}...", "\u{e4}".repeat(NAME_MAX)));
    }
}
