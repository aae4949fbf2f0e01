//! Which partition a key belongs to.

/// Takes the high bits of the hash; tables use the low ones, so both stay well spread.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Partitioner {
    shift: u32,
}

impl Partitioner {
    /// `partitions` is a power of two.
    pub fn new(partitions: usize) -> Partitioner {
        assert!(partitions.is_power_of_two(), "the number of partitions is a power of two");
        Partitioner { shift: 32 - partitions.trailing_zeros() }
    }

    #[inline(always)]
    pub fn of(self, hash: u32) -> usize {
        // For one partition the shift is the whole width.
        (u64::from(hash) >> self.shift) as usize
    }
}
