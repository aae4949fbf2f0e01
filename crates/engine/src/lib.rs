//! MapReduce for one big machine, with every worker in its own process.
//!
//! A [`Job`] runs a [`MapReduce`] program over an [`Input`] on many workers. Each worker is a process with
//! an address space of its own; only pages of one shared memory region pass between them, without copies
//! and without locks. A worker that dies is replaced and what it had not committed is done again.
//!
//! Start with the example at [`Job`].

mod budget;
mod buffer;
mod check;
mod checkpoint;
mod compression;
mod contract;
mod coordinator;
mod counters;
mod cuts;
mod datum;
mod decoder;
mod delivery;
mod diff;
mod digest;
mod entry;
mod error;
mod exchange;
mod explain;
mod fate;
mod finish;
#[cfg(fuzzing)]
#[doc(hidden)]
pub mod fuzz;
mod gather;
mod input;
mod iterate;
mod job;
mod keep;
mod key;
mod map_reduce;
mod memory;
mod merge;
mod narrow;
mod output;
mod partition;
mod plan;
mod quotes;
mod ranges;
mod reader;
mod records;
mod reduction;
mod results;
mod run;
mod sample;
mod seed;
mod settings;
mod shared;
mod shared_output;
mod skew;
mod sorter;
mod source;
mod spill;
mod split;
mod spool;
mod stage;
mod store;
mod tasks;
mod values;
mod walk;
mod worker;
mod written;

pub use checkpoint::remove_checkpoint;
pub use compression::Compression;
pub use counters::{COUNTS, Count, Counters, PHASES, Phase};
pub use datum::{Bytes, Combine, Datum, Key, SHORT_BYTES, Short};
pub use error::{Error, Result};
pub use explain::Choice;
#[doc(hidden)]
pub use fate::{MOMENTS, Moment};
pub use input::{BadFile, Input, InputNews, Verdict};
pub use iterate::{Control, Next, Pairs, Step};
pub use job::{Job, Progress};
pub use map_reduce::{Emit, MapReduce, Partition, Reduce};
pub use memory::{Memory, TooLarge};
pub use output::{BadRecord, Outcome, Output, Summary, Worker};
pub use records::{Records, Syntax};
pub use settings::{Buffer, Combining, Exchange, Isolation, Order, PagePolicy};
pub use shared_output::{Plain, SharedOutput};
pub use source::Source;
pub use split::Split;
pub use values::Values;
pub use walk::{LeftOut, Tally};
pub use written::{Part, Row, Target};

/// Compressed files for tests.
#[cfg(test)]
#[path = "../tests/common/pack.rs"]
mod pack;

/// Input that is nearly right, for tests.
#[cfg(test)]
#[path = "../tests/common/nearly.rs"]
mod nearly;

/// The example of the README compiles.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
