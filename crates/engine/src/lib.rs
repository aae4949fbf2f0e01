//! MapReduce for one big machine, with every worker in its own process.
//!
//! A [`Job`] runs a [`MapReduce`] program over an [`Input`] on many workers. Each worker is a process with its own
//! address space. Workers exchange only pages of one shared memory region, without copies and without locks. A worker
//! that dies is replaced, and the work that it had not committed is done again.
//!
//! ```
//! use gristmill::{Bytes, Chunk, Emit, Input, Isolation, Job, MapReduce, ProgramError};
//!
//! /// How often each word occurs.
//! struct WordCount;
//!
//! impl MapReduce for WordCount {
//!     type Key = Bytes;
//!     type Value = u64;
//!
//!     fn combiner(&self) -> Option<impl Fn(u64, u64) -> u64> {
//!         Some(|a, b| a + b)
//!     }
//!
//!     fn map(&self, chunk: &mut Chunk<'_>, out: &mut impl Emit<Bytes, u64>) -> Result<(), ProgramError> {
//!         for word in chunk.bytes().split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()) {
//!             out.emit(word, 1);
//!         }
//!         Ok(())
//!     }
//! }
//!
//! # // This doctest runs beside others in one process, so its workers are threads.
//! let job = Job::new(&WordCount, Input::bytes("haiku", b"old pond\na frog leaps in\nsound of a pond\n")?).top(2);
//! # let job = job.isolation(Isolation::Thread);
//! let (counts, _) = job.run()?;
//! assert_eq!(counts.iter().collect::<Vec<_>>(), [(&b"a"[..], 2), (&b"pond"[..], 2)]);
//! # Ok::<(), gristmill::Error>(())
//! ```
//!
//! # The ideas
//!
//! - **Input.** An [`Input`] names files, folders, pipes, bytes or records that the program makes. A worker maps a part
//!   of it at a time, and the map function sees [`Chunk`]s of whole [`Records`].
//! - **Pairs.** The map function emits a key and a value, of types that are [`Key`] and [`Datum`]: numbers, text,
//!   bytes, tuples, options, or a type of your own with `#[derive(Datum, Key)]`. A combiner ([`MapReduce::combiner`])
//!   makes one value of two, as early as it can; to an [`Aggregate`], such as a mean or a sketch, items are added in
//!   place ([`Emit::add`]).
//! - **Reduce.** Without a reduce function the pairs are the result. [`Job::reduce`] and [`Job::reduce_to`] see all
//!   [`Values`] of a key in ascending order; [`Job::inner_join`] and its siblings join two inputs.
//! - **Result.** [`Job::run`] gathers it in memory, [`Job::run_each`] takes pair by pair, [`Job::run_into`] lets all
//!   workers write it to a [`Sink`], and [`Job::run_to_input`] makes it the input of another job. [`Order`] says how
//!   it is sorted.
//! - **Steps.** [`Job::iterate`] runs a job again and again over its own pairs, with the same workers. Map functions
//!   can also write arrays ([`SharedOutput`]) and count ([`Accumulator`]).
//! - **Failure.** A map function may die, hang or return an error: the work is done again, or the job ends with an
//!   [`Error`] that names the record. It must depend on nothing but its chunk. [`Job::skip_bad_records`] sets records
//!   aside, [`Job::checkpoint`] survives the end of the whole process.
//! - **Memory.** [`Job::memory`] bounds all workers together; what does not fit is spilled.
//! - **Processes.** Workers are forked ([`Isolation::Process`]), so the process must have one thread. A program with
//!   threads runs its jobs through a [`Starter`]; [`Isolation::Thread`] works everywhere and isolates less.
//!
//! # Names
//!
//! The names that most programs write are on this page. Others are in modules: the values of [`options`], the parts of
//! [`sinks`], the statistics of a job ([`stats`]), the [`files`] that a program looks at before its job, checks for
//! [`keys`] of your own, [`aggregates`] that programs often need, and [`types`] in signatures.
//!
//! # Features
//!
//! All are on by default: `derive` (`#[derive(Datum, Key)]`), `aggregates` (the module), `gzip` (with packed zip
//! archives), `bzip2`, `zstd` and `xz`. Only the last two need a C compiler; the others need its linker. A file of a
//! compression that is left out ends a job with an error that names the feature.

