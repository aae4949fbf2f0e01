//! The shelf: memory for pairs that outlive their writer and have many readers.
//!
//! A page goes from one writer to one reader and back. The pairs that one step of a job leaves for the next must stay:
//! they are written once, read by any worker, read again when a reader dies, and freed all at once when no worker can
//! need them any more. So the shelf is cut into *extents*. A worker takes an extent for a *generation* and seals
//! *pieces* of it from the front. When a generation is over, all its extents are free.
//!
//! ```text
//!  extent:   | piece, sealed | piece, sealed | being written | free room ... |
//!  its words: the generation, 0 while it is free; how many bytes of it are sealed
//! ```
//!
//! 1. An extent is written by the one worker whose compare-and-swap took it ([`Shelver::take`]).
//! 2. Only bytes that their writer has given up are read ([`Extent::seal`], checked by [`Reader::read`]).
//! 3. Extents become free in one way only, by generation ([`Shelf::clear`]); a dead worker's need no other.
//! 4. Nothing is cleared while a worker holds an [`Extent`] or a [`Reader`]. Each slot counts those of its worker. A
//!    clear marks the extents, looks at the counts, and only then frees them. A reader is counted before it looks at
//!    an extent. So one of the two sees the other, and panics. A dead worker's count is not looked at.

use std::marker::PhantomData;
use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};

use gristmill_os::ended::this_worker;
use gristmill_os::room::NoRoom;
use gristmill_ring::Overwritten;

use crate::layout::{Pages, ShelfWords};
use crate::reuse::Reuse;

/// No generation: free, or about to be.
const FREE: u32 = 0;
const CLEARING: u32 = u32::MAX;

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

/// The shelf of a region.
#[derive(Clone, Copy)]
pub struct Shelf<'r> {
    pages: &'r Pages,
    words: ShelfWords<'r>,
}

/// A use of the shelf by the worker on this thread: while it lasts nothing is cleared.
struct InUse<'r> {
    users: &'r AtomicU32,
    worker: u32,
    /// The worker's end is its end.
    stays: PhantomData<*const ()>,
}

impl Drop for InUse<'_> {
    fn drop(&mut self) {
        // A fork has a copy of it.
        if self.worker == this_worker() {
            // PAIRS WITH the load in `clear`.
            self.users.fetch_sub(1, Ordering::Release);
        }
    }
}

/// Reads pieces. While it lives, no generation is cleared.
pub struct Reader<'r> {
    shelf: Shelf<'r>,
    in_use: InUse<'r>,
}

impl Reader<'_> {
    /// The bytes of a piece.
    ///
    /// # Panics
    /// When its extent is free, or it does not lie in one, or was not sealed.
    pub fn read(&self, piece: Piece) -> &[u8] {
        self.try_read(piece).unwrap_or_else(|error| panic!("{error}"))
    }

    /// As [`Reader::read`].
    ///
    /// # Errors
    /// The extent is free, or the piece does not lie in one, or was not sealed.
    ///
    /// # Panics
    /// When another worker uses the reader.
    pub fn try_read(&self, piece: Piece) -> Result<&[u8], Overwritten> {
        let Shelf { pages, words } = self.shelf;
        assert_eq!(self.in_use.worker, this_worker(), "a reader is used by its own worker");
        if piece.extent as usize >= self.shelf.extents_touched() {
            return Err(Overwritten("a piece lies in no extent that was ever taken"));
        }
        let generation = &words.generations[piece.extent as usize];
        // SeqCst: see `clear`.
        if [FREE, CLEARING].contains(&generation.load(Ordering::SeqCst)) {
            return Err(Overwritten("a piece is read before its generation is cleared, not after"));
        }
        // PAIRS WITH the store in `seal`.
        let sealed = words.sealed[piece.extent as usize].load(Ordering::Acquire) as usize;
        let (start, bytes) = (piece.start as usize, piece.bytes as usize);
        if start + bytes > sealed || sealed > pages.shape().extent_bytes {
            return Err(Overwritten("a piece is read after it was sealed, not before"));
        }
        let start = pages.extent_range(piece.extent).start + start;
        // SAFETY: the range lies in the page area, which lives as long as 'r. Its writer gave it up (`Extent::seal`),
        // and nobody takes the extent again before it is cleared, which ends in a panic while this reader lives.
        Ok(unsafe {
            let start = pages.region().page_area().add(start);
            std::slice::from_raw_parts(start.as_ptr(), bytes)
        })
    }
}

