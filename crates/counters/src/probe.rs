//! A small probe of the memory: how long this processor waits for lines that are in no cache.
//!
//! A probe reads four pieces of 256 lines in about 70 us, in an order that the processor cannot guess. While other processors use the memory,
//! it takes longer. The two pieces of warm-up bring the processor and its caches up to speed after a sleep; of the two that are timed the
//! faster one counts, because an interrupt slows down one of them at most.
//!
//! Reads of half a MiB in one go were tried first: on the machine at hand, their median moved between 4.9 and 8.8 us while nothing else ran, that of
//! this order between 15.1 and 16.8.

use std::hint::black_box;
use std::time::{Duration, Instant};

use gristmill_os::memory::leave_out_of_forks;

/// The lines in a piece.
const LINES: usize = 256;
/// The pieces that one probe reads.
const PIECES: usize = 4;
/// The number of pieces that are not timed.
const WARM_UP: usize = 2;
/// The numbers in a line of the cache.
const LINE: usize = 64 / size_of::<u64>();
/// The least and the largest memory of a probe. Where the cache is larger, a line may still be in it when its turn comes again.
const MEMORY_BYTES: [u64; 2] = [64 << 20, 512 << 20];

/// Memory to read, and the number of lines that have been read.
#[derive(Debug)]
pub struct Probe {
    memory: Vec<u64>,
    read: usize,
}

impl Probe {
    /// Makes a probe for a machine with last-level caches of `cache_bytes`. It holds twice as much memory or more, between
    /// 64 and 512 MiB.
    pub fn new(cache_bytes: u64) -> Probe {
        let bytes = cache_bytes.saturating_mul(2).clamp(MEMORY_BYTES[0], MEMORY_BYTES[1]) as usize;
        // A page of zeros that was never written may be one that all share, and so in the cache.
        let mut memory = vec![1; bytes.next_power_of_two() / size_of::<u64>()];
        // With it, each start of a program took 2.8 ms longer.
        leave_out_of_forks(&mut memory);
        Probe { memory, read: 0 }
    }

    /// Reads some lines, and returns the time of a piece.
    ///
    /// ```
    /// let mut probe = gristmill_counters::probe::Probe::new(0);
    /// assert!(probe.read().as_nanos() > 0);
    /// ```
    pub fn read(&mut self) -> Duration {
        let mut least = Duration::MAX;
        for piece in 0..PIECES {
            let began = Instant::now();
            let places = self.read..self.read + LINES;
            black_box(places.fold(0, |sum: u64, number| sum.wrapping_add(self.memory[self.place(number)])));
            if piece >= WARM_UP {
                least = least.min(began.elapsed());
            }
            self.read += LINES;
        }
        least
    }

    /// Returns where the line of this number begins. Each step is reversible, so no line comes twice before all have come.
    fn place(&self, number: usize) -> usize {
        let last = self.memory.len() / LINE - 1;
        let mut line = number & last;
        for factor in [0x2545_F491, 0x9E37_79B1] {
            line = (line ^ (line >> 9)).wrapping_mul(factor) & last;
        }
        line * LINE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_read_once_before_one_is_read_again() {
        let probe = Probe::new(0);
        let lines = probe.memory.len() / LINE;
        let mut read = vec![0; lines];
        for number in 0..lines {
            read[probe.place(number) / LINE] += 1;
        }
        assert!(read.iter().all(|times| *times == 1));
        assert_eq!((lines, probe.place(lines)), ((64 << 20) / 64, probe.place(0)));
    }

    #[test]
    fn a_probe_goes_on_where_the_last_one_ended() {
        let mut probe = Probe::new(0);
        (0..3).for_each(|_| assert!(!probe.read().is_zero()));
        assert_eq!(probe.read, 3 * PIECES * LINES);
    }

    #[test]
    fn memory_is_twice_the_cache_within_bounds() {
        let bytes = |cache: u64| Probe::new(cache).memory.len() * size_of::<u64>();
        assert_eq!([bytes(0), bytes(40 << 20), bytes(1 << 40)], [64 << 20, 128 << 20, 512 << 20]);
    }
}
