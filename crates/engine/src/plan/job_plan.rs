//! The plan: a pure function of what is known. The rest of the engine obeys it.
//!
//! Each choice is made by one function, which also returns the reason: see [`workers`], [`combining`], [`partitions`],
//! [`placement`], [`splits`], [`arena`](crate::plan::arena) and [`budget`](crate::plan::budget).

use std::path::PathBuf;
use std::time::Duration;

use gristmill_os::room::TemporaryFolder;

use crate::data::order::Order;
use crate::error::Result;
use crate::plan::arena::Arena;
use crate::plan::budget::Budget;
use crate::plan::combining::{self, CombiningPlan};
use crate::plan::known::Known;
use crate::plan::partitions;
use crate::plan::placement::{self, Places};
use crate::plan::reason::Reasons;
use crate::plan::sample::Weights;
use crate::plan::settings::{Buffer, Exchange, Isolation, PagePolicy, RETRIES};
use crate::plan::splits;
use crate::plan::workers::{self, Roles};
use crate::spill::reduce_memory::ReduceMemory;

/// The least number of dead workers that are replaced before the job gives up.
const SPARE_SLOTS_MIN: usize = 32;
/// By default a record that kills its worker does so three times before it is set aside. At most
/// `BAD_RECORDS_THAT_KILL_MAX` records may.
const SPARE_SLOTS_PER_BAD_RECORD: usize = 3;
const BAD_RECORDS_THAT_KILL_MAX: u32 = 32;

/// Every choice about a job, made once. Workers and reducers obey it and never see settings; `--explain` reads it.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub isolation: Isolation,
    pub exchange: Exchange,
    pub pages: PagePolicy,
    /// Whether each worker both maps and reduces.
    pub fused: bool,
    pub map_workers: usize,
    pub reduce_workers: usize,
    /// The number of partitions of all shares.
    pub partitions: usize,
    /// The number of shares. Each has partitions for all keys. A job has one, or one for each home of workers: then a
    /// share has the pairs of the tasks that are mapped there, and its reducers are there, too.
    pub shares: usize,
    /// The sizes of the partitions of a share, by a sample, if some may be much larger than others.
    pub weights: Option<Weights>,
    pub places: Places,
    /// Whether partitions are ranges of pairs in the order of the result, provided that cuts between them are found.
    pub ranged: bool,
    pub page_bytes: usize,
    pub pages_per_arena: usize,
    /// How many of them are used only while the others are with workers that are busy.
    pub reserve_pages: usize,
    pub spare_slots: usize,
    pub split_bytes: u64,
    /// Whether the first splits are small, and tasks of dead workers go before new ones.
    pub in_order: bool,
    pub chunk_bytes: usize,
    pub buffer: Buffer,
    /// Whether the hash buffer's table may rest while it combines little. False if the user chose the buffer.
    pub table_may_rest: bool,
    pub combining: CombiningPlan,
    /// Whether map-side buffers are emptied after each task, not only at the end of an epoch.
    pub flush_each_task: bool,
    /// The number of map workers that run at the same time: by default at most as many as processors, because more
    /// would only push each other's tables out of the caches. The others reduce, and take over when one ends or dies.
    pub map_at_once: usize,
    /// The number of pages after which an epoch ends, with the task that sends the last of them. It ends sooner if it
    /// has lasted long.
    pub epoch_pages: u64,
    /// The order of the result.
    pub order: Order,
    /// The number of pairs that are wanted.
    pub limit: usize,
    pub retries: u32,
    pub max_failures: Option<u32>,
    /// The largest number of records that are set aside.
    pub skip_bad_records: u32,
    pub task_timeout: Option<Duration>,
    /// At least one folder.
    pub spill_dirs: Vec<TemporaryFolder>,
    /// The one with the most room, for pairs that steps keep and memory has no room for.
    pub shelf_folder: usize,
    /// The bytes that stay free on the file system of the checkpoint.
    pub checkpoint_kept_free_bytes: u64,
    pub budget: Budget,
    /// The share of a reducer.
    pub reduce_memory: ReduceMemory,
    pub why: Reasons,
}

