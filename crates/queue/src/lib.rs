//! A queue of jobs, without system calls: lists of jobs, their states, and the journal.
//!
//! ```text
//!  job        one program to run, and what it asks for
//!   arriving   a list with a shell command in each line, which arrives in pieces
//!   combined   a command and values for its places (`command {} ::: a b`)
//!   table      a list in TOML, with dependencies
//!  outcome    how a program ended
//!  states     which job begins next, which is retried, which is skipped
//!  journal    lines that survive a crash, and what they say is done
//! ```
//!
//! The caller starts and ends the processes. README.md has the states and the format of the journal.

#![forbid(unsafe_code)]

mod job;
mod arriving;
mod combined;
mod table;
mod outcome;
mod states;
mod journal;

pub use arriving::Arriving;
pub use combined::{SEPARATOR, combined};
pub use job::{Job, Keys, digest, keys};
pub use journal::{Entry, JournalError, Past, line};
pub use outcome::Outcome;
pub use states::{Counts, Queue, Rules, State};
pub use table::table;
