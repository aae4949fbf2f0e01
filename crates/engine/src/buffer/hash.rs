//! The hash buffer, which combines pairs before they are sent, in a table small enough for the cache.
//!
//! Pairs are gathered in a short queue and combined into the table one queue at a time, so that the slots of all of
//! them are fetched from the cache at once. A full table is emptied into the pages of its partitions and starts again.
//! Frequent keys are combined many times in between, rare ones cost one append more than in an array buffer, and
//! neither the table nor the cost per pair grows with the number of keys. Pairs with long keys, or with values of
//! variable width, bypass the queue.
//!
//! If keys hardly repeat, the table is wasted work. If the plan allows it, pairs then bypass the table (whole tasks
//! even bypass the queue), and the table is tried again later ([`TableTrial`]).

use crate::buffer::map_buffer::MapBuffer;
use crate::buffer::slots::{KEYS_MAX, LONG_BYTES_MAX, Slots, Stored, TableSlot};
use crate::buffer::value_bytes::Measure;
use crate::control::counters::{Count, Phase};
use crate::data::datum::{Datum, Key};
use crate::data::digest::{Digest, weight};
use crate::data::entry::{self, short_hash};
use crate::data::key;
use crate::data::seed::Seed;
use crate::data::short::Short;
use crate::exchange::lane::Lane;
use crate::program::aggregate::{self, Aggregate, ItemOf};
use crate::program::ending::Program;
use crate::program::map_reduce::{Emit, combiner};
use crate::program::partition::Partitioner;

/// The number of pairs in the queue.
const QUEUE: usize = 64;
/// The number of keys below which the slots are in a near cache anyway, and single pairs bypass the queue: a sum by
/// 1,000 keys takes 0.86 of the time.
const FEW_KEYS: usize = 4096;

/// The state that the buffer keeps from task to task.
pub(crate) struct HashTable<K: Key, V: Datum> {
    slots: Slots<K, V>,
    queue: [TableSlot<V::Owned>; QUEUE],
    queued: usize,
    trial: TableTrial,
}

impl<K: Key, V: Datum> HashTable<K, V> {
    /// The maximal size of a table.
    pub const BYTES: usize = Slots::<K, V>::BYTES + size_of::<HashTable<K, V>>();

    /// Makes an empty table, which may rest while it combines little. If the job `iterates`, the table begins with a
    /// rest: first steps are often tiny, and emptying a table of a few keys takes as long as the rest of the step.
    pub fn new(may_rest: bool, iterates: bool) -> Self {
        let queue = std::array::from_fn(|_| TableSlot::default());
        let rest = if may_rest && iterates { KEYS_MAX as u64 / 8 } else { 0 };
        HashTable { slots: Slots::new(), queue, queued: 0, trial: TableTrial { rest, ..TableTrial::new(may_rest) } }
    }

    /// Returns whether pairs bypass the table for now. A task may then use another buffer, if it reports its pairs to
    /// [`HashTable::passed`].
    pub fn rests(&self) -> bool {
        self.trial.rests()
    }

    /// Returns whether the table has few keys and is not resting.
    #[inline(always)]
    fn has_few(&self) -> bool {
        self.slots.len() < FEW_KEYS && !self.trial.rests()
    }

    /// Records that `pairs` pairs bypassed the table.
    pub fn passed(&mut self, pairs: u64) {
        self.trial.passed(pairs);
    }
}

/// Judges, each time the table is emptied, whether the table is worth its work.
///
/// The table rests if it combined fewer than 1.4 pairs into one. At that ratio, measurements show, a pair costs as much
/// with the table as without (mixtures of new keys and a few old ones, two workers; with one old key in ten a pair
/// costs 17 % more with the table, with five in ten 10 % less). The length of a rest is a multiple of the trial before
/// it. The multiple doubles with each rest in a row, so that trials cost little; a successful trial ends the rests.
struct TableTrial {
    may_rest: bool,
    /// The number of pairs that will bypass the table before it is tried again.
    rest: u64,
    next_multiple: u64,
    /// The number of pairs combined since the table was empty.
    combined: u64,
}

impl TableTrial {
    const MULTIPLE_MIN: u64 = 8;
    const MULTIPLE_MAX: u64 = 32 * TableTrial::MULTIPLE_MIN;

    fn new(may_rest: bool) -> TableTrial {
        TableTrial { may_rest, rest: 0, next_multiple: TableTrial::MULTIPLE_MIN, combined: 0 }
    }

    /// Judges a table with `keys` keys that is about to be emptied.
    fn judge(&mut self, keys: usize) {
        let combined = std::mem::take(&mut self.combined);
        if combined == 0 {
            return;
        }
        if self.may_rest && combined * 5 < keys as u64 * 7 {
            self.rest = self.next_multiple * combined;
            self.next_multiple = (self.next_multiple * 2).min(TableTrial::MULTIPLE_MAX);
        } else {
            self.next_multiple = TableTrial::MULTIPLE_MIN;
        }
    }

    /// Returns whether the next pairs bypass the table.
    fn rests(&self) -> bool {
        self.rest > 0
    }

