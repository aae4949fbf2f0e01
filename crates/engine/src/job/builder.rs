//! A job: a program, its input and its settings.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use gristmill_os::machine::NumaNode;
use gristmill_os::room::TemporaryFolder;
use rustix::process::Signal;

use crate::control::progress::Progress;
use crate::coordinator::{self, Request, Terms};
use crate::data::datum::{Datum, Key};
use crate::data::order::Order;
use crate::error::{Asked, Error, Result};
use crate::input::paths::{Input, Opened};
use crate::input::records::Records;
use crate::interrupt::{CancelToken, Interrupt, MayStop};
use crate::output::outcome::{Outcome, Output, Summary};
use crate::output::pair_files::PairFiles;
use crate::output::parts::{Part, Row, Target, WriteRequest};
use crate::output::sink::{Attempt, Sink};
use crate::plan::explain::Choice;
use crate::plan::options::Options;
use crate::plan::settings::{Buffer, CheckpointSettings, Combining, Exchange, Isolation, PagePolicy, Placement, Trial};
use crate::program::accumulator::Accumulator;
use crate::program::ending::{AsMapped, Ending, Made, Whole};
use crate::program::map_reduce::{MapReduce, Reduce};
use crate::program_error::ProgramError;
use crate::shared_output::array::{Plain, SharedOutput};
use crate::spill::values::Values;
use crate::steps::step::{Next, Step};
use crate::testing::kill_points::{Deed, Moment};

/// A MapReduce job. Its result has the types `E`: those of the program, unless [`Job::reduce_to`] names others.
///
/// ```
/// use gristmill::{Bytes, Emit, Input, Isolation, Job, MapReduce, ProgramError, Chunk};
///
/// struct WordCount;
///
/// impl MapReduce for WordCount {
///     type Key = Bytes;
///     type Value = u64;
///
///     fn combiner(&self) -> Option<impl Fn(u64, u64) -> u64> {
///         Some(|a, b| a + b)
///     }
///
///     fn map(&self, chunk: &mut Chunk<'_>, out: &mut impl Emit<Bytes, u64>) -> Result<(), ProgramError> {
///         for word in chunk.bytes().split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()) {
///             out.emit(word, 1);
///         }
///         Ok(())
///     }
/// }
///
/// # let dir = tempfile::tempdir()?;
/// # let path = dir.path().join("haiku.txt");
/// # std::fs::write(&path, "old pond\na frog leaps in\nsound of a pond\n")?;
/// // This doctest runs beside others in one process, so its workers are threads.
/// let (counts, _) = Job::new(&WordCount, Input::paths([&path])).workers(2).isolation(Isolation::Thread).run()?;
/// assert_eq!(counts.get(&b"pond"[..]), Some(2));
/// assert_eq!(counts.len(), 8);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Job<'j, J: MapReduce, E: Ending<J> = AsMapped> {
    input: Input,
    program: &'j J,
    reduce: Option<Box<Reduce<'j, J::Key, J::Value, E::Key, E::Value>>>,
    terms: Terms<'j>,
}

