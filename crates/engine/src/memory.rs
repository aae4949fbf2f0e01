//! Memory limits for things whose size the input determines.
//!
//! A few bytes of a file can ask for gigabytes: the header of a picture, the window of a compressed file, the shape of
//! an array. Code that makes such a thing first asks whether there is room for it.

use std::fmt;
use std::io::{self, Read};

use rustix::io::Errno;

/// The most memory that something made from input may take.
///
/// ```
/// use gristmill::files::Memory;
///
/// let memory = Memory::of(1 << 20);
/// assert!(memory.allow(5000).is_ok());
/// let error = memory.allow(3 << 30).unwrap_err().to_string();
/// assert!(error.starts_with("takes 3.0 GiB of memory, and at most 1.0 MiB may be taken for it"));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    bytes: u64,
    /// How many times this is in the memory of the job, if the user has set that.
    parts_of_job: Option<u64>,
}

/// The memory that something would take, and its limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TooLarge {
    /// Bytes needed.
    pub need_bytes: u64,
    /// Bytes allowed.
    pub limit_bytes: u64,
    /// The memory of the job that would be enough, if it is known.
    pub enough_bytes: Option<u64>,
}

impl fmt::Display for TooLarge {
    /// Writes a clause that follows the name of the thing.
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (need, limit) = (shown(self.need_bytes), shown(self.limit_bytes));
        write!(to, "takes {need} of memory, and at most {limit} may be taken for it: ")?;
        match self.enough_bytes.map(|bytes| bytes.max(SMALL_JOB_BYTES).div_ceil(1 << 20)) {
            Some(mib) => write!(to, "raise Job::memory to {mib} MiB or more"),
            None => to.write_str(RAISE),
        }
    }
}

impl std::error::Error for TooLarge {}

/// The memory of a job of one worker over a small input.
const SMALL_JOB_BYTES: u64 = 6 << 20;

/// The advice at the end of the message, if it is not known how much is enough.
const RAISE: &str = "raise Job::memory, or take fewer workers";

impl Memory {
    /// Returns a limit of `bytes` bytes.
    pub const fn of(bytes: u64) -> Memory {
        Memory { bytes, parts_of_job: None }
    }

    /// Returns the memory that the user has set for a job.
    pub(crate) const fn of_job(bytes: u64) -> Memory {
        Memory { bytes, parts_of_job: Some(1) }
    }

    /// Returns the limit in bytes.
    pub fn bytes(self) -> u64 {
        self.bytes
    }

    /// Returns one of `parts` equal parts.
    pub fn share(self, parts: u64) -> Memory {
        let parts_of_job = self.parts_of_job.map(|before| before.saturating_mul(parts));
        Memory { bytes: self.bytes / parts, parts_of_job }
    }

    /// Returns an error unless `need_bytes` bytes are within the limit. For a product that overflows, pass `u64::MAX`.
    ///
    /// # Errors
    /// `need_bytes` exceeds the limit.
    pub fn allow(self, need_bytes: u64) -> Result<(), TooLarge> {
        let limit_bytes = self.bytes;
        let enough_bytes = self.parts_of_job.and_then(|parts| parts.checked_mul(need_bytes));
        if need_bytes <= limit_bytes { Ok(()) } else { Err(TooLarge { need_bytes, limit_bytes, enough_bytes }) }
    }

    /// Reads all of `from`.
    ///
    /// # Errors
    /// There is more than the limit ([`OutOfMemory`](io::ErrorKind::OutOfMemory)), or an error of `from`.
    pub fn read(self, from: impl Read) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        from.take(self.bytes.saturating_add(1)).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > self.bytes {
            let limit = shown(self.bytes);
            let what = format!("it is read into memory whole, and has more than the {limit} that it may take: {RAISE}");
            return Err(io::Error::new(io::ErrorKind::OutOfMemory, what));
        }
        Ok(bytes)
    }
}

/// Returns whether an error means that this run lacks memory (by the job's or the system's limit) or file descriptors,
/// which is no fault of the file at hand.
pub(crate) fn is_limit(error: &io::Error) -> bool {
    let is_descriptors = |errno| matches!(Errno::from_raw_os_error(errno), Errno::MFILE | Errno::NFILE);
    error.kind() == io::ErrorKind::OutOfMemory || error.raw_os_error().is_some_and(is_descriptors)
}

/// Formats a number of bytes for people to read.
pub(crate) fn shown(bytes: u64) -> String {
    let units = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    match units.into_iter().find(|(unit, _)| bytes >= *unit) {
        Some((unit, name)) => format!("{:.1} {name}", bytes as f64 / unit as f64),
        None => format!("{bytes} bytes"),
    }
}
