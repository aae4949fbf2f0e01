//! The first line of a table: column names, or the first row.
//!
//! A CSV file does not say which it is. The caller may say so ([`Header`]); otherwise the first rows decide, and a
//! note for the caller to show tells how the line was read. The line holds names if a column is selected by name, or if
//! one of its fields is not a number while all fields below it are. Without such a sign it is read as a row: a header
//! counted as a row shows in the answer, but a lost row does not. [`columns`](crate::columns) finds the columns by it.

use std::fmt::Display;
use std::io::{self, Read};

use csv::ByteRecord;
use gristmill::files::{Source, Syntax, Verdict};

use crate::error::{Error, Result, open_to_look};
use crate::file_format::{BYTE_ORDER_MARK, extension};
use crate::number::Number;
use crate::row::{OPEN_QUOTE, RowReader, line_ends};

/// The content of a table's first line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Header {
    /// The names of the columns.
    Yes,
    /// The first row.
    No,
    /// Names or a row, as the first rows suggest.
    #[default]
    Auto,
}

/// The dialect of a table's text.
#[derive(Clone, Copy, Debug)]
pub struct Dialect {
    /// The content of each file's first line.
    pub header: Header,
    /// The delimiter. By default a comma, or a tab in files whose names end in .tsv or .tab.
    pub delimiter: Option<u8>,
    /// The quote character, if fields that contain delimiters or line ends are quoted.
    pub quote: Option<u8>,
}

impl Default for Dialect {
    fn default() -> Dialect {
        Dialect { header: Header::Auto, delimiter: None, quote: Some(b'"') }
    }
}

impl Dialect {
    /// Returns the delimiter of a file with this name.
    pub(crate) fn delimiter_of(&self, source: &Source) -> u8 {
        self.delimiter.unwrap_or_else(|| match extension(&source.name).as_deref() {
            Some("tsv" | "tab") => b'\t',
            _ => b',',
        })
    }

    /// Returns how rows end if fields are separated by `delimiter`.
    pub(crate) fn syntax(&self, delimiter: u8) -> Option<Syntax> {
        self.quote.map(|quote| Syntax { delimiter, quote })
    }
}

/// The number of rows that are examined.
const ROWS: usize = 100;

/// Limits on the first line, which is kept in memory with the end of each field.
const LINE_BYTES_MAX: usize = 4 << 20;
const FIELDS_MAX: usize = 1 << 20;

/// Memory for a field of the first line: its end, its name, and its place in other files.
const FIELD_BYTES: u64 = 96;

/// The number of bytes examined after the first line.
const BELOW_BYTES: usize = 64 << 10;

/// The first rows of a file that is not empty.
pub(crate) struct Heading {
    /// The first line, a header or not.
    pub line: ByteRecord,
    /// The line holds the names of the columns.
    pub is_header: bool,
    /// The number of bytes up to its end, including empty lines above it.
    line_bytes: u64,
    /// The first rows of data. They begin with the first line unless it is a header.
    pub rows: Vec<ByteRecord>,
}

impl Heading {
    /// Reads the first rows of a file; `None` if it has no row. `is_header` says what the first line holds, or `None`
    /// to let the rows decide. `numbers` lists the columns that are known to hold numbers (without a list, all).
    pub fn look(
        source: &Source,
        dialect: &Dialect,
        is_header: impl FnOnce(&ByteRecord) -> Option<bool>,
        numbers: Option<&[usize]>,
    ) -> Result<Option<Heading>> {
        let delimiter = dialect.delimiter_of(source);
        let start = Start::read(open_to_look(source)?, delimiter, dialect.quote)
            .map_err(|verdict| Error::verdict(&source.name, verdict))?;
        let need_bytes = start.fields as u64 * FIELD_BYTES + 3 * start.text.len() as u64;
        source.memory().allow(need_bytes).map_err(|why| {
            Error::too_large(&source.name, format!("to keep the {} fields of its first line {why}", start.fields))
        })?;
        // Rows with too many fields must be recognised as such.
        let mut rows = start.rows(delimiter, dialect.quote, start.fields + 2);
        if rows.read() != Ok(true) {
            return Ok(None);
        }
        let (line, line_bytes) = (record(&rows), rows.end() as u64);
        let known = is_header(&line);
        let mut below = Vec::new();
        // The job will find what is wrong with a row below.
        while below.len() < ROWS && rows.read() == Ok(true) {
            // A row that is cut off by the end of the text is skipped.
            if start.is_whole || rows.end() < start.text.len() {
                below.push(record(&rows));
            }
        }
        let is_header = known.unwrap_or_else(|| looks_like_names(&line, &below, numbers));
        let above = (!is_header).then(|| line.clone());
        let rows = above.into_iter().chain(below).collect();
        Ok(Some(Heading { line, is_header, line_bytes, rows }))
    }

