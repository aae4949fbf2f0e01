//! The layout of the region.
//!
//! ```text
//!  control area (atomics only)                                                                page area (bytes)
//!  +-------+-----------+--------+-----------+-------------+--------------+---------------+     +---------+-----+----------+-----
//!  | lives | mailboxes | links  | extents   | extra words | words of     | guarded words |     | arena 0 | ... | extent 0 | ...
//!  |       |           |        |           |             | slot 0, 1 .. |               |     |         |     |          |
//!  +-------+-----------+--------+-----------+-------------+--------------+---------------+     +---------+-----+----------+-----
//!   u32 per  128 bytes   u32 per  count,      u64 each,     whole OS       u64 each,            pages_per_arena  extent_bytes
//!   slot,    per slot    page of  2 u32 per   the engine's  pages of u64   the engine's         pages of         each
//!   deaths               a slot   extent,                                                       page_bytes each
//!                                 1 per slot
//!
//!  a worker writes:      nothing | -------- all ---------- | its own      | nothing       |    its own ...
//!
//!  mailboxes of a slot:  | doorbell | pages sent to it | its own pages that come home | unused ... |
//! ```
//!
//! *Who writes.* A worker process may write where the line above says ([`Pages::keep_to_arena`]); a stray write
//! elsewhere ends it. So `lives`, the words of slots and the guarded words begin and end with an OS page.
//!
//! *Invariants.* The number of a page is its slot times `pages_per_arena` plus its index in the arena, so a number
//! names a page of the region. Each page has one link, because it is in one mailbox at a time. Extents start at a
//! multiple of 4096, and the last of them may lie in a file ([`Pages::with_file`]).
//!
//! *What it costs.* The area is sparse: memory that no worker touches costs only address space. A worker touches its
//! own mailboxes, those of the workers that it sends pages to or returns pages to (32 of them share an OS page), and
//! the links of the pages that it hands over. Nothing is laid out for each pair of workers, and no worker looks at all
//! others.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use gristmill_os::Region;
use gristmill_os::ended::{Ended, this_worker};
use gristmill_os::machine::os_page_bytes;
use gristmill_os::room::{NoRoom, TemporaryFolder};
use gristmill_ring::{Doorbell, Mailbox};

/// Bytes between words that different workers write, so that they do not share a cache line.
const LINE_BYTES: usize = 128;

/// Words in the line of a slot.
const DOORBELL: usize = 0;
const ARRIVED: usize = 1;
const RETURNED: usize = 2;

/// The states of a slot, in their order: unclaimed, claimed by the worker with this number + 1, dead.
const UNCLAIMED: u32 = 0;
const DEAD: u32 = u32::MAX;

/// The sizes of a region: slots, pages, extents, extra words.
#[derive(Clone, Copy, Debug, Default)]
pub struct Shape {
    /// The number of workers that can ever exist in this region, including the coordinator and replacements.
    pub slots: usize,
    /// Pages that each slot owns.
    pub pages_per_arena: usize,
    /// Size of a page in bytes; a multiple of 4096, so that a page can be given back to the kernel alone.
    pub page_bytes: usize,
    /// Shared `u64` words for the layer above, which every worker may write.
    pub extra_words: usize,
    /// `u64` words of each slot for the layer above. A worker process that [keeps to its arena](Pages::keep_to_arena)
    /// writes only those of its own slot.
    pub slot_words: usize,
    /// `u64` words for the layer above that no such worker writes.
    pub guarded_words: usize,
    /// Extents of the shelf.
    pub extents: usize,
    /// How many of them, the last ones, lie in a file ([`Pages::with_file`]).
    pub file_extents: usize,
    /// Size of an extent in bytes, a multiple of 4096.
    pub extent_bytes: usize,
}

/// The words of the shelf in the control area.
#[derive(Clone, Copy)]
pub(crate) struct ShelfWords<'r> {
    /// The count of extents ever taken: later ones have no memory yet.
    pub touched: &'r AtomicU32,
    /// The generation of each extent, 0 for none.
    pub generations: &'r [AtomicU32],
    /// The bytes of each extent that are sealed.
    pub sealed: &'r [AtomicU32],
    /// For each slot, the count of readers and extents that its worker holds.
    pub users: &'r [AtomicU32],
}

/// The number of words that the shelf takes: see [`ShelfWords`].
fn shelf_words(shape: &Shape) -> usize {
    1 + 2 * shape.extents + shape.slots
}

