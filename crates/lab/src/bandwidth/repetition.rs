//! Runs all experiments, one after another.

use fastrand::Rng;

use super::comparison::{Comparison, Method, Team, compare, train};
use super::figure_3::{Point, figure_3};
use super::group::Programs;
use super::interval::Interval;
use super::oracle::{Small, small_groups};
use super::paper::{ALONE_US, GROUPS};
use super::scale::{Scale, scale};
use super::simulation::Ground;
use super::table_2::{Covered, LOADS, table_2};

/// The extent of the simulation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SimulationSize {
    /// The seed of everything random.
    pub seed: u64,
    /// The number of executions of each group with each method.
    pub rounds: usize,
    /// The maximum number of executions of each program, on average, until it is covered.
    pub executions_max: u64,
    /// The number of random groups to which the offline method's polynomial is fitted.
    pub training: usize,
    /// The number of executions of each of these with each candidate target.
    pub training_rounds: usize,
    /// The number of random groups that were not used for tuning.
    pub unseen: usize,
    /// The numbers of programs and processors of the large machine.
    pub scale: (usize, usize),
}

impl SimulationSize {
    /// The paper's extent: ten groups, forty executions.
    pub fn new(seed: u64) -> SimulationSize {
        SimulationSize {
            seed,
            rounds: 40,
            executions_max: 200,
            training: 20,
            training_rounds: 3,
            unseen: 10,
            scale: (10_000, 1024),
        }
    }

    /// A quick first look.
    pub fn quick(seed: u64) -> SimulationSize {
        SimulationSize {
            rounds: 3,
            executions_max: 15,
            training: 4,
            training_rounds: 1,
            unseen: 2,
            scale: (400, 64),
            ..SimulationSize::new(seed)
        }
    }
}

/// All results.
#[derive(Clone, Debug)]
pub struct Repetition {
    /// The extent of the simulation.
    pub plan: SimulationSize,
    /// The points to which the simulation is calibrated.
    pub figure_3: Vec<Point>,
    /// Coverage by load.
    pub table_2: Vec<(&'static str, usize, Vec<Covered>)>,
    /// The training of the offline method: ideal averages and best targets.
    pub training: Vec<(f64, f64)>,
    /// The paper's groups.
    pub groups: Vec<Comparison>,
    /// Random groups that were not used for tuning.
    pub unseen: Vec<Comparison>,
    /// Small groups and their least possible times.
    pub small: Vec<Small>,
    /// The large machine.
    pub scale: Scale,
}

/// The load at which programs are learned before groups are compared.
const LEARNED_AT: &str = "medium";
/// Training and comparison never see the same groups.
const SEED_TRAINING: u64 = 0x7261_696e;
const SEED_UNSEEN: u64 = 0x0066_7265_7368;

impl Repetition {
    /// Runs everything. `tell` is called with the name of each experiment before it starts.
    pub fn run(plan: SimulationSize, mut tell: impl FnMut(&str)) -> Repetition {
        let ground = Ground::paper();
        tell("figure 3: speed by the three states");
        let points = figure_3(ground.bus, plan.seed, 1000);
        // 1. Execute programs until they are covered.
        let programs = Programs::new(plan.seed, ALONE_US);
        let (mut covered, mut store) = (Vec::new(), Default::default());
        for (load, count) in LOADS {
            tell(&format!("table 2: executions until a program is covered, {load} load"));
            let (rows, learned) = table_2(ground, &programs, count, plan.executions_max, plan.seed);
            covered.push((load, count, rows));
            if load == LEARNED_AT {
                store = learned;
            }
        }
        // 2. Train the rival.
        tell("figure 8: training of the offline method");
        let (correction, training) =
            train(ground, &programs, plan.training, plan.training_rounds, plan.seed ^ SEED_TRAINING);
        // 3. Compare groups.
        let mut rng = Rng::with_seed(plan.seed ^ SEED_UNSEEN);
        let paper = GROUPS.iter().map(|group| Team::new(group.name, &programs, &group.members()));
        let unseen = (1..=plan.unseen)
            .map(|number| Team::random(&format!("random {number}"), &programs, ground.processors, &mut rng));
        let mut all = |teams: Vec<Team>| -> Vec<Comparison> {
            let compared = |team: &Team| {
                tell(&format!("figures 7 and 8: {}, {} executions with each method", team.name, plan.rounds));
                compare(ground, team, &store, correction, plan.rounds, plan.seed)
            };
            teams.iter().map(compared).collect()
        };
        let (groups, unseen) = (all(paper.collect()), all(unseen.collect()));
        // 4. Find the optimum of small groups, and the cost at scale.
        tell("the oracle of small groups");
        let small = small_groups(plan.rounds.min(10) as u64);
        tell(&format!("{} programs on {} processors", plan.scale.0, plan.scale.1));
        let scale = scale(plan.scale.0, plan.scale.1, plan.seed);
        Repetition { plan, figure_3: points, table_2: covered, training, groups, unseen, small, scale }
    }

    /// Returns the gain of a method over all groups: the mean of the groups' means, and its interval over groups.
    pub fn gain(groups: &[Comparison], method: Method) -> Interval {
        let means: Vec<f64> = groups.iter().map(|group| Interval::of(&group.gains(method)).mean).collect();
        Interval::of(&means)
    }
}
