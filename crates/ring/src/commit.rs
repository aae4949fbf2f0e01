//! The word that says how far the pages of a map worker count.

use crate::sync::{AtomicU64, Ordering, fence};

/// The commit word of one map worker: pages of epochs up to [`committed`](CommitWord::committed)
/// count. Epochs are numbered from 1; all zero means that nothing is committed.
///
/// ```
/// use gristmill_ring::{CommitWord, sync::AtomicU64};
///
/// let word = AtomicU64::new(0);
/// CommitWord::new(&word).commit(1);
/// assert_eq!(CommitWord::new(&word).committed(), 1);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct CommitWord<'a> {
    word: &'a AtomicU64,
}

impl<'a> CommitWord<'a> {
    /// The commit word that lives in `word`. Every party makes its own.
    pub fn new(word: &'a AtomicU64) -> CommitWord<'a> {
        CommitWord { word }
    }

    /// Makes every page of `epoch` and of the epochs before it count, after the last of them was
    /// pushed. Only the worker that the word belongs to commits.
    ///
    /// # Panics
    ///
    /// When `epoch` is not above the epoch committed last.
    pub fn commit(&self, epoch: u64) {
        // Relaxed: nobody else stores the word.
        let last = self.word.load(Ordering::Relaxed);
        assert!(epoch > last, "epoch {epoch} commits after epoch {last}: epochs only grow");
        // PAIRS WITH committed: whoever sees the epoch committed finds all its pages in the rings.
        self.word.store(epoch, Ordering::Release);
    }

    /// Commits `epoch` and then looks whether somebody else will tell that all is committed.
    ///
    /// `look` reads a word that every worker changes before it does the work that it commits next, and says whether there
    /// is work that nobody has begun. Of the workers whose `look` says no, the last one to commit must tell whoever waits
    /// for all; a worker whose `look` says yes need not, because what is not begun will be committed later. With an ordinary
    /// load behind the commit both could be missed: the load done before the store, and the commit seen by nobody.
    ///
    /// # Panics
    ///
    /// As [`CommitWord::commit`].
    pub fn commit_and_look<R>(&self, epoch: u64, look: impl FnOnce() -> R) -> R {
        self.commit(epoch);
        // PAIRS WITH Doorbell::ring, fence: that of the worker that took the last work and tells of it. If `look` does not see that
        // this was taken, its fence comes after this one, and who is rung sees this commit.
        fence(Ordering::SeqCst);
        look()
    }

    /// The last epoch that counts, 0 when none does yet. To have all pages of it, read this first and
    /// pop until empty then.
    pub fn committed(&self) -> u64 {
        // PAIRS WITH commit.
        self.word.load(Ordering::Acquire)
    }
}
