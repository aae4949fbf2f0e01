//! The plan: a pure function of machine, settings, input, a sample of the input, and history. The rest of the engine obeys it.

use std::path::PathBuf;
use std::time::Duration;

use gristmill_os::machine::{NumaNode, Processors};
use gristmill_os::room::TemporaryFolder;

use crate::data::order::Order;
use crate::error::{Error, Result};
use crate::input::tasks::FIRST_SPLIT_BYTES;
use crate::plan::budget::{Budget, Needs};
use crate::plan::history::{self, Learned};
use crate::plan::placement::{Places, reduces_by_node};
use crate::plan::sample::{Sample, WORTH_BYTES};
use crate::plan::settings::{Buffer, Combining, Exchange, Isolation, PagePolicy, Placement, Settings};
use crate::spill::reduce_memory::ReduceMemory;

/// Memory for pages in flight, of all workers that map at once. It is small enough to stay in the last-level cache.
const POOL_BYTES: usize = 16 << 20;
/// The room for pages of one worker with its reserve, if there is memory: what it sends while the others are busy with long tasks waits there. A
/// map function that works on batches of a million rows emits 16 MiB at a time.
const ARENA_BYTES: usize = 32 << 20;
/// All such room together takes at most 1 / 16 of the memory.
const ARENAS_SHARE: usize = 16;
/// The memory that the kernel may map at once.
const HUGE_PAGE_BYTES: usize = 2 << 20;
/// The page size if few workers map at once; measured, see bench/runs.
const PAGE_BYTES_MAX: usize = 32 << 10;
const PAGE_BYTES_MIN: usize = 4 << 10;
/// The page size if the input is too small to show how much will be emitted, for example if it holds only names of
/// tasks. All pages together then take little memory, which helps if memory is short, and reducers begin early.
/// Measured: covariances are 4 % faster than with 32 KiB. The steps of a search, which begins with as small an input,
/// are 9 % slower, so jobs in steps do not use it.
pub(crate) const PAGE_BYTES_UNKNOWN: usize = 8 << 10;
/// The number of bytes that a worker reads at a time: input and combining table fit in its second-level cache together.
const CHUNK_BYTES: usize = 256 << 10;
const SPLIT_BYTES_MIN: u64 = 256 << 10;
const SPLIT_BYTES_MAX: u64 = 2 << 20;
/// The approximate shortest and longest time of a task, if the sample says how long a byte takes. Shorter tasks cost
/// more to hand out than they balance; longer ones leave workers waiting for the last.
const TASK_NS: [f64; 2] = [250e3, 50e6];
/// The smallest split for a slow map function.
const SLOW_SPLIT_BYTES_MIN: u64 = 4 << 10;
/// The least work for which one more worker is worth its start and its share of pages and tables.
const WORKER_NS: f64 = 2e6;
/// The least work for which reducers get processes of their own, if the job wants that.
const LONG_NS: f64 = 100e6;
/// The share of waiting, in proportion to the work, from which more workers than processors read.
const WAITS_MIN: f64 = 0.25;
/// The largest number of workers per processor, if reading waits.
const READERS_PER_CPU_MAX: f64 = 4.0;
/// The approximate cost of a pair after the map function.
const PAIR_NS: f64 = 25.0;
/// The number of splits for each worker that maps at once: enough that the last ones to finish wait little for each other.
const SPLITS_PER_WORKER: u64 = 16;
/// The least number of dead workers that are replaced before the job gives up.
const SPARE_SLOTS_MIN: usize = 32;
/// By default a record that kills its worker does so three times before it is set aside. At most
/// `BAD_RECORDS_THAT_KILL_MAX` records may.
const SPARE_SLOTS_PER_BAD_RECORD: usize = 3;
const BAD_RECORDS_THAT_KILL_MAX: u32 = 32;
/// The default number of partitions: enough that the keys of one partition fit in the second-level cache for millions
/// of keys.
const PARTITIONS_MIN: usize = 64;
/// The largest number of partitions: each has an open page in every worker.
const PARTITIONS_MAX: usize = 1 << 12;
/// The largest number of tasks, for which the shared words have room.
const TASKS_MAX: u64 = 1 << 16;

