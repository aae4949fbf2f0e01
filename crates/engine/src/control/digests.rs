//! What each task of the running step made when it was mapped first, and whether it does so again.
//!
//! ```text
//!  first round of a step (or stage):  a task leaves its digest; tried again in that round, it leaves another. If it writes
//!                                     shared outputs it does so before it merges, and its digest is not changed any more
//!  later rounds:                      what it makes has the same digest, or it is an error
//! ```
//!
//! All tasks of a round are committed before the next round opens, so the digest that is compared with is that of the pairs
//! which reducers keep. What was merged into a shared output stays even if the worker dies before it commits: a task that
//! comes so far is compared from then on.

use std::sync::atomic::Ordering;

use crate::control::words::{DIGEST_WORDS, Job, Shared};
use crate::data::digest::Digest;

impl Shared<'_> {
    /// The round that is opened next is the first one of a step.
    pub fn set_first_round(&self, round: u32) {
        self.job(Job::FirstRound).store(u64::from(round), Ordering::Release);
    }

    /// Compares what `task` made in `round` with what it made when the step began; that is given back if it was something
    /// else. In the first round it is noted; `for_good` if something of it will stay whatever becomes of the worker.
    pub fn prove(&self, task: usize, round: u32, digest: Digest, for_good: bool) -> Result<(), Digest> {
        let words = &self.digest_words[task * DIGEST_WORDS..][..DIGEST_WORDS];
        let [pairs, sum, changes, stays] = words else { unreachable!("four words") };
        let first_round = self.job(Job::FirstRound).load(Ordering::Acquire);
        // Relaxed, where nothing else is said: whoever maps the task again does so after its worker has died, or in a round that
        // was opened when all tasks of this one were committed. Rounds count from 0.
        // Acquire: PAIRS WITH the store below, by a worker that has died.
        if u64::from(round) == first_round && stays.load(Ordering::Acquire) != first_round + 1 {
            pairs.store(digest.pairs, Ordering::Relaxed);
            sum.store(digest.sum, Ordering::Relaxed);
            changes.store(digest.changes, Ordering::Relaxed);
            if for_good {
                // Release: a digest that is compared with is whole. PAIRS WITH the load above.
                stays.store(first_round + 1, Ordering::Release);
            }
            return Ok(());
        }
        let [pairs, sum, changes] = [pairs, sum, changes].map(|word| word.load(Ordering::Relaxed));
        let first = Digest { pairs, sum, changes };
        if first == digest { Ok(()) } else { Err(first) }
    }
}
