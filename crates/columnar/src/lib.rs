//! Results of Gristmill jobs as folders of Arrow IPC or Parquet files, which all reducers write at once.
//!
//! ```
//! use gristmill::{Chunk, Emit, Input, Isolation, Job, MapReduce, ProgramError};
//! use parquet::arrow::arrow_reader::ParquetRecordBatchReader;
//!
//! /// Counts words.
//! struct Words;
//!
//! impl MapReduce for Words {
//!     type Key = String;
//!     type Value = u64;
//!
//!     fn combiner(&self) -> Option<impl Fn(u64, u64) -> u64> {
//!         Some(|a, b| a + b)
//!     }
//!
//!     fn map(&self, chunk: &mut Chunk<'_>, out: &mut impl Emit<String, u64>) -> Result<(), ProgramError> {
//!         str::from_utf8(chunk.bytes())?.split_whitespace().for_each(|word| out.emit(word, 1));
//!         Ok(())
//!     }
//! }
//!
//! # let dir = tempfile::tempdir()?;
//! let counts = dir.path().join("counts");
//! // This doctest runs beside others in one process, so its workers are threads.
//! let job = Job::new(&Words, Input::bytes("song", b"row row row your boat")?).isolation(Isolation::Thread);
//! job.workers(1).run_into(&gristmill_columnar::parquet(&counts, &["word", "count"])?)?;
//!
//! let file = std::fs::File::open(counts.join("part-00000.parquet"))?;
//! let batch = ParquetRecordBatchReader::try_new(file, 1024)?.next().ok_or("no batch")??;
//! assert_eq!((batch.num_rows(), batch.schema().field(1).name().as_str()), (3, "count"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The fields of keys and values that are tuples become columns of their own. A type of your own becomes one by
//! [`Column`].

mod column;
mod files;

pub use column::{Column, Columns};
pub use files::{arrow, parquet};
