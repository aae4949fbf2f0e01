//! The words about failing records: which tasks need care, which piece each worker maps, which bad records it has
//! found, and which are set aside.
//!
//! ```text
//!  careful:    one bit for each task
//!  set aside:  | source | offset |  for each record, in the order in which they were found
//!  telling:    a pipe from all workers to the coordinator, whole batches of  | bytes of cause | source | offset | bytes | cause |
//! ```
//!
//! A worker announces which piece of its task it maps, a chunk or a record, before it calls the map function. If it
//! dies there, the coordinator knows the place, and the worker that retries the task maps that place record by record.
//! Bad records that the worker survives are reported in batches. Each batch is one write, before the epoch of the task
//! is committed. A worker that finds the pipe full asks for room, and sleeps until the coordinator has read.

use std::collections::BTreeSet;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::Ordering;

use rustix::io::Errno;

use crate::control::place::Place;
use crate::control::words::{JobWord, SET_ASIDE_WORDS, Shared, Slot, cut_message};

/// The most bytes in a batch. A pipe takes that many at once or not at all.
const BATCH_BYTES: usize = 4096;

/// The records that a worker has found but not reported yet.
#[derive(Default)]
pub(crate) struct Found {
    batch: Vec<u8>,
}

impl Found {
    /// Adds a record. Reports the earlier ones first if the batch would grow too large.
    pub fn push(&mut self, shared: &Shared<'_>, slot: usize, place: Place, cause: &str, wait: impl FnMut()) {
        let cause = cut_message(cause);
        if self.batch.len() + 4 * size_of::<u64>() + cause.len() > BATCH_BYTES {
            self.tell(shared, slot, wait);
        }
        let words = [cause.len() as u64, place.source as u64, place.offset, place.bytes];
        words.iter().for_each(|word| self.batch.extend_from_slice(&word.to_le_bytes()));
        self.batch.extend_from_slice(cause.as_bytes());
    }

    /// Reports the records. While the pipe has no room, calls `wait`, which returns when the worker was rung.
    pub fn tell(&mut self, shared: &Shared<'_>, slot: usize, mut wait: impl FnMut()) {
        if self.batch.is_empty() {
            return;
        }
        let telling = shared.telling.as_ref().expect("records are set aside by jobs that may");
        loop {
            match rustix::io::write(&telling.to, &self.batch) {
                Ok(written) => {
                    assert_eq!(written, self.batch.len(), "a pipe takes {BATCH_BYTES} bytes at once or not at all");
                    return self.batch.clear();
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => {
                    // PAIRS WITH the load in `asks`.
                    shared.slot(slot, Slot::Asks).store(1, Ordering::Release);
                    shared.announce();
                    while shared.asks(slot) {
                        wait();
                    }
                }
                Err(error) => panic!("telling of bad records: {error}"),
            }
        }
    }
}

/// The records set aside, as known to one worker.
#[derive(Default)]
pub(crate) struct SetAside {
    known: usize,
    places: BTreeSet<(u64, u64)>,
}

impl SetAside {
    /// Learns of records that were set aside since the last call.
    pub fn learn(&mut self, shared: &Shared<'_>) {
        // PAIRS WITH the store in `Shared::set_aside`.
        let count = shared.job(JobWord::SetAside).load(Ordering::Acquire) as usize;
        let words = shared.set_aside_words.chunks_exact(SET_ASIDE_WORDS);
        for words in words.take(count).skip(self.known) {
            self.places.insert((words[0].load(Ordering::Relaxed), words[1].load(Ordering::Relaxed)));
        }
        self.known = count;
    }

    /// Returns whether one of them begins in this range of the content of `source`.
    pub fn any_in(&self, source: usize, range: Range<u64>) -> bool {
        let source = source as u64;
        self.known > 0 && self.places.range((source, range.start)..(source, range.end)).next().is_some()
    }
}

/// Splits the first record off the reports, and returns the rest.
fn read_record(told: &[u8]) -> Option<((Place, String), &[u8])> {
    let (head, rest) = told.split_at_checked(4 * size_of::<u64>())?;
    let [cause_bytes, source, offset, bytes] =
        [0, 8, 16, 24].map(|at| u64::from_le_bytes(head[at..at + 8].try_into().expect("eight bytes")));
    let (cause, rest) = rest.split_at_checked(cause_bytes as usize)?;
    let place = Place { source: source as usize, offset, bytes };
    Some(((place, String::from_utf8_lossy(cause).into_owned()), rest))
}

impl Shared<'_> {
    /// Maps `task` with care from now on.
    pub fn set_careful(&self, task: usize) {
        self.careful_words[task / 64].fetch_or(1 << (task % 64), Ordering::Release);
    }

