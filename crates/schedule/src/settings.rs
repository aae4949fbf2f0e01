//! What can be switched on and off.

use crate::gate::GateRule;
use crate::pairings::PairRule;

/// The paper's quantum, which is Linux's.
const QUANTUM_US: f64 = 100_000.0;

/// What the scheduler does. All but the length of a quantum goes beyond the paper.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// The length of a quantum.
    pub quantum_us: f64,
    /// The target is computed before each quantum from what is left to do, and not once for the whole group.
    pub target_of_the_rest: bool,
    /// A program that arrives later becomes part of the group, and the target is computed anew.
    pub arrivals_join: bool,
    /// The order is changed only where the machine shows contention.
    pub gate: Option<GateRule>,
    /// Pairs that were found wrong are dropped.
    pub pairings: Option<PairRule>,
    /// A program runs now if its time left, and this share more, exceeds the ideal time left: it would end last. Without
    /// this rule the programs whose demand is near to the share run first, and at the end processors are idle.
    pub late: Option<f64>,
    /// Programs begin when their memory fits, and not at once.
    pub memory: bool,
    /// No more programs run than the quota has processors.
    pub quota: bool,
    /// A program with threads takes as many processors.
    pub threads: bool,
    /// A program that waits for input and output leaves its processor to another.
    pub waits: bool,
}

impl Settings {
    /// The paper's policy and nothing else.
    pub fn paper() -> Settings {
        Settings {
            quantum_us: QUANTUM_US,
            target_of_the_rest: false,
            arrivals_join: false,
            gate: None,
            pairings: None,
            late: None,
            memory: false,
            quota: false,
            threads: false,
            waits: false,
        }
    }
}

impl Default for Settings {
    /// Everything.
    fn default() -> Settings {
        Settings {
            quantum_us: QUANTUM_US,
            target_of_the_rest: true,
            arrivals_join: true,
            gate: Some(GateRule::default()),
            pairings: Some(PairRule::default()),
            late: Some(0.5),
            memory: true,
            quota: true,
            threads: true,
            waits: true,
        }
    }
}
