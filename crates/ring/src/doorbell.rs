//! Doorbells: sleep and wake without a lost wake-up.
//!
//! Ringing takes no system call while the sleeper is awake.
//!
//! One doorbell belongs to one sleeper; any process may ring it. Its word has two states:
//!
//! ```text
//!            sleep_unless: announce
//!   AWAKE ----------------------------> ASLEEP
//!         <----------------------------
//!            ring (then futex wake), or sleep_unless: there is work after all
//! ```
//!
//! The sleeper announces itself and then looks for work once more. A ringer publishes its work and
//! then checks whether the sleeper sleeps. A fence on each side makes at least one of the two see the
//! other (`README.md`, promise 4).

use crate::sync::{AtomicU32, Ordering, fence};

const AWAKE: u32 = 0;
const ASLEEP: u32 = 1;

/// The two system calls that a doorbell needs.
///
/// The crate `gristmill-os` makes them on Linux. The tests use a twin made of a mutex and a condition variable.
pub trait Futex {
    /// Sleeps while `word` holds `seen`, until the next [`wake`](Futex::wake) on the same word.
    /// Returns at once when `word` holds something else. May return early for no reason.
    fn wait(&self, word: &AtomicU32, seen: u32);
    /// Ends every `wait` on `word`.
    fn wake(&self, word: &AtomicU32);
}

/// A word on which one worker sleeps until it is rung.
///
/// 0 is a sleeper that is awake.
#[derive(Clone, Copy, Debug)]
pub struct Doorbell<'a> {
    word: &'a AtomicU32,
}

impl<'a> Doorbell<'a> {
    /// The doorbell that lies in `word`. Every worker makes its own.
    pub fn new(word: &'a AtomicU32) -> Doorbell<'a> {
        Doorbell { word }
    }

    /// Wakes the sleeper if it sleeps. Call it after publishing the work.
    ///
    /// While the sleeper is awake this costs a fence and a load.
    #[inline]
    pub fn ring(&self, futex: &impl Futex) {
        // PAIRS WITH sleep_unless, fence: either this load sees ASLEEP, or the sleeper's look for
        // work sees what was published before this fence.
        fence(Ordering::SeqCst);
        if self.word.load(Ordering::Relaxed) == ASLEEP {
            self.wake_sleeper(futex);
        }
    }

    /// True if the sleeper has announced that it sleeps, and was not rung since.
    pub fn is_asleep(&self) -> bool {
        // Relaxed: nobody infers from it what the sleeper has done.
        self.word.load(Ordering::Relaxed) == ASLEEP
    }

    /// Wakes the sleeper regardless of the word.
    ///
    /// The coordinator calls it after it has declared a worker dead. The dead worker may have marked this sleeper
    /// awake and died before the wake; from then on `ring` would believe the sleeper to be awake.
    pub fn ring_after_death(&self, futex: &impl Futex) {
        self.word.swap(AWAKE, Ordering::Release);
        futex.wake(self.word);
    }

    #[cold]
    fn wake_sleeper(&self, futex: &impl Futex) {
        // PAIRS WITH sleep_unless, load of the word. Only one of many ringers finds ASLEEP and makes the call.
        let marked = self.word.compare_exchange(ASLEEP, AWAKE, Ordering::Release, Ordering::Relaxed);
        if marked.is_ok() {
            futex.wake(self.word);
        }
    }

    /// Sleeps until the doorbell is rung, unless `has_work` returns true.
    ///
    /// `has_work` is called after the announcement, perhaps more than once. It must look at everything
    /// that the caller would act upon, and compare it with what the caller saw *before* it decided to
    /// sleep, because a change in between rang while the caller was awake. Returning does not mean that there is
    /// work: look, and sleep again if there is none. Only the doorbell's one sleeper calls this.
    ///
    /// ```
    /// use gristmill_ring::sync::{AtomicU32, Ordering};
    /// use gristmill_ring::{Doorbell, Futex};
    ///
    /// /// A futex for threads that may spin.
    /// struct Spin;
    /// impl Futex for Spin {
    ///     fn wait(&self, _word: &AtomicU32, _seen: u32) { std::thread::yield_now() }
    ///     fn wake(&self, _word: &AtomicU32) {}
    /// }
    ///
    /// let (word, work) = (AtomicU32::new(0), AtomicU32::new(0));
    /// std::thread::scope(|scope| {
    ///     scope.spawn(|| {
    ///         work.store(7, Ordering::Release);
    ///         Doorbell::new(&word).ring(&Spin);
    ///     });
    ///     while work.load(Ordering::Acquire) == 0 {
    ///         Doorbell::new(&word).sleep_unless(&Spin, || work.load(Ordering::Acquire) != 0);
    ///     }
    /// });
    /// ```
    pub fn sleep_unless(&self, futex: &impl Futex, mut has_work: impl FnMut() -> bool) {
        self.word.store(ASLEEP, Ordering::Relaxed);
        // PAIRS WITH ring, fence.
        fence(Ordering::SeqCst);
        loop {
            if has_work() {
                // An exchange: the next announcement then comes after any mark that a ringer made meanwhile.
                self.word.swap(AWAKE, Ordering::Relaxed);
                return;
            }
            futex.wait(self.word, ASLEEP);
            // PAIRS WITH wake_sleeper and ring_after_death. Still ASLEEP: the wait was a spurious one.
            if self.word.load(Ordering::Acquire) == AWAKE {
                return;
            }
        }
    }
}
