//! The result, written by those who reduce it: each range of it where it belongs, all of them at the same time.
//!
//! ```text
//!  drained:  each reducer tells how many bytes the rows of its ranges take          (it measured pairs as they came)
//!  place:    the coordinator adds them up: that is where each range begins
//!  finish:   each reducer writes its ranges there, and sends their first and last pair as its result
//! ```
//!
//! A reducer that dies meanwhile is replaced by one that writes the same bytes to the same places. What gives the file its
//! name when it is whole is not the engine's business.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::data::datum::{Datum, Key};
use crate::data::entry;
use crate::failure::Failure;
use crate::program::map_reduce::MapReduce;

/// Where a result goes that its reducers write themselves ([`Job::write`](crate::Job::write)).
pub enum Target<'t> {
    /// One file, the parts one behind the other.
    File {
        /// Open for writing, not for appending.
        file: &'t File,
        /// Where the result begins, in bytes.
        start: u64,
    },
    /// A file for each part: makes so many files, all empty and open for writing.
    Parts(&'t mut dyn FnMut(usize) -> io::Result<Vec<File>>),
}

/// A part of a result: a range of it, which one reducer has written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Pairs.
    pub records: u64,
    /// Bytes.
    pub bytes: u64,
    /// CRC-32 of the bytes.
    pub checksum: u32,
    /// The key of the first pair and that of the last, as text; none if there are no pairs.
    pub keys: Option<[Vec<u8>; 2]>,
}

/// How a pair stands in a result that reducers write.
pub trait Row<K: Key, V: Datum>: Sync {
    /// How many bytes [`write`](Row::write) will append.
    fn bytes(&self, key: K::Ref<'_>, value: V::Ref<'_>) -> usize;
    /// Appends the row, its end included.
    fn write(&self, key: K::Ref<'_>, value: V::Ref<'_>, to: &mut Vec<u8>);
}

/// What a job is asked to write.
pub(crate) struct Writing<'t, J: MapReduce> {
    pub path: &'t Path,
    pub target: Target<'t>,
    pub row: &'t dyn Row<J::Key, J::Value>,
}

/// What reducers know of it.
pub(crate) struct Written<'t, J: MapReduce> {
    pub path: &'t Path,
    files: Files<'t>,
    pub row: &'t dyn Row<J::Key, J::Value>,
}

enum Files<'t> {
    One { file: &'t File, start: u64 },
    Each(Vec<File>),
}

impl<'t, J: MapReduce> Written<'t, J> {
    /// Opens what is to be written in so many parts.
    pub fn open(writing: Writing<'t, J>, parts: usize) -> io::Result<Written<'t, J>> {
        let Writing { path, target, row } = writing;
        let files = match target {
            Target::File { file, start } => Files::One { file, start },
            Target::Parts(make) => Files::Each(make(parts)?),
        };
        Ok(Written { path, files, row })
    }

    /// Bytes of the rows of some pairs that lie one behind the other.
    pub fn bytes(&self, pairs: &[u8]) -> u64 {
        let pairs = entry::pairs::<J::Key, J::Value>(pairs);
        pairs.map(|(_, pair)| self.row.bytes(pair.key, pair.value) as u64).sum()
    }

    /// Where parts of these sizes begin, each in its file.
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

    /// Begins to write a part at `start`.
    pub fn writer(&self, part: usize, start: u64, buffer_bytes: usize) -> PartWriter<'_> {
        let file = match &self.files {
            Files::One { file, .. } => file,
            Files::Each(files) => &files[part],
        };
        // The last row goes beyond.
        let (buffer, buffer_bytes) = (Vec::with_capacity(buffer_bytes), buffer_bytes / 8 * 7);
        PartWriter { file, part, start, at: start, buffer, buffer_bytes, hasher: crc32fast::Hasher::new() }
    }
}

/// Writes one part.
pub(crate) struct PartWriter<'w> {
    file: &'w File,
    part: usize,
    start: u64,
    /// Where the buffer will be written.
    at: u64,
    buffer: Vec<u8>,
    buffer_bytes: usize,
    hasher: crc32fast::Hasher,
}

impl PartWriter<'_> {
    /// Writes one row; true when what came before was too much to be held back, and was written.
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

    /// Writes what is left; returns how many bytes the part has, and their checksum.
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
