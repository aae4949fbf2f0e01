//! One worker's end of an exchange.

use std::io;

use crate::mr_search::table::mixed;

/// One worker's end of an exchange. Each call may receive pairs, which go to `take`.
pub trait Exchange {
    /// Gives a pair to a worker.
    fn give(&mut self, to: usize, pair: [u64; 2], take: &mut impl FnMut([u64; 2])) -> io::Result<()>;

    /// Ends the step: returns when all pairs of all workers for this one have been taken.
    fn end_step(&mut self, take: &mut impl FnMut([u64; 2])) -> io::Result<()>;
}

/// Returns the worker whose partition a key is in.
#[inline]
pub fn partition(key: u64, workers: usize) -> usize {
    // The table uses the lower half of the bits.
    (((mixed(key) >> 32) * workers as u64) >> 32) as usize
}
