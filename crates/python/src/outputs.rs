//! Outputs: the records that Python functions have made, as objects or in columns.

use pyo3::prelude::*;
use pyo3::types::{PyFloat, PyInt, PyList, PyTuple};

use crate::batches::{BatchPart, BatchRow, Item};
use crate::exceptions::{Code, NotAPair};
use crate::keys::{self, Types};
use crate::values;

/// Why a map function stops.
pub enum Stop {
    /// A Python function failed, or made what cannot travel.
    Raised(PyErr),
    /// The code of an error: a value, or a key, does not fit the form.
    Unfit(Code),
}

impl From<PyErr> for Stop {
    fn from(error: PyErr) -> Stop {
        Stop::Raised(error)
    }
}

/// A record that Python functions have made: an object, or a row of a batch.
pub trait Output: Sized {
    /// Calls `with` with the key and the value of a pair.
    fn with_pair<T>(&self, with: impl FnOnce(&Self, &Self) -> Result<T, Stop>) -> Result<T, Stop>;
    /// Calls `with` with item `at`, if this is a tuple or list of `of` items.
    fn with_field<T>(&self, at: usize, of: usize, with: impl FnOnce(&Self) -> T) -> Option<T>;
    fn encode_key(&self, types: &mut Types, to: &mut Vec<u8>) -> PyResult<()>;
    fn encode(&self, to: &mut Vec<u8>) -> PyResult<()>;
    /// Returns the int that this is, if it fits.
    fn int(&self) -> Option<i64>;
    fn float(&self) -> Option<f64>;
}

impl Output for Bound<'_, PyAny> {
    fn with_pair<T>(&self, with: impl FnOnce(&Self, &Self) -> Result<T, Stop>) -> Result<T, Stop> {
        if let Ok(pair) = self.cast::<PyTuple>()
            && pair.len() == 2
        {
            // A tuple keeps its items, so they need not be counted.
            return with(&*pair.get_borrowed_item(0)?, &*pair.get_borrowed_item(1)?);
        }
        if let Ok(pair) = self.cast::<PyList>()
            && pair.len() == 2
        {
            return with(&pair.get_item(0)?, &pair.get_item(1)?);
        }
        Err(Stop::Raised(NotAPair::new_err((self.clone().unbind(),))))
    }

    fn with_field<T>(&self, at: usize, of: usize, with: impl FnOnce(&Self) -> T) -> Option<T> {
        if let Ok(tuple) = self.cast::<PyTuple>()
            && tuple.len() == of
        {
            return Some(with(&*tuple.get_borrowed_item(at).ok()?));
        }
        let list = self.cast::<PyList>().ok().filter(|list| list.len() == of)?;
        Some(with(&list.get_item(at).ok()?))
    }

    fn encode_key(&self, types: &mut Types, to: &mut Vec<u8>) -> PyResult<()> {
        keys::encode(self, types, to)
    }

    fn encode(&self, to: &mut Vec<u8>) -> PyResult<()> {
        values::encode(self, to)
    }

    fn int(&self) -> Option<i64> {
        self.cast_exact::<PyInt>().ok()?.extract().ok()
    }

    fn float(&self) -> Option<f64> {
        Some(self.cast_exact::<PyFloat>().ok()?.value())
    }
}

impl BatchRow<'_, '_> {
    /// Returns the key and the value of a pair.
    pub fn pair(&self) -> Result<(Self, Self), Stop> {
        if let BatchPart::Tuple(parts) = self.part
            && let [key, value] = &parts[..]
        {
            return Ok((BatchRow { part: key, ..*self }, BatchRow { part: value, ..*self }));
        }
        Err(Stop::Raised(Python::attach(|py| {
            let mut record = Vec::new();
            let shown = self.encode(&mut record).and_then(|()| values::decode(py, &mut &record[..]));
            shown.map_or_else(|error| error, |shown| NotAPair::new_err((shown.unbind(),)))
        })))
    }
}

impl Output for BatchRow<'_, '_> {
    fn with_pair<T>(&self, with: impl FnOnce(&Self, &Self) -> Result<T, Stop>) -> Result<T, Stop> {
        let (key, value) = self.pair()?;
        with(&key, &value)
    }

    fn with_field<T>(&self, at: usize, of: usize, with: impl FnOnce(&Self) -> T) -> Option<T> {
        match self.part {
            BatchPart::Tuple(parts) if parts.len() == of => Some(with(&BatchRow { part: &parts[at], ..*self })),
            _ => None,
        }
    }

    fn encode_key(&self, types: &mut Types, to: &mut Vec<u8>) -> PyResult<()> {
        keys::encode_row(*self, types, to);
        Ok(())
    }

    fn encode(&self, to: &mut Vec<u8>) -> PyResult<()> {
        values::encode_row(*self, to)
    }

    fn int(&self) -> Option<i64> {
        if let Item::Int(number) = self.item() { Some(number) } else { None }
    }

    fn float(&self) -> Option<f64> {
        if let Item::Float(number) = self.item() { Some(number) } else { None }
    }
}
