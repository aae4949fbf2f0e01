//! Which files a command reads.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{IsTerminal, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use clap::Args;
use gristmill::{Error, Input};
use gristmill_apps::Column;

use crate::failure::Failure;
use crate::units;

/// The input.
#[derive(Args)]
pub struct Inputs {
    /// Files, directories (all files below them, but hidden ones), patterns such as 'logs/**/*.txt', or - for
    /// standard input; plain, or compressed (gzip, zstd, bzip2, xz) [default: standard input, when it is not a terminal]
    #[arg(value_name = "INPUT")]
    paths: Vec<PathBuf>,

    /// Also read the files named in this one, a name per line (or NUL-terminated, as find -print0 writes them); - for
    /// standard input
    #[arg(long, value_name = "FILE", help_heading = INPUT)]
    files_from: Option<PathBuf>,

    /// The longest record (for words: the longest word), at most 16MiB; a longer one is an error that names
    /// its place
    #[arg(long, value_name = "SIZE", default_value = "16MiB", value_parser = record_bytes, help_heading = INPUT)]
    pub record_bytes_max: usize,
}

/// The heading of options about the input.
pub const INPUT: &str = "Input";

/// Keys are at most this long.
const RECORD_BYTES_MAX: usize = 16 << 20;

/// A column of CSV files, by number or by name.
pub fn column(text: &str) -> Result<Column, String> {
    match text.parse() {
        Ok(0) => Err("columns are numbered from 1".to_owned()),
        Ok(number) => Ok(Column::Number(number)),
        Err(_) => Ok(Column::Name(text.to_owned())),
    }
}

fn record_bytes(text: &str) -> Result<usize, String> {
    match units::bytes(text)? {
        0 => Err("a record has at least one byte".to_owned()),
        bytes if bytes > RECORD_BYTES_MAX => Err("the most is 16MiB".to_owned()),
        bytes => Ok(bytes),
    }
}

impl Inputs {
    /// The files and directories that the command names, patterns left out.
    pub fn named(&self) -> impl Iterator<Item = &Path> {
        let named = self.paths.iter().chain(&self.files_from).map(PathBuf::as_path);
        named.filter(|path| *path != Path::new("-") && pattern(path).is_none())
    }

    /// The input of the job: patterns expanded, standard input when nothing is named.
    pub fn input(&self) -> Result<Input, Failure> {
        if self.paths.is_empty() && self.files_from.is_none() {
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
        if let Some(list) = &self.files_from {
            paths.extend(listed(list)?);
        }
        Ok(Input::paths(paths))
    }
}

/// The paths that a list names, as they are: no patterns. No path has a NUL in it, so a list that does is one of
/// NUL-terminated names.
fn listed(list: &Path) -> Result<Vec<PathBuf>, Failure> {
    let failed = |source| Error::Input { path: list.to_owned(), source };
    let mut names = Vec::new();
    if list == Path::new("-") {
        std::io::stdin().read_to_end(&mut names).map_err(failed)?;
    } else {
        File::open(list).and_then(|mut file| file.read_to_end(&mut names)).map_err(failed)?;
    }
    let end = if names.contains(&0) { 0 } else { b'\n' };
    let names = names.split(|byte| *byte == end).filter(|name| !name.is_empty());
    let paths: Vec<_> = names.map(|name| PathBuf::from(OsStr::from_bytes(name))).collect();
    if paths.is_empty() {
        return Err(Error::NoInput { what: format!("{} names no file", list.display()) }.into());
    }
    Ok(paths)
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
