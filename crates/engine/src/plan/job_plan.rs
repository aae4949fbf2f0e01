//! The plan: a pure function of machine, settings, input and a sample of it. Everything below obeys it.

use std::path::PathBuf;
use std::time::Duration;

use crate::data::order::Order;
use crate::error::{Error, Result};
use crate::plan::budget::{Budget, Needs};
use crate::plan::sample::{Sample, WORTH_BYTES};
use crate::plan::settings::{Buffer, Combining, Exchange, Isolation, PagePolicy, Settings};
use crate::spill::reduce_memory::ReduceMemory;

/// Memory for pages in flight, of all workers that map at once: small enough to stay in the last-level cache.
const POOL_BYTES: usize = 16 << 20;
/// Page size when few workers map at once; measured, see bench/runs.
const PAGE_BYTES_MAX: usize = 32 << 10;
const PAGE_BYTES_MIN: usize = 4 << 10;
/// Page size where the input is too small to say what will be emitted, as names of tasks are. All pages together then take
/// little memory, should that be little, and reducers begin early. Measured: covariances 4 % faster than with 32 KiB; but the
/// steps of a search, which begins as small, 9 % slower, so they do not take it.
pub(crate) const PAGE_BYTES_UNKNOWN: usize = 8 << 10;
/// Bytes that a worker reads at a time: input and combining table stay in its second-level cache together.
const CHUNK_BYTES: usize = 256 << 10;
const SPLIT_BYTES_MIN: u64 = 256 << 10;
const SPLIT_BYTES_MAX: u64 = 2 << 20;
/// A task takes about this long at least, and at most, if the sample says how long a byte takes: shorter ones cost more to hand
/// out than they balance, longer ones leave workers waiting for the last.
const TASK_NS: [f64; 2] = [250e3, 50e6];
/// The smallest split for a slow map function.
const SLOW_SPLIT_BYTES_MIN: u64 = 4 << 10;
/// Work that one more worker must find, to be worth its start and its share of pages and tables.
const WORKER_NS: f64 = 2e6;
/// What becomes of a pair behind the map function costs this much, about.
const PAIR_NS: f64 = 25.0;
/// Splits per map worker, so that the last ones to finish wait little for each other.
const SPLITS_PER_WORKER: u64 = 16;
/// Dead workers that are replaced before the job gives up.
const SPARE_SLOTS_MIN: usize = 32;
/// A record that kills its worker does so three times by default before it is set aside; so many records may.
const SPARE_SLOTS_PER_BAD_RECORD: usize = 3;
const BAD_RECORDS_THAT_KILL_MAX: u32 = 32;
/// Partitions: enough that the keys of one partition fit the second-level cache for millions of keys.
const PARTITIONS_MIN: usize = 64;
/// Partitions at most: each has an open page in every worker.
const PARTITIONS_MAX: usize = 1 << 12;
/// Tasks that the shared words have room for.
const TASKS_MAX: u64 = 1 << 16;

/// Extents of the shelf: large enough that few are taken, small enough that a worker's last one wastes little.
const EXTENT_BYTES_MIN: u64 = 64 << 10;
const EXTENT_BYTES_MAX: u64 = 1 << 20;
/// Extents that each reduce worker finds on a small shelf.
const EXTENTS_PER_WORKER: u64 = 16;
/// Extents at most: each may be a task.
const EXTENTS_MAX: u64 = TASKS_MAX / 2;

/// Keys of a dense buffer to a partition at least: each flush sends a page for every partition, and should not send
/// nearly empty ones.
const DENSE_KEYS_PER_PARTITION: usize = 64;

/// Most keys of a domain that the plan chooses a dense buffer for by itself: its array then fits the second-level cache.
const DENSE_KEYS_MAX: usize = 1 << 16;

/// What the plan must know of a program.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Program {
    /// It has a combiner.
    pub combines: bool,
    /// What its values combine to depends on their order.
    pub rounds: bool,
    /// The size of its key domain, if it declares one.
    pub keys: Option<usize>,
    /// The largest domain that its key type allows, 0 if it is no unsigned integer.
    pub keys_max: u64,
    /// The job runs in steps.
    pub iterates: bool,
    /// Pairs reach the result as map emits them, and the program does not choose their partitions.
    pub passes: bool,
    /// The most that decoding a file of its input takes.
    pub decoder_bytes_max: usize,
    /// Its map function takes memory for what it makes of files.
    pub unpacks: bool,
    /// Bytes of a hash buffer, and of a place in a dense one.
    pub hash_bytes: usize,
    pub place_bytes: usize,
}

