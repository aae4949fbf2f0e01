//! How an input is looked for, and whom to tell what was found.

use std::fmt;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::input::left_out::{LeftOut, REASONS, Tallies, Tally};
use crate::memory::Memory;

/// A path.
#[derive(Clone, Debug)]
pub(crate) enum Entry {
    /// Somebody named it.
    Named(PathBuf),
    /// It stands in a list.
    Listed(PathBuf),
    /// It matches a pattern.
    Matched(PathBuf),
}

/// How files are looked for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Look {
    pub follow: bool,
    pub skip_bad_files: u32,
    /// What the job may take, if somebody has said it.
    pub memory_bytes: Option<usize>,
    pub spool_dir: Option<PathBuf>,
    pub read_once: bool,
    pub news: News,
}

/// Whom to tell what was found.
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

/// Something that a user should know of the input ([`Input::on_news`](crate::Input::on_news)).
#[derive(Debug)]
#[non_exhaustive]
pub enum InputNews<'n> {
    /// Some paths are not read.
    LeftOut(&'n Tally),
    /// A file was set aside.
    SetAside(&'n BadFile),
    /// A stream is being copied.
    Copied {
        /// What messages call it.
        name: &'n Path,
        /// How much has been copied so far.
        bytes: u64,
    },
    /// Files are being read to their ends, to find the bad ones.
    Checking {
        /// How many.
        files: usize,
        /// Their size together.
        bytes: u64,
    },
}

/// A file that was set aside ([`Input::skip_bad_files`](crate::Input::skip_bad_files)).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadFile {
    /// The file or directory.
    pub path: PathBuf,
    /// The error that it would have been.
    pub cause: String,
}

impl Look {
    /// What the job may take.
    pub fn memory(&self) -> Memory {
        // A kernel that does not say what is available sets no limit.
        let available = || gristmill_os::machine::memory_available_bytes().unwrap_or(u64::MAX);
        Memory::of(self.memory_bytes.map_or_else(available, |bytes| bytes as u64))
    }

    /// Tells of what was left out, reason by reason.
    pub fn tell_left_out(&self, left_out: &Tallies) {
        // That hidden names are left out is the rule everywhere.
        for why in REASONS.into_iter().filter(|why| *why != LeftOut::Hidden) {
            if let Some(tally) = left_out.of(why) {
                self.news.tell(&InputNews::LeftOut(tally));
            }
        }
    }

    /// Sets a file aside because of `error`, or ends with it.
    pub fn set_aside(&self, path: &Path, error: Error, bad: &mut Vec<BadFile>) -> Result<()> {
        let limit = self.skip_bad_files;
        match error {
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

/// A path by which the workers can open what this process has open.
pub(crate) fn in_proc(file: &File) -> PathBuf {
    PathBuf::from(format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd()))
}
