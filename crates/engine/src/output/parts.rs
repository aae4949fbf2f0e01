//! A result that its reducers write, into one file or several: each writes its ranges to their places, all in parallel.
//!
//! ```text
//!  drained:  each reducer reports the size of the rows of each of its ranges, measured as pairs arrived
//!  place:    the coordinator adds up the sizes, which gives the offset of each range
//!  finish:   each reducer writes its ranges there, and sends their first and last pair as its result
//! ```
//!
//! A reducer that dies meanwhile is replaced by one that writes the same bytes to the same places. Naming the complete
//! file is left to the caller.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::data::datum::{Datum, Key};
use crate::data::entry;
use crate::failure::Failure;
use crate::program::ending::Program;

/// Where reducers write a result ([`Job::write`](crate::Job::write)).
#[non_exhaustive]
pub enum Target<'t> {
    /// One file with the parts one after the other.
    File {
        /// Open for writing, not for appending.
        file: &'t File,
        /// The offset at which the result begins.
        start: u64,
    },
    /// A file for each part. The function makes the given number of files, all empty and open for writing.
    Parts(&'t mut dyn FnMut(usize) -> io::Result<Vec<File>>),
}

/// A part of a result: one range of it, written by one reducer.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Part {
    /// The number of pairs.
    pub records: u64,
    /// The number of bytes.
    pub bytes: u64,
    /// CRC-32 of the bytes.
    pub checksum: u32,
    /// The keys of the first and the last pair as text; `None` if there are no pairs.
    pub keys: Option<[Vec<u8>; 2]>,
}

/// The format of a pair in a file of the result.
pub trait Row<K: Key, V: Datum>: Sync {
    /// Appends the row, including its end.
    fn write(&self, key: K::Ref<'_>, value: V::Ref<'_>, to: &mut Vec<u8>);

    /// Returns the number of bytes that [`write`](Row::write) will append. [`Job::write`](crate::Job::write) asks for
    /// every pair, so a row that knows its size without being written saves time.
    fn bytes(&self, key: K::Ref<'_>, value: V::Ref<'_>) -> usize {
        let mut row = Vec::new();
        self.write(key, value, &mut row);
        row.len()
    }
}

/// A request to write the result to a target, in a row format.
pub(crate) struct WriteRequest<'t, J: Program> {
    pub path: &'t Path,
    pub target: Target<'t>,
    pub row: &'t dyn Row<J::OutKey, J::OutValue>,
}

/// Returns the size of the rows of the pairs in `pairs`.
pub(crate) fn row_bytes<J: Program>(row: &dyn Row<J::OutKey, J::OutValue>, pairs: &[u8]) -> u64 {
    let pairs = entry::pairs::<J::Key, J::Value>(pairs).map(|(_, pair)| J::out(pair.key, pair.value));
    pairs.map(|(key, value)| row.bytes(key, value) as u64).sum()
}

/// A target whose files are open, for reducers.
pub(crate) struct OpenTarget<'t> {
    pub path: &'t Path,
    files: Files<'t>,
}

enum Files<'t> {
    One { file: &'t File, start: u64 },
    Each(Vec<File>),
}

impl<'t> OpenTarget<'t> {
    /// Opens a target for `parts` parts.
    pub fn open(path: &'t Path, target: Target<'t>, parts: usize) -> io::Result<OpenTarget<'t>> {
        let files = match target {
            Target::File { file, start } => Files::One { file, start },
            Target::Parts(make) => Files::Each(make(parts)?),
        };
        Ok(OpenTarget { path, files })
    }

    /// Returns the offsets, each in its file, of parts of these sizes.
    pub fn starts(&self, sizes: impl Iterator<Item = u64>) -> Vec<u64> {
        match self.files {
            Files::One { start, .. } => sizes
                .scan(start, |next, bytes| {
                    let start = *next;
                    *next += bytes;
                    Some(start)
                })
                .collect(),
            Files::Each(_) => sizes.map(|_| 0).collect(),
        }
    }

    /// Begins to write a part at offset `start`.
    pub fn writer(&self, part: usize, start: u64, buffer_bytes: usize) -> PartWriter<'_> {
        let file = match &self.files {
            Files::One { file, .. } => file,
            Files::Each(files) => &files[part],
        };
        // The last row may exceed the threshold for a write.
        let (buffer, buffer_bytes) = (Vec::with_capacity(buffer_bytes), buffer_bytes / 8 * 7);
        PartWriter { file, part, start, at: start, buffer, buffer_bytes, hasher: crc32fast::Hasher::new() }
    }
}

/// Writes one part.
pub(crate) struct PartWriter<'w> {
    file: &'w File,
    part: usize,
    start: u64,
    /// The file offset of the buffer.
    at: u64,
    buffer: Vec<u8>,
    buffer_bytes: usize,
    hasher: crc32fast::Hasher,
}

impl PartWriter<'_> {
    /// Writes one row. Returns true if the buffer was full before it and was written to the file.
    #[inline(always)]
    pub fn row<K: Key, V: Datum>(
        &mut self,
        row: &dyn Row<K, V>,
        key: K::Ref<'_>,
        value: V::Ref<'_>,
    ) -> Result<bool, Failure> {
        let is_full = self.buffer.len() >= self.buffer_bytes;
        if is_full {
            self.flush()?;
        }
        row.write(key, value, &mut self.buffer);
        Ok(is_full)
    }

    /// Writes the rest; returns the size and the checksum of the part.
    pub fn finish(mut self) -> Result<(u64, u32), Failure> {
        self.flush()?;
        Ok((self.at - self.start, self.hasher.finalize()))
    }

    #[cold]
    fn flush(&mut self) -> Result<(), Failure> {
        let written = self.file.write_all_at(&self.buffer, self.at);
        written.map_err(|error| Failure::Output { part: self.part, errno: error.raw_os_error().unwrap_or(0) })?;
        self.hasher.update(&self.buffer);
        self.at += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }
}
