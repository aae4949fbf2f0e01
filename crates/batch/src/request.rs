//! A request, which is the command line of `gristmill batch`: the list, how it runs, and what is reported.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use gristmill::{Error, units};

use crate::choose::choice::ByBandwidth;
use crate::list::values::Values;
use crate::list::{Defaults, List};
use crate::queue::Halt;
use crate::report::printer::Order;
use crate::run::admission::StartLimits;
use crate::run::slots::{Slots, slots};

/// Run a list of programs, and continue after a crash
///
/// Runs a list of commands, as many at the same time as there are processors, keeps the output of each apart, and can
/// continue after a crash. With more programs at the same time than processors (-j) and --by-bandwidth, it learns what
/// memory bandwidth they demand, and chooses every 100 ms which of them run.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Request {
    /// File with a command for the shell (sh, or --shell) in each line, or with jobs in TOML if its name ends with
    /// .toml; - for standard input, which is read if nothing is named
    #[arg(value_name = "FILE", conflicts_with = "command")]
    pub jobs: Option<PathBuf>,

    /// A command, and values for its placeholders, as in GNU parallel: COMMAND {} ::: a b runs it for each value;
    /// without :::, values come from standard input
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,

    /// How values and lines become jobs.
    #[command(flatten)]
    pub values: Values,

    /// How many programs run at the same time: a number, or a share of the processors such as 200% [default: 100%]
    #[arg(long = "jobs", short = 'j', value_name = "N", value_parser = slots)]
    pub at_once: Option<Slots>,

    /// With more programs than processors, learn their demand for memory bandwidth, and choose every 100 ms which of
    /// them run where that gained time before
    #[arg(long, value_name = "HOW", value_enum, num_args = 0..=1, require_equals = true, default_missing_value = "observe")]
    pub by_bandwidth: Option<ByBandwidth>,

    /// Go on after a program has failed; those that wait for it are skipped
    #[arg(long, short, conflicts_with = "halt")]
    keep_going: bool,

    /// After a failure begin no further program (soon), end those that run as well (now), or go on (never);
    /// soon,fail=N or now,success=N count ends [default: soon]
    #[arg(long, value_name = "WHEN", value_parser = Halt::parse)]
    halt: Option<Halt>,

    /// Print the commands that would run, as lines for a shell, and run none
    #[arg(long)]
    pub dry_run: bool,

    /// Keep what has ended in this file, so that --resume can continue
    #[arg(long, value_name = "FILE")]
    pub journal: Option<PathBuf>,

    /// Continue after the journal: what has ended does not run again
    #[arg(long, requires = "journal")]
    pub resume: bool,

    /// Continue, and run again what failed
    #[arg(long, requires = "journal")]
    pub resume_failed: bool,

    /// Write the output of each program into a folder of its own below this one
    #[arg(long, short, value_name = "DIR")]
    pub output: Option<PathBuf>,

    /// The order in which the output of programs is printed
    #[arg(long, value_enum, default_value_t)]
    order: Order,

    /// The same as --order list
    #[arg(long, conflicts_with = "order")]
    keep_order: bool,

    /// Print each line as soon as it is written, after the number and the name of its job
    #[arg(long, visible_alias = "line-buffer")]
    pub live: bool,

    /// End a program that takes longer, unless its job says otherwise
    #[arg(long, value_name = "TIME", value_parser = units::duration)]
    pub timeout: Option<Duration>,

    /// How often a program that failed is tried again, unless its job says otherwise
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub retries: u32,

    /// How long to wait before a program that failed is tried again, unless its job says otherwise
    #[arg(long, value_name = "TIME", value_parser = units::duration)]
    pub retry_delay: Option<Duration>,

    /// Memory for all programs that run at the same time [default: what is available]
    #[arg(long = "memory", value_name = "SIZE", value_parser = units::bytes)]
    pub memory_bytes: Option<usize>,

    /// The load and the memory with which programs begin.
    #[command(flatten)]
    pub limits: StartLimits,

    /// Print a line of JSON for each program that ends, instead of its output, which goes to standard error
    #[arg(long)]
    pub json: bool,

    /// Write a page that shows when each program ran
    #[arg(long, value_name = "FILE.html")]
    pub timeline: Option<PathBuf>,

    /// Write a line for each attempt that ends into a table
    #[arg(long, value_name = "FILE.tsv")]
    pub log: Option<PathBuf>,

    /// The history of runs [default: gristmill/history.sqlite in $XDG_DATA_HOME or ~/.local/share]
    #[arg(long, value_name = "FILE", conflicts_with = "no_history")]
    history: Option<PathBuf>,

    /// Keep no history
    #[arg(long)]
    pub no_history: bool,

    /// Print no table and no summary, only what failed
    #[arg(long, short)]
    pub quiet: bool,
}

const EXAMPLES: &str = "\
Examples:
  gristmill batch jobs.txt
  gristmill batch -- xz -k ::: *.log
  gristmill batch -- cp {} {.}.bak ::: *.txt
  find . -name '*.wav' -print0 | gristmill batch -0 -- flac {}
  gristmill batch --shell 'bash -o pipefail' -- 'zcat {} | wc -l > {.}.count' ::: *.gz
  gristmill batch --journal night.journal --keep-going --output results night.toml
  gristmill batch --journal night.journal --resume --keep-going --output results night.toml

Ctrl-C once begins no further program, twice ends all. Exit status 1 if a program failed or did not run.";

impl Request {
    /// Returns when no further program begins.
    pub(crate) fn halt(&self) -> Halt {
        if self.keep_going { Halt::NEVER } else { self.halt.unwrap_or(Halt::SOON) }
    }

    /// Returns the order in which outputs are printed.
    pub(crate) fn order(&self) -> Order {
        if self.keep_order { Order::List } else { self.order }
    }

    /// Returns the file of the history; `None` if none is kept, or there is no place for it.
    pub fn history(&self) -> Option<PathBuf> {
        let in_home = || gristmill_history::in_home(|name| std::env::var_os(name).map(PathBuf::from));
        if self.no_history { None } else { self.history.clone().or_else(in_home) }
    }

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
