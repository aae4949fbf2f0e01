//! The memory that the workers of a run share: words and pages, all of them atomics, so that nothing here is unsafe.

use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use gristmill_os::allocations::Allocations;
use gristmill_os::usage::Usage;
use gristmill_os::{Pieces, Region};
use rustix::time::{ClockId, clock_gettime};

/// The size of a page. Its first word is the number of its pairs; a key and a value follow for each.
pub const PAGE_BYTES: usize = 32 << 10;
pub const PAGE_WORDS: usize = PAGE_BYTES / 8;
/// The pairs of a full page.
pub const PAGE_PAIRS: usize = (PAGE_WORDS - 1) / 2;
/// Pages for each map worker and reduce worker in a pipeline: 128 KiB, as the channels of DMR.
const PAGES_OF_PAIR: usize = 4;
/// Words between those that different workers write: a line of the cache, and the one that is fetched with it.
pub const APART: usize = 32;

/// A number that a worker counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stat {
    /// Pairs that the map function has emitted.
    Emitted,
    /// Pairs in pages, or in the global array.
    Sent,
    Pages,
    /// Nanoseconds in which a hash buffer or a sorted array was copied into pages.
    GroupNs,
    /// Nanoseconds in which pages were handed over or received, with waiting.
    HandOverNs,
    /// Nanoseconds of the map phase, and of what came after it.
    MapNs,
    ReduceNs,
    MapAllocations,
    MapBytes,
    ReduceAllocations,
    ReduceBytes,
    Faults,
    /// Nanoseconds of processor time.
    ProcessorNs,
    /// Nanoseconds in which map workers made their buffers and their ends of channels.
    SetUpNs,
}

/// All numbers with their names, in the order of their definition.
pub const STATS: [(Stat, &str); 14] = [
    (Stat::Emitted, "emitted"),
    (Stat::Sent, "sent"),
    (Stat::Pages, "pages"),
    (Stat::GroupNs, "group_ns"),
    (Stat::HandOverNs, "hand_over_ns"),
    (Stat::MapNs, "map_ns"),
    (Stat::ReduceNs, "reduce_ns"),
    (Stat::MapAllocations, "map_allocations"),
    (Stat::MapBytes, "map_bytes"),
    (Stat::ReduceAllocations, "reduce_allocations"),
    (Stat::ReduceBytes, "reduce_bytes"),
    (Stat::Faults, "faults"),
    (Stat::ProcessorNs, "processor_ns"),
    (Stat::SetUpNs, "set_up_ns"),
];

/// The numbers of a worker.
#[derive(Default)]
pub struct Stats([u64; STATS.len()]);

impl Stats {
    pub fn add(&mut self, stat: Stat, value: u64) {
        self.0[stat as usize] += value;
    }

    /// Adds these numbers to those of all workers.
    pub fn publish(&self, totals: &[AtomicU64]) {
        totals.iter().zip(self.0).for_each(|(total, value)| _ = total.fetch_add(value, Ordering::Relaxed));
    }
}

/// The allocations and the usage of a thread, to take differences.
pub struct Used {
    faults: u64,
    processor_ns: u64,
    allocations: Allocations,
}

impl Used {
    pub fn now() -> Used {
        let time = clock_gettime(ClockId::ThreadCPUTime);
        let processor_ns = time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64;
        Used { faults: Usage::of_thread().minor_faults, processor_ns, allocations: Allocations::of_thread() }
    }

    /// Adds what this thread has used since.
    pub fn add_to(&self, stats: &mut Stats, [count, bytes]: [Stat; 2]) {
        let now = Used::now();
        let allocations = now.allocations - self.allocations;
        stats.add(count, allocations.count);
        stats.add(bytes, allocations.bytes);
        stats.add(Stat::Faults, now.faults - self.faults);
        stats.add(Stat::ProcessorNs, now.processor_ns - self.processor_ns);
    }
}

/// The sizes of a run.
#[derive(Clone, Copy)]
pub struct Sizes {
    pub workers: usize,
    /// The pages that each map worker may have in all, open and sent.
    pub pages_each: usize,
    /// The pages of the channel of a map worker and a reduce worker.
    pub depth: usize,
}

impl Sizes {
    /// With a barrier, reducers hold all pages, and each map worker may fill all of them. Pages that are not touched
    /// take no memory.
    pub fn new(workers: usize, barrier: bool, pairs_max: usize) -> Sizes {
        let depth = if barrier { pairs_max.div_ceil(PAGE_PAIRS) + 2 } else { PAGES_OF_PAIR };
        let pages_each = if barrier { depth + 2 * workers } else { depth * workers };
        Sizes { workers, pages_each, depth }
    }

    pub fn pages(&self) -> usize {
        self.workers * self.pages_each
    }
}

