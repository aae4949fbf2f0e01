//! The gate of a master: it tells whether any worker uses the array.
//!
//! ```text
//!             begin                  open
//!  resting  ---------->  closed  -----------> open       workers enter and leave
//!      ^                  |   ^                |
//!      +------- rest -----+   +---- close -----+         only when nobody is inside
//! ```
//!
//! A worker that enters writes its number into the word of its slot, and then reads the state. The process that closes
//! the gate writes the state, and then reads the words. So one of the two sees the other. A worker that died inside is
//! let out with the proof that it has ended.

use std::sync::atomic::{AtomicU32, Ordering};

use gristmill_os::ended::{Ended, this_worker};

/// More slots than a job can have.
const SLOTS_MAX: usize = 1 << 14;

/// The words of a gate: its state, how many slots were ever used, and the worker inside for each slot: its number + 1,
/// or 0.
pub(crate) const GATE_WORDS: usize = 2 + SLOTS_MAX;

const RESTING: u32 = 0;
const OPEN: u32 = 1;
const CLOSED: u32 = 2;

/// A gate, made of words in shared memory that were zero at the start.
#[derive(Clone, Copy)]
pub(crate) struct Gate<'m> {
    state: &'m AtomicU32,
    slots: &'m AtomicU32,
    inside: &'m [AtomicU32],
}

impl<'m> Gate<'m> {
    pub fn new(words: &'m [AtomicU32]) -> Gate<'m> {
        let [state, slots, inside @ ..] = words else { panic!("a gate has {GATE_WORDS} words") };
        Gate { state, slots, inside }
    }

    pub fn is_resting(&self) -> bool {
        self.state.load(Ordering::Acquire) == RESTING
    }

    /// From resting to closed; false if it was not resting.
    pub fn begin(&self) -> bool {
        self.state.compare_exchange(RESTING, CLOSED, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// Closes an open gate. Returns false if it was not open, or if a worker is inside. In both cases no worker can
    /// enter any more.
    pub fn close(&self) -> bool {
        // SeqCst: see `enter`.
        let was_open = self.state.compare_exchange(OPEN, CLOSED, Ordering::SeqCst, Ordering::Relaxed).is_ok();
        let slots = self.slots.load(Ordering::SeqCst) as usize;
        // PAIRS WITH the store in `leave`.
        was_open && self.inside[..slots].iter().all(|worker| worker.load(Ordering::SeqCst) == 0)
    }

    /// From closed to open. PAIRS WITH the load in `enter`.
    pub fn open(&self) {
        self.state.store(OPEN, Ordering::Release);
    }

    /// From closed to resting.
    pub fn rest(&self) {
        self.state.store(RESTING, Ordering::Release);
    }

    /// The worker on this thread, which has `slot`, enters.
    ///
    /// # Panics
    /// When the gate is not open, or another worker has entered with this slot.
    pub fn enter(&self, slot: usize) {
        // SeqCst, all of it: of this and `close` one sees what the other stores.
        self.slots.fetch_max(slot as u32 + 1, Ordering::SeqCst);
        let entered = self.inside[slot].compare_exchange(0, this_worker() + 1, Ordering::SeqCst, Ordering::Relaxed);
        assert!(entered.is_ok(), "one worker at a time uses an array by the name of slot {slot}");
        if self.state.load(Ordering::SeqCst) != OPEN {
            self.leave(slot);
            panic!("an array is used by workers while they have tasks");
        }
    }

    pub fn leave(&self, slot: usize) {
        self.inside[slot].store(0, Ordering::Release);
    }

    /// Lets out a worker that has ended.
    pub fn let_out(&self, slot: usize, ended: &Ended) {
        let _ = self.inside[slot].compare_exchange(ended.worker() + 1, 0, Ordering::Release, Ordering::Relaxed);
    }
}
