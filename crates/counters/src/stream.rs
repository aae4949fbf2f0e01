//! Reads, copies and triads of memory by several threads, as in STREAM (McCalpin 1995).
//!
//! ```text
//!  read    sum += a[i]               8 bytes
//!  copy    c[i] = a[i]              16 bytes
//!  triad   a[i] = b[i] + 3 c[i]     24 bytes
//! ```
//!
//! Arrays are at least four times the last-level caches. Each thread first writes its own part of them, so that it
//! lies in the memory of the thread's node. All threads begin each pass together. The time of a pass is from the
//! first start to the last end, and the best pass counts. As in STREAM, the reads that a processor does for the sake
//! of a write are not counted.

use std::hint::black_box;
use std::sync::{Barrier, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use gristmill_os::machine::pin_to_cpu;
use gristmill_os::memory::HugeArray;
use gristmill_os::vectors::with_widest;

/// Rates in bytes per second, each the best of its passes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Rates {
    /// Reading.
    pub read: f64,
    /// Reading and writing the same amount.
    pub copy: f64,
    /// Reading two numbers and writing one.
    pub triad: f64,
}

/// The numbers in a huge page.
const NUMBERS: usize = 1 << 18;
type Block = HugeArray<f64, NUMBERS>;
/// The size of a block. An array is a whole number of blocks per thread.
pub const BLOCK_BYTES: u64 = (NUMBERS * size_of::<f64>()) as u64;

/// The number of independent sums. A single one would wait for itself.
const LANES: usize = 32;

/// The kernels, in the order in which they run.
const KERNELS: [fn(&mut [Block; 3]); 3] = [read, copy, triad];

fn read([a, ..]: &mut [Block; 3]) {
    let sums = with_widest(
        #[inline(always)]
        || {
            let mut sums = [0.0; LANES];
            for numbers in a.chunks_exact(LANES) {
                for (sum, number) in sums.iter_mut().zip(numbers) {
                    *sum += number;
                }
            }
            sums
        },
    );
    black_box(sums);
}

fn copy([a, _, c]: &mut [Block; 3]) {
    c.copy_from_slice(&a[..]);
    black_box(&mut c[0]);
}

fn triad([a, b, c]: &mut [Block; 3]) {
    with_widest(
        #[inline(always)]
        || {
            for ((a, b), c) in a.iter_mut().zip(b.iter()).zip(c.iter()) {
                *a = *b + 3.0 * *c;
            }
        },
    );
    black_box(&mut a[0]);
}

/// Measures with a thread on each of `processors`. Each of the three arrays has `array_bytes` in total, at least
/// [`BLOCK_BYTES`] per thread. The first of `passes` + 1 passes does not count.
pub fn measure(processors: &[usize], array_bytes: u64, passes: usize) -> Rates {
    let blocks = (array_bytes.div_ceil(BLOCK_BYTES) as usize).div_ceil(processors.len()).max(1);
    let together = Barrier::new(processors.len());
    let times = Mutex::new(vec![Span::default(); KERNELS.len() * passes]);
    thread::scope(|scope| {
        for &processor in processors {
            let (together, times) = (&together, &times);
            scope.spawn(move || {
                // If the thread may not be bound, the kernel chooses.
                let _ = pin_to_cpu(processor);
                let mut arrays: Vec<[Block; 3]> =
                    (0..blocks).map(|_| [1.0, 2.0, 0.5].map(|value| Block::filled(&value))).collect();
                for (at, kernel) in KERNELS.into_iter().enumerate() {
                    for pass in 0..=passes {
                        together.wait();
                        let began = Instant::now();
                        arrays.iter_mut().for_each(kernel);
                        let ended = Instant::now();
                        if let Some(pass) = pass.checked_sub(1) {
                            let mut times = times.lock().expect("no thread panics while it has it");
                            times[at * passes + pass].extend(began, ended);
                        }
                    }
                }
            });
        }
    });
    let times = times.into_inner().expect("no thread panicked");
    let bytes = processors.len() as f64 * blocks as f64 * BLOCK_BYTES as f64;
    let best = |kernel: usize| {
        let of = &times[kernel * passes..(kernel + 1) * passes];
        let least = of.iter().map(Span::length).min().unwrap_or_default();
        bytes / least.as_secs_f64().max(1e-9)
    };
    Rates { read: best(0), copy: 2.0 * best(1), triad: 3.0 * best(2) }
}

/// The time from the first start to the last end.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Span(Option<(Instant, Instant)>);

impl Span {
    pub(crate) fn extend(&mut self, began: Instant, ended: Instant) {
        let (first, last) = self.0.unwrap_or((began, ended));
        self.0 = Some((first.min(began), last.max(ended)));
    }

    pub(crate) fn length(&self) -> Duration {
        self.0.map_or(Duration::ZERO, |(began, ended)| ended - began)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_compute_like_stream() {
        let mut arrays = [1.0, 2.0, 0.5].map(|value| Block::filled(&value));
        triad(&mut arrays);
        assert!(arrays[0].iter().all(|number| *number == 3.5));
        copy(&mut arrays);
        assert!(arrays[2].iter().all(|number| *number == 3.5));
        read(&mut arrays);
    }

    #[test]
    fn rates_are_above_zero_for_one_thread_and_for_two_on_one_processor() {
        let processor = gristmill_os::machine::cpus_allowed().expect("allowed")[0];
        for processors in [&[processor][..], &[processor, processor]] {
            let rates = measure(processors, 1, 1);
            assert!([rates.read, rates.copy, rates.triad].iter().all(|rate| *rate > 1e6 && *rate < 1e13), "{rates:?}");
        }
    }
}
