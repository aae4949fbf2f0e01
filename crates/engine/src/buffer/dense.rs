//! The dense buffer, with a place for each key: no hash, no comparison, no probing.
//!
//! It is for keys that are numbers below a declared limit ([`MapReduce::keys`](crate::MapReduce::keys)). The array is
//! kept over the tasks of an epoch and appended to the pages of its partitions when the epoch commits. So each key is
//! sent once per epoch, and more often only if values of variable width grow large.

use crate::buffer::map_buffer::MapBuffer;
use crate::control::counters::{Count, Phase};
use crate::data::contract;
use crate::data::datum::{Datum, Key, Owned};
use crate::data::digest::Digest;
use crate::data::entry::{self, short_hash};
use crate::data::key;
use crate::data::seed::Seed;
use crate::exchange::lane::Lane;
use crate::program::aggregate::{Aggregate, ItemOf};
use crate::program::ending::Program;
use crate::program::map_reduce::{Emit, combiner};
use crate::program::partition::Partitioner;

/// The state that the buffer keeps from task to task: an optional value for each key.
pub(crate) struct DenseArray<V: Datum> {
    values: Vec<Option<V::Owned>>,
    /// The size of all values, if their width varies.
    value_bytes: usize,
}

/// The size of variable-width values at which an array is emptied.
const VALUE_BYTES_MAX: usize = 2 << 20;

impl<V: Datum> DenseArray<V> {
    pub fn new(keys: usize) -> Self {
        DenseArray { values: vec![None; keys], value_bytes: 0 }
    }
}

pub(crate) struct DenseBuffer<'l, 'r, J: Program> {
    program: &'r J::User,
    lane: &'l mut Lane<'r, J>,
    array: &'l mut DenseArray<J::Value>,
    partitioner: Partitioner,
    seed: &'r Seed,
    digest: Digest,
}

impl<'l, 'r, J: Program> DenseBuffer<'l, 'r, J> {
    pub fn new(lane: &'l mut Lane<'r, J>, array: &'l mut DenseArray<J::Value>, partitioner: Partitioner) -> Self {
        let seed = lane.seed;
        DenseBuffer { program: lane.program, lane, array, partitioner, seed, digest: Digest::default() }
    }

    /// Changes the value of a key because `emitted` is emitted.
    #[inline(always)]
    fn change<V: Datum>(
        &mut self,
        key: <J::Key as Datum>::Ref<'_>,
        emitted: V::Ref<'_>,
        change: impl FnOnce(&mut Option<Owned<J::Value>>),
    ) {
        self.lane.contract.look::<J::Key, V>(key, emitted);
        let place = J::Key::place(key);
        contract::numbers::<J::Key>(key, place);
        let keys = self.array.values.len();
        let Some(slot) = self.array.values.get_mut(place) else { outside(place, keys) };
        self.digest.add::<V>(key::hash::<J::Key>(key, self.seed), emitted, self.seed);
        if const { J::Value::WIDTH.is_some() } {
            return change(slot);
        }
        let bytes =
            |slot: &Option<Owned<J::Value>>| slot.as_ref().map_or(0, |value| J::Value::width(J::Value::lend(value)));
        let before_bytes = bytes(slot);
        change(slot);
        self.array.value_bytes = self.array.value_bytes + bytes(slot) - before_bytes;
        if self.array.value_bytes > VALUE_BYTES_MAX {
            self.flush();
        }
    }

    /// Appends all pairs to the pages of their partitions.
    pub fn flush(&mut self) {
        let before = self.lane.meter.enter(Phase::Combine);
        self.lane.meter.add(Count::Flushes, 1);
        self.array.value_bytes = 0;
        for (place, value) in self.array.values.iter_mut().enumerate() {
            if let Some(value) = value.take() {
                let key = J::Key::at_place(place);
                let hash = short_hash(key::hash::<J::Key>(key, self.seed));
                let partition = self.partitioner.of::<J::User>(hash, key);
                let value = J::Value::lend(&value);
                self.lane.contract.look::<J::Key, J::Value>(key, value);
                self.lane.append::<J::Key, J::Value>(partition, hash, key, value);
            }
        }
        self.lane.meter.enter(before);
    }
}

impl<J: Program> Emit<J::Key, J::Value> for DenseBuffer<'_, '_, J> {
    #[inline(always)]
    fn emit(&mut self, key: <J::Key as Datum>::Ref<'_>, value: <J::Value as Datum>::Ref<'_>) {
        if const { J::Value::WIDTH.is_none() } {
            entry::check_width(entry::width::<J::Key, J::Value>(key, value));
        }
        let program = self.program;
        self.change::<J::Value>(key, value, |slot| {
            let value = J::Value::own(value);
            *slot = Some(match slot.take() {
                Some(before) => combiner(program)(before, value),
                None => value,
            });
        });
    }

    #[inline(always)]
    fn add(&mut self, key: <J::Key as Datum>::Ref<'_>, item: <ItemOf<J::Value> as Datum>::Ref<'_>)
    where
        J::Value: Aggregate,
    {
        self.change::<ItemOf<J::Value>>(key, item, |slot| J::Value::add(slot.get_or_insert_default(), item));
    }
}

impl<J: Program> MapBuffer<J::Key, J::Value> for DenseBuffer<'_, '_, J> {
    fn digest(&self) -> Digest {
        self.digest
    }
}

#[cold]
#[inline(never)]
fn outside(key: usize, keys: usize) -> ! {
    panic!("the map function emitted the key {key}, but declares that all keys are below {keys} (MapReduce::keys)")
}
