//! The word that lets one worker at a time change a piece of shared memory.

use crate::sync::{AtomicU32, Ordering};

/// Nobody holds the latch. Workers are numbered from 1.
const FREE: u32 = 0;

/// The latch of a piece of memory: at most one living worker holds it, and what a dead worker holds can be taken
/// from it. All zero means that nobody does.
///
/// Numbers of workers are never used twice while the latch lives, so the number of a dead one can leave the word only by
/// being taken over, and only one of those who try takes it.
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
    /// The latch that lives in `word`. Every party makes its own.
    pub fn new(word: &'a AtomicU32) -> Latch<'a> {
        Latch { word }
    }

    /// Takes the latch for `worker`, unless a worker holds it that is not dead. What earlier holders did to the memory,
    /// the dead one included, is visible after `true`; what the dead one was about to do is for the caller to find out.
    ///
    /// `is_dead` must be certain, and order the caller behind the death (an acquire load of what was stored after it).
    pub fn try_take(&self, worker: u32, is_dead: impl FnOnce(u32) -> bool) -> bool {
        debug_assert_ne!(worker, FREE, "workers are numbered from 1");
        // Acquire PAIRS WITH the store in release.
        let take = |from| self.word.compare_exchange(from, worker, Ordering::Acquire, Ordering::Relaxed);
        match take(FREE) {
            Ok(_) => true,
            Err(holder) => is_dead(holder) && take(holder).is_ok(),
        }
    }

    /// Gives the latch back. Only who holds it may.
    pub fn release(&self) {
        // PAIRS WITH try_take: the next holder sees what this one did.
        self.word.store(FREE, Ordering::Release);
    }
}