impl Plan {
    /// Makes the plan: chooses everything that the settings leave open.
    pub fn new(known: &Known<'_>) -> Result<Plan> {
        let settings = known.settings;
        let (roles, workers_why, apart) = workers::roles(known)?;
        let Roles { map_workers, reduce_workers, fused } = roles;
        let (map_at_once, map_at_once_why) = workers::map_at_once(known, map_workers);
        let (places, shares, placement_why) = placement::place(known, roles);
        let (split_bytes, splits_why) = splits::split_bytes(known, map_at_once);
        let (chunk_bytes, chunks_why) = splits::chunk_bytes(known);
        let (buffer, buffer_why) = combining::buffer(known)?;
        let (combining, combining_why) = combining::combining(known, buffer);
        let (after, heavy_keys_why) = combining::combine_after(known, combining)?;
        let (share_partitions, partitions_why) = partitions::partitions(known, buffer, reduce_workers)?;
        let is_on_nodes = !places.nodes.is_empty();
        let (arena, pages_why) = Arena::choose(known, roles, map_at_once, share_partitions, is_on_nodes)?;
        let (budget, arena) = Budget::new(known, roles, map_at_once, buffer, arena)?;
        let folder = |dir: &PathBuf| TemporaryFolder::new(dir, settings.keep_free_bytes);
        let spill_dirs: Vec<TemporaryFolder> = settings.spill_folders().iter().map(folder).collect();
        let bad_records = settings.skip_bad_records.min(BAD_RECORDS_THAT_KILL_MAX) as usize;
        Ok(Plan {
            isolation: settings.isolation,
            exchange: settings.exchange,
            pages: settings.pages,
            fused,
            map_workers,
            reduce_workers,
            partitions: share_partitions * shares,
            shares,
            weights: None,
            places,
            ranged: partitions::are_ranges(known),
            page_bytes: arena.page_bytes,
            pages_per_arena: arena.pages(),
            reserve_pages: arena.reserve_pages,
            spare_slots: SPARE_SLOTS_MIN.max(roles.workers()) + SPARE_SLOTS_PER_BAD_RECORD * bad_records,
            split_bytes,
            in_order: settings.in_order,
            chunk_bytes,
            buffer,
            table_may_rest: settings.buffer == Buffer::Auto && !combining.in_order,
            flush_each_task: combining.in_order,
            combining: CombiningPlan { after, ..combining },
            map_at_once,
            epoch_pages: (share_partitions as u64 / 2).max(1),
            order: settings.order,
            limit: settings.limit.unwrap_or(usize::MAX),
            retries: settings.retries.unwrap_or(RETRIES),
            max_failures: settings.max_failures,
            skip_bad_records: settings.skip_bad_records,
            task_timeout: settings.task_timeout,
            shelf_folder: (0..spill_dirs.len()).max_by_key(|at| spill_dirs[*at].room_bytes()).unwrap_or(0),
            spill_dirs,
            checkpoint_kept_free_bytes: settings.checkpoint.as_ref().map_or(0, |at| folder(&at.dir).kept_free_bytes),
            reduce_memory: budget.room(),
            budget,
            why: Reasons {
                workers: workers_why,
                apart,
                map_at_once: map_at_once_why,
                placement: placement_why,
                splits: splits_why,
                chunks: chunks_why,
                buffer: buffer_why,
                combining: combining_why,
                heavy_keys: heavy_keys_why,
                pages: pages_why,
                partitions: partitions_why,
            },
        })
    }

    /// Returns the number of workers at the start.
    pub fn workers(&self) -> usize {
        if self.fused { self.map_workers } else { self.map_workers + self.reduce_workers }
    }

    /// Returns the number of slots in the region: the coordinator, the workers, and their possible replacements.
    pub fn slots(&self) -> usize {
        1 + self.workers() + self.spare_slots
    }

    /// Returns how many pages of one producer a reducer may hold back without copying them. However much all reducers
    /// hold, one page per partition and one more stay with the producer, so that it can always finish its task.
    pub fn held_pages_max(&self) -> usize {
        (self.pages_per_arena - self.share_partitions() - 1) / self.reduce_workers
    }

    /// Returns the number of partitions of a share.
    pub fn share_partitions(&self) -> usize {
        self.partitions / self.shares
    }
}