impl<'r> Shelf<'r> {
    pub(crate) fn new(pages: &'r Pages, words: ShelfWords<'r>) -> Shelf<'r> {
        Shelf { pages, words }
    }

    /// Lets the worker that has claimed `slot` read pieces.
    ///
    /// # Panics
    /// When the calling worker is not the one that has claimed it.
    pub fn reader(&self, slot: usize) -> Reader<'r> {
        Reader { shelf: *self, in_use: self.begin_use(slot) }
    }

    fn begin_use(&self, slot: usize) -> InUse<'r> {
        self.pages.check_claim(slot);
        let users = &self.words.users[slot];
        // SeqCst: see `clear`.
        users.fetch_add(1, Ordering::SeqCst);
        InUse { users, worker: this_worker(), stays: PhantomData }
    }

    /// Frees every extent of a generation below `generation`.
    ///
    /// # Errors
    /// A worker that has not been [declared dead](Pages::declare_dead) holds a [`Reader`] or an [`Extent`]. Then
    /// nothing is freed.
    pub fn clear(&self, generation: u32) -> Result<(), Overwritten> {
        let ShelfWords { generations, sealed, users, .. } = self.words;
        let touched = 0..self.extents_touched();
        // Whoever is counted after the look below finds these words. SeqCst: of the two, one sees the other.
        for word in &generations[touched.clone()] {
            let old = word.load(Ordering::Relaxed);
            if (1..generation).contains(&old) {
                let _ = word.compare_exchange(old, CLEARING, Ordering::SeqCst, Ordering::Relaxed);
            }
        }
        let user = (0..users.len()).find(|slot| users[*slot].load(Ordering::SeqCst) > 0 && !self.pages.is_dead(*slot));
        if user.is_some() {
            return Err(Overwritten("the shelf is cleared when the worker of no slot uses it"));
        }
        for extent in touched {
            if generations[extent].load(Ordering::Relaxed) == CLEARING {
                sealed[extent].store(0, Ordering::Relaxed);
                // PAIRS WITH the compare-and-swap in `take_free`: what was read before is not written before.
                generations[extent].store(FREE, Ordering::Release);
            }
        }
        Ok(())
    }

    /// Extents in use.
    pub fn extents_taken(&self) -> usize {
        let words = &self.words.generations[..self.extents_touched()];
        words.iter().filter(|word| word.load(Ordering::Relaxed) != FREE).count()
    }

    fn extents_touched(&self) -> usize {
        // Every worker may write the word.
        (self.words.touched.load(Ordering::Acquire) as usize).min(self.words.generations.len())
    }

    fn take_free(&self, extent: u32, generation: u32) -> bool {
        let word = &self.words.generations[extent as usize];
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
    slot: usize,
    reuse: Reuse,
    populates: bool,
    known: Vec<u32>,
}

