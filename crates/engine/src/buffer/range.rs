//! Append only, in the order of the result: a pair goes to the range of pairs that it lies in.

use crate::counters::Count;
use crate::exchange::Lane;
use crate::map_reduce::{Emit, MapReduce};
use crate::ranges::Ranges;

pub(crate) struct RangeBuffer<'l, 'r, J: MapReduce> {
    lane: &'l mut Lane<'r, J>,
    ranges: &'l Ranges<J::Key, J::Value>,
    emitted: u64,
}

impl<'l, 'r, J: MapReduce> RangeBuffer<'l, 'r, J> {
    pub fn new(lane: &'l mut Lane<'r, J>, ranges: &'l Ranges<J::Key, J::Value>) -> Self {
        RangeBuffer { lane, ranges, emitted: 0 }
    }
}

impl<J: MapReduce> Emit<J::Key, J::Value> for RangeBuffer<'_, '_, J> {
    #[inline(always)]
    fn emit(&mut self, key: <J::Key as crate::Datum>::Ref<'_>, value: <J::Value as crate::Datum>::Ref<'_>) {
        self.lane.contract.look::<J::Key, J::Value>(key, value);
        self.emitted += 1;
        // Nothing looks a key up, so nobody wants its hash.
        self.lane.append::<J::Key, J::Value>(self.ranges.of(key, value), 0, key, value);
    }
}

impl<J: MapReduce> Drop for RangeBuffer<'_, '_, J> {
    fn drop(&mut self) {
        self.lane.meter.add(Count::PairsEmitted, self.emitted);
    }
}
