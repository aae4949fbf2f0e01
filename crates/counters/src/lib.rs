//! What a machine is made of, what it counts, and how fast it can be at best.
//!
//! ```text
//!  files      the text of files in /proc and /sys; in tests, of a recorded machine
//!  topology   processors, cores, caches, NUMA nodes
//!  memory     bytes, limits, huge pages
//!  access     which counters can be read, and why the others cannot
//!  card       all of it, as text and as JSON
//!  load       what other programs took of the processors while something was measured
//!  stream     reads, copies and triads of memory by several threads
//!  storage    the same for a file: from the page cache, and from its disk
//!  tree       the processes that a process has started
//!  threads    what the threads of a program do at a moment
//!  ceilings   all of these for each number of threads
//!  kept       ceilings of this host that were measured before
//! ```
//!
//! Everything that reads a file is a function of its text, so that machines that are not here can be tested.
//!
//! ```
//! use gristmill_counters::card::Card;
//!
//! let card = Card::here();
//! assert!(!card.topology.processors.is_empty());
//! for (name, value) in card.facts() {
//!     println!("{name}: {value}");
//! }
//! ```

pub mod files;
pub mod access;
pub mod load;
pub mod memory;
pub mod stream;
pub mod storage;
pub mod topology;
pub mod tree;
pub mod threads;
pub mod units;
pub mod card;
pub mod ceilings;
pub mod kept;
