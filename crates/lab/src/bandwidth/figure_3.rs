//! Figure 3: the share of its speed that a program keeps, by the three states of little contention.

use fastrand::Rng;
use gristmill_schedule::{Choice, Decision, Little, Machine, states};

use super::group::Programs;
use super::paper::{ALONE_US, BENCHMARKS};
use super::simulation::{Bus, Ground, Simulated, Submission};

/// One program in one quantum.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// The bandwidth it used, as a share of the peak.
    pub own: f64,
    /// The bandwidth used by all programs.
    pub system: f64,
    /// The state.
    pub state: Option<Little>,
    /// The speed, as a share of the speed alone.
    pub speed: f64,
}

/// Runs random programs on four processors of the paper's machine, as the paper does. Returns `count` random points.
pub fn figure_3(bus: Bus, seed: u64, count: usize) -> Vec<Point> {
    let ground = Ground { processors: 4, bus, sample_us: f64::INFINITY, ..Ground::paper() };
    let (programs, mut rng) = (Programs::new(seed, ALONE_US), Rng::with_seed(seed));
    let mut points = Vec::new();
    while points.len() < 4 * count {
        let submissions = (0..4).map(|_| {
            let (key, trace) = programs.of(&BENCHMARKS[rng.usize(0..BENCHMARKS.len())]);
            Submission { at_us: 0.0, key, trace, memory_bytes: 0 }
        });
        let mut machine = Simulated::new(ground, submissions.collect(), rng.u64(..));
        let mut begin = Vec::new();
        // Four programs run until the first ends.
        loop {
            let decision = Decision { begin, run: Choice::System, sample: true };
            let Ok(quantum) = machine.run(&decision, 100_000.0);
            let Some(quantum) = quantum.filter(|quantum| quantum.ended.is_empty()) else { break };
            begin = quantum.arrived.iter().map(|arrival| arrival.id).collect();
            let used: Vec<f64> = machine.truth().iter().map(|truth| truth.used).collect();
            let states = states(&used, used.iter().sum(), 0.0, ground.bus.peak);
            let system = used.iter().sum::<f64>() / ground.bus.peak;
            points.extend(machine.truth().iter().zip(states).map(|(truth, state)| Point {
                own: truth.used / ground.bus.peak,
                system,
                state,
                speed: truth.alone_us / truth.ran_us,
            }));
        }
    }
    rng.shuffle(&mut points);
    points.truncate(count);
    points
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_in_the_three_states_keep_95_percent_and_others_spread_down_to_60() {
        let points = figure_3(Bus::paper(), 1, 4000);
        let share = |kept: &[&Point], least: f64| {
            kept.iter().filter(|point| point.speed >= least).count() as f64 / kept.len() as f64
        };
        for state in [Little::OwnDemand, Little::System, Little::OnlyOne] {
            let of_state: Vec<&Point> = points.iter().filter(|point| point.state == Some(state)).collect();
            assert!(of_state.len() > 20, "{state:?}: {}", of_state.len());
            let kept = share(&of_state, 0.95);
            assert!(kept > 0.95, "{state:?}: {kept}");
        }
        let others: Vec<&Point> = points.iter().filter(|point| point.state.is_none()).collect();
        // About one percent of them are slower than 60 %.
        let slow = 1.0 - share(&others, 0.6);
        assert!((0.001..0.03).contains(&slow) && share(&others, 0.5) == 1.0, "{slow}");
        assert!(share(&others, 0.65) < 0.98);
        assert!(share(&others, 0.95) < 0.7);
    }
}
