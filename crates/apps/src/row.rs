//! Rows of CSV text in memory, one by one.
//!
//! Making a parser takes longer than reading a row, so parsers are reused ([`Parsers`]). Only the wanted first fields
//! of a row are kept: a row of a million fields takes no more memory than a short one.

use std::sync::{Mutex, PoisonError};

use csv_core::{ReadRecordResult, Reader};

/// Parsers for one CSV dialect, as many as are in use at once. They are not cloned: csv-core 0.1 loses part of their
/// state.
pub(crate) struct Parsers {
    delimiter: u8,
    quote: Option<u8>,
    idle: Mutex<Vec<Reader>>,
}

impl Parsers {
    /// Makes parsers for fields separated by `delimiter` and possibly quoted by `quote`.
    pub fn new(delimiter: u8, quote: Option<u8>) -> Parsers {
        Parsers { delimiter, quote, idle: Mutex::default() }
    }

    /// Makes a parser for the beginning of a file.
    pub fn make(&self) -> Reader {
        let mut builder = csv_core::ReaderBuilder::new();
        builder.delimiter(self.delimiter);
        match self.quote {
            Some(quote) => builder.quote(quote),
            None => builder.quoting(false),
        };
        builder.build()
    }

    fn parser(&self) -> Reader {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut parser = idle.unwrap_or_else(|| self.make());
        parser.reset();
        // The text may begin in the middle of a file, where a byte order mark is data.
        parser.read_record(b"\n", &mut [0], &mut [0]);
        parser
    }

    /// Calls `read` with the rows of `text` from `at` on. Of each row, the first `wanted` fields are kept.
    pub fn with_rows<R>(&self, text: &[u8], at: usize, wanted: usize, read: impl FnOnce(&mut RowReader<'_>) -> R) -> R {
        let (reader, bytes) = (self.parser(), Vec::new());
        let mut rows = RowReader { reader, text, at, start: at, wanted, bytes, ends: Vec::new(), count: 0 };
        let result = read(&mut rows);
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(rows.reader);
        result
    }
}

/// A reader of the rows of a text.
pub(crate) struct RowReader<'t> {
    reader: Reader,
    text: &'t [u8],
    /// The number of bytes read.
    at: usize,
    /// The offset of the row.
    start: usize,
    wanted: usize,
    /// The wanted fields one after another, with spare room; the end of each.
    bytes: Vec<u8>,
    ends: Vec<usize>,
    /// The number of fields in the row, wanted or not.
    count: usize,
}

/// Room for fields that are not wanted.
const PASSED_BYTES: usize = 256;
const PASSED_FIELDS: usize = 64;

impl RowReader<'_> {
    /// Reads the next row and returns true if there is one. Empty lines are skipped.
    pub fn read(&mut self) -> bool {
        // The row begins at its first byte, not at the end of the previous line.
        let ends = self.text[self.at..].iter().take_while(|byte| matches!(byte, b'\r' | b'\n'));
        self.at += ends.count();
        self.start = self.at;
        self.count = 0;
        self.ends.resize(self.wanted, 0);
        let (mut filled, mut passed, mut passed_ends) = (0, [0; PASSED_BYTES], [0; PASSED_FIELDS]);
        loop {
            let input = &self.text[self.at..];
            let (result, read) = if self.count < self.wanted {
                let (bytes, ends) = (&mut self.bytes[filled..], &mut self.ends[self.count..]);
                let (result, read, written, fields) = self.reader.read_record(input, bytes, ends);
                filled += written;
                self.count += fields;
                (result, read)
            } else {
                let (result, read, _, fields) = self.reader.read_record(input, &mut passed, &mut passed_ends);
                self.count += fields;
                (result, read)
            };
            self.at += read;
            match result {
                ReadRecordResult::Record => return true,
                ReadRecordResult::End => return false,
                ReadRecordResult::OutputFull if self.count < self.wanted => {
                    // A field is no longer than the text that holds it.
                    let most = self.text.len() - self.start + 1;
                    self.bytes.resize((2 * filled).clamp(64, most.max(64)), 0);
                }
                ReadRecordResult::OutputFull | ReadRecordResult::OutputEndsFull | ReadRecordResult::InputEmpty => {}
            }
        }
    }

    /// The offset of the row in the text.
    pub fn start(&self) -> usize {
        self.start
    }

    /// The offset after the row and its line end.
    pub fn end(&self) -> usize {
        self.at
    }

    /// The number of fields in the row.
    pub fn fields(&self) -> usize {
        self.count
    }

    /// Returns a wanted field by its place, from 0, if the row has it.
    pub fn field(&self, place: usize) -> Option<&[u8]> {
        let end = *self.ends[..self.count.min(self.wanted)].get(place)?;
        let start = if place == 0 { 0 } else { self.ends[place - 1] };
        Some(&self.bytes[start..end])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nearly::{fuzz, mutate};

    #[test]
    fn rows_are_those_of_the_csv_crate_and_begin_at_their_first_byte() {
        let text = "a,\"b \"\"c\"\"\",d\r\n\r\n\n1,2\n\"x\ny\",,\n\u{feff}z\n,".as_bytes().to_vec();
        let parsers = Parsers::new(b',', Some(b'"'));
        fuzz(|random| {
            let mut text = text.clone();
            mutate(random, &mut text);
            if random.bool() {
                text.extend([b'f'; 700]);
                text.extend([b','; 300]);
            }
            // The csv crate drops a byte order mark at the start.
            let expected_of = [b"\n", &text[..]].concat();
            let mut expected =
                csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(&expected_of[..]);
            let wanted = random.usize(1..5);
            parsers.with_rows(&text, 0, wanted, |rows| {
                for row in expected.byte_records() {
                    let row = row.expect("any text is rows");
                    assert!(rows.read());
                    assert_eq!(rows.fields(), row.len(), "{row:?}");
                    (0..wanted + 2).for_each(|at| assert_eq!(rows.field(at), row.get(at).filter(|_| at < wanted)));
                    assert!(!matches!(text[rows.start()], b'\r' | b'\n'), "{}", rows.start());
                }
                assert!(!rows.read());
            });
        });
        assert_eq!(parsers.idle.into_inner().expect("whole").len(), 1, "one parser was made");
    }
}
