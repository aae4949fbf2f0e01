//! Which files a command reads.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use clap::Args;
use gristmill::{Error, Input};

use crate::failure::Failure;
use crate::units;

/// The input.
#[derive(Args)]
pub struct Inputs {
    /// Files, directories (all files below them, but hidden ones), patterns such as 'logs/**/*.txt', or - for
    /// standard input [default: standard input, when it is not a terminal]
    #[arg(value_name = "INPUT")]
    paths: Vec<PathBuf>,

    /// The longest record (for words: the longest word), at most 16MiB; a longer one is an error that names
    /// its place
    #[arg(long, value_name = "SIZE", default_value = "16MiB", value_parser = record_bytes, help_heading = INPUT)]
    pub record_bytes_max: usize,
}

/// The heading of options about the input.
pub const INPUT: &str = "Input";

/// Keys are at most this long.
const RECORD_BYTES_MAX: usize = 16 << 20;

fn record_bytes(text: &str) -> Result<usize, String> {
    match units::bytes(text)? {
        0 => Err("a record has at least one byte".to_owned()),
        bytes if bytes > RECORD_BYTES_MAX => Err("the most is 16MiB".to_owned()),
        bytes => Ok(bytes),
    }
}

impl Inputs {
    /// The input of the job: patterns expanded, standard input when nothing is named.
    pub fn input(&self) -> Result<Input, Failure> {
        if self.paths.is_empty() {
            if std::io::stdin().is_terminal() {
                return Err(Failure::Usage(
                    "nothing to read: name files or directories, or pipe text into standard input".into(),
                ));
            }
            return Ok(Input::paths(["-"]));
        }
        let mut paths = Vec::with_capacity(self.paths.len());
        for path in &self.paths {
            match pattern(path) {
                Some(pattern) => paths.extend(matches(pattern)?),
                None => paths.push(path.clone()),
            }
        }
        Ok(Input::paths(paths))
    }
}

/// The path as a pattern, if it is one: a file of exactly this name goes first.
fn pattern(path: &Path) -> Option<&str> {
    let text = path.to_str()?;
    (text.contains(['*', '?', '[']) && path.symlink_metadata().is_err()).then_some(text)
}

/// The files (no directories) that match, in the order of their names.
fn matches(pattern: &str) -> Result<Vec<PathBuf>, Failure> {
    let options = glob::MatchOptions { require_literal_leading_dot: true, ..Default::default() };
    let found = glob::glob_with(pattern, options)
        .map_err(|error| Failure::Usage(format!("{pattern} is no pattern: {error}")))?;
    let mut paths = Vec::new();
    for path in found {
        let path = path.map_err(|error| Error::Input { path: error.path().to_owned(), source: error.into() })?;
        if !path.is_dir() {
            paths.push(path);
        }
    }
    if paths.is_empty() {
        return Err(Error::NoInput { what: format!("no file matches the pattern {pattern}") }.into());
    }
    Ok(paths)
}
