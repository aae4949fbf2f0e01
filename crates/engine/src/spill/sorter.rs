//! External sorting: any number of pairs within a share of memory.
//!
//! ```text
//!  1. Gather pairs in a store. If all of them fit: sort them, done.
//!  2. If the store is full: sort it, write a run, and continue with an empty store.
//!  3. Merge the runs and the pairs in memory. If there are too many runs for one merge, first merge the oldest.
//! ```
//!
//! Equal keys are combined wherever they meet, if the job combines pairs as they arrive.
//!
//! A job in steps keeps its pairs by partition. Its sorter writes a run for each partition, and each is merged alone.

use std::collections::{BTreeMap, VecDeque};
use std::ops::ControlFlow;
use std::rc::Rc;

use crate::data::datum::{Datum, Key};
use crate::data::order::Order;
use crate::failure::Failure;
use crate::gather::store::{Pile, ROWS_AHEAD, Store};
use crate::spill::merge::{Merge, Sorted, go_on};
use crate::spill::reduce_memory::ReduceMemory;
use crate::spill::run::{Run, RunWriter};
use crate::spill::spill_file::Spill;
use crate::spill::values::{Combine, for_each_key};

pub(crate) struct Sorter<'c, K: Key, V: Datum> {
    pub store: Store<K, V>,
    /// The size of `store`, maintained by the code that fills it.
    pub held_bytes: usize,
    /// Whether a partition nears the limit of what places can address.
    pub is_crowded: bool,
    order: Order,
    /// The number of pairs wanted, from the first on.
    limit: usize,
    /// Combines equal keys when runs are merged; the runs are then in key order.
    pub combine: Option<Rc<Combine<'c, V>>>,
    pub room: ReduceMemory,
    pub spill: Rc<Spill>,
    runs: VecDeque<Run>,
    /// The runs of each partition instead, if partitions are sorted alone.
    runs_of: Option<BTreeMap<usize, VecDeque<Run>>>,
    /// The number of pairs in the store at each spill, summed up.
    spilled_pairs: u64,
}

impl<'c, K: Key, V: Datum> Sorter<'c, K, V> {
    pub fn new(
        store: Store<K, V>,
        order: Order,
        limit: usize,
        combine: Option<Rc<Combine<'c, V>>>,
        room: ReduceMemory,
        spill: Rc<Spill>,
    ) -> Self {
        let (runs, runs_of) = (VecDeque::new(), None);
        let (held_bytes, is_crowded, spilled_pairs) = (0, false, 0);
        Sorter { store, held_bytes, is_crowded, order, limit, combine, room, spill, runs, runs_of, spilled_pairs }
    }

    /// Sorts each partition alone: see [`Sorter::take_partition`].
    pub fn by_partition(&mut self) {
        self.runs_of = Some(BTreeMap::new());
    }

