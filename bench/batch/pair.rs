//! Two programs that differ in nothing but their demand for memory bandwidth, to measure how they are scheduled.
//!
//!     rustc -O bench/batch/pair.rs -o pair
//!     ./pair triad 100       # a[i] = b[i] + 3 c[i] over 3 x 64 MiB, 100 times
//!     ./pair compute 100     # as long a computation in registers, about
use std::hint::black_box;

const NUMBERS: usize = 8 << 20;
/// Steps of a computation that takes about as long as a pass of the triad.
const STEPS: u64 = 20_000_000;

fn triad(passes: u64) {
    let (mut a, b, c) = (vec![1.0; NUMBERS], vec![2.0; NUMBERS], vec![0.5; NUMBERS]);
    for _ in 0..passes {
        for ((a, b), c) in a.iter_mut().zip(&b).zip(&c) {
            *a = *b + 3.0 * *c;
        }
        black_box(&mut a[0]);
    }
}

fn compute(passes: u64) {
    let mut state = 1_u64;
    for _ in 0..passes * STEPS {
        state = black_box(state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1));
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let passes = arguments.get(2).and_then(|passes| passes.parse().ok()).expect("pair triad|compute PASSES");
    match arguments[1].as_str() {
        "triad" => triad(passes),
        "compute" => compute(passes),
        other => panic!("no such program: {other}"),
    }
}
