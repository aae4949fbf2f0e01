//! The programs that run in a quantum, by their demand for memory bandwidth.
//!
//! ```text
//!  choice     whether programs are chosen, or only observed
//!  counts     what the processor counts of a program
//!  probing    readings of memory beside programs, where the processor counts nothing
//!  addresses  sampled instructions, by the file that they belong to
//!  machine    this machine, as the scheduling policy sees it
//!  means      which of these a machine has, and the run of a queue by them
//! ```

pub mod choice;
pub mod counts;
pub mod probing;
pub mod addresses;
pub mod machine;
pub mod means;