impl<'r> Shelver<'r> {
    /// The writer of the worker that has claimed `slot`. It keeps the memory of extents that it reuses.
    pub fn new(shelf: Shelf<'r>, slot: usize) -> Shelver<'r> {
        Shelver { shelf, slot, reuse: Reuse::Keep, populates: false, known: Vec::new() }
    }

    /// Chooses whether the memory of a reused extent is kept.
    pub fn set_reuse(&mut self, reuse: Reuse) {
        self.reuse = reuse;
    }

    /// Faults in every extent as a whole when it is first taken.
    pub fn set_populate(&mut self) {
        self.populates = true;
    }

    /// Takes an extent for `generation` (above 0), in memory as long as there is one.
    ///
    /// # Errors
    /// The shelf is full, or the disk.
    ///
    /// # Panics
    /// When the calling worker is not the one that has claimed the slot.
    pub fn take(&mut self, generation: u32) -> Result<Extent<'r>, NoExtent> {
        assert!(![FREE, CLEARING].contains(&generation), "generations count from 1");
        let in_use = self.shelf.begin_use(self.slot);
        let Shelf { pages, words: ShelfWords { generations, touched, sealed, .. } } = self.shelf;
        let again = self.known.iter().copied().find(|extent| self.shelf.take_free(*extent, generation));
        let taken = again.map(|extent| (extent, false)).or_else(|| {
            let more = |count: u32| (count < generations.len() as u32).then(|| count + 1);
            // A worker that dies between the two leaves an extent that is free and touched: others find it below.
            let new = touched.fetch_update(Ordering::AcqRel, Ordering::Relaxed, more).ok();
            let new = new.filter(|extent| self.shelf.take_free(*extent, generation));
            let extent =
                new.or_else(|| (0..generations.len() as u32).find(|extent| self.shelf.take_free(*extent, generation)))?;
            Some((extent, new.is_some()))
        });
        let (number, is_new) = taken.ok_or(NoExtent::Full)?;
        let range = pages.extent_range(number);
        if again.is_none() {
            if pages.is_in_file(number)
                && let Err(error) = pages.allocate(number)
            {
                generations[number as usize].store(FREE, Ordering::Release);
                return Err(NoExtent::Disk(error));
            }
            // A process that keeps to its arena may not write here yet.
            let permitted = pages.region().permit_writes(range.clone());
            permitted.expect("the kernel has memory to note one more range");
            self.known.push(number);
        }
        if pages.is_in_file(number) {
            // Its room on the disk is kept.
        } else if is_new && self.populates {
            // A kernel that cannot populate leaves the memory to be faulted in later.
            // SAFETY: as in `bytes`.
            drop(unsafe { pages.region().populate(range.clone()) });
        } else if !is_new && self.reuse == Reuse::Discard {
            // A kernel that refuses leaves the memory as it was, which is right too.
            // SAFETY: as in `bytes`.
            drop(unsafe { pages.region().discard(range.clone()) });
        }
        Ok(Extent { room: self.bytes(range), number, at: 0, sealed: &sealed[number as usize], _in_use: in_use })
    }

    fn bytes(&self, range: Range<usize>) -> &'r mut [u8] {
        // SAFETY: called once after each compare-and-swap that took the extent from FREE, so no other `Extent` names
        // it; pieces of it that were sealed before belong to a generation that was cleared, when nobody was reading.
        // The range lies in the shelf's part of the page area, of which nothing else makes references.
        unsafe {
            let start = self.shelf.pages.region().page_area().add(range.start);
            std::slice::from_raw_parts_mut(start.as_ptr(), range.len())
        }
    }
}

/// The reason why no extent could be taken.
#[derive(Debug)]
pub enum NoExtent {
    /// All are taken.
    Full,
    /// The next one lies in a file, for which the disk has no room.
    Disk(NoRoom),
}

/// An extent being written. Its sealed pieces are out of reach.
pub struct Extent<'r> {
    room: &'r mut [u8],
    number: u32,
    at: usize,
    sealed: &'r AtomicU32,
    _in_use: InUse<'r>,
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
        // PAIRS WITH the load in `Reader::read`: only this worker stores.
        self.sealed.store(self.at as u32, Ordering::Release);
        piece
    }
}

impl Pages {
    /// The shelf, empty at the start.
    pub fn shelf(&self) -> Shelf<'_> {
        Shelf::new(self, self.shelf_words())
    }
}