/// What the machine offers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Machine {
    pub cpus: usize,
    /// Memory that could be filled without swapping or being killed.
    pub available_bytes: u64,
}

/// How the job runs: every choice, made once. Workers and reducers obey it and see no settings; `--explain` reads it.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub isolation: Isolation,
    pub exchange: Exchange,
    pub pages: PagePolicy,
    /// Each worker maps and reduces.
    pub fused: bool,
    pub map_workers: usize,
    pub reduce_workers: usize,
    pub partitions: usize,
    /// Partitions are ranges of pairs in the order of the result, if it is known where to cut them.
    pub ranged: bool,
    pub page_bytes: usize,
    pub pages_per_arena: usize,
    pub spare_slots: usize,
    pub split_bytes: u64,
    pub chunk_bytes: usize,
    pub buffer: Buffer,
    /// The hash buffer's table may rest where it combines little: not when the user has named the buffer.
    pub table_may_rest: bool,
    pub combining: CombiningPlan,
    /// Map-side buffers are emptied after each task, not only at the end of an epoch.
    pub flush_each_task: bool,
    /// Map workers that run at the same time: no more than there are processors, because more would only push
    /// each other's tables out of the caches. The others reduce, and take over when one ends or dies.
    pub mapping_at_once: usize,
    /// An epoch ends with the task in which it has sent this many pages, or sooner, when it has lasted long.
    pub epoch_pages: u64,
    /// The order of the result, and how many pairs of it anybody wants.
    pub order: Order,
    pub limit: usize,
    pub faults: FaultPlan,
    /// At least one.
    pub spill_dirs: Vec<PathBuf>,
    pub budget: Budget,
    /// The share of a reducer.
    pub reduce_memory: ReduceMemory,
    /// What the choices were made from.
    pub known: Known,
    /// Choices that the user has made.
    pub asked: Asked,
}

/// Where values combine.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CombiningPlan {
    pub in_map: bool,
    /// As pairs arrive. If not, reducers combine at the end.
    pub in_reduce: bool,
    /// A reducer that keeps all values begins to combine once one key has gathered more than this.
    pub after: Option<u32>,
    /// Values combine in ascending order, so that rounded sums have the same bits.
    pub in_order: bool,
    /// Values combine in the order in which they come, and what they become depends on it.
    pub rounds_as_it_comes: bool,
}

/// What failures cost.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FaultPlan {
    pub retries: u32,
    pub max_failures: Option<u32>,
    /// Records that are set aside at most.
    pub skip_bad_records: u32,
    pub task_timeout: Option<Duration>,
}

/// What a plan is made from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Known {
    pub cpus: usize,
    pub input_bytes: u64,
    pub program: Program,
    pub sample: Option<Sample>,
    /// How many ranges the partitions are, once the input has been looked at for cuts.
    pub ranges: Option<usize>,
}

/// Which choices the user has made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked {
    pub workers: bool,
    pub mapping_at_once: bool,
    pub split_bytes: bool,
    pub chunk_bytes: bool,
    pub buffer: bool,
    pub combining: bool,
    pub combine_after: Option<u32>,
    pub page_bytes: bool,
    pub partitions: bool,
}

/// The shelf of an iterated job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ShelfShape {
    pub extents: usize,
    pub extent_bytes: usize,
}

impl ShelfShape {
    /// A shelf of at most `limit_bytes`.
    pub fn of(limit_bytes: u64, reduce_workers: usize) -> ShelfShape {
        let fair = limit_bytes / (reduce_workers as u64 * EXTENTS_PER_WORKER);
        let extent_bytes = fair.clamp(EXTENT_BYTES_MIN, EXTENT_BYTES_MAX).max(limit_bytes / EXTENTS_MAX);
        let extent_bytes = extent_bytes / 4096 * 4096;
        ShelfShape {
            extents: (limit_bytes / extent_bytes).min(EXTENTS_MAX) as usize,
            extent_bytes: extent_bytes as usize,
        }
    }
}

/// Nanoseconds of one worker that the job will take, about.
pub(crate) fn work_ns(sample: &Sample, input_bytes: u64) -> f64 {
    sample.map_ns(input_bytes) + sample.pairs_of(input_bytes) * PAIR_NS
}

