//! The dense buffer, with a place for each key: no hash, no comparison, no probing.
//!
//! It is for keys that are numbers below a declared limit ([`MapReduce::keys`](crate::MapReduce::keys)). The array is
//! kept over the tasks of an epoch and appended to the pages of its partitions when the epoch commits. So each key is
//! sent once per epoch, and more often only if values of variable width grow large.

use crate::buffer::map_buffer::MapBuffer;
use crate::buffer::marks::Marks;
use crate::buffer::value_bytes::{Measure, VALUE_BYTES_MAX, ValueBytes};
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

/// The state that the buffer keeps from task to task: a value for each key.
///
/// Marks say which keys have one: an optional number would take twice the room in the cache.
pub(crate) struct DenseArray<V: Datum> {
    /// The default where there is no value.
    values: Vec<V::Owned>,
    present: Marks,
    value_bytes: ValueBytes,
}

impl<V: Datum> DenseArray<V> {
    pub fn new(keys: usize) -> Self {
        DenseArray {
            values: vec![V::Owned::default(); keys],
            present: Marks::new(keys),
            value_bytes: ValueBytes::default(),
        }
    }

    /// Removes all values, and calls `take` with the place of each.
    fn empty(&mut self, mut take: impl FnMut(usize, V::Owned)) {
        let DenseArray { values, present, .. } = self;
        present.take(|place| take(place, std::mem::take(&mut values[place])));
        self.value_bytes.clear();
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

    /// Changes the value of a key because `emitted` is emitted, an item or a value. `change` learns whether the key had
    /// none.
    #[inline(always)]
    fn change<V: Datum>(
        &mut self,
        key: <J::Key as Datum>::Ref<'_>,
        emitted: V::Ref<'_>,
        measure: impl FnOnce(bool) -> Measure,
        change: impl FnOnce(bool, &mut Owned<J::Value>),
    ) {
        self.lane.contract.look::<J::Key, V>(key, emitted);
        let place = J::Key::place(key);
        contract::numbers::<J::Key>(key, place);
        let DenseArray { values, present, value_bytes } = &mut *self.array;
        let keys = values.len();
        let Some(value) = values.get_mut(place) else { outside(place, keys) };
        self.digest.add::<V>(key::hash::<J::Key>(key, self.seed), emitted, self.seed);
        let is_new = !present.set(place);
        if is_new {
            value_bytes.add::<J::Value>(value);
        }
        value_bytes.change::<J::Value>(value, measure(is_new), |value| change(is_new, value));
        if J::Value::WIDTH.is_none() && value_bytes.get() > VALUE_BYTES_MAX {
            self.flush();
        }
    }

    /// Appends all pairs to the pages of their partitions.
    pub fn flush(&mut self) {
        let before = self.lane.meter.enter(Phase::Combine);
        self.lane.meter.add(Count::Flushes, 1);
        let DenseBuffer { lane, array, partitioner, seed, .. } = self;
        array.empty(|place, value| {
            let key = J::Key::at_place(place);
            let hash = short_hash(key::hash::<J::Key>(key, seed));
            let partition = partitioner.of::<J::User>(hash, key);
            let value = J::Value::lend(&value);
            lane.contract.look::<J::Key, J::Value>(key, value);
            lane.append::<J::Key, J::Value>(partition, hash, key, value);
        });
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
        self.change::<J::Value>(
            key,
            value,
            |_| Measure::Always,
            |is_new, slot| {
                let value = J::Value::own(value);
                *slot = if is_new { value } else { combiner(program)(std::mem::take(slot), value) };
            },
        );
    }

    #[inline(always)]
    fn add(&mut self, key: <J::Key as Datum>::Ref<'_>, item: <ItemOf<J::Value> as Datum>::Ref<'_>)
    where
        J::Value: Aggregate,
    {
        let measure = |is_new| Measure::of_item::<ItemOf<J::Value>>(item, is_new);
        self.change::<ItemOf<J::Value>>(key, item, measure, |_, slot| J::Value::add(slot, item));
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
