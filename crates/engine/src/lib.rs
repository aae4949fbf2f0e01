//! MapReduce for one big machine, with every worker in its own process.
//!
//! A [`Job`] runs a [`MapReduce`] program over an [`Input`] on many workers. Each worker is a process with its own
//! address space. Workers exchange only pages of one shared memory region, without copies and without locks. A worker
//! that dies is replaced, and the work that it had not committed is done again.
//!
//! Start with the example at [`Job`].

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
pub use control::progress::Progress;
pub use data::contract::{check_datum, check_key};
pub use data::datum::{Bytes, Datum, Key};
pub use data::either::Either;
pub use data::order::Order;
pub use data::short::{SHORT_BYTES, Short};
pub use error::{Error, Result};
pub use gristmill_derive::{Datum, Key};
pub use input::chunk::Chunk;
pub use input::compression::Compression;
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
pub use plan::explain::Choice;
pub use plan::options::{Alternative, JobOption, OPTIONS, Options, Takes};
pub use plan::settings::{Buffer, Combining, Exchange, Isolation, PagePolicy};
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
