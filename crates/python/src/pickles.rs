//! Objects of any type as bytes: their pickles.

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyBytes;

/// Returns the pickle of a value, of protocol 5.
pub fn pickle<'py>(value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
    static BY_NAME: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    static WITH_CLASS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let py = value.py();
    // By name if it has one that other processes know, else with its class.
    let pickled = match BY_NAME.import(py, "pickle", "dumps")?.call1((value, 5)) {
        Ok(pickled) => pickled,
        Err(_) => WITH_CLASS.import(py, "cloudpickle", "dumps")?.call1((value, 5))?,
    };
    Ok(pickled.cast_into::<PyBytes>()?)
}

/// Returns the value of a pickle.
pub fn unpickle<'py>(py: Python<'py>, bytes: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    static LOADS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    LOADS.import(py, "pickle", "loads")?.call1((PyBytes::new(py, bytes),))
}
