//! The error that ends the job, in the words of the worker that met it.

use std::sync::atomic::Ordering;

use crate::control::words::{Common, Shared, Slot};
use crate::failure::{FAILURE_WORDS, Failure};

impl Shared<'_> {
    /// Stores an error of the job (not a death) for the coordinator.
    pub fn fail(&self, slot: usize, failure: &Failure) {
        let sent = failure.send();
        if !sent.texts.is_empty() {
            self.set_message(slot, &sent.texts.join("\0"));
        }
        // Set this before the failure itself, so that the coordinator looks for it when it sees the end of this worker.
        self.common(Common::Failed).store(1, Ordering::Release);
        // Store the kind last: a reader that sees it sees the rest. PAIRS WITH the load in `failure`.
        for (word, value) in self.slot_words(slot)[Slot::Failure as usize..].iter().zip(sent.words).rev() {
            word.store(value, Ordering::Release);
        }
        self.announce();
    }

    /// Returns whether a worker has failed, or is about to report that.
    pub fn somebody_failed(&self) -> bool {
        self.common(Common::Failed).load(Ordering::Acquire) != 0
    }

    /// Returns the error that [`Shared::fail`] stored for `slot`.
    pub fn failure(&self, slot: usize) -> Option<Failure> {
        // PAIRS WITH the stores in `fail`: the kind is read first.
        let words = &self.slot_words(slot)[Slot::Failure as usize..][..FAILURE_WORDS];
        let words = std::array::from_fn(|at| words[at].load(Ordering::Acquire));
        (words[0] != 0).then(|| Failure::receive(words, &self.message(slot).unwrap_or_default())).flatten()
    }
}