/// Sizes of an extent of the shelf: large enough that few are taken, small enough that a worker's last one wastes
/// little.
const EXTENT_BYTES_MIN: u64 = 64 << 10;
const EXTENT_BYTES_MAX: u64 = 1 << 20;
/// The number of extents for each reduce worker on a small shelf.
const EXTENTS_PER_WORKER: u64 = 16;
/// The largest number of extents: each may be a task.
const EXTENTS_MAX: u64 = TASKS_MAX / 2;

/// The least number of keys in each partition of a dense buffer. Each flush sends a page to every partition, which
/// should not be nearly empty.
const DENSE_KEYS_PER_PARTITION: usize = 64;

/// The largest key domain for which the plan chooses a dense buffer by itself: its array still fits in the second-level
/// cache.
const DENSE_KEYS_MAX: usize = 1 << 16;

/// The properties of a program that the plan depends on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Program {
    /// Whether it has a combiner.
    pub combines: bool,
    /// Whether the result of combining depends on the order of its values.
    pub rounds: bool,
    /// The size of its key domain, if it declares one.
    pub keys: Option<usize>,
    /// The largest domain that its key type allows; 0 if the type is not an unsigned integer.
    pub keys_max: u64,
    /// Whether the job runs in steps.
    pub iterates: bool,
    /// Whether pairs reach the result as map emits them, and the program does not choose their partitions.
    pub passes: bool,
    /// Whether the coordinator could join pairs of one key that several reducers deliver: it gets each reducer's pairs in the order
    /// of their keys, and nothing was done to them but combining.
    pub joins: bool,
    /// The most memory that decoding a file of its input takes.
    pub decoder_bytes_max: usize,
    /// Whether its map function takes memory for what it makes of files.
    pub unpacks: bool,
    /// The size of a hash buffer.
    pub hash_bytes: usize,
    /// The size of one place in a dense buffer.
    pub place_bytes: usize,
}

/// The resources of the machine.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Machine<'m> {
    pub processors: Processors,
    pub nodes: &'m [NumaNode],
    /// Memory that could be used without swapping or being killed.
    pub available_bytes: u64,
}

/// Every choice about a job, made once. Workers and reducers obey it and never see settings; `--explain` reads it.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub isolation: Isolation,
    pub exchange: Exchange,
    pub pages: PagePolicy,
    /// Whether each worker both maps and reduces.
    pub fused: bool,
    /// Whether the plan has chosen reduce workers of their own.
    pub apart: bool,
    pub map_workers: usize,
    pub reduce_workers: usize,
    /// The number of partitions of all shares.
    pub partitions: usize,
    /// The number of shares. Each has partitions for all keys. A job has one, or one for each home of workers: then a share has the
    /// pairs of the tasks that are mapped there, and its reducers are there, too.
    pub shares: usize,
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
    pub faults: FaultPlan,
    /// At least one folder.
    pub spill_dirs: Vec<TemporaryFolder>,
    /// The one with the most room, for pairs that steps keep and memory has no room for.
    pub shelf_folder: usize,
    /// The bytes that stay free on the file system of the checkpoint.
    pub checkpoint_kept_free_bytes: u64,
    pub budget: Budget,
    /// The share of a reducer.
    pub reduce_memory: ReduceMemory,
    /// The facts that the choices are based on.
    pub known: Known,
    /// The choices that the user made.
    pub asked: Asked,
}

/// The stations at which values combine, and how.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CombiningPlan {
    pub in_map: bool,
    /// Whether reducers combine pairs as they arrive. If not, they combine at the end.
    pub in_reduce: bool,
    /// A reducer that keeps all values begins to combine when one key has gathered more values than this.
    pub after: Option<u32>,
    /// Whether values combine in ascending order, so that rounded sums have the same bits.
    pub in_order: bool,
    /// Whether values combine in order of arrival although the result depends on it.
    pub rounds_as_it_comes: bool,
}

/// The limits for failures.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FaultPlan {
    pub retries: u32,
    pub max_failures: Option<u32>,
    /// The largest number of records that are set aside.
    pub skip_bad_records: u32,
    pub task_timeout: Option<Duration>,
}

/// The facts that a plan is made from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Known {
    pub processors: Processors,
    pub input_bytes: u64,
    pub program: Program,
    pub sample: Option<Sample>,
    /// The number of earlier times that are known.
    pub trials: usize,
    pub learned: Option<Learned>,
    /// The number of ranges that the partitions form, once the input has been searched for cuts.
    pub ranges: Option<usize>,
}

