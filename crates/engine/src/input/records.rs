//! Boundaries between records.

use std::io::{self, Read};
use std::ops::ControlFlow;

use crate::error::{Error, Result};
use crate::input::quotes::{MARK, State, Syntax};

/// The format of records: where one ends and the next begins. No record is cut between two chunks.
///
/// ```
/// use gristmill::{Chunk, Emit, Input, Isolation, Job, MapReduce, ProgramError, Records};
///
/// /// Adds up numbers of 4 bytes.
/// struct Sum;
///
/// impl MapReduce for Sum {
///     type Key = ();
///     type Value = u64;
///
///     fn combiner(&self) -> Option<impl Fn(u64, u64) -> u64> {
///         Some(|a, b| a + b)
///     }
///
///     fn map(&self, chunk: &mut Chunk<'_>, out: &mut impl Emit<(), u64>) -> Result<(), ProgramError> {
///         for (_, number) in chunk.records() {
///             out.emit((), u32::from_le_bytes(number.try_into()?).into());
///         }
///         Ok(())
///     }
/// }
///
/// let numbers: Vec<u8> = (0..100u32).flat_map(u32::to_le_bytes).collect();
/// // This doctest runs beside others in one process, so its workers are threads.
/// let job = Job::new(&Sum, Input::bytes("numbers", &numbers)?).isolation(Isolation::Thread);
/// assert_eq!(job.records(Records::Fixed(4)).run()?.0.get(()), Some(4950));
/// # Ok::<(), gristmill::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub enum Records {
    /// Lines that end with `\n`; the last may lack it.
    #[default]
    Lines,
    /// Records that each end with this byte, such as NUL; the last may lack it.
    EndedBy(u8),
    /// Stretches of bytes between separators, which are the bytes for which the function returns true.
    Separated(fn(u8) -> bool),
    /// Records of this many bytes.
    Fixed(usize),
    /// Whole files, each of which is one record; an empty file has none.
    WholeFile,
    /// Rows of CSV, as the csv crate reads them. A quoted field may contain line ends. A quote that is still open at
    /// the end of a file is an error. The engine only finds where rows end: a record is a row as it stands in the file,
    /// quotes included, and the map function takes it apart, with the csv crate for instance.
    Csv(Syntax),
    /// Records that each begin with their length in bytes, which is not counted: 4 bytes, little-endian. Only
    /// [`Input::from_records`](crate::Input::from_records) makes them, because other files cannot be cut between them.
    #[doc(hidden)]
    Prefixed,
}

/// The length of the prefix of a record of [`Records::Prefixed`].
pub(crate) const PREFIX_BYTES: usize = 4;

/// Returns the length of the first record of [`Records::Prefixed`] with its prefix, if `bytes` holds all of it.
fn prefixed_end(bytes: &[u8]) -> Option<usize> {
    let prefix = bytes.first_chunk::<PREFIX_BYTES>()?;
    Some(PREFIX_BYTES + u32::from_le_bytes(*prefix) as usize).filter(|end| *end <= bytes.len())
}

impl Records {
    /// Refuses formats that no input can have.
    pub(crate) fn check(self) -> Result<()> {
        match self {
            Records::Fixed(0) => {
                Err(Error::Setting("records of 0 bytes were asked for; a record has at least one byte".into()))
            }
            Records::Prefixed => {
                Err(Error::Setting("only Input::from_records makes records with their length in front".into()))
            }
            _ => Ok(()),
        }
    }

    /// Returns whether records are lines, at least roughly, so that a message can name the line.
    pub(crate) fn are_lines(self) -> bool {
        matches!(self, Records::Lines | Records::Csv(_))
    }

