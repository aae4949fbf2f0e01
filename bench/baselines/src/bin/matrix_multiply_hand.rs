//! Matrix product by hand, with the `gemm` crate's kernel. Prints `trace`, `sum` and `corner` (last row, last column).

use baselines::matrix::Matrix;
use baselines::{arguments, fail};

fn main() {
    let ([a, b], [threads]) = arguments(
        "matrix_multiply_hand A.npy B.npy [--threads N]",
        [("--threads", "2")],
    );
    let threads: usize = threads
        .parse()
        .unwrap_or_else(|_| fail("--threads needs a number"));
    let (a, b) = (Matrix::read(&a), Matrix::read(&b));
    if a.columns != b.rows {
        fail(format!(
            "{} x {} times {} x {} is no product",
            a.rows, a.columns, b.rows, b.columns
        ));
    }
    let mut product = vec![0.0; a.rows * b.columns];
    let band = a.rows.div_ceil(threads).max(1);
    std::thread::scope(|scope| {
        for (out, rows) in product
            .chunks_mut(band * b.columns)
            .zip(a.values.chunks(band * a.columns))
        {
            let b = &b;
            scope.spawn(move || {
                let (m, k, n) = (rows.len() / b.rows, b.rows, b.columns);
                // SAFETY: the three matrices have these sizes, rows follow each other, and `out` is this thread's alone.
                unsafe {
                    gemm::gemm(
                        m,
                        n,
                        k,
                        out.as_mut_ptr(),
                        1,
                        n as isize,
                        false,
                        rows.as_ptr(),
                        1,
                        k as isize,
                        b.values.as_ptr(),
                        1,
                        n as isize,
                        0.0,
                        1.0,
                        false,
                        false,
                        false,
                        gemm::Parallelism::None,
                    );
                }
            });
        }
    });
    println!(
        "trace\t{:.3}",
        product.iter().step_by(b.columns + 1).sum::<f64>()
    );
    println!("sum\t{:.3}", product.iter().sum::<f64>());
    println!("corner\t{:.3}", product.last().copied().unwrap_or(0.0));
}
