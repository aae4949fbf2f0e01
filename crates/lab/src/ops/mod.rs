//! OPS (Cheng et al. 2020; docs/bibliography.md): its page, and records to sort, as its benchmarks and Gristmill's
//! plugin for Spark have them.
//!
//! ```text
//!  terasort  `gristmill-lab terasort`
//!  record    the runs that `bench/spark` recorded
//!  paper     the page: `gristmill-lab ops`
//! ```
//!
//! Its measurements need Spark: they are in `bench/spark`.

pub mod terasort;
mod record;
pub mod paper;
