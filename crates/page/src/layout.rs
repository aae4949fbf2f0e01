//! The layout of the region.
//!
//! ```text
//!  control area (atomics only)                                     page area (bytes)
//!  +-------+-----------+-----------------+---------+-------------+   +---------+-----+----------+-----
//!  | lives | doorbells | rings           | extents | extra words |   | arena 0 | ... | extent 0 | ...
//!  +-------+-----------+-----------------+---------+-------------+   +---------+-----+----------+-----
//!   u32 per  128 bytes   per (producer,    count,    u64 each,        pages_per_arena  extent_bytes
//!   slot     per slot    consumer): data   u32 per   the engine's     pages of         each
//!                        and return ring   extent                     page_bytes each
//!
//!  a ring: see `gristmill_ring::Cells::in_words`
//! ```
//!
//! *Invariants.* A page number is an index into its producer's own arena, so a number and a producer name a
//! page. `ring_slots` is a power of two and at least `pages_per_arena`: a push never finds a ring full,
//! because a producer cannot have more pages in flight than it owns. Extents start at a multiple of
//! `extent_bytes`, itself a multiple of 4096. The area is sparse: memory that no worker touches costs only
//! address space.

use std::io;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use gristmill_os::Region;
use gristmill_os::ended::{Ended, this_worker};
use gristmill_ring::{Cells, Doorbell};

/// Bytes between words that different workers write, so that they do not share a cache line.
const LINE_BYTES: usize = 128;

/// The life of a slot: nobody's, that of the worker with this number + 1, nobody's any more. It only goes on.
const UNCLAIMED: u32 = 0;
const DEAD: u32 = u32::MAX;

/// The sizes of a region: slots, pages, extents, extra words.
#[derive(Clone, Copy, Debug, Default)]
pub struct Shape {
    /// Workers that can ever exist in this region, the coordinator and replacements for the dead included.
    pub slots: usize,
    /// Pages that each slot owns.
    pub pages_per_arena: usize,
    /// Size of a page in bytes; a multiple of 4096, so that a page can be given back to the kernel alone.
    pub page_bytes: usize,
    /// Shared `u64` words for the layer above.
    pub extra_words: usize,
    /// Extents of the shelf.
    pub extents: usize,
    /// Size of an extent in bytes, a multiple of 4096.
    pub extent_bytes: usize,
}

/// A region cut into arenas of pages and the rings between them.
pub struct Pages {
    region: Region,
    shape: Shape,
    ring_slots: usize,
    doorbells_at: usize,
    rings_at: usize,
    extents_at: usize,
    extra_at: usize,
    shelf_at: usize,
}

impl Pages {
    /// Maps a new region of this shape. Every later fork sees it at the same address.
    ///
    /// # Errors
    /// The kernel's error from `memfd_create`, `ftruncate` or `mmap`.
    ///
    /// # Panics
    /// When a count is zero or `page_bytes` is not a multiple of 4096.
    pub fn new(shape: Shape) -> io::Result<Pages> {
        assert!(shape.slots > 0 && shape.pages_per_arena > 0, "a region needs a slot and a page");
        assert!(shape.page_bytes > 0 && shape.page_bytes.is_multiple_of(4096), "page_bytes is a multiple of 4096");
        let ring_slots = shape.pages_per_arena.next_power_of_two();
        let doorbells_at = (shape.slots * 4).next_multiple_of(LINE_BYTES);
        let rings_at = (doorbells_at + shape.slots * LINE_BYTES).next_multiple_of(LINE_BYTES);
        assert!(shape.extent_bytes.is_multiple_of(4096), "extent_bytes is a multiple of 4096");
        let extents_at = rings_at + shape.slots * shape.slots * 2 * Cells::words(ring_slots) * 4;
        let extra_at = (extents_at + (1 + shape.extents) * 4).next_multiple_of(LINE_BYTES);
        let arenas_bytes = shape.slots * shape.pages_per_arena * shape.page_bytes;
        let shelf_at = arenas_bytes.next_multiple_of(shape.extent_bytes.max(1));
        let page_area_bytes = shelf_at + shape.extents * shape.extent_bytes;
        let region = Region::new(extra_at + shape.extra_words * 8, page_area_bytes)?;
        Ok(Pages { region, shape, ring_slots, doorbells_at, rings_at, extents_at, extra_at, shelf_at })
    }

