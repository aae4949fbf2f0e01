//! The memory of a job, divided once before it starts.
//!
//! ```text
//!  budget = pages of the region + tables and read buffers of the workers that map at once
//!         + the base of each process + results that the coordinator holds back
//!         + in a job in steps, the pairs that one step keeps for the next
//!         + memory that the program already holds, such as a matrix
//!         + at most half of the rest for tasks: decoders of the input, and files that map functions unpack
//!         + a share for each reducer:  5/8 pairs, with the rows that sort them
//!                                      1/4 blocks of runs that are written or merged
//!                                      1/8 pages copied because their epoch is still open
//!                                      (a job in steps writes no runs: 7/8 pairs, 1/8 copied pages)
//! ```
//!
//! The budget does not include the kernel's own memory (page tables, page cache, pipes), nor allocations that the map
//! function or the receiver of the result does not declare ([`MapReduce::UNPACKS`](crate::MapReduce::UNPACKS),
//! [`Job::holds`](crate::Job::holds)).

use crate::error::{Error, Result};
use crate::memory::shown;
use crate::plan::arena::Arena;
use crate::plan::known::Known;
use crate::plan::settings::{Buffer, PagePolicy};
use crate::plan::splits::CHUNK_BYTES;
use crate::plan::workers::Roles;
use crate::spill::reduce_memory::ReduceMemory;

/// The part of the available memory that a job takes by default: 1 / 2. The other half is left to the page cache,
/// through which spill files are written and read.
const DEFAULT_PART: u64 = 2;
/// A job in steps spills nothing. It takes this part for the pairs that it keeps from step to step, and half as much
/// for the rest.
const DEFAULT_KEEP_PART: u64 = 2;
/// The least memory in which a reducer can keep pairs for the next step.
const KEEP_BYTES_MIN: usize = 128 << 10;
/// The stack, heap and touched data of an idle worker.
const PROCESS_BYTES: usize = 1 << 20;
/// The least memory in which a reducer can sort and merge.
const SHARE_BYTES_MIN: usize = 64 << 10;
/// The size of a block of a run: large enough that seeks on a spinning disk do not matter, and small enough that many
/// blocks fit.
const BLOCK_BYTES_MAX: usize = 256 << 10;
const BLOCK_BYTES_MIN: usize = 1 << 10;
/// The number of streams that can be merged at once even with the smallest share.
const STREAMS_MIN: usize = 8;

/// The memory that a job needs before its reducers keep the first pair.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Needs {
    pub workers: usize,
    pub reduce_workers: usize,
    /// All pages of all workers at the start.
    pub pages_bytes: usize,
    /// Tables and read buffers of the workers that map at once.
    pub maps_bytes: usize,
    /// Whether the job runs in steps and keeps pairs from one to the next.
    pub iterates: bool,
    /// The limit set by the user, if any.
    pub keep_bytes: Option<usize>,
    /// The memory that the program holds for the whole job.
    pub held_bytes: usize,
    /// The memory that the program will hold in addition.
    pub will_hold_bytes: usize,
    /// The number of tasks that run at once.
    pub tasks: usize,
    /// The most memory that decoding a file takes; 0 if it takes next to none.
    pub decoder_bytes_max: usize,
    /// Whether map functions take memory for what they make of files.
    pub unpacks: bool,
}

impl Needs {
    /// Returns the memory of a task to decode its file, and for what its map function makes of it. All tasks together
    /// get at most half of `spare_bytes`, the memory above the reducers' minimum.
    fn of_a_task(self, spare_bytes: usize) -> (usize, usize) {
        let half = spare_bytes / 2 / self.tasks.max(1);
        match (self.decoder_bytes_max, self.unpacks) {
            (0, false) => (0, 0),
            (0, true) => (0, half),
            (most, false) => (half.min(most), 0),
            (most, true) => {
                let decoder_bytes = (half / 2).min(most);
                (decoder_bytes, half - decoder_bytes)
            }
        }
    }
}

/// The division of a job's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Budget {
    pub total_bytes: usize,
    /// The pairs that steps keep from one to the next.
    pub keep_bytes: usize,
    /// Results without order that the coordinator holds back.
    pub result_bytes: usize,
    /// The share of each reducer.
    pub share_bytes: usize,
    /// The memory of each task to decode its file.
    pub decoder_bytes: usize,
    /// The memory of each task for what its map function makes of the file.
    pub unpack_bytes: usize,
}

