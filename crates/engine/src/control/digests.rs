//! The digest of what each task of the current step emitted first, to check that it emits the same again.
//!
//! ```text
//!  first round of a step (or stage):  a task leaves its digest; tried again in that round, it leaves another. If it writes
//!                                     shared outputs it does so before it merges, and its digest is not changed any more
//!  later rounds:                      what it makes has the same digest, or it is an error
//! ```
//!
//! All tasks of a round are committed before the next round opens, so the digest describes the pairs that reducers
//! keep. What was merged into a shared output stays even if the worker dies before it commits, so the digest of a task
//! that gets that far no longer changes.

use std::sync::atomic::Ordering;

use crate::control::words::{DIGEST_WORDS, JobWord, Shared, seal};
use crate::data::digest::Digest;

impl Shared<'_> {
    /// Makes the next round the first one of a step.
    pub fn set_first_round(&self, round: u32) {
        self.job(JobWord::FirstRound).store(u64::from(round), Ordering::Release);
    }

    /// Returns whether `round` is the first one of its step.
    pub fn is_first_round(&self, round: u32) -> bool {
        u64::from(round) == self.job(JobWord::FirstRound).load(Ordering::Acquire)
    }

    /// Compares what `task` made in `round` with what it made in the first round of the step, and fails with the
    /// earlier digest if they differ. The first round stores the digest; `for_good` if some of the task's work will
    /// stay even if the worker dies.
    ///
    /// # Panics
    /// When the earlier digest was overwritten.
    pub fn prove(&self, task: usize, round: u32, digest: Digest, for_good: bool) -> Result<(), Digest> {
        let words = &self.digest_words[task * DIGEST_WORDS..][..DIGEST_WORDS];
        let [pairs, sum, changes, stays, sealed] = words else { unreachable!("five words") };
        let seal = |Digest { pairs, sum, changes }| seal([pairs, sum, changes]);
        let first_round = self.job(JobWord::FirstRound).load(Ordering::Acquire);
        // Relaxed where nothing else is said: the task is mapped again only after its worker has died, or in a round
        // that was opened when all tasks of this one were committed. Rounds count from 0.
        // Acquire: PAIRS WITH the store below, by a worker that has died.
        if u64::from(round) == first_round && stays.load(Ordering::Acquire) != first_round + 1 {
            pairs.store(digest.pairs, Ordering::Relaxed);
            sum.store(digest.sum, Ordering::Relaxed);
            changes.store(digest.changes, Ordering::Relaxed);
            sealed.store(seal(digest), Ordering::Relaxed);
            if for_good {
                // Release: a digest is whole when it is compared. PAIRS WITH the load above.
                stays.store(first_round + 1, Ordering::Release);
            }
            return Ok(());
        }
        let [pairs, sum, changes] = [pairs, sum, changes].map(|word| word.load(Ordering::Relaxed));
        let first = Digest { pairs, sum, changes };
        let is_whole = sealed.load(Ordering::Relaxed) == seal(first);
        assert!(is_whole, "a shared word was overwritten: the digest of task {task}");
        if first == digest { Ok(()) } else { Err(first) }
    }
}