    /// Returns the number of line ends in `text`, for messages that name a line: LF, also behind CR. In CSV a CR alone
    /// ends a line, too.
    ///
    /// ```
    /// use gristmill::files::Syntax;
    /// use gristmill::Records;
    ///
    /// assert_eq!(Records::Lines.line_ends(b"a\rb\r\nc\n"), 2);
    /// assert_eq!(Records::Csv(Syntax::default()).line_ends(b"a\rb\r\nc\n"), 3);
    /// ```
    pub fn line_ends(self, text: &[u8]) -> usize {
        match self {
            Records::Csv(_) => {
                let ends = memchr::memchr2_iter(b'\r', b'\n', text);
                ends.filter(|at| text[*at] == b'\r' || *at == 0 || text[*at - 1] != b'\r').count()
            }
            _ => memchr::memchr_iter(b'\n', text).count(),
        }
    }

    /// Returns a record without its end mark, or without its length in front.
    pub(crate) fn without_end(self, record: &[u8]) -> &[u8] {
        match (self, record) {
            (Records::Lines | Records::Csv(_), [line @ .., b'\r', b'\n'] | [line @ .., b'\r' | b'\n']) => line,
            (Records::EndedBy(end), [record @ .., last]) if *last == end => record,
            (Records::Prefixed, record) => record.get(PREFIX_BYTES..).unwrap_or_default(),
            (Records::Separated(separates), [record @ .., last]) if separates(*last) => record,
            _ => record,
        }
    }
}

/// The number of lines in content that is given piece by piece.
#[derive(Clone, Copy)]
pub(crate) struct LineCount {
    records: Records,
    is_behind_return: bool,
    /// The line of the next byte, from 1.
    pub line: u64,
}

impl LineCount {
    /// Begins with the first line.
    pub fn new(records: Records) -> LineCount {
        LineCount { records, is_behind_return: false, line: 1 }
    }

    /// Counts the lines that end in `piece`.
    pub fn add(&mut self, piece: &[u8]) {
        let Some(last) = piece.last() else { return };
        // The line end was counted at its first byte.
        let is_counted = self.is_behind_return && piece[0] == b'\n' && matches!(self.records, Records::Csv(_));
        self.line += (self.records.line_ends(piece) - usize::from(is_counted)) as u64;
        self.is_behind_return = *last == b'\r';
    }
}

impl Syntax {
    /// Returns the line, from 1, of the quote that opens a field of `content` and that nothing closes before its end.
    /// A byte order mark at the start belongs to no field.
    ///
    /// ```
    /// use gristmill::files::Syntax;
    ///
    /// assert_eq!(Syntax::default().open_quote_line(&b"a,b\n1,\"2\n3,4\n"[..])?, Some(2));
    /// assert_eq!(Syntax::default().open_quote_line(&b"a,b\n1,\"2\"\n3,4\n"[..])?, None);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// `content` cannot be read.
    pub fn open_quote_line(self, mut content: impl Read) -> io::Result<Option<u64>> {
        let (mut state, mut lines, mut opened) = (State::default(), LineCount::new(Records::Csv(self)), None);
        let mut piece = Vec::with_capacity(PIECE_BYTES);
        let mut is_first = true;
        loop {
            piece.clear();
            content.by_ref().take(PIECE_BYTES as u64).read_to_end(&mut piece)?;
            if piece.is_empty() {
                return Ok(opened.filter(|_| state == State::Quoted));
            }
            let mark = if std::mem::take(&mut is_first) && piece.starts_with(MARK) { MARK.len() } else { 0 };
            let (text, before) = (&piece[mark..], state);
            state.run(text, self, |_, _| ControlFlow::Continue(()));
            if matches!(state, State::Quoted | State::Quote)
                && let (Some(at), _) = before.last_quote(text, self)
            {
                let mut above = lines;
                above.add(&text[..at]);
                opened = Some(above.line);
            }
            lines.add(text);
        }
    }
}

/// The number of bytes that are read at a time.
const PIECE_BYTES: usize = if cfg!(test) { 7 } else { 256 << 10 };

/// Finds the ends of records in content that it is given piece by piece.
#[derive(Clone, Copy)]
pub(crate) struct Scan {
    records: Records,
    /// For CSV, the state after the bytes so far.
    state: State,
    /// Whether the next byte is the first of the file.
    begins: bool,
}

impl Scan {
    /// Starts at byte `at` of the content, where the state of CSV is `state`.
    pub fn new(records: Records, at: u64, state: State) -> Scan {
        Scan { records, state, begins: at == 0 }
    }

