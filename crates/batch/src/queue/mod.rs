//! A queue of jobs, without system calls: lists of jobs, their states, and the journal.
//!
//! ```text
//!  job        one program to run, and what it asks for
//!   placeholder  a part of a command that values replace (`{}`, `{.}`, `{2/}`)
//!   places     where in a line for the shell a quoted value may stand
//!   shell      the shell that runs a line, and quotes for it
//!   template   a command with placeholders, and the jobs that values make of it
//!   lists      lists of values, combined or linked (`command {} ::: a b`)
//!   arriving   a list with a shell command, or a value, in each line, which arrives in pieces
//!   table      a list in TOML, with dependencies
//!  outcome    how a program ended
//!  halt       when no further jobs begin
//!  state      the state of a job, and what may run at the same time
//!  queue      which job begins next, which is retried or skipped, when the queue halts
//!  journal    lines that survive a crash, and what they say is done
//! ```
//!
//! The caller starts and ends the processes. README.md of the crate has the states and the format of the journal.

mod job;
mod placeholder;
mod places;
mod shell;
mod template;
mod lists;
mod arriving;
mod table;
mod outcome;
mod halt;
mod state;
#[expect(clippy::module_inception, reason = "it has the type Queue")]
mod queue;
mod journal;

pub use arriving::{Arriving, no_zero_byte};
pub use halt::Halt;
pub use job::{BatchJob, Keys, digest};
pub use journal::{Entry, JournalError, Past, line};
pub use lists::{Given, GivenList, Lists, given_lists};
pub use outcome::Outcome;
pub use queue::Queue;
pub use shell::{Shell, quoted};
pub use state::{Counts, Rules, State};
pub use table::table;
pub use template::Template;
