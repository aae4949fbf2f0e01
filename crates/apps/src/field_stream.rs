//! Fields of CSV text from a stream, one by one: a row may be of any length. The rules are those of
//! [`row`](crate::row).

use std::io::{self, BufRead, BufReader, Read};

use crate::file_format::BYTE_ORDER_MARK;
use crate::row::{OPEN_QUOTE, TextBehindQuote};

/// The number of bytes read at a time.
const READ_BYTES: usize = if cfg!(test) { 7 } else { 256 << 10 };

/// A reader of fields.
pub(crate) struct FieldStream<R> {
    text: BufReader<R>,
    delimiter: u8,
    quote: Option<u8>,
    place: State,
    /// The line of the next byte, that of the current row, and that of the last quote that opened a field, from 1.
    line: u64,
    row_line: u64,
    quote_line: u64,
    /// The last byte was CR: the LF of a CRLF ends no other line.
    is_behind_return: bool,
    /// The numbers of fields and bytes of the row so far.
    fields: usize,
    bytes: u64,
}

/// The place of the next byte.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// The start of a row, or an empty line.
    Row,
    /// The start of another field.
    Field,
    /// Inside a field without quotes.
    Plain,
    /// Inside a quoted field.
    Quoted,
    /// Behind a quote in a quoted field: the first of two, or the closing one.
    Quote,
}

/// The content of a field, up to a length.
pub(crate) struct Field {
    content: Vec<u8>,
    bytes_max: usize,
    is_cut: bool,
}

/// The end of the text, or of a field.
pub(crate) enum Found {
    /// Nothing is left.
    End,
    /// A field, and whether it is the last of its row.
    Field { ends_row: bool },
}

/// The reason why a field cannot be read.
pub(crate) enum Fault {
    Read(io::Error),
    /// The line that is at fault, and why.
    Text(u64, String),
}

impl Field {
    /// Makes room for `bytes_max` bytes.
    pub fn new(bytes_max: usize) -> Field {
        Field { content: Vec::with_capacity(bytes_max), bytes_max, is_cut: false }
    }

    /// Returns the content of the field; `None` if it is too long.
    pub fn content(&self) -> Option<&[u8]> {
        (!self.is_cut).then_some(&self.content)
    }

    /// Returns true if the field has no byte.
    pub fn is_empty(&self) -> bool {
        self.content.is_empty()
    }

    fn push(&mut self, byte: u8) {
        if self.content.len() < self.bytes_max {
            self.content.push(byte);
        } else {
            self.is_cut = true;
        }
    }
}

impl<R: Read> FieldStream<io::Chain<io::Cursor<Vec<u8>>, R>> {
    /// Makes a reader of `from`. A byte order mark at its start belongs to no field.
    pub fn new(mut from: R, delimiter: u8, quote: Option<u8>) -> io::Result<Self> {
        let mut start = Vec::new();
        from.by_ref().take(BYTE_ORDER_MARK.len() as u64).read_to_end(&mut start)?;
        if start == BYTE_ORDER_MARK {
            start.clear();
        }
        let text = BufReader::with_capacity(READ_BYTES, io::Cursor::new(start).chain(from));
        let (line, row_line, quote_line, fields, bytes) = (1, 1, 1, 0, 0);
        let (place, is_behind_return) = (State::Row, false);
        Ok(FieldStream { text, delimiter, quote, place, line, row_line, quote_line, is_behind_return, fields, bytes })
    }
}

impl<R: Read> FieldStream<R> {
    /// Returns the line, from 1, in which the row of the last field begins.
    pub fn row_line(&self) -> u64 {
        self.row_line
    }

