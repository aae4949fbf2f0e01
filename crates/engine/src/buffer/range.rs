//! The range buffer, which only appends, in the order of the result: a pair goes to the range that contains it.

use crate::buffer::map_buffer::MapBuffer;
use crate::data::digest::Digest;
use crate::data::key;
use crate::data::seed::Seed;
use crate::exchange::lane::Lane;
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
}

impl<J: Program> Emit<J::Key, J::Value> for RangeBuffer<'_, '_, J> {
    #[inline(always)]
    fn emit(&mut self, key: <J::Key as crate::Datum>::Ref<'_>, value: <J::Value as crate::Datum>::Ref<'_>) {
        self.lane.contract.look::<J::Key, J::Value>(key, value);
        self.digest.add::<J::Value>(key::hash::<J::Key>(key, self.seed), value, self.seed);
        // Nobody will look up the key, so its hash is not sent.
        self.lane.append::<J::Key, J::Value>(self.ranges.of(key, value), 0, key, value);
    }
}

impl<J: Program> MapBuffer<J::Key, J::Value> for RangeBuffer<'_, '_, J> {
    fn digest(&self) -> Digest {
        self.digest
    }
}