    pub fn is_careful(&self, task: usize) -> bool {
        self.careful_words[task / 64].load(Ordering::Acquire) >> (task % 64) & 1 == 1
    }

    /// Returns whether no task has failed so far.
    pub fn clear_careful(&self) {
        self.careful_words.iter().for_each(|word| word.store(0, Ordering::Release));
        (1..self.slots_born()).for_each(|slot| self.slot(slot, Slot::DiedOf).store(0, Ordering::Release));
    }

    /// Announces that `slot` maps this record or chunk.
    pub fn begin_place(&self, slot: usize, place: Place, is_record: bool) {
        self.slot(slot, Slot::PlaceSource).store(place.source as u64, Ordering::Relaxed);
        self.slot(slot, Slot::PlaceOffset).store(place.offset, Ordering::Relaxed);
        // PAIRS WITH the load in `place`: a place has at least one byte, so a length other than 0 says that there is a
        // place.
        self.slot(slot, Slot::PlaceBytes).store(place.bytes * 2 + u64::from(is_record), Ordering::Release);
    }

    /// Announces that `slot` is not in the map function.
    pub fn end_place(&self, slot: usize) {
        self.slot(slot, Slot::PlaceBytes).store(0, Ordering::Release);
    }

    /// Returns the place that `slot` maps, or was mapping when it died, and whether that is a single record.
    pub fn place(&self, slot: usize) -> Option<(Place, bool)> {
        let word = |word| self.slot(slot, word).load(Ordering::Acquire);
        let bytes = word(Slot::PlaceBytes);
        let place =
            || Place { source: word(Slot::PlaceSource) as usize, offset: word(Slot::PlaceOffset), bytes: bytes / 2 };
        (bytes > 0).then(|| (place(), bytes % 2 == 1))
    }

    /// Notes that the dead worker of `slot` died of `task`, at its current place.
    pub fn suspect(&self, slot: usize, task: usize) {
        // PAIRS WITH the load in `suspects`.
        self.slot(slot, Slot::DiedOf).store(task as u64 + 1, Ordering::Release);
    }

    /// Returns the places at which workers died of `task`.
    pub fn suspects(&self, task: usize) -> Vec<Place> {
        let died = (1..self.slots_born())
            .filter(|slot| self.slot(*slot, Slot::DiedOf).load(Ordering::Acquire) == task as u64 + 1);
        died.filter_map(|slot| self.place(slot)).map(|(place, _)| place).collect()
    }

    /// Returns whether `slot` waits until it can report.
    pub fn asks(&self, slot: usize) -> bool {
        self.slot(slot, Slot::Asks).load(Ordering::Acquire) == 1
    }

    /// Returns a descriptor that is readable after a report. `None` in jobs that set nothing aside.
    pub fn telling(&self) -> Option<BorrowedFd<'_>> {
        self.telling.as_ref().map(|telling| telling.from.as_fd())
    }

    /// Reads all reports, calls `visit` with many records at a time, and wakes the workers that wait for room.
    pub fn hear<E>(&self, mut visit: impl FnMut(Vec<(Place, String)>) -> Result<(), E>) -> Result<(), E> {
        let Some(telling) = &self.telling else { return Ok(()) };
        let (mut heard, mut buffer) = (Vec::new(), vec![0; 1 << 16]);
        loop {
            match rustix::io::read(&telling.from, &mut buffer[..]) {
                Ok(0) | Err(Errno::AGAIN) => break,
                Ok(read) => heard.extend_from_slice(&buffer[..read]),
                Err(Errno::INTR) => continue,
                Err(error) => panic!("hearing of bad records: {error}"),
            }
            let (mut records, mut rest) = (Vec::new(), &heard[..]);
            while let Some((record, more)) = read_record(rest) {
                records.push(record);
                rest = more;
            }
            // Batches are written at once, but a read may end inside one.
            heard = rest.to_vec();
            visit(records)?;
        }
        for slot in (1..self.slots_born()).filter(|slot| self.asks(*slot)) {
            self.slot(slot, Slot::Asks).store(0, Ordering::Release);
            self.ring(slot);
        }
        Ok(())
    }

    /// Sets a record aside, for all later attempts and rounds. There is room for as many as the job allows.
    pub fn set_aside(&self, place: Place) {
        let count = self.job(JobWord::SetAside).load(Ordering::Acquire);
        let words = &self.set_aside_words[count as usize * SET_ASIDE_WORDS..][..SET_ASIDE_WORDS];
        words[0].store(place.source as u64, Ordering::Relaxed);
        words[1].store(place.offset, Ordering::Relaxed);
        // PAIRS WITH the load in `SetAside::learn`.
        self.job(JobWord::SetAside).store(count + 1, Ordering::Release);
    }
}
