//! Figures 7 and 8: ten groups with several methods, forty executions each.

use std::collections::BTreeMap;
use std::sync::Arc;

use fastrand::Rng;
use gristmill_schedule::{
    Key, Knowledge, Learned, Learning, ProgramWork, Reason, Settings, Store, ideal_average_bandwidth,
};

use super::exact::Profiled;
use super::group::{Nothing, Outcome, Programs, run_group};
use super::offline::{Measured, Polynomial};
use super::paper::{BENCHMARKS, Benchmark, CHOOSING, OVERHEAD};
use super::simulation::{Cursor, Ground, Trace};
use super::table_2::accuracy;

/// A method: a source of knowledge, and the bandwidth that it aims at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Method {
    /// Used bandwidth and a corrected target. The user provides times and requests.
    Offline,
    /// The paper's method: earlier executions.
    Across,
    /// Profiles of all programs.
    Exact,
    /// Profiles of all programs, to fill the peak of the memory.
    Peak,
    /// Earlier executions, with all extensions beyond the paper.
    Beyond,
}

/// The methods in the order of the paper's figure 8, then the one it argues against, then ours.
pub const METHODS: [Method; 5] = [Method::Offline, Method::Across, Method::Exact, Method::Peak, Method::Beyond];

impl Method {
    /// Its name on the page.
    pub fn name(self) -> &'static str {
        match self {
            Method::Offline => "offline",
            Method::Across => "across executions",
            Method::Exact => "exact",
            Method::Peak => "exact, fills the peak",
            Method::Beyond => "with our additions",
        }
    }

    /// Returns whether it learns from each execution, and so samples addresses.
    pub fn learns(self) -> bool {
        matches!(self, Method::Across | Method::Beyond)
    }

    /// Returns the share of time that it is charged: the paper's measurement of what it does. Only a method that learns
    /// takes samples and looks for phases. The others choose.
    pub fn charge(self) -> f64 {
        if self.learns() { OVERHEAD } else { CHOOSING }
    }
}

/// The number of executions of a group.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Executions {
    /// With each method that learns from them.
    pub learning: usize,
    /// With each other method, and in the system's order.
    pub other: usize,
}

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
    /// The share of their speed that programs lost to others.
    pub lost: f64,
    /// The share of the processors' time that was idle.
    pub idle: f64,
    /// The mean coverage of its programs afterwards, if they are learned.
    pub coverage: f64,
    /// The same without phases that have their neighbour's estimates.
    pub measured: f64,
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
        let mean = self.mean_of(None, |one| one.makespan_us);
        self.methods.get(&method).into_iter().flatten().map(|one| mean / one.makespan_us - 1.0).collect()
    }

    /// Returns the mean gain.
    pub fn gain(&self, method: Method) -> f64 {
        mean(&self.gains(method))
    }

    /// Returns the mean of a number over the executions with a method, or in the system's order.
    pub fn mean_of(&self, method: Option<Method>, number: impl Fn(&Execution) -> f64) -> f64 {
        let executions = method.map_or(&self.linux, |method| &self.methods[&method]);
        mean(&executions.iter().map(number).collect::<Vec<f64>>())
    }

    /// Returns the gain of the best execution.
    pub fn best(&self, method: Method) -> f64 {
        self.gains(method).into_iter().fold(f64::NEG_INFINITY, f64::max)
    }
}

/// Returns the mean; 0 of nothing.
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// Returns the mean of a number over groups.
pub fn over<'g>(groups: impl IntoIterator<Item = &'g Comparison>, number: impl Fn(&Comparison) -> f64) -> f64 {
    mean(&groups.into_iter().map(number).collect::<Vec<f64>>())
}

