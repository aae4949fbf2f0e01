//! A request: the list, how it runs, and what is reported.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use gristmill::Error;

use crate::choose::choice::ByBandwidth;
use crate::list::values::Values;
use crate::list::{Defaults, List};
use crate::queue::Halt;
use crate::report::printer::Order;
use crate::run::admission::StartLimits;
use crate::run::slots::Slots;

/// A request to run a list of programs.
pub struct Request {
    /// The list; `None` for standard input. Not read if there is a `command`.
    pub jobs: Option<PathBuf>,
    /// A command with placeholders, and its values.
    pub command: Vec<OsString>,
    /// How values and lines become jobs.
    pub values: Values,
    /// How many programs run at the same time; `None` for one on each processor.
    pub at_once: Option<Slots>,
    /// Programs are chosen by their demand for memory bandwidth.
    pub by_bandwidth: Option<ByBandwidth>,
    /// When no further program begins.
    pub halt: Halt,
    /// Print the commands that would run, and run none.
    pub dry_run: bool,
    /// The file that keeps what has ended.
    pub journal: Option<PathBuf>,
    /// Continue after the journal.
    pub resume: bool,
    /// Continue, and run again what failed.
    pub resume_failed: bool,
    /// The folder for the output of each program.
    pub output: Option<PathBuf>,
    /// The order in which outputs are printed.
    pub order: Order,
    /// Print each line as soon as it is written.
    pub live: bool,
    /// The time after which a program is ended.
    pub timeout: Option<Duration>,
    /// How often a program that failed is tried again.
    pub retries: u32,
    /// The wait before that.
    pub retry_delay: Option<Duration>,
    /// Memory for all programs that run at the same time; `None` for what is available.
    pub memory_bytes: Option<usize>,
    /// The load and the memory with which programs begin.
    pub limits: StartLimits,
    /// Print a line of JSON for each program, instead of its output.
    pub json: bool,
    /// A page that shows when each program ran.
    pub timeline: Option<PathBuf>,
    /// A table with a line for each attempt.
    pub log: Option<PathBuf>,
    /// The history of runs; `None` where there is no place for it.
    pub history: Option<PathBuf>,
    /// Keep no history.
    pub no_history: bool,
    /// Print no table, and of the summary only what failed.
    pub quiet: bool,
}

impl Request {
    /// Returns the files that the jobs, or values for them, come from.
    pub fn lists(&self) -> Vec<PathBuf> {
        let list = self.jobs.as_deref().filter(|path| path.as_os_str() != "-");
        match self.command.is_empty() {
            true => vec![list.map_or_else(|| "/dev/stdin".into(), PathBuf::from)],
            false => self.values.files(&self.command),
        }
    }

    /// Opens the list, of which nothing is read yet if it arrives from a pipe.
    ///
    /// # Errors
    /// It cannot be read, or a retry has a delay that there is no retry for.
    pub(crate) fn list(&self) -> Result<List, Error> {
        let defaults = Defaults { timeout: self.timeout, retries: self.retries, retry_delay: self.retry_delay };
        let list = List::open(self.jobs.as_deref(), &self.command, &self.values, defaults)?;
        // Those that arrive later say nothing of it.
        if self.retry_delay.is_some() && self.retries == 0 && list.jobs().iter().all(|job| job.retries == Some(0)) {
            return Err(Error::Setting(
                "--retry-delay has nothing to delay: no job is tried again; add --retries N".to_owned(),
            ));
        }
        Ok(list)
    }
}
