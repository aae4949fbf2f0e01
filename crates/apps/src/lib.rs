//! The applications, one file each: those of the papers (docs/bibliography.md), and others.
//!
//! An application takes its input and a closure that runs the job it makes. The caller thus decides how the job runs
//! (workers, isolation, buffer).
//!
//! ```
//! use gristmill::{Input, Isolation};
//! use gristmill_apps::BytePairs;
//!
//! let input = Input::bytes("pairs", &[0, 1, 1, 3, 2, 5])?;
//! let run = |job: gristmill::Job<'_, BytePairs>| {
//!     // Doctests share a process, so the workers are threads.
//!     job.workers(2).isolation(Isolation::Thread).run().map_err(gristmill_apps::Error::from)
//! };
//! let (line, _) = BytePairs::fit(input, run)?;
//! assert_eq!((line.slope, line.intercept, line.r), (2.0, 1.0, Some(1.0)));
//! # Ok::<(), gristmill_apps::Error>(())
//! ```

#![cfg_attr(not(test), warn(clippy::too_many_lines))]

mod error;
mod file_format;
mod npy;
#[cfg(feature = "images")]
mod pictures;
mod histogram;
mod row;
mod plain_row;
mod sort;
mod number;
mod sum;
mod binned;
mod rounded;
mod heading;
mod field_stream;
mod columns;
mod fields;
mod group_by;
mod describe;
mod linear_regression;
mod matrix;
#[cfg(fuzzing)]
#[doc(hidden)]
pub mod fuzz;
mod kmeans;
mod matrix_multiply;
mod palindromes;
mod pca;
mod tile_search;
mod tokens;
mod string_match;
mod word_count;

pub use binned::BinnedSum;
pub use columns::Column;
pub use describe::{DescribeBy, Described};
pub use error::{Error, Result};
pub use file_format::{Control, FileFormat, Found as FoundFormat};
pub use group_by::{CountBy, NumberPairs, SumBy};
pub use heading::{Dialect, Header};
pub use histogram::{CHANNELS, Counts, Histogram};
pub use kmeans::{Clusters, KMeans, Points, Start};
pub use linear_regression::{BytePairs, Columns, Fit, Line};
pub use matrix::Matrix;
pub use matrix_multiply::{MatrixMultiply, Product, Way};
pub use npy::npy_header;
pub use number::{Number, Overflow};
pub use palindromes::{Algorithm, Palindromes};
pub use pca::{Component, Covariances, Pca};
pub use rounded::RoundedSum;
pub use sort::{SortLines, SortLinesBy, SortTera, TERA_KEY_BYTES, TERA_RECORD_BYTES, TERA_RECORDS};
pub use string_match::{Counts as Matches, Keys};
pub use sum::{Content, RowsLeftOut, Sum};
pub use tile_search::{Board, Found, TileSearch};
pub use word_count::{UnicodeWords, Words, alpha_words, space_words};

/// Almost valid input, for tests.
#[cfg(test)]
#[path = "../../engine/tests/common/nearly.rs"]
mod nearly;
