//! The figures and tables of the paper, each asked again.
//!
//! ```text
//!  words        tables in Markdown, curves, and numbers
//!  speed_up     figures 1, 4, 8 and 17: Phoenix with more workers
//!  allocators   figures 3 and 16: jemalloc against the C library's
//!  locks        figures 5 and 9: the kernel's share
//!  channels     figures 10 and 11: a queue with a lock, and pages that are remapped
//!  against      figures 13, 15 and 18: DMR against Phoenix
//!  caches       figure 14: misses of hash and array
//!  exchange     section 4.2: pipeline and barrier
//!  start_up     figures 19, 20 and 21
//!  pairs        table 1: pairs and keys
//!  best         table 2: the best strategy of each application
//! ```

pub mod words;
pub mod speed_up;
pub mod allocators;
pub mod locks;
pub mod channels;
pub mod against;
pub mod caches;
pub mod exchange;
pub mod start_up;
pub mod pairs;
pub mod best;
