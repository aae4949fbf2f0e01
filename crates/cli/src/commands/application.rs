//! The interface of applications: a way to run, and workloads for the comparison of strategies.

use crate::commands::generate::{Dataset, Size};
use crate::terminal::failure::Failure;

/// A subcommand that runs jobs.
pub trait Application {
    /// The workloads that `gristmill experiment` runs.
    const WORKLOADS: &'static [Workload] = &[];

    fn run(&self) -> Result<(), Failure>;
}

/// A command line for the comparison of strategies.
pub struct Workload {
    /// The name, one word, for command lines.
    pub name: &'static str,
    pub title: &'static str,
    /// The input to generate, if it reads any.
    pub input: Option<Dataset>,
    /// The description of the input.
    pub reads: fn(Size) -> &'static str,
    /// The subcommand and its options; the input follows.
    pub command: fn(Size) -> &'static str,
    pub pairs: Pairs,
}

/// The kind of pairs that map emits. A strategy may need a kind, which includes all later kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd)]
pub enum Pairs {
    /// Values without a combiner.
    Any,
    /// Values with a combiner.
    Combining,
    /// Values with a combiner, and keys that are small numbers.
    Dense,
}
