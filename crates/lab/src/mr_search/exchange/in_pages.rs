//! Pages of shared memory between processes, as the engine's: written once, read in place, and given back.
//!
//! ```text
//!  page:  | step, 4 bytes | pairs, 4 bytes | last of its sender in this step, 8 bytes | pairs of 16 bytes ...
//! ```
//!
//! A worker that finds no empty page takes pages in meanwhile, so no two wait for each other. A page of the next step
//! is kept until this one has ended: its sender can be at most one step ahead, because it waits for this worker's last
//! page.

use std::io;

use gristmill_os::futex::SharedFutex;
use gristmill_page::{PageMut, PageRef, Pages, Receiver, Reuse, Sender, Shape};

use super::ends::Exchange;
use crate::mr_search::supply::MemorySource;

const PAGE_BYTES: usize = 32 << 10;
const HEADER_BYTES: usize = 16;
const PAIR_BYTES: usize = 16;

/// Maps the pages of so many workers.
pub fn shared_pages(workers: usize) -> io::Result<Pages> {
    Pages::new(Shape { slots: workers, pages_per_arena: 32 + 4 * workers, page_bytes: PAGE_BYTES, ..Shape::default() })
}

/// The end of one process.
pub struct InPages<'p> {
    pages: &'p Pages,
    sender: Sender<'p>,
    receiver: Receiver<'p>,
    worker: usize,
    step: u32,
    /// For each worker, the page that is being filled, and the pairs in it.
    open: Vec<Option<(PageMut<'p>, u32)>>,
    /// Pages of the next step.
    early: Vec<PageRef<'p>>,
    /// The workers whose last page of this step has come.
    ended: usize,
}

impl<'p> InPages<'p> {
    pub fn new(pages: &'p Pages, worker: usize, source: MemorySource) -> io::Result<InPages<'p>> {
        let (mut sender, receiver) = pages.claim(worker);
        match source {
            MemorySource::Malloc => sender.set_reuse(Reuse::Discard),
            MemorySource::Reuse | MemorySource::Pool => {}
            MemorySource::Prealloc => sender.populate()?,
        }
        let open = (0..pages.shape().slots).map(|_| None).collect();
        Ok(InPages { pages, sender, receiver, worker, step: 0, open, early: Vec::new(), ended: 0 })
    }

    /// Returns an empty page, when there is one.
    fn empty(&mut self, take: &mut impl FnMut([u64; 2])) -> PageMut<'p> {
        loop {
            if let Some(page) = self.sender.take() {
                return page;
            }
            if !self.receive(take) {
                let (sender, receiver) = (&mut self.sender, &self.receiver);
                let is_there = || !receiver.is_empty() || sender.collect() > 0;
                self.pages.doorbell(self.worker).sleep_unless(&SharedFutex, is_there);
            }
        }
    }

    fn send(&mut self, to: usize, (mut page, pairs): (PageMut<'p>, u32), is_last: bool) {
        let bytes = page.bytes_mut();
        bytes[..4].copy_from_slice(&self.step.to_le_bytes());
        bytes[4..8].copy_from_slice(&pairs.to_le_bytes());
        bytes[8..HEADER_BYTES].copy_from_slice(&u64::from(is_last).to_le_bytes());
        self.sender.send(to, page);
        self.pages.doorbell(to).ring(&SharedFutex);
    }

    /// Takes in what has arrived. Returns false if nothing has.
    fn receive(&mut self, take: &mut impl FnMut([u64; 2])) -> bool {
        let mut has_any = false;
        for page in std::mem::take(&mut self.early) {
            has_any |= self.open_page(page, take);
        }
        while let Some(page) = self.receiver.recv() {
            has_any |= self.open_page(page, take);
        }
        has_any
    }

    /// Takes the pairs of a page of this step. Returns false if it is early.
    fn open_page(&mut self, page: PageRef<'p>, take: &mut impl FnMut([u64; 2])) -> bool {
        let (header, body) = page.bytes().split_at(HEADER_BYTES);
        let word = |at: usize| u32::from_le_bytes(*header[at..].first_chunk().expect("four bytes"));
        if word(0) != self.step {
            self.early.push(page);
            return false;
        }
        for pair in &body.as_chunks::<PAIR_BYTES>().0[..word(4) as usize] {
            let (key, value) = pair.split_at(8);
            take([key, value].map(|bytes| u64::from_le_bytes(bytes.try_into().expect("eight bytes"))));
        }
        self.ended += usize::from(word(8) == 1);
        let producer = page.producer();
        self.receiver.give_back(page);
        self.pages.doorbell(producer).ring(&SharedFutex);
        true
    }
}

impl Exchange for InPages<'_> {
    #[inline]
    fn give(&mut self, to: usize, [key, value]: [u64; 2], take: &mut impl FnMut([u64; 2])) -> io::Result<()> {
        let (mut page, pairs) = match self.open[to].take() {
            Some(open) => open,
            None => (self.empty(take), 0),
        };
        let at = HEADER_BYTES + pairs as usize * PAIR_BYTES;
        page.bytes_mut()[at..at + 8].copy_from_slice(&key.to_le_bytes());
        page.bytes_mut()[at + 8..at + PAIR_BYTES].copy_from_slice(&value.to_le_bytes());
        if at + 2 * PAIR_BYTES > PAGE_BYTES {
            self.send(to, (page, pairs + 1), false);
        } else {
            self.open[to] = Some((page, pairs + 1));
        }
        Ok(())
    }

    fn end_step(&mut self, take: &mut impl FnMut([u64; 2])) -> io::Result<()> {
        for to in 0..self.open.len() {
            let last = match self.open[to].take() {
                Some(open) => open,
                None => (self.empty(take), 0),
            };
            self.send(to, last, true);
        }
        while self.ended < self.open.len() {
            if !self.receive(take) && self.ended < self.open.len() {
                let receiver = &self.receiver;
                self.pages.doorbell(self.worker).sleep_unless(&SharedFutex, || !receiver.is_empty());
            }
        }
        self.ended = 0;
        self.step += 1;
        Ok(())
    }
}