/// A region cut into arenas of pages, and the mailboxes through which their numbers go.
pub struct Pages {
    region: Region,
    shape: Shape,
    mailboxes_at: usize,
    links_at: usize,
    extents_at: usize,
    extra_at: usize,
    slots_at: usize,
    /// The distance between the words of two slots in bytes.
    slot_bytes: usize,
    guarded_at: usize,
    shelf_at: usize,
    /// Where the first extent lies that is in the file.
    file_at: usize,
    file: Option<ShelfFile>,
}

/// A file without a name for extents that memory has no room for.
#[derive(Debug)]
pub struct ShelfFile {
    /// The folder that it lies in, and what must stay free there.
    pub folder: TemporaryFolder,
    /// The file.
    pub file: File,
}

impl Pages {
    /// Maps a new region of this shape. Every later fork sees it at the same address.
    ///
    /// # Errors
    /// The kernel's error from `memfd_create`, `ftruncate` or `mmap`.
    ///
    /// # Panics
    /// When a count is zero, `page_bytes` is not a multiple of 4096, or there are 2^32 pages or more.
    pub fn new(shape: Shape) -> io::Result<Pages> {
        Pages::with_file(Shape { extents: shape.extents - shape.file_extents, file_extents: 0, ..shape }, None)
    }

    /// As [`Pages::new`]; the last [`Shape::file_extents`] of the shelf lie in `file`.
    ///
    /// # Errors
    /// As [`Pages::new`], and when the file cannot be extended or mapped.
    ///
    /// # Panics
    /// As [`Pages::new`], and when there are extents for a file, and no file.
    pub fn with_file(shape: Shape, file: Option<ShelfFile>) -> io::Result<Pages> {
        assert!(shape.file_extents <= shape.extents, "the extents in the file are the last ones of all");
        assert!(shape.slots > 0 && shape.pages_per_arena > 0, "a region needs a slot and a page");
        assert!(shape.page_bytes > 0 && shape.page_bytes.is_multiple_of(4096), "page_bytes is a multiple of 4096");
        assert!(shape.extent_bytes.is_multiple_of(4096), "extent_bytes is a multiple of 4096");
        let pages = shape.slots * shape.pages_per_arena;
        assert!(u32::try_from(pages).is_ok_and(|pages| pages < u32::MAX), "{pages} pages have numbers of 32 bits");
        let os_page_bytes = os_page_bytes();
        let mailboxes_at = ((shape.slots + 1) * 4).next_multiple_of(os_page_bytes);
        let links_at = mailboxes_at + shape.slots * LINE_BYTES;
        let extents_at = (links_at + pages * 4).next_multiple_of(LINE_BYTES);
        let extra_at = (extents_at + shelf_words(&shape) * 4).next_multiple_of(LINE_BYTES);
        let arenas_bytes = pages * shape.page_bytes;
        let shelf_at = arenas_bytes.next_multiple_of(shape.extent_bytes.max(1));
        let in_memory = shape.extents - shape.file_extents;
        let memory_bytes = shelf_at + in_memory * shape.extent_bytes;
        let slots_at = (extra_at + shape.extra_words * 8).next_multiple_of(os_page_bytes);
        let slot_bytes = (shape.slot_words * 8).next_multiple_of(os_page_bytes);
        let guarded_at = slots_at + shape.slots * slot_bytes;
        let control_bytes = guarded_at + shape.guarded_words * 8;
        let file_bytes = shape.file_extents * shape.extent_bytes;
        let region = match &file {
            Some(ShelfFile { file, .. }) => Region::with_file(control_bytes, memory_bytes, file, file_bytes)?,
            None => {
                assert_eq!(shape.file_extents, 0, "extents in a file need one");
                Region::new(control_bytes, memory_bytes)?
            }
        };
        // The region notes how far each kind of atomics reaches, where a worker may not write.
        region.u32s(0, extra_at / 4);
        region.u64s(extra_at, (control_bytes - extra_at) / 8);
        let file_at = region.page_area_bytes() - file_bytes;
        Ok(Pages {
            region,
            shape,
            mailboxes_at,
            links_at,
            extents_at,
            extra_at,
            slots_at,
            slot_bytes,
            guarded_at,
            shelf_at,
            file_at,
            file,
        })
    }

    /// Returns whether an extent lies in the file.
    pub(crate) fn is_in_file(&self, extent: u32) -> bool {
        extent as usize >= self.shape.extents - self.shape.file_extents
    }

    /// Gets room on the disk for an extent that lies in the file. Without it, a write to the extent could end the
    /// process.
    ///
    /// # Errors
    /// The disk has no room, or less than must stay free.
    pub(crate) fn allocate(&self, extent: u32) -> Result<(), NoRoom> {
        let ShelfFile { folder, file } = self.file.as_ref().expect("an extent in a file has one");
        let range = self.extent_range(extent);
        folder.allocate(file, range.start - self.file_at..range.end - self.file_at)
    }

