//! Records as columns, in the layout of Arrow, without an object for each of them.
//!
//! Records fit if they are all texts, all ints or all floats, or pairs whose keys and values are so.

use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::values::{self, Cell};

/// Columns of the records of blocks.
#[pyclass]
#[derive(Debug, Default)]
pub struct Columns {
    columns: Vec<Column>,
}

/// A column: what its values are is known when the first has come.
#[derive(Debug)]
enum Column {
    Text { ends: Vec<i64>, bytes: Vec<u8> },
    Int(Vec<i64>),
    Float(Vec<f64>),
}

/// A column for Python: the name of its type, the number of values, and its buffers.
type Array<'py> = (&'static str, usize, Vec<Bound<'py, PyBytes>>);

#[pymethods]
impl Columns {
    #[new]
    fn new() -> Columns {
        Columns::default()
    }

    /// Adds the records of a block. Returns whether they fit; if not, nothing more can be added.
    fn add(&mut self, mut block: &[u8]) -> PyResult<bool> {
        while !block.is_empty() {
            let width = if values::take_pair(&mut block) { 2 } else { 1 };
            let is_first = self.columns.is_empty();
            if !is_first && self.columns.len() != width {
                return Ok(false);
            }
            for place in 0..width {
                let Some(cell) = values::cell(&mut block)? else { return Ok(false) };
                if is_first {
                    self.columns.push(Column::of(&cell));
                }
                if !self.columns[place].push(cell) {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// Returns the columns: none if there was no record, one, or the keys and the values of pairs.
    fn arrays<'py>(&self, py: Python<'py>) -> Vec<Array<'py>> {
        self.columns.iter().map(|column| column.array(py)).collect()
    }
}

impl Column {
    /// Returns an empty column for values like this.
    fn of(cell: &Cell<'_>) -> Column {
        match cell {
            Cell::Text(_) => Column::Text { ends: vec![0], bytes: Vec::new() },
            Cell::Int(_) => Column::Int(Vec::new()),
            Cell::Float(_) => Column::Float(Vec::new()),
        }
    }

    /// Adds a value; returns whether it fits.
    fn push(&mut self, cell: Cell<'_>) -> bool {
        match (self, cell) {
            (Column::Text { ends, bytes }, Cell::Text(text)) => {
                bytes.extend_from_slice(text);
                ends.push(bytes.len() as i64);
            }
            (Column::Int(numbers), Cell::Int(number)) => numbers.push(number),
            (Column::Float(numbers), Cell::Float(number)) => numbers.push(number),
            _ => return false,
        }
        true
    }

    fn array<'py>(&self, py: Python<'py>) -> Array<'py> {
        match self {
            Column::Text { ends, bytes } => {
                let count = ends.len() - 1;
                // Text of 2 GiB and more has longer offsets.
                let short: Option<Vec<i32>> = ends.iter().map(|end| i32::try_from(*end).ok()).collect();
                let (kind, ends) = match short {
                    Some(ends) => ("string", buffer(py, &ends, |end| end.to_ne_bytes())),
                    None => ("large_string", buffer(py, ends, |end| end.to_ne_bytes())),
                };
                (kind, count, vec![ends, PyBytes::new(py, bytes)])
            }
            Column::Int(numbers) => ("int64", numbers.len(), vec![buffer(py, numbers, |number| number.to_ne_bytes())]),
            Column::Float(numbers) => {
                ("double", numbers.len(), vec![buffer(py, numbers, |number| number.to_ne_bytes())])
            }
        }
    }
}

fn buffer<'py, T: Copy, const WIDTH: usize>(
    py: Python<'py>,
    of: &[T],
    bytes: impl Fn(T) -> [u8; WIDTH],
) -> Bound<'py, PyBytes> {
    let made = PyBytes::new_with(py, of.len() * WIDTH, |to| {
        to.as_chunks_mut::<WIDTH>().0.iter_mut().zip(of).for_each(|(to, value)| *to = bytes(*value));
        Ok(())
    });
    made.expect("memory for the result")
}
