//! The partitions of one reduce worker, from the first page to the last.
//!
//! While map is still running, pairs are gathered by partition and combined from time to time, or kept if values do not
//! combine. Pairs that exceed the worker's share of memory are spilled as a sorted run (`sorter`). When all pairs have
//! arrived, `delivery` makes the result from them.

use std::rc::Rc;

use crate::control::counters::{Count, Counters};
use crate::data::order::Order;
use crate::data::seed::Seed;
use crate::failure::Failure;
use crate::gather::combined::Scratch;
use crate::gather::heavy_keys::Skew;
use crate::gather::store::{RowChunk, Store};
use crate::program::ending::Program;
use crate::program::map_reduce::{MapReduce, combiner};
use crate::spill::reduce_memory::ReduceMemory;
use crate::spill::sorter::Sorter;
use crate::spill::spill_file::Spill;
use crate::spill::values::Combine;

/// All partitions of one reduce worker; those that it does not own stay empty.
pub(crate) struct Reduction<'r, J: Program> {
    pub program: &'r J::User,
    pub sorter: Sorter<'r, J::Key, J::Value>,
    scratch: Scratch,
    /// Detects keys with too many values, if the job asks for that.
    skew: Option<Skew>,
}

impl<'r, J: Program> Reduction<'r, J> {
    /// Makes a reduction that combines pairs as they come, or keeps them, depending on `store`, which must be empty.
    /// Runs are in `order` and hold at most `limit` pairs; pairs to be grouped by key need key order and no limit.
    pub fn new(
        program: &'r J::User,
        store: Store<J::Key, J::Value>,
        order: Order,
        limit: usize,
        room: ReduceMemory,
        spill: Rc<Spill>,
        seed: &Seed,
    ) -> Self {
        let combine = matches!(store, Store::Gathered(_)).then(|| erased_combiner(program));
        let sorter = Sorter::new(store, order, limit, combine, room, spill);
        Reduction { program, sorter, scratch: Scratch::new(seed), skew: None }
    }

    /// Starts to watch for a key with more than `after` values, unless pairs are combined as they come.
    pub fn watch_for_skew(&mut self, after: Option<u32>) {
        self.skew = after.filter(|_| !self.combines()).map(|after| Skew::new(after, self.scratch.seed()));
    }

    /// Returns whether the kept pairs should be combined now because one key has too many.
    #[inline]
    pub fn is_skewed(&self) -> bool {
        self.skew.as_ref().is_some_and(Skew::is_found)
    }

    /// Adds the `pairs` pairs of one page.
    pub fn take(&mut self, partition: usize, pairs: u32, body: &[u8]) {
        match &mut self.sorter.store {
            Store::Gathered(partitions) => {
                let gathered = partitions.of(partition);
                self.sorter.held_bytes -= Store::gathered_bytes(gathered);
                gathered.take(pairs as usize, body, &mut self.scratch, combiner(self.program));
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

    /// Combines the waiting pairs.
    pub fn combine(&mut self) {
        if let Store::Gathered(partitions) = &mut self.sorter.store {
            for gathered in partitions.list.iter_mut() {
                gathered.combine(&mut self.scratch, combiner(self.program));
            }
            self.sorter.held_bytes = self.sorter.store.bytes();
        }
    }

    /// Makes room: combines the waiting pairs, and spills if that is not enough.
    pub fn make_room(&mut self) -> Result<(), Failure> {
        self.combine();
        self.scratch.trim();
        match self.is_nearly_full() || self.sorter.is_crowded {
            false => Ok(()),
            true => self.sorter.spill(),
        }
    }

    /// Returns whether a spill is needed before more pairs are added.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.sorter.is_full()
    }

    /// Returns whether a spill would be worthwhile.
    pub fn is_nearly_full(&self) -> bool {
        self.sorter.held_bytes > self.sorter.room.nearly_full_bytes()
    }

    /// Records how much memory the pairs take.
    pub fn count_memory(&self, counters: &mut Counters) {
        let now = self.sorter.held_bytes as u64;
        counters.set(Count::MemoryNow, now);
        counters.set(Count::MemoryPeak, now.max(counters.get(Count::MemoryPeak)));
    }

    /// Returns whether it combines pairs as they come.
    pub fn combines(&self) -> bool {
        matches!(self.sorter.store, Store::Gathered(_))
    }

    /// Combines the pairs kept so far, and from now on those that arrive. Spilled pairs are combined when they are
    /// merged.
    pub fn begin_to_combine(&mut self) -> Result<(), Failure> {
        self.skew = None;
        self.sorter.combine = Some(erased_combiner(self.program));
        let gathered = Store::gathered(self.sorter.store.partitions());
        let Store::Pile(pile) = std::mem::replace(&mut self.sorter.store, gathered) else {
            unreachable!("what was gathered is combined already")
        };
        let pairs_bytes = self.sorter.room.pairs_bytes;
        let mut left_bytes = std::mem::take(&mut self.sorter.held_bytes);
        for RowChunk { partition, pairs, bytes } in pile.into_chunks() {
            self.take(partition, pairs as u32, &bytes);
            // Pairs that were taken over free the memory of their chunk.
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

/// Returns the combiner of a program, for code that is not worth an instance for each program.
pub(crate) fn erased_combiner<J: MapReduce>(program: &J) -> Rc<Combine<'_, J::Value>> {
    Rc::new(combiner(program))
}