impl<'j, J: MapReduce> Job<'j, J> {
    /// Makes a job that reads lines, with as many workers as this process may use processors.
    pub fn new(program: &'j J, input: Input) -> Job<'j, J> {
        Job { input, program, reduce: None, terms: Terms::default() }
    }

    /// Calls `reduce` once for each key with all its [`Values`] in ascending order (a single one, if the program
    /// combines), when they have all arrived. The pairs that it emits are the result. Without it, the result is every
    /// pair. For values in descending order, let the program emit [`Reverse`](std::cmp::Reverse).
    ///
    /// An error that it returns ends the job ([`ProgramError`]).
    ///
    /// ```
    /// use gristmill::{Bytes, Emit, Input, Isolation, Job, MapReduce, ProgramError, Chunk};
    ///
    /// /// For each word, the lengths of the lines in which it stands.
    /// struct LineLengths;
    ///
    /// impl MapReduce for LineLengths {
    ///     type Key = Bytes;
    ///     type Value = u64;
    ///
    ///     fn map(&self, chunk: &mut Chunk<'_>, out: &mut impl Emit<Bytes, u64>) -> Result<(), ProgramError> {
    ///         for line in chunk.lines() {
    ///             line.split(|byte| *byte == b' ').for_each(|word| out.emit(word, line.len() as u64));
    ///         }
    ///         Ok(())
    ///     }
    /// }
    ///
    /// # let dir = tempfile::tempdir()?;
    /// # let path = dir.path().join("haiku.txt");
    /// # std::fs::write(&path, "old pond\na frog leaps in\nsound of a pond\n")?;
    /// let job = Job::new(&LineLengths, Input::paths([&path])).workers(2).isolation(Isolation::Thread);
    /// let longest = job.reduce(|word, lengths, emit| {
    ///     emit(word, lengths.owned().max().unwrap_or(0));
    ///     Ok(())
    /// });
    /// assert_eq!(longest.run()?.0.get(b"pond"), Some(15));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn reduce(
        mut self,
        reduce: impl for<'a> Fn(
            <J::Key as Datum>::Ref<'a>,
            &mut Values<'_, J::Key, J::Value>,
            &mut dyn FnMut(<J::Key as Datum>::Ref<'_>, <J::Value as Datum>::Ref<'_>),
        ) -> Result<(), ProgramError>
        + Send
        + Sync
        + 'j,
    ) -> Self {
        self.reduce = Some(Box::new(reduce));
        self
    }

    /// As [`Job::reduce`], for a reduce function that emits keys `K` and values `V`, which must be named.
    ///
    /// ```
    /// use gristmill::{Bytes, Emit, Input, Isolation, Job, MapReduce, ProgramError, Chunk};
    ///
    /// /// For each word, the lengths of the lines in which it stands.
    /// struct LineLengths;
    ///
    /// impl MapReduce for LineLengths {
    ///     type Key = Bytes;
    ///     type Value = u64;
    ///
    ///     fn map(&self, chunk: &mut Chunk<'_>, out: &mut impl Emit<Bytes, u64>) -> Result<(), ProgramError> {
    ///         for line in chunk.lines() {
    ///             line.split(|byte| *byte == b' ').for_each(|word| out.emit(word, line.len() as u64));
    ///         }
    ///         Ok(())
    ///     }
    /// }
    ///
    /// let haiku = Input::bytes("haiku", b"old pond\na frog leaps in\nsound of a pond\n")?;
    /// let job = Job::new(&LineLengths, haiku).workers(2).isolation(Isolation::Thread);
    /// let means = job.reduce_to::<String, f64>(|word, lengths, emit| {
    ///     let lengths: Vec<u64> = lengths.owned().collect();
    ///     emit(str::from_utf8(word)?, lengths.iter().sum::<u64>() as f64 / lengths.len() as f64);
    ///     Ok(())
    /// });
    /// assert_eq!(means.run()?.0.get("pond"), Some(11.5));
    /// # Ok::<(), gristmill::Error>(())
    /// ```
    pub fn reduce_to<K: Key, V: Datum>(
        self,
        reduce: impl for<'a> Fn(
            <J::Key as Datum>::Ref<'a>,
            &mut Values<'_, J::Key, J::Value>,
            &mut dyn FnMut(K::Ref<'_>, V::Ref<'_>),
        ) -> Result<(), ProgramError>
        + Send
        + Sync
        + 'j,
    ) -> Job<'j, J, Made<K, V>> {
        let Job { input, program, reduce: _, terms } = self;
        Job { input, program, reduce: Some(Box::new(reduce)), terms }
    }

    /// Runs the job and lets its reducers write the result in parallel, in key order. Each reducer has ranges of the
    /// result and writes them to their places in `target`, pair by pair as `row` formats them. Returns the parts, in
    /// order. Messages call the result `path`.
    ///
    /// Only for results that consist of the pairs as map emits them, ordered by key: without a combiner, a reduce
    /// function, a partition function or a limit. Nothing is synced, and after an error the file does not hold the
    /// result: write to a file without a name, and name it at the end.
    ///
    /// ```
    /// # use gristmill::{Bytes, Emit, Input, Isolation, Job, MapReduce, ProgramError, Row, Chunk, Target};
    /// # struct Lines;
    /// # impl MapReduce for Lines {
    /// #     type Key = Bytes;
    /// #     type Value = ();
    /// #     fn map(&self, chunk: &mut Chunk<'_>, out: &mut impl Emit<Bytes, ()>) -> Result<(), ProgramError> {
    /// #         chunk.lines().for_each(|line| out.emit(line, ()));
    /// #         Ok(())
    /// #     }
    /// # }
    /// impl Row<Bytes, ()> for Lines {
    ///     fn bytes(&self, line: &[u8], (): ()) -> usize {
    ///         line.len() + 1
    ///     }
    ///
    ///     fn write(&self, line: &[u8], (): (), to: &mut Vec<u8>) {
    ///         to.extend_from_slice(line);
    ///         to.push(b'\n');
    ///     }
    /// }
    ///
    /// # let dir = tempfile::tempdir()?;
    /// # let path = dir.path().join("lines.txt");
    /// # std::fs::write(&path, (0..100_000).map(|n| format!("{:05}\n", n * 7919 % 100_000)).collect::<String>())?;
    /// let sorted = dir.path().join("sorted.txt");
    /// let file = std::fs::File::create(&sorted)?;
    /// let job = Job::new(&Lines, Input::paths([&path])).workers(2).isolation(Isolation::Thread);
    /// let (parts, _) = job.write(&sorted, Target::File { file: &file, start: 0 }, &Lines)?;
    /// assert_eq!(parts.iter().map(|part| part.bytes).sum::<u64>(), 600_000);
    /// assert!(std::fs::read(&sorted)?.starts_with(b"00000\n00001\n00002\n"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Job::run`], and when a part cannot be written.
    pub fn write<'t>(
        self,
        path: &'t Path,
        target: Target<'t>,
        row: &'t dyn Row<J::Key, J::Value>,
    ) -> Result<(Vec<Part>, Summary)> {
        let (request, open) = self.described();
        coordinator::write(request, open, WriteRequest { path, target, row })
    }

    /// Runs the job in steps, with the same workers. The pairs that a step reduces stay in the region, partition by
    /// partition. After each step `control` sees them and decides what the next step maps: the input again, or those
    /// pairs ([`Next`]). Every step sees a small state: `state` at first, then the one last set with
    /// [`Step::set_state`], which may not be longer than `state`. The order and the limit of the result have no effect
    /// here.
    ///
    /// A worker that dies in any step is replaced. The partitions that it had not yet left in the region are made again
    /// from the input of the step, which stays until the step is complete.
    ///
    /// ```
    /// use gristmill::{Emit, Input, Isolation, Job, MapReduce, ProgramError, Next, Pairs, Records, Chunk};
    ///
    /// /// In how many ways a walk on the whole numbers comes to each place.
    /// struct Walk;
    ///
    /// impl MapReduce for Walk {
    ///     type Key = i64;
    ///     type Value = u64;
    ///
    ///     fn combiner(&self) -> Option<impl Fn(u64, u64) -> u64> {
    ///         Some(|a, b| a + b)
    ///     }
    ///
    ///     fn map(&self, chunk: &mut Chunk<'_>, out: &mut impl Emit<i64, u64>) -> Result<(), ProgramError> {
    ///         chunk.bytes().iter().for_each(|start| out.emit(i64::from(*start), 1));
    ///         Ok(())
    ///     }
    ///
    ///     fn map_pairs(&self, pairs: &Pairs<'_, i64, u64>, out: &mut impl Emit<i64, u64>) -> Result<(), ProgramError> {
    ///         for (place, ways) in pairs.iter() {
    ///             out.emit(place - 1, ways);
    ///             out.emit(place + 1, ways);
    ///         }
    ///         Ok(())
    ///     }
    /// }
    ///
    /// let start = Input::bytes("the start", &[10])?;
    /// // This doctest runs beside others in one process, so its workers are threads.
    /// let job = Job::new(&Walk, start).records(Records::Fixed(1)).workers(2).isolation(Isolation::Thread);
    /// let mut ways = None;
    /// job.iterate(&[], |step| {
    ///     ways = step.get(12);
    ///     if step.number() == 4 { Next::Stop } else { Next::Pairs }
    /// })?;
    /// assert_eq!(ways, Some(4)); // one step back and three forward, in any order
    /// # Ok::<(), gristmill::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Job::run`]; and when the pairs of two consecutive steps exceed [`Job::keep_bytes`] and the room in the
    /// spill folder.
    pub fn iterate(self, state: &[u8], control: impl FnMut(&mut Step<'_, J>) -> Next) -> Result<Summary> {
        let (request, open) = self.described();
        coordinator::iterate(request, open, state, control)
    }
}