    /// The shape given to [`Pages::new`].
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// The region below, for advice about its memory.
    pub fn region(&self) -> &Region {
        &self.region
    }

    /// Says that the worker of `slot` has ended and touches no page any more. Senders write again then what it was reading.
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
        assert!(slot < self.shape.slots);
        Doorbell::new(&self.region.u32s(self.doorbells_at + slot * LINE_BYTES, 1)[0])
    }

    /// The words of the layer above, zero at the start.
    pub fn extra_words(&self) -> &[AtomicU64] {
        self.region.u64s(self.extra_at, self.shape.extra_words)
    }

    /// Takes from this process the right to write to arenas of other slots, and to extents that it has not taken: whatever a
    /// stray pointer hits there ends this process, and changes nothing. What it receives it reads in place as before.
    ///
    /// # Errors
    /// When the kernel has no memory to note it.
    pub fn keep_to_arena(&self, slot: usize) -> io::Result<()> {
        let own = self.arena_range(slot);
        self.region.forbid_writes(0..own.start)?;
        self.region.forbid_writes(own.end..self.region.page_area_bytes())
    }

    /// How many extents have ever been taken, and the generation of each.
    pub(crate) fn extent_words(&self) -> (&AtomicU32, &[AtomicU32]) {
        let (touched, generations) = self.region.u32s(self.extents_at, 1 + self.shape.extents).split_at(1);
        (&touched[0], generations)
    }

    /// Claims `slot` for the calling worker; false if it was claimed before.
    pub(crate) fn claim_life(&self, slot: usize) -> bool {
        let claim =
            self.life(slot).compare_exchange(UNCLAIMED, this_worker() + 1, Ordering::Relaxed, Ordering::Relaxed);
        claim.is_ok()
    }

    /// Byte range of an extent in the page area.
    pub(crate) fn extent_range(&self, extent: u32) -> std::ops::Range<usize> {
        assert!((extent as usize) < self.shape.extents);
        let start = self.shelf_at + extent as usize * self.shape.extent_bytes;
        start..start + self.shape.extent_bytes
    }

    /// Byte range of `page` of `slot` in the page area.
    pub(crate) fn page_range(&self, slot: usize, page: u32) -> std::ops::Range<usize> {
        assert!(slot < self.shape.slots && (page as usize) < self.shape.pages_per_arena);
        let start = (slot * self.shape.pages_per_arena + page as usize) * self.shape.page_bytes;
        start..start + self.shape.page_bytes
    }

    /// Byte range of the whole arena of `slot`.
    pub(crate) fn arena_range(&self, slot: usize) -> std::ops::Range<usize> {
        let bytes = self.shape.pages_per_arena * self.shape.page_bytes;
        slot * bytes..(slot + 1) * bytes
    }

    /// The ring that carries full pages from `producer` to `consumer`.
    pub(crate) fn data_ring(&self, producer: usize, consumer: usize) -> Cells<'_> {
        self.ring(producer, consumer, 0)
    }

    /// The ring that carries empty pages of `producer` back from `consumer`.
    pub(crate) fn return_ring(&self, producer: usize, consumer: usize) -> Cells<'_> {
        self.ring(producer, consumer, 1)
    }

    fn ring(&self, producer: usize, consumer: usize, road: usize) -> Cells<'_> {
        // Rings that one consumer polls lie together.
        let index = (consumer * self.shape.slots + producer) * 2 + road;
        let words = Cells::words(self.ring_slots);
        Cells::in_words(self.region.u32s(self.rings_at + index * words * 4, words), self.ring_slots)
    }
}
