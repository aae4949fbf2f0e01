//! Results: columns, their types, and the fields of a row.

use clap::ValueEnum;

/// A format of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Tab-separated, no header; within a field, a tab, line end, backslash, backspace, vertical tab or form feed
    /// becomes \t, \n, \r, \\, \b, \v or \f (as in PostgreSQL's text format)
    Tsv,
    /// Comma-separated with a header, quoted as in RFC 4180
    Csv,
    /// One JSON object per line; a key that is not UTF-8 becomes e.g. "word_base64"
    Jsonl,
    /// An Arrow IPC file; keys that are not UTF-8 have their own column, e.g. "word_bytes"
    Arrow,
    /// A Parquet file, packed with zstd; keys as in Arrow
    Parquet,
}

/// The type of a column's fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnType {
    /// Bytes that are always UTF-8.
    Text,
    /// Bytes from the input, UTF-8 or not.
    Bytes,
    /// Whole numbers.
    Integer,
    /// Numbers.
    Number,
    /// A number, or no value.
    OptionalNumber,
    /// A whole number, a number, or no value.
    Sum,
}

/// A column of the result.
#[derive(Clone, Debug)]
pub struct Column {
    pub name: String,
    pub kind: ColumnType,
}

impl ColumnType {
    /// Makes a column of this type.
    pub fn named(self, name: impl Into<String>) -> Column {
        Column { name: name.into(), kind: self }
    }
}

/// Returns the columns of a matrix: x1, x2, ...
pub fn matrix_columns(columns: usize) -> impl Iterator<Item = Column> {
    (1..=columns).map(|number| ColumnType::Number.named(format!("x{number}")))
}

/// Returns the fields of a row of a matrix.
pub fn matrix_fields(row: &[f64]) -> impl Iterator<Item = Field<'static>> {
    row.iter().map(|value| Field::Number(*value))
}

/// One field of a row.
#[derive(Clone, Copy, Debug)]
pub enum Field<'r> {
    /// Text, or bytes as they are.
    Bytes(&'r [u8]),
    /// A whole number.
    Integer(u64),
    /// Written with the fewest digits that identify the number.
    Number(f64),
    /// The sum of whole numbers.
    Whole(i128),
    /// No value: an empty field, or `null` in JSON.
    Nothing,
}

impl<'r> From<&'r [u8]> for Field<'r> {
    fn from(bytes: &'r [u8]) -> Self {
        Field::Bytes(bytes)
    }
}

impl From<u32> for Field<'_> {
    fn from(integer: u32) -> Self {
        Field::Integer(integer.into())
    }
}
