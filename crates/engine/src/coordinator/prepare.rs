//! Everything that is decided before the first worker starts: whether the job can run, how its input is cut, and how
//! much shared memory it needs.

use std::fs::File;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use gristmill_os::machine::NumaNode;
use gristmill_os::process::{Child, threads_in_this_process};
use gristmill_os::{file_size, machine};
use gristmill_page::{Pages, Shape, ShelfFile};

use crate::buffer::HashTable;
use crate::checkpoint::log::{self, Checkpoint, Facts};
use crate::control::words::{SLOT_WORDS, WordCounts};
use crate::data::datum::{Datum, Key};
use crate::data::order::Order;
use crate::data::seed::Seed;
use crate::error::{Asked, Error, Result};
use crate::input::paths::Opened;
use crate::input::source::{Source, TaskMemory};
use crate::input::tasks::{Splits, Tasks};
use crate::memory::{Memory, shown};
use crate::plan::balance::patience_ms;
use crate::plan::budget::Budget;
use crate::plan::explain::{Choice, explain};
use crate::plan::job_plan::Plan;
use crate::plan::known::{Known, Properties, Resources};
use crate::plan::mode::Mode;
use crate::plan::sample::Weights;
use crate::plan::settings::{Isolation, Settings};
use crate::plan::shelf_shape::ShelfShape;
use crate::program::ending::Program;
use crate::program::map_reduce::{MapReduce, combines, rounds};
use crate::program::ranges::Ranges;
use crate::survey::quote_scan::scan_quotes;
use crate::survey::range_finder::find_ranges;
use crate::survey::sampler::take_sample;
use crate::survey::weigher::weigh_partitions;

/// A job that can start.
pub(super) struct Prepared {
    pub plan: Plan,
    pub tasks: Tasks,
    /// The checkpoint and what it says is done, if the job has one.
    pub checkpoint: Option<(Checkpoint, Facts)>,
    pub input_bytes: u64,
    /// The seed of all hashes.
    pub seed: Seed,
    shelf: ShelfShape,
    /// A file for extents that memory has no room for.
    shelf_file: Option<File>,
    /// The numbers of words that workers and coordinator share.
    pub room: WordCounts,
    /// Keeps the copies of streams open.
    _opened: Arc<Opened>,
    /// The process that sampled the input. It ends while the workers start.
    pub sampler: Option<Child>,
}

