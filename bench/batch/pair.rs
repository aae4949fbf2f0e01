//! Two programs that differ in little but their demand for memory bandwidth, to measure how they are scheduled.
//!
//! They are two files, because the history knows a program by its file.
//!
//!     rustc --edition 2024 -O bench/batch/pair.rs -o compute
//!     rustc --edition 2024 -O --cfg triad bench/batch/pair.rs -o triad
//!     ./triad 100            # a[i] = b[i] + 3 c[i] over 3 x 64 MiB, 100 times
//!     ./compute 60           # about as long, in registers
use std::hint::black_box;

#[cfg(triad)]
fn work(passes: u64) {
    const NUMBERS: usize = 8 << 20;
    let (mut a, b, c) = (vec![1.0; NUMBERS], vec![2.0; NUMBERS], vec![0.5; NUMBERS]);
    for _ in 0..passes {
        for ((a, b), c) in a.iter_mut().zip(&b).zip(&c) {
            *a = *b + 3.0 * *c;
        }
        black_box(&mut a[0]);
    }
}

#[cfg(not(triad))]
fn work(passes: u64) {
    const STEPS: u64 = 20_000_000;
    let mut state = 1_u64;
    for _ in 0..passes * STEPS {
        state = black_box(state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1));
    }
}

fn main() {
    let passes = std::env::args().nth(1).and_then(|passes| passes.parse().ok());
    work(passes.expect("a number of passes"));
}