/// Runs a group with each method and in the system's order. `store` holds what was learned before.
pub fn compare(
    ground: Ground,
    team: &Team,
    store: &Store,
    correction: Polynomial,
    executions: Executions,
    seed: u64,
) -> Comparison {
    let mut rng = Rng::with_seed(seed);
    let (paper, beyond) = (Settings::paper(), Settings::default());
    let given: BTreeMap<Key, ProgramWork> =
        team.programs.iter().map(|(key, trace)| (key.clone(), trace.left(Cursor::default()))).collect();
    let mut linux = Vec::new();
    let mut methods: BTreeMap<Method, Vec<Execution>> = BTreeMap::new();
    let mut stores: BTreeMap<Method, Store> = BTreeMap::new();
    for number in 0..executions.learning.max(executions.other) {
        let seed = rng.u64(..);
        if number < executions.other {
            linux.push(execution(&run_group(ground, &team.programs, Nothing, &paper, seed)));
        }
        let runs = |method: &Method| number < if method.learns() { executions.learning } else { executions.other };
        for method in METHODS.into_iter().filter(runs) {
            let charged = Ground { overhead: method.charge(), ..ground };
            let done = match method {
                Method::Offline => {
                    let knowledge = Measured::new(given.clone(), correction);
                    execution(&run_group(charged, &team.programs, knowledge, &paper, seed))
                }
                Method::Exact | Method::Peak => {
                    let profiled = Profiled::new(&team.programs, paper.quantum_us);
                    let knowledge = if method == Method::Peak { profiled.filling(ground.bus.peak) } else { profiled };
                    execution(&run_group(charged, &team.programs, knowledge, &paper, seed))
                }
                Method::Across | Method::Beyond => {
                    let known = stores.remove(&method).unwrap_or_else(|| store.clone());
                    let settings = if method == Method::Across { &paper } else { &beyond };
                    let knowledge = Learned::new(known, Learning::default());
                    let outcome = run_group(charged, &team.programs, knowledge, settings, seed);
                    let mut done = execution(&outcome);
                    let known = outcome.knowledge.into_store();
                    let each = |of_one: &dyn Fn(&(Key, Arc<Trace>)) -> f64| {
                        mean(&team.programs.iter().map(of_one).collect::<Vec<f64>>())
                    };
                    done.coverage = each(&|(key, _)| known.coverage(&key.build));
                    let measured = |key: &Key| known.programs.get(&key.build).map_or(0.0, |one| one.phases.coverage());
                    done.measured = each(&|(key, _)| measured(key));
                    let exact = |work: ProgramWork, trace: &Trace| accuracy(work.alone_us, trace.alone_us());
                    done.accuracy = each(&|(key, trace)| known.work(key, 1).map_or(0.0, |work| exact(work, trace)));
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
        lost: outcome.lost,
        idle: outcome.idle,
        coverage: 0.0,
        measured: 0.0,
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
    let charged = Ground { overhead: Method::Offline.charge(), ..ground };
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
    use std::sync::LazyLock;

    use super::*;
    use crate::bandwidth::paper::{ALONE_US, GROUPS};
    use crate::bandwidth::table_2::table_2;

    /// Programs, and what fifteen executions of each under a medium load tell of them.
    static LEARNED: LazyLock<(Programs, Store)> = LazyLock::new(|| {
        let programs = Programs::new(1, ALONE_US);
        let (_, store) = table_2(Ground::paper(), &programs, 4, 15, 1);
        (programs, store)
    });

    fn compared(group: usize, executions: Executions) -> Comparison {
        let (programs, store) = &*LEARNED;
        let team = Team::new(GROUPS[group].name, programs, &GROUPS[group].members());
        compare(Ground::paper(), &team, store, Polynomial([0.0, 0.9, 0.0]), executions, 1)
    }

    /// A small comparison: one group and two executions instead of ten and forty.
    #[test]
    fn exact_knowledge_gains_more_than_learned_and_an_even_demand_more_than_a_full_memory() {
        let compared = compared(4, Executions { learning: 2, other: 2 });
        let [offline, across, exact, peak, beyond] = METHODS.map(|method| compared.gain(method));
        assert!(exact > across && exact > offline && exact > peak, "{offline} {across} {exact} {peak}");
        assert!(beyond > across && across > 0.0, "{beyond} {across}");
        // The makespan is the work by the speed that is kept, the processors that are used, and the charge.
        let work_us: f64 = 32.0 * ALONE_US / 8.0;
        for (method, charge) in METHODS.map(|method| (Some(method), method.charge())).into_iter().chain([(None, 0.0)]) {
            let [lost, idle] = [compared.mean_of(method, |one| one.lost), compared.mean_of(method, |one| one.idle)];
            let expected_us = work_us / (1.0 - lost) / (1.0 - idle) * (1.0 + charge);
            let off = compared.mean_of(method, |one| one.makespan_us) / expected_us - 1.0;
            assert!(off.abs() < 0.002, "{method:?}: {off}");
        }
    }

    /// Groups ran unchosen for most of forty executions, because new phases closed the gate of coverage. Little is left
    /// to learn, so a fall of a thousandth is none.
    #[test]
    fn neither_coverage_nor_accuracy_falls_with_executions_and_all_of_them_are_chosen() {
        let compared = compared(5, Executions { learning: 6, other: 1 });
        let learned = &compared.methods[&Method::Across];
        let two = |from: usize, number: fn(&Execution) -> f64| {
            mean(&learned[from..from + 2].iter().map(number).collect::<Vec<f64>>())
        };
        for number in [|one: &Execution| one.coverage, |one: &Execution| one.accuracy] {
            assert!(two(4, number) > two(0, number) - 0.001, "{learned:?}");
        }
        // The last programs have a processor each, and there is nothing to choose.
        assert!(
            learned.iter().all(|one| one.chosen > 0.5 && one.coverage > 0.95 && one.accuracy > 0.95),
            "{learned:?}"
        );
    }

    #[test]
    fn without_a_store_the_order_is_the_system_s_and_only_the_overhead_is_paid() {
        let ground = Ground::paper();
        let programs = Programs::new(1, ALONE_US);
        let team = Team::new(GROUPS[1].name, &programs, &GROUPS[1].members());
        let compared =
            compare(ground, &team, &Store::default(), Polynomial::IDENTITY, Executions { learning: 1, other: 1 }, 1);
        let first = compared.methods[&Method::Across][0];
        assert_eq!(first.chosen, 0.0);
        let gain = compared.gains(Method::Across)[0];
        assert!((-0.045..-0.02).contains(&gain), "{gain}");
    }

    #[test]
    fn training_finds_a_target_below_the_ideal_average_for_used_bandwidths() {
        let (correction, points) = train(Ground::paper(), &LEARNED.0, 3, 1, 5);
        assert_eq!(points.len(), 3);
        assert!(points.iter().map(|(ideal, best)| best / ideal).sum::<f64>() < 3.0, "{points:?}");
        assert!(correction.at(110.0) > 30.0, "{correction:?}");
    }
}
