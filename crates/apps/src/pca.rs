//! Principal components: means, covariances, and the directions of greatest variance.
//!
//! Rows are observations, columns variables. The means are subtracted first. Every block on or above the diagonal of
//! the (symmetric) covariance matrix is then one map task, a product of two sets of columns. Workers read the data
//! from the memory that they share with the process that started them, so only results travel.

use gristmill::{Bytes, Chunk, Emit, Input, Job, MapReduce, Order, Outcome, ProgramError, Records, Summary};
use gristmill_os::vectors::with_widest;
use nalgebra::{DMatrix, DMatrixView, DMatrixViewMut, Dyn, MatrixView, SymmetricEigen};

use crate::error::{Error, Result};
use crate::matrix::Matrix;
use crate::number::overflow;

/// The maximum number of columns. The covariances of more would take more than 512 GiB.
const COLUMNS_MAX: usize = 1 << 18;

/// The number of columns in a block: large enough that the product outweighs its transport, small enough for many
/// tasks.
const BLOCK: usize = 128;

/// The answer.
#[derive(Clone, Debug)]
pub struct Pca {
    /// The number of observations.
    pub rows: usize,
    /// The mean of each variable.
    pub means: Vec<f64>,
    /// The covariances of all pairs of variables (divided by the number of observations less one).
    pub covariance: Matrix,
    /// The leading components, the one with the largest variance first.
    pub components: Vec<Component>,
    /// The columns vary, but all variances are below the smallest number with all its digits, about 2.2e-308: the
    /// covariances have lost digits, or are 0.
    pub is_too_small: bool,
}

/// A direction in the space of the variables.
#[derive(Clone, Debug)]
pub struct Component {
    /// The variance along it.
    pub variance: f64,
    /// Its share of the total variance, 0 to 1.
    pub share: f64,
    /// A vector of length 1; its largest entry is positive.
    pub direction: Vec<f64>,
}

