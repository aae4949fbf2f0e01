//! A ring of page numbers with one producer and one consumer.
//!
//! `tail` counts the numbers ever pushed, `head` the numbers ever popped; both wrap at 2^32. The
//! numbers in flight lie in the slots `head .. tail`, each index taken modulo the capacity:
//!
//! ```text
//!   slots   | . | . | 7 | 4 | 9 | . | . | . |      capacity 8
//!                     ^           ^
//!                    head        tail
//!            the consumer's     the producer's
//! ```
//!
//! Only the producer stores `tail` and the slots, only the consumer stores `head`. Each end keeps
//! the last value that it read of the other's count, and loads the shared word again only when that value
//! says "full" or "empty". So a busy ring moves few cache lines.

use crate::sync::{AtomicU32, Ordering};

/// The shared words of one ring. All zero is an empty ring.
#[derive(Clone, Copy, Debug)]
pub struct Cells<'a> {
    /// The count of popped numbers, modulo 2^32. Only the consumer stores it.
    pub head: &'a AtomicU32,
    /// The count of pushed numbers, modulo 2^32. Only the producer stores it.
    pub tail: &'a AtomicU32,
    /// The numbers in flight. The length is the ring's capacity, a power of two.
    pub slots: &'a [AtomicU32],
}

/// `head` and `tail` lie this many words (128 bytes) apart from everything else, because processors
/// fetch cache lines of 64 bytes in pairs and the two ends should not take the line from each other.
const LINE_WORDS: usize = 32;

impl<'a> Cells<'a> {
    /// The words that a ring of `capacity` page numbers takes.
    ///
    /// # Panics
    ///
    /// When `capacity` is not a power of two, or above 2^31.
    pub const fn words(capacity: usize) -> usize {
        assert_capacity(capacity);
        2 * LINE_WORDS + if capacity < LINE_WORDS { LINE_WORDS } else { capacity }
    }

    /// Lays out a ring in the first `Cells::words(capacity)` words:
    ///
    /// ```text
    ///   byte 0        tail, then 124 bytes unused
    ///   byte 128      head, then 124 bytes unused
    ///   byte 256      slot 0, slot 1, ... slot capacity-1, 4 bytes each, padded to 128 bytes
    /// ```
    ///
    /// # Panics
    ///
    /// When `words` is shorter than that, or `capacity` is not a power of two or above 2^31.
    pub fn in_words(words: &'a [AtomicU32], capacity: usize) -> Cells<'a> {
        let words = &words[..Cells::words(capacity)];
        Cells { tail: &words[0], head: &words[LINE_WORDS], slots: &words[2 * LINE_WORDS..][..capacity] }
    }

    /// The page numbers that the ring can hold.
    pub fn capacity(&self) -> usize {
        self.slots.len()
    }

    fn slot(&self, index: u32) -> &'a AtomicU32 {
        // The length is a power of two (asserted on attach), so the mask stays below it; and 2^32 is
        // a multiple of it, so the slots keep their order when the index wraps.
        &self.slots[index as usize & (self.slots.len() - 1)]
    }
}

const fn assert_capacity(capacity: usize) {
    assert!(capacity.is_power_of_two() && capacity <= 1 << 31, "a ring's capacity is a power of two, at most 2^31");
}

/// The ring is full.
///
/// The engine sizes every ring for all pages of the producer's arena, so it never sees this error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full;

impl std::fmt::Display for Full {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the ring is full: it holds as many page numbers as it has slots")
    }
}

impl std::error::Error for Full {}

/// The end of a ring that puts page numbers in.
#[derive(Debug)]
pub struct Producer<'a> {
    cells: Cells<'a>,
    tail: u32,
    /// The consumer's count as last read: never above the true one.
    head_seen: u32,
}

impl<'a> Producer<'a> {
    /// Attaches the producing end at the current position.
    ///
    /// A ring has one producer at a time. A second one would lose numbers or send them twice, and
    /// nothing here can notice.
    ///
    /// # Panics
    ///
    /// When the number of slots is not a power of two, or above 2^31.
    pub fn attach(cells: Cells<'a>) -> Producer<'a> {
        assert_capacity(cells.capacity());
        Producer { cells, tail: cells.tail.load(Ordering::Acquire), head_seen: cells.head.load(Ordering::Acquire) }
    }

    /// Hands `page` to the consumer.
    ///
    /// The consumer that pops it sees everything that this thread wrote before.
    ///
    /// # Errors
    ///
    /// [`Full`] when as many numbers are in flight as there are slots; nothing has changed then.
    #[inline]
    pub fn push(&mut self, page: u32) -> Result<(), Full> {
        if self.in_flight_at_most() == self.cells.capacity() {
            // PAIRS WITH Consumer::pop, store of head: the slot was read before it is written again.
            self.head_seen = self.cells.head.load(Ordering::Acquire);
            if self.in_flight_at_most() == self.cells.capacity() {
                return Err(Full);
            }
        }
        self.cells.slot(self.tail).store(page, Ordering::Relaxed);
        self.tail = self.tail.wrapping_add(1);
        // PAIRS WITH Consumer::pop and Consumer::is_empty, load of tail: the slot, and the page that
        // it names, are written before the count says so.
        self.cells.tail.store(self.tail, Ordering::Release);
        Ok(())
    }

    fn in_flight_at_most(&self) -> usize {
        self.tail.wrapping_sub(self.head_seen) as usize
    }
}

/// The end of a ring that takes page numbers out.
#[derive(Debug)]
pub struct Consumer<'a> {
    cells: Cells<'a>,
    head: u32,
    /// The producer's count as last read: never above the true one.
    tail_seen: u32,
}

impl<'a> Consumer<'a> {
    /// Attaches the consuming end at the current position.
    ///
    /// A ring has one consumer at a time, as [`Producer::attach`] says of producers.
    ///
    /// # Panics
    ///
    /// When the number of slots is not a power of two, or above 2^31.
    pub fn attach(cells: Cells<'a>) -> Consumer<'a> {
        assert_capacity(cells.capacity());
        let head = cells.head.load(Ordering::Acquire);
        Consumer { cells, head, tail_seen: head }
    }

    /// Takes the oldest page number, or `None` if the ring is empty.
    ///
    /// The caller sees everything that the producer wrote before the push.
    #[inline]
    pub fn pop(&mut self) -> Option<u32> {
        if self.head == self.tail_seen {
            // PAIRS WITH Producer::push, store of tail.
            self.tail_seen = self.cells.tail.load(Ordering::Acquire);
            if self.head == self.tail_seen {
                return None;
            }
        }
        let page = self.cells.slot(self.head).load(Ordering::Relaxed);
        self.head = self.head.wrapping_add(1);
        // PAIRS WITH Producer::push, load of head: the slot is read before it is given free.
        self.cells.head.store(self.head, Ordering::Release);
        Some(page)
    }

    /// True if a pop would find nothing now.
    #[inline]
    pub fn is_empty(&self) -> bool {
        // PAIRS WITH Producer::push, store of tail.
        self.head == self.tail_seen && self.head == self.cells.tail.load(Ordering::Acquire)
    }
}
