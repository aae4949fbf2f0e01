//! Rows as columns: Arrow IPC and Parquet files.
//!
//! ```text
//!  kind      column
//!  text      NAME: utf8
//!  bytes     NAME: utf8, and NAME_bytes: binary; one of them has the field, the other is null
//!  integer   NAME: uint64
//!  number    NAME: float64; of optional numbers, null if there is none
//!  sum       NAME: float64, and NAME_whole: decimal128(38, 0), the exact value, null unless all numbers were whole;
//!            both are null if there were no numbers
//! ```
//!
//! The schema is written before the first row, and a key may be any bytes. So a key that is not UTF-8 is stored in a
//! separate column: nothing is lost, keys stay distinct, and readers see text as text.
//!
//! Rows are collected in a *batch*, which is written when it has [`BATCH_ROWS`] rows or [`BATCH_BYTES`] bytes of
//! keys. For Arrow that is all. Parquet writes the columns of a *row group* one after another and keeps its
//! compressed batches until the group ends, which is when it takes [`GROUP_BYTES`]. So memory does not grow with the
//! result.

use std::io;
use std::sync::Arc;

use arrow_array::builder::{BinaryBuilder, Decimal128Builder, Float64Builder, StringBuilder, UInt64Builder};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_ipc::writer::FileWriter;
use arrow_schema::{ArrowError, DataType, Schema, SchemaRef};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;

use crate::output::column::{Column, ColumnType, Field, Format};
use crate::output::packer::Packer;

const BATCH_ROWS: usize = 16 << 10;
const BATCH_BYTES: usize = 1 << 20;
/// Row groups of some MiB are read nearly as fast as larger ones.
const GROUP_BYTES: usize = 16 << 20;
/// The type of sums of whole numbers.
const WHOLE: DataType = DataType::Decimal128(38, 0);
const WHOLE_MAX: u128 = 10u128.pow(38);

/// A writer of columns.
pub struct Columns {
    schema: SchemaRef,
    gathered: Vec<Gathered>,
    rows: usize,
    bytes: usize,
    file: ColumnFile,
}

/// The fields of one column that are not yet in a batch.
enum Gathered {
    Text(StringBuilder),
    Bytes(StringBuilder, BinaryBuilder),
    Integer(UInt64Builder),
    Number(Float64Builder),
    Sum(Float64Builder, Decimal128Builder),
}

enum ColumnFile {
    Arrow(FileWriter<Packer>),
    Parquet(ArrowWriter<Packer>),
}

impl Columns {
    /// Writes the part of the file before its first row.
    pub fn begin(format: Format, columns: Vec<Column>, to: Packer) -> io::Result<Columns> {
        let gathered = columns.iter().map(|column| Gathered::new(column.kind)).collect();
        let fields: Vec<_> = columns.iter().flat_map(fields_of).collect();
        let schema = Arc::new(Schema::new(fields));
        let file = if format == Format::Arrow {
            ColumnFile::Arrow(FileWriter::try_new(to, &schema).map_err(of_arrow)?)
        } else {
            let packed = WriterProperties::builder().set_compression(Compression::ZSTD(ZstdLevel::default()));
            let writer = ArrowWriter::try_new(to, schema.clone(), Some(packed.build()));
            ColumnFile::Parquet(writer.map_err(of_parquet)?)
        };
        Ok(Columns { schema, gathered, rows: 0, bytes: 0, file })
    }

    /// Adds one row: one field per column, of its type.
    pub fn row(&mut self, fields: &[Field<'_>]) -> io::Result<()> {
        assert_eq!(fields.len(), self.gathered.len(), "a field per column");
        for (column, field) in self.gathered.iter_mut().zip(fields) {
            self.bytes += column.push(*field)?;
        }
        self.rows += 1;
        if self.rows == BATCH_ROWS || self.bytes >= BATCH_BYTES { self.write() } else { Ok(()) }
    }

    /// Ends the file if every row was `written`, and returns the underlying writer.
    pub fn into_inner(mut self, written: io::Result<()>) -> io::Result<Packer> {
        written?;
        self.write()?;
        match self.file {
            ColumnFile::Arrow(writer) => writer.into_inner().map_err(of_arrow),
            ColumnFile::Parquet(writer) => writer.into_inner().map_err(of_parquet),
        }
    }

    /// Writes the batch.
    fn write(&mut self) -> io::Result<()> {
        let arrays = self.gathered.iter_mut().flat_map(Gathered::take).collect();
        let batch = RecordBatch::try_new(self.schema.clone(), arrays).expect("columns are as the schema says");
        (self.rows, self.bytes) = (0, 0);
        match &mut self.file {
            ColumnFile::Arrow(writer) => writer.write(&batch).map_err(of_arrow),
            ColumnFile::Parquet(writer) => {
                let written = writer.write(&batch);
                let full = writer.memory_size() >= GROUP_BYTES;
                written.and_then(|()| if full { writer.flush() } else { Ok(()) }).map_err(of_parquet)
            }
        }
    }
}

impl Gathered {
    fn new(kind: ColumnType) -> Gathered {
        match kind {
            ColumnType::Text => Gathered::Text(StringBuilder::new()),
            ColumnType::Bytes => Gathered::Bytes(StringBuilder::new(), BinaryBuilder::new()),
            ColumnType::Integer => Gathered::Integer(UInt64Builder::new()),
            ColumnType::Number | ColumnType::OptionalNumber => Gathered::Number(Float64Builder::new()),
            ColumnType::Sum => Gathered::Sum(Float64Builder::new(), Decimal128Builder::new().with_data_type(WHOLE)),
        }
    }