/// The choices that the user made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked {
    pub workers: bool,
    pub map_at_once: Option<usize>,
    pub placement: Placement,
    pub split_bytes: Option<u64>,
    pub chunk_bytes: bool,
    pub buffer: bool,
    pub combining: Combining,
    pub combine_after: Option<u32>,
    pub page_bytes: bool,
    pub partitions: Option<usize>,
}

/// The shelf of an iterated job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ShelfShape {
    pub extents: usize,
    /// How many of them, the last ones, lie in a file.
    pub file_extents: usize,
    pub extent_bytes: usize,
}

impl ShelfShape {
    /// Returns a shelf of at most `limit_bytes` in memory, and `file_bytes` in a file.
    pub fn of(limit_bytes: u64, reduce_workers: usize, file_bytes: u64) -> ShelfShape {
        let fair = limit_bytes / (reduce_workers as u64 * EXTENTS_PER_WORKER);
        let extent_bytes = fair.clamp(EXTENT_BYTES_MIN, EXTENT_BYTES_MAX).max(limit_bytes / EXTENTS_MAX);
        let extent_bytes = extent_bytes / 4096 * 4096;
        let in_memory = (limit_bytes / extent_bytes).min(EXTENTS_MAX);
        let in_file = (file_bytes / extent_bytes).min(EXTENTS_MAX - in_memory);
        ShelfShape {
            extents: (in_memory + in_file) as usize,
            file_extents: in_file as usize,
            extent_bytes: extent_bytes as usize,
        }
    }
}

/// Estimates the time of the job on one worker, in nanoseconds.
pub(crate) fn work_ns(sample: &Sample, input_bytes: u64) -> f64 {
    sample.map_ns(input_bytes) + sample.pairs_of(input_bytes) * PAIR_NS
}

/// Returns the waiting of the job on one worker in nanoseconds, for what it reads; 0 if it is too little to matter.
pub(crate) fn wait_ns(sample: &Sample, input_bytes: u64) -> f64 {
    let wait_ns = sample.wait_ns_of(input_bytes);
    if wait_ns < WAITS_MIN * work_ns(sample, input_bytes) { 0.0 } else { wait_ns }
}

/// Returns the number of workers that keep all processors busy: one for each, and if reading waits, more.
fn workers_busy(machine: Machine<'_>, input_bytes: u64, sample: Option<&Sample>) -> usize {
    let Some(sample) = sample else { return machine.processors.usable };
    let (work_ns, wait_ns) = (work_ns(sample, input_bytes), wait_ns(sample, input_bytes));
    let for_each = if wait_ns == 0.0 { 1.0 } else { (1.0 + wait_ns / work_ns).min(READERS_PER_CPU_MAX) };
    (machine.processors.usable as f64 * for_each).round() as usize
}

/// Returns the number of workers that pay: at most as many as keep the processors busy, and as many as there is work
/// for.
fn workers_worth(settings: &Settings, machine: Machine<'_>, input_bytes: u64, sample: Option<&Sample>) -> usize {
    let useful = match (sample, settings.split_bytes) {
        (Some(sample), _) => (work_ns(sample, input_bytes) + wait_ns(sample, input_bytes)) / WORKER_NS,
        // A user who cuts the input finely has a reason.
        (None, Some(bytes)) => input_bytes as f64 / bytes.max(1) as f64,
        // The first splits are small, so there are several, and what a record costs is not known.
        (None, None) if settings.in_order => input_bytes as f64 / FIRST_SPLIT_BYTES as f64,
        (None, None) if input_bytes < WORTH_BYTES => 1.0,
        (None, None) => f64::INFINITY,
    };
    workers_busy(machine, input_bytes, sample).min(useful.ceil() as usize).max(1)
}

/// Returns true if there is so much work that the start of more processes does not count.
fn is_long(input_bytes: u64, sample: Option<&Sample>) -> bool {
    sample.map_or(input_bytes >= WORTH_BYTES, |sample| work_ns(sample, input_bytes) >= LONG_NS)
}

/// Returns the sizes of the smallest and the largest split.
fn split_limits(sample: Option<&Sample>) -> [u64; 2] {
    let Some(Sample { ns_per_byte, .. }) = sample.filter(|sample| sample.ns_per_byte > 0.0) else {
        return [SPLIT_BYTES_MIN, SPLIT_BYTES_MAX];
    };
    let [least, most] = TASK_NS.map(|task_ns| (task_ns / ns_per_byte) as u64);
    let least = least.clamp(SLOW_SPLIT_BYTES_MIN, SPLIT_BYTES_MIN);
    [least, most.clamp(least, SPLIT_BYTES_MAX)]
}