#![cfg_attr(not(test), warn(clippy::too_many_lines))]

// What `derive(Datum)` writes names this crate as its users do.
extern crate self as gristmill;

// Sorted: a room imports only from rooms above it (checked by ci/rooms.py). ARCHITECTURE.md follows a record through
// the rooms.
mod program_error;
mod failure;
mod memory;
pub mod units;
mod error;
mod interrupt;
mod testing;
mod data;
mod input;
mod gather;
mod spill;
mod program;
#[cfg(feature = "aggregates")]
pub mod aggregates;
mod plan;
mod control;
mod reduce;
mod output;
mod exchange;
mod buffer;
mod shared_output;
mod steps;
mod checkpoint;
mod survey;
mod worker;
mod coordinator;
mod job;
mod starter;

#[cfg(fuzzing)]
#[doc(hidden)]
pub mod fuzz;

// The names at the root are those that a program writes. Others, such as the values of an option, are in the modules
// below, and each name has one path.
pub use checkpoint::log::remove_checkpoint;
pub use data::datum::{Bytes, Datum, Key};
pub use data::either::Either;
pub use data::order::Order;
pub use error::{Error, Result};
#[cfg(feature = "derive")]
/// The order of values is that of their fields, one after the other, as with `derive(PartialOrd)`; variants are ordered
/// as they are declared. The type must be `Clone` and `Default`.
///
/// A `Copy` type whose fields are numbers, `bool`, `char`, tuples, arrays and options of those, or other such types, is
/// seen as itself:
///
/// ```
/// use gristmill::{Datum, Key};
///
/// #[derive(Clone, Copy, Debug, Default, Datum, Key)]
/// struct Place {
///     row: u32,
///     column: i16,
/// }
///
/// #[derive(Clone, Copy, Debug, Default, Datum, Key)]
/// enum Shape {
///     #[default]
///     Point,
///     Circle { radius: f64 },
///     Box(u32, u32),
/// }
///
/// assert_eq!((Place::WIDTH, Shape::WIDTH), (Some(6), Some(9)));
/// gristmill::keys::check_key::<Place>([Place { row: 1, column: -2 }, Place::default()]);
/// gristmill::keys::check_key::<Shape>([Shape::Point, Shape::Circle { radius: 0.5 }, Shape::Box(1, 2)]);
/// ```
///
/// A struct with fields of variable width (`String`, `Vec<u8>`, and what is made of them) is seen through a struct of
/// borrowed fields. The attribute names it, and the macro declares it:
///
/// ```
/// use gristmill::{Datum, Key};
///
/// #[derive(Clone, Debug, Default, Datum, Key)]
/// #[datum(borrowed = VisitRef)]
/// struct Visit {
///     host: String,
///     day: u16,
/// }
///
/// let visits = [VisitRef { host: "frog.example", day: 2 }, VisitRef { host: "frog.example", day: 1 }];
/// gristmill::keys::check_key::<Visit>(visits);
/// ```
///
/// The attribute `#[datum(exact)]` of a type says that the order in which its values are combined does not matter,
/// although a field is of bytes or a floating-point number ([`Datum::EXACT`]): they are a set of bits, say.
///
/// ```
/// use gristmill::Datum;
///
/// #[derive(Clone, Debug, Default, Datum)]
/// #[datum(borrowed = SeenRef, exact)]
/// struct Seen {
///     bits: Vec<u8>,
/// }
///
/// assert!(Seen::EXACT && !<Vec<u8>>::EXACT);
/// ```
///
/// A type may have parameters. Each type parameter must then be a datum itself, of the kind that the fields need:
///
/// ```
/// use gristmill::{Datum, Key};
///
/// #[derive(Clone, Copy, Debug, Default, Datum, Key)]
/// struct Pair<A, B> {
///     a: A,
///     b: B,
/// }
///
/// assert_eq!(Pair::<u8, Option<f64>>::WIDTH, Some(10));
/// gristmill::keys::check_key::<Pair<u8, char>>([Pair { a: 1, b: 'b' }, Pair { a: 1, b: 'a' }]);
/// ```
///
/// Anything else does not compile:
///
/// ```compile_fail
/// #[derive(Clone, Copy, Debug, Default, gristmill::Datum)]
/// struct Visit<'v> {
///     host: &'v str, // a datum has no pointers
/// }
/// ```
///
/// ```compile_fail
/// #[derive(Clone, Debug, Default, gristmill::Datum)]
/// struct Visit {
///     host: String, // without #[datum(borrowed = VisitRef)]
/// }
/// ```
pub use gristmill_derive::Datum;
#[cfg(feature = "derive")]
pub use gristmill_derive::Key;
pub use input::chunk::Chunk;
pub use input::encoding::Encoding;
pub use input::paths::Input;
pub use input::records::Records;
pub use interrupt::CancelToken;
pub use job::builder::Job;
pub use output::outcome::{Outcome, Output, Summary};
pub use output::sink::Sink;
pub use plan::settings::Isolation;
pub use program::accumulator::Accumulator;
pub use program::aggregate::Aggregate;
pub use program::ending::Made;
pub use program::map_reduce::{Emit, MapReduce};
pub use program::pairs::Pairs;
pub use program_error::ProgramError;
pub use shared_output::array::SharedOutput;
pub use spill::values::Values;
pub use starter::Starter;
pub use steps::step::{Control, Next, Step};

