//! Rows of CSV text in memory, one by one, and the rules for them.
//!
//! A field that begins with the quote character is quoted: it may hold delimiters and line ends, and a quote in it is
//! written twice. Text behind its closing quote is an error, because where a quote is missing, the next one seems to
//! close a field. Elsewhere a quote is text. A row ends with LF, CR or both, and empty lines are skipped. All rows of a
//! file have as many fields as its first line ([`Width`]). Python's `csv` with `strict=True` has these rules, too.

use std::borrow::Cow;
use std::fmt;

use gristmill::Records;
use gristmill::files::Syntax;

/// The number of fields in each row of a file: that of its first line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Width(pub usize);

impl Width {
    /// Checks the number of fields in a row. One empty field more is allowed at the end, because some programs write a
    /// delimiter after every field.
    #[inline(always)]
    pub fn check(self, fields: usize, last_is_empty: bool) -> Result<(), String> {
        if fields == self.0 || fields == self.0 + 1 && last_is_empty { Ok(()) } else { Err(self.why(fields)) }
    }

    #[cold]
    #[inline(never)]
    fn why(self, fields: usize) -> String {
        let Width(first) = self;
        let s = if fields == 1 { "" } else { "s" };
        let hint = if fields > first { ": a field that holds the delimiter must be quoted" } else { "" };
        format!("this row has {fields} field{s}, and the first line has {first}{hint}")
    }
}

/// The fault of a quoted field that nothing closes.
pub(crate) const OPEN_QUOTE: &str = "a quote opens a field here and is not closed before the end of the file. Close it; if quotes are text in this file, set \
     Dialect::quote to none";

/// Returns the number of line ends in a text of CSV.
pub(crate) fn line_ends(text: &[u8]) -> usize {
    Records::Csv(Syntax::default()).line_ends(text)
}

/// Text behind the closing quote of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TextBehindQuote {
    /// The number of the field in its row, from 1.
    pub field: usize,
    /// The number of bytes of the row up to the first byte of the text, from 1.
    pub byte: u64,
    /// The number of lines from the start of the row to the text.
    pub lines_below: u64,
}

impl fmt::Display for TextBehindQuote {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TextBehindQuote { field, byte, lines_below } = self;
        let below = match lines_below {
            0 => String::new(),
            1 => ", 1 line below its start".to_owned(),
            lines => format!(", {lines} lines below its start"),
        };
        write!(
            to,
            "text follows the closing quote of field {field} (byte {byte} of the row{below}): a quote inside a quoted field is \
             written twice"
        )
    }
}

/// A reader of the rows of a text.
pub(crate) struct RowReader<'t> {
    text: &'t [u8],
    delimiter: u8,
    quote: Option<u8>,
    /// The number of first fields that are kept: a row of a million fields takes no more memory than a short one.
    wanted: usize,
    /// The number of bytes read.
    at: usize,
    /// The offset of the row.
    start: usize,
    /// The wanted fields of the row.
    kept: Vec<Cow<'t, [u8]>>,
    /// The number of fields in the row, wanted or not.
    count: usize,
    last_is_empty: bool,
    /// The offset of the quote that is open at the end of the text.
    open_quote: Option<usize>,
}