    /// The number of bytes before the first row of data.
    pub fn bytes(&self) -> u64 {
        if self.is_header { self.line_bytes } else { 0 }
    }
}

/// The text at the start of a file: the first line and some that follow.
struct Start {
    text: Vec<u8>,
    /// The text is the whole file.
    is_whole: bool,
    /// The number of fields in the first line.
    fields: usize,
}

/// Returns the fields of a row.
fn record(row: &RowReader<'_>) -> ByteRecord {
    (0..row.fields()).filter_map(|place| row.field(place)).collect()
}

impl Start {
    /// Reads the start of a file, or returns what is wrong with it.
    fn read(mut file: impl Read, delimiter: u8, quote: Option<u8>) -> std::result::Result<Start, Verdict> {
        let mut start = Start { text: Vec::new(), is_whole: false, fields: 0 };
        let mut bytes = BELOW_BYTES;
        loop {
            start.extend(&mut file, bytes)?;
            let mut rows = start.rows(delimiter, quote, 0);
            let at_line = |at: usize, why: &dyn Display| {
                let line = 1 + line_ends(&start.text[..at]);
                Verdict::Bad(format!("line {line}: {why}"))
            };
            rows.read().map_err(|behind| at_line(rows.start(), &behind))?;
            if let Some(at) = rows.open_quote().filter(|_| start.is_whole) {
                return Err(at_line(at, &OPEN_QUOTE));
            }
            let (fields, end) = (rows.fields(), rows.end());
            let names_limit = |what: String| {
                Verdict::Bad(format!(
                    "{what}. If it has no lines with fields in them, it is no table; if its quotes are data, set Dialect::quote to none"
                ))
            };
            if fields > FIELDS_MAX {
                return Err(names_limit(format!(
                    "its first line has more than {FIELDS_MAX} fields, which is the limit"
                )));
            }
            start.fields = fields;
            if start.is_whole || end < start.text.len() {
                start.extend(&mut file, end + BELOW_BYTES)?;
                return Ok(start);
            }
            if bytes >= LINE_BYTES_MAX {
                return Err(names_limit(format!(
                    "its first line is longer than {} MiB, which is the limit",
                    LINE_BYTES_MAX >> 20
                )));
            }
            bytes *= 2;
        }
    }

    /// Makes a reader of the rows, which keeps the first `wanted` fields of each.
    fn rows(&self, delimiter: u8, quote: Option<u8>, wanted: usize) -> RowReader<'_> {
        let mark = if self.text.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len() } else { 0 };
        RowReader::new(&self.text, mark, delimiter, quote, wanted)
    }

    /// Reads on until the text has `bytes` bytes or the file ends.
    fn extend(&mut self, file: &mut impl Read, bytes: usize) -> io::Result<()> {
        let more = bytes.saturating_sub(self.text.len());
        if !self.is_whole && more > 0 {
            self.text.reserve_exact(more);
            let read = file.take(more as u64).read_to_end(&mut self.text)?;
            self.is_whole = read < more;
        }
        Ok(())
    }
}

/// Returns true if the first line cannot be a row, or differs in kind from the rows below.
fn looks_like_names(line: &ByteRecord, below: &[ByteRecord], numbers: Option<&[usize]>) -> bool {
    let is_number = |field: &[u8]| Number::of(field).is_ok();
    // A number that cannot be summed, such as infinity, is bad data rather than a name.
    let is_any_number = |field: &[u8]| str::from_utf8(field.trim_ascii()).is_ok_and(|text| text.parse::<f64>().is_ok());
    let is_word = |field: &[u8]| !field.trim_ascii().is_empty() && !is_any_number(field);
    let cannot_be_a_row = match numbers {
        Some(places) => places.iter().filter_map(|place| line.get(*place)).any(is_word),
        None => line.iter().any(is_word),
    };
    cannot_be_a_row
        || line.iter().enumerate().any(|(place, field)| {
            let mut fields =
                below.iter().filter_map(|row| row.get(place)).filter(|field| !field.trim_ascii().is_empty());
            is_word(field) && fields.next().is_some_and(is_number) && fields.all(is_number)
        })
}

/// Guesses about first lines: at most one sentence for each of the two kinds.
#[derive(Default)]
pub(crate) struct Guesses {
    /// The first file with names, the first with a row, and the number of files of each kind.
    names: Option<(String, usize)>,
    rows: Option<(String, usize)>,
}

