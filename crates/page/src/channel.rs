//! The two ends of the page channels of one worker.
//!
//! A [`Sender`] owns the pages of its slot's arena and hands them to any consumer; a [`Receiver`] reads
//! pages of any producer and gives them back. Neither takes a lock or calls the kernel.

use std::marker::PhantomData;

use gristmill_ring::{Consumer, Producer};

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

/// The sending end of one slot: its free pages and its rings towards every consumer.
pub struct Sender<'r> {
    pages: &'r Pages,
    slot: usize,
    reuse: Reuse,
    free: Vec<u32>,
    /// For each page of the arena: its memory is present.
    faulted_in: Vec<bool>,
    fresh_uses: u64,
    repeated_uses: u64,
    /// For each page of the arena: the consumer it was sent to, or `HOME`.
    whereabouts: Vec<u32>,
    /// For each consumer, its two rings, once a page has been sent to it.
    rings: Vec<Option<(Producer<'r>, Consumer<'r>)>>,
    stays: Stays,
}

impl<'r> Sender<'r> {
    pub(crate) fn new(pages: &'r Pages, slot: usize) -> Sender<'r> {
        let shape = pages.shape();
        Sender {
            pages,
            slot,
            reuse: Reuse::Keep,
            free: (0..shape.pages_per_arena as u32).rev().collect(),
            faulted_in: vec![false; shape.pages_per_arena],
            fresh_uses: 0,
            repeated_uses: 0,
            whereabouts: vec![HOME; shape.pages_per_arena],
            rings: (0..shape.slots).map(|_| None).collect(),
            stays: PhantomData,
        }
    }

    /// Chooses whether the memory of a returned page is kept.
    pub fn set_reuse(&mut self, reuse: Reuse) {
        self.reuse = reuse;
    }

    /// Faults in the whole arena now, on the calling worker's NUMA node.
    ///
    /// # Errors
    /// The kernel's error; the arena stays usable.
    pub fn populate(&mut self) -> std::io::Result<()> {
        // Pages that were sent are no longer this worker's alone.
        assert_eq!(self.free.len(), self.faulted_in.len(), "an arena is populated before its first page is taken");
        // SAFETY: all pages of the arena are free, so there is no reference to any of them, and nobody else makes one of a page that this
        // sender has not sent.
        unsafe { self.pages.region().populate(self.pages.arena_range(self.slot))? };
        self.faulted_in.fill(true);
        Ok(())
    }

    /// The counts of pages taken: with memory to be faulted in, and with memory present.
    pub fn uses(&self) -> (u64, u64) {
        (self.fresh_uses, self.repeated_uses)
    }

    /// A free page, or `None` while all are in flight or held.
    #[inline]
    pub fn take(&mut self) -> Option<PageMut<'r>> {
        if self.free.is_empty() {
            self.collect();
        }
        let number = self.free.pop()?;
        let was_there = std::mem::replace(&mut self.faulted_in[number as usize], true);
        *(if was_there { &mut self.repeated_uses } else { &mut self.fresh_uses }) += 1;
        let range = self.pages.page_range(self.slot, number);
        // SAFETY: the number was in the free list of the one sender of this slot (`Pages::claim`), so it is
        // in no ring and no other `PageMut` or `PageRef` names it; the range lies inside the page area,
        // which lives as long as 'r and of which no other references to these bytes are made anywhere.
        let bytes = unsafe {
            let start = self.pages.region().page_area().add(range.start);
            std::slice::from_raw_parts_mut(start.as_ptr(), range.len())
        };
        Some(PageMut { bytes, number, stays: PhantomData })
    }

    /// Hands a page to `consumer`.
    pub fn send(&mut self, consumer: usize, page: PageMut<'r>) {
        self.whereabouts[page.number as usize] = consumer as u32;
        let (pages, slot) = (self.pages, self.slot);
        let (data, _) = self.rings[consumer].get_or_insert_with(|| {
            (Producer::attach(pages.data_ring(slot, consumer)), Consumer::attach(pages.return_ring(slot, consumer)))
        });
        let pushed = data.push(page.number);
        assert!(pushed.is_ok(), "a ring holds all pages of an arena");
    }

