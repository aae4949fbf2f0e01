//! A job: a program, its input, and how it shall run.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::Signal;

use crate::control::progress::Progress;
use crate::coordinator::{self, Request};
use crate::data::datum::Datum;
use crate::data::order::Order;
use crate::error::Result;
use crate::input::paths::Input;
use crate::input::records::Records;
use crate::output::outcome::{Outcome, Output, Summary};
use crate::output::parts::{Part, Row, Target, Writing};
use crate::plan::explain::Choice;
use crate::plan::settings::{Buffer, CheckpointSettings, Combining, Exchange, Isolation, PagePolicy, Settings};
use crate::program::map_reduce::MapReduce;
use crate::shared_output::array::{Plain, SharedOutput};
use crate::spill::values::Values;
use crate::steps::step::{Next, Step};
use crate::testing::kill_points::Moment;

/// A MapReduce job.
///
/// ```
/// use gristmill::{Bytes, Combine, Emit, Input, Isolation, Job, MapReduce, Split};
///
/// struct WordCount;
///
/// impl MapReduce for WordCount {
///     type Key = Bytes;
///     type Value = u64;
///     const COMBINE: Option<Combine<u64>> = Some(|a, b| a + b);
///
///     fn map(&self, split: &mut Split<'_>, out: &mut impl Emit<Bytes, u64>) {
///         for word in split.bytes().split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()) {
///             out.emit(word, 1);
///         }
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
pub struct Job<'j, J: MapReduce> {
    input: Input,
    request: Request<'j, J>,
}

