//! A small probe of the memory: how long a little work takes that needs its bandwidth.
//!
//! A probe computes triads, `a[i] = b[i] + 3 c[i]`, in four pieces of 240 KiB, which takes about 40 us. While other processors use the memory, it takes
//! longer, in the same proportion as a program that does nothing else. The two pieces of warm-up bring the processor and its caches up to speed after a
//! sleep; of the two that are timed the faster one counts, because an interrupt slows down one of them at most.
//!
//! Reads of single lines in random order were the probe before. They waited for page tables more than for memory: beside a program that made triads 1.48 times as slow, they took
//! 1.12 times as long, and 1.6 times as long after a pause as without one. A triad's own pieces in huge pages took 1.47 times as long, after any pause (the record is
//! `bench/runs/2026-11-26-epyc-2core/probe.md`).

use std::hint::black_box;
use std::iter::repeat_n;
use std::time::{Duration, Instant};

use gristmill_os::memory::{HUGE_PAGE_BYTES, leave_out_of_forks, prefer_huge_pages};

/// The numbers of each array in a piece.
const PIECE: usize = 10 << 10;
/// The pieces of one probe.
const PIECES: usize = 4;
/// The number of pieces that are not timed.
const WARM_UP: usize = 2;
/// The least and the largest memory of a probe. Where the cache is larger, a piece may still be in it when its turn comes again.
const MEMORY_BYTES: [u64; 2] = [64 << 20, 512 << 20];
/// The numbers that are written at a time, which begin at a huge page, and the time that this may take. If it takes longer, huge pages are not at hand, and the
/// rest does without.
const STEP: usize = (8 << 20) / size_of::<f64>();
const STEP_TIME: Duration = Duration::from_millis(8);

/// The arrays, and the place of the next piece.
#[derive(Debug)]
pub struct Probe {
    memory: Vec<f64>,
    next: usize,
}

impl Probe {
    /// Makes a probe for a machine with last-level caches of `cache_bytes`. It holds twice as much memory or more, between
    /// 64 and 512 MiB.
    pub fn new(cache_bytes: u64) -> Probe {
        let bytes = cache_bytes.saturating_mul(2).clamp(MEMORY_BYTES[0], MEMORY_BYTES[1]) as usize;
        let numbers = bytes.next_power_of_two() / size_of::<f64>();
        let mut memory = Vec::with_capacity(numbers);
        let mut is_quick = true;
        while memory.len() < numbers {
            let (began, left) = (Instant::now(), numbers - memory.len());
            let unused = memory.spare_capacity_mut();
            let step = (unused.as_ptr().align_offset(HUGE_PAGE_BYTES) + STEP).min(left);
            if is_quick {
                prefer_huge_pages(&mut unused[..step]);
            }
            // A page of zeros that was never written may be one that all share, and so in the cache.
            memory.extend(repeat_n(1.0, step));
            is_quick &= began.elapsed() < STEP_TIME;
        }
        // Else each start of a program copied this memory, or what the kernel notes of it.
        leave_out_of_forks(&mut memory);
        Probe { memory, next: 0 }
    }

    /// Computes some triads, and returns the time of a piece.
    ///
    /// ```
    /// let mut probe = gristmill_counters::probe::Probe::new(0);
    /// assert!(probe.time().as_nanos() > 0);
    /// ```
    pub fn time(&mut self) -> Duration {
        let mut least = Duration::MAX;
        for piece in 0..PIECES {
            let began = Instant::now();
            self.triads();
            if piece >= WARM_UP {
                least = least.min(began.elapsed());
            }
        }
        least
    }

    /// Computes the next piece.
    fn triads(&mut self) {
        let array = self.memory.len() / 3;
        let (a, rest) = self.memory.split_at_mut(array);
        let (b, c) = rest.split_at(array);
        let piece = self.next..self.next + PIECE;
        for ((a, b), c) in a[piece.clone()].iter_mut().zip(&b[piece.clone()]).zip(&c[piece.clone()]) {
            *a = b + 3.0 * c;
        }
        black_box(&mut a[piece.start]);
        self.next = if piece.end + PIECE > array { 0 } else { piece.end };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_pieces_are_computed_before_one_comes_again() {
        let mut probe = Probe::new(0);
        let array = probe.memory.len() / 3;
        for piece in 0..array / PIECE {
            assert_eq!(probe.next, piece * PIECE);
            probe.triads();
        }
        assert_eq!(probe.next, 0);
        let computed = probe.memory.iter().position(|number| *number != 4.0);
        assert_eq!(computed, Some(array / PIECE * PIECE));
    }

    #[test]
    fn a_probe_goes_on_where_the_last_one_ended() {
        let mut probe = Probe::new(0);
        (0..3).for_each(|_| assert!(!probe.time().is_zero()));
        assert_eq!(probe.next, 3 * PIECES * PIECE);
    }

    #[test]
    fn memory_is_twice_the_cache_within_bounds() {
        let bytes = |cache: u64| Probe::new(cache).memory.len() * size_of::<f64>();
        assert_eq!([bytes(0), bytes(40 << 20), bytes(1 << 40)], [64 << 20, 128 << 20, 512 << 20]);
    }
}
