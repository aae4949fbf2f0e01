//! `gristmill batch`: runs a list of programs, as many at the same time as there are processors.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use gristmill_batch::Request;

use crate::output::outputs::Outputs;
use crate::terminal::failure::Failure;

/// Runs the list.
pub fn run(request: &Request) -> Result<(), Failure> {
    check_apart(request)?;
    if gristmill_batch::run(request)? { Ok(()) } else { Err(Failure::Told) }
}

/// Fails if two of the files that the options name are the same, or one of them has the jobs, or values for them.
/// Links are seen through.
fn check_apart(request: &Request) -> Result<(), Failure> {
    let mut outputs = Outputs::default();
    let mut add = |option, path: Option<&PathBuf>| path.iter().for_each(|path| outputs.file(option, path));
    add("--journal", request.journal.as_ref());
    add("--timeline", request.timeline.as_ref());
    add("--output", request.output.as_ref());
    add("--history", request.history().as_ref());
    add("--log", request.log.as_ref());
    outputs.check()?;
    outputs.check_named(request.lists().iter().map(PathBuf::as_path))
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
