//! What the words of a partition say in a job whose reducers write the result. (In a job in steps they say where it was kept.)

use std::sync::atomic::Ordering;

use crate::control::words::Shared;

const PAIRS: usize = 2;
const BYTES: usize = 3;
const START: usize = 4;
const CHECKSUM: usize = 5;

/// What a partition was given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Given {
    pub pairs: u64,
    /// Bytes that they take in the result.
    pub bytes: u64,
}

impl Shared<'_> {
    /// Says what `partition` was given. Its owner does, before it says that it is drained: PAIRS WITH `is_drained`.
    pub fn set_given(&self, partition: usize, given: Given) {
        let words = self.partition_words(partition);
        words[PAIRS].store(given.pairs, Ordering::Relaxed);
        words[BYTES].store(given.bytes, Ordering::Relaxed);
    }

    pub fn given(&self, partition: usize) -> Given {
        let words = self.partition_words(partition);
        Given { pairs: words[PAIRS].load(Ordering::Relaxed), bytes: words[BYTES].load(Ordering::Relaxed) }
    }

    /// Says where `partition` begins in its file. The coordinator does, before reducers may finish: PAIRS WITH `may_finish`.
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
