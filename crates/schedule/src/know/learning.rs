//! The parameters of learning.

use crate::know::phases::Similarity;

/// The coverage from which a program's profile is used.
pub const COVERAGE_MIN: f64 = 0.8;
/// The coverage below which a profile that was used is not used any more (beyond the paper). One new phase more or less
/// would change the order of all programs otherwise.
pub const COVERAGE_KEPT: f64 = 0.6;
/// The number of valid samples from which a phase takes only those of quanta in which all programs together demanded
/// little (beyond the paper). The others are valid, too, but a percent or two too slow, and would add up.
pub const SAMPLES_ENOUGH: u64 = 8;
/// A program that ran for a smaller share of the quantum has too few samples to determine its phase.
pub const RAN_MIN: f64 = 0.1;

/// The parameters of learning. By default they are the paper's.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Learning {
    /// The rule by which two quanta belong to one phase.
    pub similarity: Similarity,
    /// With fewer sampled addresses than this, the phase of the quantum before continues.
    pub addresses_min: usize,
    /// Until an execution has left its current phase once, the next phase is the one that followed in earlier
    /// executions (beyond the paper).
    pub earlier_transitions: bool,
}
