//! Figure 5: what the scheduler costs, measured on the machine that simulates.
//!
//! The paper runs eight instances of each program at the same time under its scheduler and under Linux. The difference
//! is 3.19 % of the time: 0.98 % for the samples, 2.21 % for the scheduler, of which the choice of programs is less
//! than 0.2 %. Samples cost the simulated machine nothing, so only the scheduler's own part is measured: it is the same
//! code that runs in `gristmill batch`.

use std::time::Duration;

use gristmill_counters::load::Watch;
use gristmill_schedule::{Learned, Learning, Settings, Store};

use super::group::{Programs, Spent, run_group};
use super::paper::{ALONE_US, BENCHMARKS, GROUPS};
use super::scale::{Scale, scale};
use super::simulation::Ground;

/// The costs in one round.
pub struct Costs {
    /// For each program, eight instances of it: the scheduler's time in a quantum of 100 ms.
    pub programs: Vec<(&'static str, Duration)>,
    /// The time of a choice among the programs of WL#01, 28 of them.
    pub choosing: Duration,
    /// The steps of a choice on a large machine.
    pub scale: Scale,
    /// Whether other programs used more than a tenth of the processors meanwhile.
    pub is_disturbed: bool,
}

/// The number of instances of each program.
const INSTANCES: usize = 8;

/// Measures the costs of learning and choosing.
pub fn figure_5(large: (usize, usize), seed: u64) -> Costs {
    let watch = Watch::start();
    let programs = Programs::new(seed, ALONE_US);
    let run = |members: &[&'static super::paper::Benchmark], store: Store| {
        let knowledge = Learned::new(store, Learning::default());
        run_group(Ground::paper(), &programs.group(members), knowledge, &Settings::paper(), seed)
    };
    let each = BENCHMARKS.iter().map(|benchmark| {
        let Spent { deciding, learning, quanta } = run(&[benchmark; INSTANCES], Store::default()).spent;
        (benchmark.name, (deciding + learning) / quanta.max(1))
    });
    let each = each.collect();
    // The first execution makes the group known, so that there is a choice in the second.
    let (_, store) = super::table_2::table_2(Ground::paper(), &programs, 4, 15, seed);
    let spent = run(&GROUPS[0].members(), store).spent;
    Costs {
        programs: each,
        choosing: spent.deciding / spent.quanta.max(1),
        scale: scale(large.0, large.1, seed),
        is_disturbed: watch.load().is_some_and(|load| load.disturbs()),
    }
}