/// Settings, and what any job can do.
impl<'j, J: MapReduce, E: Ending<J>> Job<'j, J, E> {
    /// Sets all these options, which came as text from a command line or a file. Later calls of other methods replace
    /// them.
    pub fn options(mut self, options: &Options) -> Self {
        options.apply(&mut self.terms.settings);
        self
    }

    /// Sets the number of workers, which both map and reduce.
    pub fn workers(mut self, workers: usize) -> Self {
        self.terms.settings.workers = Some(workers);
        self
    }

    /// Sets the number of separate map workers. A crash in map then never loses what reducers have gathered.
    pub fn map_workers(mut self, workers: usize) -> Self {
        self.terms.settings.map_workers = Some(workers);
        self
    }

    /// Sets the number of separate reduce workers.
    pub fn reduce_workers(mut self, workers: usize) -> Self {
        self.terms.settings.reduce_workers = Some(workers);
        self
    }

    /// Lets the plan add workers that only reduce: one for every two that map, if the job is long enough. Use it if
    /// the map function may crash, or runs an interpreter, which takes so much of the caches that reducing in the same
    /// worker is slow. Without it, each worker maps and reduces, unless [`Job::map_workers`] or
    /// [`Job::reduce_workers`] is set.
    pub fn reduce_apart(mut self, apart: bool) -> Self {
        self.terms.settings.reduce_apart = apart;
        self
    }

    /// Hands out tasks for a reader who needs their effects in the order of the input: the first tasks are small,
    /// together at most 1/64 of the input before them, and a task of a dead worker goes first. Used with
    /// [`MapReduce::end_task`].
    ///
    /// ```
    /// use std::sync::Mutex;
    ///
    /// use gristmill::{Chunk, Emit, Input, Isolation, Job, MapReduce, ProgramError};
    ///
    /// /// Notes which tasks have ended.
    /// struct Noted(Mutex<Vec<usize>>);
    ///
    /// impl MapReduce for Noted {
    ///     type Key = ();
    ///     type Value = u64;
    ///
    ///     fn map(&self, _: &mut Chunk<'_>, _: &mut impl Emit<(), u64>) -> Result<(), ProgramError> {
    ///         Ok(())
    ///     }
    ///
    ///     fn end_task(&self, task: usize) {
    ///         self.0.lock().expect("no thread panics").push(task);
    ///     }
    /// }
    ///
    /// let (noted, text) = (Noted(Mutex::default()), "a line\n".repeat(1000));
    /// let input = Input::bytes("text", text.as_bytes())?;
    /// Job::new(&noted, input).in_order(true).workers(1).isolation(Isolation::Thread).run()?;
    /// let tasks = noted.0.into_inner().expect("no thread panics");
    /// assert!(tasks.len() > 10 && tasks.into_iter().enumerate().all(|(number, task)| number == task));
    /// # Ok::<(), gristmill::Error>(())
    /// ```
    pub fn in_order(mut self, in_order: bool) -> Self {
        self.terms.settings.in_order = in_order;
        self
    }

    /// Chooses processes or threads.
    pub fn isolation(mut self, isolation: Isolation) -> Self {
        self.terms.settings.isolation = isolation;
        self
    }

    /// Chooses a pipelined exchange, or a barrier between map and reduce.
    pub fn exchange(mut self, exchange: Exchange) -> Self {
        self.terms.settings.exchange = exchange;
        self
    }

    /// Chooses the map-side buffer.
    pub fn buffer(mut self, buffer: Buffer) -> Self {
        self.terms.settings.buffer = buffer;
        self
    }

    /// Chooses where values are combined.
    pub fn combine(mut self, combine: Combining) -> Self {
        self.terms.settings.combine = combine;
        self
    }

