//! Figures 7 and 8: ten groups with several sources of knowledge, forty executions each.

use std::collections::BTreeMap;
use std::sync::Arc;

use fastrand::Rng;
use gristmill_schedule::{
    Key, Knowledge, Learned, Learning, ProgramWork, Reason, Settings, Store, ideal_average_bandwidth,
};

use super::exact::Profiled;
use super::group::{Nothing, Outcome, Programs, run_group};
use super::offline::{Measured, Polynomial};
use super::paper::{BENCHMARKS, Benchmark, OVERHEAD};
use super::simulation::{Cursor, Ground, Trace};
use super::table_2::accuracy;

/// A source of knowledge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Method {
    /// Used bandwidth and a corrected target. The user provides times and requests.
    Offline,
    /// The paper's method: earlier executions.
    Across,
    /// Profiles of all programs.
    Exact,
    /// Earlier executions, with all extensions beyond the paper.
    Beyond,
}

/// The methods in the order of the paper's figure 8, then ours.
pub const METHODS: [Method; 4] = [Method::Offline, Method::Across, Method::Exact, Method::Beyond];

/// A group of programs, ready to run.
#[derive(Clone, Debug)]
pub struct Team {
    /// The name.
    pub name: String,
    /// The programs.
    pub programs: Vec<(Key, Arc<Trace>)>,
}

impl Team {
    /// Makes a group of the paper's programs.
    pub fn new(name: &str, programs: &Programs, members: &[&'static Benchmark]) -> Team {
        Team { name: name.into(), programs: programs.group(members) }
    }

    /// Makes a group of random programs, two to four per processor.
    pub fn random(name: &str, programs: &Programs, processors: usize, rng: &mut Rng) -> Team {
        let count = rng.usize(2 * processors..=4 * processors);
        let members: Vec<&Benchmark> = (0..count).map(|_| &BENCHMARKS[rng.usize(0..BENCHMARKS.len())]).collect();
        Team::new(name, programs, &members)
    }

    /// Returns the true ideal average bandwidth.
    pub fn ideal_average(&self, processors: usize) -> f64 {
        let works: Vec<ProgramWork> = self.programs.iter().map(|(_, trace)| trace.left(Cursor::default())).collect();
        ideal_average_bandwidth(&works, processors)
    }
}

/// One execution of a group (a point of figure 7).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Execution {
    /// The time from the arrival of all to the end of the last.
    pub makespan_us: f64,
    /// The mean time of a program from its arrival to its end.
    pub turnaround_us: f64,
    /// The mean coverage of its programs afterwards, if they are learned.
    pub coverage: f64,
    /// The mean accuracy of their times alone afterwards.
    pub accuracy: f64,
    /// The share of quanta in which the scheduler chose the programs.
    pub chosen: f64,
}

/// All executions of a group, in the system's order and with each method.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// The name of the group.
    pub name: String,
    /// The number of programs.
    pub programs: usize,
    /// Its ideal average bandwidth.
    pub ideal_average: f64,
    /// Executions in the system's order, without overhead.
    pub linux: Vec<Execution>,
    /// Executions with each method, in chronological order: knowledge from earlier executions grows.
    pub methods: BTreeMap<Method, Vec<Execution>>,
}

impl Comparison {
    /// Returns the gain of each execution over the system's mean: 0.05 is 5 % faster.
    pub fn gains(&self, method: Method) -> Vec<f64> {
        let mean = self.linux.iter().map(|one| one.makespan_us).sum::<f64>() / self.linux.len() as f64;
        self.methods.get(&method).into_iter().flatten().map(|one| mean / one.makespan_us - 1.0).collect()
    }
}

/// Runs a group `rounds` times with each method and in the system's order. `store` holds what was learned before.
pub fn compare(
    ground: Ground,
    team: &Team,
    store: &Store,
    correction: Polynomial,
    rounds: usize,
    seed: u64,
) -> Comparison {
    let mut rng = Rng::with_seed(seed);
    let charged = Ground { overhead: OVERHEAD, ..ground };
    let (paper, beyond) = (Settings::paper(), Settings::default());
    let given: BTreeMap<Key, ProgramWork> =
        team.programs.iter().map(|(key, trace)| (key.clone(), trace.left(Cursor::default()))).collect();
    let mut linux = Vec::new();
    let mut methods: BTreeMap<Method, Vec<Execution>> = BTreeMap::new();
    let mut stores: BTreeMap<Method, Store> = BTreeMap::new();
    for _ in 0..rounds {
        let seed = rng.u64(..);
        linux.push(execution(&run_group(ground, &team.programs, Nothing, &paper, seed)));
        for method in METHODS {
            let done = match method {
                Method::Offline => {
                    let knowledge = Measured::new(given.clone(), correction);
                    execution(&run_group(charged, &team.programs, knowledge, &paper, seed))
                }
                Method::Exact => {
                    let knowledge = Profiled::new(&team.programs, paper.quantum_us);
                    execution(&run_group(charged, &team.programs, knowledge, &paper, seed))
                }
                Method::Across | Method::Beyond => {
                    let known = stores.remove(&method).unwrap_or_else(|| store.clone());
                    let settings = if method == Method::Across { &paper } else { &beyond };
                    let knowledge = Learned::new(known, Learning::default());
                    let outcome = run_group(charged, &team.programs, knowledge, settings, seed);
                    let mut done = execution(&outcome);
                    let known = outcome.knowledge.into_store();
                    let count = team.programs.len() as f64;
                    let mean =
                        |of: &dyn Fn(&(Key, Arc<Trace>)) -> f64| team.programs.iter().map(of).sum::<f64>() / count;
                    done.coverage = mean(&|(key, _)| known.coverage(&key.build));
                    let exact = |work: ProgramWork, trace: &Trace| accuracy(work.alone_us, trace.alone_us());
                    done.accuracy = mean(&|(key, trace)| known.work(key, 1).map_or(0.0, |work| exact(work, trace)));
                    stores.insert(method, known);
                    done
                }
            };
            methods.entry(method).or_default().push(done);
        }
    }
    let ideal_average = team.ideal_average(ground.processors);
    Comparison { name: team.name.clone(), programs: team.programs.len(), ideal_average, linux, methods }
}

