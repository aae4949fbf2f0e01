//! Compares ways to read the memory as a probe of how busy it is.
//!
//!     rustc --edition 2024 -O bench/batch/probe.rs -o probe
//!     ./probe 20 25          # 25 readings of each kind, 20 ms apart: the medians in us, by kind
use std::hint::black_box;
use std::time::{Duration, Instant};

const BYTES: usize = 64 << 20;
const LINE: usize = 8;

unsafe extern "C" {
    fn madvise(start: *mut f64, bytes: usize, advice: i32) -> i32;
}

/// Returns memory in huge pages, or in small ones.
fn memory(huge: bool) -> Vec<f64> {
    let mut memory: Vec<f64> = Vec::with_capacity(BYTES / 8);
    let before = memory.as_ptr().align_offset(2 << 20);
    let (huge_page, no_huge_page) = (14, 15);
    // SAFETY: the range lies inside the unused memory of the vector, and the advice does not change what it holds.
    unsafe { madvise(memory.as_mut_ptr().add(before), BYTES - (2 << 20), if huge { huge_page } else { no_huge_page }) };
    memory.resize(BYTES / 8, 1.0);
    memory
}

/// Reads 256 lines in an order that the processor cannot guess.
fn lines(memory: &mut [f64], at: &mut usize) {
    let last = memory.len() / LINE - 1;
    let place = |number: usize| {
        let mut line = number & last;
        for factor in [0x2545_F491_usize, 0x9E37_79B1] {
            line = (line ^ (line >> 9)).wrapping_mul(factor) & last;
        }
        line * LINE
    };
    black_box((*at..*at + 256).map(|number| memory[place(number)]).sum::<f64>());
    *at += 256;
}

/// Reads 256 KiB in order.
fn stream(memory: &mut [f64], at: &mut usize) {
    let begin = *at % (memory.len() - 32768);
    black_box(memory[begin..begin + 32768].iter().map(|number| number.to_bits()).fold(0_u64, u64::wrapping_add));
    *at += 32768;
}

/// Computes triads of 240 KiB.
fn triads(memory: &mut [f64], at: &mut usize) {
    let array = memory.len() / 3;
    let (a, rest) = memory.split_at_mut(array);
    let (b, c) = rest.split_at(array);
    let begin = *at % (array - 10240 + 1);
    let piece = begin..begin + 10240;
    for ((a, b), c) in a[piece.clone()].iter_mut().zip(&b[piece.clone()]).zip(&c[piece]) {
        *a = b + 3.0 * c;
    }
    black_box(&mut a[begin]);
    *at += 10240;
}

/// Computes triads over 240 KiB that are in no cache; they must be put out again.
fn put_out(memory: &mut [f64], _: &mut usize) {
    triads(&mut memory[..3 * 10240], &mut 0);
}

/// Puts these triads out of all caches.
fn put_out_again(memory: &[f64]) {
    // SAFETY: the lines lie inside the memory, and their content stays the same.
    unsafe {
        for number in memory[..3 * 10240].iter().step_by(LINE) {
            std::arch::x86_64::_mm_clflush(std::ptr::from_ref(number).cast());
        }
        std::arch::x86_64::_mm_mfence();
    }
}

type Read = fn(&mut [f64], &mut usize);

fn main() {
    let numbers: Vec<u64> = std::env::args().skip(1).filter_map(|word| word.parse().ok()).collect();
    let [pause_ms, count] = numbers[..] else { panic!("two numbers") };
    let kinds: [(&str, bool, Read); 6] = [
        ("lines", false, lines),
        ("lines, huge pages", true, lines),
        ("stream, huge pages", true, stream),
        ("triads", false, triads),
        ("triads, huge pages", true, triads),
        ("triads that are put out, small pages", false, put_out),
    ];
    for (name, huge, read) in kinds {
        let (mut memory, mut at) = (memory(huge), 0);
        let mut reading = || {
            std::thread::sleep(Duration::from_millis(pause_ms));
            let mut piece = || {
                let began = Instant::now();
                read(&mut memory, &mut at);
                let took = began.elapsed();
                if name.contains("put out") {
                    put_out_again(&memory);
                }
                took.as_secs_f64() * 1e6
            };
            // Two pieces to warm up, and the faster one of two.
            let [_, _, one, other] = [piece(), piece(), piece(), piece()];
            one.min(other)
        };
        let mut readings: Vec<f64> = (0..count).map(|_| reading()).collect();
        readings.sort_unstable_by(f64::total_cmp);
        println!("{name}\t{:.2}", readings[readings.len() / 2]);
    }
}
