//! The product of two matrices.
//!
//! A task is a block of rows of the product. Workers read both factors from the memory that they share with the
//! process that started them, and write into a shared output. For comparison they can also emit every row as a pair.
//!
//! Repeated multiplication by one matrix is one job with a step per factor: each step multiplies in place what the
//! previous step has written to the shared output. (A Markov chain works this way: rows of states times a transition
//! matrix.)

use gristmill::{
    Bytes, Chunk, Control, Emit, Input, Job, MapReduce, Next, Order, Outcome, ProgramError, Records, SharedOutput,
    Step, Summary,
};
use nalgebra::{DMatrixView, DMatrixViewMut};

use crate::error::{Error, Result};
use crate::matrix::Matrix;
use crate::number::overflow;

/// Rows of a block. The second factor is packed anew for each block, so a block should not be small; yet there should
/// be several blocks per processor.
const BLOCK_ROWS_MAX: usize = 256;
const BLOCK_ROWS_MIN: usize = 16;
const BLOCKS_PER_PROCESSOR: usize = 2;

/// The way of the product from the workers to the caller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Way {
    /// Through a shared output: twin and diff.
    #[default]
    SharedOutput,
    /// As pairs of a row's number and its bytes.
    Pairs,
}

/// A product of two matrices.
pub struct Product {
    /// The number of rows.
    pub rows: usize,
    /// The number of columns.
    pub columns: usize,
    values: SharedOutput<f64>,
}

impl Product {
    /// Multiplies `a` and `b`; `run` runs the job.
    ///
    /// # Errors
    /// Matrices without numbers; matrices that do not conform (`a` must have as many columns as `b` has rows); a number
    /// of the product beyond the largest `f64`; an error of `run`.
    pub fn of<E: From<Error>>(
        a: &Matrix,
        b: &Matrix,
        way: Way,
        run: impl for<'m> FnOnce(Job<'m, MatrixMultiply<'m>>) -> std::result::Result<Outcome<MatrixMultiply<'m>>, E>,
    ) -> std::result::Result<(Product, Summary), E> {
        let mut product = Product::begin(a, b)?;
        let program = MatrixMultiply { a, b, product: &product.values, way, block_rows: block_rows(a.rows) };
        let job = program.job()?;
        let (pairs, summary) = run(if way == Way::SharedOutput { job.writes(&product.values) } else { job })?;
        if way == Way::Pairs {
            let values = product.values.values_mut();
            for (row, bytes) in pairs.iter() {
                let row = &mut values[row as usize * b.columns..][..b.columns];
                row.iter_mut()
                    .zip(bytes.as_chunks::<8>().0)
                    .for_each(|(value, eight)| *value = f64::from_le_bytes(*eight));
            }
        }
        Ok((product.finite()?, summary))
    }

    /// Multiplies `a` by the square matrix `b` repeatedly, at least once; `run` runs the job in steps
    /// ([`Job::iterate`]).
    ///
    /// # Errors
    /// Those of [`Product::of`]; `b` is not square.
    pub fn of_powers<E: From<Error>>(
        a: &Matrix,
        b: &Matrix,
        times: u32,
        run: impl for<'m> FnOnce(
            Job<'m, MatrixMultiply<'m>>,
            &[u8],
            &mut Control<'_, MatrixMultiply<'m>>,
        ) -> std::result::Result<Summary, E>,
    ) -> std::result::Result<(Product, Summary), E> {
        if b.rows != b.columns {
            let what = format!("{} x {} has no powers: a matrix times itself is square", b.rows, b.columns);
            return Err(Error::Question(what).into());
        }
        let product = Product::begin(a, b)?;
        let way = Way::SharedOutput;
        let program = MatrixMultiply { a, b, product: &product.values, way, block_rows: block_rows(a.rows) };
        let mut control = |step: &mut Step<'_, MatrixMultiply<'_>>| {
            step.set_state(IN_PLACE);
            if step.number() + 1 >= times { Next::Stop } else { Next::Input }
        };
        let summary = run(program.job()?.writes(&product.values), FROM_THE_LEFT, &mut control)?;
        // A row with a number that is not finite has only such numbers from the next step on.
        Ok((product.finite()?, summary))
    }

    /// Refuses a product with a number that is not finite.
    fn finite(mut self) -> Result<Product> {
        let columns = self.columns;
        match self.values().iter().position(|value| !value.is_finite()) {
            None => Ok(self),
            Some(at) => {
                let [row, column] = [at / columns, at % columns].map(|before| before + 1);
                Err(overflow(format_args!("row {row}, column {column} of the product")))
            }
        }
    }

    /// Prepares a product that has not been computed.
    fn begin(a: &Matrix, b: &Matrix) -> Result<Product> {
        if a.columns != b.rows {
            let what = format!(
                "{} x {} times {} x {} is no product: the first factor needs as many columns as the second has rows",
                a.rows, a.columns, b.rows, b.columns
            );
            return Err(Error::Question(what));
        }
        let (rows, columns) = (a.rows, b.columns);
        if rows == 0 || columns == 0 {
            return Err(Error::Question("a factor without numbers has no product".into()));
        }
        Ok(Product { rows, columns, values: SharedOutput::new("product", rows * columns)? })
    }

    /// The numbers: row `r`, column `c` is `values()[r * columns + c]`.
    pub fn values(&mut self) -> &[f64] {
        self.values.values()
    }

    /// Returns the sum of the diagonal, which ends at the last row or the last column.
    pub fn trace(&mut self) -> f64 {
        let (rows, columns) = (self.rows, self.columns);
        self.values().iter().step_by(columns + 1).take(rows.min(columns)).sum()
    }
}

