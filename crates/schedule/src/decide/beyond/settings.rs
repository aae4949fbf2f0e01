//! Settings of the scheduler.

use crate::decide::beyond::gate::GateRule;
use crate::decide::beyond::trial::TrialRule;

/// The paper's quantum, which is Linux's.
const QUANTUM_US: f64 = 100_000.0;

/// The scheduler's settings. All except the length of a quantum go beyond the paper.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// The length of a quantum.
    pub quantum_us: f64,
    /// Compute the target before each quantum from the remaining work, instead of once for the whole group.
    pub target_of_the_rest: bool,
    /// A program that arrives later joins the group, and the target is recomputed.
    pub arrivals_join: bool,
    /// Change the order only where the machine shows contention.
    pub gate: Option<GateRule>,
    /// Choose only where a gain was measured, and find out whether there is one. `None`: choose wherever the other
    /// rules allow it.
    pub trial: Option<TrialRule>,
    /// How often addresses are sampled: in every quantum if this is 1, in each fourth if it is 4.
    pub sample_every: u64,
    /// Drop pairs that prove to be wrong.
    pub pairings: bool,
    /// A program runs now if its remaining time, increased by this share, exceeds the ideal remaining time, because
    /// it would end last. Without this rule the programs with a demand near the share run first, and at the end
    /// processors are idle.
    pub late: Option<f64>,
    /// When the ideal time of the remaining work is less than this many quanta, the system decides what runs. Choosing
    /// whole quanta up to the end would leave processors idle.
    pub finish: Option<f64>,
    /// Programs begin when their memory fits, instead of at once.
    pub memory: bool,
    /// At most as many programs run as the quota has processors.
    pub quota: bool,
    /// A program with threads takes that many processors.
    pub threads: bool,
    /// A program that waits for input and output leaves its processor to another.
    pub waits: bool,
}

impl Settings {
    /// Only the paper's policy.
    pub fn paper() -> Settings {
        Settings {
            target_of_the_rest: false,
            arrivals_join: false,
            gate: None,
            pairings: false,
            late: None,
            memory: false,
            quota: false,
            threads: false,
            waits: false,
            ..Settings::default()
        }
    }
}

impl Default for Settings {
    /// All extensions.
    fn default() -> Settings {
        Settings {
            quantum_us: QUANTUM_US,
            target_of_the_rest: true,
            arrivals_join: true,
            gate: Some(GateRule::default()),
            trial: None,
            sample_every: 1,
            pairings: true,
            late: Some(0.5),
            finish: None,
            memory: true,
            quota: true,
            threads: true,
            waits: true,
        }
    }
}