    /// Adds a field, and returns the number of its bytes if its type has no fixed width.
    fn push(&mut self, field: Field<'_>) -> io::Result<usize> {
        Ok(match (self, field) {
            (Gathered::Text(column), Field::Bytes(text)) => {
                column.append_value(str::from_utf8(text).expect("such columns are UTF-8"));
                text.len()
            }
            (Gathered::Bytes(texts, others), Field::Bytes(bytes)) => {
                let text = str::from_utf8(bytes).ok();
                texts.append_option(text);
                others.append_option(text.is_none().then_some(bytes));
                bytes.len()
            }
            (Gathered::Integer(column), Field::Integer(integer)) => {
                column.append_value(integer);
                0
            }
            (Gathered::Number(column), Field::Number(number)) => {
                column.append_value(number);
                0
            }
            (Gathered::Number(column), Field::Nothing) => {
                column.append_null();
                0
            }
            (Gathered::Sum(nearest, whole), field) => {
                let (number, exact) = match field {
                    Field::Number(number) => (Some(number), None),
                    Field::Whole(number) if number.unsigned_abs() >= WHOLE_MAX => {
                        return Err(io::Error::other(format!(
                            "{number} has more than the 38 digits of a decimal: write it as tsv, csv or jsonl"
                        )));
                    }
                    Field::Whole(number) => (Some(number as f64), Some(number)),
                    _ => (None, None),
                };
                nearest.append_option(number);
                whole.append_option(exact);
                0
            }
            (_, field) => unreachable!("{field:?} is not of the kind of its column"),
        })
    }

    /// Returns the collected fields as the arrays of a batch.
    fn take(&mut self) -> Vec<ArrayRef> {
        match self {
            Gathered::Text(column) => vec![Arc::new(column.finish())],
            Gathered::Bytes(texts, others) => vec![Arc::new(texts.finish()), Arc::new(others.finish())],
            Gathered::Integer(column) => vec![Arc::new(column.finish())],
            Gathered::Number(column) => vec![Arc::new(column.finish())],
            Gathered::Sum(nearest, whole) => vec![Arc::new(nearest.finish()), Arc::new(whole.finish())],
        }
    }
}

/// Returns the file's columns for a column of the result.
fn fields_of(column: &Column) -> Vec<arrow_schema::Field> {
    let field = arrow_schema::Field::new;
    let name = &column.name[..];
    match column.kind {
        ColumnType::Text => vec![field(name, DataType::Utf8, false)],
        ColumnType::Bytes => {
            vec![field(name, DataType::Utf8, true), field(&format!("{name}_bytes"), DataType::Binary, true)]
        }
        ColumnType::Integer => vec![field(name, DataType::UInt64, false)],
        ColumnType::Number => vec![field(name, DataType::Float64, false)],
        ColumnType::OptionalNumber => vec![field(name, DataType::Float64, true)],
        ColumnType::Sum => vec![field(name, DataType::Float64, true), field(&format!("{name}_whole"), WHOLE, true)],
    }
}

/// Extracts the system's error from the library's.
fn of_arrow(error: ArrowError) -> io::Error {
    match error {
        ArrowError::IoError(_, source) => source,
        other => io::Error::other(other),
    }
}

fn of_parquet(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(source) => source.downcast().map_or_else(io::Error::other, |source| *source),
        other => io::Error::other(other),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    #[test]
    fn memory_does_not_grow_with_the_result() {
        let null = File::options().write(true).open("/dev/null").expect("opened");
        let to = Packer::new(null, None).expect("a packer");
        let columns = vec![ColumnType::Bytes.named("key"), ColumnType::Integer.named("count")];
        let mut columns = Columns::begin(Format::Parquet, columns, to).expect("begun");
        let mut random = fastrand::Rng::with_seed(1);
        let mut groups = 0;
        // Half of them are not UTF-8.
        for count in 0..48_000 {
            let mut key = vec![b'k'; 2000];
            random.fill(&mut key[count as usize % 2..1000]);
            columns.row(&[Field::Bytes(&key), Field::Integer(count)]).expect("written");
            let ColumnFile::Parquet(writer) = &columns.file else { unreachable!("asked for Parquet") };
            assert!(columns.bytes < BATCH_BYTES && writer.memory_size() < GROUP_BYTES, "after {count} rows");
            groups = writer.flushed_row_groups().len();
        }
        assert!(groups > 1, "{groups} groups");
        columns.into_inner(Ok(())).and_then(|to| to.finish(Ok(()))).expect("finished");
    }
}
