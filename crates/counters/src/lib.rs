//! The components of a machine, its counters, and its highest rates.
//!
//! ```text
//!  files      the text of files in /proc and /sys; in tests, of a recorded machine
//!  topology   processors, cores, caches, NUMA nodes
//!  memory     bytes, limits, huge pages
//!  access     the counters that can be read, and why others cannot
//!  card       all of these, as text and as JSON
//!  load       the share of the processors that other programs took during a measurement
//!  stream     reads, copies and triads of memory by several threads
//!  probe      a little work on memory, whose time tells how busy the memory is
//!  traffic    memory traffic of programs (resctrl)
//!  storage    reads of a file from the page cache and from its disk
//!  sleep      the reason for which a thread sleeps
//!  file_locks the locks on files that processes hold
//!  threads    the states of a program's threads at one moment
//!  ceilings   rates of memory and storage for each number of threads
//!  kept       stored ceilings of this host
//! ```
//!
//! Every reader of a file is a function of its text, so tests can cover machines that are not at hand.
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

#![cfg_attr(not(test), warn(clippy::too_many_lines))]

pub mod files;
pub mod access;
pub mod kernel_symbols;
pub mod load;
pub mod memory;
pub mod stream;
pub mod probe;
pub mod traffic;
pub mod storage;
pub mod topology;
pub mod sleep;
pub mod file_locks;
pub mod threads;
pub mod units;
pub mod card;
pub mod ceilings;
pub mod kept;