    /// Reads a field.
    ///
    /// # Errors
    /// The text cannot be read, has text behind a closing quote, or ends within a quoted field.
    pub fn read(&mut self, field: &mut Field) -> Result<Found, Fault> {
        (field.is_cut, self.fields) = (false, self.fields + 1);
        field.content.clear();
        loop {
            let text = match self.text.fill_buf() {
                Ok([]) => return self.end(),
                Ok(text) => text,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(Fault::Read(error)),
            };
            let mut taken = 0;
            let (mut found, mut place) = (None, self.place);
            for byte in text.iter().copied() {
                let (is_quote, is_line_end) = (self.quote == Some(byte), matches!(byte, b'\r' | b'\n'));
                taken += 1;
                if place == State::Row && !is_line_end {
                    (self.row_line, self.bytes, self.fields) = (self.line, 0, 1);
                }
                self.bytes += 1;
                self.line += u64::from(byte == b'\r' || byte == b'\n' && !self.is_behind_return);
                self.is_behind_return = byte == b'\r';
                match place {
                    State::Quoted if is_quote => place = State::Quote,
                    State::Quoted => field.push(byte),
                    State::Quote if is_quote => {
                        field.push(byte);
                        place = State::Quoted;
                    }
                    State::Row | State::Field if is_quote => (place, self.quote_line) = (State::Quoted, self.line),
                    State::Row if is_line_end => {}
                    _ if is_line_end || byte == self.delimiter => {
                        place = if is_line_end { State::Row } else { State::Field };
                        found = Some(Found::Field { ends_row: is_line_end });
                        break;
                    }
                    State::Quote => {
                        let lines_below = self.line - self.row_line;
                        let why = TextBehindQuote { field: self.fields, byte: self.bytes, lines_below };
                        return Err(Fault::Text(self.row_line, why.to_string()));
                    }
                    _ => {
                        field.push(byte);
                        place = State::Plain;
                    }
                }
            }
            self.place = place;
            self.text.consume(taken);
            if let Some(found) = found {
                return Ok(found);
            }
        }
    }

    /// Ends the last field.
    fn end(&mut self) -> Result<Found, Fault> {
        match std::mem::replace(&mut self.place, State::Row) {
            State::Row => Ok(Found::End),
            State::Quoted => Err(Fault::Text(self.quote_line, OPEN_QUOTE.to_owned())),
            _ => Ok(Found::Field { ends_row: true }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nearly::{bytes, fuzz};
    use crate::row::RowReader;

    /// Reads all rows, each with its line, and the fault at their end.
    fn streamed(text: &[u8], quote: Option<u8>) -> (Vec<(u64, Vec<Vec<u8>>)>, Option<(u64, String)>) {
        let mut stream = FieldStream::new(text, b',', quote).expect("in memory");
        let (mut rows, mut row, mut field) = (Vec::new(), Vec::new(), Field::new(1000));
        loop {
            match stream.read(&mut field) {
                Ok(Found::End) => return (rows, None),
                Ok(Found::Field { ends_row }) => {
                    row.push(field.content().expect("it is short").to_vec());
                    if ends_row {
                        rows.push((stream.row_line(), std::mem::take(&mut row)));
                    }
                }
                Err(Fault::Text(line, why)) => return (rows, Some((line, why))),
                Err(Fault::Read(error)) => panic!("{error}"),
            }
        }
    }

    #[test]
    fn streamed_rows_are_those_in_memory() {
        fuzz(|random| {
            let text = bytes(random, b"ab\"\"\n\r,,", 60);
            let quote = Some(b'"').filter(|_| random.u8(..4) > 0);
            let line = |at: usize| {
                let before = String::from_utf8_lossy(&text[..at]).replace("\r\n", "\n").replace('\r', "\n");
                1 + before.bytes().filter(|byte| *byte == b'\n').count() as u64
            };
            let mut reader = RowReader::new(&text, 0, b',', quote, usize::MAX);
            let mut expected = Vec::new();
            let fault = loop {
                match reader.read() {
                    Ok(false) => break None,
                    Ok(true) if reader.open_quote().is_some() => {
                        break reader.open_quote().map(|at| (line(at), OPEN_QUOTE.to_owned()));
                    }
                    Ok(true) => {
                        let fields = (0..reader.fields()).filter_map(|at| reader.field(at)).map(<[u8]>::to_vec);
                        expected.push((line(reader.start()), fields.collect()));
                    }
                    Err(behind) => break Some((line(reader.start()), behind.to_string())),
                }
            };
            assert_eq!(streamed(&text, quote), (expected, fault), "{:?}", String::from_utf8_lossy(&text));
        });
    }

    #[test]
    fn a_long_field_is_cut_and_a_mark_at_the_start_belongs_to_no_field() {
        let mut stream = FieldStream::new(&b"\xef\xbb\xbf\"a\",bcdef"[..], b',', Some(b'"')).expect("in memory");
        let mut field = Field::new(4);
        assert!(matches!(stream.read(&mut field), Ok(Found::Field { ends_row: false })));
        assert_eq!(field.content(), Some(&b"a"[..]));
        assert!(matches!(stream.read(&mut field), Ok(Found::Field { ends_row: true })));
        assert!(field.content().is_none() && !field.is_empty());
        assert!(matches!(stream.read(&mut field), Ok(Found::End)));
    }
}
