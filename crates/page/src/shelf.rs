//! The shelf: memory for pairs that outlive their writer and have many readers.
//!
//! A page goes from one writer to one reader and back. The pairs that one step of a job leaves for the next must stay: they
//! are written once, read by any worker, read again when a reader dies, and freed all at once when no worker can need them
//! any more. So the shelf is cut into *extents*. A worker takes an extent for a *generation* and seals *pieces*
//! of it from the front. When a generation is over, all its extents are free.
//!
//! ```text
//!  extent:   | piece, sealed | piece, sealed | being written | free room ... |
//!  its word: the generation, 0 while it is free
//! ```
//!
//! 1. An extent is written by the one worker whose compare-and-swap took it ([`Shelver::take`]).
//! 2. A [`Piece`] exists only for bytes that their writer has given up ([`Extent::seal`]).
//! 3. Extents become free in one way only, by generation ([`Shelf::clear`]); a dead worker's need no other.

use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::layout::Pages;
use crate::reuse::Reuse;

const FREE: u32 = 0;

/// Bytes on the shelf that no worker writes any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The extent.
    pub extent: u32,
    /// The place in the extent where it starts, in bytes.
    pub start: u32,
    /// The length in bytes.
    pub bytes: u32,
}

/// The shelf of a region, as readers and the coordinator see it.
#[derive(Clone, Copy)]
pub struct Shelf<'r> {
    pages: &'r Pages,
    /// The generation of each extent, `FREE` for none.
    generations: &'r [AtomicU32],
    /// The count of extents ever taken: later ones have no memory yet.
    touched: &'r AtomicU32,
}

impl<'r> Shelf<'r> {
    pub(crate) fn new(pages: &'r Pages, generations: &'r [AtomicU32], touched: &'r AtomicU32) -> Shelf<'r> {
        Shelf { pages, generations, touched }
    }

    /// The bytes of a piece. Its generation must not have been cleared.
    ///
    /// # Panics
    /// When its extent is free, or it does not lie in one.
    pub fn read(&self, piece: Piece) -> &'r [u8] {
        let generation = self.generations[piece.extent as usize].load(Ordering::Acquire);
        assert_ne!(generation, FREE, "a piece is read before its generation is cleared");
        let extent = self.pages.extent_range(piece.extent);
        let start = extent.start + piece.start as usize;
        assert!(start + piece.bytes as usize <= extent.end, "a piece lies in its extent");
        // SAFETY: the range lies in the page area, which lives as long as 'r. Its writer gave it up to make the piece
        // (`Extent::seal`), and nobody can take the extent again before `clear`, whose caller promises that no piece
        // of the generation is read any more.
        unsafe {
            let start = self.pages.region().page_area().add(start);
            std::slice::from_raw_parts(start.as_ptr(), piece.bytes as usize)
        }
    }

    /// Frees every extent of a generation below `generation`.
    ///
    /// Call it only when it is certain that no worker reads a piece of these generations any more, and that none has an
    /// [`Extent`] of them. Writers rely on it.
    pub fn clear(&self, generation: u32) {
        for word in &self.generations[..self.extents_touched()] {
            // PAIRS WITH the compare-and-swap in `take_free`: what was read before is not written before.
            if (1..generation).contains(&word.load(Ordering::Relaxed)) {
                word.store(FREE, Ordering::Release);
            }
        }
    }

    /// Extents in use.
    pub fn extents_taken(&self) -> usize {
        let words = &self.generations[..self.extents_touched()];
        words.iter().filter(|word| word.load(Ordering::Relaxed) != FREE).count()
    }

    fn extents_touched(&self) -> usize {
        self.touched.load(Ordering::Acquire) as usize
    }

    fn take_free(&self, extent: u32, generation: u32) -> bool {
        let word = &self.generations[extent as usize];
        // PAIRS WITH the store in `clear`.
        word.load(Ordering::Relaxed) == FREE
            && word.compare_exchange(FREE, generation, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }
}

/// The writing end of one worker.
///
/// It prefers extents that it wrote before, because its page tables already map their memory.
pub struct Shelver<'r> {
    shelf: Shelf<'r>,
    reuse: Reuse,
    populates: bool,
    known: Vec<u32>,
}

