//! What each task of the running step emitted when it was mapped first, and whether it does so again.
//!
//! ```text
//!  first round of a step (or stage):  a task leaves its digest; tried again in that round, it leaves another
//!  later rounds:                      what it emits has the same digest, or it is an error
//! ```
//!
//! All tasks of a round are committed before the next round opens, so the digest that is compared with is that of the pairs
//! which reducers keep.

use std::sync::atomic::Ordering;

use super::{DIGEST_WORDS, Job, Shared};
use crate::digest::Digest;

impl Shared<'_> {
    /// The round that is opened next is the first one of a step.
    pub fn set_first_round(&self, round: u32) {
        self.job(Job::FirstRound).store(u64::from(round), Ordering::Release);
    }

    /// Compares what `task` emitted in `round` with what it emitted when the step began; that is given back if it was something
    /// else. In the first round it is noted.
    pub fn prove(&self, task: usize, round: u32, digest: Digest) -> Result<(), Digest> {
        let [pairs, sum] = &self.digest_words[task * DIGEST_WORDS..][..DIGEST_WORDS] else { unreachable!("two words") };
        // Relaxed: whoever maps the task again does so after its worker has died, or in a round that was opened when all tasks
        // of this one were committed.
        if u64::from(round) == self.job(Job::FirstRound).load(Ordering::Acquire) {
            pairs.store(digest.pairs, Ordering::Relaxed);
            sum.store(digest.sum, Ordering::Relaxed);
            return Ok(());
        }
        let first = Digest { pairs: pairs.load(Ordering::Relaxed), sum: sum.load(Ordering::Relaxed) };
        if first == digest { Ok(()) } else { Err(first) }
    }
}