impl<'t> RowReader<'t> {
    /// Makes a reader of `text` from `at` on. Of each row, it keeps the first `wanted` fields.
    pub fn new(text: &'t [u8], at: usize, delimiter: u8, quote: Option<u8>, wanted: usize) -> RowReader<'t> {
        let (kept, count, last_is_empty, open_quote) = (Vec::new(), 0, false, None);
        RowReader { text, delimiter, quote, wanted, at, start: at, kept, count, last_is_empty, open_quote }
    }

    /// Reads the next row and returns true if there is one. Empty lines are skipped.
    ///
    /// # Errors
    /// Text behind a closing quote. The rest of the text is not read then.
    pub fn read(&mut self) -> Result<bool, TextBehindQuote> {
        self.at += self.text[self.at..].iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
        self.start = self.at;
        self.count = 0;
        self.kept.clear();
        if self.at == self.text.len() {
            return Ok(false);
        }
        loop {
            self.read_field()?;
            let end = &self.text[self.at..];
            if end.first() != Some(&self.delimiter) {
                self.at += if end.starts_with(b"\r\n") { 2 } else { end.len().min(1) };
                return Ok(true);
            }
            self.at += 1;
        }
    }

    /// Reads a field, up to the delimiter or line end behind it.
    #[inline(always)]
    fn read_field(&mut self) -> Result<(), TextBehindQuote> {
        let rest = &self.text[self.at..];
        let is_end = |byte: &u8| *byte == self.delimiter || matches!(byte, b'\r' | b'\n');
        let field = match self.quote {
            Some(quote) if rest.first() == Some(&quote) => Field::quoted(rest, quote),
            _ => Field::plain(&rest[..rest.iter().position(is_end).unwrap_or(rest.len())]),
        };
        if field.is_open {
            self.open_quote = Some(self.at);
        }
        self.count += 1;
        self.last_is_empty = field.text.is_empty();
        if self.count <= self.wanted {
            self.kept.push(field.content());
        }
        self.at += field.bytes;
        match self.text.get(self.at) {
            Some(byte) if !is_end(byte) => Err(self.text_behind_quote()),
            _ => Ok(()),
        }
    }

    #[cold]
    fn text_behind_quote(&self) -> TextBehindQuote {
        let lines_below = line_ends(&self.text[self.start..self.at]) as u64;
        TextBehindQuote { field: self.count, byte: (self.at - self.start) as u64 + 1, lines_below }
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

    /// Returns true if the last field of the row is empty.
    pub fn last_is_empty(&self) -> bool {
        self.last_is_empty
    }

    /// Returns a wanted field by its place, from 0, if the row has it.
    pub fn field(&self, place: usize) -> Option<&[u8]> {
        self.kept.get(place).map(|field| &**field)
    }

    /// The offset of the quote that opens the last field, if nothing closes it before the end of the text.
    pub fn open_quote(&self) -> Option<usize> {
        self.open_quote
    }
}

/// A field as it stands in a text.
struct Field<'t> {
    /// Its text, without the quotes around it.
    text: &'t [u8],
    /// The number of bytes that it takes.
    bytes: usize,
    /// The quote character, if its text has doubled ones.
    doubled: Option<u8>,
    /// No quote closes it.
    is_open: bool,
}

impl<'t> Field<'t> {
    fn plain(text: &'t [u8]) -> Field<'t> {
        Field { text, bytes: text.len(), doubled: None, is_open: false }
    }

    /// Finds the quoted field at the start of `text`.
    fn quoted(text: &'t [u8], quote: u8) -> Field<'t> {
        let (mut end, mut doubled) = (1, None);
        while let Some(found) = memchr::memchr(quote, &text[end..]) {
            end += found;
            if text.get(end + 1) != Some(&quote) {
                return Field { text: &text[1..end], bytes: end + 1, doubled, is_open: false };
            }
            (end, doubled) = (end + 2, Some(quote));
        }
        Field { text: &text[1..], bytes: text.len(), doubled, is_open: true }
    }

    fn content(&self) -> Cow<'t, [u8]> {
        let Some(quote) = self.doubled else { return Cow::Borrowed(self.text) };
        let (mut content, mut rest) = (Vec::with_capacity(self.text.len()), self.text);
        while let Some(found) = memchr::memchr(quote, rest) {
            content.extend_from_slice(&rest[..=found]);
            rest = &rest[found + 2..];
        }
        content.extend_from_slice(rest);
        Cow::Owned(content)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nearly::{fuzz, mutate};

    #[test]
    fn rows_are_those_of_the_csv_crate_and_begin_at_their_first_byte() {
        let text = "a,\"b \"\"c\"\"\",d\r\n\r\n\n1,2\n\"x\ny\",,\n\u{feff}z\n,".as_bytes().to_vec();
        let refused = std::cell::Cell::new(0);
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
            let mut rows = RowReader::new(&text, 0, b',', Some(b'"'), wanted);
            for row in expected.byte_records() {
                let row = row.expect("any text is rows");
                match rows.read() {
                    Ok(is_there) => assert!(is_there),
                    // The csv crate takes such text to be a part of the field.
                    Err(behind) => {
                        let at = rows.start() + behind.byte as usize - 1;
                        assert!(text[at - 1] == b'"' && !b"\",\r\n".contains(&text[at]), "{behind:?}");
                        refused.set(refused.get() + 1);
                        return;
                    }
                }
                assert_eq!(rows.fields(), row.len(), "{row:?}");
                assert_eq!(rows.last_is_empty(), row[row.len() - 1].is_empty());
                (0..wanted + 2).for_each(|at| assert_eq!(rows.field(at), row.get(at).filter(|_| at < wanted)));
                assert!(!matches!(text[rows.start()], b'\r' | b'\n'), "{}", rows.start());
            }
            assert!(!rows.read().expect("no text is left"));
        });
        assert!(refused.get() > 0, "some have text behind a quote");
    }

    /// Two stray quotes made one field of the rows between them: half of a file was lost, and nothing said.
    #[test]
    fn text_behind_a_closing_quote_is_named() {
        for (text, field, byte, lines_below) in [
            (&b"\"a\"b"[..], 1, 4, 0),
            (b"1,\"\" ,2", 2, 5, 0),
            (b"b,\"open\nc,8\nd,clo\"se\n", 2, 19, 2),
            (b"\"\"\"\"x", 1, 5, 0),
        ] {
            let text = [b"x\n\n", text].concat();
            let mut rows = RowReader::new(&text, 0, b',', Some(b'"'), 1);
            assert_eq!(rows.read(), Ok(true));
            assert_eq!(rows.read(), Err(TextBehindQuote { field, byte, lines_below }));
            assert_eq!(rows.start(), 3);
        }
        for text in [&b"\"a\""[..], b"\"a\"\r\n", b"\"a\",", b"\"\"\"a\"\"\"", b"a\"b,c\"\n", b" \"a\"b"] {
            let mut rows = RowReader::new(text, 0, b',', Some(b'"'), 1);
            assert_eq!((rows.read(), rows.read(), rows.open_quote()), (Ok(true), Ok(false), None));
        }
        let mut rows = RowReader::new(b"\"\",\"a\"\"\nb", 0, b',', Some(b'"'), 2);
        assert_eq!((rows.read(), rows.open_quote(), rows.field(1)), (Ok(true), Some(3), Some(&b"a\"\nb"[..])));
        let mut rows = RowReader::new(b"\"a\"b,\"", 0, b',', None, 2);
        assert_eq!((rows.read(), rows.open_quote(), rows.field(0)), (Ok(true), None, Some(&b"\"a\"b"[..])));
    }

    #[test]
    fn rows_are_as_wide_as_the_first_line() {
        assert_eq!(Width(2).check(2, true), Ok(()));
        assert_eq!(Width(2).check(3, true), Ok(()));
        for (fields, last_is_empty, expected) in [
            (1, true, "this row has 1 field, and the first line has 2"),
            (
                3,
                false,
                "this row has 3 fields, and the first line has 2: a field that holds the delimiter must be quoted",
            ),
            (
                4,
                true,
                "this row has 4 fields, and the first line has 2: a field that holds the delimiter must be quoted",
            ),
        ] {
            assert_eq!(Width(2).check(fields, last_is_empty), Err(expected.to_owned()));
        }
    }
}
