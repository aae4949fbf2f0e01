//! The array buffer, which only appends: no table, no comparison, one copy per pair.

use crate::buffer::map_buffer::MapBuffer;
use crate::data::datum::Datum;
use crate::data::digest::Digest;
use crate::data::entry::short_hash;
use crate::data::key;
use crate::data::seed::Seed;
use crate::exchange::lane::Lane;
use crate::program::aggregate::{self, Aggregate, ItemOf};
use crate::program::ending::Program;
use crate::program::map_reduce::Emit;
use crate::program::partition::Partitioner;

pub(crate) struct ArrayBuffer<'l, 'r, J: Program> {
    lane: &'l mut Lane<'r, J>,
    partitioner: Partitioner,
    seed: &'r Seed,
    digest: Digest,
}

impl<'l, 'r, J: Program> ArrayBuffer<'l, 'r, J> {
    pub fn new(lane: &'l mut Lane<'r, J>, partitioner: Partitioner) -> Self {
        let seed = lane.seed;
        ArrayBuffer { lane, partitioner, seed, digest: Digest::default() }
    }

    /// Notes what the map function emits. Returns the hash of the key.
    #[inline(always)]
    fn note<V: Datum>(&mut self, key: <J::Key as Datum>::Ref<'_>, value: V::Ref<'_>) -> u32 {
        self.lane.contract.look::<J::Key, V>(key, value);
        let hash = key::hash::<J::Key>(key, self.seed);
        self.digest.add::<V>(hash, value, self.seed);
        short_hash(hash)
    }

    #[inline(always)]
    fn append(&mut self, hash: u32, key: <J::Key as Datum>::Ref<'_>, value: <J::Value as Datum>::Ref<'_>) {
        let partition = self.partitioner.of::<J::User>(hash, key);
        self.lane.append::<J::Key, J::Value>(partition, hash, key, value);
    }
}

impl<J: Program> Emit<J::Key, J::Value> for ArrayBuffer<'_, '_, J> {
    #[inline(always)]
    fn emit(&mut self, key: <J::Key as Datum>::Ref<'_>, value: <J::Value as Datum>::Ref<'_>) {
        let hash = self.note::<J::Value>(key, value);
        self.append(hash, key, value);
    }

    #[inline(always)]
    fn add(&mut self, key: <J::Key as Datum>::Ref<'_>, item: <ItemOf<J::Value> as Datum>::Ref<'_>)
    where
        J::Value: Aggregate,
    {
        let hash = self.note::<ItemOf<J::Value>>(key, item);
        let value = aggregate::one::<J::Value>(item);
        self.lane.contract.look::<J::Key, J::Value>(key, J::Value::lend(&value));
        self.append(hash, key, J::Value::lend(&value));
    }
}

impl<J: Program> MapBuffer<J::Key, J::Value> for ArrayBuffer<'_, '_, J> {
    fn digest(&self) -> Digest {
        self.digest
    }
}
