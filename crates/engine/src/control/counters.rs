//! Counters: what each worker did, and for how long.
//!
//! A worker counts in its own memory and publishes at task boundaries. Progress, statistics and diagnosis only read
//! (as in DMR, Yu and Zhang 2017, section 5.2; docs/bibliography.md).

/// An enum with a name for each variant, and the list of all.
macro_rules! named {
    ($(#[$about:meta])* $kind:ident, $(#[$list:meta])* $all:ident: $($(#[$doc:meta])* $name:ident: $text:literal,)*) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(usize)]
        #[non_exhaustive]
        pub enum $kind { $($(#[$doc])* $name,)* }

        $(#[$list])*
        pub const $all: [$kind; [$($text),*].len()] = [$($kind::$name),*];

        impl $kind {
            /// The name in CSV and JSON.
            pub fn name(self) -> &'static str {
                match self { $($kind::$name => $text,)* }
            }
        }
    };
}

named! {
    /// A use of a worker's time. Exactly one phase runs at a time, so the phases of a worker add up to its lifetime.
    Phase,
    /// All phases, in the order of the data path.
    PHASES:
    /// From the start of the job to the worker's first task.
    Start: "start",
    /// Reading input.
    Input: "input",
    /// The map function, including appending to buffers and combining on the map side.
    Map: "map",
    /// Merging what a task changed into shared outputs.
    Merge: "merge",
    /// Flushing the combining buffer into pages.
    Combine: "combine",
    /// Waiting for an empty page.
    SendWait: "send_wait",
    /// Receiving pages, holding them back and copying them.
    Receive: "receive",
    /// Combining received pages into partitions.
    Reduce: "reduce",
    /// Sorting pairs that exceed the memory, and writing them to disk.
    Spill: "spill",
    /// Sorting finished partitions, and merging runs from disk.
    Sort: "sort",
    /// Writing results into pages for the coordinator, or into their file.
    Output: "output",
    /// Nothing to do.
    Idle: "idle",
}

named! {
    /// A count of a worker.
    Count,
    /// All counts.
    COUNTS:
    /// Map tasks run, including lost attempts.
    Tasks: "tasks",
    /// Epochs committed.
    Epochs: "epochs",
    /// Bytes of input read.
    InputBytes: "input_bytes",
    /// Pairs emitted by the map function.
    PairsEmitted: "pairs_emitted",
    /// Pairs that bypassed the combining table, because it had combined little.
    PairsPassed: "pairs_passed",
    /// Pairs written into pages, after combining on the map side.
    PairsSent: "pairs_sent",
    /// Bytes written into pages.
    BytesSent: "bytes_sent",
    /// OS pages of shared outputs that were merged.
    OsPagesMerged: "os_pages_merged",
    /// Pages opened whose memory had to be faulted in.
    PagesFresh: "pages_fresh",
    /// Pages opened whose memory was present, because it was written before or faulted in ahead.
    PagesReused: "pages_reused",
    /// Pages handed over.
    PagesSent: "pages_sent",
    /// Pages received.
    PagesReceived: "pages_received",
    /// Pages copied out of the region because their epoch was still open.
    PagesCopied: "pages_copied",
    /// Pairs combined into partitions.
    PairsReduced: "pairs_reduced",
    /// Times that a reducer started to combine because one key had too many values.
    SkewsFound: "skews_found",
    /// Keys at the end.
    Keys: "keys",
    /// Bytes of the tables or lists of partitions at the end.
    PartitionBytes: "partition_bytes",
    /// The largest memory of pairs waiting for the end of map, in bytes, including what sorting them takes.
    MemoryPeak: "memory_peak_bytes",
    /// The present memory of such pairs, in bytes.
    MemoryNow: "memory_now_bytes",
    /// Runs written to disk because pairs exceeded the memory.
    Runs: "runs",
    /// Runs merged into one because there were too many to merge at once.
    RunsMerged: "runs_merged",
    /// Bytes written to spill files.
    SpilledBytes: "spilled_bytes",
    /// Times a combining buffer was flushed.
    Flushes: "flushes",
    /// Times the worker slept.
    Sleeps: "sleeps",
    /// Page faults served without reading a disk.
    MinorFaults: "minor_faults",
    /// Page faults that read a disk.
    MajorFaults: "major_faults",
    /// Context switches because the worker waited.
    VoluntarySwitches: "voluntary_switches",
    /// Context switches because its time slice ended.
    InvoluntarySwitches: "involuntary_switches",
    /// Allocations; 0 unless the program counts them (`gristmill_os::allocations`).
    Allocations: "allocations",
    /// Bytes allocated; if an allocation grew, only the growth.
    AllocatedBytes: "allocated_bytes",
    /// Processor time in user mode, microseconds.
    UserUs: "user_us",
    /// Processor time in the kernel, microseconds.
    SystemUs: "system_us",
}

/// The number of words for the counters of a worker.
pub(crate) const COUNTERS: usize = PHASES.len() * 2 + COUNTS.len();

/// The counters of one worker.
#[derive(Clone, Debug)]
pub struct Counters {
    pub(super) time_ns: [u64; PHASES.len()],
    pub(super) calls: [u64; PHASES.len()],
    counts: [u64; COUNTS.len()],
}

impl Default for Counters {
    fn default() -> Counters {
        Counters { time_ns: [0; PHASES.len()], calls: [0; PHASES.len()], counts: [0; COUNTS.len()] }
    }
}

impl Counters {
    /// Returns the nanoseconds spent in `phase`.
    pub fn time_ns(&self, phase: Phase) -> u64 {
        self.time_ns[phase as usize]
    }

    /// Returns how often `phase` was entered.
    pub fn calls(&self, phase: Phase) -> u64 {
        self.calls[phase as usize]
    }

    /// Returns the value of `count`.
    pub fn get(&self, count: Count) -> u64 {
        self.counts[count as usize]
    }

    /// Adds to `count`.
    #[inline(always)]
    pub(crate) fn add(&mut self, count: Count, n: u64) {
        self.counts[count as usize] += n;
    }

    pub(crate) fn set(&mut self, count: Count, n: u64) {
        self.counts[count as usize] = n;
    }

    /// Returns the sums over several workers.
    pub fn sum<'a>(workers: impl IntoIterator<Item = &'a Counters>) -> Counters {
        workers.into_iter().fold(Counters::default(), |sum, one| {
            Counters::from_values(sum.values().zip(one.values()).map(|(a, b)| a.wrapping_add(b)))
        })
    }

    pub(crate) fn values(&self) -> impl Iterator<Item = u64> + '_ {
        self.time_ns.iter().chain(&self.calls).chain(&self.counts).copied()
    }

    pub(crate) fn from_values(values: impl Iterator<Item = u64>) -> Counters {
        let mut counters = Counters::default();
        let words = counters.time_ns.iter_mut().chain(&mut counters.calls).chain(&mut counters.counts);
        words.zip(values).for_each(|(word, value)| *word = value);
        counters
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_survive_the_way_through_shared_words() {
        let mut counters = Counters::default();
        counters.add(Count::PairsSent, 7);
        let copy = Counters::from_values(counters.values());
        assert_eq!(copy.get(Count::PairsSent), 7);
        assert_eq!(Counters::sum([&copy, &copy]).get(Count::PairsSent), 14);
    }
}