impl Budget {
    /// Divides the memory of a job. Returns its arenas without their reserve, if that is what makes the memory suffice.
    pub fn new(
        known: &Known<'_>,
        roles: Roles,
        map_at_once: usize,
        buffer: Buffer,
        arena: Arena,
    ) -> Result<(Budget, Arena)> {
        let Known { settings, program, .. } = *known;
        let buffer_bytes = match buffer {
            Buffer::Hash => program.hash_bytes,
            Buffer::Dense => program.keys.unwrap_or(0) * program.place_bytes,
            Buffer::Auto | Buffer::Array => 0,
        };
        let workers = roles.workers();
        let pages_bytes = |arena: Arena| workers * arena.pages() * arena.page_bytes;
        let (least, available) =
            (pages_bytes(Arena { reserve_pages: 0, ..arena }) as u64, known.machine.available_bytes);
        // Other pages take memory when they are used.
        if settings.pages == PagePolicy::Prealloc && settings.memory_bytes.is_none() && least > available {
            return Err(Error::Setting(format!(
                "the pages that are faulted in before the first task take {}, and {} are available: set a smaller \
                 Job::page_bytes, or fewer Job::partitions",
                shown(least),
                shown(available)
            )));
        }
        let with = |arena: Arena| {
            let needs = Needs {
                workers,
                reduce_workers: roles.reduce_workers,
                pages_bytes: pages_bytes(arena),
                maps_bytes: map_at_once * (buffer_bytes + CHUNK_BYTES),
                iterates: program.iterates,
                keep_bytes: settings.keep_bytes.map(|bytes| bytes as usize),
                held_bytes: settings.held_bytes,
                will_hold_bytes: settings.will_hold_bytes,
                tasks: map_at_once,
                decoder_bytes_max: program.decoder_bytes_max,
                unpacks: program.unpacks,
            };
            Ok((Budget::divide(settings.memory_bytes, known.machine.available_bytes, needs)?, arena))
        };
        with(arena).or_else(|_: Error| with(Arena { reserve_pages: 0, ..arena }))
    }

    /// Divides the memory that was `asked` for, or a part of the available memory.
    pub fn divide(asked: Option<usize>, available_bytes: u64, needs: Needs) -> Result<Budget> {
        let Needs { workers, reduce_workers, pages_bytes, maps_bytes, iterates, keep_bytes, .. } = needs;
        let processes_bytes = (workers + 1) * PROCESS_BYTES;
        // Memory that is already held is no longer part of the available memory.
        let held_bytes = if asked.is_some() { needs.held_bytes.saturating_add(needs.will_hold_bytes) } else { 0 };
        let too_large = |limit_bytes: u64| {
            let (held, limit) =
                (shown(needs.held_bytes.saturating_add(needs.will_hold_bytes) as u64), shown(limit_bytes));
            Err(Error::Setting(format!(
                "what the program holds, its result included, takes {held} of memory, and there are {limit} for it: raise \
                 Job::memory if there is more, or take a smaller input"
            )))
        };
        let available_bytes = match (asked, available_bytes.checked_sub(needs.will_hold_bytes as u64)) {
            (None, None) => return too_large(available_bytes),
            (None, Some(rest)) => rest,
            (Some(asked), _) if held_bytes > asked => return too_large(asked as u64),
            (Some(_), _) => available_bytes,
        };
        let fixed = pages_bytes + maps_bytes + processes_bytes + held_bytes;
        // The coordinator holds back an eighth of a reducer's share, or an eighth of all shares if there are few
        // reducers.
        let reduce_least = SHARE_BYTES_MIN * reduce_workers / 8 * 9 + SHARE_BYTES_MIN / 8;
        let rest_least = fixed + reduce_least;
        let keep_least = if iterates { keep_bytes.unwrap_or(KEEP_BYTES_MIN * reduce_workers) } else { 0 };
        let least = rest_least + keep_least;
        let keep = |unasked: usize| if iterates { keep_bytes.unwrap_or(unasked) } else { 0 };
        let part = |part: u64| (available_bytes / part) as usize;
        let (total_bytes, keep_bytes) = match asked {
            None if iterates => {
                let keep_bytes = keep(part(DEFAULT_KEEP_PART).max(keep_least));
                (rest_least.max(part(2 * DEFAULT_KEEP_PART)) + keep_bytes, keep_bytes)
            }
            None => (least.max(part(DEFAULT_PART)), 0),
            Some(asked) if asked >= least => (asked, keep((asked - fixed) / 2)),
            Some(asked) => {
                let mib = |bytes: usize| bytes.div_ceil(1 << 20);
                let given = if asked < 1 << 20 { format!("{asked} bytes") } else { format!("{} MiB", asked >> 20) };
                let kept =
                    if iterates { format!("{} to keep from step to step, ", mib(keep_least)) } else { String::new() };
                let plural = if workers == 1 { "" } else { "s" };
                let held = match held_bytes {
                    0 => String::new(),
                    _ => format!("{} for what the program holds, ", mib(held_bytes)),
                };
                return Err(Error::Setting(format!(
                    "a memory of {given} is too little for this job, which needs at least {} MiB: {} for pages, {} for \
                     tables and buffers of the workers that map at once, {} for {workers} worker{plural} and the \
                     coordinator, {held}{kept}and the rest to reduce in. Raise Job::memory, or take fewer workers",
                    mib(least),
                    mib(pages_bytes),
                    mib(maps_bytes),
                    mib(processes_bytes),
                )));
            }
        };
        let left = total_bytes - fixed - keep_bytes;
        let (decoder_bytes, unpack_bytes) = needs.of_a_task(left - reduce_least);
        let left = left - needs.tasks * (decoder_bytes + unpack_bytes);
        let result_bytes = left / 9;
        Ok(Budget {
            total_bytes,
            keep_bytes,
            result_bytes,
            share_bytes: (left - result_bytes) / reduce_workers,
            decoder_bytes,
            unpack_bytes,
        })
    }

