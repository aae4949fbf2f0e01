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
//!   makes one value of two, as early as it can.
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
//! # Features
//!
//! All are on by default: `derive` (`#[derive(Datum, Key)]`), `gzip` (with packed zip archives), `bzip2`, `zstd` and
//! `xz`. Only the last two need a C compiler. A file of a compression that is left out ends a job with an error that
//! names the feature.

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

pub use checkpoint::log::remove_checkpoint;
pub use control::counters::{COUNTS, Count, Counters, PHASES, Phase};
pub use control::node_reads::NodeReads;
pub use control::progress::Progress;
pub use data::contract::{check_datum, check_key};
pub use data::datum::{Bytes, Datum, Key};
pub use data::either::Either;
pub use data::order::Order;
pub use data::short::{SHORT_BYTES, Short};
pub use error::{Error, Result};
#[cfg(feature = "derive")]
pub use gristmill_derive::{Datum, Key};
pub use input::chunk::Chunk;
pub use input::compression::Compression;
pub use input::encoding::Encoding;
pub use input::left_out::{LeftOut, Tally};
pub use input::look::{BadFile, InputNews};
pub use input::paths::Input;
pub use input::quotes::Syntax;
pub use input::records::Records;
pub use input::source::Source;
pub use interrupt::{CancelToken, MayStop};
pub use job::builder::Job;
pub use job::opening::Verdict;
pub use memory::{Memory, TooLarge};
pub use output::outcome::{BadRecord, Iter, Outcome, Output, Summary, Worker};
pub use output::part_files::{PartFiles, PartFormat};
pub use output::parts::{Part, Row, Target};
pub use output::sink::{Attempt, Sink, SinkWriter};
pub use output::timeline::{Event, Mark, Timeline, Track};
pub use plan::explain::Choice;
pub use plan::options::{Alternative, JobOption, OPTIONS, Options, Takes};
pub use plan::settings::{Buffer, Combining, Exchange, Isolation, PagePolicy, Placement, Trial};
pub use program::accumulator::Accumulator;
pub use program::ending::{AsMapped, Ending, Made};
pub use program::map_reduce::{Emit, MapReduce, Partition, Reduce};
pub use program::pairs::Pairs;
pub use program_error::ProgramError;
pub use shared_output::array::{Plain, SharedOutput};
pub use spill::values::Values;
pub use starter::{Answers, Call, Starter};
pub use steps::step::{Control, Next, Step};
#[doc(hidden)]
pub use testing::kill_points::{MOMENTS, Moment};

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
