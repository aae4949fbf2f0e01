//! Combine before data moves: a table small enough for the cache.
//!
//! A pair is combined into the table; when the table is full, its entries are appended to the pages of
//! their partitions and it starts again, empty. Frequent keys are combined many times between two
//! flushes; rare ones cost one append more than in an array buffer.

use crate::counters::{Count, Phase};
use crate::datum::{Combine, Key};
use crate::entry::short_hash;
use crate::exchange::Lane;
use crate::map_reduce::{Emit, MapReduce};
use crate::partition::Partitioner;
use crate::table::Table;

/// When the table counts as full.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fill {
    pub keys: usize,
    pub entry_bytes: usize,
}

pub(crate) struct HashBuffer<'l, 'r, J: MapReduce> {
    lane: &'l mut Lane<'r, J>,
    table: &'l mut Table<J::Key, J::Value>,
    partitioner: Partitioner,
    combine: Combine<J::Value>,
    fill: Fill,
    emitted: u64,
}

impl<'l, 'r, J: MapReduce> HashBuffer<'l, 'r, J> {
    pub fn new(
        lane: &'l mut Lane<'r, J>,
        table: &'l mut Table<J::Key, J::Value>,
        partitioner: Partitioner,
        combine: Combine<J::Value>,
        fill: Fill,
    ) -> Self {
        HashBuffer { lane, table, partitioner, combine, fill, emitted: 0 }
    }

    /// Appends all entries to their partitions' pages and empties the table.
    #[cold]
    #[inline(never)]
    pub fn flush(&mut self) {
        let before = self.lane.meter.enter(Phase::Combine);
        self.lane.meter.add(Count::Flushes, 1);
        let (lane, partitioner) = (&mut *self.lane, self.partitioner);
        self.table.for_each(|hash, key, value| {
            lane.append::<J::Key, J::Value>(partitioner.of(hash), hash, key, value);
        });
        self.table.clear();
        self.lane.meter.enter(before);
    }
}

impl<J: MapReduce> Emit<J::Key, J::Value> for HashBuffer<'_, '_, J> {
    #[inline(always)]
    fn emit(&mut self, key: <J::Key as crate::Datum>::Ref<'_>, value: <J::Value as crate::Datum>::Ref<'_>) {
        let hash = short_hash(J::Key::hash(key));
        self.emitted += 1;
        self.table.merge(hash, key, value, self.combine);
        if self.table.len() >= self.fill.keys || self.table.entry_bytes() >= self.fill.entry_bytes {
            self.flush();
        }
    }
}

impl<J: MapReduce> Drop for HashBuffer<'_, '_, J> {
    fn drop(&mut self) {
        self.lane.meter.add(Count::PairsEmitted, self.emitted);
    }
}
