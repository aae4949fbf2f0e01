//! Three ways to hand a page from a map worker to a reduce worker. No way copies it.
//!
//! ```text
//!  mailbox   a chain of page numbers for each reducer; one compare-and-swap puts a page in
//!  queue     a list of page numbers for each reducer, and a latch that each worker takes first
//!  remap     a ring of pages for each mapper and reducer; each has a window that is mapped onto the next page
//! ```
//!
//! In the first two, pages that were read return to their mapper by the same way.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use gristmill_os::Window;
use gristmill_ring::{Latch, Mailbox};

use super::shared::{APART, Pause, Shared, Words, of_worker};
use super::strategy::ChannelKind;

/// The end of a map worker.
pub struct Outlet<'s> {
    words: Words<'s>,
    mapper: usize,
    end: OutletEnd<'s>,
    pub pages: u64,
    pub hand_over_ns: u64,
}

enum OutletEnd<'s> {
    Numbers { boxes: Boxes<'s>, fresh: std::ops::Range<u32>, free: Vec<u32>, open: Vec<u32> },
    Windows { windows: Vec<Window<'s>>, sent: Vec<u64>, depth: u64 },
}

/// The end of a reduce worker.
pub struct Inlet<'s> {
    words: Words<'s>,
    reducer: usize,
    end: InletEnd<'s>,
    pub hand_over_ns: u64,
}

enum InletEnd<'s> {
    Numbers { boxes: Boxes<'s>, arrived: Vec<u32> },
    Windows { windows: Vec<Window<'s>>, read: Vec<u64>, depth: u64 },
}

/// Mailboxes or queues for numbers of pages: one for each reduce worker, then one for each map worker.
#[derive(Clone, Copy)]
struct Boxes<'s> {
    words: Words<'s>,
    /// The worker that takes latches, from 1 on; `None` for mailboxes, which have none.
    locks_as: Option<u32>,
}

impl Boxes<'_> {
    fn put(&self, to: usize, page: u32) {
        let [heads, latches] = self.words.heads();
        let Some(worker) = self.locks_as else {
            return Mailbox::new(of_worker(heads, to), self.words.links()).put(page);
        };
        let latch = Latch::new(of_worker(latches, to));
        take(&latch, worker);
        let (first, end, places) = queue(self.words.queue(to));
        let at = end.load(Ordering::Relaxed);
        debug_assert!(at - first.load(Ordering::Relaxed) < places.len() as u64, "there is a place for each page");
        places[at as usize % places.len()].store(u64::from(page), Ordering::Relaxed);
        end.store(at + 1, Ordering::Relaxed);
        latch.release();
    }

    /// Takes all pages, the oldest last.
    fn take_all(&self, from: usize, pages: &mut Vec<u32>) {
        let [heads, latches] = self.words.heads();
        let Some(worker) = self.locks_as else {
            let taken = Mailbox::new(of_worker(heads, from), self.words.links()).take_all(pages);
            return taken.unwrap_or_else(|error| panic!("{error}"));
        };
        let latch = Latch::new(of_worker(latches, from));
        take(&latch, worker);
        let (first, end, places) = queue(self.words.queue(from));
        let (begin, stop) = (first.load(Ordering::Relaxed), end.load(Ordering::Relaxed));
        let number = |at: u64| places[at as usize % places.len()].load(Ordering::Relaxed) as u32;
        pages.extend((begin..stop).rev().map(number));
        first.store(stop, Ordering::Relaxed);
        latch.release();
    }
}

fn take(latch: &Latch<'_>, worker: u32) {
    let mut pause = Pause::default();
    while !latch.try_take(worker, |_| false) {
        pause.once();
    }
}

/// Cuts the words of a queue into its first place, its end, and its places.
fn queue(words: &[AtomicU64]) -> (&AtomicU64, &AtomicU64, &[AtomicU64]) {
    let (ends, places) = words.split_at(APART);
    (&ends[0], &ends[1], places)
}

