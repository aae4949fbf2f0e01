//! The words of a partition in a job whose reducers write the result: its size, and where it begins. (In a job in steps they say where
//! its pairs were kept.)

use std::sync::atomic::Ordering;

use crate::control::words::Shared;

const PAIRS: usize = 2;
const BYTES: usize = 3;
const START: usize = 4;
const CHECKSUM: usize = 5;

/// What a partition takes in the result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PartSize {
    pub pairs: u64,
    /// Of their rows.
    pub bytes: u64,
}

impl Shared<'_> {
    /// Sets the size of `partition`. Its owner does this before it says that the partition is drained: PAIRS WITH `is_drained`.
    pub fn set_part_size(&self, partition: usize, size: PartSize) {
        let words = self.partition_words(partition);
        words[PAIRS].store(size.pairs, Ordering::Relaxed);
        words[BYTES].store(size.bytes, Ordering::Relaxed);
    }

    pub fn part_size(&self, partition: usize) -> PartSize {
        let words = self.partition_words(partition);
        PartSize { pairs: words[PAIRS].load(Ordering::Relaxed), bytes: words[BYTES].load(Ordering::Relaxed) }
    }

    /// Sets where `partition` begins in its file. The coordinator does this before reducers may finish: PAIRS WITH `may_finish`.
    pub fn set_start(&self, partition: usize, start: u64) {
        self.partition_words(partition)[START].store(start, Ordering::Relaxed);
    }

    pub fn start(&self, partition: usize) -> u64 {
        self.partition_words(partition)[START].load(Ordering::Relaxed)
    }

    /// The checksum of what was written. Its owner says it before its last page of the result, which the coordinator takes.
    pub fn set_checksum(&self, partition: usize, checksum: u32) {
        self.partition_words(partition)[CHECKSUM].store(u64::from(checksum), Ordering::Relaxed);
    }

    pub fn checksum(&self, partition: usize) -> u32 {
        self.partition_words(partition)[CHECKSUM].load(Ordering::Relaxed) as u32
    }
}
