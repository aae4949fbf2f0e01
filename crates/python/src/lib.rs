//! The native part of the Python package `gristmill`: it runs the stages of a job on the engine.
//!
//! ```text
//!  the host process               the process of the job              its workers
//!  gm.….collect()     plan ->     Stage::run -> Job          forks    Program::map -> the Python functions
//!  decode             <- blocks of records, progress, errors          Program::reduce
//! ```

// Sorted: a module imports only from those above it (ci/rooms.py).
mod exceptions;
mod options;
mod pickles;
mod batches;
mod keys;
mod values;
mod columns;
mod groups;
mod outputs;
mod reducers;
mod folds;
mod frames;
mod arrays;
mod stream;
mod program;
mod timelines;
mod stage;

use pyo3::pymodule;

#[pymodule]
mod _native {
    use crate::frames::Frames;
    use crate::stage::{Request, Stage, describe, summarise};
    use crate::stream::Stream;
    use crate::{keys, stage, values};
    use pyo3::prelude::*;
    use pyo3::types::{PyBytes, PyDict};

    #[pymodule_export]
    use crate::arrays::Array;
    #[pymodule_export]
    use crate::batches::Batch;
    #[pymodule_export]
    use crate::columns::Columns;
    #[pymodule_export]
    use crate::exceptions::{Code, Fault, NoOrder, NotAPair, StageFailed};
    #[pymodule_export]
    use crate::folds::{End, How};
    #[pymodule_export]
    use crate::groups::Partitions;
    #[pymodule_export]
    use crate::options::listed;
    #[pymodule_export]
    use crate::program::Form;
    #[pymodule_export]
    use crate::reducers::Reducers;
    #[pymodule_export]
    use crate::stage::Made;
    #[pymodule_export]
    use crate::timelines::drawn;
    #[pymodule_export]
    use crate::values::{count, decode_all, decode_into};

    /// Returns the bytes of a key; the types of the numbers in it; and, if it is odd, the key as a value, else
    /// nothing. Of equal keys the bits of the types count together, and the least values.
    #[pyfunction]
    fn encode_key<'py>(key: &Bound<'py, PyAny>) -> PyResult<(Bound<'py, PyBytes>, u32, Bound<'py, PyBytes>)> {
        let (mut bytes, mut types, mut odd) = (Vec::new(), keys::Types::default(), Vec::new());
        keys::encode(key, &mut types, &mut bytes)?;
        if types.is_odd() {
            types = keys::Types::default();
            values::encode(key, &mut odd)?;
        }
        Ok((PyBytes::new(key.py(), &bytes), types.0, PyBytes::new(key.py(), &odd)))
    }

    /// Reads a key back from what `encode_key` returns.
    #[pyfunction]
    fn decode_key<'py>(py: Python<'py>, bytes: &[u8], types: u32, odd: &[u8]) -> PyResult<Bound<'py, PyAny>> {
        match odd {
            [] => keys::decode(py, bytes, keys::Types(types)),
            mut odd => values::decode(py, &mut odd),
        }
    }

    /// Returns the bytes by which a key is sorted.
    #[pyfunction]
    fn encode_sorted<'py>(key: &Bound<'py, PyAny>, descending: bool) -> PyResult<Bound<'py, PyBytes>> {
        let mut bytes = Vec::new();
        keys::encode_sorted(key, descending, &mut bytes)?;
        Ok(PyBytes::new(key.py(), &bytes))
    }

    /// Returns the bytes of a value.
    #[pyfunction]
    fn encode_value<'py>(value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
        let mut bytes = Vec::new();
        values::encode(value, &mut bytes)?;
        Ok(PyBytes::new(value.py(), &bytes))
    }

    /// Runs a stage. Returns what another stage reads, if it is to be kept, and statistics.
    #[pyfunction]
    fn run<'py>(py: Python<'py>, request: Request<'py>) -> PyResult<(Option<Made>, Bound<'py, PyDict>)> {
        let (frames, keep) = (Frames::new(stage::pipe(request.pipe)?, request.sent), request.keep);
        let failed = |error: gristmill::Error| match describe(py, &error, frames.sent()) {
            Ok(told) => StageFailed::new_err(told.unbind()),
            Err(other) => other,
        };
        let stream = request.stream.map(Stream::new).transpose()?;
        let stage = Stage::new(request, stream).map_err(failed)?;
        let (made, summary) = py.detach(|| stage.run(&frames, keep)).map_err(failed)?;
        Ok((made, summarise(py, &summary)?))
    }

    /// Returns the number of processors that this process may keep busy.
    #[pyfunction]
    fn processors() -> usize {
        gristmill_os::machine::processors().usable
    }

    /// Lets this process be killed when the thread that forked it ends.
    #[pyfunction]
    fn die_with_parent() -> PyResult<()> {
        Ok(rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))
            .map_err(std::io::Error::from)?)
    }
}