impl<'j, J: MapReduce> Job<'j, J> {
    /// A job that reads lines, with as many workers as the process may use processors.
    pub fn new(program: &'j J, input: Input) -> Job<'j, J> {
        Job { input, request: Request::new(program, Settings::default()) }
    }

    /// Workers that both map and reduce.
    pub fn workers(mut self, workers: usize) -> Self {
        self.request.settings.workers = Some(workers);
        self
    }

    /// Separate workers for map: a crash in map then never loses what reduce has gathered.
    pub fn map_workers(mut self, workers: usize) -> Self {
        self.request.settings.map_workers = Some(workers);
        self
    }

    /// Separate workers for reduce.
    pub fn reduce_workers(mut self, workers: usize) -> Self {
        self.request.settings.reduce_workers = Some(workers);
        self
    }

    /// Calls `reduce` once for each key with all its [`Values`] in ascending order (one, if the program combines), when they
    /// have all arrived; what it emits is the result. Without it, the result is every pair.
    ///
    /// ```
    /// use gristmill::{Bytes, Emit, Input, Isolation, Job, MapReduce, Split};
    ///
    /// /// For each word, the lengths of the lines in which it stands.
    /// struct LineLengths;
    ///
    /// impl MapReduce for LineLengths {
    ///     type Key = Bytes;
    ///     type Value = u64;
    ///
    ///     fn map(&self, split: &mut Split<'_>, out: &mut impl Emit<Bytes, u64>) {
    ///         for line in split.lines() {
    ///             line.split(|byte| *byte == b' ').for_each(|word| out.emit(word, line.len() as u64));
    ///         }
    ///     }
    /// }
    ///
    /// # let dir = tempfile::tempdir()?;
    /// # let path = dir.path().join("haiku.txt");
    /// # std::fs::write(&path, "old pond\na frog leaps in\nsound of a pond\n")?;
    /// let job = Job::new(&LineLengths, Input::paths([&path])).workers(2).isolation(Isolation::Thread);
    /// let longest = job.reduce(|word, lengths, emit| emit(word, lengths.owned().max().unwrap_or(0)));
    /// assert_eq!(longest.run()?.0.get(b"pond"), Some(15));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn reduce(
        mut self,
        reduce: impl for<'a> Fn(
            <J::Key as Datum>::Ref<'a>,
            &mut Values<'_, J::Key, J::Value>,
            &mut dyn FnMut(<J::Key as Datum>::Ref<'_>, <J::Value as Datum>::Ref<'_>),
        ) + Sync
        + 'j,
    ) -> Self {
        self.request.reduce = Some(Box::new(reduce));
        self
    }

    /// Processes or threads.
    pub fn isolation(mut self, isolation: Isolation) -> Self {
        self.request.settings.isolation = isolation;
        self
    }

    /// Pipelined, or with a barrier between map and reduce.
    pub fn exchange(mut self, exchange: Exchange) -> Self {
        self.request.settings.exchange = exchange;
        self
    }

    /// The map-side buffer.
    pub fn buffer(mut self, buffer: Buffer) -> Self {
        self.request.settings.buffer = buffer;
        self
    }

    /// Where values are combined.
    pub fn combine(mut self, combine: Combining) -> Self {
        self.request.settings.combine = combine;
        self
    }

    /// With [`Combining::Map`] or [`Combining::Off`], a reducer keeps every value until the end, unless one key gathers more
    /// than this many: then it combines what it has, and from then on what arrives. So a frequent key cannot fill the
    /// memory. Keys are counted in a sketch, which may be early, and is never late.
    ///
    /// ```
    /// # use gristmill::{Bytes, Combine, Combining, Count, Emit, Input, Isolation, Job, MapReduce, Split};
    /// # struct Words;
    /// # impl MapReduce for Words {
    /// #     type Key = Bytes;
    /// #     type Value = u64;
    /// #     const COMBINE: Option<Combine<u64>> = Some(|a, b| a + b);
    /// #     fn map(&self, split: &mut Split<'_>, out: &mut impl Emit<Bytes, u64>) {
    /// #         split.bytes().split(u8::is_ascii_whitespace).for_each(|word| out.emit(word, 1));
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
        self.request.settings.combine_after = Some(values);
        self
    }

    /// Where the memory of pages comes from.
    pub fn pages(mut self, pages: PagePolicy) -> Self {
        self.request.settings.pages = pages;
        self
    }

    /// Size of a page in bytes, a multiple of 4096.
    pub fn page_bytes(mut self, bytes: usize) -> Self {
        self.request.settings.page_bytes = Some(bytes);
        self
    }

    /// Input bytes of one map task, about.
    pub fn split_bytes(mut self, bytes: u64) -> Self {
        self.request.settings.split_bytes = Some(bytes);
        self
    }

    /// Input bytes that the map function sees at once, about. 256 KiB by default.
    pub fn chunk_bytes(mut self, bytes: usize) -> Self {
        self.request.settings.chunk_bytes = Some(bytes);
        self
    }

    /// The order of the result.
    pub fn order(mut self, order: Order) -> Self {
        self.request.settings.order = order;
        self
    }

    /// Only the `k` pairs with the greatest values.
    pub fn top(mut self, k: usize) -> Self {
        self.request.settings.order = Order::ByValueDescending;
        self.request.settings.limit = k;
        self
    }

    /// Where records end.
    pub fn records(mut self, records: Records) -> Self {
        self.request.settings.records = records;
        self
    }

    /// The longest record in bytes; a longer one is an error that names its place. 64 MiB by default.
    pub fn record_bytes_max(mut self, bytes: usize) -> Self {
        self.request.settings.record_bytes_max = bytes;
        self
    }

    /// How often a task that failed is tried again, and a partition that failed when it was combined or reduced. 2 by
    /// default. Where a worker died of a task, the next attempts go record by record, so that the error can name the record that fails.
    pub fn retries(mut self, retries: u32) -> Self {
        self.request.settings.retries = retries;
        self
    }

    /// How many workers may die in the whole job; by default as many as there are spare places for, at least 32.
    pub fn max_failures(mut self, failures: u32) -> Self {
        self.request.settings.max_failures = Some(failures);
        self
    }

    /// Sets up to so many records aside, at most a million, because the map function panics on them, rejects them
    /// ([`Split::reject`](crate::Split::reject)), dies of them, or (with [`Job::task_timeout`]) never returns. They count
    /// for nothing, and the summary lists them ([`Summary::bad_records`]). One more is an error.
    ///
    /// A map function that panics or rejects costs no worker; a record that kills is found by the retries, and at most 32
    /// such records are. Pairs are kept apart until the map function has returned, which is what this costs.
    ///
    /// ```
    /// # use gristmill::{Emit, Input, Isolation, Job, MapReduce, Split};
    /// /// Adds up numbers, one in each line.
    /// struct Sum;
    ///
    /// impl MapReduce for Sum {
    ///     type Key = u32;
    ///     type Value = i64;
    ///
    ///     fn map(&self, split: &mut Split<'_>, out: &mut impl Emit<u32, i64>) {
    ///         let parse = |line: &[u8]| str::from_utf8(line).expect("text").parse::<i64>().expect("a number");
    ///         out.emit(0, split.lines().map(parse).sum());
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
        self.request.settings.skip_bad_records = records;
        self
    }

    /// Ends a worker whose task takes longer than this; the task counts as failed. Outside of its tasks, a worker is ended that
    /// stands still for this long, because it was stopped or waits for something that never comes.
    pub fn task_timeout(mut self, timeout: Duration) -> Self {
        self.request.settings.task_timeout = Some(timeout);
        self
    }

    /// Keeps what is done in the folder `dir`, so that running the same job again continues where this one ended, however
    /// it ended: about every `every` all work until then is on the disk. `program` says what the map function depends on
    /// beside its input, its parameters for example; a job whose program, options or input files are not as they were is
    /// refused ([`Error::CheckpointOfAnother`](crate::Error::CheckpointOfAnother)).
    ///
    /// When the job has ended its checkpoint stays, so that nothing is lost before the result is where it belongs; then
    /// [`remove_checkpoint`](crate::remove_checkpoint). Without this option nothing is written and nothing is paid.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use gristmill::{Bytes, Combine, Emit, Input, Isolation, Job, MapReduce, Split};
    /// # struct Words;
    /// # impl MapReduce for Words {
    /// #     type Key = Bytes;
    /// #     type Value = u64;
    /// #     const COMBINE: Option<Combine<u64>> = Some(|a, b| a + b);
    /// #     fn map(&self, split: &mut Split<'_>, out: &mut impl Emit<Bytes, u64>) {
    /// #         split.bytes().split(u8::is_ascii_whitespace).for_each(|word| out.emit(word, 1));
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
        self.request.settings.checkpoint =
            Some(CheckpointSettings { dir: dir.into(), program: program.to_owned(), every });
        self
    }

    /// How many workers map at the same time; by default as many as there are processors. Raise it when the
    /// map function waits for something else than the processor.
    pub fn mapping_at_once(mut self, workers: usize) -> Self {
        self.request.settings.mapping_at_once = Some(workers);
        self
    }

    /// Into how many partitions the pairs are divided, rounded up to a power of two and to one for each reducer at least; by
    /// default 64, or two for each reducer if that is more. Each has an open page in every worker that maps.
    pub fn partitions(mut self, partitions: usize) -> Self {
        self.request.settings.partitions = Some(partitions);
        self
    }

    /// What the pairs of two steps in a row may take in the region, for [`Job::iterate`]; by default half of what
    /// [`Job::memory`] leaves beside pages and tables, or half of the memory that is available. It is address space until it is used.
    pub fn keep_bytes(mut self, bytes: u64) -> Self {
        self.request.settings.keep_bytes = Some(bytes);
        self
    }

    /// The map function (or, of pairs, [`MapReduce::map_pairs`]) writes into this array; see [`SharedOutput`]. A job may write
    /// several.
    pub fn writes<T: Plain>(mut self, output: &'j SharedOutput<T>) -> Self {
        self.request.outputs.push(output.scope());
        self
    }

    /// Memory of all workers and the coordinator together, in bytes: what does not fit is spilled to disk. By default half
    /// of what is available, to the machine and to the process's cgroup. [`Job::iterate`] spills nothing: a step that does not fit
    /// is an error.
    ///
    /// It covers pages, tables, buffers, decoders of compressed files, the sorting of the result, and what the program
    /// tells of its own ([`Job::holds`], [`MapReduce::UNPACKS`]); not what the map function and the receiver of the
    /// result allocate otherwise. One pair, and one record, must fit.
    pub fn memory(mut self, bytes: usize) -> Self {
        self.request.settings.memory_bytes = Some(bytes);
        self
    }

    /// Memory that the program holds for the whole job, such as a matrix that its map function reads: it is taken out of
    /// [`Job::memory`].
    pub fn holds(mut self, bytes: usize) -> Self {
        self.request.settings.held_bytes = bytes;
        self
    }

    /// Memory that the program will hold beside that, while the job runs or for its result. If there is not so much, the job
    /// does not start.
    pub fn will_hold(mut self, bytes: usize) -> Self {
        self.request.settings.will_hold_bytes = bytes;
        self
    }

    /// Folders to spill to, in turns: best on different disks. By default one, that for temporary files (`TMPDIR`).
    /// What is spilled has no name there, and vanishes with the job however that ends.
    ///
    /// ```
    /// # use gristmill::{Bytes, Emit, Input, Isolation, Job, MapReduce, Split};
    /// # struct Lines;
    /// # impl MapReduce for Lines {
    /// #     type Key = Bytes;
    /// #     type Value = u64;
    /// #     fn map(&self, split: &mut Split<'_>, out: &mut impl Emit<Bytes, u64>) {
    /// #         split.lines().for_each(|line| out.emit(line, 1));
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
        self.request.settings.spill_dirs = dirs.into_iter().map(Into::into).collect();
        self
    }

    /// The same answer, byte by byte, for any number of workers and any schedule, sums of floating-point numbers included.
    /// Splits and chunks are cut the same way whatever the number of workers, and what has no order comes in that of keys. Values
    /// that are whole numbers combine as ever. Others ([`Datum::EXACT`]) are combined within a map task and at the end only, in
    /// ascending order: this takes more memory, as [`Combining::Map`] does, and the time to sort all pairs by key: twice
    /// the time where keys hardly meet within a task.
    pub fn deterministic(mut self, deterministic: bool) -> Self {
        self.request.settings.deterministic = deterministic;
        self
    }

    /// Calls `progress` about ten times a second while the job runs.
    pub fn on_progress(mut self, progress: impl FnMut(Progress) + 'j) -> Self {
        self.request.progress = Some(Box::new(progress));
        self
    }

    /// Calls `on_news` with a sentence when something has happened that a user may want to know while the job goes on: a
    /// worker died (of which attempt at a task) and is replaced, or a job is continued that had a checkpoint.
    pub fn on_news(mut self, on_news: impl FnMut(&str) + 'j) -> Self {
        self.request.on_news = Some(Box::new(on_news));
        self
    }

    /// Whether a few small pieces of the input are mapped before the job is planned, by a process of their own: the plan
    /// then knows how long a byte takes and what it becomes. True by default; false for a map function that must
    /// not meet a record once more. Small inputs, and jobs whose workers are threads, are planned without.
    pub fn sample(mut self, sample: bool) -> Self {
        self.request.settings.sample = sample;
        self
    }

    /// Calls `on_plan` with what was chosen for this job, and why, before it starts.
    ///
    /// ```
    /// # use gristmill::{Bytes, Emit, Input, Isolation, Job, MapReduce, Split};
    /// # struct Lines;
    /// # impl MapReduce for Lines {
    /// #     type Key = Bytes;
    /// #     type Value = u64;
    /// #     fn map(&self, split: &mut Split<'_>, out: &mut impl Emit<Bytes, u64>) {
    /// #         split.lines().for_each(|line| out.emit(line, 1));
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
    pub fn on_plan(mut self, on_plan: impl FnMut(&[Choice]) + 'j) -> Self {
        self.request.on_plan = Some(Box::new(on_plan));
        self
    }

    /// For tests of the engine: the `worker`-th to be started, replacements included, kills itself when it
    /// comes to `moment` for the `nth` time; both count from 1.
    #[doc(hidden)]
    pub fn die_at(mut self, worker: usize, moment: Moment, nth: u64) -> Self {
        self.request.settings.kill_points.push((worker, moment, nth, Signal::KILL));
        self
    }

    /// The same for a worker that stops itself, as SIGSTOP from outside would.
    #[doc(hidden)]
    pub fn stop_at(mut self, worker: usize, moment: Moment, nth: u64) -> Self {
        self.request.settings.kill_points.push((worker, moment, nth, Signal::STOP));
        self
    }

    /// Runs the job and gathers the result in memory.
    ///
    /// # Errors
    /// See [`Error`](crate::Error): bad input, a task that fails again and again, a setting that cannot be
    /// honoured, or a system that refuses.
    pub fn run(self) -> Result<Outcome<J>> {
        let mut records = Output::default();
        let summary = self.run_each(|key, value| records.push(key, value))?;
        Ok((records, summary))
    }

    /// Runs the job and calls `visit` with every pair of the result, in order.
    ///
    /// # Errors
    /// As [`Job::run`]. Pairs already visited are right, but not all there are.
    pub fn run_each(
        self,
        mut visit: impl FnMut(<J::Key as Datum>::Ref<'_>, <J::Value as Datum>::Ref<'_>),
    ) -> Result<Summary> {
        self.run_while(|key, value| {
            visit(key, value);
            ControlFlow::Continue(())
        })
    }

    /// Runs the job and calls `visit` with the pairs of the result, in order, until it breaks: nobody may want
    /// the rest, or the rest cannot be written.
    ///
    /// # Errors
    /// As [`Job::run_each`].
    pub fn run_while(
        self,
        visit: impl FnMut(<J::Key as Datum>::Ref<'_>, <J::Value as Datum>::Ref<'_>) -> ControlFlow<()>,
    ) -> Result<Summary> {
        coordinator::run(self.request, || self.input.open(), visit)
    }

    /// Runs the job and lets its reducers write the result, in the order of keys and all at the same time: each has ranges of
    /// it and writes them to their places in `target`, pair by pair as `row` says. Returns the parts, in order. Messages name
    /// the result `path`.
    ///
    /// Only for results of pairs as map emits them, ordered by key: without a combiner, a reduce function, a partition function
    /// and a limit. Nothing is synced, and what there is after an error is not the result: write to a file without a
    /// name, and give it its name at the end.
    ///
    /// ```
    /// # use gristmill::{Bytes, Emit, Input, Isolation, Job, MapReduce, Row, Split, Target};
    /// # struct Lines;
    /// # impl MapReduce for Lines {
    /// #     type Key = Bytes;
    /// #     type Value = ();
    /// #     fn map(&self, split: &mut Split<'_>, out: &mut impl Emit<Bytes, ()>) {
    /// #         split.lines().for_each(|line| out.emit(line, ()));
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
    /// As [`Job::run`]; and when a part cannot be written.
    pub fn write<'t>(
        self,
        path: &'t Path,
        target: Target<'t>,
        row: &'t dyn Row<J::Key, J::Value>,
    ) -> Result<(Vec<Part>, Summary)> {
        coordinator::write(self.request, || self.input.open(), Writing { path, target, row })
    }

    /// Runs the job in steps, with the same workers: what one step reduces stays in the region, partition by partition.
    /// After each step `control` sees it and says what the next one maps: the input again, or those pairs
    /// ([`Next`]). Every step sees a small state, `state` at first and then what [`Step::set_state`] has set; a later
    /// one may not be longer. The order of the result, and its limit, mean nothing here.
    ///
    /// A worker that dies in any step is replaced, and what it had not left in the region is made again from what the
    /// step maps, which stays until the step is complete.
    ///
    /// ```
    /// use gristmill::{Combine, Emit, Input, Isolation, Job, MapReduce, Next, Pairs, Records, Split};
    ///
    /// /// In how many ways a walk on the whole numbers comes to each place.
    /// struct Walk;
    ///
    /// impl MapReduce for Walk {
    ///     type Key = i64;
    ///     type Value = u64;
    ///     const COMBINE: Option<Combine<u64>> = Some(|a, b| a + b);
    ///
    ///     fn map(&self, split: &mut Split<'_>, out: &mut impl Emit<i64, u64>) {
    ///         split.bytes().iter().for_each(|start| out.emit(i64::from(*start), 1));
    ///     }
    ///
    ///     fn map_pairs(&self, pairs: &Pairs<'_, i64, u64>, out: &mut impl Emit<i64, u64>) {
    ///         for (place, ways) in pairs.iter() {
    ///             out.emit(place - 1, ways);
    ///             out.emit(place + 1, ways);
    ///         }
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
    /// As [`Job::run`]; and when the pairs of two steps together are larger than [`Job::keep_bytes`], or those of
    /// one, while they are gathered, than the memory leaves to reducers.
    pub fn iterate(self, state: &[u8], control: impl FnMut(&mut Step<'_, J>) -> Next) -> Result<Summary> {
        coordinator::iterate(self.request, || self.input.open(), state, control)
    }
}