impl Prepared {
    /// Prepares a job; also returns the bounds of its partitions, if they are ranges of pairs. A job that continues
    /// from a checkpoint takes over the `settings` that it started with.
    pub fn new<J: Program>(
        program: &J::User,
        open: impl FnOnce() -> Result<Arc<Opened>>,
        settings: &mut Settings,
        mode: Mode<'_>,
        reduces: bool,
        visits: bool,
        on_plan: Option<Box<dyn FnMut(&[Choice]) + Send + '_>>,
    ) -> Result<(Prepared, Option<Ranges<J::Key, J::Value>>)> {
        // 1. Check that the job can run.
        if settings.deterministic && settings.order == Order::Unordered {
            settings.order = Order::ByKey;
        }
        check_start(settings)?;
        // 2. Find the input, and what of it is done.
        let opened = open()?;
        check_streams(mode, settings, &opened)?;
        let mut checkpoint = open_checkpoint::<J>(mode, settings, &opened)?;
        let input_bytes = opened.sources.iter().map(|source| source.bytes).sum();
        if let Some((log, facts)) = &checkpoint {
            if facts.cuts_too_small(input_bytes, settings.split_bytes) {
                return Err(log.misfit("pieces of the input that are too small"));
            }
            settings.continue_with(facts);
        }
        let settings: &Settings = settings;
        let seed = match checkpoint.as_ref().and_then(|(_, facts)| facts.seed()) {
            Some(number) => Seed::of(number),
            // The tasks of later steps are partitions, and values are summed within a task before they are sent. So
            // rounded sums are reproducible only if the partitions are.
            None if settings.deterministic && rounds(program) && mode.iterates() => Seed::of(0),
            None => Seed::random(),
        };
        // 3. Make the plan. Sampling the input must not write to a shared output.
        let (sample, sampler) = match mode.writes_outputs() {
            false => take_sample(program, settings, &opened.sources, mode.state().unwrap_or_default(), &seed).unzip(),
            true => (None, None),
        };
        let combines = combines(program);
        let properties = Properties {
            combines,
            rounds: rounds(program),
            keys: program.keys(),
            keys_max: J::Key::DENSE,
            decoder_bytes_max: opened.sources.iter().map(Source::decoder_bytes_max).max().unwrap_or(0),
            unpacks: <J::User>::UNPACKS,
            hash_bytes: HashTable::<J::Key, J::Value>::BYTES,
            // A value, and a bit that says that it is there.
            place_bytes: size_of::<<J::Value as Datum>::Owned>() + 1,
            iterates: mode.iterates(),
            joins: visits && !reduces && combines && settings.checkpoint.is_none(),
            passes: !mode.iterates() && !reduces && !combines && <J::User>::PARTITION.is_none(),
        };
        let nodes = nodes(settings)?;
        let known = Known::new(settings, resources(&nodes)?, input_bytes, properties, sample.as_ref());
        let mut plan = Plan::new(&known)?;
        plan.weights = weigh(program, &known, &plan, &opened, &seed);
        let ranges = cut_ranges::<J>(program, settings, mode, &opened, &plan)?;
        if let Some(mut on_plan) = on_plan {
            on_plan(&explain(&plan, &known, ranges.as_ref().map(Ranges::len)));
        }
        // 4. Cut the tasks, and count the words that they need.
        let mut tasks = cut_tasks(settings, &opened, &plan);
        scan_quotes(&mut tasks, known.machine.processors.usable)?;
        if let Some((log, facts)) = &mut checkpoint {
            begin_or_check(log, facts, &plan, &seed, &tasks)?;
        }
        let (shelf_file, file_bytes) = if mode.iterates() { shelf_file(&plan) } else { (None, 0) };
        let shelf = ShelfShape::of(plan.budget.keep_bytes as u64, plan.reduce_workers, file_bytes);
        let room = words(settings, mode, &plan, tasks.len(), shelf);
        // The size of a stream is unknown.
        let input_bytes = tasks.sources.iter().filter(|source| !source.is_stream()).map(|source| source.bytes).sum();
        let _opened = opened;
        let prepared =
            Prepared { plan, tasks, checkpoint, input_bytes, seed, shelf, shelf_file, room, _opened, sampler };
        Ok((prepared, ranges))
    }

    /// Maps the region of the job.
    pub fn pages(&self) -> Result<Pages> {
        const WHAT: &str = "opening the file of the shared region";
        let file = match &self.shelf_file {
            Some(file) => {
                let folder = self.plan.spill_dirs[self.plan.shelf_folder].clone();
                Some(ShelfFile { folder, file: file.try_clone().asked(WHAT)? })
            }
            None => None,
        };
        let shape = Shape {
            slots: self.room.slots,
            pages_per_arena: self.plan.pages_per_arena,
            page_bytes: self.plan.page_bytes,
            extra_words: self.room.words(),
            slot_words: SLOT_WORDS,
            guarded_words: self.room.guarded_words(),
            extents: self.shelf.extents,
            file_extents: self.shelf.file_extents,
            extent_bytes: self.shelf.extent_bytes,
        };
        let bytes = shape.slots * shape.pages_per_arena * shape.page_bytes + shape.extents * shape.extent_bytes;
        Pages::with_file(shape, file)
            .map_err(|source| not_mapped(bytes as u64, source, machine::address_space_limit_bytes()))
    }

    /// Returns the bytes that the pairs of two steps in a row may take, in memory and on disk.
    pub fn kept_bytes_max(&self) -> u64 {
        self.plan.budget.keep_bytes as u64 + (self.shelf.file_extents * self.shelf.extent_bytes) as u64
    }
}

/// Checks what must be true before the input is looked for.
fn check_start(settings: &Settings) -> Result<()> {
    if settings.isolation == Isolation::Process {
        let threads = threads_that_stay()?;
        if threads > 1 {
            return Err(Error::ThreadsRunning { threads });
        }
    }
    // The folder that TMPDIR names is looked at when something is put there.
    match settings.spill_dirs.iter().find(|dir| !dir.is_dir()) {
        Some(dir) => Err(Error::Setting(format!("the spill folder {} is no directory", dir.display()))),
        None => Ok(()),
    }
}