impl Plan {
    /// Makes the plan: chooses everything that `settings` leaves open.
    pub fn new(
        settings: &Settings,
        machine: Machine<'_>,
        input_bytes: u64,
        program: Program,
        sample: Option<&Sample>,
    ) -> Result<Plan> {
        let folder = |dir: &PathBuf| TemporaryFolder::new(dir, settings.keep_free_bytes);
        let spill_dirs: Vec<TemporaryFolder> = settings.spill_folders().iter().map(folder).collect();
        let Program { combines, rounds, keys, keys_max, iterates, passes, hash_bytes, place_bytes, .. } = program;
        // What was measured when reading did not wait says nothing of a time when it does.
        let waits = sample.is_some_and(|sample| wait_ns(sample, input_bytes) > 0.0);
        let learned = if waits { None } else { history::learned(settings) };
        let best = learned.map(|learned| learned.best);
        let (map_workers, reduce_workers, fused) = match (settings.map_workers, settings.reduce_workers) {
            (None, None) => {
                let worth = || workers_worth(settings, machine, input_bytes, sample);
                // It is not known what later steps will map, and workers are started only once.
                let asked = settings.workers.or(best.map(|best| best.workers));
                let workers = asked.unwrap_or_else(|| if iterates { machine.processors.usable } else { worth() });
                match settings.reduce_apart && workers > 1 && !iterates && is_long(input_bytes, sample) {
                    true => (workers, workers.div_ceil(2), false),
                    false => (workers, workers, true),
                }
            }
            (map, reduce) => {
                let half = settings.workers.unwrap_or(machine.processors.usable).div_ceil(2);
                (map.unwrap_or(half), reduce.unwrap_or(half), false)
            }
        };
        let apart = !fused && settings.map_workers.is_none() && settings.reduce_workers.is_none();
        if map_workers == 0 || reduce_workers == 0 {
            return Err(Error::Setting("a job needs at least one map worker and one reduce worker".into()));
        }
        let slots = if fused { map_workers } else { map_workers + reduce_workers };
        if slots > 1024 {
            return Err(Error::Setting(format!("{slots} workers were asked for; a job has at most 1024")));
        }
        if settings.combine_after.is_some() && !combines {
            return Err(Error::Setting("Job::combine_after needs a combiner, and this job has none".into()));
        }
        let in_order = settings.deterministic && rounds;
        let (combine_in_map, combine_in_reduce) = match settings.combine {
            Combining::Both => (combines, combines),
            Combining::Map => (combines, false),
            Combining::Reduce => (false, combines),
            Combining::Off => (false, false),
        };
        let buffer = match settings.buffer {
            Buffer::Auto if combine_in_map && keys.is_some_and(|keys| keys <= DENSE_KEYS_MAX) => Buffer::Dense,
            Buffer::Auto if combine_in_map => Buffer::Hash,
            Buffer::Auto => Buffer::Array,
            chosen @ (Buffer::Hash | Buffer::Dense) if !combine_in_map => {
                let name = if chosen == Buffer::Hash { "hash" } else { "dense" };
                let why = if combines { "combining in map is off" } else { "the job has no combiner" };
                return Err(Error::Setting(format!("the {name} buffer combines values, but {why}; use Buffer::Array")));
            }
            // A job without a combiner has nothing to combine anywhere.
            Buffer::Array if combine_in_map && settings.combine == Combining::Map => {
                return Err(Error::Setting(
                    "the array buffer combines nothing, and values were to be combined in map only: use Buffer::Hash, or combine them in reduce (Job::combine)"
                        .into(),
                ));
            }
            Buffer::Dense if keys.is_none() => {
                return Err(Error::Setting(
                    "the dense buffer needs a place for every key, but the job declares no domain of keys \
                     (MapReduce::keys); use Buffer::Hash"
                        .into(),
                ));
            }
            chosen => chosen,
        };
        if let Some(keys) = keys.filter(|keys| *keys as u64 > keys_max) {
            return Err(Error::Setting(match keys_max {
                0 => format!("the job declares the keys 0..{keys}, but its keys are of no unsigned integer type"),
                _ => format!("the job declares the keys 0..{keys}, but its key type has only {keys_max}"),
            }));
        }
        let partitions = match (settings.partitions, buffer, keys) {
            (Some(partitions), ..) if partitions == 0 || partitions > PARTITIONS_MAX => {
                return Err(Error::Setting(format!(
                    "{partitions} partitions were asked for; a job has between 1 and {PARTITIONS_MAX}"
                )));
            }
            // Each reducer has at least one.
            (Some(partitions), ..) => partitions.max(reduce_workers),
            (None, Buffer::Dense, Some(keys)) => {
                PARTITIONS_MIN.min(keys.div_ceil(DENSE_KEYS_PER_PARTITION)).max(reduce_workers * 2)
            }
            _ => PARTITIONS_MIN.max(reduce_workers * 2),
        };
        let share_partitions = partitions.next_power_of_two();
        let groups = if fused { vec![map_workers] } else { vec![map_workers, reduce_workers] };
        let places = Places::new(machine.nodes, settings.placement, &groups);
        let by_node = reduces_by_node(settings.placement, sample);
        let shares = if program.joins && settings.order == Order::ByKey && !in_order && by_node {
            places.shares(slots, reduce_workers)
        } else {
            1
        };
        let partitions = share_partitions * shares;
        let at_once = settings.map_at_once.or(best.and_then(|best| best.map_at_once));
        let map_at_once = at_once.unwrap_or_else(|| workers_busy(machine, input_bytes, sample)).clamp(1, map_workers);
        let pool_pages = share_partitions * 2 + reduce_workers * 2;
        let taken_bytes = settings.held_bytes.saturating_add(settings.keep_bytes.unwrap_or(0) as usize);
        let left_bytes = settings.memory_bytes.map(|bytes| bytes.saturating_sub(taken_bytes));
        let page_bytes = settings.page_bytes.unwrap_or_else(|| {
            // Only workers that map at once write many pages. Of a small budget, the pages of all workers take an
            // eighth.
            let cached = POOL_BYTES / (map_at_once * pool_pages);
            let affordable = left_bytes.map_or(cached, |bytes| bytes / 8 / (map_workers * pool_pages));
            let most = if input_bytes < WORTH_BYTES && !iterates { PAGE_BYTES_UNKNOWN } else { PAGE_BYTES_MAX };
            cached.min(affordable).clamp(PAGE_BYTES_MIN, most) / 4096 * 4096
        });
        if page_bytes == 0 || !page_bytes.is_multiple_of(4096) || page_bytes > 64 << 20 {
            return Err(Error::Setting(format!(
                "a page of {page_bytes} bytes was asked for; page sizes are multiples of 4096 up to 64 MiB"
            )));
        }
        // Tasks that a sample has planned are short, so their pages come home soon; and populated in advance, a reserve would not be one.
        let are_short = sample.is_some() && settings.split_bytes.is_none();
        let reserve_pages = match settings.pages {
            PagePolicy::Reuse | PagePolicy::Fresh if !are_short => {
                let memory_bytes = left_bytes.unwrap_or(machine.available_bytes as usize / 2);
                let arena_bytes = ARENA_BYTES.min(memory_bytes / ARENAS_SHARE / slots);
                (arena_bytes / page_bytes).saturating_sub(pool_pages)
            }
            _ => 0,
        };
        // Where arenas lie on several nodes, no huge page is part of two of them.
        let nodes = places.nodes.len();
        let arena_pages = |reserve_pages: usize| match nodes {
            0 => pool_pages + reserve_pages,
            _ => (pool_pages + reserve_pages)
                .next_multiple_of(HUGE_PAGE_BYTES >> page_bytes.trailing_zeros().min(HUGE_PAGE_BYTES.trailing_zeros())),
        };
        let split_bytes = settings.split_bytes.unwrap_or_else(|| match settings.deterministic {
            // Values combine within a task, so its end must not depend on the workers.
            true => SPLIT_BYTES_MAX,
            false => {
                let [least, most] = split_limits(sample);
                (input_bytes / (map_at_once as u64 * SPLITS_PER_WORKER)).clamp(least, most)
            }
        });
        let split_bytes = split_bytes.max(input_bytes / TASKS_MAX).max(1);
        let buffer_bytes = match buffer {
            Buffer::Hash => hash_bytes,
            Buffer::Dense => keys.unwrap_or(0) * place_bytes,
            Buffer::Auto | Buffer::Array => 0,
        };
        let needs = Needs {
            workers: slots,
            reduce_workers,
            pages_bytes: slots * arena_pages(reserve_pages) * page_bytes,
            maps_bytes: map_at_once * (buffer_bytes + CHUNK_BYTES),
            iterates,
            keep_bytes: settings.keep_bytes.map(|bytes| bytes as usize),
            held_bytes: settings.held_bytes,
            will_hold_bytes: settings.will_hold_bytes,
            tasks: map_at_once,
            decoder_bytes_max: program.decoder_bytes_max,
            unpacks: program.unpacks,
        };
        let bad_records = settings.skip_bad_records.min(BAD_RECORDS_THAT_KILL_MAX) as usize;
        let divide = |needs| Budget::divide(settings.memory_bytes, machine.available_bytes, needs);
        // Memory that is enough without a reserve is enough.
        let (reserve_pages, budget) = match divide(needs) {
            Ok(budget) => (reserve_pages, budget),
            Err(_) => (0, divide(Needs { pages_bytes: slots * arena_pages(0) * page_bytes, ..needs })?),
        };
        Ok(Plan {
            isolation: settings.isolation,
            exchange: settings.exchange,
            pages: settings.pages,
            fused,
            apart,
            map_workers,
            reduce_workers,
            partitions,
            shares,
            places,
            // Ranges are cut by a sample, but a job that is continued must be cut as it was before.
            ranged: passes
                && settings.order == Order::ByKey
                && settings.limit == usize::MAX
                && settings.checkpoint.is_none(),
            page_bytes,
            pages_per_arena: arena_pages(reserve_pages),
            reserve_pages,
            spare_slots: SPARE_SLOTS_MIN.max(slots) + SPARE_SLOTS_PER_BAD_RECORD * bad_records,
            split_bytes,
            in_order: settings.in_order,
            chunk_bytes: settings.chunk_bytes.or(best.and_then(|best| best.chunk_bytes)).unwrap_or(CHUNK_BYTES).max(1),
            buffer,
            table_may_rest: settings.buffer == Buffer::Auto && !in_order,
            combining: CombiningPlan {
                in_map: buffer != Buffer::Array,
                in_reduce: combine_in_reduce && !in_order,
                after: settings.combine_after.filter(|_| !combine_in_reduce && !in_order),
                in_order,
                rounds_as_it_comes: rounds && !settings.deterministic,
            },
            flush_each_task: in_order,
            map_at_once,
            epoch_pages: (share_partitions as u64 / 2).max(1),
            order: settings.order,
            limit: settings.limit,
            faults: FaultPlan {
                retries: settings.retries,
                max_failures: settings.max_failures,
                skip_bad_records: settings.skip_bad_records,
                task_timeout: settings.task_timeout,
            },
            shelf_folder: (0..spill_dirs.len()).max_by_key(|at| spill_dirs[*at].room_bytes()).unwrap_or(0),
            spill_dirs,
            checkpoint_kept_free_bytes: settings.checkpoint.as_ref().map_or(0, |at| folder(&at.dir).kept_free_bytes),
            reduce_memory: budget.room(),
            budget,
            known: Known {
                processors: machine.processors,
                input_bytes,
                program,
                sample: sample.copied(),
                trials: settings.history.len(),
                learned,
                ranges: None,
            },
            asked: Asked {
                workers: settings.workers.is_some() || !fused,
                map_at_once: settings.map_at_once,
                placement: settings.placement,
                split_bytes: settings.split_bytes,
                chunk_bytes: settings.chunk_bytes.is_some(),
                buffer: settings.buffer != Buffer::Auto,
                combining: settings.combine,
                combine_after: settings.combine_after,
                page_bytes: settings.page_bytes.is_some(),
                partitions: settings.partitions,
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

/// A program with a combiner, for tests.
#[cfg(test)]
pub(crate) const PROGRAM: Program = Program {
    combines: true,
    rounds: false,
    keys: None,
    keys_max: 0,
    iterates: false,
    passes: false,
    joins: false,
    decoder_bytes_max: 0,
    unpacks: false,
    hash_bytes: 0,
    place_bytes: 0,
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::settings::Trial;

    /// Returns the plan of a job that leaves everything open, on eight processors.
    fn plan(input_bytes: u64, sample: Option<Sample>) -> Plan {
        let plan = Plan::new(
            &Settings::default(),
            Machine { processors: Processors::within(8, None), nodes: &[], available_bytes: 1 << 30 },
            input_bytes,
            PROGRAM,
            sample.as_ref(),
        );
        plan.expect("nothing was asked for that cannot be")
    }

    fn sample(ns_per_byte: f64) -> Option<Sample> {
        Some(Sample { pieces: 3, bytes: 24 << 10, ns_per_byte, ..Sample::default() })
    }

    #[test]
    fn a_small_input_gets_one_worker_and_a_large_one_all() {
        assert_eq!(plan(100, None).map_workers, 1);
        assert_eq!(plan(1 << 20, sample(1.0)).map_workers, 1);
        assert_eq!(plan(5 << 20, sample(1.0)).map_workers, 3);
        assert_eq!(plan(1 << 30, sample(1.0)).map_workers, 8);
        assert_eq!(plan(1 << 30, None).map_workers, 8);
    }

    #[test]
    fn a_slow_map_function_gets_all_workers_and_small_splits_for_little_input() {
        let plan = plan(1 << 20, sample(1000.0));
        assert_eq!((plan.map_workers, plan.split_bytes), (8, (1 << 20) / (8 * SPLITS_PER_WORKER)));
        assert!(self::plan(1 << 30, sample(1000.0)).split_bytes <= 50_000);
        assert_eq!(self::plan(1 << 30, sample(1.0)).split_bytes, SPLIT_BYTES_MAX);
    }

    #[test]
    fn a_disk_that_makes_readers_wait_gets_more_of_them_than_there_are_processors() {
        // 64 MiB: 336 ms of work for one, and as much of waiting.
        let waiting = |wait_ns| Some(Sample { read_bytes: 1 << 20, wait_ns, ..sample(5.0).expect("made above") });
        let workers = |wait_ns| {
            let plan = plan(64 << 20, waiting(wait_ns));
            (plan.map_workers, plan.map_at_once)
        };
        assert_eq!(workers(0), (8, 8));
        assert_eq!(workers(1 << 20), (8, 8), "a fifth of the work is noise");
        assert_eq!(workers(5 << 20), (16, 16));
        assert_eq!(workers(500 << 20), (32, 32));
        // A little that is waited for long.
        assert_eq!(plan(64 << 10, waiting(100 << 20)).map_workers, 4);
    }

    #[test]
    fn earlier_times_choose_workers_and_chunks_unless_the_user_or_a_cold_disk_objects() {
        let trial = |workers, chunk_bytes, seconds| Trial { workers, map_at_once: None, chunk_bytes, seconds };
        let history = vec![trial(1, None, 2.0), trial(3, Some(4096), 1.0), trial(8, None, 1.5)];
        let settings = Settings { history, ..Settings::default() };
        let plan = |settings: &Settings, sample: Option<Sample>| {
            let machine = Machine { processors: Processors::within(8, None), nodes: &[], available_bytes: 1 << 30 };
            let plan = Plan::new(settings, machine, 64 << 20, PROGRAM, sample.as_ref()).expect("it is possible");
            (plan.map_workers, plan.chunk_bytes, plan.known.learned.is_some())
        };
        assert_eq!(plan(&settings, sample(5.0)), (3, 4096, true));
        assert_eq!(plan(&Settings { workers: Some(2), ..settings.clone() }, None), (2, CHUNK_BYTES, false));
        let cold = Sample { read_bytes: 1, wait_ns: 1000, ..sample(5.0).expect("made above") };
        assert_eq!(plan(&settings, Some(cold)), (32, CHUNK_BYTES, false));
    }

    #[test]
    fn splits_are_for_the_workers_that_map_at_once() {
        // With 128 workers on 2 processors, 175 MB were cut into 2,049 tasks, of which 2 ran at a time.
        let machine = Machine { processors: Processors::within(2, None), nodes: &[], available_bytes: 1 << 30 };
        let split_bytes = |workers| {
            let settings = Settings { workers: Some(workers), ..Settings::default() };
            Plan::new(&settings, machine, 32 << 20, PROGRAM, None).expect("it is possible").split_bytes
        };
        assert_eq!(split_bytes(128), split_bytes(2));
    }

    #[test]
    fn arenas_have_a_reserve_for_long_tasks_if_there_is_memory() {
        let machine = Machine { processors: Processors::within(2, None), nodes: &[], available_bytes: 1 << 34 };
        let reserve = |settings: Settings, sample| {
            let plan = Plan::new(&settings, machine, 1 << 30, PROGRAM, sample).expect("it is possible");
            (plan.reserve_pages > 0, plan.pages_per_arena * plan.page_bytes == ARENA_BYTES)
        };
        assert_eq!(reserve(Settings::default(), None), (true, true));
        let short = sample(5.0);
        assert_eq!(reserve(Settings::default(), short.as_ref()), (false, false));
        let cut = Settings { split_bytes: Some(1 << 28), ..Settings::default() };
        assert_eq!(reserve(cut, short.as_ref()), (true, true));
        let small = Settings { memory_bytes: Some(128 << 20), ..Settings::default() };
        assert_eq!(reserve(small, None), (false, false));
        let prealloc = Settings { pages: PagePolicy::Prealloc, ..Settings::default() };
        assert_eq!(reserve(prealloc, None), (false, false));
    }

    #[test]
    fn reducers_are_apart_if_the_job_wants_that_and_is_long() {
        let machine = Machine { processors: Processors::within(8, None), nodes: &[], available_bytes: 1 << 34 };
        let workers = |settings: Settings, sample: Option<Sample>| {
            let plan = Plan::new(&settings, machine, 64 << 20, PROGRAM, sample.as_ref()).expect("it is possible");
            (plan.map_workers, plan.reduce_workers, plan.fused)
        };
        let apart = Settings { reduce_apart: true, ..Settings::default() };
        // 336 ms of work, and 7 ms.
        assert_eq!(workers(apart.clone(), sample(5.0)), (8, 4, false));
        assert_eq!(workers(apart.clone(), sample(0.1)), (4, 4, true));
        assert_eq!(workers(Settings::default(), sample(5.0)), (8, 8, true));
        assert_eq!(workers(Settings { workers: Some(3), ..apart.clone() }, sample(5.0)), (3, 2, false));
        assert_eq!(workers(Settings { workers: Some(1), ..apart.clone() }, sample(5.0)), (1, 1, true));
        assert_eq!(workers(Settings { map_workers: Some(1), ..apart }, sample(5.0)), (1, 4, false));
    }

    #[test]
    fn a_quota_of_processor_time_limits_the_workers_and_is_named() {
        // On a node of 64 processors whose control group allowed 2, a job started 64 workers.
        let machine =
            |quota| Machine { processors: Processors::within(64, quota), nodes: &[], available_bytes: 1 << 34 };
        let choice = |quota, sample: Option<Sample>| {
            let plan = Plan::new(&Settings::default(), machine(quota), 1 << 30, PROGRAM, sample.as_ref());
            let choices = crate::plan::explain::explain(&plan.expect("it is possible"));
            let choice = choices.into_iter().find(|choice| choice.what == "workers").expect("it is explained");
            format!("{}: {}", choice.chosen, choice.why)
        };
        let limited = "2, each maps and reduces: one for each processor: the control group allows 2 of 64 processors";
        assert_eq!(choice(Some(1.5), None), limited);
        assert!(choice(Some(2.0), sample(5.0)).starts_with("2, "), "{}", choice(Some(2.0), sample(5.0)));
        assert!(choice(Some(2.0), sample(5.0)).ends_with(", and the control group allows 2 of 64 processors"));
        assert!(choice(None, None).ends_with(": there are 64 processors"), "{}", choice(None, None));
        assert!(choice(Some(100.0), None).starts_with("64, "));
    }

    #[test]
    fn pairs_count_as_work() {
        let many = Sample { pairs: 24 << 10, ..sample(0.1).expect("made above") };
        assert!(plan(1 << 20, Some(many)).map_workers == 8);
    }

    #[test]
    fn steps_get_all_workers_even_for_a_small_first_input() {
        let program = Program { iterates: true, ..PROGRAM };
        let plan = Plan::new(
            &Settings::default(),
            Machine { processors: Processors::within(8, None), nodes: &[], available_bytes: 1 << 30 },
            8,
            program,
            None,
        );
        assert_eq!(plan.expect("nothing impossible was asked for").map_workers, 8);
    }
}
