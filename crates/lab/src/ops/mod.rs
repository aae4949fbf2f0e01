//! OPS (Cheng et al. 2020; docs/bibliography.md): records to sort, as its benchmarks and Gristmill's plugin for Spark
//! have them.
//!
//! Its measurements need Spark: they are in `bench/spark`.

pub mod records;
pub mod terasort;
