//! MR-Search (Döbbelin et al. 2012; docs/bibliography.md): where memory comes from, and shared memory against messages.
//!
//! ```text
//!  allocator    implementations of malloc
//!  hand_over    one process reads, another counts, with three ways between them
//!  comparisons  the strategies that are compared
//! ```

pub mod allocator;
pub mod hand_over;
pub mod comparisons;