/// Refuses streams that a job would have to read more than once.
fn check_streams(mode: Mode<'_>, settings: &Settings, opened: &Opened) -> Result<()> {
    let reads_again = match mode {
        Mode::Steps { .. } => Some("a job in steps"),
        _ => (settings.skip_bad_records > 0).then_some("a job that sets records aside"),
    };
    match reads_again.filter(|_| opened.has_stream()) {
        Some(what) => Err(Error::Setting(format!("{what} reads its input more than once: leave out Input::read_once"))),
        None => Ok(()),
    }
}

/// Returns the nodes of the machine, unless a test has set others.
fn nodes(settings: &Settings) -> Result<Vec<NumaNode>> {
    match &settings.nodes[..] {
        [] => machine::numa_nodes().asked("asking for the nodes of the machine"),
        nodes => Ok(nodes.to_vec()),
    }
}

/// Asks for the resources of the machine.
fn resources(nodes: &[NumaNode]) -> Result<Resources<'_>> {
    let available_bytes = machine::memory_available_bytes().asked("asking how much memory is available")?;
    // Arenas and shelf take up to twice as many addresses as the job memory, and each worker has some more for itself.
    let addresses_bytes = machine::address_space_limit_bytes().map_or(u64::MAX, |limit_bytes| limit_bytes / 4);
    let available_bytes = available_bytes.min(addresses_bytes);
    Ok(Resources { processors: machine::processors(), nodes, available_bytes })
}

/// Weighs the partitions of a job, if some may be much larger than others.
fn weigh<J: MapReduce>(program: &J, known: &Known<'_>, plan: &Plan, opened: &Opened, seed: &Seed) -> Option<Weights> {
    let patience_ms = patience_ms(known, plan, J::PARTITION.is_some())?;
    let partitions = plan.share_partitions();
    weigh_partitions(program, known.settings, &opened.sources, partitions, patience_ms, seed)
}

/// Cuts the partitions of a job at a sample of its pairs, if they are ranges.
fn cut_ranges<J: Program>(
    program: &J::User,
    settings: &Settings,
    mode: Mode<'_>,
    opened: &Opened,
    plan: &Plan,
) -> Result<Option<Ranges<J::Key, J::Value>>> {
    let writes_result = matches!(mode, Mode::OpenTarget);
    if writes_result && !plan.ranged {
        return Err(Error::Setting(
            "only a result in the order of keys, of pairs that nothing combines, reduces or leaves out, is written by its reducers"
                .into(),
        ));
    }
    let ranges = match plan.ranged && !mode.writes_outputs() {
        true => find_ranges(program, settings, &opened.sources, plan.partitions, writes_result),
        false => None,
    };
    Ok(ranges.or_else(|| writes_result.then(Ranges::whole)))
}

/// Cuts the input into tasks.
fn cut_tasks(settings: &Settings, opened: &Opened, plan: &Plan) -> Tasks {
    let Budget { decoder_bytes, unpack_bytes, .. } = plan.budget;
    let sources = match decoder_bytes + unpack_bytes {
        0 => opened.sources.clone(),
        _ => {
            let [decoder, unpack] = [decoder_bytes, unpack_bytes].map(|bytes| Memory::of(bytes as u64));
            let memory = TaskMemory { decoder, unpack };
            opened.sources.iter().cloned().map(|source| source.with_memory(memory)).collect()
        }
    };
    // Chunks that are the same for any number of workers do not grow with it.
    let splits = match plan.in_order && !settings.deterministic {
        true => Splits::growing(plan.split_bytes, plan.map_workers),
        false => Splits::of(plan.split_bytes),
    };
    Tasks::cut(sources, settings.records, splits, settings.record_bytes_max())
}

