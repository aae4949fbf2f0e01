//! The two ends of the page channels of one worker.
//!
//! A [`Sender`] owns the pages of its slot's arena and hands them to any consumer; a [`Receiver`] reads
//! pages of any producer and gives them back. Neither takes a lock or calls the kernel, and neither has anything for
//! each of the other workers.

use std::marker::PhantomData;

use gristmill_os::machine::cpu_now;
use gristmill_ring::Overwritten;

use crate::layout::Pages;
use crate::reuse::Reuse;

/// The page is at home: free, or being written by its owner.
const HOME: u32 = u32::MAX;

/// Stays on the thread of the worker whose slot it belongs to: the end of that worker is its end.
type Stays = PhantomData<*const ()>;

/// A page that only its holder may read and write.
pub struct PageMut<'r> {
    bytes: &'r mut [u8],
    number: u32,
    node: u16,
    stays: Stays,
}

impl PageMut<'_> {
    /// The page's bytes, with whatever its last use left in them.
    #[inline(always)]
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        self.bytes
    }

    /// The page's bytes.
    pub fn bytes(&self) -> &[u8] {
        self.bytes
    }

    /// The NUMA node that its memory was taken from, as [`Sender::set_nodes`] numbers them; 0 if it was not called.
    pub fn node(&self) -> u16 {
        self.node
    }
}

/// A received page. No worker writes it until it is given back.
pub struct PageRef<'r> {
    bytes: &'r [u8],
    number: u32,
    producer: usize,
    stays: Stays,
}

impl PageRef<'_> {
    /// The page's bytes.
    #[inline(always)]
    pub fn bytes(&self) -> &[u8] {
        self.bytes
    }

    /// The slot whose arena the page belongs to.
    pub fn producer(&self) -> usize {
        self.producer
    }
}

/// The sending end of one slot: its pages, and where each of them is.
pub struct Sender<'r> {
    pages: &'r Pages,
    slot: usize,
    reuse: Reuse,
    /// The node of each processor, if it matters which memory pages get.
    node_of_cpu: &'r [u16],
    /// The number of the arena's first page.
    first: u32,
    /// Pages that are at home. Those that were never taken are not listed anywhere: an arena that is hardly used costs
    /// little.
    free: Vec<u32>,
    /// For each page that was ever taken, from the first on.
    taken: Vec<Taken>,
    /// The number of pages, the last of the arena, that are not taken before they are asked for by
    /// [`Sender::take_reserve`].
    reserve: usize,
    /// All pages have memory.
    populated: bool,
    fresh_uses: u64,
    repeated_uses: u64,
    /// Pages that have come home, while they are collected.
    returned: Vec<u32>,
    stays: Stays,
}

/// A sender's knowledge of one of its pages.
struct Taken {
    /// The consumer that it was sent to, or `HOME`.
    whereabouts: u32,
    /// Its memory is present.
    faulted_in: bool,
    /// The node of the processor that it was faulted in on.
    node: u16,
}

