//! The words of accumulators: for each task of the current step, what it has added.
//!
//! ```text
//!  task 0, accumulator 0:  | 1 if it has added something | value | seal |   task 0, accumulator 1 ...   task 1 ...
//! ```
//!
//! A task writes them before it commits, and again if it is mapped again; so the words of a task that counts are those
//! of its last attempt, or of one that made the same pairs.

use std::sync::atomic::Ordering;

use crate::control::words::{ACCUMULATED_WORDS, Shared, seal};
use crate::error::{Result, overwritten};
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
            let values = [u64::from(value.is_some()), value.unwrap_or(0) as u64];
            for (word, value) in words.iter().zip(values.into_iter().chain([seal(values)])) {
                word.store(value, Ordering::Relaxed);
            }
        }
    }

    /// Folds what all tasks of this step have added into `totals`; returns false if a sum exceeds 64 bits.
    ///
    /// # Errors
    /// The words of a task were overwritten.
    pub fn add_accumulated(&self, kinds: &[Kind], totals: &mut Values) -> Result<bool> {
        let words = self.accumulated_words.chunks_exact(ACCUMULATED_WORDS);
        for (kind, words) in kinds.iter().cycle().zip(words) {
            let [has, value, sealed] = std::array::from_fn(|at| words[at].load(Ordering::Relaxed));
            // A task that was not mapped has left zeros.
            if sealed != seal([has, value]) && [has, value, sealed] != [0; 3] {
                return Err(overwritten(None, "what a task has added to an accumulator"));
            }
            if has != 0 && add(totals, *kind, value as i64).is_none() {
                return Ok(false);
            }
        }
        Ok(true)
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
