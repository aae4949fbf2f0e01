//! The settings of a job.

use std::path::PathBuf;
use std::time::Duration;

use gristmill_os::machine::NumaNode;
use rustix::process::Signal;

use crate::control::progress::Progress;
use crate::data::order::Order;
use crate::input::records::Records;
use crate::interrupt::{CancelToken, MayStop};
use crate::job::builder::Job;
use crate::plan::explain::Choice;
use crate::plan::options::Options;
use crate::plan::settings::{Buffer, CheckpointSettings, Combining, Exchange, Isolation, PagePolicy, Placement, Trial};
use crate::program::accumulator::Accumulator;
use crate::program::ending::Ending;
use crate::program::map_reduce::MapReduce;
use crate::shared_output::array::{Plain, SharedOutput};
use crate::testing::kill_points::{Deed, Moment};

/// Methods that each set one field of [`Settings`](crate::plan::settings::Settings).
macro_rules! settings {
    ($($(#[$documentation:meta])* pub fn $name:ident($value:ident: $type:ty) => $field:ident;)*) => {$(
        $(#[$documentation])*
        pub fn $name(mut self, $value: $type) -> Self {
            self.terms.settings.$field = $value.into();
            self
        }
    )*};
}

impl<'j, J: MapReduce, E: Ending<J>> Job<'j, J, E> {
    settings! {
        /// Sets the number of workers, which both map and reduce.
        pub fn workers(workers: usize) => workers;

        /// Sets the number of separate map workers. A crash in map then never loses what reducers have gathered.
        pub fn map_workers(workers: usize) => map_workers;

        /// Sets the number of separate reduce workers.
        pub fn reduce_workers(workers: usize) => reduce_workers;

        /// Lets the plan add workers that only reduce: one for every two that map, if the job is long enough. Use it if
        /// the map function may crash, or runs an interpreter, which takes so much of the caches that reducing in the
        /// same worker is slow. Without it, each worker maps and reduces, unless [`Job::map_workers`] or
        /// [`Job::reduce_workers`] is set.
        pub fn reduce_apart(apart: bool) => reduce_apart;

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
        pub fn in_order(in_order: bool) => in_order;

        /// Chooses processes or threads.
        pub fn isolation(isolation: Isolation) => isolation;

        /// Chooses a pipelined exchange, or a barrier between map and reduce.
        pub fn exchange(exchange: Exchange) => exchange;

        /// Chooses the map-side buffer.
        pub fn buffer(buffer: Buffer) => buffer;

        /// Chooses where values are combined.
        pub fn combine(combine: Combining) => combine;

        /// With [`Combining::Map`] or [`Combining::Off`], lets a reducer combine early when one key has gathered more
        /// than `values` values. Without this option such a reducer keeps every value until the end. With it, the
        /// reducer then combines the values that it has, and from then on those that arrive, so a frequent key cannot
        /// fill the memory. Keys are counted in a sketch, which may trigger early but never late.
        ///
        /// ```
        /// # use gristmill::options::Combining;
        /// # use gristmill::stats::Count;
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
        /// let text = "the ".repeat(100_000);
        /// let job = Job::new(&Words, Input::bytes("text", text.trim_end().as_bytes())?).combine(Combining::Off);
        /// # // This doctest runs beside others in one process, so its workers are threads.
        /// # let job = job.isolation(Isolation::Thread);
        /// let (counts, summary) = job.combine_after(10_000).run()?;
        /// assert_eq!(counts.get(b"the"), Some(100_000));
        /// assert!(summary.workers.iter().any(|worker| worker.counters.get(Count::SkewsFound) == 1));
        /// # Ok::<(), gristmill::Error>(())
        /// ```
        pub fn combine_after(values: u32) => combine_after;

        /// Chooses where workers run, if the machine has several NUMA nodes.
        pub fn placement(placement: Placement) => placement;

        /// Chooses where the memory of pages comes from.
        pub fn pages(pages: PagePolicy) => pages;

        /// Sets the size of a page in bytes, a multiple of 4096.
        pub fn page_bytes(bytes: usize) => page_bytes;

        /// Sets the approximate number of input bytes of a map task.
        pub fn split_bytes(bytes: u64) => split_bytes;

        /// Sets the approximate number of input bytes that the map function sees at once. 256 KiB by default.
        pub fn chunk_bytes(bytes: usize) => chunk_bytes;

        /// Chooses the order of the result.
        pub fn order(order: Order) => order;

        /// Chooses where records end.
        pub fn records(records: Records) => records;

        /// Sets the length of the longest record in bytes. A longer one is an error that names its place. 64 MiB by
        /// default.
        pub fn record_bytes_max(bytes: usize) => record_bytes_max;

        /// Sets how often a failed task is retried, and a partition whose combining or reducing failed. 2 by default.
        /// If a task killed its worker, the next attempts go record by record, so that the error can name the record.
        pub fn retries(retries: u32) => retries;

        /// Sets how many workers may die in the whole job. By default as many as there are spare slots, at least 32.
        pub fn max_failures(failures: u32) => max_failures;

        /// Sets aside up to `records` records, at most a million, because the map function panics on them, returns an
        /// error ([`ProgramError`](crate::ProgramError)), is killed by them, or (with [`Job::task_timeout`]) never
        /// returns. They count for nothing, and the summary lists them
        /// ([`Summary::bad_records`](crate::Summary::bad_records)). One more is an error.
        ///
        /// A panic or an error in the map function costs no worker. A record that kills its worker is found by the
        /// retries; at most 32 records may kill. No record is set aside for a panic in the combiner, which may see
        /// values of many. The cost of this option: pairs are kept apart until the map function has returned.
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
        pub fn skip_bad_records(records: u32) => skip_bad_records;

        /// Kills a worker whose task takes longer than this; the task counts as failed. A worker that makes no progress
        /// for this long outside a task, because it was stopped or waits for something that never comes, is killed too.
        pub fn task_timeout(timeout: Duration) => task_timeout;

        /// Sets how many workers map at the same time; by default as many as there are processors. Raise it if the map
        /// function waits for anything but the processor.
        pub fn map_at_once(workers: usize) => map_at_once;

        /// Sets the number of partitions. It is rounded up to a power of two and to at least one per reducer; by
        /// default it is 64, or two per reducer if that is more. Each partition has an open page in every worker that
        /// maps.
        pub fn partitions(partitions: usize) => partitions;

        /// Sets how many bytes of memory the pairs of two consecutive steps may take, for [`Job::iterate`]. By default
        /// half of the rest of [`Job::memory`] after pages and tables, or half of the available memory. It is only
        /// address space until it is used. Pairs beyond it lie in a file in the spill folder that has the most room, as
        /// long as [`Job::keep_free`] allows; the kernel writes them to the disk when it needs the memory.
        pub fn keep_bytes(bytes: u64) => keep_bytes;

        /// Sets the memory of all workers and the coordinator together, in bytes. Pairs that do not fit are spilled to
        /// disk. By default half of the memory that is available to the machine and to the process's cgroup.
        ///
        /// The limit covers pages, tables, buffers, decoders of compressed files, the sorting of the result, and the
        /// memory that the program declares ([`Job::holds`], [`MapReduce::UNPACKS`]). It does not cover other
        /// allocations of the map function and of the receiver of the result. One pair, and one record, must fit.
        pub fn memory(bytes: usize) => memory_bytes;

        /// Sets how many bytes stay free on the file systems of the spill folders and of the checkpoint. A job that
        /// finds less free there ends. By default a tenth of the bytes that are free when the job begins. For copies of
        /// streams see [`Input::keep_free`](crate::Input::keep_free).
        pub fn keep_free(bytes: u64) => keep_free_bytes;

        /// Makes the result the same, byte for byte, for any number of workers and any schedule, even with sums of
        /// floating-point numbers. Splits and chunks are then cut the same way for any number of workers, and an
        /// unordered result comes in key order. Values that are whole numbers combine as usual. Others
        /// ([`Datum::EXACT`](crate::Datum::EXACT)) are combined only within a map task and at the end, in ascending
        /// order. That takes more memory, as [`Combining::Map`] does, and time to sort all pairs by key: the job takes
        /// twice the time if few keys repeat within a task.
        pub fn deterministic(deterministic: bool) => deterministic;

        /// Records which phase each worker was in, and when, for [`Summary::timeline`](crate::Summary::timeline). It
        /// takes 48 KiB of address space for each worker, of which a job that ends soon touches a part, and a few
        /// instructions whenever a phase changes.
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
        /// use gristmill::stats::Phase;
        /// use gristmill::{Input, Isolation, Job};
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
        pub fn timeline(timeline: bool) => timeline;

        /// Ends the job with [`Error::Deadline`](crate::Error::Deadline) if it takes longer than `limit`, from the call
        /// that runs it to its last pair. The copying of pipes counts, and so does the time that the receiver of the
        /// result takes. For an input that is looked at before ([`Input::sources`](crate::Input::sources),
        /// [`Input::sift`](crate::Input::sift)), see [`Input::deadline`](crate::Input::deadline).
        pub fn deadline(limit: Duration) => deadline;

        /// Chooses whether a separate process reads and maps a few small pieces of the input before the job is planned.
        /// The plan then knows whether reading waits for a disk, how long a byte takes and how many pairs it yields.
        /// True by default; pass false if the map function must not see a record twice. Small inputs, and jobs whose
        /// workers are threads, are planned without a sample.
        pub fn sample(sample: bool) => sample;
    }

    /// Sets all these options, which came as text from a command line or a file. Later calls of other methods replace
    /// them.
    pub fn options(mut self, options: &Options) -> Self {
        options.apply(&mut self.terms.settings);
        self
    }

    /// Keeps only the `k` pairs with the greatest values. Of equal values those with the least keys are kept. NaN
    /// counts as greater than all numbers.
    pub fn top(mut self, k: usize) -> Self {
        self.terms.settings.order = Order::ByValueDescending;
        self.terms.settings.limit = Some(k);
        self
    }

    /// Saves the job's progress in the folder `dir`, so that running the same job again continues where this run ended,
    /// however it ended. About every `every`, all work done so far is written to disk. `program` names everything that
    /// the map function depends on besides its input, such as its parameters. A job whose program, options or input
    /// files have changed is refused ([`Error::CheckpointOfAnother`](crate::Error::CheckpointOfAnother)).
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

    /// Declares memory that the program holds, which is subtracted from [`Job::memory`]: `now` is what it holds
    /// already, and for the whole job, such as a matrix that its map function reads; `later` is what it will take
    /// besides while the job runs, or for its result. If that much is not available, the job does not start.
    pub fn holds(mut self, now: usize, later: usize) -> Self {
        self.terms.settings.held_bytes = now;
        self.terms.settings.will_hold_bytes = later;
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

    /// Calls `progress` about ten times a second while the job runs. If it returns
    /// [`ControlFlow::Break`](std::ops::ControlFlow::Break), the job ends with
    /// [`Error::Cancelled`](crate::Error::Cancelled).
    pub fn on_progress<R: MayStop>(mut self, mut progress: impl FnMut(Progress) -> R + Send + 'j) -> Self {
        self.terms.progress = Some(Box::new(move |now| progress(now).stops()));
        self
    }

    /// Lets `token` cancel this job.
    pub fn cancel_by(mut self, token: &CancelToken) -> Self {
        self.terms.cancel = Some(token.clone());
        self
    }

    /// Calls `on_news` with a sentence about an event that a user may want to know of while the job runs: a worker died
    /// (with the attempt at its task) and is replaced, or a job continues from a checkpoint.
    pub fn on_news(mut self, on_news: impl FnMut(&str) + Send + 'j) -> Self {
        self.terms.on_news = Some(Box::new(on_news));
        self
    }

    /// Tells the plan how long earlier runs of the same program took, over a similar input on this machine. It follows
    /// the best of them in what no other setting asks for, unless the sample shows that reading has to wait for a disk
    /// now.
    ///
    /// ```
    /// # use gristmill::{Bytes, Emit, Input, Isolation, Job, MapReduce, ProgramError, Chunk};
    /// use gristmill::options::Trial;
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
}