impl<'s> Outlet<'s> {
    pub fn new(shared: &'s Shared, mapper: usize, kind: ChannelKind) -> io::Result<Outlet<'s>> {
        let (words, workers) = (shared.words(), shared.sizes.workers);
        let end = match &shared.remapped {
            Some(pieces) if kind == ChannelKind::Remap => {
                let depth = shared.sizes.depth;
                let window = |reducer| Window::onto(pieces, (mapper * workers + reducer) * depth);
                let windows = (0..workers).map(window).collect::<io::Result<_>>()?;
                OutletEnd::Windows { windows, sent: vec![0; workers], depth: depth as u64 }
            }
            _ => {
                let locks_as = (kind == ChannelKind::Queue).then_some(1 + (workers + mapper) as u32);
                let (boxes, mut fresh) = (Boxes { words, locks_as }, words.arena(mapper));
                let open = fresh.by_ref().take(workers).collect();
                OutletEnd::Numbers { boxes, fresh, free: Vec::new(), open }
            }
        };
        Ok(Outlet { words, mapper, end, pages: 0, hand_over_ns: 0 })
    }

    /// The page that is being filled for a reducer.
    #[inline]
    pub fn page(&self, reducer: usize) -> &[AtomicU64] {
        match &self.end {
            OutletEnd::Numbers { open, .. } => self.words.page(open[reducer]),
            OutletEnd::Windows { windows, .. } => windows[reducer].words(),
        }
    }

    /// Hands this page over, with its number of pairs, and opens another.
    pub fn send(&mut self, reducer: usize, pairs: usize) -> io::Result<()> {
        let began = Instant::now();
        self.page(reducer)[0].store(pairs as u64, Ordering::Relaxed);
        let mut pause = Pause::default();
        match &mut self.end {
            OutletEnd::Numbers { boxes, fresh, free, open } => {
                boxes.put(reducer, open[reducer]);
                let own = self.words.sizes().workers + self.mapper;
                open[reducer] = loop {
                    if free.is_empty() {
                        boxes.take_all(own, free);
                    }
                    // A page that has come home is in the cache.
                    if let Some(page) = free.pop().or_else(|| fresh.next()) {
                        break page;
                    }
                    pause.once();
                };
            }
            OutletEnd::Windows { windows, sent, depth } => {
                let [to_read, read] = self.words.channel(self.mapper, reducer);
                sent[reducer] += 1;
                // PAIRS WITH Inlet::receive: the page is written before it counts as sent.
                to_read.store(sent[reducer], Ordering::Release);
                // PAIRS WITH Inlet::receive: the page was read before it is written again.
                while sent[reducer] - read.load(Ordering::Acquire) >= *depth {
                    pause.once();
                }
                let first = (self.mapper * windows.len() + reducer) as u64 * *depth;
                windows[reducer].show((first + sent[reducer] % *depth) as usize)?;
            }
        }
        self.pages += 1;
        self.hand_over_ns += began.elapsed().as_nanos() as u64;
        Ok(())
    }
}

impl<'s> Inlet<'s> {
    pub fn new(shared: &'s Shared, reducer: usize, kind: ChannelKind) -> io::Result<Inlet<'s>> {
        let (words, workers) = (shared.words(), shared.sizes.workers);
        let end = match &shared.remapped {
            Some(pieces) if kind == ChannelKind::Remap => {
                let depth = shared.sizes.depth;
                let window = |mapper| Window::onto(pieces, (mapper * workers + reducer) * depth);
                let windows = (0..workers).map(window).collect::<io::Result<_>>()?;
                InletEnd::Windows { windows, read: vec![0; workers], depth: depth as u64 }
            }
            _ => {
                let locks_as = (kind == ChannelKind::Queue).then_some(1 + reducer as u32);
                InletEnd::Numbers { boxes: Boxes { words, locks_as }, arrived: Vec::new() }
            }
        };
        Ok(Inlet { words, reducer, end, hand_over_ns: 0 })
    }

    /// Visits the pages that have arrived, and gives each back. Returns false if there was none.
    pub fn receive(&mut self, mut visit: impl FnMut(&[AtomicU64])) -> io::Result<bool> {
        let mut began = Instant::now();
        let mut hand_over_ns = 0;
        // The time of the visit is that of the reducer.
        let mut visit_timed = |page: &[AtomicU64]| {
            hand_over_ns += began.elapsed().as_nanos() as u64;
            visit(page);
            began = Instant::now();
        };
        let mut any = false;
        match &mut self.end {
            InletEnd::Numbers { boxes, arrived } => {
                boxes.take_all(self.reducer, arrived);
                while let Some(page) = arrived.pop() {
                    any = true;
                    visit_timed(self.words.page(page));
                    let mapper = page as usize / self.words.sizes().pages_each;
                    boxes.put(self.words.sizes().workers + mapper, page);
                }
            }
            InletEnd::Windows { windows, read, depth } => {
                let mappers = windows.len();
                for (mapper, window) in windows.iter_mut().enumerate() {
                    let [sent, is_read] = self.words.channel(mapper, self.reducer);
                    // PAIRS WITH Outlet::send.
                    while read[mapper] < sent.load(Ordering::Acquire) {
                        any = true;
                        let first = (mapper * mappers + self.reducer) as u64 * *depth;
                        window.show((first + read[mapper] % *depth) as usize)?;
                        visit_timed(window.words());
                        read[mapper] += 1;
                        // PAIRS WITH Outlet::send.
                        is_read.store(read[mapper], Ordering::Release);
                    }
                }
            }
        }
        self.hand_over_ns += hand_over_ns + began.elapsed().as_nanos() as u64;
        Ok(any)
    }
}
