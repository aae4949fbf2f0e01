//! The best possible order, for small groups of programs with constant demands.
//!
//! An order divides the time among sets of programs that run together. Let `x_S` be the time of set `S`. Every
//! program must get its work done, `sum of x_S * speed_i(S) = T_i`, and the sum of all `x_S` is to be minimised. Sets
//! with fewer programs than processors are included, so no program has to do more than its work. Such a linear
//! program has an optimal solution with as many sets as programs. All of these are tried, so the result is optimal.

use std::collections::BTreeMap;
use std::sync::Arc;

use gristmill_schedule::{Key, Settings};

use super::exact::Profiled;
use super::group::{Nothing, run_group};
use super::offline::solved;
use super::simulation::{Bus, Ground, Trace};

/// Returns the least time in which all programs of a group end. `works` holds demands and times alone.
pub fn least_time_us(bus: &Bus, processors: usize, works: &[(f64, f64)]) -> f64 {
    let sets: Vec<(u32, Vec<f64>)> = (1..1_u32 << works.len())
        .filter(|set| set.count_ones() as usize <= processors)
        .map(|set| {
            let members: Vec<usize> = (0..works.len()).filter(|at| set >> at & 1 == 1).collect();
            let demands: Vec<f64> = members.iter().map(|at| works[*at].0).collect();
            let by_place: BTreeMap<usize, f64> = members.into_iter().zip(bus.speeds(&demands)).collect();
            (set, (0..works.len()).map(|at| by_place.get(&at).copied().unwrap_or(0.0)).collect())
        })
        .collect();
    let mut least_us = f64::INFINITY;
    let mut chosen: Vec<usize> = (0..works.len()).collect();
    loop {
        let covered = chosen.iter().fold(0, |all, at| all | sets[*at].0);
        if covered.count_ones() as usize == works.len() {
            let row = |at: usize| chosen.iter().map(|set| sets[*set].1[at]).chain([works[at].1]).collect();
            if let Some(times) = solved((0..works.len()).map(row).collect())
                && times.iter().all(|time_us| *time_us >= -1e-6)
            {
                least_us = least_us.min(times.iter().sum());
            }
        }
        // The next choice of the same number of sets.
        let count = chosen.len();
        let Some(at) = (0..count).rev().find(|at| chosen[*at] < sets.len() - (count - at)) else { return least_us };
        chosen[at] += 1;
        for later in at + 1..count {
            chosen[later] = chosen[later - 1] + 1;
        }
    }
}

/// The times of a small group in several orders.
#[derive(Clone, Debug, PartialEq)]
pub struct Small {
    /// The demands of its programs.
    pub demands: Vec<f64>,
    /// The mean time in the system's order.
    pub linux_us: f64,
    /// The mean time with exact knowledge, and without overhead.
    pub exact_us: f64,
    /// The mean time with exact knowledge and the target of the remaining work.
    pub rest_us: f64,
    /// The least possible time.
    pub least_us: f64,
}

/// Runs small groups on two processors whose memory gives 60 requests per microsecond, which one demanding program
/// nearly uses up.
pub fn small_groups(rounds: u64) -> Vec<Small> {
    let groups: [&[f64]; 5] = [
        &[50.0, 50.0, 5.0, 5.0],
        &[50.0, 50.0, 50.0, 5.0, 5.0, 5.0],
        &[50.0, 40.0, 20.0, 10.0, 2.0],
        &[50.0, 45.0, 40.0, 1.0],
        &[5.0, 5.0, 5.0, 5.0],
    ];
    let bus = Bus { peak: 60.0, ..Bus::paper() };
    let ground = Ground { processors: 2, bus, sharing: 0.0, noise: 0.0, swing: 0.0, ..Ground::paper() };
    let alone_us = 5e6;
    groups
        .into_iter()
        .map(|demands| {
            let programs: Vec<(Key, Arc<Trace>)> = demands
                .iter()
                .enumerate()
                .map(|(at, demand)| {
                    let key = Key { build: format!("{at}"), input: "steady".into() };
                    (key, Arc::new(Trace::steady(*demand, alone_us)))
                })
                .collect();
            let mean = |run: &dyn Fn(u64) -> f64| (0..rounds).map(run).sum::<f64>() / rounds as f64;
            let (paper, quantum_us) = (Settings::paper(), Settings::paper().quantum_us);
            let rest = Settings { target_of_the_rest: true, ..paper.clone() };
            let exact = |settings: &Settings, seed| {
                run_group(ground, &programs, Profiled::new(&programs, quantum_us), settings, seed).makespan_us
            };
            let works: Vec<(f64, f64)> = demands.iter().map(|demand| (*demand, alone_us)).collect();
            Small {
                demands: demands.to_vec(),
                linux_us: mean(&|seed| run_group(ground, &programs, Nothing, &paper, seed).makespan_us),
                exact_us: mean(&|seed| exact(&paper, seed)),
                rest_us: mean(&|seed| exact(&rest, seed)),
                least_us: least_time_us(&bus, 2, &works),
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUS: Bus = Bus { peak: 60.0, core_peak: 62.0, gain: 0.05, power: 6.0 };

    #[test]
    fn programs_that_do_not_disturb_each_other_need_their_share_of_the_processors() {
        let least = least_time_us(&BUS, 2, &[(1.0, 4.0), (1.0, 4.0), (1.0, 4.0)]);
        assert!((least - 6.0).abs() < 0.01, "{least}");
        // A program longer than all others together ends last.
        assert!((least_time_us(&BUS, 2, &[(1.0, 9.0), (1.0, 4.0)]) - 9.0).abs() < 0.01);
    }

    #[test]
    fn the_best_order_pairs_heavy_programs_with_light_ones() {
        let least = least_time_us(&BUS, 2, &[(50.0, 1.0), (50.0, 1.0), (5.0, 1.0), (5.0, 1.0)]);
        let mixed = 1.0 / BUS.speeds(&[50.0, 5.0])[0];
        assert!(least < 2.0 * mixed + 1e-6 && least > 1.9 * mixed, "{least} {mixed}");
    }

    #[test]
    fn no_order_is_faster_than_the_oracle() {
        for small in small_groups(2) {
            for time_us in [small.linux_us, small.exact_us, small.rest_us] {
                assert!(time_us > 0.999 * small.least_us, "{small:?}");
            }
        }
    }

    #[test]
    fn with_exact_knowledge_heavy_and_light_programs_come_near_to_the_oracle() {
        let small = &small_groups(3)[0];
        assert!(small.exact_us < 0.91 * small.linux_us, "{small:?}");
        assert!(small.exact_us < 1.05 * small.least_us, "{small:?}");
    }
}