    /// With [`Combining::Map`] or [`Combining::Off`], lets a reducer combine early when one key has gathered more than
    /// `values` values. Without this option such a reducer keeps every value until the end. With it, the reducer then
    /// combines the values that it has, and from then on those that arrive, so a frequent key cannot fill the memory.
    /// Keys are counted in a sketch, which may trigger early but never late.
    ///
    /// ```
    /// # use gristmill::{Bytes, Combining, Count, Emit, Input, Isolation, Job, MapReduce, ProgramError, Chunk};
    /// # struct Words;
    /// # impl MapReduce for Words {
    /// #     type Key = Bytes;
    /// #     type Value = u64;
    /// #     fn combiner(&self) -> Option<impl Fn(u64, u64) -> u64> {
    /// #         Some(|a, b| a + b)
    /// #     }
    /// #
    /// #     fn map(&self, chunk: &mut Chunk<'_>, out: &mut impl Emit<Bytes, u64>) -> Result<(), ProgramError> {
    /// #         chunk.bytes().split(u8::is_ascii_whitespace).for_each(|word| out.emit(word, 1));
    /// #         Ok(())
    /// #     }
    /// # }
    /// let text = "the ".repeat(100_000);
    /// let job = Job::new(&Words, Input::bytes("text", text.trim_end().as_bytes())?).combine(Combining::Off);
    /// # // This doctest runs beside others in one process, so its workers are threads.
    /// # let job = job.isolation(Isolation::Thread);
    /// let (counts, summary) = job.combine_after(10_000).run()?;
    /// assert_eq!(counts.get(b"the"), Some(100_000));
    /// assert!(summary.workers.iter().any(|worker| worker.counters.get(Count::SkewsFound) == 1));
    /// # Ok::<(), gristmill::Error>(())
    /// ```
    pub fn combine_after(mut self, values: u32) -> Self {
        self.terms.settings.combine_after = Some(values);
        self
    }

    /// Chooses where workers run, if the machine has several NUMA nodes.
    pub fn placement(mut self, placement: Placement) -> Self {
        self.terms.settings.placement = placement;
        self
    }

    /// Chooses where the memory of pages comes from.
    pub fn pages(mut self, pages: PagePolicy) -> Self {
        self.terms.settings.pages = pages;
        self
    }

    /// Sets the size of a page in bytes, a multiple of 4096.
    pub fn page_bytes(mut self, bytes: usize) -> Self {
        self.terms.settings.page_bytes = Some(bytes);
        self
    }

    /// Sets the approximate number of input bytes of a map task.
    pub fn split_bytes(mut self, bytes: u64) -> Self {
        self.terms.settings.split_bytes = Some(bytes);
        self
    }

    /// Sets the approximate number of input bytes that the map function sees at once. 256 KiB by default.
    pub fn chunk_bytes(mut self, bytes: usize) -> Self {
        self.terms.settings.chunk_bytes = Some(bytes);
        self
    }

    /// Chooses the order of the result.
    pub fn order(mut self, order: Order) -> Self {
        self.terms.settings.order = order;
        self
    }

    /// Keeps only the `k` pairs with the greatest values.
    pub fn top(mut self, k: usize) -> Self {
        self.terms.settings.order = Order::ByValueDescending;
        self.terms.settings.limit = k;
        self
    }

    /// Chooses where records end.
    pub fn records(mut self, records: Records) -> Self {
        self.terms.settings.records = records;
        self
    }

    /// Sets the length of the longest record in bytes. A longer one is an error that names its place. 64 MiB by
    /// default.
    pub fn record_bytes_max(mut self, bytes: usize) -> Self {
        self.terms.settings.record_bytes_max = bytes;
        self
    }

    /// Sets how often a failed task is retried, and a partition whose combining or reducing failed. 2 by default. If a
    /// task killed its worker, the next attempts go record by record, so that the error can name the record.
    pub fn retries(mut self, retries: u32) -> Self {
        self.terms.settings.retries = retries;
        self
    }

    /// Sets how many workers may die in the whole job. By default as many as there are spare slots, at least 32.
    pub fn max_failures(mut self, failures: u32) -> Self {
        self.terms.settings.max_failures = Some(failures);
        self
    }

    /// Sets aside up to `records` records, at most a million, because the map function panics on them, returns
    /// an error ([`ProgramError`]), is killed by them, or (with [`Job::task_timeout`]) never returns.
    /// They count for nothing, and the summary lists them ([`Summary::bad_records`]). One more is an error.
    ///
    /// A panic or an error in the map function costs no worker. A record that kills its worker is found by the
    /// retries; at most 32 records may kill. The cost of this option: pairs are kept apart until the map function has
    /// returned.
    ///
    /// ```
    /// # use gristmill::{Emit, Input, Isolation, Job, MapReduce, ProgramError, Chunk};
    /// /// Adds up numbers, one in each line.
    /// struct Sum;
    ///
    /// impl MapReduce for Sum {
    ///     type Key = u32;
    ///     type Value = i64;
    ///
    ///     fn map(&self, chunk: &mut Chunk<'_>, out: &mut impl Emit<u32, i64>) -> Result<(), ProgramError> {
    ///         let parse = |line: &[u8]| str::from_utf8(line).expect("text").parse::<i64>().expect("a number");
    ///         out.emit(0, chunk.lines().map(parse).sum());
    ///         Ok(())
    ///     }
    /// }
    ///
    /// let input = Input::bytes("numbers", b"1\n2\nthree\n4\n")?;
    /// // This doctest runs beside others in one process, so its workers are threads.
    /// let job = Job::new(&Sum, input).isolation(Isolation::Thread).workers(1).skip_bad_records(1);
    /// let (sums, summary) = job.run()?;
    /// assert_eq!(sums.iter().map(|(_, sum)| sum).sum::<i64>(), 7);
    /// assert_eq!((summary.bad_records[0].line, &summary.bad_records[0].record[..]), (Some(3), &b"three"[..]));
    /// # Ok::<(), gristmill::Error>(())
    /// ```
    pub fn skip_bad_records(mut self, records: u32) -> Self {
        self.terms.settings.skip_bad_records = records;
        self
    }

    /// Kills a worker whose task takes longer than this; the task counts as failed. A worker that makes no progress for
    /// this long outside a task, because it was stopped or waits for something that never comes, is killed too.
    pub fn task_timeout(mut self, timeout: Duration) -> Self {
        self.terms.settings.task_timeout = Some(timeout);
        self
    }

