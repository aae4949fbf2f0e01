//! Sort: the engine sorts pairs by key, so a program only has to define the key.

use gristmill::sinks::Row;
use gristmill::{Bytes, Chunk, Emit, MapReduce, ProgramError, Records};

/// The size of a TeraSort record. Its first [`TERA_KEY_BYTES`] bytes are the key.
pub const TERA_RECORD_BYTES: usize = 100;
/// The size of a TeraSort key.
pub const TERA_KEY_BYTES: usize = 10;

/// Sorts lines byte by byte. The key is the line without its end.
pub struct SortLines;

/// Sorts lines by a range of their bytes, and lines with equal ranges by all bytes. The key is the range, the value
/// the line.
pub struct SortLinesBy {
    /// The first byte of the key, from 0.
    pub from: usize,
    /// The end of the key, exclusive. Shorter lines have shorter keys.
    pub to: usize,
}

/// Sorts TeraSort records: 100 bytes without a separator, by their first ten, then by the rest. The value is the
/// rest.
pub struct SortTera;

/// The record format of TeraSort.
pub const TERA_RECORDS: Records = Records::Fixed(TERA_RECORD_BYTES);

/// Lines are written as they were read: a carriage return before the line end belongs to the line.
fn for_each_line(text: &[u8], mut visit: impl FnMut(&[u8])) {
    let mut start = 0;
    for end in memchr::memchr_iter(b'\n', text) {
        visit(&text[start..end]);
        start = end + 1;
    }
    if start < text.len() {
        visit(&text[start..]);
    }
}

impl MapReduce for SortLines {
    type Key = Bytes;
    type Value = ();

    fn map(&self, chunk: &mut Chunk<'_>, out: &mut impl Emit<Bytes, ()>) -> Result<(), ProgramError> {
        for_each_line(chunk.bytes(), |line| out.emit(line, ()));
        Ok(())
    }
}

impl MapReduce for SortLinesBy {
    type Key = Bytes;
    type Value = Bytes;

    fn map(&self, chunk: &mut Chunk<'_>, out: &mut impl Emit<Bytes, Bytes>) -> Result<(), ProgramError> {
        for_each_line(chunk.bytes(), |line| {
            let to = self.to.min(line.len());
            out.emit(&line[self.from.min(to)..to], line);
        });
        Ok(())
    }
}

impl MapReduce for SortTera {
    type Key = Bytes;
    type Value = Bytes;

    fn map(&self, chunk: &mut Chunk<'_>, out: &mut impl Emit<Bytes, Bytes>) -> Result<(), ProgramError> {
        // The engine splits only between records.
        for record in chunk.bytes().as_chunks::<TERA_RECORD_BYTES>().0 {
            let (key, value) = record.split_at(TERA_KEY_BYTES);
            out.emit(key, value);
        }
        Ok(())
    }
}

impl Row<Bytes, ()> for SortLines {
    fn bytes(&self, line: &[u8], (): ()) -> usize {
        line.len() + 1
    }

    fn write(&self, line: &[u8], (): (), to: &mut Vec<u8>) {
        to.extend_from_slice(line);
        to.push(b'\n');
    }
}

impl Row<Bytes, Bytes> for SortLinesBy {
    fn bytes(&self, _: &[u8], line: &[u8]) -> usize {
        line.len() + 1
    }

    fn write(&self, _: &[u8], line: &[u8], to: &mut Vec<u8>) {
        to.extend_from_slice(line);
        to.push(b'\n');
    }
}

impl Row<Bytes, Bytes> for SortTera {
    fn bytes(&self, key: &[u8], rest: &[u8]) -> usize {
        key.len() + rest.len()
    }

    fn write(&self, key: &[u8], rest: &[u8], to: &mut Vec<u8>) {
        to.extend_from_slice(key);
        to.extend_from_slice(rest);
    }
}