/// States of a step: it multiplies the left factor, or the previous step's result.
const FROM_THE_LEFT: &[u8] = &[0];
const IN_PLACE: &[u8] = &[1];

fn block_rows(rows: usize) -> usize {
    let processors = gristmill_os::machine::processors().usable;
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
    /// Makes a job with one record, which is one task, per block: the number of its first row.
    fn job(&self) -> Result<Job<'_, MatrixMultiply<'m>>> {
        let starts: Vec<u8> =
            (0..self.a.rows).step_by(self.block_rows).flat_map(|row| (row as u64).to_le_bytes()).collect();
        let input = Input::bytes("the rows of the product", &starts)?;
        // Workers have copies of the pages that they change; pairs are collected before they are put in place.
        let product_bytes = self.product.len().saturating_mul(size_of::<f64>());
        let factors_bytes = self.a.bytes() + self.b.bytes();
        let job = Job::new(self, input).holds(factors_bytes, product_bytes.saturating_mul(2));
        Ok(job.records(Records::Fixed(8)).split_bytes(8).order(Order::Unordered))
    }

    /// Computes some rows of the product from the same rows of the left factor.
    fn multiply(&self, left: &[f64], product: &mut [f64]) {
        let (inner, columns) = (self.b.rows, self.b.columns);
        let rows = product.len() / columns;
        // The library is column-major, so our rows are its columns and the factors change places.
        let a = DMatrixView::from_slice(left, inner, rows);
        let b = DMatrixView::from_slice(&self.b.values, columns, inner);
        DMatrixViewMut::from_slice(product, columns, rows).gemm(1.0, &b, &a, 0.0);
    }
}

impl MapReduce for MatrixMultiply<'_> {
    /// The row number.
    type Key = u64;
    /// The row as little-endian f64.
    type Value = Bytes;

    fn map(&self, chunk: &mut Chunk<'_>, out: &mut impl Emit<u64, Bytes>) -> Result<(), ProgramError> {
        let columns = self.b.columns;
        for eight in chunk.bytes().as_chunks::<8>().0 {
            let first = u64::from_le_bytes(*eight) as usize;
            let rows = self.block_rows.min(self.a.rows - first);
            let left = &self.a.values[first * self.a.columns..][..rows * self.a.columns];
            match self.way {
                Way::SharedOutput => self.product.write(|product| {
                    let block = &mut product[first * columns..][..rows * columns];
                    if chunk.state() == IN_PLACE {
                        let before = block.to_vec();
                        self.multiply(&before, block);
                    } else {
                        self.multiply(left, block);
                    }
                }),
                Way::Pairs => {
                    let mut block = vec![0.0; rows * columns];
                    self.multiply(left, &mut block);
                    let mut bytes = Vec::with_capacity(columns * 8);
                    for (row, values) in (first as u64..).zip(block.chunks_exact(columns)) {
                        bytes.clear();
                        bytes.extend(values.iter().flat_map(|value| value.to_le_bytes()));
                        out.emit(row, &bytes);
                    }
                }
            }
        }
        Ok(())
    }
}
