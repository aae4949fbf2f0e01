//! Words about records that fail: which tasks are mapped with care, at which record a worker is, what it asks about it,
//! and which records are set aside.
//!
//! ```text
//!  careful:    one bit for each task
//!  set aside:  | source | offset |  for each record, in the order in which they were found
//! ```
//!
//! A worker that maps with care says at which record it is before it calls the map function. If it dies there, the
//! coordinator knows which record did it; if it survives, it asks: it leaves the cause in its message, rings, and sleeps
//! until the coordinator has answered, which is when the record is among those set aside.

use std::ops::Range;
use std::sync::atomic::Ordering;

use super::{Job, SET_ASIDE_WORDS, Shared, Slot};

/// A record: in which source, from which byte of its content on, and its bytes, what ends it included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub source: usize,
    pub offset: u64,
    pub bytes: u64,
}

impl Shared<'_> {
    /// From now on `task` is mapped record by record.
    pub fn set_careful(&self, task: usize) {
        self.careful_words[task / 64].fetch_or(1 << (task % 64), Ordering::Release);
    }

    pub fn is_careful(&self, task: usize) -> bool {
        self.careful_words[task / 64].load(Ordering::Acquire) >> (task % 64) & 1 == 1
    }

    /// No task has failed yet.
    pub fn clear_careful(&self) {
        self.careful_words.iter().for_each(|word| word.store(0, Ordering::Release));
    }

    /// Says that `slot` maps this record.
    pub fn begin_record(&self, slot: usize, place: Place) {
        self.slot(slot, Slot::RecordSource).store(place.source as u64, Ordering::Relaxed);
        self.slot(slot, Slot::RecordOffset).store(place.offset, Ordering::Relaxed);
        // PAIRS WITH the load in `record`: a record has at least one byte, so this says that there is one.
        self.slot(slot, Slot::RecordBytes).store(place.bytes, Ordering::Release);
    }

    /// Says that `slot` maps no single record.
    pub fn end_record(&self, slot: usize) {
        self.slot(slot, Slot::RecordBytes).store(0, Ordering::Release);
    }

    /// The record that `slot` maps, or was mapping when it died.
    pub fn record(&self, slot: usize) -> Option<Place> {
        let word = |word| self.slot(slot, word).load(Ordering::Acquire);
        let bytes = word(Slot::RecordBytes);
        (bytes > 0).then(|| Place {
            source: word(Slot::RecordSource) as usize,
            offset: word(Slot::RecordOffset),
            bytes,
        })
    }

    /// Asks the coordinator to set the record of `slot` aside, because of `cause`.
    pub fn ask(&self, slot: usize, cause: &str) {
        self.set_message(slot, cause);
        // PAIRS WITH the load in `asks`.
        self.slot(slot, Slot::Asks).store(1, Ordering::Release);
        self.announce();
    }

    pub fn asks(&self, slot: usize) -> bool {
        self.slot(slot, Slot::Asks).load(Ordering::Acquire) == 1
    }

    /// The record that `slot` asked about is set aside.
    pub fn answer(&self, slot: usize) {
        self.slot(slot, Slot::Message).store(0, Ordering::Release);
        self.slot(slot, Slot::Asks).store(0, Ordering::Release);
        self.ring(slot);
    }

    /// Sets a record aside, for all attempts and rounds to come. There is room for as many as the job allows.
    pub fn set_aside(&self, place: Place) {
        let count = self.job(Job::SetAside).load(Ordering::Acquire);
        let words = &self.set_aside_words[count as usize * SET_ASIDE_WORDS..][..SET_ASIDE_WORDS];
        words[0].store(place.source as u64, Ordering::Relaxed);
        words[1].store(place.offset, Ordering::Relaxed);
        // PAIRS WITH the load in `is_set_aside`.
        self.job(Job::SetAside).store(count + 1, Ordering::Release);
    }

    /// True when a record was set aside that begins in this range of the content of `source`.
    pub fn is_set_aside(&self, source: usize, range: Range<u64>) -> bool {
        let count = self.job(Job::SetAside).load(Ordering::Acquire) as usize;
        self.set_aside_words.chunks_exact(SET_ASIDE_WORDS).take(count).any(|words| {
            let [at, offset] = [0, 1].map(|word: usize| words[word].load(Ordering::Relaxed));
            at == source as u64 && range.contains(&offset)
        })
    }
}