/// Workers that pay: no more than processors, nor than there is work for.
fn workers_worth(settings: &Settings, machine: Machine, input_bytes: u64, sample: Option<&Sample>) -> usize {
    let useful = match (sample, settings.split_bytes) {
        (Some(sample), _) => work_ns(sample, input_bytes) / WORKER_NS,
        // Whoever has cut the input finely knows why.
        (None, Some(bytes)) => input_bytes as f64 / bytes.max(1) as f64,
        (None, None) if input_bytes < WORTH_BYTES => 1.0,
        (None, None) => f64::INFINITY,
    };
    machine.cpus.min(useful.ceil() as usize).max(1)
}

/// The smallest and the largest split.
fn split_limits(sample: Option<&Sample>) -> [u64; 2] {
    let Some(Sample { ns_per_byte, .. }) = sample.filter(|sample| sample.ns_per_byte > 0.0) else {
        return [SPLIT_BYTES_MIN, SPLIT_BYTES_MAX];
    };
    let [least, most] = TASK_NS.map(|task_ns| (task_ns / ns_per_byte) as u64);
    let least = least.clamp(SLOW_SPLIT_BYTES_MIN, SPLIT_BYTES_MIN);
    [least, most.clamp(least, SPLIT_BYTES_MAX)]
}

impl Plan {
    /// Chooses what `settings` leaves open.
    pub fn new(
        settings: &Settings,
        machine: Machine,
        input_bytes: u64,
        program: Program,
        sample: Option<&Sample>,
    ) -> Result<Plan> {
        let Program { combines, rounds, keys, keys_max, iterates, passes, hash_bytes, place_bytes, .. } = program;
        let (map_workers, reduce_workers, fused) = match (settings.map_workers, settings.reduce_workers) {
            (None, None) => {
                let worth = || workers_worth(settings, machine, input_bytes, sample);
                // What the steps of a job will map is not known; their workers are started once.
                let workers = settings.workers.unwrap_or_else(|| if iterates { machine.cpus } else { worth() });
                (workers, workers, true)
            }
            (map, reduce) => {
                let half = settings.workers.unwrap_or(machine.cpus).div_ceil(2);
                (map.unwrap_or(half), reduce.unwrap_or(half), false)
            }
        };
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
            // Each reducer has one at least.
            (Some(partitions), ..) => partitions.max(reduce_workers),
            (None, Buffer::Dense, Some(keys)) => {
                PARTITIONS_MIN.min(keys.div_ceil(DENSE_KEYS_PER_PARTITION)).max(reduce_workers * 2)
            }
            _ => PARTITIONS_MIN.max(reduce_workers * 2),
        };
        let partitions = partitions.next_power_of_two();
        let mapping_at_once = settings.mapping_at_once.unwrap_or(machine.cpus).clamp(1, map_workers);
        let pool_pages = partitions * 2 + reduce_workers * 2;
        let page_bytes = settings.page_bytes.unwrap_or_else(|| {
            // Only those that map at once write many. Of a small budget, the pages of all take an eighth.
            let cached = POOL_BYTES / (mapping_at_once * pool_pages);
            let affordable = settings.memory_bytes.map_or(cached, |bytes| bytes / 8 / (map_workers * pool_pages));
            let most = if input_bytes < WORTH_BYTES && !iterates { PAGE_BYTES_UNKNOWN } else { PAGE_BYTES_MAX };
            cached.min(affordable).clamp(PAGE_BYTES_MIN, most) / 4096 * 4096
        });
        if page_bytes == 0 || !page_bytes.is_multiple_of(4096) || page_bytes > 64 << 20 {
            return Err(Error::Setting(format!(
                "a page of {page_bytes} bytes was asked for; page sizes are multiples of 4096 up to 64 MiB"
            )));
        }
        let split_bytes = settings.split_bytes.unwrap_or_else(|| match settings.deterministic {
            // Values combine within a task: where it ends must not depend on the workers.
            true => SPLIT_BYTES_MAX,
            false => {
                let [least, most] = split_limits(sample);
                (input_bytes / (map_workers as u64 * SPLITS_PER_WORKER)).clamp(least, most)
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
            pages_bytes: slots * pool_pages * page_bytes,
            maps_bytes: mapping_at_once * (buffer_bytes + CHUNK_BYTES),
            iterates,
            keep_bytes: settings.keep_bytes.map(|bytes| bytes as usize),
            held_bytes: settings.held_bytes,
            will_hold_bytes: settings.will_hold_bytes,
            tasks: mapping_at_once,
            decoder_bytes_max: program.decoder_bytes_max,
            unpacks: program.unpacks,
        };
        let bad_records = settings.skip_bad_records.min(BAD_RECORDS_THAT_KILL_MAX) as usize;
        let budget = Budget::divide(settings.memory_bytes, machine.available_bytes, needs)?;
        Ok(Plan {
            isolation: settings.isolation,
            exchange: settings.exchange,
            pages: settings.pages,
            fused,
            map_workers,
            reduce_workers,
            partitions,
            // Ranges are cut by a sample; a job that is continued must not be cut otherwise than it was.
            ranged: passes
                && settings.order == Order::ByKey
                && settings.limit == usize::MAX
                && settings.checkpoint.is_none(),
            page_bytes,
            pages_per_arena: pool_pages,
            spare_slots: SPARE_SLOTS_MIN.max(slots) + SPARE_SLOTS_PER_BAD_RECORD * bad_records,
            split_bytes,
            chunk_bytes: settings.chunk_bytes.unwrap_or(CHUNK_BYTES).max(1),
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
            mapping_at_once,
            epoch_pages: (partitions as u64 / 2).max(1),
            order: settings.order,
            limit: settings.limit,
            faults: FaultPlan {
                retries: settings.retries,
                max_failures: settings.max_failures,
                skip_bad_records: settings.skip_bad_records,
                task_timeout: settings.task_timeout,
            },
            spill_dirs: settings.spill_dirs.clone(),
            reduce_memory: budget.room(),
            budget,
            known: Known { cpus: machine.cpus, input_bytes, program, sample: sample.copied(), ranges: None },
            asked: Asked {
                workers: settings.workers.is_some() || !fused,
                mapping_at_once: settings.mapping_at_once.is_some(),
                split_bytes: settings.split_bytes.is_some(),
                chunk_bytes: settings.chunk_bytes.is_some(),
                buffer: settings.buffer != Buffer::Auto,
                combining: settings.combine != Combining::default(),
                combine_after: settings.combine_after,
                page_bytes: settings.page_bytes.is_some(),
                partitions: settings.partitions.is_some(),
            },
        })
    }

    /// Workers at the start.
    pub fn workers(&self) -> usize {
        if self.fused { self.map_workers } else { self.map_workers + self.reduce_workers }
    }

    /// Slots of the region: the coordinator, the workers, and those that may replace them.
    pub fn slots(&self) -> usize {
        1 + self.workers() + self.spare_slots
    }

    /// Pages of one producer that a reducer may hold back without copying: whatever all reducers hold, one
    /// page per partition and one more stay with the producer, so that it can always finish its task.
    pub fn held_pages_max(&self) -> usize {
        (self.pages_per_arena - self.partitions - 1) / self.reduce_workers
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The plan of a job that leaves everything open, on eight processors.
    fn plan(input_bytes: u64, sample: Option<Sample>) -> Plan {
        let program = Program {
            combines: true,
            rounds: false,
            keys: None,
            keys_max: 0,
            iterates: false,
            passes: false,
            decoder_bytes_max: 0,
            unpacks: false,
            hash_bytes: 0,
            place_bytes: 0,
        };
        let plan = Plan::new(
            &Settings::default(),
            Machine { cpus: 8, available_bytes: 1 << 30 },
            input_bytes,
            program,
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
    fn pairs_are_work_too() {
        let many = Sample { pairs: 24 << 10, ..sample(0.1).expect("made above") };
        assert!(plan(1 << 20, Some(many)).map_workers == 8);
    }

    #[test]
    fn steps_get_all_workers_however_small_the_first_input_is() {
        let program = Program {
            combines: true,
            rounds: false,
            keys: None,
            keys_max: 0,
            iterates: true,
            passes: false,
            decoder_bytes_max: 0,
            unpacks: false,
            hash_bytes: 0,
            place_bytes: 0,
        };
        let plan = Plan::new(&Settings::default(), Machine { cpus: 8, available_bytes: 1 << 30 }, 8, program, None);
        assert_eq!(plan.expect("nothing impossible was asked for").map_workers, 8);
    }
}