    fn passed(&mut self, pairs: u64) {
        self.rest = self.rest.saturating_sub(pairs);
    }
}

pub(crate) struct HashBuffer<'l, 'r, J: Program> {
    program: &'r J::User,
    lane: &'l mut Lane<'r, J>,
    table: &'l mut HashTable<J::Key, J::Value>,
    partitioner: Partitioner,
    seed: &'r Seed,
    digest: Digest,
}

impl<'l, 'r, J: Program> HashBuffer<'l, 'r, J> {
    pub fn new(
        lane: &'l mut Lane<'r, J>,
        table: &'l mut HashTable<J::Key, J::Value>,
        partitioner: Partitioner,
    ) -> Self {
        let seed = lane.seed;
        HashBuffer { program: lane.program, lane, table, partitioner, seed, digest: Digest::default() }
    }

    #[inline(always)]
    fn queue(&mut self, key: Short, value: <J::Value as Datum>::Ref<'_>) {
        let hash = self.seed.hash(key);
        self.digest.add::<J::Value>(hash, value, self.seed);
        // A full queue is not combined at once, because `emit_each` may leave it full.
        if self.table.queued == QUEUE {
            self.combine_queue();
        }
        let table = &mut *self.table;
        let pair = TableSlot::short(key, hash, J::Value::own(value));
        table.slots.prefetch(&pair);
        // `queued` is below QUEUE; the remainder shows the compiler that.
        table.queue[table.queued % QUEUE] = pair;
        table.queued += 1;
    }

    /// Combines a pair into a table with few keys.
    #[inline(always)]
    fn combine(&mut self, key: Short, value: <J::Value as Datum>::Ref<'_>) {
        let hash = self.seed.hash(key);
        self.digest.add::<J::Value>(hash, value, self.seed);
        let HashTable { slots, trial, .. } = &mut *self.table;
        slots.merge_short(&TableSlot::short(key, hash, J::Value::own(value)), combiner(self.program));
        trial.combined += 1;
    }

    /// Combines the queued pairs into the table, and makes room there for another queue.
    #[inline(never)]
    fn combine_queue(&mut self) {
        let HashTable { slots, queue, queued, trial } = &mut *self.table;
        if trial.rests() {
            trial.passed(*queued as u64);
            self.lane.meter.add(Count::PairsPassed, *queued as u64);
            for pair in &queue[..*queued] {
                let (hash, key, value) = pair.as_short();
                append_short(self.lane, self.partitioner, hash, key, J::Value::lend(value));
            }
        } else {
            trial.combined += *queued as u64;
            for pair in &queue[..*queued] {
                slots.merge_short(pair, combiner(self.program));
            }
        }
        *queued = 0;
        if !slots.has_room(QUEUE) {
            self.empty_table();
        }
    }

    #[cold]
    fn empty_table(&mut self) {
        self.table.trial.judge(self.table.slots.len());
        let before = self.lane.meter.enter(Phase::Combine);
        self.lane.meter.add(Count::Flushes, 1);
        let HashBuffer { lane, table, partitioner, .. } = self;
        table.slots.empty(|hash, key, value| match key {
            Stored::Short(key) => append_short(lane, *partitioner, hash, key, value),
            Stored::Long(key) => {
                lane.contract.look::<J::Key, J::Value>(key, value);
                lane.append::<J::Key, J::Value>(partitioner.of::<J::User>(hash, key), hash, key, value);
            }
        });
        self.lane.meter.enter(before);
    }

    /// Combines a pair that bypasses the queue, or passes it on.
    #[cold]
    #[inline(never)]
    fn emit_one(&mut self, key: <J::Key as Datum>::Ref<'_>, value: <J::Value as Datum>::Ref<'_>) {
        entry::check_width(entry::width::<J::Key, J::Value>(key, value));
        let whole = key::hash::<J::Key>(key, self.seed);
        self.digest.add::<J::Value>(whole, value, self.seed);
        if self.bypasses_table(key) {
            return self.append(whole, key, value);
        }
        let (slots, combine) = (&mut self.table.slots, combiner(self.program));
        match key::short::<J::Key>(key) {
            Some(short) => slots.merge_short(&TableSlot::short(short, whole, J::Value::own(value)), combine),
            None => slots.merge_long(key, whole, value, combine),
        }
    }

    /// Returns whether a pair with this key does not go into the table. If it does, there is room for it.
    #[inline(always)]
    fn bypasses_table(&mut self, key: <J::Key as Datum>::Ref<'_>) -> bool {
        // Copying a key that would fill the table by itself would rarely pay.
        let is_huge = J::Key::WIDTH.is_none() && key::width::<J::Key>(key) >= LONG_BYTES_MAX;
        if is_huge || self.table.rests() {
            self.table.passed(u64::from(!is_huge));
            self.lane.meter.add(Count::PairsPassed, 1);
            return true;
        }
        if !self.table.slots.has_room(1) {
            self.empty_table();
        }
        self.table.trial.combined += 1;
        false
    }

