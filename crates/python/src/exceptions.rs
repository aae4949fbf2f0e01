//! Exceptions that the Python side of the package catches, and the words for what is at fault.

use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyTypeError};
use pyo3::pyclass;

create_exception!(_native, NotAPair, PyTypeError, "A record that is no pair; its argument is the record.");
create_exception!(_native, NoOrder, PyTypeError, "A key by which records cannot be sorted.");
create_exception!(
    _native,
    StageFailed,
    PyException,
    "An error of the engine; its argument describes it, as a dictionary."
);

/// The code of an error of a map or reduce function.
#[pyclass(frozen, eq, eq_int, rename_all = "SCREAMING_SNAKE_CASE")]
#[derive(Clone, Copy, PartialEq)]
pub enum Code {
    /// The Python side has logged what failed.
    Failed = 1,
    /// A value does not fit the form.
    Unfit = 2,
    /// The text is not UTF-8.
    NotUtf8 = 3,
    /// A key needs a header.
    UnfitKey = 4,
}

/// The cause of an error of the engine.
#[pyclass(frozen, eq, hash, rename_all = "SCREAMING_SNAKE_CASE")]
#[derive(Clone, Copy, Eq, Hash, PartialEq)]
pub enum Fault {
    Died,
    Input,
    Resource,
    Cancelled,
    Setting,
    Other,
}