impl<'r> Sender<'r> {
    pub(crate) fn new(pages: &'r Pages, slot: usize) -> Sender<'r> {
        Sender {
            pages,
            slot,
            reuse: Reuse::Keep,
            node_of_cpu: &[],
            first: (slot * pages.shape().pages_per_arena) as u32,
            free: Vec::new(),
            taken: Vec::new(),
            reserve: 0,
            populated: false,
            fresh_uses: 0,
            repeated_uses: 0,
            returned: Vec::new(),
            stays: PhantomData,
        }
    }

    /// Chooses whether the memory of a returned page is kept.
    pub fn set_reuse(&mut self, reuse: Reuse) {
        self.reuse = reuse;
    }

    /// Reserves the last `pages` pages of the arena: only [`Sender::take_reserve`] takes a reserved page for the first
    /// time. The fewer pages are in use, the more of them stay in the caches.
    pub fn set_reserve(&mut self, pages: usize) {
        assert!(pages <= self.pages.shape().pages_per_arena, "the reserve is a part of the arena");
        self.reserve = pages;
    }

    /// Tells the NUMA node of each processor, so that pages know the node of their memory.
    pub fn set_nodes(&mut self, node_of_cpu: &'r [u16]) {
        self.node_of_cpu = node_of_cpu;
    }

    /// The node that memory comes from if this worker touches it now.
    fn node_here(&self) -> u16 {
        if self.node_of_cpu.is_empty() { 0 } else { self.node_of_cpu.get(cpu_now()).copied().unwrap_or(0) }
    }

    /// Faults in the whole arena now, on the calling worker's NUMA node.
    ///
    /// # Errors
    /// The kernel's error; the arena stays usable.
    pub fn populate(&mut self) -> std::io::Result<()> {
        self.pages.check_claim(self.slot);
        // Pages that were sent are no longer this worker's alone.
        assert!(self.taken.is_empty(), "an arena is populated before its first page is taken");
        // SAFETY: no page of the arena was taken, so there is no reference to any of them, and nobody else makes one
        // of a page that this sender has not sent.
        unsafe { self.pages.region().populate(self.pages.arena_range(self.slot))? };
        self.populated = true;
        Ok(())
    }

    /// The counts of pages taken: with memory to be faulted in, and with memory present.
    pub fn uses(&self) -> (u64, u64) {
        (self.fresh_uses, self.repeated_uses)
    }

    /// A free page, or `None` while all are in flight or held, and those in reserve.
    ///
    /// A page that has come home is taken before one that has no memory yet.
    #[inline]
    pub fn take(&mut self) -> Option<PageMut<'r>> {
        self.pages.check_claim(self.slot);
        if self.free.is_empty() {
            self.collect();
        }
        let number = self.free.pop().or_else(|| self.never_taken())?;
        Some(self.page(number))
    }

    /// A page of the reserve, which is like any other from now on. `None` if they are used up.
    pub fn take_reserve(&mut self) -> Option<PageMut<'r>> {
        self.pages.check_claim(self.slot);
        self.reserve = self.reserve.checked_sub(1)?;
        let number = self.never_taken()?;
        Some(self.page(number))
    }

    /// Makes the page of a number that is at home and in no list.
    #[inline]
    fn page(&mut self, number: u32) -> PageMut<'r> {
        let was_there = std::mem::replace(&mut self.of(number).faulted_in, true);
        if !was_there {
            self.of(number).node = self.node_here();
        }
        let node = self.of(number).node;
        *(if was_there { &mut self.repeated_uses } else { &mut self.fresh_uses }) += 1;
        let range = self.pages.page_range(number);
        // SAFETY: the number was in the free list of the one sender of this slot (`Pages::claim`), or was never taken
        // before, so it is in no mailbox and no other `PageMut` or `PageRef` names it; the range lies inside the page
        // area, which lives as long as 'r and of which no other references to these bytes are made anywhere.
        let bytes = unsafe {
            let start = self.pages.region().page_area().add(range.start);
            std::slice::from_raw_parts_mut(start.as_ptr(), range.len())
        };
        PageMut { bytes, number, node, stays: PhantomData }
    }

    /// The next page of the arena that was never taken, without the reserve.
    fn never_taken(&mut self) -> Option<u32> {
        let index = self.taken.len();
        if index + self.reserve >= self.pages.shape().pages_per_arena {
            return None;
        }
        let node = if self.populated { self.node_here() } else { 0 };
        self.taken.push(Taken { whereabouts: HOME, faulted_in: self.populated, node });
        Some(self.first + index as u32)
    }

    fn of(&mut self, number: u32) -> &mut Taken {
        &mut self.taken[(number - self.first) as usize]
    }

    /// Hands a page to `consumer`.
    pub fn send(&mut self, consumer: usize, page: PageMut<'r>) {
        self.of(page.number).whereabouts = consumer as u32;
        self.pages.arrived(consumer).put(page.number);
    }

    /// Puts a page back that was taken and not sent.
    pub fn keep(&mut self, page: PageMut<'r>) {
        self.free.push(page.number);
    }

    /// Collects the returned pages, and returns their count.
    ///
    /// # Panics
    /// When somebody else has written to the mailbox, so that a page comes home that is there, or of another arena.
    pub fn collect(&mut self) -> usize {
        self.pages.check_claim(self.slot);
        let taken = self.pages.returned(self.slot).take_all(&mut self.returned);
        taken.unwrap_or_else(|error| panic!("{error}"));
        let collected = self.returned.len();
        while let Some(number) = self.returned.pop() {
            self.come_home(number);
        }
        collected
    }

    /// Pages at home and free, without the reserve.
    pub fn free_pages(&self) -> usize {
        self.free.len() + self.pages.shape().pages_per_arena - self.reserve - self.taken.len()
    }

    /// Takes back every page that a dead `consumer` had not returned.
    ///
    /// Nothing may be sent to it afterwards.
    ///
    /// # Panics
    /// When the consumer has not been declared dead ([`Pages::declare_dead`]): it might still be reading.
    pub fn reclaim_from_dead(&mut self, consumer: usize) {
        assert!(self.pages.is_dead(consumer), "slot {consumer} is declared dead before its pages are reclaimed");
        // What it has returned is not taken home twice.
        self.collect();
        for index in 0..self.taken.len() {
            if self.taken[index].whereabouts == consumer as u32 {
                self.come_home(self.first + index as u32);
            }
        }
    }

    fn come_home(&mut self, number: u32) {
        let taken = number.checked_sub(self.first).and_then(|index| self.taken.get_mut(index as usize));
        let was_away = taken.is_some_and(|taken| std::mem::replace(&mut taken.whereabouts, HOME) != HOME);
        assert!(was_away, "a shared word was overwritten: page {number} comes home and was not away");
        if self.reuse == Reuse::Discard {
            // A kernel that refuses leaves the page as it was, which is right too.
            // SAFETY: the page has come home and is in no list yet: its reader gave it up, or runs no more.
            let discarded = unsafe { self.pages.region().discard(self.pages.page_range(number)) };
            self.of(number).faulted_in = discarded.is_err();
        }
        self.free.push(number);
    }
}

