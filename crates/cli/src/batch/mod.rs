//! `gristmill batch`: runs a list of programs, as many at the same time as there are processors.

mod programs;

use std::ffi::OsString;

use clap::Args;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::terminal::failure::Failure;
use programs::Programs;

/// Run a list of programs, and continue after a crash
///
/// Runs a list of commands, as many at the same time as there are processors, keeps the output of each apart, and can
/// continue after a crash. With more programs at the same time than processors (-j) and --by-bandwidth, it learns what
/// memory bandwidth they demand, and chooses every 100 ms which of them run.
#[derive(Args)]
#[command(after_help = programs::EXAMPLES)]
pub struct Batch {
    #[command(flatten)]
    programs: Programs,
}

impl Batch {
    pub fn run(self) -> Result<(), Failure> {
        self.programs.run()
    }
}

/// Says where a command and its values stand, if they were written as GNU parallel takes them: `words` are those of
/// the command line.
pub fn tip(error: &clap::Error, words: &[OsString]) -> Option<&'static str> {
    let has_values = words.iter().any(|word| word.to_string_lossy().starts_with(":::"));
    let is_second_word = error.kind() == ErrorKind::UnknownArgument
        && matches!(error.get(ContextKind::InvalidArg), Some(ContextValue::String(word)) if !word.starts_with('-'));
    let is_meant = (has_values || is_second_word) && words.iter().all(|word| word != "--");
    is_meant.then_some("write -- before the command: gristmill batch [OPTIONS] -- COMMAND ::: VALUES")
}
