//! The words of accumulators: for each task of the current step, what it has added.
//!
//! ```text
//!  task 0, accumulator 0:  | 1 if it has added something | value |   task 0, accumulator 1 ...   task 1 ...
//! ```
//!
//! A task writes them before it commits, and again if it is mapped again; so the words of a task that counts are those
//! of its last attempt, or of one that made the same pairs.

use std::sync::atomic::Ordering;

use crate::control::words::{ACCUMULATED_WORDS, Shared};
use crate::program::accumulator::{Kind, Values};

impl Shared<'_> {
    /// Stores what a task has added.
    ///
    /// # Panics
    /// When it has added to an accumulator that the job does not have.
    pub fn set_accumulated(&self, task: usize, kinds: &[Kind], values: &Values) {
        let unknown = values.iter().find(|(kind, _)| !kinds.contains(kind));
        assert!(
            unknown.is_none(),
            "the map function adds to an accumulator that the job was not given: Job::accumulates"
        );
        let words = self.accumulated_words.chunks_exact(ACCUMULATED_WORDS).skip(task * kinds.len());
        for (kind, words) in kinds.iter().zip(words) {
            let value = values.iter().find(|(other, _)| other == kind).map(|(_, value)| *value);
            // Relaxed: the coordinator reads them when the task is committed, another attempt when this worker is dead.
            words[1].store(value.unwrap_or(0) as u64, Ordering::Relaxed);
            words[0].store(u64::from(value.is_some()), Ordering::Relaxed);
        }
    }

    /// Folds what all tasks of this step have added into `totals`; returns false if a sum exceeds 64 bits.
    pub fn add_accumulated(&self, kinds: &[Kind], totals: &mut Values) -> bool {
        let tasks = self.accumulated_words.chunks_exact(ACCUMULATED_WORDS * kinds.len().max(1));
        tasks.flat_map(|task| kinds.iter().zip(task.chunks_exact(ACCUMULATED_WORDS))).all(|(kind, words)| {
            words[0].load(Ordering::Relaxed) == 0
                || add(totals, *kind, words[1].load(Ordering::Relaxed) as i64).is_some()
        })
    }

    /// Forgets what the tasks of the step before have added. No worker maps meanwhile.
    pub fn clear_accumulated(&self) {
        self.accumulated_words.iter().for_each(|word| word.store(0, Ordering::Relaxed));
    }
}

/// Folds a value into `totals`; `None` if a sum exceeds 64 bits.
pub(crate) fn add(totals: &mut Values, kind: Kind, value: i64) -> Option<()> {
    match totals.iter_mut().find(|(other, _)| *other == kind) {
        Some((_, total)) => *total = kind.fold(*total, value)?,
        None => totals.push((kind, value)),
    }
    Some(())
}
