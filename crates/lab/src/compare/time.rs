//! The time by which programs are compared.

use clap::ValueEnum;

/// Which time of a program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Time {
    /// From start to exit: what a user waits for
    #[default]
    Wall,
    /// Processor time of all its processes: a busy machine disturbs it less
    Processor,
}
