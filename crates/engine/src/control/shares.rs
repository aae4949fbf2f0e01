//! The share that the pairs of each task belong to, in a job whose nodes reduce on their own.
//!
//! ```text
//!  first round:   a worker that claims a task notes the share of its own home; a retry notes it anew
//!  later rounds:  the pairs of the task belong to the share that was noted, whoever maps it
//! ```
//!
//! All tasks of a round are committed before the next round opens. So the note of a task describes the pages that
//! count.

use std::sync::atomic::Ordering;

use crate::control::words::Shared;

/// A share, and the same bits turned over.
fn sealed(share: usize) -> u64 {
    let share = share as u32;
    u64::from(!share) << 32 | u64::from(share)
}

impl Shared<'_> {
    /// Returns the share of `task` in `round` for a worker that has claimed it, and whose own share this is.
    ///
    /// # Panics
    /// When the note was overwritten.
    pub fn share(&self, task: usize, round: u32, own: usize) -> usize {
        let Some(word) = self.share_words.get(task) else { return 0 };
        // Relaxed: a task is mapped again only after its worker has died, or in a round that was opened when all tasks
        // of the first one were committed.
        if self.is_first_round(round) {
            word.store(sealed(own), Ordering::Relaxed);
            return own;
        }
        let word = word.load(Ordering::Relaxed);
        let share = (word & u64::from(u32::MAX)) as usize;
        assert_eq!(sealed(share), word, "a shared word was overwritten: the share of task {task}");
        share
    }
}
