//! The commit word: the last epoch of a map worker that counts.

use crate::sync::{AtomicU64, Ordering, fence};

/// The commit word of one map worker.
///
/// Pages of epochs up to [`committed`](CommitWord::committed) count. Epochs are numbered from 1; 0 means that nothing
/// is committed.
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
    /// The commit word that lies in `word`. Every worker makes its own.
    pub fn new(word: &'a AtomicU64) -> CommitWord<'a> {
        CommitWord { word }
    }

    /// Commits `epoch` and all epochs before it.
    ///
    /// Call it after the last page was pushed. Only the worker that owns the word commits.
    ///
    /// # Panics
    ///
    /// When `epoch` is not above the epoch committed last.
    pub fn commit(&self, epoch: u64) {
        // Relaxed: no other worker stores the word.
        let last = self.word.load(Ordering::Relaxed);
        assert!(epoch > last, "epoch {epoch} commits after epoch {last}: epochs only grow");
        // PAIRS WITH committed: a consumer that sees the epoch committed finds all its pages in its mailbox.
        self.word.store(epoch, Ordering::Release);
    }

    /// Commits `epoch`, then looks for unclaimed work.
    ///
    /// `look` reads a word that every worker changes before it begins the work that it commits next, and returns
    /// whether unclaimed work is left. If so, the caller need not announce that all is committed, because a later
    /// commit will follow. Otherwise it must. An ordinary load after the commit could be done before the store: the
    /// caller would then see work that another worker takes a moment later, and its own commit would be announced by
    /// neither.
    ///
    /// # Panics
    ///
    /// As [`CommitWord::commit`].
    pub fn commit_and_look<R>(&self, epoch: u64, look: impl FnOnce() -> R) -> R {
        self.commit(epoch);
        // PAIRS WITH Doorbell::ring, fence: that of the worker that took the last work and announces it. If `look`
        // does not see that it was taken, that fence comes after this one, and the worker that is rung sees this
        // commit.
        fence(Ordering::SeqCst);
        look()
    }

    /// The last epoch that counts, or 0.
    ///
    /// To get all pages of it, read this first and then pop until empty.
    pub fn committed(&self) -> u64 {
        // PAIRS WITH commit.
        self.word.load(Ordering::Acquire)
    }
}
