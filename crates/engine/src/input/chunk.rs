//! The argument of the map function: a piece of the input, and its records one by one.

use std::fmt::Display;

use crate::data::datum::{Datum, Key};
use crate::data::entry;
use crate::input::quotes::State;
use crate::input::records::{Records, Scan};
use crate::input::source::Source;
use crate::program_error::ProgramError;

/// A piece of the input, cut at record boundaries, as the map function sees it.
pub struct Chunk<'a> {
    pub(crate) bytes: &'a mut [u8],
    pub(crate) source: &'a Source,
    /// The number of the source.
    pub(crate) index: usize,
    /// The number of the task.
    pub(crate) task: usize,
    pub(crate) offset: u64,
    /// The number of stored bytes of the file read so far, up to the end of this chunk.
    pub(crate) reached: u64,
    pub(crate) state: &'a [u8],
    pub(crate) records: Records,
    /// Whether the map function was given the bytes to write to.
    pub(crate) is_written: bool,
}

impl Chunk<'_> {
    /// Returns whole records, separators included.
    #[inline(always)]
    pub fn bytes(&self) -> &[u8] {
        self.bytes
    }

    /// Iterates over the lines, without their ends, which are `\n` or `\r\n`.
    pub fn lines(&self) -> impl Iterator<Item = &[u8]> {
        let bytes = self.bytes.strip_suffix(b"\n").unwrap_or(self.bytes);
        let lines = bytes.split(|byte| *byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line));
        lines.take(if self.bytes.is_empty() { 0 } else { usize::MAX })
    }

    /// Iterates over the records, each with its offset in [`Chunk::bytes`], for [`Chunk::reject`]. Line ends and
    /// separators are not included. With [`Records::Separated`], empty records between two separators are skipped.
    ///
    /// ```
    /// use gristmill::{Bytes, Emit, Input, Isolation, Job, MapReduce, ProgramError, Records, Chunk};
    ///
    /// /// File names as `find -print0` writes them, each with its length.
    /// struct Names;
    ///
    /// impl MapReduce for Names {
    ///     type Key = Bytes;
    ///     type Value = u64;
    ///
    ///     fn map(&self, chunk: &mut Chunk<'_>, out: &mut impl Emit<Bytes, u64>) -> Result<(), ProgramError> {
    ///         chunk.records().for_each(|(_, name)| out.emit(name, name.len() as u64));
    ///         Ok(())
    ///     }
    /// }
    ///
    /// let names = Input::bytes("names", b"a\nb\0c\0")?;
    /// let job = Job::new(&Names, names).records(Records::EndedBy(0)).workers(1).isolation(Isolation::Thread);
    /// assert_eq!(job.run()?.0.get(b"a\nb"), Some(3));
    /// # Ok::<(), gristmill::Error>(())
    /// ```
    pub fn records(&self) -> impl Iterator<Item = (usize, &[u8])> {
        let mut scan = Scan::new(self.records, self.offset, State::default());
        let mut at = 0;
        let next = move || {
            if at == self.bytes.len() {
                return None;
            }
            let start = at;
            at = self.record_end(&mut scan, start);
            Some((start, self.records.without_end(&self.bytes[start..at])))
        };
        let skip_empty = matches!(self.records, Records::Separated(_));
        std::iter::from_fn(next).filter(move |(_, record)| !skip_empty || !record.is_empty())
    }

    /// Iterates over the pairs that another job has made ([`Job::run_to_input`](crate::Job::run_to_input)).
    ///
    /// # Errors
    /// The input has no pairs, or pairs of other types.
    pub fn pairs<K: Key, V: Datum>(&self) -> Result<impl Iterator<Item = (K::Ref<'_>, V::Ref<'_>)>, ProgramError> {
        let (asked, found) = (std::any::type_name::<(K, V)>(), self.source.pairs());
        match found {
            Some(found) if found == asked => {}
            Some(found) => {
                return Err(ProgramError::new(format!(
                    "the map function asks for pairs {asked}, but they are {found}"
                )));
            }
            None => return Err(ProgramError::new("the map function asks for pairs, but the input has records")),
        }
        Ok(self.records().map(|(_, record)| {
            let pair = entry::read::<K, V>(record);
            (pair.key, pair.value)
        }))
    }

    /// Returns the end of the record that begins at `at`, at most the end of the chunk. `scan` has seen the records
    /// before it.
    pub(crate) fn record_end(&self, scan: &mut Scan, at: usize) -> usize {
        let rest = &self.bytes[at..];
        let bytes = match self.records {
            Records::Fixed(width) => width.min(rest.len()),
            _ => scan.first_end(rest).unwrap_or(rest.len()),
        };
        at + bytes
    }

    /// Returns the end of the row that begins at `at`. Rows of CSV may end with CR alone; then a record has several.
    pub(crate) fn row_end(&self, scan: &mut Scan, at: usize) -> usize {
        let Records::Csv(syntax) = self.records else { return self.record_end(scan, at) };
        let rest = &self.bytes[at..];
        at + scan.first_row_end(rest, syntax).unwrap_or(rest.len())
    }

    /// Returns the bytes for writing. They are the worker's own copy, so they may be changed in place.
    #[inline(always)]
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        self.is_written = true;
        self.bytes
    }

    /// Returns the file that the bytes come from.
    pub fn source(&self) -> &Source {
        self.source
    }

    /// Returns the index of that file in [`Input::sources`](crate::Input::sources).
    pub fn source_number(&self) -> usize {
        self.index
    }

    /// Returns the index of the task that this piece belongs to. Tasks are numbered in the order of the input, and the
    /// pieces of one task are mapped one after the other.
    pub fn task(&self) -> usize {
        self.task
    }

    /// Returns the number that the input of that file was given ([`Input::tagged`](crate::Input::tagged)); 0 if none
    /// was.
    pub fn tag(&self) -> u32 {
        self.source.tag()
    }

    /// Returns the line, from 1, of byte `at` of this chunk, if records are lines. To count the lines before the chunk,
    /// the file is read again from its start: meant for messages, not for every record.
    pub fn line(&self, at: usize) -> Option<u64> {
        if !self.records.are_lines() || at > self.bytes.len() {
            return None;
        }
        let before = self.source.line(self.offset, self.records)?;
        Some(before + self.records.line_ends(&self.bytes[..at]) as u64)
    }

    /// Returns the offset in bytes of the chunk in the content of its file, after decompression if the file is
    /// compressed.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Returns the state of this step, as set by the caller of [`Job::iterate`](crate::Job::iterate); empty in other
    /// jobs.
    pub fn state(&self) -> &[u8] {
        self.state
    }

    /// Returns the offset of `part` in [`Chunk::bytes`], for [`Chunk::reject`].
    ///
    /// # Panics
    /// When `part` is no slice of these bytes.
    pub fn place_of(&self, part: &[u8]) -> usize {
        let at = part.as_ptr().addr().wrapping_sub(self.bytes.as_ptr().addr());
        assert!(at <= self.bytes.len() && part.len() <= self.bytes.len() - at, "the part is no slice of the chunk");
        at
    }

    /// Makes the error for wrong input at byte `at` of this chunk (its last byte, if `at` lies beyond it). The job ends
    /// with [`Error::Rejected`](crate::Error::Rejected), which names the file and the line of that byte (if records are
    /// lines), and says `why`.
    ///
    /// ```
    /// # use gristmill::{Emit, Input, Isolation, Job, MapReduce, ProgramError, Chunk};
    /// /// Adds up numbers, one in each line.
    /// struct Sum;
    ///
    /// impl MapReduce for Sum {
    ///     type Key = ();
    ///     type Value = i64;
    ///
    ///     fn map(&self, chunk: &mut Chunk<'_>, out: &mut impl Emit<(), i64>) -> Result<(), ProgramError> {
    ///         for line in chunk.lines() {
    ///             match str::from_utf8(line).map(str::parse) {
    ///                 Ok(Ok(number)) => out.emit((), number),
    ///                 _ => return Err(chunk.reject(chunk.place_of(line), "this is no number")),
    ///             }
    ///         }
    ///         Ok(())
    ///     }
    /// }
    ///
    /// // This doctest runs beside others in one process, so its workers are threads.
    /// let job = Job::new(&Sum, Input::bytes("numbers", b"1\n2\nthree\n")?).isolation(Isolation::Thread);
    /// let error = job.run().map(drop).expect_err("three is spelt out").to_string();
    /// assert!(error.contains("numbers") && error.contains("line 3: this is no number"), "{error}");
    /// # Ok::<(), gristmill::Error>(())
    /// ```
    pub fn reject(&self, at: usize, why: impl Display) -> ProgramError {
        let at = at.min(self.bytes.len().saturating_sub(1)) as u64;
        ProgramError::new(why).at(self.offset + at)
    }

    /// Makes an error as [`Chunk::reject`] does, for input that is correct but needs more than the job may take, such
    /// as memory. It is never set aside ([`Job::skip_bad_records`](crate::Job::skip_bad_records)), because the record
    /// is not at fault.
    pub fn too_large(&self, at: usize, why: impl Display) -> ProgramError {
        self.reject(at, why).too_large()
    }
}
