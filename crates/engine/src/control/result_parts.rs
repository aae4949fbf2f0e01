//! The words of a partition in a job whose reducers write the result: its size, and its place. (In a job in steps they
//! describe where its pairs are on the shelf. In a job with a sink, those of a reducer's first partition say what was
//! closed.) The owner seals its words whenever it changes one of them.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::control::words::{Shared, seal};
use crate::error::{Result, overwritten};

pub(super) const PAIRS: usize = 3;
pub(super) const BYTES: usize = 4;
const CHECKSUM: usize = 5;
/// In a job with a sink: the number of the attempt that was closed, plus 1; 0 before.
const CLOSED: usize = 6;
const SEAL: usize = 7;

/// The place of the partition in its file, written by the coordinator.
const START: usize = 2;

/// The size of a partition in the result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PartSize {
    pub pairs: u64,
    /// The bytes of its rows.
    pub bytes: u64,
}

/// Seals the words of a partition, the first of which is, or will be, `first`.
pub(super) fn seal_words(words: &[AtomicU64], first: u64) {
    words[SEAL].store(seal_of(words, first), Ordering::Relaxed);
}

/// Returns whether the words of a partition are as their owner has left them.
pub(super) fn is_sealed(words: &[AtomicU64]) -> bool {
    words[SEAL].load(Ordering::Relaxed) == seal_of(words, words[0].load(Ordering::Relaxed))
}

fn seal_of(words: &[AtomicU64], first: u64) -> u64 {
    seal([first].into_iter().chain(words[1..SEAL].iter().map(|word| word.load(Ordering::Relaxed))))
}

impl Shared<'_> {
    /// Checks what the owner of `partition`, which is drained, has stored.
    ///
    /// # Errors
    /// It was overwritten.
    pub fn check_partition(&self, partition: usize) -> Result<()> {
        let words = self.partition_words(partition);
        // An owner that has nothing to tell has left zeros.
        let is_whole = is_sealed(words) || words.iter().all(|word| word.load(Ordering::Relaxed) == 0);
        if is_whole { Ok(()) } else { Err(overwritten(None, &format!("what is known of partition {partition}"))) }
    }

    /// Sets the size of `partition`. Its owner does this before it reports the partition as drained: PAIRS WITH
    /// `is_drained`.
    pub fn set_part_size(&self, partition: usize, size: PartSize) {
        let words = self.partition_words(partition);
        words[PAIRS].store(size.pairs, Ordering::Relaxed);
        words[BYTES].store(size.bytes, Ordering::Relaxed);
        seal_words(words, 0);
    }

    pub fn part_size(&self, partition: usize) -> PartSize {
        let words = self.partition_words(partition);
        PartSize { pairs: words[PAIRS].load(Ordering::Relaxed), bytes: words[BYTES].load(Ordering::Relaxed) }
    }

    /// Sets the offset of `partition` in its file. The coordinator does this before reducers may finish: PAIRS WITH
    /// `may_finish`.
    pub fn set_start(&self, partition: usize, start: u64) {
        self.assigned_words(partition)[START].store(start, Ordering::Relaxed);
    }

    pub fn start(&self, partition: usize) -> u64 {
        self.assigned_words(partition)[START].load(Ordering::Relaxed)
    }

    /// Sets the checksum of the written rows. The owner does this before its last page of the result, which the
    /// coordinator receives.
    pub fn set_checksum(&self, partition: usize, checksum: u32) {
        let words = self.partition_words(partition);
        words[CHECKSUM].store(u64::from(checksum), Ordering::Relaxed);
        seal_words(words, 0);
    }

    pub fn checksum(&self, partition: usize) -> u32 {
        self.partition_words(partition)[CHECKSUM].load(Ordering::Relaxed) as u32
    }

    /// Notes that a part was closed. The reducer does this before its last page of the result, which the coordinator
    /// receives.
    pub fn set_closed(&self, part: usize, attempt: usize, pairs: u64) {
        let words = self.partition_words(part);
        words[PAIRS].store(pairs, Ordering::Relaxed);
        words[CLOSED].store(attempt as u64 + 1, Ordering::Relaxed);
        seal_words(words, 0);
    }

    /// Returns the attempt at a part that was closed, and its number of pairs.
    pub fn closed(&self, part: usize) -> Option<(usize, u64)> {
        let words = self.partition_words(part);
        let attempt = words[CLOSED].load(Ordering::Relaxed).checked_sub(1)?;
        Some((attempt as usize, words[PAIRS].load(Ordering::Relaxed)))
    }
}