    /// Puts a page back that was taken and not sent.
    pub fn keep(&mut self, page: PageMut<'r>) {
        self.free.push(page.number);
    }

    /// Collects the returned pages, and returns their count.
    pub fn collect(&mut self) -> usize {
        let mut collected = 0;
        for consumer in 0..self.rings.len() {
            while let Some(number) = self.rings[consumer].as_mut().and_then(|(_, returns)| returns.pop()) {
                debug_assert_eq!(self.whereabouts[number as usize], consumer as u32);
                self.come_home(number);
                collected += 1;
            }
        }
        collected
    }

    /// Pages at home and free.
    pub fn free_pages(&self) -> usize {
        self.free.len()
    }

    /// Takes back every page that a dead `consumer` had not returned.
    ///
    /// Nothing may be sent to it afterwards.
    ///
    /// # Panics
    /// When the consumer has not been declared dead ([`Pages::declare_dead`]): it might still be reading.
    pub fn reclaim_from_dead(&mut self, consumer: usize) {
        assert!(self.pages.is_dead(consumer), "slot {consumer} is declared dead before its pages are reclaimed");
        self.collect();
        for number in 0..self.whereabouts.len() as u32 {
            if self.whereabouts[number as usize] == consumer as u32 {
                self.come_home(number);
            }
        }
    }

    fn come_home(&mut self, number: u32) {
        self.whereabouts[number as usize] = HOME;
        if self.reuse == Reuse::Discard {
            // A kernel that refuses leaves the page as it was, which is right too.
            // SAFETY: the page has come home and is in no list yet: its reader gave it up, or runs no more.
            let discarded = unsafe { self.pages.region().discard(self.pages.page_range(self.slot, number)) };
            self.faulted_in[number as usize] = discarded.is_err();
        }
        self.free.push(number);
    }
}

/// The receiving end of one slot: its rings from every producer.
pub struct Receiver<'r> {
    pages: &'r Pages,
    slot: usize,
    /// The two rings of each producer up to the last one used.
    rings: Vec<(Consumer<'r>, Producer<'r>)>,
    stays: Stays,
}

impl<'r> Receiver<'r> {
    pub(crate) fn new(pages: &'r Pages, slot: usize) -> Receiver<'r> {
        Receiver { pages, slot, rings: Vec::new(), stays: PhantomData }
    }

    /// Attaches the rings of all producers below `producers`.
    fn attach(&mut self, producers: usize) {
        for producer in self.rings.len()..producers {
            let data = Consumer::attach(self.pages.data_ring(producer, self.slot));
            self.rings.push((data, Producer::attach(self.pages.return_ring(producer, self.slot))));
        }
    }

    /// The next page of `producer`, if one has arrived.
    #[inline]
    pub fn recv(&mut self, producer: usize) -> Option<PageRef<'r>> {
        self.attach(producer + 1);
        let number = self.rings[producer].0.pop()?;
        let range = self.pages.page_range(producer, number);
        // SAFETY: the ring gave us this number exactly once, and its producer gave up the `PageMut` to push
        // it and will not make another before we return it; the range lies inside the page area.
        let bytes = unsafe {
            let start = self.pages.region().page_area().add(range.start);
            std::slice::from_raw_parts(start.as_ptr(), range.len())
        };
        Some(PageRef { bytes, number, producer, stays: PhantomData })
    }

    /// True when no page of `producer` is waiting.
    pub fn is_empty(&self, producer: usize) -> bool {
        match self.rings.get(producer) {
            Some((data, _)) => data.is_empty(),
            None => Consumer::attach(self.pages.data_ring(producer, self.slot)).is_empty(),
        }
    }

    /// Returns a page to its producer, who may write it again at once.
    pub fn give_back(&mut self, page: PageRef<'r>) {
        let pushed = self.rings[page.producer].1.push(page.number);
        assert!(pushed.is_ok(), "a return ring holds all pages of an arena");
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
