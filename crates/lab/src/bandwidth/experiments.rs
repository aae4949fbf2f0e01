//! The experiments of the paper, each run once however many figures ask for its result.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;

use fastrand::Rng;
use gristmill_report::messages::tell;
use gristmill_schedule::Store;

use super::comparison::{Comparison, Executions, Team, compare, train};
use super::figure_3::{Point, figure_3};
use super::figure_5::{Costs, figure_5};
use super::group::Programs;
use super::oracle::{Small, small_groups};
use super::paper::{ALONE_US, GROUPS};
use super::simulation::Ground;
use super::table_2::{Covered, LOADS, table_2};

/// The extent of one round.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RoundSize {
    /// The number of executions of each group.
    pub executions: Executions,
    /// The number of executions of each program, on average, until it is given up as not covered.
    pub executions_max: u64,
    /// The number of random groups to which the offline method's polynomial is fitted, and of executions of each of
    /// these with each target that is tried.
    pub training: (usize, usize),
    /// The number of groups of table 3, and of random groups.
    pub groups: (usize, usize),
    /// The numbers of programs and processors of the large machine.
    pub scale: (usize, usize),
}

impl RoundSize {
    /// The paper's extent: ten groups, forty executions.
    pub const WHOLE: RoundSize = RoundSize {
        executions: Executions { learning: 40, other: 10 },
        executions_max: 100,
        training: (20, 2),
        groups: (10, 5),
        scale: (2000, 256),
    };

    /// A first look.
    pub const QUICK: RoundSize = RoundSize {
        executions: Executions { learning: 8, other: 3 },
        executions_max: 15,
        training: (4, 1),
        groups: (10, 1),
        scale: (400, 64),
    };
}

/// The load at which programs are learned before groups are compared.
const LEARNED_AT: &str = "medium";
/// Training and comparison never see the same groups.
const SEED_TRAINING: u64 = 0x7261_696e;
const SEED_RANDOM: u64 = 0x0066_7265_7368;

/// The experiments, and the results of those that have run.
///
/// Each round makes programs, training and random groups of its own, from a seed of its own. All of it follows from the
/// first seed, except for [`Costs`], which are measured.
pub struct Experiments {
    pub size: RoundSize,
    pub seeds: Vec<u64>,
    learned: Vec<Learning>,
    compared: Vec<Compared>,
    costs: Vec<Costs>,
    small: Vec<Small>,
}

/// The executions in which programs are learned, in one round.
pub struct Learning {
    pub programs: Programs,
    /// By load.
    pub loads: Vec<(&'static str, Vec<Covered>)>,
    /// The store at [`LEARNED_AT`].
    store: Store,
}

/// The comparisons of one round.
pub struct Compared {
    /// The groups of table 3.
    pub groups: Vec<Comparison>,
    /// Random groups.
    pub random: Vec<Comparison>,
}

impl Experiments {
    /// Prepares as many rounds as there are seeds.
    pub fn new(size: RoundSize, seeds: Vec<u64>) -> Experiments {
        let (learned, compared, costs, small) = Default::default();
        Experiments { size, seeds, learned, compared, costs, small }
    }

    /// Returns the points of figure 3, of the first round.
    pub fn contention(&self) -> Vec<Point> {
        figure_3(Ground::paper().bus, self.seeds[0], 2000)
    }

    /// Returns the costs of figure 5, in each round.
    pub fn costs(&mut self) -> &[Costs] {
        for number in self.costs.len()..self.seeds.len() {
            tell(format_args!("round {} of {}: what the scheduler costs", number + 1, self.seeds.len()));
            self.costs.push(figure_5(self.size.scale, self.seeds[number]));
        }
        &self.costs
    }

    /// Returns what was learned under each load, in each round.
    pub fn learned(&mut self) -> &[Learning] {
        for number in self.learned.len()..self.seeds.len() {
            let seed = self.seeds[number];
            let programs = Programs::new(seed, ALONE_US);
            let round = format!("round {} of {}", number + 1, self.seeds.len());
            tell(format_args!("{round}: programs are executed until they are known, under three loads"));
            let found = in_parallel(&LOADS, |(load, count)| {
                let (rows, store) = table_2(Ground::paper(), &programs, *count, self.size.executions_max, seed);
                (*load, rows, store)
            });
            let store = found.iter().find(|(load, ..)| *load == LEARNED_AT).map(|(.., store)| store.clone());
            let loads = found.into_iter().map(|(load, rows, _)| (load, rows)).collect();
            self.learned.push(Learning { programs, loads, store: store.unwrap_or_default() });
        }
        &self.learned
    }

    /// Returns the comparisons of groups, in each round.
    pub fn compared(&mut self) -> &[Compared] {
        self.learned();
        for number in self.compared.len()..self.seeds.len() {
            let (seed, Learning { programs, store, .. }) = (self.seeds[number], &self.learned[number]);
            let round = format!("round {} of {}", number + 1, self.seeds.len());
            let ground = Ground::paper();
            tell(format_args!("{round}: the offline method is trained"));
            let (groups, rounds) = self.size.training;
            let (correction, _) = train(ground, programs, groups, rounds, seed ^ SEED_TRAINING);
            let mut rng = Rng::with_seed(seed ^ SEED_RANDOM);
            let (listed, random) = self.size.groups;
            let paper = GROUPS[..listed].iter().map(|group| Team::new(group.name, programs, &group.members()));
            let random = (1..=random)
                .map(|number| Team::random(&format!("random {number}"), programs, ground.processors, &mut rng));
            let teams: Vec<Team> = paper.chain(random).collect();
            let mut compared = in_parallel(&teams, |team| {
                tell(format_args!("{round}: {}, {} programs", team.name, team.programs.len()));
                compare(ground, team, store, correction, self.size.executions, seed)
            });
            let random = compared.split_off(listed);
            self.compared.push(Compared { groups: compared, random });
        }
        &self.compared
    }

    /// Returns small groups with their least possible times.
    pub fn small(&mut self) -> &[Small] {
        if self.small.is_empty() {
            self.small = small_groups(self.size.executions.other as u64);
        }
        &self.small
    }
}

/// Returns the result of `work` for each item, in order, with as many threads as there are processors.
fn in_parallel<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let take = || {
        let mut done = Vec::new();
        loop {
            let place = next.fetch_add(1, Relaxed);
            match items.get(place) {
                Some(item) => done.push((place, work(item))),
                None => return done,
            }
        }
    };
    let threads = thread::available_parallelism().map_or(1, NonZeroUsize::get).min(items.len());
    let mut all: Vec<(usize, R)> = thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(take)).collect();
        workers.into_iter().flat_map(|worker| worker.join().expect("a panic has ended the process")).collect()
    });
    all.sort_by_key(|(place, _)| *place);
    all.into_iter().map(|(_, result)| result).collect()
}
