//! Where one record ends and the next begins.

use crate::input::quotes::{MARK, State, Syntax};

/// Where one record ends and the next begins.
#[derive(Clone, Copy, Debug)]
pub enum Records {
    /// Lines that end with `\n`; the last may lack it.
    Lines,
    /// Records that each end with this byte, such as NUL; the last may lack it.
    EndedBy(u8),
    /// Runs of bytes between separators, for which the function returns true.
    Separated(fn(u8) -> bool),
    /// Records of this many bytes.
    Fixed(usize),
    /// Each file is one record; an empty file is none.
    WholeFile,
    /// Rows of CSV. A quoted field may hold line ends: rows are those of the csv crate.
    Csv(Syntax),
}

impl Records {
    /// True when records are lines, or nearly, so that a message names the line.
    pub(crate) fn are_lines(self) -> bool {
        matches!(self, Records::Lines | Records::Csv(_))
    }

    /// A record without what ends it.
    pub(crate) fn without_end(self, record: &[u8]) -> &[u8] {
        match (self, record) {
            (Records::Lines | Records::Csv(_), [line @ .., b'\r', b'\n'] | [line @ .., b'\r' | b'\n']) => line,
            (Records::EndedBy(end), [record @ .., last]) if *last == end => record,
            (Records::Separated(separates), [record @ .., last]) if separates(*last) => record,
            _ => record,
        }
    }
}

/// Finds the ends of records in a stretch of content, which it is shown piece by piece.
#[derive(Clone, Copy)]
pub(crate) struct Scan {
    records: Records,
    /// Of CSV: what the bytes so far mean for the next.
    state: State,
    /// The next byte is the first of the file.
    begins: bool,
}

impl Scan {
    /// From byte `at` of the content on, where CSV has come to `state`.
    pub fn new(records: Records, at: u64, state: State) -> Scan {
        Scan { records, state, begins: at == 0 }
    }

    /// Looks for the end of the record to which the first of `bytes` belongs. What is behind it has not been shown.
    pub fn first_end(&mut self, bytes: &[u8]) -> Option<usize> {
        match self.records {
            Records::Lines => memchr::memchr(b'\n', bytes).map(|at| at + 1),
            Records::EndedBy(end) => memchr::memchr(end, bytes).map(|at| at + 1),
            Records::Separated(separates) => bytes.iter().position(|byte| separates(*byte)).map(|at| at + 1),
            Records::Fixed(_) | Records::WholeFile => None,
            Records::Csv(syntax) => {
                let mark = self.mark(bytes);
                self.state.first_end(&bytes[mark..], syntax).map(|end| mark + end)
            }
        }
    }

    /// Looks for the last end of a record in `buffer`, which begins with a record; the bytes before `searched` have been
    /// shown, and no record ends in them.
    pub fn last_end(&mut self, buffer: &[u8], searched: usize) -> Option<usize> {
        let bytes = &buffer[searched..];
        let end = match self.records {
            Records::Lines => memchr::memrchr(b'\n', bytes)? + 1,
            Records::EndedBy(end) => memchr::memrchr(end, bytes)? + 1,
            Records::Separated(separates) => bytes.iter().rposition(|byte| separates(*byte))? + 1,
            Records::Fixed(width) => return Some(buffer.len() / width * width).filter(|end| *end > 0),
            Records::WholeFile => return None,
            Records::Csv(syntax) => {
                let mark = self.mark(bytes);
                mark + self.state.last_end(&bytes[mark..], syntax)?
            }
        };
        Some(searched + end)
    }

    /// Bytes of the byte order mark that the file begins with. Behind it the first field begins, of a record that has begun.
    fn mark(&mut self, bytes: &[u8]) -> usize {
        let begins = std::mem::replace(&mut self.begins, false);
        if begins && bytes.starts_with(MARK) {
            self.state = State::Field;
            return MARK.len();
        }
        0
    }
}
