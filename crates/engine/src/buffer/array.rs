//! The array buffer, which only appends: no table, no comparison, one copy per pair.

use crate::buffer::map_buffer::MapBuffer;
use crate::data::digest::Digest;
use crate::data::entry::short_hash;
use crate::data::key;
use crate::data::seed::Seed;
use crate::exchange::lane::Lane;
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
}

impl<J: Program> Emit<J::Key, J::Value> for ArrayBuffer<'_, '_, J> {
    #[inline(always)]
    fn emit(&mut self, key: <J::Key as crate::Datum>::Ref<'_>, value: <J::Value as crate::Datum>::Ref<'_>) {
        self.lane.contract.look::<J::Key, J::Value>(key, value);
        let hash = key::hash::<J::Key>(key, self.seed);
        self.digest.add::<J::Value>(hash, value, self.seed);
        let hash = short_hash(hash);
        let partition = self.partitioner.of::<J::User>(hash, key);
        self.lane.append::<J::Key, J::Value>(partition, hash, key, value);
    }
}

impl<J: Program> MapBuffer<J::Key, J::Value> for ArrayBuffer<'_, '_, J> {
    fn digest(&self) -> Digest {
        self.digest
    }
}