/// The receiving end of one slot.
pub struct Receiver<'r> {
    pages: &'r Pages,
    slot: usize,
    /// Taken out of the mailbox, the oldest last.
    arrived: Vec<u32>,
    stays: Stays,
}

impl<'r> Receiver<'r> {
    pub(crate) fn new(pages: &'r Pages, slot: usize) -> Receiver<'r> {
        Receiver { pages, slot, arrived: Vec::new(), stays: PhantomData }
    }

    /// The next page that has arrived. Those of one producer come in the order in which they were sent.
    ///
    /// # Panics
    /// When somebody else has written to the mailbox.
    #[inline]
    pub fn recv(&mut self) -> Option<PageRef<'r>> {
        self.try_recv().unwrap_or_else(|error| panic!("{error}"))
    }

    /// As [`Receiver::recv`].
    ///
    /// # Errors
    /// Somebody else has written to the mailbox. The pages that were in it are lost.
    #[inline]
    pub fn try_recv(&mut self) -> Result<Option<PageRef<'r>>, Overwritten> {
        self.pages.check_claim(self.slot);
        if self.arrived.is_empty() {
            self.pages.arrived(self.slot).take_all(&mut self.arrived)?;
        }
        let Some(number) = self.arrived.pop() else { return Ok(None) };
        let range = self.pages.page_range(number);
        // SAFETY: the mailbox gave us this number exactly once, and its producer gave up the `PageMut` to put
        // it in and will not make another before we return it; the range lies inside the page area.
        let bytes = unsafe {
            let start = self.pages.region().page_area().add(range.start);
            std::slice::from_raw_parts(start.as_ptr(), range.len())
        };
        Ok(Some(PageRef { bytes, number, producer: self.pages.slot_of(number), stays: PhantomData }))
    }

    /// True when no page is waiting.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.arrived.is_empty() && self.pages.arrived(self.slot).is_empty()
    }

    /// Returns a page to its producer, who may write it again at once.
    pub fn give_back(&mut self, page: PageRef<'r>) {
        self.pages.returned(page.producer).put(page.number);
    }
}

impl Pages {
    /// Takes slot `slot` for the calling worker: its sending and its receiving end.
    ///
    /// # Panics
    /// When the slot was claimed before: slots are never used twice, so that what a dead worker left
    /// behind cannot be mistaken for its successor's.
    pub fn claim(&self, slot: usize) -> (Sender<'_>, Receiver<'_>) {
        assert!(self.claim_life(slot), "slot {slot} is claimed once");
        (Sender::new(self, slot), Receiver::new(self, slot))
    }
}
