//! What the map function sees: a piece of the input, cut at record boundaries.

use std::fmt::Display;

use crate::input::quotes::State;
use crate::input::records::{Records, Scan};
use crate::input::source::Source;

/// A piece of the input, cut at record boundaries, as the map function sees it.
pub struct Split<'a> {
    pub(crate) bytes: &'a mut [u8],
    pub(crate) source: &'a Source,
    /// The number of the source.
    pub(crate) index: usize,
    pub(crate) offset: u64,
    /// Bytes of the file, as it is stored, that have been read for it and for what precedes it.
    pub(crate) reached: u64,
    pub(crate) state: &'a [u8],
    pub(crate) records: Records,
    /// What was said first against it.
    pub(crate) rejected: Option<Rejected>,
}

/// What was said against a split.
pub(crate) struct Rejected {
    /// About which byte of the file.
    pub offset: u64,
    pub why: String,
    /// It is not wrong, but needs more than the job may take.
    pub is_too_large: bool,
}

impl Split<'_> {
    /// Whole records, separators included.
    #[inline(always)]
    pub fn bytes(&self) -> &[u8] {
        self.bytes
    }

    /// The lines, without their ends, which are `\n` or `\r\n`.
    pub fn lines(&self) -> impl Iterator<Item = &[u8]> {
        let bytes = self.bytes.strip_suffix(b"\n").unwrap_or(self.bytes);
        let lines = bytes.split(|byte| *byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line));
        lines.take(if self.bytes.is_empty() { 0 } else { usize::MAX })
    }

    /// The records, each with the place where it begins in [`Split::bytes`], for [`Split::reject`]. Ends of lines and
    /// separators are left out, and so is what is empty between two separators.
    ///
    /// ```
    /// use gristmill::{Bytes, Emit, Input, Isolation, Job, MapReduce, Records, Split};
    ///
    /// /// File names as `find -print0` writes them, each with its length.
    /// struct Names;
    ///
    /// impl MapReduce for Names {
    ///     type Key = Bytes;
    ///     type Value = u64;
    ///
    ///     fn map(&self, split: &mut Split<'_>, out: &mut impl Emit<Bytes, u64>) {
    ///         split.records().for_each(|(_, name)| out.emit(name, name.len() as u64));
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

    /// Where the record ends that begins at `at`, before the end of the split. `scan` has seen the records before it.
    pub(crate) fn record_end(&self, scan: &mut Scan, at: usize) -> usize {
        let rest = &self.bytes[at..];
        let bytes = match self.records {
            Records::Fixed(width) => width.min(rest.len()),
            _ => scan.first_end(rest).unwrap_or(rest.len()),
        };
        at + bytes
    }

    /// The same bytes to write: they are the worker's own copy, so change them in place if that helps.
    #[inline(always)]
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        self.bytes
    }

    /// The file that the bytes come from.
    pub fn source(&self) -> &Source {
        self.source
    }

    /// The number of that file among [`Input::sources`](crate::Input::sources), from 0.
    pub fn source_number(&self) -> usize {
        self.index
    }

    /// Where they begin in the content of the file (which is what it decompresses to, if it is compressed), in bytes.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// The state of this step, as the caller of [`Job::iterate`](crate::Job::iterate) has set it; empty in other jobs.
    pub fn state(&self) -> &[u8] {
        self.state
    }

    /// Ends the job, because the input is wrong and will not be right when it is read again. The error names the file,
    /// the line (of records that are lines) in which byte `at` of this split stands, and says `why`.
    pub fn reject(&mut self, at: usize, why: impl Display) {
        self.refuse(at, why, false);
    }

    /// The same for input that is right and needs more than the job may take, of memory for example. It is never set aside
    /// ([`Job::skip_bad_records`](crate::Job::skip_bad_records)): that is no fault of a record.
    pub fn too_large(&mut self, at: usize, why: impl Display) {
        self.refuse(at, why, true);
    }

    fn refuse(&mut self, at: usize, why: impl Display, is_too_large: bool) {
        self.rejected.get_or_insert_with(|| {
            let mut why = why.to_string();
            if why.is_empty() {
                "the map function rejected it and gave no reason".clone_into(&mut why);
            }
            Rejected { offset: self.offset + at as u64, why, is_too_large }
        });
    }
}
