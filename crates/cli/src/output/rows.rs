//! The rows of a result, with the same fields in every format.
//!
//! - TSV, CSV and JSON Lines are written row by row (`text`).
//! - Arrow and Parquet are written column by column, some rows at a time (`columns`), if the command is built with
//!   the feature `columnar`.

use std::io;

use crate::output::column::{Column, Field, Format};
#[cfg(feature = "columnar")]
use crate::output::columns::Columns;
use crate::output::packer::Packer;
use crate::output::text::Text;

/// A writer of rows.
#[cfg_attr(feature = "columnar", expect(clippy::large_enum_variant, reason = "a command has one of them"))]
pub enum Rows {
    Text(Text<Packer>),
    #[cfg(feature = "columnar")]
    Columns(Columns),
}

impl Rows {
    /// Writes the part of the format before its first row.
    pub fn begin(format: Format, columns: Vec<Column>, to: Packer) -> io::Result<Rows> {
        match format {
            Format::Tsv | Format::Csv | Format::Jsonl => Ok(Rows::Text(Text::new(format, columns, to))),
            #[cfg(feature = "columnar")]
            Format::Arrow | Format::Parquet => Ok(Rows::Columns(Columns::begin(format, columns, to)?)),
            #[cfg(not(feature = "columnar"))]
            Format::Arrow | Format::Parquet => Err(io::Error::other(
                "this gristmill was built without Arrow and Parquet. Build it with cargo build --release --package \
                 gristmill-cli --features columnar, or ask for tsv, csv or jsonl",
            )),
        }
    }

    /// Writes one row: one field per column, of its type.
    pub fn row(&mut self, fields: &[Field<'_>]) -> io::Result<()> {
        match self {
            Rows::Text(text) => text.row(fields),
            #[cfg(feature = "columnar")]
            Rows::Columns(columns) => columns.row(fields),
        }
    }

    /// Ends the file, if every row was `written`.
    pub fn finish(self, written: io::Result<()>) -> io::Result<()> {
        match self {
            Rows::Text(text) => {
                let (to, written) = text.finish(written);
                to.finish(written)
            }
            #[cfg(feature = "columnar")]
            Rows::Columns(columns) => columns.into_inner(written)?.finish(Ok(())),
        }
    }
}
