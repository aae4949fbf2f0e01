//! A request: the command, the numbers of workers, and how much is measured.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum, ValueHint};
use gristmill::units;

use crate::run::parameters::Parameter;

/// When experiments are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum When {
    /// Those that tell the suspects apart, as far as they take less than 15 seconds
    Auto,
    /// All, however long they take
    Always,
    /// Never
    Never,
}

/// The options with which a command is measured.
#[derive(Args)]
pub struct Request {
    /// An application of Gristmill with its arguments, but without --workers; or, behind --, any command, in which
    /// {workers} stands for the number of workers
    #[arg(trailing_var_arg = true, value_hint = ValueHint::CommandWithArguments, conflicts_with = "from")]
    pub program: Vec<OsString>,

    /// Numbers of workers, separated by commas [default: 1, 2, 4 and so on to twice the processors]
    #[arg(long, value_name = "N", value_delimiter = ',', value_parser = clap::value_parser!(u64).range(1..=4096))]
    pub workers: Vec<u64>,

    /// Another parameter and its values, for a table with a row for each; {NAME} stands for the value, and one of
    /// Gristmill's applications gets --NAME. May be given several times, for all combinations
    #[arg(long, value_name = "NAME=A,B", value_parser = Parameter::parse, conflicts_with = "from")]
    pub vary: Vec<Parameter>,

    /// The work grows with the workers: times are divided by their number. One of Gristmill's applications reads its
    /// input as often as there are workers; in a command, {workers*N} is N times the number
    #[arg(long = "weak", conflicts_with = "from")]
    pub is_weak: bool,

    /// How often the command runs with each number at least, after one run that does not count. There are up to three
    /// times as many while the times lie far apart
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub repeats: u32,

    /// End a run that takes longer
    #[arg(long, value_name = "TIME", value_parser = units::duration, default_value = "10min")]
    pub timeout: Duration,

    /// Do not run once more with each number to see where the time of the workers goes
    #[arg(long, conflicts_with = "from")]
    pub no_account: bool,

    /// When the account leaves several causes: run again under changed circumstances, such as half the processors, to
    /// rule some out
    #[arg(long, value_name = "WHEN", value_enum, default_value_t = When::Auto, conflicts_with = "from")]
    pub experiments: When,

    /// Say what stops the workers even if other programs use the processors, and keep the times; it may be their work
    #[arg(long, conflicts_with = "from")]
    pub despite_load: bool,

    /// Run this by a shell before each run, such as 'make clean'; it is not timed, and {workers} is replaced in it as
    /// well
    #[arg(long, value_name = "COMMAND")]
    pub prepare: Option<OsString>,

    /// The first word names one of our own applications.
    #[arg(skip)]
    pub is_application: bool,

    /// The history that keeps the times of our own applications; `None` for none.
    #[arg(skip)]
    pub history: Option<PathBuf>,
}
