//! Combine before data moves: a table small enough for the cache.
//!
//! Pairs are gathered in a short queue and combined into the table a queue at a time, so that the slots of
//! all of them are on their way from the cache at once. A full table is emptied into the pages of its
//! partitions and starts again: frequent keys are combined many times in between, rare ones cost one append
//! more than in an array buffer, and neither table nor cost per pair grows with the number of keys.

use std::ops::Range;

use crate::buffer::slots::{Slot, Slots};
use crate::counters::{Count, Phase};
use crate::datum::{Datum, Key, Short};
use crate::exchange::Lane;
use crate::map_reduce::{Emit, MapReduce, combiner};
use crate::partition::Partitioner;

/// Pairs in the queue.
const QUEUE: usize = 64;

/// What the buffer keeps from task to task.
pub(crate) struct HashTable<K: Key, V: Datum> {
    slots: Slots<K, V>,
    queue: [Slot<V::Owned>; QUEUE],
    queued: usize,
}

impl<K: Key, V: Datum> HashTable<K, V> {
    pub fn new() -> Self {
        let queue = std::array::from_fn(|_| Slot::default());
        HashTable { slots: Slots::new(), queue, queued: 0 }
    }
}

pub(crate) struct HashBuffer<'l, 'r, J: MapReduce> {
    lane: &'l mut Lane<'r, J>,
    table: &'l mut HashTable<J::Key, J::Value>,
    partitioner: Partitioner,
    emitted: u64,
}

impl<'l, 'r, J: MapReduce> HashBuffer<'l, 'r, J> {
    pub fn new(
        lane: &'l mut Lane<'r, J>,
        table: &'l mut HashTable<J::Key, J::Value>,
        partitioner: Partitioner,
    ) -> Self {
        HashBuffer { lane, table, partitioner, emitted: 0 }
    }

    #[inline(always)]
    fn queue(&mut self, key: Short, value: <J::Value as Datum>::Ref<'_>) {
        let table = &mut *self.table;
        let pair = Slot::short(key, J::Value::own(value));
        table.slots.prefetch(&pair);
        // `queued` stays below QUEUE; the remainder tells the compiler so.
        table.queue[table.queued % QUEUE] = pair;
        table.queued += 1;
        if table.queued == QUEUE {
            self.combine_queue();
        }
    }

    /// Combines what is queued into the table.
    #[inline(never)]
    fn combine_queue(&mut self) {
        if !self.table.slots.has_room(QUEUE) {
            self.empty_table();
        }
        let HashTable { slots, queue, queued } = &mut *self.table;
        for pair in &queue[..*queued] {
            slots.merge_short(pair, const { combiner::<J>() });
        }
        self.emitted += *queued as u64;
        *queued = 0;
    }

    #[cold]
    fn empty_table(&mut self) {
        let before = self.lane.meter.enter(Phase::Combine);
        self.lane.meter.add(Count::Flushes, 1);
        let (lane, partitioner) = (std::cell::RefCell::new(&mut *self.lane), self.partitioner);
        self.table.slots.empty(
            |hash, key, value| {
                let bytes = key.bytes();
                let partition = partitioner.of::<J>(hash, J::Key::read(&bytes[..key.len as usize]));
                lane.borrow_mut().append_short::<J::Key, J::Value>(partition, hash, key, value);
            },
            |hash, key, value| {
                let partition = partitioner.of::<J>(hash, key);
                lane.borrow_mut().append::<J::Key, J::Value>(partition, hash, key, value);
            },
        );
        self.lane.meter.enter(before);
    }

    /// Appends everything to the pages of its partitions.
    pub fn flush(&mut self) {
        self.combine_queue();
        self.empty_table();
    }
}

impl<J: MapReduce> Emit<J::Key, J::Value> for HashBuffer<'_, '_, J> {
    #[inline(always)]
    fn emit(&mut self, key: <J::Key as Datum>::Ref<'_>, value: <J::Value as Datum>::Ref<'_>) {
        match J::Key::short(key) {
            Some(short) => self.queue(short, value),
            None => {
                if !self.table.slots.has_room(1) {
                    self.empty_table();
                }
                self.emitted += 1;
                self.table.slots.merge_long(key, value, const { combiner::<J>() });
            }
        }
    }

    #[inline(always)]
    fn emit_within(&mut self, text: &[u8], range: Range<usize>, value: <J::Value as Datum>::Ref<'_>) {
        match Short::within(text, range.clone()) {
            Some(short) => self.queue(short, value),
            None => self.emit(J::Key::read(&text[range]), value),
        }
    }
}

impl<J: MapReduce> Drop for HashBuffer<'_, '_, J> {
    fn drop(&mut self) {
        self.lane.meter.add(Count::PairsEmitted, self.emitted);
    }
}
