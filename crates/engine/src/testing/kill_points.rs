//! Kill points: a worker kills or stops itself at a chosen moment, as a signal from outside would, or overwrites a
//! shared word, as a stray pointer would.

use std::cell::Cell;
use std::sync::atomic::AtomicU32;

use gristmill_ring::Futex;
use rustix::process::{Signal, getpid, kill_process};

/// A moment at which other processes depend on what a worker has done or has not done yet.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// A task was drawn and not yet claimed.
    Drawn,
    /// A task was claimed and has not begun.
    Claimed,
    /// A page was pushed, to a reducer or to the coordinator; the receiver was not notified.
    Pushed,
    /// A page was pushed, and its receiver was notified if it slept.
    Sent,
    /// A sleeping worker was marked awake and not yet woken.
    Ringing,
    /// A page was received and not yet consumed.
    Received,
    /// The latch of an OS page of a shared output was taken; nothing has been merged.
    Latched,
    /// The OS page was merged; the latch has not been released.
    Merged,
    /// The last page of an epoch was sent; the epoch has not been committed.
    Flushed,
    /// An epoch was committed; nobody was notified.
    Committed,
    /// A reducer has all pages of a round; nobody was notified.
    Drained,
    /// A partition was written for the next step and not yet published.
    Keeping,
    /// The partition was published; nobody was notified.
    Kept,
    /// A run was written.
    Spilled,
    /// A stage was saved in the checkpoint; nobody was notified.
    Saved,
    /// Rows of the result were written to their place; the part is not finished.
    Written,
    /// Enough runs were merged to merge the rest at once; nothing of the result has been sent.
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

/// Damage that a worker does to itself, or to others, at a moment.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Deed {
    /// It sends itself this signal.
    Signal(Signal),
    /// It overwrites a shared word, as a stray pointer would. The number chooses the word and the value.
    Overwrite(u64),
}

/// The point at which a worker kills or stops itself, or overwrites a shared word, if any.
pub(crate) struct KillPoint<'r> {
    end: Option<Moment>,
    left: Cell<u64>,
    deed: Deed,
    overwrite: &'r dyn Fn(u64),
}

impl<'r> KillPoint<'r> {
    /// Makes a kill point from `(moment, n, deed)`: the worker does it at the n-th `moment`, counted from 1. It calls
    /// `overwrite` to overwrite a shared word.
    pub fn new(end: Option<(Moment, u64, Deed)>, overwrite: &'r dyn Fn(u64)) -> KillPoint<'r> {
        let (left, deed) = end.map_or((0, Deed::Signal(Signal::KILL)), |(_, n, deed)| (n, deed));
        KillPoint { end: end.map(|(moment, ..)| moment), left: Cell::new(left), deed, overwrite }
    }

    /// Records that the worker has reached `moment`.
    #[inline(always)]
    pub fn passes(&self, moment: Moment) {
        if self.end == Some(moment) {
            self.come_closer();
        }
    }

    #[cold]
    fn come_closer(&self) {
        if self.left.get() == 0 {
            return; // The worker was stopped, and has been continued.
        }
        self.left.set(self.left.get() - 1);
        if self.left.get() == 0 {
            match self.deed {
                Deed::Signal(signal) => kill_process(getpid(), signal).expect("a process may signal itself"),
                Deed::Overwrite(seed) => (self.overwrite)(seed),
            }
        }
    }

    /// Wraps a futex so that its wake counts as a moment.
    pub fn at_wake<'f, F: Futex>(&'f self, futex: &'f F) -> AtWake<'f, F> {
        AtWake { kill_point: self, futex }
    }
}

pub(crate) struct AtWake<'f, F> {
    kill_point: &'f KillPoint<'f>,
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