impl<'r> Shelver<'r> {
    /// A writer that keeps the memory of extents that it reuses.
    pub fn new(shelf: Shelf<'r>) -> Shelver<'r> {
        Shelver { shelf, reuse: Reuse::Keep, populates: false, known: Vec::new() }
    }

    /// Chooses whether the memory of a reused extent is kept.
    pub fn set_reuse(&mut self, reuse: Reuse) {
        self.reuse = reuse;
    }

    /// Faults in every extent as a whole when it is first taken.
    pub fn set_populate(&mut self) {
        self.populates = true;
    }

    /// Takes an extent for `generation` (above 0); `None` when the shelf is full.
    pub fn take(&mut self, generation: u32) -> Option<Extent<'r>> {
        assert_ne!(generation, FREE, "generations count from 1");
        let Shelf { pages, generations, touched } = self.shelf;
        let again = self.known.iter().copied().find(|extent| self.shelf.take_free(*extent, generation));
        let (number, is_new) = again.map(|extent| (extent, false)).or_else(|| {
            let more = |count: u32| (count < generations.len() as u32).then_some(count + 1);
            // A worker that dies between the two leaves an extent that is free and touched: others find it below.
            let new = touched.fetch_update(Ordering::AcqRel, Ordering::Relaxed, more).ok();
            let new = new.filter(|extent| self.shelf.take_free(*extent, generation));
            let extent =
                new.or_else(|| (0..generations.len() as u32).find(|extent| self.shelf.take_free(*extent, generation)))?;
            // A process that keeps to its arena may not write here yet.
            let permitted = pages.region().permit_writes(pages.extent_range(extent));
            permitted.expect("the kernel has memory to note one more range");
            self.known.push(extent);
            Some((extent, new.is_some()))
        })?;
        let range = pages.extent_range(number);
        if is_new && self.populates {
            // A kernel that cannot populate leaves the memory to be faulted in later.
            // SAFETY: as in `bytes`.
            drop(unsafe { pages.region().populate(range.clone()) });
        } else if !is_new && self.reuse == Reuse::Discard {
            // A kernel that refuses leaves the memory as it was, which is right too.
            // SAFETY: as in `bytes`.
            drop(unsafe { pages.region().discard(range.clone()) });
        }
        Some(Extent { room: self.bytes(range), number, at: 0 })
    }

    fn bytes(&self, range: Range<usize>) -> &'r mut [u8] {
        // SAFETY: called once after each compare-and-swap that took the extent from FREE, so no other `Extent` names
        // it; pieces of it that were sealed before belong to a generation that was cleared, whose reading had ended.
        // The range lies in the shelf's part of the page area, of which nothing else makes references.
        unsafe {
            let start = self.shelf.pages.region().page_area().add(range.start);
            std::slice::from_raw_parts_mut(start.as_ptr(), range.len())
        }
    }
}

/// An extent being written. Its sealed pieces are out of reach.
pub struct Extent<'r> {
    room: &'r mut [u8],
    number: u32,
    at: usize,
}

impl Extent<'_> {
    /// The bytes that are still free to write.
    pub fn room(&mut self) -> &mut [u8] {
        self.room
    }

    /// Gives up the first `bytes` of the room: from now on they are read only.
    ///
    /// # Panics
    /// When there is less room.
    pub fn seal(&mut self, bytes: usize) -> Piece {
        let piece = Piece { extent: self.number, start: self.at as u32, bytes: bytes as u32 };
        let (_, rest) = std::mem::take(&mut self.room).split_at_mut(bytes);
        self.room = rest;
        self.at += bytes;
        piece
    }
}

impl Pages {
    /// The shelf, empty at the start.
    pub fn shelf(&self) -> Shelf<'_> {
        let (touched, generations) = self.extent_words();
        Shelf::new(self, generations, touched)
    }
}