/// The shared memory of a run.
pub struct Shared {
    region: Region,
    /// The pages of channels that remap them.
    pub remapped: Option<Pieces>,
    pub sizes: Sizes,
}

impl Shared {
    pub fn new(sizes: Sizes, remaps: bool) -> io::Result<Shared> {
        let workers = sizes.workers;
        let remapped = remaps.then(|| Pieces::new(workers * workers * sizes.depth, PAGE_BYTES)).transpose()?;
        let layout = Layout::of(sizes);
        let region = Region::new(layout.u64s_at + layout.u64s * 8, 0)?;
        Ok(Shared { region, remapped, sizes })
    }

    /// Returns the words of a run.
    pub fn words(&self) -> Words<'_> {
        let layout = Layout::of(self.sizes);
        let small = self.region.u32s(0, layout.u64s_at / 4);
        let large = self.region.u64s(layout.u64s_at, layout.u64s);
        Words { small, large, sizes: self.sizes }
    }
}

struct Layout {
    u64s_at: usize,
    u64s: usize,
}

impl Layout {
    fn of(sizes: Sizes) -> Layout {
        let small = 4 * sizes.workers * APART + sizes.pages();
        let large = 2 * APART + STATS.len().next_multiple_of(APART) + 2 * sizes.workers * sizes.workers * APART;
        let queues = 2 * sizes.workers * (APART + sizes.pages());
        let u64s = (large + queues).next_multiple_of(512) + sizes.pages() * PAGE_WORDS;
        Layout { u64s_at: (small * 4).next_multiple_of(4096), u64s }
    }
}

/// The words of a run, cut into their uses.
#[derive(Clone, Copy)]
pub struct Words<'s> {
    small: &'s [AtomicU32],
    large: &'s [AtomicU64],
    sizes: Sizes,
}

impl<'s> Words<'s> {
    /// The heads of mailboxes or the latches of queues: one for each reduce worker and, behind them, one for each map
    /// worker, to which pages return.
    pub fn heads(&self) -> [&'s [AtomicU32]; 2] {
        let each = 2 * self.sizes.workers * APART;
        [&self.small[..each], &self.small[each..2 * each]]
    }

    /// A word for each page, by which mailboxes chain them.
    pub fn links(&self) -> &'s [AtomicU32] {
        let from = 4 * self.sizes.workers * APART;
        &self.small[from..from + self.sizes.pages()]
    }

    pub fn sizes(&self) -> Sizes {
        self.sizes
    }

    /// The number of the next task.
    pub fn next_task(&self) -> &'s AtomicU64 {
        &self.large[0]
    }

    /// The number of map workers that have sent their last page.
    pub fn mapped(&self) -> &'s AtomicU64 {
        &self.large[APART]
    }

    pub fn totals(&self) -> &'s [AtomicU64] {
        &self.large[2 * APART..2 * APART + STATS.len()]
    }

    /// The counts of pages that a map worker has sent to a reduce worker, and of those that were read.
    pub fn channel(&self, mapper: usize, reducer: usize) -> [&'s AtomicU64; 2] {
        let pair = mapper * self.sizes.workers + reducer;
        let from = self.channels() + 2 * pair * APART;
        [&self.large[from], &self.large[from + APART]]
    }

    fn channels(&self) -> usize {
        2 * APART + STATS.len().next_multiple_of(APART)
    }

    /// The words of a queue: its ends, and a place for each page.
    pub fn queue(&self, number: usize) -> &'s [AtomicU64] {
        let queues = self.channels() + 2 * self.sizes.workers * self.sizes.workers * APART;
        let words = APART + self.sizes.pages();
        &self.large[queues + number * words..][..words]
    }

    pub fn page(&self, number: u32) -> &'s [AtomicU64] {
        let from = self.large.len() - self.sizes.pages() * PAGE_WORDS;
        &self.large[from + number as usize * PAGE_WORDS..][..PAGE_WORDS]
    }

    /// The numbers of a map worker's pages.
    pub fn arena(&self, mapper: usize) -> Range<u32> {
        let from = mapper * self.sizes.pages_each;
        from as u32..(from + self.sizes.pages_each) as u32
    }
}

/// Returns the word of a worker among words that lie apart.
pub fn of_worker(words: &[AtomicU32], worker: usize) -> &AtomicU32 {
    &words[worker * APART]
}

/// Waiting for another worker: a few turns, then giving the processor away, then sleeping.
#[derive(Default)]
pub struct Pause(u32);

impl Pause {
    pub fn once(&mut self) {
        self.0 += 1;
        match self.0 {
            ..32 => std::hint::spin_loop(),
            32..256 => std::thread::yield_now(),
            _ => std::thread::sleep(std::time::Duration::from_micros(100)),
        }
    }
}
