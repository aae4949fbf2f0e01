//! Many programs on many processors: measures the cost of a decision.

use std::sync::Arc;

use fastrand::Rng;
use gristmill_schedule::{Cost, Key, Learned, Learning, Settings};

use super::group::{Programs, run_group};
use super::paper::{BENCHMARKS, OVERHEAD};
use super::simulation::{Bus, Ground, Trace};
use super::table_2::table_2;

/// The result.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale {
    /// N.
    pub programs: usize,
    /// C.
    pub processors: usize,
    /// The time from the start to the end of the last program.
    pub makespan_us: f64,
    /// The cost of decisions.
    pub cost: Cost,
}

impl Scale {
    /// Returns the most expensive decision, as a share of N times C.
    pub fn looks_share(&self) -> f64 {
        self.cost.looks_max as f64 / (self.programs as f64 * self.processors as f64)
    }
}

const COVERAGE_MIN: f64 = 0.95;

/// Runs random programs of two seconds on a machine whose memory scales with its processors. The programs were
/// learned on the paper's machine.
pub fn scale(programs: usize, processors: usize, seed: u64) -> Scale {
    let made = Programs::new(seed, 2e6);
    let (_, store) = table_2(Ground::paper(), &made, 4, 100, seed);
    // A single program with too many new phases would return the choice to the system.
    let is_known = |key: &Key| store.coverage(&key.build) >= COVERAGE_MIN && store.work(key, 1).is_some();
    let known: Vec<(Key, Arc<Trace>)> =
        BENCHMARKS.iter().map(|benchmark| made.of(benchmark)).filter(|(key, _)| is_known(key)).collect();
    let mut rng = Rng::with_seed(seed);
    let group: Vec<(Key, Arc<Trace>)> = (0..programs).map(|_| known[rng.usize(0..known.len())].clone()).collect();
    let paper = Ground::paper();
    let bus = Bus { peak: paper.bus.peak * processors as f64 / paper.processors as f64, ..paper.bus };
    let ground = Ground { processors, bus, overhead: OVERHEAD, ..paper };
    let knowledge = Learned::new(store.clone(), Learning::default());
    let outcome = run_group(ground, &group, knowledge, &Settings::paper(), seed);
    Scale { programs, processors, makespan_us: outcome.makespan_us, cost: outcome.cost }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cost_of_a_decision_grows_with_n_times_c() {
        let [small, wide, long] =
            [(40, 8), (80, 16), (80, 8)].map(|(programs, processors)| scale(programs, processors, 1));
        for scale in [small, wide, long] {
            assert!(scale.cost.selections > 20, "{scale:?}");
            assert!(scale.looks_share() <= 1.0, "{scale:?}");
        }
        let grown = |of: Scale| of.cost.looks_max as f64 / small.cost.looks_max as f64;
        assert!((3.9..4.1).contains(&grown(wide)) && (1.9..2.2).contains(&grown(long)), "{small:?} {wide:?} {long:?}");
    }
}
