//! Ways for the workers of a job to give pairs to each other.
//!
//! ```text
//!  ends         one worker's end: gives pairs, and ends a step
//!  in_threads   lists in a grid, one for each two workers; a barrier ends the step
//!  in_pages     pages of shared memory between processes, read in place
//!  in_messages  messages between processes, through pipes or sockets
//! ```

mod ends;
pub mod in_threads;
pub mod in_pages;
pub mod in_messages;

pub use ends::{Exchange, partition};
