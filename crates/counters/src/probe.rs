//! A small probe of the memory: how long a little work takes that needs its bandwidth.
//!
//! A probe computes triads, `a[i] = b[i] + 3 c[i]`, over 240 KiB that are in no cache, four times, and puts them out of
//! the caches again each time; this takes about 80 us. While other processors use the memory, it takes longer, in the
//! same proportion as a program that does nothing else. The first two times bring the processor up to speed after a
//! sleep, and its table of pages; of the other two the faster one counts, because an interrupt slows down one of them
//! at most.
//!
//! Earlier probes told less: single lines in random order waited for page tables more than for memory, and memory that
//! is larger than the caches took up to 50 ms at the start (the record is `bench/runs/2026-11-26-epyc-2core/probe.md`).

use std::hint::black_box;
use std::io;
use std::time::{Duration, Instant};

use gristmill_os::memory::put_out_of_caches;

/// The numbers of each array.
const NUMBERS: usize = 10 << 10;
/// How often the triads are computed, and how often without being timed.
const TIMES: usize = 4;
const WARM_UP: usize = 2;

/// The three arrays, which are in no cache between two uses.
#[derive(Debug)]
pub struct Probe {
    memory: Vec<f64>,
}

impl Probe {
    /// Makes a probe.
    ///
    /// # Errors
    ///
    /// Where the processor does not let programs put memory out of its caches.
    pub fn here() -> io::Result<Probe> {
        let memory = vec![1.0; 3 * NUMBERS];
        match put_out_of_caches(&memory) {
            true => Ok(Probe { memory }),
            false => Err(io::Error::other("this processor does not let programs put memory out of its caches")),
        }
    }

    /// Computes the triads, and returns the time they took once.
    ///
    /// ```
    /// let mut probe = gristmill_counters::probe::Probe::here()?;
    /// assert!(probe.time().as_nanos() > 0);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn time(&mut self) -> Duration {
        let mut times = [(); TIMES].map(|()| {
            let began = Instant::now();
            self.triads();
            let took = began.elapsed();
            put_out_of_caches(&self.memory);
            took
        });
        times[WARM_UP..].sort_unstable();
        times[WARM_UP]
    }

    fn triads(&mut self) {
        let (a, rest) = self.memory.split_at_mut(NUMBERS);
        let (b, c) = rest.split_at(NUMBERS);
        for ((a, b), c) in a.iter_mut().zip(b).zip(c) {
            *a = b + 3.0 * c;
        }
        black_box(a);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_triads_are_computed_in_the_time_that_is_told() {
        let mut probe = Probe::here().expect("a processor that can");
        assert!(!probe.time().is_zero());
        assert_eq!(probe.memory, [vec![4.0; NUMBERS], vec![1.0; 2 * NUMBERS]].concat());
    }
}
