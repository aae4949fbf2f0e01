//! `gristmill batch`: runs a list of programs.
//!
//! ```text
//!  programs   the options of the queue, which the crate gristmill-batch runs
//!  simulate   repeats the experiments of bandwidth-aware scheduling (Xu et al.) on a simulated machine
//! ```

mod programs;
mod simulate;

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Args, Subcommand};

use crate::terminal::failure::Failure;
use programs::Programs;
use simulate::Simulate;

/// Run a list of programs, and continue after a crash
///
/// Runs a list of commands, as many at the same time as there are processors, keeps the output of each apart, and can continue after a
/// crash. With more programs at the same time than processors (-j) and --by-bandwidth, it learns what memory bandwidth they demand, and
/// chooses every 100 ms which of them run.
#[derive(Args)]
#[command(args_conflicts_with_subcommands = true, after_help = programs::EXAMPLES)]
pub struct Batch {
    #[command(subcommand)]
    what: Option<What>,

    #[command(flatten)]
    programs: Programs,
}

#[derive(Subcommand)]
enum What {
    Simulate(Simulate),
}

impl Batch {
    pub fn run(self) -> Result<(), Failure> {
        match self.what {
            Some(What::Simulate(simulate)) => simulate.run(),
            None => self.programs.run(),
        }
    }
}

/// Says where a command and its values stand, if they were written as GNU parallel takes them: `words` are those of the command line.
pub fn tip(error: &clap::Error, words: &[OsString]) -> Option<&'static str> {
    let has_values = words.iter().any(|word| word.to_string_lossy().starts_with(":::"));
    let is_second_word = error.kind() == ErrorKind::UnknownArgument
        && matches!(error.get(ContextKind::InvalidArg), Some(ContextValue::String(word)) if !word.starts_with('-'));
    let is_meant = (has_values || is_second_word) && words.iter().all(|word| word != "--");
    is_meant.then_some("write -- before the command: gristmill batch [OPTIONS] -- COMMAND ::: VALUES")
}
