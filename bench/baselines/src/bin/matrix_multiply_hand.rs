//! Matrix product by hand, with the `gemm` crate's kernel. Prints `trace`, `sum` and `corner` (last row, last column).

use baselines::matrix::{factors, print_product};

fn main() {
    let (a, b, threads) = factors("matrix_multiply_hand A.npy B.npy [--threads N]", "--threads");
    let mut product = vec![0.0; a.rows * b.columns];
    let band = a.rows.div_ceil(threads).max(1);
    std::thread::scope(|scope| {
        for (out, rows) in product.chunks_mut(band * b.columns).zip(a.values.chunks(band * a.columns)) {
            let b = &b;
            scope.spawn(move || {
                let (m, k, n) = (rows.len() / b.rows, b.rows, b.columns);
                // SAFETY: the three matrices have these sizes, their rows are contiguous, and only this thread writes
                // `out`.
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
    print_product(&product, b.columns);
}
