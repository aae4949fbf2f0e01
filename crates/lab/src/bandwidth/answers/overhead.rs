//! Figure 5: what the scheduler costs.

use std::fmt::Write;

use gristmill_cli::Failure;

use crate::bandwidth::claims::{Claim, Expected, median, table, verdict};
use crate::bandwidth::experiments::Experiments;
use crate::page::Answer;

/// The length of a quantum, in microseconds.
const QUANTUM_US: f64 = 100_000.0;
/// The share of time that a thousand samples a second took of `gristmill batch` on a virtual machine, in percent. It
/// was measured once, and has no record.
const SAMPLES: f64 = 2.4;

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
            "a thousand samples a second, % of the time, measured earlier",
            Some(0.98),
            Expected::AtMost(0.98),
            vec![SAMPLES; costs.len()],
        ),
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
            None,
            Expected::AtMost(1.0),
            looks,
        ),
    ];
    let dearest = each.iter().max_by(|a, b| a.1.total_cmp(&b.1)).expect("there are programs");
    let scale = &costs[0].scale;
    let found = format!(
        "{}\nThe dearest program is {} with {:.2} %. The large machine has {} processors and {} programs. \
         Samples are free on the simulated machine. Their cost was measured once with `gristmill batch` on a virtual machine, \
         which has no counters; there it samples only in one quantum of four because of it. The paper does not say how \
         often it samples.",
        table(&claims),
        dearest.0,
        dearest.1,
        scale.processors,
        scale.programs
    );
    let is_disturbed = costs.iter().any(|round| round.is_disturbed);
    let verdict = verdict(&claims, || why(&claims, is_disturbed));
    let mut csv = String::from("program,percent\n");
    for (name, share) in &each {
        writeln!(csv, "{name},{share:.5}").expect("a string takes everything");
    }
    Ok(Answer::new(found, verdict).with("figure-5.csv", csv))
}

/// Says which part costs more than the paper's.
fn why(claims: &[Claim], is_disturbed: bool) -> String {
    let more: Vec<&str> = ["samples", "learning", "choosing", "looking"]
        .into_iter()
        .zip(claims)
        .filter(|(_, claim)| !claim.holds())
        .map(|(name, _)| name)
        .collect();
    let load = if is_disturbed { ". All but samples were measured under load, which makes them dearer" } else { "" };
    format!("More than in the paper: {}{load}", more.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_that_costs_more_than_the_paper_s_is_named_and_load_is_said() {
        let claim = |here: f64| Claim::new("part", Some(0.98), Expected::AtMost(0.98), vec![here; 3]);
        let claims = [claim(SAMPLES), claim(0.2)];
        assert_eq!(why(&claims, false), "More than in the paper: samples");
        assert!(why(&claims, true).contains("under load"));
        assert!(!claims[0].holds() && claims[1].holds());
    }
}
