//! Sums of what was mapped, sent and received in a round. They must agree, whatever a stray pointer did to the words
//! between.
//!
//! ```text
//!  words of a slot:  | entry of even epochs | entry of odd epochs | round + 1 of received pages | their sum |
//!  entry:            | epoch | round | sum of tasks | sum of pages |
//!
//!  a worker, before it commits epoch e:  stores entry e % 2, with the sums of its committed epochs of this round and of e
//!  a reducer, before it is drained:      stores the sum of the pages that it has consumed in this round
//!  the coordinator, once all is mapped:  each task is in the entries once
//!  once all is drained:                  the sums of sent and of received pages are equal
//! ```
//!
//! A worker may die at any moment: until it commits, the entry of the epoch before is the one that counts. If a
//! reducer dies in a round, what it had received is not known; its partitions are made again in the next round, which
//! has sums of its own.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::control::words::{ENTRY_WORDS, Shared, Slot, mix};
use crate::error::{Result, overwritten};

/// Checksums of the tasks and pages of a worker in a round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sums {
    pub tasks: u64,
    pub pages: u64,
}

impl Sums {
    pub fn add_task(&mut self, task: usize) {
        self.tasks = self.tasks.wrapping_add(mix(task as u64));
    }

    /// Adds the page with this serial number among those of its producer.
    pub fn add_page(&mut self, producer: usize, serial: u32) {
        self.pages = self.pages.wrapping_add(mix((producer as u64) << 32 | u64::from(serial)));
    }
}

impl Shared<'_> {
    fn entry(&self, slot: usize, epoch: u64) -> &[AtomicU64] {
        &self.slot_words(slot)[Slot::Ledger as usize + (epoch % 2) as usize * ENTRY_WORDS..][..ENTRY_WORDS]
    }

    /// Stores the sums of `round`, up to `epoch`. For the worker itself, before it commits the epoch: PAIRS WITH
    /// `CommitWord::committed`.
    pub fn enter(&self, slot: usize, epoch: u64, round: u32, sums: Sums) {
        for (word, value) in self.entry(slot, epoch).iter().zip([epoch, u64::from(round), sums.tasks, sums.pages]) {
            word.store(value, Ordering::Relaxed);
        }
    }

    /// Returns the sums of all workers in `round`, in which all tasks are committed.
    ///
    /// # Errors
    /// A worker has committed an epoch that it has not entered.
    pub fn entered(&self, round: u32) -> Result<Sums> {
        let mut all = Sums::default();
        // The words of a slot without a worker are zeros, in memory that nobody has touched.
        for slot in (1..self.slots_born()).filter(|slot| self.pages.is_claimed(*slot)) {
            let committed = self.commit(slot).committed();
            let [epoch, of, tasks, pages] =
                std::array::from_fn(|at| self.entry(slot, committed)[at].load(Ordering::Relaxed));
            if epoch != committed {
                return Err(overwritten(Some(slot), "it has committed an epoch that it has not mapped"));
            }
            if of == u64::from(round) {
                all.tasks = all.tasks.wrapping_add(tasks);
                all.pages = all.pages.wrapping_add(pages);
            }
        }
        Ok(all)
    }

    /// Stores the sum of the pages that a reducer has received in `round`. For the worker itself, before it is
    /// drained: PAIRS WITH `is_drained`.
    pub fn set_received(&self, slot: usize, round: u32, pages: u64) {
        self.slot(slot, Slot::ReceivedRound).store(u64::from(round) + 1, Ordering::Relaxed);
        self.slot(slot, Slot::Received).store(pages, Ordering::Relaxed);
    }

    /// Returns the sum of the pages that a reducer has received in `round`.
    pub fn received(&self, slot: usize, round: u32) -> u64 {
        if !self.pages.is_claimed(slot) {
            return 0;
        }
        let of = self.slot(slot, Slot::ReceivedRound).load(Ordering::Relaxed);
        if of == u64::from(round) + 1 { self.slot(slot, Slot::Received).load(Ordering::Relaxed) } else { 0 }
    }
}
