//! The input options: the files that a command reads.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, IsTerminal};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use clap::Args;
use gristmill::files::Memory;
use gristmill::{Error, Input, units};

use crate::options::patterns;
use crate::terminal::failure::Failure;

/// The input.
#[derive(Args)]
pub struct Inputs {
    /// Files, directories (all files below them except hidden ones and symbolic links), patterns such as
    /// 'logs/**/*.txt', or - for standard input; plain or compressed (gzip, zstd, bzip2, xz, lz4, zip with one file). A
    /// file that is named twice is read twice; a file that is found by a pattern or below a directory is read once,
    /// even if it has several names. A pipe is first copied to a temporary file (see --spill-dir) [default: standard
    /// input, unless it is a terminal]
    #[arg(value_name = "INPUT")]
    paths: Vec<PathBuf>,

    /// Also read the files that are listed in this file, one name per line, or NUL-terminated as find -print0 writes
    /// them; - for standard input
    #[arg(long, value_name = "FILE", help_heading = INPUT)]
    files_from: Option<PathBuf>,

    /// Follow symbolic links below directories. Links that are named are always followed
    #[arg(long, help_heading = INPUT)]
    follow: bool,

    /// Set aside up to N files (or all) that cannot be read, are damaged, or are not what their names say, and CSV
    /// files with a bad first line or with a quote that nothing closes, and give the result of the others. No part of a
    /// damaged file is counted: every file is read to its end before the job begins. A file that needs more than
    /// --memory or --record-bytes-max allows is not set aside but ends the job
    #[arg(long, value_name = "N|all", default_value = "0", value_parser = files, help_heading = INPUT)]
    pub skip_bad_files: u32,

    /// Read pipes directly, each by one worker, instead of copying them first. A worker that dies then ends the job.
    /// Only for subcommands that do not look at their input before the job: word-count, string-match, palindromes, sort
    #[arg(long, alias = "no-retry", help_heading = INPUT)]
    read_once: bool,

    /// The length of the longest record (for words: the longest word), less than 4GiB; a longer record is an error that
    /// says where it is. A worker holds several copies of its longest record, so with --memory it is at most a sixth of
    /// what each worker has of that: longer records take fewer workers [default: 16MiB, or a sixteenth of what each of
    /// two workers or more has of --memory if that is less]
    #[arg(long, value_name = "SIZE", value_parser = record_bytes, help_heading = INPUT)]
    record_bytes_max: Option<usize>,
}

/// The heading of the input options.
pub const INPUT: &str = "Input";

/// The maximum length of a key.
const RECORD_BYTES_MAX: usize = u32::MAX as usize;

fn record_bytes(text: &str) -> Result<usize, String> {
    match units::bytes(text)? {
        0 => Err("a record has at least one byte".to_owned()),
        bytes if bytes > RECORD_BYTES_MAX => Err("the most is 4GiB less one byte".to_owned()),
        bytes => Ok(bytes),
    }
}

/// Parses the number of files that may be set aside.
fn files(text: &str) -> Result<u32, String> {
    match text {
        "all" => Ok(u32::MAX),
        _ => text.parse().map_err(|_| "this is neither a number nor the word all".to_owned()),
    }
}

/// The default limit on a record, and its lower bound if there is little memory.
const RECORD_BYTES_DEFAULT: usize = 16 << 20;
const RECORD_BYTES_LEAST: usize = 64 << 10;

/// The number of copies of its longest record that a worker has at once: the record, its pair, the pair on its way, and
/// the pair where it is gathered. A merge of spilled runs has a pair of each of two runs and of memory, and the output.
const COPIES: usize = 6;
/// The divisor of a worker's memory that gives the default limit on a record.
const PARTS_DEFAULT: usize = 16;

impl Inputs {
    /// Returns whether the user has set the length of the longest record.
    pub fn limits_records(&self) -> bool {
        self.record_bytes_max.is_some()
    }

    /// Returns the limit on a record, and the number of workers that may have such a record at once. If the user asks
    /// for `workers`, all of them must be able to.
    pub fn record_bytes_max(
        &self,
        memory_bytes: Option<usize>,
        workers: Option<usize>,
    ) -> Result<(usize, Option<usize>), Failure> {
        let processors = gristmill_os::machine::processors().usable;
        let Some(memory_bytes) = memory_bytes else {
            return Ok((self.record_bytes_max.unwrap_or(RECORD_BYTES_DEFAULT), workers));
        };
        let most = |workers: usize, copies: usize| (memory_bytes / (copies * workers)).max(RECORD_BYTES_LEAST);
        let Some(bytes) = self.record_bytes_max else {
            let all = workers.unwrap_or(processors);
            return Ok((RECORD_BYTES_DEFAULT.min(most(all.max(2), PARTS_DEFAULT)), workers));
        };
        if bytes <= most(workers.unwrap_or(processors), COPIES) {
            return Ok((bytes, workers));
        }
        let at_once = memory_bytes / (COPIES * bytes);
        match workers {
            None if at_once > 0 => Ok((bytes, Some(at_once))),
            _ => {
                let each = if workers.is_some_and(|workers| workers > 1) { " in each worker" } else { "" };
                Err(Failure::Usage(format!(
                    "records of {bytes} bytes (--record-bytes-max) need six times as much memory{each}, and --memory is \
                     {memory_bytes} bytes: raise one, lower the other, or take fewer workers"
                )))
            }
        }
    }