impl Guesses {
    pub fn add(&mut self, source: &Source, heading: &Heading, delimiter: u8) {
        let place = if heading.is_header { &mut self.names } else { &mut self.rows };
        match place {
            Some((_, files)) => *files += 1,
            None => {
                let line = shown(&heading.line, delimiter);
                *place = Some((format!("{}: the first line ({line})", source.name.display()), 1));
            }
        }
    }

    /// Returns the guesses as sentences.
    pub fn notes(self) -> Vec<String> {
        let say = |(what, files): (String, usize), taken: &str, other: &str| {
            let more = match files {
                1 => String::new(),
                2 => " and that of 1 other file".to_owned(),
                _ => format!(" and that of {} other files", files - 1),
            };
            let was = if files == 1 { "was" } else { "were" };
            format!("{what}{more} {was} read as {taken}; if that is wrong, set Dialect::header to {other}")
        };
        let names = self.names.map(|guess| say(guess, "column names", "no"));
        let rows = self.rows.map(|guess| say(guess, "data", "yes"));
        names.into_iter().chain(rows).collect()
    }
}

/// Formats a line for a message, with the delimiter of its file.
pub(crate) fn shown(line: &ByteRecord, delimiter: u8) -> String {
    const CHARACTERS: usize = 60;
    // This many fields already have more characters than are shown.
    let fields: Vec<_> = line.iter().take(CHARACTERS).map(|field| &field[..field.len().min(4 * CHARACTERS)]).collect();
    let text = String::from_utf8_lossy(&fields.join(&delimiter)).replace(char::is_control, " ");
    match text.char_indices().nth(CHARACTERS) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text,
    }
}

/// Returns a hint for messages if the fields of a first line seem to end at another byte.
pub(crate) fn delimiter_hint(line: &ByteRecord, delimiter: u8) -> String {
    let separates = |byte: &&u8| **byte != delimiter && line.len() == 1 && line[0].contains(*byte);
    match b";\t|,".iter().find(separates) {
        Some(b'\t') => ". If its fields end at tabs, set Dialect::delimiter".to_owned(),
        Some(byte) => format!(". If its fields end at {:?}, set Dialect::delimiter", char::from(*byte)),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts the bytes read from an endless file.
    struct Counted<R>(R, usize);

    impl<R: Read> Read for Counted<R> {
        fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
            let read = self.0.read(to)?;
            self.1 += read;
            Ok(read)
        }
    }

    /// Looking at the first rows of a table used to take several times the bytes of its first hundred lines: a line
    /// of 100 MB took 486 MB before the job began.
    #[test]
    fn a_first_look_reads_little_even_if_lines_are_long() {
        for (begin, again, read_max, expected) in [
            (&b""[..], b'a', LINE_BYTES_MAX, Some("its first line is longer than 4 MiB, which is the limit")),
            (b"k,v\n\"", b'\n', 2 * BELOW_BYTES, None),
            (b"\"", b'\n', LINE_BYTES_MAX, Some("set Dialect::quote to none")),
            (b"", b',', LINE_BYTES_MAX, Some("its first line has more than 1048576 fields, which is the limit")),
            (b"k,v\n1,", b'2', 2 * BELOW_BYTES, None),
            (b"", b'\n', LINE_BYTES_MAX, Some("no table")),
        ] {
            let mut file = Counted(begin.chain(io::repeat(again)), 0);
            let found = Start::read(&mut file, b',', Some(b'"'));
            assert!(file.1 <= read_max, "{} bytes of {begin:?}", file.1);
            match (found, expected) {
                (Ok(start), None) => assert!(!start.is_whole && start.text.starts_with(begin)),
                (Err(Verdict::Bad(why)), Some(expected)) => assert!(why.contains(expected), "{why}"),
                (found, _) => panic!("{begin:?} {again}: {}", found.is_ok()),
            }
        }
    }

    #[test]
    fn rows_cut_off_by_the_end_of_the_look_are_skipped() {
        let text = [&b"k,v\n1,2\n3,"[..], &[b'4'; 2 * BELOW_BYTES], b"\n"].concat();
        let mut input = gristmill::Input::bytes("t", &text).expect("in memory");
        let sources = input.sources().expect("there");
        let heading = Heading::look(&sources[0], &Dialect::default(), |_| None, None).expect("read").expect("rows");
        assert_eq!((heading.is_header, heading.rows.len(), heading.bytes()), (true, 1, 4));
        let long = [&[b'n'; 2 * BELOW_BYTES][..], b",v\n1,2\n"].concat();
        let mut input = gristmill::Input::bytes("t", &long).expect("in memory");
        let sources = input.sources().expect("there");
        let heading =
            Heading::look(&sources[0], &Dialect::default(), |_| Some(true), None).expect("read").expect("rows");
        assert_eq!((heading.line.len(), heading.rows.len()), (2, 1));
    }
}
