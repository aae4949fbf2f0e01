//! Sleeping and waking between processes.

use std::sync::atomic::AtomicU32;
use std::time::Duration;

use rustix::io::Errno;
use rustix::thread::futex::{self, Flags, Timespec};

/// The kernel's futex for words in shared memory.
///
/// The private kind is a little faster but compares addresses within one process; this one finds
/// the same word in another process's mapping.
#[derive(Clone, Copy, Debug, Default)]
pub struct SharedFutex;

impl gristmill_ring::Futex for SharedFutex {
    fn wait(&self, word: &AtomicU32, seen: u32) {
        match futex::wait(word, Flags::empty(), seen, None) {
            // AGAIN: the word changed before we slept. INTR: a signal came; the caller looks again.
            Ok(()) | Err(Errno::AGAIN | Errno::INTR) => {}
            Err(error) => panic!("futex wait on a mapped, aligned word: {error}"),
        }
    }

    fn wake(&self, word: &AtomicU32) {
        if let Err(error) = futex::wake(word, Flags::empty(), i32::MAX as u32) {
            panic!("futex wake on a mapped, aligned word: {error}");
        }
    }
}

impl SharedFutex {
    /// Sleeps like [`wait`](gristmill_ring::Futex::wait), but no longer than `limit`.
    ///
    /// `false` if the time ran out; `true` if woken or interrupted, or if `word` held another value.
    ///
    /// ```
    /// use std::{sync::atomic::AtomicU32, time::Duration};
    /// use gristmill_os::futex::SharedFutex;
    ///
    /// let word = AtomicU32::new(1);
    /// assert!(!SharedFutex.wait_for(&word, 1, Duration::from_millis(1))); // no wake comes
    /// assert!(SharedFutex.wait_for(&word, 0, Duration::from_secs(60))); // the word is not 0
    /// ```
    pub fn wait_for(&self, word: &AtomicU32, seen: u32, limit: Duration) -> bool {
        let limit =
            Timespec { tv_sec: limit.as_secs().min(i64::MAX as u64) as i64, tv_nsec: limit.subsec_nanos().into() };
        match futex::wait(word, Flags::empty(), seen, Some(&limit)) {
            Ok(()) | Err(Errno::AGAIN | Errno::INTR) => true,
            Err(Errno::TIMEDOUT) => false,
            Err(error) => panic!("futex wait on a mapped, aligned word: {error}"),
        }
    }
}