impl Pca {
    /// Analyses `data` and finds `components` leading components (0 for covariances only); `run` runs the job.
    ///
    /// # Errors
    /// Fewer than two observations; more components than variables; numbers so large that a covariance overflows, or
    /// so small that components cannot be told apart; an error of `run`.
    pub fn of<E: From<Error>>(
        data: Matrix,
        components: usize,
        run: impl FnOnce(Job<'_, Covariances>) -> std::result::Result<Outcome<Covariances>, E>,
    ) -> std::result::Result<(Pca, Summary), E> {
        let (rows, columns) = (data.rows, data.columns);
        if rows < 2 {
            return Err(Error::Question(format!("covariances need two rows or more, and there are {rows}")).into());
        }
        if components > columns {
            let what = format!("{components} components were asked for, and {columns} variables have only as many");
            return Err(Error::Question(what).into());
        }
        if columns > COLUMNS_MAX {
            let what = format!("{columns} columns have too many covariances; there may be {COLUMNS_MAX} at most");
            return Err(Error::Question(what).into());
        }
        let (centred, means) = with_widest(|| centre(data));
        let varies = centred.values.iter().any(|value| *value != 0.0);
        let program = Covariances { centred };
        let (pieces, summary) = run(program.job()?)?;
        let mut covariance = Matrix { rows: columns, columns, values: vec![0.0; columns * columns] };
        for ((row, first), piece) in pieces.iter() {
            let at = row as usize * columns + first as usize;
            for (value, bytes) in covariance.values[at..].iter_mut().zip(piece.as_chunks::<8>().0) {
                *value = f64::from_le_bytes(*bytes);
            }
        }
        if let Some(at) = covariance.values.iter().position(|value| !value.is_finite()) {
            let [first, second] = [at / columns, at % columns].map(|before| before + 1);
            return Err(overflow(format_args!("the covariance of columns {first} and {second}")).into());
        }
        mirror(&mut covariance);
        // Products of such numbers have lost their digits.
        let mut variances = covariance.values.iter().step_by(columns + 1);
        let is_too_small = varies && variances.all(|variance| *variance < f64::MIN_POSITIVE);
        if is_too_small && components > 0 {
            return Err(Pca::too_small().into());
        }
        let components = leading(&covariance, components)?;
        Ok((Pca { rows, means, covariance, components, is_too_small }, summary))
    }

    /// Returns the error for covariances that have lost their digits ([`Pca::is_too_small`]).
    ///
    /// ```
    /// assert!(gristmill_apps::Pca::too_small().to_string().ends_with("scale the input"));
    /// ```
    pub fn too_small() -> Error {
        let what = "the variances of all columns are below the smallest number with all its digits, about 2.2e-308; scale the input";
        Error::Question(what.into())
    }
}

/// Subtracts from every column its mean.
///
/// A sum of large numbers that lie close together is rounded by more than they differ, and so the mean is slightly
/// wrong. A second pass over the differences finds that error and removes it.
#[inline(always)]
fn centre(mut data: Matrix) -> (Matrix, Vec<f64>) {
    let mut means = vec![0.0; data.columns];
    for _ in 0..2 {
        let left = means_of(&data);
        for row in data.values.chunks_exact_mut(data.columns) {
            row.iter_mut().zip(&left).for_each(|(value, mean)| *value -= mean);
        }
        means.iter_mut().zip(left).for_each(|(mean, left)| *mean += left);
    }
    (data, means)
}

/// Returns the mean of every column, with the rounding error of its sum.
#[inline(always)]
fn means_of(data: &Matrix) -> Vec<f64> {
    let mut means = vec![0.0; data.columns];
    for row in data.values.chunks_exact(data.columns) {
        means.iter_mut().zip(row).for_each(|(mean, value)| *mean += value);
    }
    let rows = data.rows as f64;
    for (column, mean) in means.iter_mut().enumerate() {
        // The mean of numbers is finite, though their sum may not be.
        let of_parts = || data.values[column..].iter().step_by(data.columns).map(|value| value / rows).sum();
        *mean = if mean.is_finite() { *mean / rows } else { of_parts() };
    }
    means
}

/// Copies the part above the diagonal to below it.
fn mirror(matrix: &mut Matrix) {
    for row in 0..matrix.rows {
        for column in 0..row {
            matrix.values[row * matrix.columns + column] = matrix.values[column * matrix.columns + row];
        }
    }
}

fn leading(covariance: &Matrix, components: usize) -> Result<Vec<Component>> {
    if components == 0 {
        return Ok(Vec::new());
    }
    let n = covariance.columns;
    let whole: f64 = covariance.values.iter().step_by(n + 1).sum();
    // Each eigenvalue takes two or three iterations; values that are not finite would never converge.
    let parts = SymmetricEigen::try_new(DMatrix::from_row_slice(n, n, &covariance.values), f64::EPSILON, 100 * n)
        .filter(|parts| parts.eigenvalues.iter().all(|variance| variance.is_finite()))
        .ok_or_else(|| Error::Question("the eigenvectors of the covariances were not found: they overflow".into()))?;
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|a, b| parts.eigenvalues[*b].total_cmp(&parts.eigenvalues[*a]));
    let component = |column: usize| {
        let mut direction: Vec<f64> = parts.eigenvectors.column(column).iter().copied().collect();
        let largest = direction.iter().copied().max_by(|a, b| a.abs().total_cmp(&b.abs())).unwrap_or(0.0);
        if largest < 0.0 {
            direction.iter_mut().for_each(|entry| *entry = -*entry);
        }
        // No variance is negative: that is the error of rounding.
        let variance = Some(parts.eigenvalues[column]).filter(|variance| *variance > 0.0).unwrap_or(0.0);
        Component { variance, share: if whole > 0.0 { variance / whole } else { 0.0 }, direction }
    };
    Ok(order.into_iter().take(components).map(component).collect())
}

/// Computes the covariances of data whose columns have mean 0.
pub struct Covariances {
    centred: Matrix,
}

