//! Inputs that the program makes itself: bytes in memory, and records from an iterator.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

use gristmill_os::file_size::LimitIsAnError;
use gristmill_os::room::{TemporaryFolder, temporary_folder};
use rustix::fs::{MemfdFlags, memfd_create};

use crate::error::{Asked, Error, Result, little_room};
use crate::input::look::in_proc;
use crate::input::paths::{Input, Opened};
use crate::input::source::Source;

/// A file of records can be cut into tasks at least this far apart.
const CUT_BYTES: u64 = 64 << 10;
/// The number of bytes written between two checks of the free room.
const UNCHECKED_BYTES: u64 = 8 << 20;

impl Input {
    /// Makes an input of bytes in memory. Many jobs may read it.
    ///
    /// # Errors
    /// [`Error::System`] if the system has no memory for them.
    pub fn bytes(name: impl Into<PathBuf>, bytes: &[u8]) -> Result<Input> {
        const WHAT: &str = "keeping the input of a job in memory";
        let _guard = LimitIsAnError::new();
        let mut file: File = memfd_create(c"gristmill input", MemfdFlags::CLOEXEC).asked(WHAT)?.into();
        file.write_all(bytes).asked(WHAT)?;
        let source = Source::plain(name.into(), in_proc(&file), bytes.len() as u64);
        Ok(Input::made(source, file))
    }

    /// Makes an input of records from a slice, an iterator, or the receiving end of a channel. A record may contain any
    /// bytes, and may be empty; the map function sees it with [`Chunk::records`](crate::Chunk::records), whatever
    /// [`Job::records`](crate::Job::records) says.
    ///
    /// The records are written to an unnamed file in the folder for temporary files (`TMPDIR`), because a task that is
    /// done again must read them again. This call returns when the iterator has ended; it takes little memory,
    /// however long the iterator is. Many jobs may read the input.
    ///
    /// ```
    /// use gristmill::{Emit, Input, Isolation, Job, MapReduce, ProgramError, Chunk};
    ///
    /// /// The number of records of each length.
    /// struct Lengths;
    ///
    /// impl MapReduce for Lengths {
    ///     type Key = u64;
    ///     type Value = u64;
    ///
    ///     fn combiner(&self) -> Option<impl Fn(u64, u64) -> u64> {
    ///         Some(|a, b| a + b)
    ///     }
    ///
    ///     fn map(&self, chunk: &mut Chunk<'_>, out: &mut impl Emit<u64, u64>) -> Result<(), ProgramError> {
    ///         chunk.records().for_each(|(_, record)| out.emit(record.len() as u64, 1));
    ///         Ok(())
    ///     }
    /// }
    ///
    /// let input = Input::from_records("words", (0..1000).map(|n| "word\n".repeat(n % 7)))?;
    /// // This doctest runs beside others in one process, so its workers are threads.
    /// let (lengths, _) = Job::new(&Lengths, input).isolation(Isolation::Thread).run()?;
    /// assert_eq!((lengths.len(), lengths.get(0), lengths.get(30)), (7, Some(143), Some(142)));
    /// # Ok::<(), gristmill::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Spool`] if the file cannot be written, or would leave less than a tenth of what is free on its disk;
    /// [`Error::TooLarge`] for a record of 4 GiB or more.
    pub fn from_records(
        name: impl Into<PathBuf>,
        records: impl IntoIterator<Item = impl AsRef<[u8]>>,
    ) -> Result<Input> {
        let _guard = LimitIsAnError::new();
        let (name, folder) = (name.into(), temporary_folder());
        let place = TemporaryFolder::new(&folder, None);
        let failed =
            |bytes, source| Error::Spool { path: name.clone(), folder: folder.clone(), copied_bytes: bytes, source };
        let mut file = BufWriter::new(tempfile::tempfile_in(&folder).map_err(|source| failed(0, source))?);
        let (mut cuts, mut bytes, mut checked_at) = (Vec::new(), 0, 0);
        for record in records {
            let record = record.as_ref();
            let length = u32::try_from(record.len()).map_err(|_| Error::TooLarge {
                what: format!("a record of {} bytes: a record has less than 4 GiB", record.len()),
            })?;
            if bytes >= checked_at {
                checked_at = bytes + UNCHECKED_BYTES;
                if !place.has_room(file.get_ref()) {
                    return Err(failed(bytes, little_room(place.kept_free_bytes)));
                }
            }
            let written = file.write_all(&length.to_le_bytes()).and_then(|()| file.write_all(record));
            written.map_err(|source| failed(bytes, source))?;
            bytes += (size_of_val(&length) + record.len()) as u64;
            if bytes - cuts.last().unwrap_or(&0) >= CUT_BYTES {
                cuts.push(bytes);
            }
        }
        let file = file.into_inner().map_err(io::IntoInnerError::into_error).map_err(|source| failed(bytes, source))?;
        if cuts.last() != Some(&bytes) {
            cuts.push(bytes);
        }
        let source = Source::prefixed(name, in_proc(&file), &cuts);
        Ok(Input::made(source, file))
    }

    fn made(source: Source, file: File) -> Input {
        Input::of(Opened { sources: [source].into(), kept: vec![file.into()], bad: Vec::new() })
    }
}
