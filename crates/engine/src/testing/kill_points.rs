//! For tests of the engine: a worker that kills or stops itself at a chosen moment, as a signal from outside would.

use std::cell::Cell;
use std::sync::atomic::AtomicU32;

use gristmill_ring::Futex;
use rustix::process::{Signal, getpid, kill_process};

/// A moment in the life of a worker at which others depend on what it has done, and on what it has not.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// A task was drawn and is not claimed.
    Drawn,
    /// A task is claimed and has not begun.
    Claimed,
    /// A page was pushed, to a reducer or to the coordinator; nobody was told.
    Pushed,
    /// A page was pushed and its receiver was told, if it was asleep.
    Sent,
    /// A sleeper is marked awake and is not woken.
    Ringing,
    /// A page was received and is not yet consumed.
    Received,
    /// The latch of an OS page of a shared output was taken; nothing is merged yet.
    Latched,
    /// The OS page was merged; the latch is not released.
    Merged,
    /// The last page of an epoch was sent; the epoch is not committed.
    Flushed,
    /// An epoch is committed; nobody was told.
    Committed,
    /// A reducer has all pages of a round; nobody was told.
    Drained,
    /// A partition was left for the next step and is not published.
    Keeping,
    /// It is published; nobody was told.
    Kept,
    /// A run was written.
    Spilled,
    /// A stage was saved in the checkpoint; nobody was told.
    Saved,
    /// Rows of the result were written where they belong; the part is not finished.
    Written,
    /// Runs were merged as far as it takes to merge the rest at once; nothing of the result has been sent.
    RunsMerged,
}

/// Every moment.
#[doc(hidden)]
pub const MOMENTS: [Moment; 17] = [
    Moment::Drawn,
    Moment::Claimed,
    Moment::Pushed,
    Moment::Sent,
    Moment::Ringing,
    Moment::Received,
    Moment::Latched,
    Moment::Merged,
    Moment::Flushed,
    Moment::Committed,
    Moment::Drained,
    Moment::Keeping,
    Moment::Kept,
    Moment::Spilled,
    Moment::Saved,
    Moment::RunsMerged,
    Moment::Written,
];

/// When a worker dies, or is stopped: the n-th time it comes to a moment, or never.
pub(crate) struct KillPoint {
    end: Option<Moment>,
    left: Cell<u64>,
    signal: Signal,
}

impl KillPoint {
    /// `Some((moment, n, signal))`: by this signal at the n-th, counted from 1.
    pub fn new(end: Option<(Moment, u64, Signal)>) -> KillPoint {
        let (left, signal) = end.map_or((0, Signal::KILL), |(_, n, signal)| (n, signal));
        KillPoint { end: end.map(|(moment, ..)| moment), left: Cell::new(left), signal }
    }

    /// The worker has come to `moment`.
    #[inline(always)]
    pub fn passes(&self, moment: Moment) {
        if self.end == Some(moment) {
            self.come_closer();
        }
    }

    #[cold]
    fn come_closer(&self) {
        if self.left.get() == 0 {
            return; // It was stopped, and continued.
        }
        self.left.set(self.left.get() - 1);
        if self.left.get() == 0 {
            kill_process(getpid(), self.signal).expect("a process may signal itself");
        }
    }

    /// The same futex, whose wake is a moment.
    pub fn at_wake<'f, F: Futex>(&'f self, futex: &'f F) -> AtWake<'f, F> {
        AtWake { kill_point: self, futex }
    }
}

pub(crate) struct AtWake<'f, F> {
    kill_point: &'f KillPoint,
    futex: &'f F,
}

impl<F: Futex> Futex for AtWake<'_, F> {
    fn wait(&self, word: &AtomicU32, seen: u32) {
        self.futex.wait(word, seen);
    }

    fn wake(&self, word: &AtomicU32) {
        self.kill_point.passes(Moment::Ringing);
        self.futex.wake(word);
    }
}