    /// Saves the job's progress in the folder `dir`, so that running the same job again continues where this run ended,
    /// however it ended. About every `every`, all work done so far is written to disk. `program` names everything that
    /// the map function depends on besides its input, such as its parameters. A job whose program, options or input
    /// files have changed is refused ([`Error::CheckpointOfAnother`]).
    ///
    /// The checkpoint remains after the job, so that nothing is lost before the result is stored; then call
    /// [`remove_checkpoint`](crate::remove_checkpoint). Without this option nothing is written, at no cost.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use gristmill::{Bytes, Emit, Input, Isolation, Job, MapReduce, ProgramError, Chunk};
    /// # struct Words;
    /// # impl MapReduce for Words {
    /// #     type Key = Bytes;
    /// #     type Value = u64;
    /// #     fn combiner(&self) -> Option<impl Fn(u64, u64) -> u64> {
    /// #         Some(|a, b| a + b)
    /// #     }
    /// #
    /// #     fn map(&self, chunk: &mut Chunk<'_>, out: &mut impl Emit<Bytes, u64>) -> Result<(), ProgramError> {
    /// #         chunk.bytes().split(u8::is_ascii_whitespace).for_each(|word| out.emit(word, 1));
    /// #         Ok(())
    /// #     }
    /// # }
    /// # let dir = tempfile::tempdir()?;
    /// # let path = dir.path().join("haiku.txt");
    /// # std::fs::write(&path, "old pond\na frog leaps in\nsound of a pond\n")?;
    /// # let checkpoint = dir.path().join("checkpoint");
    /// // This doctest runs beside others in one process, so its workers are threads.
    /// let job = || Job::new(&Words, Input::paths([&path])).isolation(Isolation::Thread);
    /// let (_, first) = job().checkpoint(&checkpoint, "words", Duration::from_secs(10)).run()?;
    /// // As if this process had been killed before it could write the answer down:
    /// let (counts, second) = job().checkpoint(&checkpoint, "words", Duration::from_secs(10)).run()?;
    /// assert_eq!(counts.get(b"pond"), Some(2));
    /// assert_eq!((second.tasks, second.resumed_tasks), (0, first.tasks));
    /// gristmill::remove_checkpoint(&checkpoint)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn checkpoint(mut self, dir: impl Into<PathBuf>, program: &str, every: Duration) -> Self {
        self.terms.settings.checkpoint =
            Some(CheckpointSettings { dir: dir.into(), program: program.to_owned(), every });
        self
    }

    /// Sets how many workers map at the same time; by default as many as there are processors. Raise it if the map
    /// function waits for anything but the processor.
    pub fn map_at_once(mut self, workers: usize) -> Self {
        self.terms.settings.map_at_once = Some(workers);
        self
    }

    /// Sets the number of partitions. It is rounded up to a power of two and to at least one per reducer; by default it
    /// is 64, or two per reducer if that is more. Each partition has an open page in every worker that maps.
    pub fn partitions(mut self, partitions: usize) -> Self {
        self.terms.settings.partitions = Some(partitions);
        self
    }

    /// Sets how many bytes of memory the pairs of two consecutive steps may take, for [`Job::iterate`]. By default half
    /// of the rest of [`Job::memory`] after pages and tables, or half of the available memory. It is only address space
    /// until it is used. Pairs beyond it lie in a file in the spill folder that has the most room, as long as
    /// [`Job::keep_free`] allows; the kernel writes them to the disk when it needs the memory.
    pub fn keep_bytes(mut self, bytes: u64) -> Self {
        self.terms.settings.keep_bytes = Some(bytes);
        self
    }

    /// Lets the map function (or [`MapReduce::map_pairs`], in steps that map pairs) write to this array; see
    /// [`SharedOutput`]. A job may write several.
    pub fn writes<T: Plain>(mut self, output: &'j SharedOutput<T>) -> Self {
        self.terms.outputs.push(output.scope());
        self
    }

    /// Lets the map function add to this [`Accumulator`]. A job may have several.
    pub fn accumulates(mut self, accumulator: &Accumulator) -> Self {
        if !self.terms.accumulators.contains(&accumulator.kind) {
            self.terms.accumulators.push(accumulator.kind);
        }
        self
    }

    /// Sets the memory of all workers and the coordinator together, in bytes. Pairs that do not fit are spilled to
    /// disk. By default half of the memory that is available to the machine and to the process's cgroup.
    ///
    /// The limit covers pages, tables, buffers, decoders of compressed files, the sorting of the result, and the memory
    /// that the program declares ([`Job::holds`], [`MapReduce::UNPACKS`]). It does not cover other allocations of the
    /// map function and of the receiver of the result. One pair, and one record, must fit.
    pub fn memory(mut self, bytes: usize) -> Self {
        self.terms.settings.memory_bytes = Some(bytes);
        self
    }

    /// Declares memory that the program holds for the whole job, such as a matrix that its map function reads. It is
    /// subtracted from [`Job::memory`].
    pub fn holds(mut self, bytes: usize) -> Self {
        self.terms.settings.held_bytes = bytes;
        self
    }

    /// Declares further memory that the program will hold while the job runs, or for its result. If that much is not
    /// available, the job does not start.
    pub fn will_hold(mut self, bytes: usize) -> Self {
        self.terms.settings.will_hold_bytes = bytes;
        self
    }

    /// Sets the folders to spill to, used in turn; best on different disks. One without room is passed over. By
    /// default the folder for temporary files (`TMPDIR`). Spill files have no name, so they vanish with the job
    /// however it ends.
    ///
    /// ```
    /// # use gristmill::{Bytes, Emit, Input, Isolation, Job, MapReduce, ProgramError, Chunk};
    /// # struct Lines;
    /// # impl MapReduce for Lines {
    /// #     type Key = Bytes;
    /// #     type Value = u64;
    /// #     fn map(&self, chunk: &mut Chunk<'_>, out: &mut impl Emit<Bytes, u64>) -> Result<(), ProgramError> {
    /// #         chunk.lines().for_each(|line| out.emit(line, 1));
    /// #         Ok(())
    /// #     }
    /// # }
    /// # let dir = tempfile::tempdir()?;
    /// # let path = dir.path().join("lines.txt");
    /// # std::fs::write(&path, (0..100_000).map(|n| format!("{}\n", n * 7919 % 100_000)).collect::<String>())?;
    /// # let job = Job::new(&Lines, Input::paths([&path])).workers(1).isolation(Isolation::Thread);
    /// let mut before = Vec::new();
    /// job.memory(8 << 20).spill_dirs([dir.path()]).run_each(|line, _| {
    ///     assert!(before < line.to_vec());
    ///     before = line.to_vec();
    /// })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn spill_dirs<P: Into<PathBuf>>(mut self, dirs: impl IntoIterator<Item = P>) -> Self {
        self.terms.settings.spill_dirs = dirs.into_iter().map(Into::into).collect();
        self
    }

    /// Sets how many bytes stay free on the file systems of the spill folders and of the checkpoint. A job that finds
    /// less free there ends. By default a tenth of the bytes that are free when the job begins. For copies of streams
    /// see [`Input::keep_free`].
    pub fn keep_free(mut self, bytes: u64) -> Self {
        self.terms.settings.keep_free_bytes = Some(bytes);
        self
    }

    /// Makes the result the same, byte for byte, for any number of workers and any schedule, even with sums of
    /// floating-point numbers. Splits and chunks are then cut the same way for any number of workers, and an unordered
    /// result comes in key order. Values that are whole numbers combine as usual. Others ([`Datum::EXACT`]) are
    /// combined only within a map task and at the end, in ascending order. That takes more memory, as
    /// [`Combining::Map`] does, and time to sort all pairs by key: the job takes twice the time if few keys repeat
    /// within a task.
    pub fn deterministic(mut self, deterministic: bool) -> Self {
        self.terms.settings.deterministic = deterministic;
        self
    }

    /// Calls `progress` about ten times a second while the job runs. If it returns [`ControlFlow::Break`], the job ends
    /// with [`Error::Cancelled`].
    pub fn on_progress<R: MayStop>(mut self, mut progress: impl FnMut(Progress) -> R + Send + 'j) -> Self {
        self.terms.progress = Some(Box::new(move |now| progress(now).stops()));
        self
    }

    /// Records which phase each worker was in, and when, for [`Summary::timeline`]. That takes 48 KiB of address space
    /// for each worker, of which a job that ends soon touches a part, and a few instructions whenever a phase changes.
    ///
    /// ```
    /// # use gristmill::{Bytes, Chunk, Emit, MapReduce, ProgramError};
    /// # struct Words;
    /// # impl MapReduce for Words {
    /// #     type Key = Bytes;
    /// #     type Value = u64;
    /// #     fn combiner(&self) -> Option<impl Fn(u64, u64) -> u64> {
    /// #         Some(|a, b| a + b)
    /// #     }
    /// #     fn map(&self, chunk: &mut Chunk<'_>, out: &mut impl Emit<Bytes, u64>) -> Result<(), ProgramError> {
    /// #         chunk.bytes().split(u8::is_ascii_whitespace).for_each(|word| out.emit(word, 1));
    /// #         Ok(())
    /// #     }
    /// # }
    /// use gristmill::{Input, Isolation, Job, Phase};
    ///
    /// // This doctest runs beside others in one process, so its workers are threads.
    /// let job = Job::new(&Words, Input::bytes("song", b"row row your boat")?).isolation(Isolation::Thread);
    /// let (_, summary) = job.timeline(true).run()?;
    /// let timeline = summary.timeline.expect("it was asked for");
    /// for (worker, track) in summary.workers.iter().zip(&timeline.tracks) {
    ///     assert_eq!(track.time_ns(Phase::Map), worker.counters.time_ns(Phase::Map));
    /// }
    /// # Ok::<(), gristmill::Error>(())
    /// ```
    pub fn timeline(mut self, timeline: bool) -> Self {
        self.terms.settings.timeline = timeline;
        self
    }

    /// Lets `token` cancel this job.
    pub fn cancel_by(mut self, token: &CancelToken) -> Self {
        self.terms.cancel = Some(token.clone());
        self
    }

    /// Ends the job with [`Error::Deadline`] if it takes longer than `limit`, from the call that
    /// runs it to its last pair. The copying of pipes counts, and so does the time that the receiver of the result
    /// takes. For an input that is looked at before ([`Input::sources`], [`Input::sift`]), see [`Input::deadline`].
    pub fn deadline(mut self, limit: Duration) -> Self {
        self.terms.settings.deadline = Some(limit);
        self
    }

    /// Calls `on_news` with a sentence about an event that a user may want to know of while the job runs: a worker died
    /// (with the attempt at its task) and is replaced, or a job continues from a checkpoint.
    pub fn on_news(mut self, on_news: impl FnMut(&str) + Send + 'j) -> Self {
        self.terms.on_news = Some(Box::new(on_news));
        self
    }

    /// Chooses whether a separate process reads and maps a few small pieces of the input before the job is planned.
    /// The plan then knows whether reading waits for a disk, how long a byte takes and how many pairs it yields. True
    /// by default; pass false if the map function must not see a record twice. Small inputs, and jobs whose workers
    /// are threads, are planned without a sample.
    pub fn sample(mut self, sample: bool) -> Self {
        self.terms.settings.sample = sample;
        self
    }

    /// Tells the plan how long earlier runs of the same program took, over a similar input on this machine. It follows
    /// the best of them in what no other setting asks for, unless the sample shows that reading has to wait for a disk
    /// now.
    ///
    /// ```
    /// # use gristmill::{Bytes, Emit, Input, Isolation, Job, MapReduce, ProgramError, Chunk};
    /// use gristmill::Trial;
    /// # /// Nothing.
    /// # struct Lines;
    /// # impl MapReduce for Lines {
    /// #     type Key = Bytes;
    /// #     type Value = u64;
    /// #     fn map(&self, chunk: &mut Chunk<'_>, out: &mut impl Emit<Bytes, u64>) -> Result<(), ProgramError> {
    /// #         chunk.lines().for_each(|line| out.emit(line, 1));
    /// #         Ok(())
    /// #     }
    /// # }
    /// let trial = |workers, seconds| Trial { workers, map_at_once: None, chunk_bytes: None, seconds };
    /// let mut plan = Vec::new();
    /// # // This doctest runs beside others in one process, so its workers are threads.
    /// let job = Job::new(&Lines, Input::bytes("pond", b"a frog\nleaps in\n")?).isolation(Isolation::Thread);
    /// job.history([trial(1, 2.0), trial(3, 1.1), trial(9, 1.8)]).on_plan(|choices| plan.extend_from_slice(choices)).run()?;
    /// let workers = plan.iter().find(|choice| choice.what == "workers").expect("every plan says how many");
    /// assert_eq!(workers.chosen, "3, each maps and reduces");
    /// assert_eq!(workers.why, "history: the best of 3 times, 1.100 s; the worst was 2.000 s");
    /// # Ok::<(), gristmill::Error>(())
    /// ```
    pub fn history(mut self, trials: impl IntoIterator<Item = Trial>) -> Self {
        self.terms.settings.history = trials.into_iter().collect();
        self
    }

    /// Calls `on_plan` with every choice made for this job and its reason, before the job starts.
    ///
    /// ```
    /// # use gristmill::{Bytes, Emit, Input, Isolation, Job, MapReduce, ProgramError, Chunk};
    /// # struct Lines;
    /// # impl MapReduce for Lines {
    /// #     type Key = Bytes;
    /// #     type Value = u64;
    /// #     fn map(&self, chunk: &mut Chunk<'_>, out: &mut impl Emit<Bytes, u64>) -> Result<(), ProgramError> {
    /// #         chunk.lines().for_each(|line| out.emit(line, 1));
    /// #         Ok(())
    /// #     }
    /// # }
    /// let mut plan = Vec::new();
    /// # // This doctest runs beside others in one process, so its workers are threads.
    /// let job = Job::new(&Lines, Input::bytes("pond", b"a frog\nleaps in\n")?).isolation(Isolation::Thread);
    /// job.on_plan(|choices| plan.extend_from_slice(choices)).run()?;
    /// let workers = plan.iter().find(|choice| choice.what == "workers").expect("every plan says how many");
    /// assert_eq!(workers.chosen, "1, which maps and reduces");
    /// assert_eq!(workers.why, "the input is so small that one more would cost more than it brings");
    /// # Ok::<(), gristmill::Error>(())
    /// ```
    pub fn on_plan(mut self, on_plan: impl FnMut(&[Choice]) + Send + 'j) -> Self {
        self.terms.on_plan = Some(Box::new(on_plan));
        self
    }

    /// For tests of the engine: the nodes of the machine, each with these processors.
    #[doc(hidden)]
    pub fn nodes(mut self, nodes: &[&[usize]]) -> Self {
        let node = |(number, cpus): (usize, &&[usize])| NumaNode {
            number,
            cpus: cpus.to_vec(),
            has_memory: true,
            distances: Vec::new(),
        };
        self.terms.settings.nodes = nodes.iter().enumerate().map(node).collect();
        self
    }

    /// For tests of the engine: the `worker`-th worker to be started, replacements included, kills itself when it
    /// reaches `moment` for the `nth` time. Both count from 1.
    #[doc(hidden)]
    pub fn die_at(mut self, worker: usize, moment: Moment, nth: u64) -> Self {
        self.terms.settings.kill_points.push((worker, moment, nth, Deed::Signal(Signal::KILL)));
        self
    }

    /// For tests of the engine: as [`Job::die_at`], but the worker overwrites a word that it shares with others, as a
    /// stray pointer would. `seed` chooses the word and the value.
    #[doc(hidden)]
    pub fn overwrite_at(mut self, worker: usize, moment: Moment, nth: u64, seed: u64) -> Self {
        self.terms.settings.kill_points.push((worker, moment, nth, Deed::Overwrite(seed)));
        self
    }

    /// For tests of the engine: as [`Job::die_at`], but the worker stops itself, as SIGSTOP from outside would.
    #[doc(hidden)]
    pub fn stop_at(mut self, worker: usize, moment: Moment, nth: u64) -> Self {
        self.terms.settings.kill_points.push((worker, moment, nth, Deed::Signal(Signal::STOP)));
        self
    }

    /// Runs the job and gathers the result in memory.
    ///
    /// # Errors
    /// See [`Error`]: bad input, a task that fails again and again, a setting that cannot be honoured, or
    /// a system call that fails.
    pub fn run(self) -> Result<Outcome<J, E>> {
        let is_sorted = self.terms.settings.order == Order::ByKey && self.reduce.is_none();
        let mut records = Output::new(is_sorted);
        let summary = self.run_each(|key, value| records.push(key, value))?;
        Ok((records, summary))
    }

    /// Runs the job and calls `visit` with every pair of the result, in order.
    ///
    /// # Errors
    /// As [`Job::run`]. Pairs already visited are correct but not complete.
    pub fn run_each(
        self,
        mut visit: impl FnMut(<E::Key as Datum>::Ref<'_>, <E::Value as Datum>::Ref<'_>),
    ) -> Result<Summary> {
        self.run_while(|key, value| {
            visit(key, value);
            ControlFlow::Continue(())
        })
    }

    /// Runs the job and calls `visit` with the pairs of the result, in order, until it returns `Break`: because the
    /// rest is not wanted, or cannot be written.
    ///
    /// # Errors
    /// As [`Job::run_each`].
    pub fn run_while(
        self,
        visit: impl FnMut(<E::Key as Datum>::Ref<'_>, <E::Value as Datum>::Ref<'_>) -> ControlFlow<()>,
    ) -> Result<Summary> {
        let (request, open) = self.described();
        coordinator::run(request, open, visit)
    }

    /// Runs the job and lets its reducers write the result to `sink` in parallel, each its own part. The pairs of a
    /// part are in the order of the result; the keys of different parts are not ordered among each other. A result
    /// with a limit ([`Job::top`]) is one part, which the caller's process writes.
    ///
    /// The example is at [`Sink`], and one for files at [`PartFiles`](crate::PartFiles).
    ///
    /// # Errors
    /// As [`Job::run`], and [`Error::Program`] for an error of the sink. Nothing is committed
    /// after an error.
    pub fn run_into(self, sink: &dyn Sink<E::Key, E::Value>) -> Result<Summary> {
        if self.terms.settings.limit < usize::MAX {
            return self.run_limited_into(sink);
        }
        let (request, open) = self.described();
        coordinator::run_into(request, open, sink)
    }

    /// Runs the job and makes its result the input of another, whose map function sees it with
    /// [`Chunk::pairs`](crate::Chunk::pairs). The pairs are kept in unnamed files in the spill folders
    /// ([`Job::spill_dirs`]), as long as the input exists; reducers write them in parallel.
    ///
    /// ```
    /// use gristmill::{Emit, Input, Isolation, Job, MapReduce, ProgramError, Chunk};
    ///
    /// /// Counts words.
    /// struct Words;
    ///
    /// impl MapReduce for Words {
    ///     type Key = String;
    ///     type Value = u64;
    ///
    ///     fn combiner(&self) -> Option<impl Fn(u64, u64) -> u64> {
    ///         Some(|a, b| a + b)
    ///     }
    ///
    ///     fn map(&self, chunk: &mut Chunk<'_>, out: &mut impl Emit<String, u64>) -> Result<(), ProgramError> {
    ///         str::from_utf8(chunk.bytes())?.split_whitespace().for_each(|word| out.emit(word, 1));
    ///         Ok(())
    ///     }
    /// }
    ///
    /// /// Counts words that are equally frequent.
    /// struct Frequencies;
    ///
    /// impl MapReduce for Frequencies {
    ///     type Key = u64;
    ///     type Value = u64;
    ///
    ///     fn combiner(&self) -> Option<impl Fn(u64, u64) -> u64> {
    ///         Some(|a, b| a + b)
    ///     }
    ///
    ///     fn map(&self, chunk: &mut Chunk<'_>, out: &mut impl Emit<u64, u64>) -> Result<(), ProgramError> {
    ///         chunk.pairs::<String, u64>()?.for_each(|(_, count)| out.emit(count, 1));
    ///         Ok(())
    ///     }
    /// }
    ///
    /// // This doctest runs beside others in one process, so its workers are threads.
    /// let words = Job::new(&Words, Input::bytes("song", b"row row row your boat")?).isolation(Isolation::Thread);
    /// let (counts, _) = words.run_to_input()?;
    /// let (frequencies, _) = Job::new(&Frequencies, counts).isolation(Isolation::Thread).run()?;
    /// assert_eq!(frequencies.iter().collect::<Vec<_>>(), [(1, 2), (3, 1)]);
    /// # Ok::<(), gristmill::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Job::run_into`].
    pub fn run_to_input(self) -> Result<(Input, Summary)> {
        let settings = &self.terms.settings;
        let folder = |path| TemporaryFolder::new(path, settings.keep_free_bytes);
        let files = PairFiles::new(settings.spill_folders().into_iter().map(folder).collect());
        let summary = self.run_into(&files)?;
        Ok((files.into_input().asked("reading the result of a job")?, summary))
    }

    /// As [`Job::run_into`], for a result with a limit: which pairs belong to it is known only where all parts meet.
    fn run_limited_into(self, sink: &dyn Sink<E::Key, E::Value>) -> Result<Summary> {
        let part = Attempt { part: 0, attempt: 0 };
        let failed = |error: ProgramError| {
            let what = "the sink, at part 0 of the result".into();
            Error::Program { what, why: error.to_string(), code: error.number() }
        };
        let mut written = Ok(());
        let run = || {
            coordinator::begun(sink, 1)?;
            let mut writer = sink.open(part).map_err(failed)?;
            let summary = self.run_while(|key, value| {
                written = writer.pair(key, value);
                if written.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            })?;
            written.and_then(|()| writer.close()).map_err(failed)?;
            Ok(summary)
        };
        coordinator::committed(sink, &[part], run())
    }

    /// Returns the request for the coordinator, and what opens the input, given what may interrupt the job.
    fn described(self) -> (Request<'j, Whole<'j, J, E>>, impl FnOnce(&Interrupt) -> Result<Arc<Opened>>) {
        let Job { mut input, program, reduce, mut terms } = self;
        terms.search = input.look.interrupt.clone();
        let open = move |interrupt: &Interrupt| {
            input.look.interrupt = interrupt.clone();
            input.open()
        };
        (Request { program: Whole::new(program), reduce, terms }, open)
    }
}