    /// Appends a pair, whose key has the hash `whole`, to the page of its partition.
    #[cold]
    fn append(&mut self, whole: u64, key: <J::Key as Datum>::Ref<'_>, value: <J::Value as Datum>::Ref<'_>) {
        let hash = short_hash(whole);
        let partition = self.partitioner.of::<J::User>(hash, key);
        self.lane.append::<J::Key, J::Value>(partition, hash, key, value);
    }

    /// Appends all pairs to the pages of their partitions.
    pub fn flush(&mut self) {
        self.combine_queue();
        self.empty_table();
    }
}

#[inline(always)]
fn append_short<J: Program>(
    lane: &mut Lane<'_, J>,
    partitioner: Partitioner,
    hash: u32,
    key: Short,
    value: <J::Value as Datum>::Ref<'_>,
) {
    let bytes = key.bytes();
    let read = J::Key::read(&bytes[..key.len as usize]);
    // A combined value, or one to which items were added, has not been seen before.
    lane.contract.look::<J::Key, J::Value>(read, value);
    lane.append_short::<J::Key, J::Value>(partitioner.of::<J::User>(hash, read), hash, key, value);
}

impl<J: Program> Emit<J::Key, J::Value> for HashBuffer<'_, '_, J> {
    #[inline(always)]
    fn emit(&mut self, key: <J::Key as Datum>::Ref<'_>, value: <J::Value as Datum>::Ref<'_>) {
        self.lane.contract.look::<J::Key, J::Value>(key, value);
        if const { J::Value::WIDTH.is_none() } {
            return self.emit_one(key, value);
        }
        match key::short::<J::Key>(key) {
            Some(short) if self.table.has_few() => self.combine(short, value),
            Some(short) => self.queue(short, value),
            None => self.emit_one(key, value),
        }
    }

    #[inline(always)]
    fn add(&mut self, key: <J::Key as Datum>::Ref<'_>, item: <ItemOf<J::Value> as Datum>::Ref<'_>)
    where
        J::Value: Aggregate,
    {
        self.lane.contract.look::<J::Key, ItemOf<J::Value>>(key, item);
        let whole = key::hash::<J::Key>(key, self.seed);
        self.digest.add::<ItemOf<J::Value>>(whole, item, self.seed);
        if self.bypasses_table(key) {
            return self.append(whole, key, J::Value::lend(&aggregate::one::<J::Value>(item)));
        }
        let measure = |is_new| Measure::of_item::<ItemOf<J::Value>>(item, is_new);
        self.table.slots.change(key, whole, measure, |value| J::Value::add(value, item));
    }

    #[inline(always)]
    fn emit_each(&mut self, text: &[u8], places: &[[u32; 2]], value: <J::Value as Datum>::Ref<'_>) {
        if const { !J::Key::TRUSTED.0 || J::Value::WIDTH.is_none() } {
            return places.iter().for_each(|[start, end]| {
                self.emit(J::Key::read(&text[*start as usize..*end as usize]), value);
            });
        }
        let (seed, weight) = (self.seed, weight::<J::Value>(value, self.seed));
        for places in places.chunks(QUEUE) {
            self.combine_queue();
            let (mut queued, mut hashes) = (0, 0u64);
            for [start, end] in places {
                let range = *start as usize..*end as usize;
                match Short::within(text, range.clone()) {
                    Some(key) => {
                        let hash = seed.hash(key);
                        hashes = hashes.wrapping_add(hash);
                        let pair = TableSlot::short(key, hash, J::Value::own(value));
                        self.table.slots.prefetch(&pair);
                        self.table.queue[queued % QUEUE] = pair;
                        queued += 1;
                    }
                    None => self.emit_one(J::Key::read(&text[range]), value),
                }
            }
            self.digest.add_each(queued as u64, hashes, weight);
            self.table.queued = queued;
        }
    }
}

impl<J: Program> MapBuffer<J::Key, J::Value> for HashBuffer<'_, '_, J> {
    fn digest(&self) -> Digest {
        self.digest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Judges tables of a thousand keys that combined these numbers of pairs; returns the multiple of each rest.
    fn rests(trial: &mut TableTrial, combined: &[u64]) -> Vec<u64> {
        let judge = |combined: &u64| {
            trial.combined = *combined;
            trial.judge(1000);
            std::mem::take(&mut trial.rest) / combined
        };
        combined.iter().map(judge).collect()
    }

    #[test]
    fn rests_of_a_table_grow_until_it_combines_enough() {
        let (little, much) = (1100, 2000);
        let min = TableTrial::MULTIPLE_MIN;
        let mut trial = TableTrial::new(true);
        assert_eq!(rests(&mut trial, &[much, little, little, much, little]), [0, min, 2 * min, 0, min]);
        assert_eq!(rests(&mut trial, &[little; 20]).last(), Some(&TableTrial::MULTIPLE_MAX));
        assert_eq!(rests(&mut TableTrial::new(false), &[little]), [0]);
    }

    #[test]
    fn an_empty_table_is_not_judged() {
        let mut trial = TableTrial::new(true);
        trial.judge(0);
        assert_eq!((trial.rest, trial.next_multiple), (0, TableTrial::MULTIPLE_MIN));
    }
}
