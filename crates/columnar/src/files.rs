//! Files of columns, as parts of a result.
//!
//! Rows are gathered in a batch, which is written when it has [`BATCH_ROWS`] rows or about [`BATCH_BYTES`] bytes.
//! Parquet keeps packed batches until their row group takes [`GROUP_BYTES`]. So memory does not grow with the result.

use std::fs::File;
use std::io;
use std::marker::PhantomData;
use std::path::PathBuf;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_ipc::writer::FileWriter;
use arrow_schema::{Field, Schema, SchemaRef};
use gristmill::sinks::{PartFiles, PartFormat, SinkWriter};
use gristmill::{Datum, Key, ProgramError};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;

use crate::column::Columns;

const BATCH_ROWS: usize = 16 << 10;
const BATCH_BYTES: usize = 1 << 20;
const GROUP_BYTES: usize = 16 << 20;

/// Makes a sink for a folder of Arrow IPC files (`part-00000.arrow`, ...), with these names for the columns of keys and
/// values. The folder must not exist yet, unless it is empty; it appears when all files are complete
/// ([`PartFiles`]).
///
/// # Errors
/// As [`PartFiles::new`]; and when there is not one name for each column.
pub fn arrow<K, V>(folder: impl Into<PathBuf>, names: &[&str]) -> io::Result<PartFiles<'static, K, V>>
where
    K: Key + Columns + 'static,
    V: Datum + Columns + 'static,
{
    files(folder, names, Kind::Arrow)
}

/// As [`arrow`], for Parquet files (`part-00000.parquet`, ...), packed with zstd.
///
/// # Errors
/// As [`arrow`].
pub fn parquet<K, V>(folder: impl Into<PathBuf>, names: &[&str]) -> io::Result<PartFiles<'static, K, V>>
where
    K: Key + Columns + 'static,
    V: Datum + Columns + 'static,
{
    files(folder, names, Kind::Parquet)
}

fn files<K, V>(folder: impl Into<PathBuf>, names: &[&str], kind: Kind) -> io::Result<PartFiles<'static, K, V>>
where
    K: Key + Columns + 'static,
    V: Datum + Columns + 'static,
{
    let mut types = Vec::new();
    K::types(&mut types);
    V::types(&mut types);
    if types.len() != names.len() {
        let why = format!("{} names were given for {} columns", names.len(), types.len());
        return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    }
    let fields = names.iter().zip(types).map(|(name, (data_type, nullable))| Field::new(*name, data_type, nullable));
    let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    PartFiles::with_format(folder, Format { schema, kind, types: PhantomData })
}

#[derive(Clone, Copy)]
enum Kind {
    Arrow,
    Parquet,
}

struct Format<K, V> {
    schema: SchemaRef,
    kind: Kind,
    types: PhantomData<fn() -> (K, V)>,
}

impl<K: Key + Columns, V: Datum + Columns> PartFormat<K, V> for Format<K, V> {
    fn suffix(&self) -> &str {
        match self.kind {
            Kind::Arrow => ".arrow",
            Kind::Parquet => ".parquet",
        }
    }

    fn begin(&self, file: File) -> Result<Box<dyn SinkWriter<K, V> + '_>, ProgramError> {
        let file = match self.kind {
            Kind::Arrow => ColumnFile::Arrow(FileWriter::try_new_buffered(file, &self.schema)?),
            Kind::Parquet => {
                let packed = WriterProperties::builder().set_compression(Compression::ZSTD(ZstdLevel::default()));
                ColumnFile::Parquet(ArrowWriter::try_new(file, self.schema.clone(), Some(packed.build()))?)
            }
        };
        let schema = self.schema.clone();
        Ok(Box::new(ColumnarPart::<K, V> {
            schema,
            keys: Default::default(),
            values: Default::default(),
            rows: 0,
            bytes: 0,
            file,
        }))
    }
}

enum ColumnFile {
    Arrow(FileWriter<io::BufWriter<File>>),
    Parquet(ArrowWriter<File>),
}

/// A part of a result, and the batch that is not yet in its file.
struct ColumnarPart<K: Columns, V: Columns> {
    schema: SchemaRef,
    keys: K::Builders,
    values: V::Builders,
    rows: usize,
    bytes: usize,
    file: ColumnFile,
}

impl<K: Columns, V: Columns> ColumnarPart<K, V> {
    /// Writes the batch.
    fn write(&mut self) -> Result<(), ProgramError> {
        let mut columns = Vec::new();
        K::finish(&mut self.keys, &mut columns);
        V::finish(&mut self.values, &mut columns);
        let batch = RecordBatch::try_new(self.schema.clone(), columns)?;
        (self.rows, self.bytes) = (0, 0);
        match &mut self.file {
            ColumnFile::Arrow(file) => file.write(&batch)?,
            ColumnFile::Parquet(file) => {
                file.write(&batch)?;
                if file.memory_size() >= GROUP_BYTES {
                    file.flush()?;
                }
            }
        }
        Ok(())
    }
}

/// Returns the bytes that a value takes as the engine writes it: about what it takes in a column.
fn bytes<D: Datum>(value: D::Ref<'_>) -> usize {
    D::WIDTH.unwrap_or_else(|| D::width(value))
}

impl<K: Key + Columns, V: Datum + Columns> SinkWriter<K, V> for ColumnarPart<K, V> {
    fn pair(&mut self, key: K::Ref<'_>, value: V::Ref<'_>) -> Result<(), ProgramError> {
        K::append(&mut self.keys, key);
        V::append(&mut self.values, value);
        self.rows += 1;
        self.bytes += bytes::<K>(key) + bytes::<V>(value);
        if self.rows == BATCH_ROWS || self.bytes >= BATCH_BYTES { self.write() } else { Ok(()) }
    }

    fn close(mut self: Box<Self>) -> Result<(), ProgramError> {
        if self.rows > 0 {
            self.write()?;
        }
        match self.file {
            ColumnFile::Arrow(mut file) => Ok(file.finish()?),
            ColumnFile::Parquet(file) => Ok(file.close().map(drop)?),
        }
    }
}
