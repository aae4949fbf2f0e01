//! Figure 5: what the scheduler costs.

use std::fmt::Write;

use gristmill_cli::Failure;

use crate::bandwidth::claims::{Claim, Expected, median, table, verdict};
use crate::bandwidth::experiments::Experiments;
use crate::page::{Answer, Judgement};

/// The length of a quantum, in microseconds.
const QUANTUM_US: f64 = 100_000.0;

pub fn figure_5(experiments: &mut Experiments) -> Result<Answer, Failure> {
    let costs = experiments.costs();
    let percent = |us: f64| us / QUANTUM_US * 100.0;
    let places = 0..costs[0].programs.len();
    let of_program = |place: usize| -> Vec<f64> {
        costs.iter().map(|round| percent(round.programs[place].1.as_secs_f64() * 1e6)).collect()
    };
    let each: Vec<(&str, f64)> = places.map(|place| (costs[0].programs[place].0, median(&of_program(place)))).collect();
    let all = costs.iter().map(|round| {
        let sum: f64 = round.programs.iter().map(|(_, time)| percent(time.as_secs_f64() * 1e6)).sum();
        sum / round.programs.len() as f64
    });
    let choosing = costs.iter().map(|round| percent(round.choosing.as_secs_f64() * 1e6)).collect();
    let looks = costs.iter().map(|round| round.scale.looks_share()).collect();
    let claims = [
        Claim::new(
            "learning and choosing, mean over the programs, % of the time",
            Some(2.21),
            Expected::AtMost(2.21),
            all.collect(),
        ),
        Claim::new(
            "choosing among the 28 programs of WL#01, % of the time",
            Some(0.2),
            Expected::AtMost(0.2),
            choosing,
        ),
        Claim::new(
            "programs looked at in a choice, on a large machine, as a share of N times C",
            Some(1.0),
            Expected::AtMost(1.0),
            looks,
        ),
    ];
    let dearest = each.iter().max_by(|a, b| a.1.total_cmp(&b.1)).expect("there are programs");
    let scale = &costs[0].scale;
    let found = format!(
        "{}\nThe dearest program is {} with {:.2} %. The large machine has {} processors and {} programs. What samples cost \
         (0.98 % in the paper, and 3.19 % with them) cannot be asked of a simulated machine, where they are free; on a virtual \
         machine `gristmill batch` measured 2.4 % for a thousand samples a second, and so takes them in one quantum of four.",
        table(&claims),
        dearest.0,
        dearest.1,
        scale.processors,
        scale.programs
    );
    let verdict = if costs.iter().any(|round| round.is_disturbed) {
        Judgement::Undecided("measured under load: other programs used more than a tenth of the processors".into())
    } else {
        verdict(&claims, || "The scheduler costs more here".into())
    };
    let mut csv = String::from("program,percent\n");
    for (name, share) in &each {
        writeln!(csv, "{name},{share:.5}").expect("a string takes everything");
    }
    Ok(Answer::new(found, verdict).with("figure-5.csv", csv))
}