/// Counts the words that workers and coordinator share.
fn words(settings: &Settings, mode: Mode<'_>, plan: &Plan, tasks: usize, shelf: ShelfShape) -> WordCounts {
    // A partition has one piece, and one more for each extent that it starts.
    let pieces = mode.state().map_or(0, |_| plan.partitions + shelf.extents);
    WordCounts {
        slots: plan.slots(),
        partitions: plan.partitions,
        tasks: tasks.max(pieces),
        pieces,
        state_bytes: mode.state().map_or(0, <[u8]>::len),
        bad_records: settings.skip_bad_records as usize,
        accumulators: 0,
        tracks: settings.timeline,
        shares: plan.shares,
        nodes: plan.places.nodes.len(),
    }
}

/// Begins the log of a checkpoint, or checks that a job that continues has the plan and the tasks it speaks of.
fn begin_or_check(log: &mut Checkpoint, facts: &Facts, plan: &Plan, seed: &Seed, tasks: &Tasks) -> Result<()> {
    let workers = [plan.map_workers, plan.reduce_workers].map(|workers| workers as u64);
    let of_log = [u64::from(plan.fused), workers[0], workers[1], plan.split_bytes, seed.number()];
    if *facts == Facts::default() {
        return log.begin(of_log);
    }
    facts.misfit(tasks, of_log).map_or(Ok(()), |what| Err(log.misfit(what)))
}

/// Says why a region of about `bytes` bytes cannot be mapped, and which option makes it smaller. `limit_bytes` is the
/// limit on addresses.
fn not_mapped(bytes: u64, source: io::Error, limit_bytes: Option<u64>) -> Error {
    if source.kind() != io::ErrorKind::OutOfMemory {
        return Error::System { what: "mapping the shared region", source };
    }
    let region = format!("the memory that the workers share takes {} of addresses", shown(bytes));
    let lower = "lower Job::memory, or take fewer workers";
    let Some(limit_bytes) = limit_bytes else {
        return Error::TooLarge { what: format!("{region}, and the system refused them ({source}): {lower}") };
    };
    // Arenas and shelf grow with the memory, and are little more than twice as large. The program itself takes some
    // addresses, too.
    let lower = match limit_bytes / (8 << 20) {
        0..16 => lower.to_owned(),
        mib => format!("lower Job::memory, for example to {mib} MiB, or take fewer workers"),
    };
    let limit = shown(limit_bytes);
    Error::TooLarge {
        what: format!("{region}, and ulimit -v allows this process {limit} in all: raise that limit, {lower}"),
    }
}

/// Makes a file for pairs that are kept from step to step and do not fit memory. Returns it and how long it may become:
/// 0, if there is no room for it.
fn shelf_file(plan: &Plan) -> (Option<File>, u64) {
    let folder = &plan.spill_dirs[plan.shelf_folder];
    let limits = [file_size::limit_bytes(), machine::address_space_limit_bytes().map(|bytes| bytes / 4)];
    let room_bytes = limits.into_iter().flatten().fold(folder.room_bytes(), u64::min);
    match tempfile::tempfile_in(&folder.path) {
        Ok(file) if room_bytes > 0 => (Some(file), room_bytes),
        _ => (None, 0),
    }
}

/// Returns the number of threads of this process, after waiting a moment for those that are ending: a thread that was
/// joined has done its work, but the kernel may not have removed it yet.
fn threads_that_stay() -> Result<usize> {
    const LOOKS: u32 = 20;
    let mut threads = 1;
    for _ in 0..LOOKS {
        threads = threads_in_this_process().asked("counting the threads of this process")?;
        if threads == 1 {
            break;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(threads)
}

/// Opens the checkpoint of a job that has one, and reads what it says is done.
fn open_checkpoint<J: Program>(
    mode: Mode<'_>,
    settings: &Settings,
    opened: &Opened,
) -> Result<Option<(Checkpoint, Facts)>> {
    let Mode::Stages(checkpoint) = mode else { return Ok(None) };
    if opened.is_spooled() {
        return Err(Error::Setting(
            "what came through a pipe, or was made in memory, cannot be read again by a later run: write it to a file, or leave out Job::checkpoint"
                .into(),
        ));
    }
    let job = log::identity(&checkpoint.program, std::any::type_name::<J>(), settings, &opened.sources)?;
    Checkpoint::open(&checkpoint.dir, &job).map(Some)
}
