//! Matrix product by worker processes that write straight into shared memory: no framework, no isolation of what they write,
//! and nothing that would notice a death. The same kernel and the same blocks as Gristmill's, to see what twin and diff
//! costs. Prints `trace`, `sum` and `corner` (last row, last column).

use std::sync::atomic::{AtomicUsize, Ordering};

use baselines::fail;
use baselines::matrix::{factors, print_product};

fn main() {
    let (a, b, workers) = factors("matrix_multiply_direct A.npy B.npy [--workers N]", "--workers");
    let (inner, columns) = (b.rows, b.columns);
    let numbers = a.rows * columns;
    // One OS page for the counter of blocks, then the product.
    // SAFETY: a new mapping; all zero is a valid counter and valid numbers.
    let (next, product) = unsafe {
        let memory = libc::mmap(
            std::ptr::null_mut(),
            4096 + 8 * numbers,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED | libc::MAP_ANONYMOUS,
            -1,
            0,
        );
        if memory == libc::MAP_FAILED {
            fail(std::io::Error::last_os_error());
        }
        (&*memory.cast::<AtomicUsize>(), memory.add(4096).cast::<f64>())
    };
    let block = a.rows.div_ceil(2 * workers).clamp(16, 256);
    for _ in 0..workers {
        // SAFETY: this process has one thread.
        if unsafe { libc::fork() } == 0 {
            loop {
                let first = next.fetch_add(block, Ordering::Relaxed);
                if first >= a.rows {
                    // SAFETY: it does not return.
                    unsafe { libc::_exit(0) };
                }
                let rows = block.min(a.rows - first);
                // SAFETY: the matrices have these sizes, and the rows of a block are this process's alone.
                unsafe {
                    matrixmultiply::dgemm(
                        rows,
                        inner,
                        columns,
                        1.0,
                        a.values[first * inner..].as_ptr(),
                        inner as isize,
                        1,
                        b.values.as_ptr(),
                        columns as isize,
                        1,
                        0.0,
                        product.add(first * columns),
                        columns as isize,
                        1,
                    );
                }
            }
        }
    }
    for _ in 0..workers {
        let mut status = 0;
        // SAFETY: a valid pointer; there are as many children.
        if unsafe { libc::wait(&mut status) } < 0 || status != 0 {
            fail(format!("a worker ended with status {status}"));
        }
    }
    // SAFETY: so many numbers, which nobody writes any more.
    let product = unsafe { std::slice::from_raw_parts(product, numbers) };
    print_product(product, columns);
}