impl Covariances {
    /// Makes a job with one record, which is one task, per block on or above the diagonal.
    fn job(&self) -> Result<Job<'_, Covariances>> {
        let columns = self.centred.columns as u32;
        let starts = || (0..columns).step_by(BLOCK);
        let blocks: Vec<u8> = starts()
            .flat_map(|i| starts().filter(move |j| *j >= i).flat_map(move |j| [i.to_le_bytes(), j.to_le_bytes()]))
            .flatten()
            .collect();
        let input = Input::bytes("the covariance matrix", &blocks)?;
        // The pieces, the matrix assembled from them, and the memory for its eigenvectors.
        let square_bytes = self.centred.columns.pow(2) * size_of::<f64>();
        let job = Job::new(self, input).holds(self.centred.bytes(), 5 * square_bytes);
        Ok(job.records(Records::Fixed(8)).split_bytes(8).order(Order::Unordered))
    }
}

impl MapReduce for Covariances {
    /// The row, and the first column of the piece.
    type Key = (u32, u32);
    /// The piece of the row as little-endian f64.
    type Value = Bytes;

    fn map(&self, chunk: &mut Chunk<'_>, out: &mut impl Emit<(u32, u32), Bytes>) -> Result<(), ProgramError> {
        let (rows, columns) = (self.centred.rows, self.centred.columns);
        // The library is column-major, so our rows are its columns.
        let data = DMatrixView::from_slice(&self.centred.values, columns, rows);
        let mut product = Vec::new();
        let mut piece = Vec::new();
        for block in chunk.bytes().as_chunks::<8>().0 {
            let [i, j] =
                [0, 4].map(|at| u32::from_le_bytes([block[at], block[at + 1], block[at + 2], block[at + 3]]) as usize);
            let (height, width) = (BLOCK.min(columns - i), BLOCK.min(columns - j));
            product.resize(height * width, 0.0);
            let transposed = MatrixView::<_, Dyn, Dyn, Dyn, Dyn>::from_slice_with_strides(
                &self.centred.values[i..],
                rows,
                height,
                columns,
                1,
            );
            DMatrixViewMut::from_slice(&mut product, width, height).gemm(
                1.0 / (rows - 1) as f64,
                &data.rows(j, width),
                &transposed,
                0.0,
            );
            for (row, values) in (i..).zip(product.chunks_exact(width)) {
                piece.clear();
                piece.extend(values.iter().flat_map(|value| value.to_le_bytes()));
                out.emit((row as u32, j as u32), &piece);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use gristmill::Isolation;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Variances of numbers about 10^15 were ten times too large.
        #[test]
        fn covariances_of_numbers_far_from_0_are_those_of_their_differences(
            small in prop::collection::vec([0i64..4, -3i64..3], 20..200),
            far in prop::sample::select(vec![0i64, 1_000_000_000, 1_000_000_000_000_000]),
        ) {
            let values = small.iter().flatten().map(|number| (far + number) as f64).collect();
            let data = Matrix { rows: small.len(), columns: 2, values };
            // Tests share a process, so the workers are threads.
            let found = Pca::of::<Error>(data, 0, |job| Ok(job.workers(1).isolation(Isolation::Thread).run()?));
            let (found, _) = found.expect("it ends");
            let count = small.len() as i64;
            let sum = |of: &dyn Fn(&[i64; 2]) -> i64| small.iter().map(of).sum::<i64>();
            for (row, column) in [(0, 0), (0, 1), (1, 1)] {
                let products = count * sum(&|pair| pair[row] * pair[column]);
                let exact = (products - sum(&|pair| pair[row]) * sum(&|pair| pair[column])) as f64 / (count * (count - 1)) as f64;
                let covariance = found.covariance.values[2 * row + column];
                prop_assert!((covariance - exact).abs() <= 1e-9, "{covariance}, not {exact}");
            }
            for column in 0..2 {
                let exact = far as f64 + sum(&|pair| pair[column]) as f64 / count as f64;
                prop_assert!((found.means[column] - exact).abs() <= 1e-15 + 2.0 * f64::EPSILON * exact.abs());
            }
        }
    }
}