    /// Takes out the pairs of one partition, in memory and on disk: a sorter for them alone.
    pub fn take_partition(&mut self, partition: usize) -> Sorter<'c, K, V> {
        let runs = self.runs_of.as_mut().and_then(|runs_of| runs_of.remove(&partition));
        Sorter { runs: runs.unwrap_or_default(), ..self.take_store(partition) }
    }

    /// Takes out the pairs of one partition that are in memory.
    fn take_store(&mut self, partition: usize) -> Sorter<'c, K, V> {
        let store = self.store.take(partition);
        Sorter::new(store, self.order, self.limit, self.combine.clone(), self.room, self.spill.clone())
    }

    /// Makes a sorter that is filled pair by pair.
    pub fn of_pairs(order: Order, limit: usize, room: ReduceMemory, spill: Rc<Spill>) -> Self {
        Sorter::new(Store::Pile(Pile::new(1)), order, limit, None, room, spill)
    }

    /// Returns whether anything was spilled.
    pub fn has_runs(&self) -> bool {
        !self.runs.is_empty() || self.runs_of.as_ref().is_some_and(|runs_of| !runs_of.is_empty())
    }

    /// Returns the number of pairs taken so far. A combined key counts once for each run that contains it.
    pub fn pairs(&self) -> u64 {
        self.spilled_pairs + self.store.len() as u64
    }

    /// Returns whether the store has outgrown its share.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.held_bytes > self.room.pairs_bytes || self.is_crowded
    }

    /// Adds one pair.
    pub fn push(&mut self, key: K::Ref<'_>, value: V::Ref<'_>) -> Result<(), Failure> {
        let Store::Pile(pile) = &mut self.store else { unreachable!("a sorter of pairs piles them up") };
        pile.push(0, key, value);
        self.held_bytes = pile.bytes();
        if self.is_full() { self.make_room() } else { Ok(()) }
    }

    /// Drops pairs beyond the limit; spills if that is not enough.
    fn make_room(&mut self) -> Result<(), Failure> {
        if self.limit < self.store.len() / 2 {
            let mut kept = Pile::new(1);
            let all = self.store.parts().swap_remove(0);
            for row in self.store.rows(all, self.order, self.limit) {
                let (key, value) = self.store.pair(row);
                kept.push(0, key, value);
            }
            self.held_bytes = kept.bytes();
            self.store = Store::Pile(kept);
        }
        if self.held_bytes > self.room.pairs_bytes / 2 { self.spill() } else { Ok(()) }
    }

    /// Adds a run that was written earlier, in the order of this sorter.
    pub fn adopt(&mut self, run: Run) {
        self.runs.push_back(run);
    }

    /// Writes everything in the store as one run, or as one run for each partition.
    pub fn spill(&mut self) -> Result<(), Failure> {
        self.spilled_pairs += self.store.len() as u64;
        match self.runs_of {
            None => {
                let run = self.write_store()?;
                self.runs.push_back(run);
            }
            Some(_) => {
                for partition in 0..self.store.partitions() {
                    let mut taken = self.take_store(partition);
                    if taken.store.len() > 0 {
                        let run = taken.write_store()?;
                        let runs_of = self.runs_of.as_mut().expect("partitions are sorted alone");
                        runs_of.entry(partition).or_default().push_back(run);
                    }
                }
            }
        }
        self.spill.count_run();
        self.clear();
        Ok(())
    }

    /// Writes everything in the store as one run.
    fn write_store(&mut self) -> Result<Run, Failure> {
        let mut writer = RunWriter::new(&self.spill, self.room.block_bytes);
        for part in self.store.parts() {
            let rows = self.store.rows(part, self.order, self.limit);
            for (number, row) in rows.iter().enumerate() {
                // Rows are in order, but their pairs are scattered.
                if let Some(ahead) = rows.get(number + ROWS_AHEAD) {
                    self.store.prefetch(*ahead);
                }
                writer.push_entry(self.store.entry(*row))?;
            }
        }
        writer.finish()
    }

    /// Removes all pairs from the store.
    pub fn clear(&mut self) {
        self.store.clear();
        (self.held_bytes, self.is_crowded) = (self.store.bytes(), false);
    }

    /// Merges runs until the remaining ones and the pairs in memory can be merged at once.
    pub fn merge_runs(&mut self) -> Result<(), Failure> {
        // The block of one long pair is larger than others, and each run has one block in memory.
        let block_bytes = self.runs.iter().map(Run::block_bytes_max).max().unwrap_or(0);
        let blocks_bytes = 2 * self.room.block_bytes * self.room.streams_max;
        let streams = blocks_bytes / block_bytes.max(2 * self.room.block_bytes);
        let at_once = streams.clamp(3, self.room.streams_max) - 1;
        while self.runs.len() > at_once {
            // The first merge takes just enough runs that all later merges are full.
            let surplus = (self.runs.len() - 2) % (at_once - 1) + 2;
            let oldest: Vec<Run> = self.runs.drain(..surplus).collect();
            self.spill.count_merged(oldest.len());
            let merge = Merge::<K, V>::new(self.order, &self.spill, oldest, None)?;
            let mut writer = RunWriter::new(&self.spill, self.room.block_bytes);
            if let Some(combine) = &self.combine {
                for_each_key(merge, Some(&**combine), &mut |key, values| {
                    go_on(writer.push::<K, V>(key, values.next().expect("a key has a value")))
                })?;
            } else {
                let mut left = self.limit;
                merge.for_each(&mut |key, value| {
                    if left == 0 {
                        return ControlFlow::Break(Ok(()));
                    }
                    left -= 1;
                    go_on(writer.push::<K, V>(key, value))
                })?;
            }
            self.runs.push_back(writer.finish()?);
        }
        Ok(())
    }

    /// Returns the sorted stream. If nothing was spilled, `order` may differ from the sorter's.
    pub fn into_merge(mut self, order: Order, limit: usize) -> Result<Merge<K, V>, Failure> {
        self.merge_runs()?;
        assert!(self.runs.is_empty() || order == self.order, "runs have one order");
        let memory = Sorted::new(self.store, order, limit);
        Merge::new(order, &self.spill, self.runs, memory.pair().is_some().then_some(memory))
    }
}
