//! Objects of any type as bytes: their pickles.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// Returns the pickle of a value, of protocol 5.
pub fn pickle<'py>(value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
    let py = value.py();
    let name = intern!(py, "dumps");
    // By name if it has one that other processes know, else with its class.
    let pickled = match py.import(intern!(py, "pickle"))?.call_method1(name, (value, 5)) {
        Ok(pickled) => pickled,
        Err(_) => py.import(intern!(py, "cloudpickle"))?.call_method1(name, (value, 5))?,
    };
    Ok(pickled.cast_into::<PyBytes>()?)
}

/// Returns the value of a pickle.
pub fn unpickle<'py>(py: Python<'py>, bytes: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    py.import(intern!(py, "pickle"))?.call_method1(intern!(py, "loads"), (PyBytes::new(py, bytes),))
}