    /// The shape given to [`Pages::new`].
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// The region below, for advice about its memory.
    pub fn region(&self) -> &Region {
        &self.region
    }

    /// Declares that the worker of `slot` has ended and no longer touches any page. Senders may then reuse the pages
    /// that it was reading.
    ///
    /// # Panics
    /// When it was another worker that has ended.
    pub fn declare_dead(&self, slot: usize, ended: &Ended) {
        let life = self.life(slot);
        let claimed = life.load(Ordering::Relaxed);
        assert!(
            claimed == UNCLAIMED || claimed == ended.worker() + 1,
            "slot {slot} is declared dead when its own worker has ended"
        );
        // PAIRS WITH the load in `is_dead`. It fails if somebody claims the slot meanwhile.
        let declared = life.compare_exchange(claimed, DEAD, Ordering::Release, Ordering::Relaxed);
        assert!(declared.is_ok(), "slot {slot} is claimed by nobody but its worker");
        // PAIRS WITH the load in `deaths`: a reader that sees this count also sees that the slot is dead.
        self.deaths_word().fetch_add(1, Ordering::Release);
    }

    /// True when the worker of `slot` runs, or has run.
    pub fn is_claimed(&self, slot: usize) -> bool {
        // Relaxed: nobody infers from it what that worker has done.
        self.life(slot).load(Ordering::Relaxed) != UNCLAIMED
    }

    /// How many slots have been declared dead: as long as it is the same, nobody else has died.
    pub fn deaths(&self) -> u32 {
        // PAIRS WITH `declare_dead`.
        self.deaths_word().load(Ordering::Acquire)
    }

    fn deaths_word(&self) -> &AtomicU32 {
        &self.region.u32s(self.shape.slots * 4, 1)[0]
    }

    /// True after [`Pages::declare_dead`].
    pub fn is_dead(&self, slot: usize) -> bool {
        // PAIRS WITH the store in `declare_dead`.
        self.life(slot).load(Ordering::Acquire) == DEAD
    }

    fn life(&self, slot: usize) -> &AtomicU32 {
        &self.region.u32s(0, self.shape.slots)[slot]
    }