    /// Returns the files and directories that the command names, without patterns.
    pub fn named(&self) -> impl Iterator<Item = &Path> {
        let named = self.paths.iter().chain(&self.files_from).map(PathBuf::as_path);
        named.filter(|path| *path != Path::new("-") && !is_pattern(path))
    }

    /// Returns everything that is named, with the option that names it.
    pub fn with_options(&self) -> impl Iterator<Item = (&'static str, &Path)> {
        let implied = (self.paths.is_empty() && self.files_from.is_none()).then_some(Path::new("-"));
        let lists = self.files_from.iter().map(|list| ("--files-from", list.as_path()));
        lists.chain(self.paths.iter().map(PathBuf::as_path).chain(implied).map(|path| ("INPUT", path)))
    }

    /// Returns the input of a job with this memory: patterns expanded, standard input if no file is named.
    pub fn input(&self, memory_bytes: Option<usize>) -> Result<Input, Failure> {
        let prepared = |input: Input| {
            let input = memory_bytes.into_iter().fold(input, Input::memory);
            input.follow(self.follow).skip_bad_files(self.skip_bad_files).read_once(self.read_once)
        };
        if self.paths.is_empty() && self.files_from.is_none() {
            if io::stdin().is_terminal() {
                return Err(Failure::Usage(
                    "nothing to read: name files or directories, or pipe text into standard input".into(),
                ));
            }
            return Ok(prepared(Input::paths(["-"])));
        }
        let mut input = prepared(Input::paths::<&Path>([]));
        for path in &self.paths {
            if is_pattern(path) {
                let matches = patterns::matches(path);
                if matches.is_empty() {
                    let what = match path.as_os_str().as_bytes().iter().any(|byte| b"*?".contains(byte)) {
                        true => format!("no file matches the pattern {}", path.display()),
                        // More likely a file name.
                        false => format!(
                            "there is no file {}, and none that matches it as a pattern (brackets stand for one of the characters in them)",
                            path.display()
                        ),
                    };
                    return Err(Error::NoInput { what }.into());
                }
                input = input.and_matched(matches);
            } else {
                input = input.and(path);
            }
        }
        if let Some(list) = &self.files_from {
            let paths = listed(list, input.program_memory())?;
            input = input.and_listed(paths);
        }
        Ok(input)
    }
}

/// Returns true for a pattern, unless a file has exactly this name.
fn is_pattern(path: &Path) -> bool {
    patterns::is_pattern(path) && path.symlink_metadata().is_err()
}

/// Returns the name of an input in messages.
pub fn name_of(path: &Path) -> Cow<'_, str> {
    if path == Path::new("-") { "standard input".into() } else { path.to_string_lossy() }
}

/// Returns the paths in a list, which are not patterns. A path cannot contain a NUL, so a list that does is
/// NUL-terminated.
fn listed(list: &Path, memory: Memory) -> Result<Vec<PathBuf>, Failure> {
    let failed = |source| Error::Input { path: list.to_owned(), source };
    let limit = memory.share(32);
    let names = match list == Path::new("-") {
        true => limit.read(io::stdin()),
        false => File::open(list).and_then(|file| limit.read(file)),
    };
    let names = names.map_err(failed)?;
    let end = if names.contains(&0) { 0 } else { b'\n' };
    let count = memchr::memchr_iter(end, &names).count() as u64;
    let too_large = |too_large| failed(io::Error::other(format!("to keep its {count} names {too_large}")));
    memory.share(4).allow(count * NAME_BYTES).map_err(too_large)?;
    let names = names.split(|byte| *byte == end).filter(|name| !name.is_empty());
    let paths: Vec<_> = names.map(|name| PathBuf::from(OsStr::from_bytes(name))).collect();
    if paths.is_empty() {
        return Err(Error::NoInput { what: format!("{} names no file", name_of(list)) }.into());
    }
    Ok(paths)
}

/// The memory for a name, not counting its bytes: its entries in two lists, and the place of its bytes.
const NAME_BYTES: u64 = 96;
