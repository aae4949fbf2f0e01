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
        self.received_words(slot).set(round, pages);
    }

    /// Returns the sum of the pages that a reducer has received in `round`.
    pub fn received(&self, slot: usize, round: u32) -> u64 {
        if self.pages.is_claimed(slot) { self.received_words(slot).of(round) } else { 0 }
    }

    fn received_words(&self, slot: usize) -> OfRound<'_> {
        OfRound { round: self.slot(slot, Slot::ReceivedRound), sum: self.slot(slot, Slot::Received) }
    }
}

/// A sum, and the round that it is of: a word each.
///
/// The coordinator does not wait for a reducer that gets no pages in a round that repeats others, so it may read while
/// the reducer writes. The sum of the round before would look like pages that were lost. So a sum is stored before its
/// round.
struct OfRound<'w> {
    /// The round + 1.
    round: &'w AtomicU64,
    sum: &'w AtomicU64,
}

impl OfRound<'_> {
    fn set(&self, round: u32, sum: u64) {
        self.sum.store(sum, Ordering::Relaxed);
        // PAIRS WITH the load in `of`.
        self.round.store(u64::from(round) + 1, Ordering::Release);
    }

    /// Returns the sum of this round; 0 if it is of another.
    fn of(&self, round: u32) -> u64 {
        if self.round.load(Ordering::Acquire) == u64::from(round) + 1 { self.sum.load(Ordering::Relaxed) } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU32;

    use super::*;

    /// A job ended with "pages that were sent were not received" after a reducer had died, once in thousands of deaths.
    #[test]
    fn the_sum_of_the_round_before_is_never_taken_for_that_of_this_round() {
        const ROUNDS: u32 = 200_000;
        let words = [AtomicU64::new(0), AtomicU64::new(0)];
        let received = || OfRound { round: &words[0], sum: &words[1] };
        let sum_of = |round: u32| mix(u64::from(round)) | 1;
        let (opened, drained) = (AtomicU32::new(0), AtomicU32::new(0));
        // A panic would leave the other thread waiting.
        let mut wrong = None;
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for round in 0..ROUNDS {
                    while opened.load(Ordering::Acquire) != round + 1 {
                        std::hint::spin_loop();
                    }
                    received().set(round, sum_of(round));
                    drained.store(round + 1, Ordering::Release);
                }
            });
            for round in 0..ROUNDS {
                opened.store(round + 1, Ordering::Release);
                while drained.load(Ordering::Acquire) != round + 1 {
                    let sum = received().of(round);
                    if sum != 0 && sum != sum_of(round) {
                        wrong = Some((round, sum));
                    }
                }
                if received().of(round) != sum_of(round) {
                    wrong = Some((round, 0));
                }
            }
        });
        assert_eq!(wrong, None);
    }
}
