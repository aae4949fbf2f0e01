//! Rows as lines of text.
//!
//! - TSV: tab-separated without a header, so that `sort`, `join` and `cut` can continue with it. A tab, a line end or
//!   another of [`ESCAPES`] within a field is written with a backslash, as in the text format of PostgreSQL's `COPY`,
//!   so that a row is always one line. No value is ever `\N`: a key of these two characters is `\\N`.
//! - CSV: with a header. A field with a comma, a quote or a line break is quoted as in RFC 4180.
//! - JSON Lines: one object per row. JSON is UTF-8, and a key need not be: such a key is written as `<name>_base64`,
//!   in base64, so that nothing is lost and keys stay distinct.

use std::io::{self, Write};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;

use crate::output::column::{Column, Field, Format};

/// A writer of rows as text.
pub struct Text<W> {
    format: Format,
    columns: Vec<Column>,
    /// True once the header has been written. A job that fails writes nothing.
    has_begun: bool,
    to: W,
}

impl<W: Write> Text<W> {
    /// Makes a writer that has written nothing yet.
    pub fn new(format: Format, columns: Vec<Column>, to: W) -> Text<W> {
        Text { format, columns, has_begun: false, to }
    }

    /// Writes the header once, if the format has one.
    fn begin(&mut self) -> io::Result<()> {
        if !std::mem::replace(&mut self.has_begun, true) && self.format == Format::Csv {
            let names: Vec<_> = self.columns.iter().map(|column| &column.name[..]).collect();
            writeln!(self.to, "{}", names.join(","))?;
        }
        Ok(())
    }

    /// Writes one row: one field per column.
    pub fn row(&mut self, fields: &[Field<'_>]) -> io::Result<()> {
        debug_assert_eq!(fields.len(), self.columns.len());
        self.begin()?;
        match self.format {
            Format::Csv => self.separated(fields, b",", quoted),
            Format::Jsonl => self.object(fields),
            _ => self.separated(fields, b"\t", escaped),
        }
    }

    /// Ends the rows. Returns the underlying writer, and the outcome of all writes.
    pub fn finish(mut self, rows_written: io::Result<()>) -> (W, io::Result<()>) {
        let written = rows_written.and_then(|()| self.begin());
        (self.to, written)
    }

    fn separated(
        &mut self,
        fields: &[Field<'_>],
        separator: &[u8],
        write: impl Fn(&[u8], &mut W) -> io::Result<()>,
    ) -> io::Result<()> {
        for (number, field) in fields.iter().enumerate() {
            if number > 0 {
                self.to.write_all(separator)?;
            }
            match field {
                Field::Bytes(bytes) => write(bytes, &mut self.to)?,
                Field::Integer(integer) => write!(self.to, "{integer}")?,
                Field::Number(number) => write!(self.to, "{number}")?,
                Field::Whole(number) => write!(self.to, "{number}")?,
                Field::Nothing => {}
            }
        }
        self.to.write_all(b"\n")
    }

    fn object(&mut self, fields: &[Field<'_>]) -> io::Result<()> {
        let to = &mut self.to;
        let mut before = '{';
        for (column, field) in self.columns.iter().zip(fields) {
            write!(to, "{before}\"{}", column.name)?;
            match field {
                Field::Bytes(bytes) => match str::from_utf8(bytes) {
                    Ok(text) => {
                        to.write_all(b"\":")?;
                        serde_json::to_writer(&mut *to, text)?;
                    }
                    Err(_) => write!(to, "_base64\":\"{}\"", BASE64_STANDARD.encode(bytes))?,
                },
                Field::Integer(integer) => write!(to, "\":{integer}")?,
                Field::Number(number) if number.is_finite() => write!(to, "\":{number}")?,
                Field::Whole(number) => write!(to, "\":{number}")?,
                Field::Number(_) | Field::Nothing => write!(to, "\":null")?,
            }
            before = ',';
        }
        to.write_all(b"}\n")
    }
}

/// The bytes that would break a row of TSV or that other programs take for escapes, with the letters that replace
/// them.
const ESCAPES: [(u8, u8); 7] =
    [(b'\\', b'\\'), (b'\t', b't'), (b'\n', b'n'), (b'\r', b'r'), (0x08, b'b'), (0x0b, b'v'), (0x0c, b'f')];

fn escaped(field: &[u8], to: &mut impl Write) -> io::Result<()> {
    let letter = |byte: u8| ESCAPES.iter().find(|(escaped, _)| *escaped == byte).map(|(_, letter)| *letter);
    let mut rest = field;
    while let Some((at, letter)) = rest.iter().enumerate().find_map(|(at, byte)| Some((at, letter(*byte)?))) {
        to.write_all(&rest[..at])?;
        to.write_all(&[b'\\', letter])?;
        rest = &rest[at + 1..];
    }
    to.write_all(rest)
}

fn quoted(field: &[u8], to: &mut impl Write) -> io::Result<()> {
    if memchr::memchr3(b',', b'"', b'\n', field).is_none() && memchr::memchr(b'\r', field).is_none() {
        return to.write_all(field);
    }
    to.write_all(b"\"")?;
    for (number, piece) in field.split(|byte| *byte == b'"').enumerate() {
        if number > 0 {
            to.write_all(b"\"\"")?;
        }
        to.write_all(piece)?;
    }
    to.write_all(b"\"")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::column::ColumnType;

    fn written(format: Format, word: &[u8]) -> Vec<u8> {
        let columns = vec![ColumnType::Bytes.named("word"), ColumnType::Integer.named("count")];
        let mut rows = Text::new(format, columns, Vec::new());
        rows.row(&[Field::Bytes(word), Field::Integer(3)]).expect("a Vec takes all");
        rows.finish(Ok(())).0
    }

    #[test]
    fn tsv_leaves_quotes_commas_and_binary_bytes_unchanged() {
        assert_eq!(written(Format::Tsv, b"\"a\",\xff"), b"\"a\",\xff\t3\n");
    }

    #[test]
    fn a_row_of_tsv_is_one_line_for_any_key() {
        assert_eq!(written(Format::Tsv, b"a\tb\nc\rd\\e"), b"a\\tb\\nc\\rd\\\\e\t3\n");
        assert_eq!(written(Format::Tsv, b"\x08\x0b\x0c\\N"), b"\\b\\v\\f\\\\N\t3\n");
    }

    #[test]
    fn csv_quotes_ambiguous_fields() {
        assert_eq!(written(Format::Csv, b"plain"), b"word,count\nplain,3\n");
        assert_eq!(written(Format::Csv, b"a,\"b\""), b"word,count\n\"a,\"\"b\"\"\",3\n");
        assert_eq!(written(Format::Csv, b"a\nb"), b"word,count\n\"a\nb\",3\n");
        assert_eq!(written(Format::Csv, b"a\rb"), b"word,count\n\"a\rb\",3\n");
    }

    #[test]
    fn json_escapes_text_and_keeps_every_byte_of_other_keys() {
        assert_eq!(
            written(Format::Jsonl, "a\"\\\u{1}é".as_bytes()),
            "{\"word\":\"a\\\"\\\\\\u0001é\",\"count\":3}\n".as_bytes()
        );
        assert_eq!(written(Format::Jsonl, b"a\xff"), b"{\"word_base64\":\"Yf8=\",\"count\":3}\n");
    }
}