fn execution<K: Knowledge>(outcome: &Outcome<K>) -> Execution {
    let all: u64 = outcome.reasons.values().sum();
    let chosen = outcome.reasons.get(&Reason::Chosen).copied().unwrap_or(0);
    Execution {
        makespan_us: outcome.makespan_us,
        turnaround_us: outcome.turnaround_us,
        coverage: 0.0,
        accuracy: 0.0,
        chosen: chosen as f64 / all as f64,
    }
}

/// Targets tried for each group of the training, as shares of its ideal average bandwidth.
const SHARES: [f64; 9] = [0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.3];

/// Trains [`Method::Offline`]: finds the best target for random groups by trial and fits a polynomial to the results.
/// Also returns the points: ideal averages and best targets.
pub fn train(
    ground: Ground,
    programs: &Programs,
    groups: usize,
    rounds: usize,
    seed: u64,
) -> (Polynomial, Vec<(f64, f64)>) {
    let mut rng = Rng::with_seed(seed);
    let charged = Ground { overhead: OVERHEAD, ..ground };
    let points: Vec<(f64, f64)> = (0..groups)
        .map(|_| {
            let team = Team::random("training", programs, ground.processors, &mut rng);
            let ideal_average = team.ideal_average(ground.processors);
            let given: BTreeMap<Key, ProgramWork> =
                team.programs.iter().map(|(key, trace)| (key.clone(), trace.left(Cursor::default()))).collect();
            let seeds: Vec<u64> = (0..rounds).map(|_| rng.u64(..)).collect();
            let time_us = |share: f64| -> f64 {
                let run = |seed: &u64| {
                    let knowledge = Measured::new(given.clone(), Polynomial([0.0, share, 0.0]));
                    run_group(charged, &team.programs, knowledge, &Settings::paper(), *seed).makespan_us
                };
                seeds.iter().map(run).sum()
            };
            let times = SHARES.map(time_us);
            let best = (0..SHARES.len()).min_by(|a, b| times[*a].total_cmp(&times[*b])).unwrap_or(0);
            (ideal_average, SHARES[best] * ideal_average)
        })
        .collect();
    (Polynomial::fitted(&points).unwrap_or(Polynomial::IDENTITY), points)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bandwidth::interval::Interval;
    use crate::bandwidth::paper::{ALONE_US, GROUPS};
    use crate::bandwidth::table_2::table_2;

    /// A small comparison: three groups and three executions instead of ten and forty.
    #[test]
    fn exact_knowledge_gains_more_than_learned_and_learned_more_than_no_knowledge() {
        let ground = Ground::paper();
        let programs = Programs::new(1, ALONE_US);
        let (_, store) = table_2(ground, &programs, 4, 30, 1);
        let groups = [&GROUPS[0], &GROUPS[3], &GROUPS[8]];
        let compared: Vec<Comparison> = groups
            .iter()
            .map(|group| {
                compare(
                    ground,
                    &Team::new(group.name, &programs, &group.members()),
                    &store,
                    Polynomial([0.0, 0.9, 0.0]),
                    3,
                    1,
                )
            })
            .collect();
        let gain = |method| {
            let means: Vec<f64> = compared.iter().map(|group| Interval::of(&group.gains(method)).mean).collect();
            Interval::of(&means).mean
        };
        let [offline, across, exact, beyond] = METHODS.map(gain);
        assert!(exact > across && across > offline, "{offline} {across} {exact}");
        assert!((0.017..0.057).contains(&across), "{across}");
        assert!(beyond > across, "{beyond} {across}");
        for group in &compared {
            let learned = &group.methods[&Method::Across];
            assert!(learned.iter().all(|one| one.accuracy > 0.9 && one.coverage > 0.8), "{learned:?}");
        }
    }

    #[test]
    fn without_a_store_the_order_is_the_system_s_and_only_the_overhead_is_paid() {
        let ground = Ground::paper();
        let programs = Programs::new(1, ALONE_US);
        let team = Team::new(GROUPS[1].name, &programs, &GROUPS[1].members());
        let compared = compare(ground, &team, &Store::default(), Polynomial::IDENTITY, 2, 1);
        let first = compared.methods[&Method::Across][0];
        assert_eq!(first.chosen, 0.0);
        let gain = compared.gains(Method::Across)[0];
        assert!((-0.045..-0.02).contains(&gain), "{gain}");
    }

    #[test]
    fn training_finds_a_target_below_the_ideal_average_for_used_bandwidths() {
        let (correction, points) = train(Ground::paper(), &Programs::new(1, ALONE_US), 4, 1, 5);
        assert_eq!(points.len(), 4);
        assert!(points.iter().map(|(ideal, best)| best / ideal).sum::<f64>() < 4.0, "{points:?}");
        assert!(correction.at(110.0) > 30.0, "{correction:?}");
    }
}
