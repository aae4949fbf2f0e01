//! How much memory something may take whose size the input says.
//!
//! A few bytes of a file can ask for gigabytes: a picture by its header, a compressed file by its window, an array by its
//! shape. Whoever makes something of that kind asks before whether there is room for it.

use std::fmt;
use std::io::{self, Read};

use rustix::io::Errno;

/// A limit for what is made of input.
///
/// ```
/// use gristmill::Memory;
///
/// let memory = Memory::of(1 << 20);
/// assert!(memory.allow(5000).is_ok());
/// let error = memory.allow(3 << 30).unwrap_err().to_string();
/// assert!(error.starts_with("takes 3.0 GiB of memory, and at most 1.0 MiB may be taken for it"));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory(u64);

/// What something would take, and what it may.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLarge {
    /// Bytes that it takes.
    pub need_bytes: u64,
    /// Bytes that it may take.
    pub limit_bytes: u64,
}

impl fmt::Display for TooLarge {
    /// Follows the name of the thing.
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (need, limit) = (shown(self.need_bytes), shown(self.limit_bytes));
        write!(to, "takes {need} of memory, and at most {limit} may be taken for it: {RAISE}")
    }
}

impl std::error::Error for TooLarge {}

/// What to do about it.
const RAISE: &str = "raise Job::memory, or take fewer workers";

impl Memory {
    /// So many bytes.
    pub const fn of(bytes: u64) -> Memory {
        Memory(bytes)
    }

    /// The limit.
    pub fn bytes(self) -> u64 {
        self.0
    }

    /// One of so many equal parts.
    pub fn share(self, parts: u64) -> Memory {
        Memory(self.0 / parts)
    }

    /// Whether something of so many bytes may be made. A product that overflows is given as `u64::MAX`.
    ///
    /// # Errors
    /// It takes more.
    pub fn allow(self, need_bytes: u64) -> Result<(), TooLarge> {
        let limit_bytes = self.0;
        if need_bytes <= limit_bytes { Ok(()) } else { Err(TooLarge { need_bytes, limit_bytes }) }
    }

    /// All that `from` gives.
    ///
    /// # Errors
    /// It gives more than the limit ([`OutOfMemory`](io::ErrorKind::OutOfMemory)); or what `from` says.
    pub fn read(self, from: impl Read) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        from.take(self.0.saturating_add(1)).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > self.0 {
            let limit = shown(self.0);
            let what = format!("it is read into memory whole, and has more than the {limit} that it may take: {RAISE}");
            return Err(io::Error::new(io::ErrorKind::OutOfMemory, what));
        }
        Ok(bytes)
    }
}

/// Whether an error says that there is not enough of something for this run, which is no fault of the file at hand: memory that
/// the job or the system does not give, or file descriptors.
pub(crate) fn is_limit(error: &io::Error) -> bool {
    let is_descriptors = |errno| matches!(Errno::from_raw_os_error(errno), Errno::MFILE | Errno::NFILE);
    error.kind() == io::ErrorKind::OutOfMemory || error.raw_os_error().is_some_and(is_descriptors)
}

/// A number of bytes as people read it.
pub(crate) fn shown(bytes: u64) -> String {
    let units = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    match units.into_iter().find(|(unit, _)| bytes >= *unit) {
        Some((unit, name)) => format!("{:.1} {name}", bytes as f64 / unit as f64),
        None => format!("{bytes} bytes"),
    }
}
