//! The share that the pairs of each task belong to, in a job whose nodes reduce on their own.
//!
//! ```text
//!  first round:   a worker that claims a task notes the share of its own home; a retry notes it anew
//!  later rounds:  the pairs of the task belong to the share that was noted, whoever maps it
//! ```
//!
//! All tasks of a round are committed before the next round opens. So the note of a task describes the pages that count.

use std::sync::atomic::Ordering;

use crate::control::words::Shared;

impl Shared<'_> {
    /// Returns the share of `task` in `round` for a worker that has claimed it, and whose own share this is.
    pub fn share(&self, task: usize, round: u32, own: usize) -> usize {
        let Some(word) = self.share_words.get(task) else { return 0 };
        // Relaxed: a task is mapped again only after its worker has died, or in a round that was opened when all tasks of the
        // first one were committed.
        if self.is_first_round(round) {
            word.store(own as u64, Ordering::Relaxed);
            return own;
        }
        word.load(Ordering::Relaxed) as usize
    }
}
