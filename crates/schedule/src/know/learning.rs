//! The parameters of learning.

use crate::know::blocks::Buckets;
use crate::know::contention::Thresholds;
use crate::know::phases::Similarity;

/// The parameters of learning.
#[derive(Clone, Debug, PartialEq)]
pub struct Learning {
    /// The meaning of a vector's elements.
    pub buckets: Buckets,
    /// The rule by which two quanta belong to one phase.
    pub similarity: Similarity,
    /// The thresholds of little contention.
    pub thresholds: Thresholds,
    /// The coverage from which a program's profile is used.
    pub coverage_min: f64,
    /// A program that ran for a smaller share of the quantum has too few samples to determine its phase.
    pub ran_min: f64,
    /// With fewer sampled addresses than this, the phase of the quantum before continues.
    pub addresses_min: usize,
    /// Until an execution has left its current phase once, the next phase is the one that followed in earlier
    /// executions (beyond the paper).
    pub earlier_transitions: bool,
    /// The least share of processor time that choosing must have saved, once that was measured (beyond the paper;
    /// without counters).
    pub saved_min: f64,
}

impl Default for Learning {
    /// Pieces of 64 bytes, and the paper's coverage of 80 %.
    fn default() -> Learning {
        Learning {
            buckets: Buckets::Bytes(64),
            similarity: Similarity::default(),
            thresholds: Thresholds::default(),
            coverage_min: 0.8,
            ran_min: 0.1,
            addresses_min: 0,
            earlier_transitions: false,
            saved_min: 0.01,
        }
    }
}