pub mod files {
    //! The files of an input, for a program that looks at them before its job.
    //!
    //! [`Input::sources`](crate::Input::sources) lists the files, and [`Input::sift`](crate::Input::sift) leaves out
    //! those that the program cannot read. [`Memory`] bounds what their content may take.
    //!
    //! ```
    //! use gristmill::Input;
    //! use gristmill::files::Verdict;
    //!
    //! # let dir = tempfile::tempdir()?;
    //! # std::fs::write(dir.path().join("frog.txt"), "croak\n")?;
    //! # std::fs::write(dir.path().join("pond.csv"), "depth\n3\n")?;
    //! let mut input = Input::paths([dir.path()]);
    //! input.sift(|source| match source.name.extension() {
    //!     Some(extension) if extension == "csv" => Verdict::Fit,
    //!     _ => Verdict::OtherKind("it is not a table".to_owned()),
    //! })?;
    //! assert_eq!(input.sources()?.len(), 1);
    //! # Ok::<(), Box<dyn std::error::Error>>(())
    //! ```

    pub use crate::input::compression::Compression;
    pub use crate::input::left_out::{LeftOut, Tally};
    pub use crate::input::look::{BadFile, InputNews};
    pub use crate::input::quotes::Syntax;
    pub use crate::input::source::Source;
    pub use crate::job::opening::Verdict;
    pub use crate::memory::{Memory, TooLarge};
}

pub mod keys {
    //! Checks for key and value types of your own.
    //!
    //! A type with `#[derive(Datum, Key)]` keeps the contract of [`Datum`](crate::Datum). A test of a type that
    //! implements the traits by hand calls [`check_key`] or [`check_datum`] with some values; [`Short`] is for its
    //! [`Key::short`](crate::Key::short).

    pub use crate::data::contract::{check_datum, check_key};
    pub use crate::data::short::{SHORT_BYTES, Short};
}

pub mod options {
    //! The values of a job's options, and the options by name.
    //!
    //! The plan chooses a [`Buffer`], a [`Placement`] and so on by itself, and a method of [`Job`](crate::Job)
    //! overrules it. A program with a command line of its own can take these options as text: [`OPTIONS`] lists them,
    //! and [`Options`] holds their values.
    //!
    //! ```
    //! use gristmill::options::{OPTIONS, Options};
    //!
    //! let mut options = Options::default();
    //! options.set("memory", "64MiB")?;
    //! let memory = OPTIONS.iter().find(|option| option.name == "memory").expect("jobs have this option");
    //! assert!(memory.check("much").is_err());
    //! # Ok::<(), gristmill::Error>(())
    //! ```

