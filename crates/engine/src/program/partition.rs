//! The partition that a key belongs to, by hash or as the program says. (By range: `ranges`.)

use crate::data::datum::Datum;
use crate::program::map_reduce::MapReduce;

/// Chooses the partition of a key: by the high bits of its hash (tables use the low ones, so both stay well spread), or
/// by the program's partition function.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Partitioner {
    partitions: usize,
    shift: u32,
}

impl Partitioner {
    /// Makes a partitioner; `partitions` must be a power of two.
    pub fn new(partitions: usize) -> Partitioner {
        assert!(partitions.is_power_of_two(), "the number of partitions is a power of two");
        Partitioner { partitions, shift: 32 - partitions.trailing_zeros() }
    }

    /// Returns the partition of `key`, whose hash is `hash`.
    ///
    /// # Panics
    /// When the program's partition function returns a partition that does not exist.
    #[inline(always)]
    pub fn of<J: MapReduce>(self, hash: u32, key: <J::Key as Datum>::Ref<'_>) -> usize {
        match const { J::PARTITION } {
            // For one partition the shift is the whole width.
            None => (u64::from(hash) >> self.shift) as usize,
            Some(choose) => {
                let partition = choose(key, self.partitions);
                assert!(
                    partition < self.partitions,
                    "the partition function answered {partition} for {key:?}, but there are {} partitions",
                    self.partitions
                );
                partition
            }
        }
    }
}
