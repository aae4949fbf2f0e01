//! Sort: the engine brings pairs into the order of their keys, so a program has only to say what a key is.

use gristmill::{Bytes, Emit, MapReduce, Records, Row, Split};

/// Bytes of a TeraSort record, of which the first [`TERA_KEY_BYTES`] are the key.
pub const TERA_RECORD_BYTES: usize = 100;
/// Bytes of a TeraSort key.
pub const TERA_KEY_BYTES: usize = 10;

/// Lines, byte by byte. The key is the line, its end left out.
pub struct SortLines;

/// Lines by some of their bytes; lines that agree there by all of them. The key is those bytes, the value the line.
pub struct SortLinesBy {
    /// The first byte of the key, from 0.
    pub from: usize,
    /// The byte behind its last one. Shorter lines have shorter keys.
    pub to: usize,
}

/// TeraSort records: 100 bytes without a separator, by their first ten; equal keys by the rest. The value is the rest.
pub struct SortTera;

/// Where TeraSort records end.
pub const TERA_RECORDS: Records = Records::Fixed(TERA_RECORD_BYTES);

/// What is sorted is written as it was read: a carriage return before the end of a line is a part of it.
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

    fn map(&self, split: &mut Split<'_>, out: &mut impl Emit<Bytes, ()>) {
        for_each_line(split.bytes(), |line| out.emit(line, ()));
    }
}

impl MapReduce for SortLinesBy {
    type Key = Bytes;
    type Value = Bytes;

    fn map(&self, split: &mut Split<'_>, out: &mut impl Emit<Bytes, Bytes>) {
        for_each_line(split.bytes(), |line| {
            let to = self.to.min(line.len());
            out.emit(&line[self.from.min(to)..to], line);
        });
    }
}

impl MapReduce for SortTera {
    type Key = Bytes;
    type Value = Bytes;

    fn map(&self, split: &mut Split<'_>, out: &mut impl Emit<Bytes, Bytes>) {
        // The engine hands out whole records.
        for record in split.bytes().as_chunks::<TERA_RECORD_BYTES>().0 {
            let (key, value) = record.split_at(TERA_KEY_BYTES);
            out.emit(key, value);
        }
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
