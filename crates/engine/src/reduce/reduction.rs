//! The partitions of one reduce worker, from the first page to the last.
//!
//! While map still runs, pairs are gathered by partition and combined when there are enough (or kept, when values do not
//! combine). What outgrows the worker's share of memory is spilled as a sorted run (`sorter`). When all has arrived,
//! `delivery` makes the result of it.

use std::rc::Rc;

use crate::control::counters::{Count, Counters};
use crate::data::order::Order;
use crate::data::seed::Seed;
use crate::failure::Failure;
use crate::gather::combined::Scratch;
use crate::gather::heavy_keys::Skew;
use crate::gather::store::{Chunk, Store};
use crate::program::map_reduce::{MapReduce, combiner};
use crate::spill::reduce_memory::ReduceMemory;
use crate::spill::sorter::Sorter;
use crate::spill::spill_file::Spill;

/// All partitions of one reduce worker; those it does not own stay empty.
pub(crate) struct Reduction<J: MapReduce> {
    pub sorter: Sorter<J::Key, J::Value>,
    scratch: Scratch,
    /// Watches what is kept, if somebody wants to know of keys with too many values.
    skew: Option<Skew>,
}

impl<J: MapReduce> Reduction<J> {
    /// Combines pairs as they come, or keeps them, as `store` does, which is empty. Runs are in `order`, and hold `limit` pairs at most; what will be
    /// grouped by key wants the order of keys, and no limit.
    pub fn new(
        store: Store<J::Key, J::Value>,
        order: Order,
        limit: usize,
        room: ReduceMemory,
        spill: Rc<Spill>,
        seed: &Seed,
    ) -> Self {
        let combine = matches!(store, Store::Gathered(_)).then_some(const { combiner::<J>() });
        let sorter = Sorter::new(store, order, limit, combine, room, spill);
        Reduction { sorter, scratch: Scratch::new(seed), skew: None }
    }

    /// Notices, from now on, when one key has gathered more than `after` values, unless they are combined as they come.
    pub fn watch_for_skew(&mut self, after: Option<u32>) {
        self.skew = after.filter(|_| !self.combines()).map(|after| Skew::new(after, self.scratch.seed()));
    }

    /// True when what is kept should be combined now: it is full of one key.
    #[inline]
    pub fn is_skewed(&self) -> bool {
        self.skew.as_ref().is_some_and(Skew::is_found)
    }

    /// Takes the pairs of one page, so many of them.
    pub fn take(&mut self, partition: usize, pairs: u32, body: &[u8]) {
        match &mut self.sorter.store {
            Store::Gathered(partitions) => {
                let gathered = &mut partitions[partition];
                self.sorter.held_bytes -= Store::gathered_bytes(gathered);
                gathered.take(pairs as usize, body, &mut self.scratch, const { combiner::<J>() });
                self.sorter.held_bytes += Store::gathered_bytes(gathered);
                self.sorter.is_crowded |= gathered.is_crowded();
            }
            Store::Pile(pile) => {
                if let Some(skew) = &mut self.skew {
                    skew.count::<J::Key, J::Value>(body);
                }
                pile.append(partition, pairs, body);
                self.sorter.held_bytes = pile.bytes();
            }
        }
    }

    /// Combines what still waits.
    pub fn combine(&mut self) {
        if let Store::Gathered(partitions) = &mut self.sorter.store {
            for gathered in partitions {
                gathered.combine(&mut self.scratch, const { combiner::<J>() });
            }
            self.sorter.held_bytes = self.sorter.store.bytes();
        }
    }

    /// Makes room for more: combines what waits, and spills if that was not enough; in a job in steps that is the end.
    pub fn make_room(&mut self) -> Result<(), Failure> {
        self.combine();
        self.scratch.trim();
        match self.is_nearly_full() || self.sorter.is_crowded {
            false => Ok(()),
            true if self.sorter.room.spills => self.sorter.spill(),
            true => Err(Failure::StepFull),
        }
    }

    /// True when something must be spilled before more is taken.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.sorter.is_full()
    }

    /// True when it would be worth it to spill.
    pub fn is_nearly_full(&self) -> bool {
        self.sorter.held_bytes > self.sorter.room.nearly_full_bytes()
    }

    /// Notes how much memory pairs take.
    pub fn count_memory(&self, counters: &mut Counters) {
        let now = self.sorter.held_bytes as u64;
        counters.set(Count::MemoryNow, now);
        counters.set(Count::MemoryPeak, now.max(counters.get(Count::MemoryPeak)));
    }

    /// True when it combines pairs as they come.
    pub fn combines(&self) -> bool {
        matches!(self.sorter.store, Store::Gathered(_))
    }

    /// Combines what was kept until now, and what comes from now on. What was spilled is combined when it is merged.
    pub fn begin_to_combine(&mut self) -> Result<(), Failure> {
        self.skew = None;
        self.sorter.combine = Some(const { combiner::<J>() });
        let gathered = Store::gathered(self.sorter.store.partitions());
        let Store::Pile(pile) = std::mem::replace(&mut self.sorter.store, gathered) else {
            unreachable!("what was gathered is combined already")
        };
        let pairs_bytes = self.sorter.room.pairs_bytes;
        let mut left_bytes = std::mem::take(&mut self.sorter.held_bytes);
        for Chunk { partition, pairs, bytes } in pile.into_chunks() {
            self.take(partition, pairs as u32, &bytes);
            // What has been taken gives its memory to what is gathered.
            left_bytes = left_bytes.saturating_sub(bytes.len());
            drop(bytes);
            if self.sorter.held_bytes + left_bytes > pairs_bytes + pairs_bytes / 4 {
                self.make_room()?;
            }
        }
        self.combine();
        Ok(())
    }
}
