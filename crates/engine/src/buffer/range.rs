//! The range buffer, which only appends, in the order of the result: a pair goes to the range that contains it.

use crate::buffer::map_buffer::MapBuffer;
use crate::data::datum::Datum;
use crate::data::digest::Digest;
use crate::data::key;
use crate::data::seed::Seed;
use crate::exchange::lane::Lane;
use crate::program::aggregate::{self, Aggregate, ItemOf};
use crate::program::ending::Program;
use crate::program::map_reduce::Emit;
use crate::program::ranges::Ranges;

pub(crate) struct RangeBuffer<'l, 'r, J: Program> {
    lane: &'l mut Lane<'r, J>,
    ranges: &'l Ranges<J::Key, J::Value>,
    seed: &'r Seed,
    digest: Digest,
}

impl<'l, 'r, J: Program> RangeBuffer<'l, 'r, J> {
    pub fn new(lane: &'l mut Lane<'r, J>, ranges: &'l Ranges<J::Key, J::Value>) -> Self {
        let seed = lane.seed;
        RangeBuffer { lane, ranges, seed, digest: Digest::default() }
    }

    /// Notes what the map function emits.
    #[inline(always)]
    fn note<V: Datum>(&mut self, key: <J::Key as Datum>::Ref<'_>, value: V::Ref<'_>) {
        self.lane.contract.look::<J::Key, V>(key, value);
        self.digest.add::<V>(key::hash::<J::Key>(key, self.seed), value, self.seed);
    }

    #[inline(always)]
    fn append(&mut self, key: <J::Key as Datum>::Ref<'_>, value: <J::Value as Datum>::Ref<'_>) {
        // Nobody will look up the key, so its hash is not sent.
        self.lane.append::<J::Key, J::Value>(self.ranges.of(key, value), 0, key, value);
    }
}

impl<J: Program> Emit<J::Key, J::Value> for RangeBuffer<'_, '_, J> {
    #[inline(always)]
    fn emit(&mut self, key: <J::Key as Datum>::Ref<'_>, value: <J::Value as Datum>::Ref<'_>) {
        self.note::<J::Value>(key, value);
        self.append(key, value);
    }

    #[inline(always)]
    fn add(&mut self, key: <J::Key as Datum>::Ref<'_>, item: <ItemOf<J::Value> as Datum>::Ref<'_>)
    where
        J::Value: Aggregate,
    {
        self.note::<ItemOf<J::Value>>(key, item);
        let value = aggregate::one::<J::Value>(item);
        self.lane.contract.look::<J::Key, J::Value>(key, J::Value::lend(&value));
        self.append(key, J::Value::lend(&value));
    }
}

impl<J: Program> MapBuffer<J::Key, J::Value> for RangeBuffer<'_, '_, J> {
    fn digest(&self) -> Digest {
        self.digest
    }
}
