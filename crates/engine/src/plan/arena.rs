//! Arenas: the size of a page, and how many each worker has.

use crate::error::{Error, Result};
use crate::plan::known::Known;
use crate::plan::reason::Reason::{self, Asked, Because};
use crate::plan::sample::WORTH_BYTES;
use crate::plan::settings::{PagePolicy, Settings};
use crate::plan::workers::Roles;

/// Memory for pages in flight, of all workers that map at once. It is small enough to stay in the last-level cache.
const POOL_BYTES: usize = 16 << 20;
/// The same of one worker, where many map at once: what its own second-level cache holds.
const POOL_BYTES_OF_ONE: usize = 2 << 20;
/// Pages are not smaller than [`PAGE_BYTES_GOOD`] if the pools of all that map at once take at most this. With many
/// reducers for each worker that maps, small pages wake a reducer for each handful of pairs.
const POOLS_BYTES_MAX: usize = 64 << 20;
/// The room for pages of one worker with its reserve, if there is memory: what it sends while the others are busy with
/// long tasks waits there. A map function that works on batches of a million rows emits 16 MiB at a time.
pub(crate) const ARENA_BYTES: usize = 32 << 20;
/// The reserve of a worker whose tasks a sample has planned: an epoch of two tasks of 2 MiB that emit what they read.
const SHORT_RESERVE_BYTES: usize = 4 << 20;
/// All such room together takes at most 1 / 16 of the memory.
const ARENAS_SHARE: usize = 16;
/// The memory that the kernel may map at once.
const HUGE_PAGE_BYTES: usize = 2 << 20;
/// The page size if few workers map at once; measured, see bench/runs.
const PAGE_BYTES_MAX: usize = 32 << 10;
const PAGE_BYTES_MIN: usize = 4 << 10;
/// The page size below which handing pages over costs more than caches gain.
const PAGE_BYTES_GOOD: usize = 16 << 10;
/// The page size if the input is too small to show how much will be emitted, for example if it holds only names of
/// tasks. All pages together then take little memory, which helps if memory is short, and reducers begin early.
/// Measured: covariances are 4 % faster than with 32 KiB. The steps of a search, which begins with as small an input,
/// are 9 % slower, so jobs in steps do not use it.
const PAGE_BYTES_UNKNOWN: usize = 8 << 10;

/// The pages of one worker.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arena {
    pub page_bytes: usize,
    /// How many of its pages a worker always uses.
    pub pool_pages: usize,
    /// How many more it uses while the others are with workers that are busy.
    pub reserve_pages: usize,
    /// The number of pages is a multiple of this.
    pub multiple: usize,
}

impl Arena {
    /// Chooses the pages of each worker.
    pub fn choose(
        known: &Known<'_>,
        roles: Roles,
        map_at_once: usize,
        share_partitions: usize,
        is_on_nodes: bool,
    ) -> Result<(Arena, Reason)> {
        let pool_pages = share_partitions * 2 + roles.reduce_workers * 2;
        // Only workers that map at once write many pages.
        let cached_bytes = (POOL_BYTES / map_at_once).max(POOL_BYTES_OF_ONE) / pool_pages;
        let least_bytes = match pool_pages * PAGE_BYTES_GOOD * map_at_once {
            ..=POOLS_BYTES_MAX => PAGE_BYTES_GOOD,
            _ => PAGE_BYTES_MIN,
        };
        // If the budget is small, the pages of all workers take an eighth of it.
        let affordable_bytes =
            left_bytes(known.settings).map_or(usize::MAX, |bytes| bytes / 8 / (roles.map_workers * pool_pages));
        let (page_bytes, why) = page_bytes(known, cached_bytes, least_bytes, affordable_bytes)?;
        // Where arenas lie on several nodes, no huge page is part of two of them.
        let multiple = match is_on_nodes {
            true => HUGE_PAGE_BYTES >> page_bytes.trailing_zeros().min(HUGE_PAGE_BYTES.trailing_zeros()),
            false => 1,
        };
        let memory_bytes = left_bytes(known.settings).unwrap_or(known.machine.available_bytes as usize / 2);
        let room_bytes = memory_bytes / ARENAS_SHARE / roles.workers();
        let pool_bytes = pool_pages * page_bytes;
        let arena_bytes = wanted_bytes(known, pool_bytes).min(room_bytes);
        let reserve_pages = arena_bytes.saturating_sub(pool_bytes) / page_bytes;
        Ok((Arena { page_bytes, pool_pages, reserve_pages, multiple }, why))
    }

    /// Returns the number of pages, with the reserve.
    pub fn pages(self) -> usize {
        (self.pool_pages + self.reserve_pages).next_multiple_of(self.multiple)
    }
}

/// Returns what is left of the memory that was asked for.
fn left_bytes(settings: &Settings) -> Option<usize> {
    let taken_bytes = settings.held_bytes.saturating_add(settings.keep_bytes.unwrap_or(0) as usize);
    settings.memory_bytes.map(|bytes| bytes.saturating_sub(taken_bytes))
}

/// Chooses the size of a page, given those that the cache holds, that suffices for many reducers, and that memory
/// allows.
fn page_bytes(
    known: &Known<'_>,
    cached_bytes: usize,
    least_bytes: usize,
    affordable_bytes: usize,
) -> Result<(usize, Reason)> {
    if let Some(asked) = known.settings.page_bytes {
        if asked == 0 || !asked.is_multiple_of(4096) || asked > 64 << 20 {
            return Err(Error::Setting(format!(
                "a page of {asked} bytes was asked for; page sizes are multiples of 4096 up to 64 MiB"
            )));
        }
        return Ok((asked, Asked));
    }
    let is_unknown = known.input_bytes < WORTH_BYTES && !known.program.iterates;
    let (most_bytes, why) = match is_unknown {
        true => (PAGE_BYTES_UNKNOWN, "so small an input does not say what will be emitted"),
        false => (PAGE_BYTES_MAX, "the pages of all that map at once stay in the last-level cache"),
    };
    let fitting_bytes = cached_bytes.max(least_bytes).min(affordable_bytes);
    let page_bytes = fitting_bytes.clamp(PAGE_BYTES_MIN, most_bytes) / 4096 * 4096;
    let why = match fitting_bytes < most_bytes {
        true if affordable_bytes == fitting_bytes => "the pages of all workers take an eighth of the memory",
        true if least_bytes == fitting_bytes => "smaller ones would wake reducers too often",
        true => "the pages of all that map at once stay in the last-level cache",
        false => why,
    };
    Ok((page_bytes, Because(why)))
}

/// Returns the bytes of an arena with a reserve that is large enough for the tasks.
fn wanted_bytes(known: &Known<'_>, pool_bytes: usize) -> usize {
    // A reserve that is populated in advance is none.
    if known.settings.pages == PagePolicy::Prealloc {
        return pool_bytes;
    }
    // Tasks that a sample has planned are short, so their pages come home soon.
    let are_short = known.sample.is_some() && known.settings.split_bytes.is_none();
    if are_short { pool_bytes + SHORT_RESERVE_BYTES } else { ARENA_BYTES }
}
