//! Means and covariances by hand; rows are observations, columns variables. Prints `name\tvalue` for the sum of the
//! means, and for the trace, the sum and the last off-diagonal value of the covariance matrix.

use baselines::matrix::Matrix;
use baselines::{arguments, fail, with_simd};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// The number of columns in a block of the covariance matrix.
const BLOCK: usize = 128;

with_simd!(
    fn add_row(sums: &mut [f64], row: &[f64]) {
        add_row_inlined
    }
);

#[inline(always)]
fn add_row_inlined(sums: &mut [f64], row: &[f64]) {
    for (sum, value) in sums.iter_mut().zip(row) {
        *sum += value;
    }
}

fn main() {
    let ([path], [threads]) = arguments("pca_hand FILE.npy [--threads N]", [("--threads", "2")]);
    let threads: usize = threads.parse().unwrap_or_else(|_| fail("--threads needs a number"));
    let mut data = Matrix::read(&path);
    let (n, columns) = (data.rows, data.columns);
    if n < 2 {
        fail(format!("{path}: a covariance needs two rows or more"));
    }
    let mut means = vec![0.0; columns];
    data.values.chunks_exact(columns).for_each(|row| add_row(&mut means, row));
    means.iter_mut().for_each(|mean| *mean /= n as f64);
    for row in data.values.chunks_exact_mut(columns) {
        row.iter_mut().zip(&means).for_each(|(value, mean)| *value -= mean);
    }

    // The matrix is symmetric, so threads claim only the blocks on and above the diagonal.
    let side = columns.div_ceil(BLOCK);
    let pairs: Vec<(usize, usize)> = (0..side).flat_map(|i| (i..side).map(move |j| (i, j))).collect();
    let next = AtomicUsize::new(0);
    struct Shared(*mut f64);
    // SAFETY: threads write disjoint blocks.
    unsafe impl Sync for Shared {}
    let mut covariance = vec![0.0; columns * columns];
    let shared = Shared(covariance.as_mut_ptr());
    std::thread::scope(|scope| {
        for _ in 0..threads {
            let (shared, data, pairs, next) = (&shared, &data, &pairs, &next);
            scope.spawn(move || {
                while let Some(&(i, j)) = pairs.get(next.fetch_add(1, Relaxed)) {
                    let (i, j) = (i * BLOCK, j * BLOCK);
                    let (m, k) = (BLOCK.min(columns - i), BLOCK.min(columns - j));
                    let values = data.values.as_ptr();
                    // SAFETY: only this thread writes block (i, j) of the result; its factors are columns i.. (read
                    // as rows) and columns j.. of the data.
                    unsafe {
                        gemm::gemm(
                            m,
                            k,
                            n,
                            shared.0.add(i * columns + j),
                            1,
                            columns as isize,
                            false,
                            values.add(i),
                            columns as isize,
                            1,
                            values.add(j),
                            1,
                            columns as isize,
                            0.0,
                            1.0 / (n - 1) as f64,
                            false,
                            false,
                            false,
                            gemm::Parallelism::None,
                        );
                    }
                }
            });
        }
    });
    for row in 0..columns {
        for column in 0..row {
            covariance[row * columns + column] = covariance[column * columns + row];
        }
    }
    println!("means\t{:.6}", means.iter().sum::<f64>());
    println!("trace\t{:.6}", covariance.iter().step_by(columns + 1).sum::<f64>());
    println!("sum\t{:.6}", covariance.iter().sum::<f64>());
    println!("corner\t{:.6}", covariance[columns * columns - 2.min(columns)]);
}
