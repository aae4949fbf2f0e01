//! The latch: one worker at a time changes a piece of memory.

use crate::sync::{AtomicU32, Ordering};

/// No worker holds the latch. Workers are numbered from 1.
const FREE: u32 = 0;

/// The latch of a piece of memory.
///
/// At most one living worker holds it. The latch of a dead worker can be taken over. 0 means that no worker holds it.
///
/// Numbers of workers are never used twice while the latch exists. So the number of a dead worker leaves the word only
/// by a takeover, and only one of the workers that try succeeds.
///
/// ```
/// use gristmill_ring::{Latch, sync::AtomicU32};
///
/// let word = AtomicU32::new(0);
/// let latch = Latch::new(&word);
/// assert!(latch.try_take(1, |_| false));
/// assert!(!latch.try_take(2, |holder| holder != 1));
/// // Worker 1 has died.
/// assert!(latch.try_take(2, |holder| holder == 1));
/// latch.release();
/// assert!(latch.try_take(3, |_| false));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Latch<'a> {
    word: &'a AtomicU32,
}

impl<'a> Latch<'a> {
    /// The latch that lies in `word`. Every worker makes its own.
    pub fn new(word: &'a AtomicU32) -> Latch<'a> {
        Latch { word }
    }

    /// Takes the latch for `worker`, unless a living worker holds it.
    ///
    /// After `true`, all changes of earlier holders are visible, those of a dead one included. The caller must find
    /// out what a dead holder left undone.
    ///
    /// `is_dead` must be certain, and order the caller after the death (an acquire load of a word that was stored
    /// after it).
    pub fn try_take(&self, worker: u32, is_dead: impl FnOnce(u32) -> bool) -> bool {
        debug_assert_ne!(worker, FREE, "workers are numbered from 1");
        // Acquire PAIRS WITH the store in release.
        let take = |from| self.word.compare_exchange(from, worker, Ordering::Acquire, Ordering::Relaxed);
        match take(FREE) {
            Ok(_) => true,
            Err(holder) => is_dead(holder) && take(holder).is_ok(),
        }
    }

    /// Gives the latch back. Only its holder may call this.
    pub fn release(&self) {
        // PAIRS WITH try_take: the next holder sees what this one did.
        self.word.store(FREE, Ordering::Release);
    }
}
