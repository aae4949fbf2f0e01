//! Ways for the workers of a job to give pairs to each other.
//!
//! ```text
//!  in_threads   lists in a grid, one for each two workers; a barrier ends the step
//!  in_pages     pages of shared memory between processes, read in place
//!  in_messages  messages between processes, through pipes or sockets
//! ```

pub mod in_threads;
pub mod in_pages;
pub mod in_messages;

use std::io;

use super::table::mixed;

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
    ((mixed(key) >> 32) * workers as u64 >> 32) as usize
}
