//! Batches: records in columns, as the Python side reads them from tables, without an object for each.
//!
//! A record is a value, or a tuple of records. Python describes it as an array, `(type, valid, buffers)`, or as a
//! list of such descriptions.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// Records in columns.
#[pyclass(frozen)]
pub struct Batch {
    #[pyo3(get)]
    rows: usize,
    records: Stored,
}

/// Columns as Python objects own them.
#[derive(FromPyObject)]
enum Stored {
    /// The name of the type, a byte for each row that is 0 where there is no value, and buffers as Arrow has them.
    Array(String, Option<Py<PyBytes>>, Vec<Py<PyBytes>>),
    Tuple(Vec<Stored>),
}

#[pymethods]
impl Batch {
    #[new]
    fn new(rows: usize, records: Stored) -> Batch {
        Batch { rows, records }
    }
}

impl Batch {
    /// Returns the number of records, and their columns.
    ///
    /// # Errors
    /// A buffer does not suit its type or the number of rows.
    pub fn records<'b>(&'b self, py: Python<'b>) -> PyResult<(usize, BatchPart<'b>)> {
        Ok((self.rows, self.records.part(py, self.rows)?))
    }
}

impl Stored {
    fn part<'b>(&'b self, py: Python<'b>, rows: usize) -> PyResult<BatchPart<'b>> {
        let (kind, valid, buffers) = match self {
            Stored::Tuple(parts) => {
                return Ok(BatchPart::Tuple(parts.iter().map(|part| part.part(py, rows)).collect::<PyResult<_>>()?));
            }
            Stored::Array(kind, valid, buffers) => (kind, valid, buffers),
        };
        let buffers: Vec<&[u8]> = buffers.iter().map(|buffer| buffer.as_bytes(py)).collect();
        let values = match (&kind[..], &buffers[..]) {
            ("int64", [numbers]) => Values::Int(numbers.as_chunks().0),
            ("double", [numbers]) => Values::Float(numbers.as_chunks().0),
            ("bool", [bytes]) => Values::Bool(bytes),
            ("string", [ends, text]) => Values::Text(ends.as_chunks().0, text),
            ("binary", [ends, bytes]) => Values::Bytes(ends.as_chunks().0, bytes),
            _ => return Err(PyValueError::new_err(format!("no column of {kind} has {} buffers", buffers.len()))),
        };
        let valid = valid.as_ref().map(|valid| valid.as_bytes(py));
        if values.len() != rows || valid.is_some_and(|valid| valid.len() != rows) {
            return Err(PyValueError::new_err(format!("a column of {} values for {rows} rows", values.len())));
        }
        Ok(BatchPart::Column { values, valid })
    }
}

/// The columns of a batch, or those of a part of its records.
pub enum BatchPart<'b> {
    Column { values: Values<'b>, valid: Option<&'b [u8]> },
    Tuple(Vec<BatchPart<'b>>),
}

/// The values of a column. Text and bytes lie between two offsets each.
pub enum Values<'b> {
    Int(&'b [[u8; 8]]),
    Float(&'b [[u8; 8]]),
    Bool(&'b [u8]),
    Text(&'b [[u8; 8]], &'b [u8]),
    Bytes(&'b [[u8; 8]], &'b [u8]),
}

impl Values<'_> {
    fn len(&self) -> usize {
        match self {
            Values::Int(numbers) | Values::Float(numbers) => numbers.len(),
            Values::Bool(bytes) => bytes.len(),
            Values::Text(offsets, _) | Values::Bytes(offsets, _) => offsets.len().saturating_sub(1),
        }
    }
}

/// A record of a batch, or a part of one.
#[derive(Clone, Copy)]
pub struct BatchRow<'p, 'b> {
    pub part: &'p BatchPart<'b>,
    pub number: usize,
}

/// The shape of a [`BatchRow`].
pub enum Item<'p, 'b> {
    None,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(&'b [u8]),
    Bytes(&'b [u8]),
    Tuple(&'p [BatchPart<'b>]),
}

impl<'p, 'b> BatchRow<'p, 'b> {
    #[inline]
    pub fn item(self) -> Item<'p, 'b> {
        let number = self.number;
        let values = match self.part {
            BatchPart::Tuple(parts) => return Item::Tuple(parts),
            BatchPart::Column { valid: Some(valid), .. } if valid[number] == 0 => return Item::None,
            BatchPart::Column { values, .. } => values,
        };
        match values {
            Values::Int(numbers) => Item::Int(i64::from_le_bytes(numbers[number])),
            Values::Float(numbers) => Item::Float(f64::from_le_bytes(numbers[number])),
            Values::Bool(bytes) => Item::Bool(bytes[number] != 0),
            Values::Text(offsets, text) => Item::Text(between(offsets, number, text)),
            Values::Bytes(offsets, bytes) => Item::Bytes(between(offsets, number, bytes)),
        }
    }

    /// Returns the parts of a tuple, each in the same row.
    pub fn of(self, parts: &'p [BatchPart<'b>]) -> impl Iterator<Item = BatchRow<'p, 'b>> {
        parts.iter().map(move |part| BatchRow { part, number: self.number })
    }
}

/// Returns the bytes between an offset and the next; the first offset need not be 0.
fn between<'b>(offsets: &[[u8; 8]], number: usize, bytes: &'b [u8]) -> &'b [u8] {
    let offset = |number: usize| i64::from_le_bytes(offsets[number]);
    &bytes[(offset(number) - offset(0)) as usize..(offset(number + 1) - offset(0)) as usize]
}
