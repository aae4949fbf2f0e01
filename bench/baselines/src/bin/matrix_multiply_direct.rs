//! Matrix product by worker processes that write directly to shared memory, without a framework, isolation of writes,
//! or detection of deaths. It uses the same kernel and blocks as Gristmill, to measure the cost of twin and diff.
//! Prints `trace`, `sum` and `corner` (last row, last column).

use std::sync::atomic::{AtomicUsize, Ordering};

use baselines::fail;
use baselines::matrix::{factors, print_product};

fn main() {
    let (a, b, workers) = factors("matrix_multiply_direct A.npy B.npy [--workers N]", "--workers");
    let (inner, columns) = (b.rows, b.columns);
    let numbers = a.rows * columns;
    // One OS page for the block counter, then the product.
    // SAFETY: the mapping is new, and zeros are a valid counter and valid numbers.
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
                    // SAFETY: `_exit` does not return.
                    unsafe { libc::_exit(0) };
                }
                let rows = block.min(a.rows - first);
                // SAFETY: the matrices have these sizes, and only this process writes the rows of this block.
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
        // SAFETY: the pointer is valid, and there are this many children.
        if unsafe { libc::wait(&mut status) } < 0 || status != 0 {
            fail(format!("a worker ended with status {status}"));
        }
    }
    // SAFETY: the memory holds this many numbers, and all writers have ended.
    let product = unsafe { std::slice::from_raw_parts(product, numbers) };
    print_product(product, columns);
}