    /// The doorbell on which the worker in `slot` sleeps.
    pub fn doorbell(&self, slot: usize) -> Doorbell<'_> {
        Doorbell::new(self.line_word(slot, DOORBELL))
    }

    /// The mailbox for pages that are sent to `slot`.
    pub(crate) fn arrived(&self, slot: usize) -> Mailbox<'_> {
        Mailbox::new(self.line_word(slot, ARRIVED), self.links())
    }

    /// The mailbox in which the pages of `slot` come home.
    pub(crate) fn returned(&self, slot: usize) -> Mailbox<'_> {
        Mailbox::new(self.line_word(slot, RETURNED), self.links())
    }

    fn line_word(&self, slot: usize, word: usize) -> &AtomicU32 {
        assert!(slot < self.shape.slots);
        &self.region.u32s(self.mailboxes_at + slot * LINE_BYTES, RETURNED + 1)[word]
    }

    fn links(&self) -> &[AtomicU32] {
        self.region.u32s(self.links_at, self.shape.slots * self.shape.pages_per_arena)
    }

    /// The words of the layer above, zero at the start.
    pub fn extra_words(&self) -> &[AtomicU64] {
        self.region.u64s(self.extra_at, self.shape.extra_words)
    }

    /// The words of all slots, and the distance from those of one slot to those of the next. They are zero at the
    /// start.
    pub fn slot_words(&self) -> (&[AtomicU64], usize) {
        (self.region.u64s(self.slots_at, (self.guarded_at - self.slots_at) / 8), self.slot_bytes / 8)
    }

    /// The words that workers may not write, zero at the start.
    pub fn guarded_words(&self) -> &[AtomicU64] {
        self.region.u64s(self.guarded_at, self.shape.guarded_words)
    }

    /// Forbids this process to write to the arenas and the words of other slots, to extents that it has not taken, and
    /// to all that only the coordinator writes. A stray write there kills this process and changes nothing. It still
    /// reads received pages in place. To be called after the process has claimed `slot`.
    ///
    /// # Errors
    /// When the kernel has no memory to note it.
    pub fn keep_to_arena(&self, slot: usize) -> io::Result<()> {
        self.region.forbid_control_writes(0..self.mailboxes_at)?;
        let own_words = self.slots_at + slot * self.slot_bytes;
        self.region.forbid_control_writes(self.slots_at..own_words)?;
        self.region.forbid_control_writes(own_words + self.slot_bytes..self.region.page_area_start())?;
        let own = self.arena_range(slot);
        self.region.forbid_writes(0..own.start)?;
        self.region.forbid_writes(own.end..self.region.page_area_bytes())
    }

    /// For tests: the words of the control area that are in use when this many slots were born, by their kind.
    #[doc(hidden)]
    pub fn words_in_use(&self, born: usize) -> Vec<(&'static str, Vec<&AtomicU32>)> {
        let lines = |word| (0..born).map(|slot| self.line_word(slot, word)).collect();
        let is_set = |word: &&AtomicU32| word.load(Ordering::Relaxed) != 0;
        let ShelfWords { touched, generations, sealed, users } = self.shelf_words();
        vec![
            ("lives", self.region.u32s(0, born).iter().collect()),
            ("deaths", vec![self.deaths_word()]),
            ("doorbells", lines(DOORBELL)),
            ("mailboxes", lines(ARRIVED)),
            ("mailboxes of pages that come home", lines(RETURNED)),
            ("links", self.links().iter().filter(is_set).collect()),
            ("links", self.links().iter().filter(is_set).collect()),
            ("touched extents", if generations.is_empty() { Vec::new() } else { vec![touched] }),
            ("generations", generations.iter().filter(is_set).collect()),
            ("sealed bytes", sealed.iter().filter(is_set).collect()),
            ("users of the shelf", users[..born].iter().filter(|_| !generations.is_empty()).collect()),
        ]
    }

    /// The words of the shelf.
    pub(crate) fn shelf_words(&self) -> ShelfWords<'_> {
        let Shape { extents, slots, .. } = self.shape;
        let words = self.region.u32s(self.extents_at, shelf_words(&self.shape));
        let (touched, words) = words.split_at(1);
        let (generations, words) = words.split_at(extents);
        let (sealed, users) = words.split_at(extents);
        debug_assert_eq!(users.len(), slots);
        ShelfWords { touched: &touched[0], generations, sealed, users }
    }

    /// Panics if the calling worker has not claimed `slot`: it may be a fork, which has copies of the ends.
    #[inline]
    pub(crate) fn check_claim(&self, slot: usize) {
        let claimed = self.life(slot).load(Ordering::Relaxed);
        assert_eq!(claimed, this_worker() + 1, "slot {slot} is used by the worker that has claimed it");
    }

    /// Claims `slot` for the calling worker; false if it was claimed before.
    pub(crate) fn claim_life(&self, slot: usize) -> bool {
        let claim =
            self.life(slot).compare_exchange(UNCLAIMED, this_worker() + 1, Ordering::Relaxed, Ordering::Relaxed);
        claim.is_ok()
    }

    /// Byte range of an extent in the page area.
    pub(crate) fn extent_range(&self, extent: u32) -> Range<usize> {
        assert!((extent as usize) < self.shape.extents);
        let in_memory = self.shape.extents - self.shape.file_extents;
        let start = match (extent as usize).checked_sub(in_memory) {
            None => self.shelf_at + extent as usize * self.shape.extent_bytes,
            Some(in_file) => self.file_at + in_file * self.shape.extent_bytes,
        };
        start..start + self.shape.extent_bytes
    }

    /// Byte range of a page in the page area.
    pub(crate) fn page_range(&self, page: u32) -> Range<usize> {
        assert!((page as usize) < self.shape.slots * self.shape.pages_per_arena);
        let start = page as usize * self.shape.page_bytes;
        start..start + self.shape.page_bytes
    }

    /// The slot whose arena contains `page`.
    pub(crate) fn slot_of(&self, page: u32) -> usize {
        page as usize / self.shape.pages_per_arena
    }

    /// Byte range of the whole arena of `slot`.
    pub(crate) fn arena_range(&self, slot: usize) -> Range<usize> {
        let bytes = self.shape.pages_per_arena * self.shape.page_bytes;
        slot * bytes..(slot + 1) * bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rings for each pair of 1,024 workers and their replacements took 277 GB of addresses, and each worker visited
    /// its part of them.
    #[test]
    fn the_control_area_grows_with_slots_and_pages_and_not_with_pairs_of_slots() {
        let control_bytes = |slots: usize| {
            let shape = Shape { slots, pages_per_arena: 64, page_bytes: 4096, slot_words: 10, ..Shape::default() };
            Pages::new(shape).expect("mapped").guarded_at
        };
        let (few, many) = (control_bytes(100), control_bytes(2000));
        assert!(many <= 20 * few + LINE_BYTES, "{few} bytes for 100 slots, {many} for 2,000");
    }
}
