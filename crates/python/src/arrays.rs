//! Shared arrays: the engine's shared outputs, lent to Python by address.
//!
//! ```text
//!  the process of the job      Array::load | run a stage | Array::store
//!  a worker, in map            each view is lent to NumPy while the Python functions run; then the engine merges it
//! ```

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::sync::Arc;

use bytemuck::{cast_slice, cast_slice_mut};
use gristmill::types::Ending;
use gristmill::{Job, MapReduce, SharedOutput};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

macro_rules! types {
    ($($name:literal $kind:ident $number:ty),*) => {
        /// A shared output of one of the types that there are.
        pub enum Output {
            $($kind(SharedOutput<$number>)),*
        }

        impl Output {
            fn new(name: String, kind: &str, len: usize) -> PyResult<Output> {
                Ok(match kind {
                    $($name => Output::$kind(SharedOutput::new(name, len).map_err(io::Error::other)?),)*
                    kind => return Err(PyValueError::new_err(format!("no shared array has elements of type {kind}"))),
                })
            }

            /// Lets a job write this array.
            pub fn written_by<'j, J: MapReduce, E: Ending<J>>(&'j self, job: Job<'j, J, E>) -> Job<'j, J, E> {
                match self {
                    $(Output::$kind(output) => job.writes(output)),*
                }
            }

            fn load(&mut self, file: &mut File) -> io::Result<()> {
                file.read_exact(match self {
                    $(Output::$kind(output) => cast_slice_mut(output.values_mut())),*
                })
            }

            fn store(&mut self, file: &mut File) -> io::Result<()> {
                file.write_all(match self {
                    $(Output::$kind(output) => cast_slice(output.values())),*
                })
            }
        }

        /// Calls `then` with the addresses of this worker's views of `outputs`, which are valid until it returns.
        pub fn with_views<R>(
            outputs: &[Arc<Output>],
            addresses: &mut Vec<usize>,
            then: impl FnOnce(&[usize]) -> R,
        ) -> R {
            let Some((first, others)) = outputs.split_first() else { return then(addresses) };
            match &**first {
                $(Output::$kind(output) => output.write(|view| {
                    addresses.push(view.as_mut_ptr().expose_provenance());
                    with_views(others, addresses, then)
                })),*
            }
        }
    };
}

types!(
    "float64" F64 f64, "float32" F32 f32, "int64" I64 i64, "uint64" U64 u64, "int32" I32 i32, "uint32" U32 u32,
    "uint8" U8 u8
);

/// A shared array, as the process of a job has it.
#[pyclass]
pub struct Array(pub Arc<Output>);

#[pymethods]
impl Array {
    #[new]
    fn new(name: String, kind: &str, len: usize) -> PyResult<Array> {
        Output::new(name, kind, len).map(|output| Array(Arc::new(output)))
    }

    /// Reads the elements from a file.
    fn load(&mut self, path: PathBuf) -> PyResult<()> {
        Ok(self.alone().load(&mut File::open(path)?)?)
    }

    /// Writes the elements to a file.
    fn store(&mut self, path: PathBuf) -> PyResult<()> {
        Ok(self.alone().store(&mut File::options().write(true).open(path)?)?)
    }
}

impl Array {
    fn alone(&mut self) -> &mut Output {
        Arc::get_mut(&mut self.0).expect("no stage runs meanwhile")
    }
}
