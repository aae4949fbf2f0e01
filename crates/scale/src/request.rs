//! A request: the command, the numbers of workers, and how much is measured.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use crate::run::parameters::Parameter;

/// When experiments are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// Those that tell the suspects apart, as far as they take less than 15 seconds.
    Auto,
    /// All, however long they take.
    Always,
    /// Never.
    Never,
}

/// A request to measure a command with several numbers of workers.
pub struct Request {
    /// The command, or one of our own applications, with its arguments.
    pub program: Vec<OsString>,
    /// The first word names one of our own applications.
    pub is_application: bool,
    /// A shell command that is run before each run, and not timed.
    pub prepare: Option<OsString>,
    /// The work grows with the workers.
    pub is_weak: bool,
    /// Other parameters and their values.
    pub vary: Vec<Parameter>,
    /// The numbers of workers; empty for those that suit the machine.
    pub workers: Vec<u64>,
    /// How often the command runs with each number, at least.
    pub repeats: u32,
    /// The time after which a run is ended.
    pub timeout: Duration,
    /// Run once more with each number to see where the time of the workers goes.
    pub account: bool,
    /// When experiments are made.
    pub experiments: When,
    /// Runs that other programs disturb count, too.
    pub despite_load: bool,
    /// The history that keeps the times of our own applications; `None` for none.
    pub history: Option<PathBuf>,
}