    pub use crate::plan::explain::Choice;
    pub use crate::plan::options::{Alternative, JobOption, OPTIONS, Options, Takes};
    pub use crate::plan::settings::{Buffer, Combining, Exchange, PagePolicy, Placement, Trial};
}

pub mod sinks {
    //! Results that reducers write in parallel.
    //!
    //! [`PartFiles`] is a [`Sink`](crate::Sink) that makes a folder of files, with a [`Row`] for each pair or in a
    //! [`PartFormat`] of your own. Another sink returns a [`SinkWriter`] for each [`Attempt`] at a part.
    //! [`Job::write`](crate::Job::write) writes sorted rows to a [`Target`].

    pub use crate::output::part_files::{PartFiles, PartFormat};
    pub use crate::output::parts::{Part, Row, Target};
    pub use crate::output::sink::{Attempt, SinkWriter};
}

pub mod stats {
    //! Statistics of a job: its progress, and the fields of its [`Summary`](crate::Summary).
    //!
    //! Each [`Worker`] counts what it does ([`Count`]) and how long each [`Phase`] takes. A [`Timeline`] says when.
    //!
    //! ```
    //! # use gristmill::{Chunk, Emit, MapReduce, ProgramError};
    //! # struct Bytes;
    //! # impl MapReduce for Bytes {
    //! #     type Key = u8;
    //! #     type Value = u64;
    //! #     fn map(&self, chunk: &mut Chunk<'_>, out: &mut impl Emit<u8, u64>) -> Result<(), ProgramError> {
    //! #         chunk.bytes().iter().for_each(|byte| out.emit(*byte, 1));
    //! #         Ok(())
    //! #     }
    //! # }
    //! use gristmill::stats::{Count, Counters};
    //! use gristmill::{Input, Isolation, Job};
    //!
    //! // This doctest runs beside others in one process, so its workers are threads.
    //! let job = Job::new(&Bytes, Input::bytes("frog", b"croak")?).isolation(Isolation::Thread);
    //! let (_, summary) = job.run()?;
    //! let total = Counters::sum(summary.workers.iter().map(|worker| &worker.counters));
    //! assert_eq!(total.get(Count::InputBytes), 5);
    //! # Ok::<(), gristmill::Error>(())
    //! ```

    pub use crate::control::counters::{COUNTS, Count, Counters, PHASES, Phase};
    pub use crate::control::node_reads::NodeReads;
    pub use crate::control::progress::Progress;
    pub use crate::output::outcome::{BadRecord, Worker};
    pub use crate::output::timeline::{Event, Mark, Timeline, Track};
}

pub mod types {
    //! Types and traits in the signatures of others, which few programs name.
    //!
    //! A function that takes any job is generic over its [`Ending`]. A program that keeps the [`Call`] of a
    //! [`Starter`](crate::Starter), or the [`Iter`] over an [`Output`](crate::Output), names its type.

    pub use crate::interrupt::MayStop;
    pub use crate::output::outcome::Iter;
    pub use crate::program::ending::{AsMapped, Ending};
    pub use crate::program::map_reduce::Partition;
    pub use crate::shared_output::array::Plain;
    pub use crate::starter::{Answers, Call};
}

/// For the tests of this repository. These names may change at any time.
#[doc(hidden)]
pub mod internal {
    pub use crate::testing::kill_points::{MOMENTS, Moment};
}

/// Writes compressed files for tests.
#[cfg(test)]
#[path = "../tests/common/pack.rs"]
mod pack;

/// Makes nearly valid input for tests.
#[cfg(test)]
#[path = "../tests/common/nearly.rs"]
mod nearly;

/// Compiles the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;

/// Runs the example of the guide.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/rust.md")]
struct Guide;
