//! How the files of an input are found, and the news that a search reports.

use std::fmt;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::input::left_out::{REASONS, Tallies, Tally};
use crate::interrupt::Interrupt;
use crate::memory::Memory;

/// A path of the input, by its origin.
#[derive(Clone, Debug)]
pub(crate) enum Entry {
    /// The user named it.
    Named(PathBuf),
    /// A list contains it.
    Listed(PathBuf),
    /// A pattern matched it.
    Matched(PathBuf),
}

/// Settings of the search for files.
#[derive(Clone, Debug, Default)]
pub(crate) struct Look {
    pub follow: bool,
    pub skip_bad_files: u32,
    /// The memory of the job, if it was set.
    pub memory_bytes: Option<usize>,
    pub spool_dir: Option<PathBuf>,
    /// The bytes that copies of streams leave free; by default a part of those free at the start.
    pub keep_free_bytes: Option<u64>,
    pub read_once: bool,
    pub news: News,
    pub interrupt: Interrupt,
}

/// The receiver of the news, if any.
#[derive(Clone, Default)]
pub(crate) struct News(pub Option<Arc<Tell>>);

pub(crate) type Tell = dyn Fn(&InputNews<'_>) + Send + Sync;

impl News {
    pub fn tell(&self, news: &InputNews<'_>) {
        if let Some(tell) = &self.0 {
            tell(news);
        }
    }
}

impl fmt::Debug for News {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(if self.0.is_some() { "told" } else { "not told" })
    }
}

/// News of the input for the user ([`Input::on_news`](crate::Input::on_news)).
#[derive(Debug)]
#[non_exhaustive]
pub enum InputNews<'n> {
    /// Some paths were left out.
    LeftOut(&'n Tally),
    /// A file was set aside.
    SetAside(&'n BadFile),
    /// A stream is being copied.
    Copied {
        /// The name of the stream in messages.
        name: &'n Path,
        /// Bytes copied so far.
        bytes: u64,
    },
    /// Files are being read to their ends, to find bad ones.
    Checking {
        /// The number of files.
        files: usize,
        /// Their total size.
        bytes: u64,
    },
}

/// A file that was set aside ([`Input::skip_bad_files`](crate::Input::skip_bad_files)).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BadFile {
    /// The file or directory.
    pub path: PathBuf,
    /// The message of the error.
    pub cause: String,
}

impl Look {
    /// Returns the memory of the job.
    pub fn memory(&self) -> Memory {
        // A kernel that does not report its available memory sets no limit.
        let available = || gristmill_os::machine::memory_available_bytes().unwrap_or(u64::MAX);
        self.memory_bytes.map_or_else(|| Memory::of(available()), |bytes| Memory::of_job(bytes as u64))
    }

    /// Reports the paths that were left out, by reason.
    pub fn tell_left_out(&self, left_out: &Tallies) {
        for tally in REASONS.into_iter().filter_map(|why| left_out.of(why)) {
            self.news.tell(&InputNews::LeftOut(tally));
        }
    }

    /// Sets a file aside because of `error`, or returns the error if it may not be set aside.
    pub fn set_aside(&self, path: &Path, error: Error, bad: &mut Vec<BadFile>) -> Result<()> {
        let limit = self.skip_bad_files;
        match error {
            // No fault of the file.
            error @ (Error::Cancelled | Error::Deadline { .. }) => return Err(error),
            error if error.is_limit() => return Err(error),
            error if limit == 0 => return Err(error),
            error if bad.len() >= limit as usize => {
                return Err(Error::TooManyBadFiles { limit, last: error.to_string() });
            }
            error => {
                let file = BadFile { path: path.to_owned(), cause: error.to_string() };
                self.news.tell(&InputNews::SetAside(&file));
                bad.push(file);
            }
        }
        Ok(())
    }
}

/// Returns a path by which workers can open a file that this process has open.
pub(crate) fn in_proc(file: &File) -> PathBuf {
    PathBuf::from(format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd()))
}
