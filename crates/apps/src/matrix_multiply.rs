//! The product of two matrices.
//!
//! A task is a block of rows of the product. Workers see both factors through the memory that they share with the process
//! that started them, and write into a shared output; or they emit every row as a pair, to compare.

use gristmill::{Bytes, Emit, Input, Job, MapReduce, Order, Outcome, Records, SharedOutput, Split, Summary};
use nalgebra::{DMatrixView, DMatrixViewMut};

use crate::error::{Error, Result};
use crate::matrix::Matrix;

/// Rows of a block: the second factor is packed anew for each block, so it should not be small; and there should be some
/// blocks for each processor.
const BLOCK_ROWS_MAX: usize = 256;
const BLOCK_ROWS_MIN: usize = 16;
const BLOCKS_PER_PROCESSOR: usize = 2;

/// How the product gets from the workers to the caller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Way {
    /// Written into a shared output: twin and diff.
    #[default]
    SharedOutput,
    /// Emitted as pairs of a row's number and its bytes.
    Pairs,
}

/// A product of two matrices.
pub struct Product {
    /// Number of rows.
    pub rows: usize,
    /// Numbers in each row.
    pub columns: usize,
    values: SharedOutput<f64>,
}

impl Product {
    /// Multiplies `a` and `b`; `run` runs the job.
    ///
    /// # Errors
    /// Matrices without numbers, or that do not conform (`a` has as many columns as `b` has rows); or what `run` gives.
    pub fn of<E: From<Error>>(
        a: &Matrix,
        b: &Matrix,
        way: Way,
        run: impl for<'m> FnOnce(Job<'m, MatrixMultiply<'m>>) -> std::result::Result<Outcome<MatrixMultiply<'m>>, E>,
    ) -> std::result::Result<(Product, Summary), E> {
        if a.columns != b.rows {
            let what = format!(
                "{} x {} times {} x {} is no product: the first factor needs as many columns as the second has rows",
                a.rows, a.columns, b.rows, b.columns
            );
            return Err(Error::Question(what).into());
        }
        let (rows, columns) = (a.rows, b.columns);
        if rows == 0 || columns == 0 {
            return Err(Error::Question("a factor without numbers has no product".into()).into());
        }
        let mut values = SharedOutput::new("product", rows * columns).map_err(Error::from)?;
        let program = MatrixMultiply { a, b, product: &values, way, block_rows: block_rows(rows) };
        let job = program.job()?;
        let (pairs, summary) = run(if way == Way::SharedOutput { job.writes(&values) } else { job })?;
        if way == Way::Pairs {
            let values = values.values_mut();
            for (row, bytes) in pairs.iter() {
                let row = &mut values[row as usize * columns..][..columns];
                row.iter_mut()
                    .zip(bytes.as_chunks::<8>().0)
                    .for_each(|(value, eight)| *value = f64::from_le_bytes(*eight));
            }
        }
        Ok((Product { rows, columns, values }, summary))
    }

    /// The numbers: row `r`, column `c` is `values()[r * columns + c]`.
    pub fn values(&mut self) -> &[f64] {
        self.values.values()
    }
}

fn block_rows(rows: usize) -> usize {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    rows.div_ceil(BLOCKS_PER_PROCESSOR * processors).clamp(BLOCK_ROWS_MIN, BLOCK_ROWS_MAX)
}

/// Computes blocks of rows of a product.
pub struct MatrixMultiply<'m> {
    a: &'m Matrix,
    b: &'m Matrix,
    product: &'m SharedOutput<f64>,
    way: Way,
    block_rows: usize,
}

impl<'m> MatrixMultiply<'m> {
    /// One record, and one task, for each block: the number of its first row.
    fn job(&self) -> Result<Job<'_, MatrixMultiply<'m>>> {
        let starts: Vec<u8> =
            (0..self.a.rows).step_by(self.block_rows).flat_map(|row| (row as u64).to_le_bytes()).collect();
        let input = Input::bytes("the rows of the product", &starts)?;
        Ok(Job::new(self, input).records(Records::Fixed(8)).split_bytes(8).order(Order::Unordered))
    }

    /// Computes `product`, some rows of the whole, the first of which is `first`.
    fn multiply(&self, first: usize, product: &mut [f64]) {
        let (inner, columns) = (self.b.rows, self.b.columns);
        let rows = product.len() / columns;
        // Rows of ours are columns of a library that stores matrices the other way round, so the factors change places.
        let a = DMatrixView::from_slice(&self.a.values[first * inner..][..rows * inner], inner, rows);
        let b = DMatrixView::from_slice(&self.b.values, columns, inner);
        DMatrixViewMut::from_slice(product, columns, rows).gemm(1.0, &b, &a, 0.0);
    }
}

impl MapReduce for MatrixMultiply<'_> {
    /// The number of a row.
    type Key = u64;
    /// The row: little-endian f64.
    type Value = Bytes;

    fn map(&self, split: &mut Split<'_>, out: &mut impl Emit<u64, Bytes>) {
        let columns = self.b.columns;
        for eight in split.bytes().as_chunks::<8>().0 {
            let first = u64::from_le_bytes(*eight) as usize;
            let rows = self.block_rows.min(self.a.rows - first);
            match self.way {
                Way::SharedOutput => self.product.write(|product| {
                    self.multiply(first, &mut product[first * columns..][..rows * columns]);
                }),
                Way::Pairs => {
                    let mut block = vec![0.0; rows * columns];
                    self.multiply(first, &mut block);
                    let mut bytes = Vec::with_capacity(columns * 8);
                    for (row, values) in (first as u64..).zip(block.chunks_exact(columns)) {
                        bytes.clear();
                        bytes.extend(values.iter().flat_map(|value| value.to_le_bytes()));
                        out.emit(row, &bytes);
                    }
                }
            }
        }
    }
}
