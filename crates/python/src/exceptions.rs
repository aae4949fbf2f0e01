//! Exceptions that the Python side of the package catches.

use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyTypeError};

create_exception!(_native, NotAPair, PyTypeError, "A record that is no pair; its argument is the record.");
create_exception!(_native, NoOrder, PyTypeError, "A key by which records cannot be sorted.");
create_exception!(
    _native,
    StageFailed,
    PyException,
    "An error of the engine; its argument describes it, as a dictionary."
);
