//! A job: a program, its input and its settings.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use gristmill_os::room::TemporaryFolder;

use crate::coordinator::{self, Request, Terms};
use crate::data::datum::{Datum, Key};
use crate::data::order::Order;
use crate::error::{Asked, Error, Result};
use crate::input::paths::{Input, Opened};
use crate::interrupt::{Interrupt, MayStop};
use crate::output::outcome::{Outcome, Output, Summary};
use crate::output::pair_files::PairFiles;
use crate::output::parts::{Part, Row, Target, WriteRequest};
use crate::output::sink::{Attempt, Sink};
use crate::program::ending::{AsMapped, Ending, Made, Whole};
use crate::program::map_reduce::{MapReduce, Reduce};
use crate::program_error::ProgramError;
use crate::spill::values::Values;
use crate::steps::step::{Next, Step};

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
    pub(super) terms: Terms<'j>,
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
    /// # use gristmill::sinks::{Row, Target};
    /// # use gristmill::{Bytes, Emit, Input, Isolation, Job, MapReduce, ProgramError, Chunk};
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

/// The ways to run any job.
impl<'j, J: MapReduce, E: Ending<J>> Job<'j, J, E> {
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

    /// Runs the job and calls `visit` with the pairs of the result, in order: with every one, or until it returns
    /// [`ControlFlow::Break`], because the rest is not wanted, or cannot be written.
    ///
    /// # Errors
    /// As [`Job::run`]. Pairs already visited are correct but not complete.
    pub fn run_each<R: MayStop>(
        self,
        mut visit: impl FnMut(<E::Key as Datum>::Ref<'_>, <E::Value as Datum>::Ref<'_>) -> R,
    ) -> Result<Summary> {
        let (request, open) = self.described();
        coordinator::run(request, open, |key, value| match visit(key, value).stops() {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        })
    }

    /// Runs the job and lets its reducers write the result to `sink` in parallel, each its own part. The pairs of a
    /// part are in the order of the result; the keys of different parts are not ordered among each other. A result
    /// with a limit ([`Job::top`]) is one part, which the caller's process writes.
    ///
    /// The example is at [`Sink`], and one for files at [`PartFiles`](crate::sinks::PartFiles).
    ///
    /// # Errors
    /// As [`Job::run`], and [`Error::Program`] for an error of the sink. Nothing is committed
    /// after an error.
    pub fn run_into(self, sink: &dyn Sink<E::Key, E::Value>) -> Result<Summary> {
        if self.terms.settings.limit.is_some() {
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
        let failed = |error| Error::program("the sink, at part 0 of the result", &error);
        let mut written = Ok(());
        let run = || {
            coordinator::begun(sink, 1)?;
            let mut writer = sink.open(part).map_err(failed)?;
            let summary = self.run_each(|key, value| {
                written = writer.pair(key, value);
                if written.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            })?;
            written.and_then(|()| writer.close()).map_err(failed)?;
            Ok(summary)
        };
        coordinator::committed(sink, &[part], run())
    }

    /// Returns the request for the coordinator, and what opens the input, given what may interrupt the job.
    fn described(self) -> (Request<'j, Whole<J, E>>, impl FnOnce(&Interrupt) -> Result<Arc<Opened>>) {
        let Job { mut input, program, reduce, mut terms } = self;
        terms.search = input.look.interrupt.clone();
        let open = move |interrupt: &Interrupt| {
            input.look.interrupt = interrupt.clone();
            input.open()
        };
        (Request { program, reduce, terms }, open)
    }
}