    /// Divides the share of a reducer.
    pub fn room(self) -> ReduceMemory {
        let blocks_bytes = self.share_bytes / 4;
        // Each stream that is read needs two blocks, one as stored and one decompressed; so does the run that is
        // written.
        let block_bytes = (blocks_bytes / 2 / (2 * STREAMS_MIN)).clamp(BLOCK_BYTES_MIN, BLOCK_BYTES_MAX);
        ReduceMemory {
            pairs_bytes: self.share_bytes / 8 * 5,
            held_bytes: self.share_bytes / 8,
            block_bytes,
            streams_max: (blocks_bytes / (2 * block_bytes)).max(STREAMS_MIN),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_shares_never_exceed_the_budget(
            asked in 1usize..1 << 40, workers in 1usize..1024, pages_bytes in 0usize..1 << 30, maps_bytes in 0usize..1 << 30,
            iterates: bool, keep_bytes in prop::option::of(0usize..1 << 30),
            held_bytes in 0usize..1 << 30, will_hold_bytes in 0usize..1 << 30, decoder_bytes_max in 0usize..1 << 28, unpacks: bool,
        ) {
            let needs = Needs {
                workers, reduce_workers: workers, pages_bytes, maps_bytes, iterates, keep_bytes, held_bytes, will_hold_bytes,
                tasks: workers, decoder_bytes_max, unpacks,
            };
            if let Ok(budget) = Budget::divide(Some(asked), 0, needs) {
                let ReduceMemory { pairs_bytes, held_bytes, block_bytes, streams_max, .. } = budget.room();
                let blocks_bytes = 2 * block_bytes * streams_max;
                let reducers = workers * (pairs_bytes + held_bytes + blocks_bytes);
                let tasks = workers * (budget.decoder_bytes + budget.unpack_bytes) + needs.held_bytes + will_hold_bytes;
                prop_assert!(pages_bytes + maps_bytes + reducers + tasks + budget.result_bytes + budget.keep_bytes <= asked);
                prop_assert_eq!(budget.keep_bytes > 0, iterates && keep_bytes != Some(0));
                prop_assert_eq!(budget.total_bytes, asked);
            }
        }
    }

    #[test]
    fn too_little_memory_is_an_error_that_names_the_least() {
        let once = Needs {
            workers: 4,
            reduce_workers: 4,
            pages_bytes: 4 << 20,
            maps_bytes: 2 << 20,
            iterates: false,
            keep_bytes: None,
            held_bytes: 0,
            will_hold_bytes: 0,
            tasks: 4,
            decoder_bytes_max: 0,
            unpacks: false,
        };
        let why = Budget::divide(Some(8 << 20), 0, once).expect_err("too little").to_string();
        assert!(why.starts_with("a memory of 8 MiB is too little for this job, which needs at least 12 MiB"), "{why}");
        Budget::divide(Some(12 << 20), 0, once).expect("what was named as the least is enough");
        let steps = Needs { iterates: true, keep_bytes: Some(3 << 20), ..once };
        let why = Budget::divide(Some(12 << 20), 0, steps).expect_err("too little").to_string();
        assert!(why.contains("needs at least 15 MiB") && why.contains("3 to keep from step to step"), "{why}");
        Budget::divide(Some(15 << 20), 0, steps).expect("what was named as the least is enough");
        let holds = Needs { held_bytes: 3 << 20, ..once };
        let why = Budget::divide(Some(12 << 20), 0, holds).expect_err("too little").to_string();
        assert!(why.contains("needs at least 15 MiB") && why.contains("3 for what the program holds"), "{why}");
        let will_hold = Needs { will_hold_bytes: 80 << 30, ..once };
        for asked in [Some(64 << 20), None] {
            let why = Budget::divide(asked, 64 << 20, will_hold).expect_err("too little").to_string();
            assert!(why.contains("takes 80.0 GiB of memory, and there are 64.0 MiB for it"), "{why}");
        }
        for needs in [once, steps, holds] {
            Budget::divide(None, 0, needs).expect("unasked, the least is taken whatever is available");
        }
    }
}