    /// Finds the end of the record to which the first of `bytes` belongs. The bytes after it do not count as seen.
    pub fn first_end(&mut self, bytes: &[u8]) -> Option<usize> {
        match self.records {
            Records::Lines => memchr::memchr(b'\n', bytes).map(|at| at + 1),
            Records::EndedBy(end) => memchr::memchr(end, bytes).map(|at| at + 1),
            Records::Separated(separates) => bytes.iter().position(|byte| separates(*byte)).map(|at| at + 1),
            Records::Fixed(_) | Records::WholeFile => None,
            Records::Prefixed => prefixed_end(bytes),
            Records::Csv(syntax) => {
                let mark = self.mark(bytes);
                self.state.first_end(&bytes[mark..], syntax).map(|end| mark + end)
            }
        }
    }

    /// Finds the end of the row of CSV to which the first of `bytes` belongs: as [`Scan::first_end`], but a CR outside
    /// quotes ends a row as well, if a byte follows that is no line end.
    pub fn first_row_end(&mut self, bytes: &[u8], syntax: Syntax) -> Option<usize> {
        let mark = self.mark(bytes);
        let (rest, mut end) = (&bytes[mark..], None);
        let ends = |behind: &usize| {
            rest[behind - 1] == b'\n' || rest.get(*behind).is_some_and(|byte| !matches!(byte, b'\r' | b'\n'))
        };
        self.state.run(rest, syntax, |at, stretch| {
            end = memchr::memchr2_iter(b'\r', b'\n', stretch).map(|found| at + found + 1).find(ends);
            if end.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        if end.is_some() {
            self.state = State::Record;
        }
        end.map(|end| mark + end)
    }

    /// Finds the last record end in `buffer`, which begins with a record. The bytes before `searched` have been seen,
    /// and no record ends in them.
    pub fn last_end(&mut self, buffer: &[u8], searched: usize) -> Option<usize> {
        let bytes = &buffer[searched..];
        let end = match self.records {
            Records::Lines => memchr::memrchr(b'\n', bytes)? + 1,
            Records::EndedBy(end) => memchr::memrchr(end, bytes)? + 1,
            Records::Separated(separates) => bytes.iter().rposition(|byte| separates(*byte))? + 1,
            Records::Fixed(width) => return Some(buffer.len() / width * width).filter(|end| *end > 0),
            Records::WholeFile => return None,
            Records::Prefixed => {
                let mut end = 0;
                while let Some(record) = prefixed_end(&buffer[end..]) {
                    end += record;
                }
                return Some(end).filter(|end| *end > 0);
            }
            Records::Csv(syntax) => {
                let mark = self.mark(bytes);
                mark + self.state.last_end(&bytes[mark..], syntax)?
            }
        };
        Some(searched + end)
    }

    /// Returns the offset of the quote that is open at the end of `buffer`, which begins with a record, if one is. The
    /// bytes before `searched` have been seen.
    #[inline]
    pub fn open_quote(mut self, buffer: &[u8], searched: usize, begins: Scan) -> Option<usize> {
        let Records::Csv(syntax) = self.records else { return None };
        let mark = self.mark(&buffer[searched..]);
        self.state.run(&buffer[searched + mark..], syntax, |_, _| ControlFlow::Continue(()));
        if self.state == State::Quoted { begins.opening_quote(buffer, syntax) } else { None }
    }

    #[cold]
    fn opening_quote(mut self, buffer: &[u8], syntax: Syntax) -> Option<usize> {
        let mark = self.mark(buffer);
        self.state.open_quote(&buffer[mark..], syntax).map(|at| mark + at)
    }

    /// Returns the length of the byte order mark, if the file begins with one. After it the first field of a record
    /// begins.
    fn mark(&mut self, bytes: &[u8]) -> usize {
        let begins = std::mem::replace(&mut self.begins, false);
        if begins && bytes.starts_with(MARK) {
            self.state = State::Field;
            return MARK.len();
        }
        0
    }
}
