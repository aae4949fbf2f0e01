//! Figure 7: coverage, accuracy and gain of each group, execution by execution.

use std::fmt::Write;

use gristmill_cli::Failure;
use gristmill_report::plane::Line;

use crate::bandwidth::claims::{Claim, Expected, median, table, verdict};
use crate::bandwidth::comparison::{Comparison, Execution, Method, mean, over};
use crate::bandwidth::experiments::{Compared, Experiments};
use crate::bandwidth::paper::{is_legible, marked};
use crate::bandwidth::pictures::{Ticks, picture};
use crate::page::Answer;

/// A fall that counts as none, and the least rise that counts as one, in points.
const FALL_MAX: f64 = 0.2;
const RISE_MIN: f64 = 0.1;

/// Returns a number of the first quarter and of the last quarter of a group's executions.
fn ends(group: &Comparison, number: impl Fn(&Execution) -> f64) -> [f64; 2] {
    let numbers: Vec<f64> = group.methods[&Method::Across].iter().map(number).collect();
    let quarter = (numbers.len() / 4).max(1);
    [mean(&numbers[..quarter]), mean(&numbers[numbers.len() - quarter..])]
}

/// Returns the gain of each execution, in percent.
fn gains(group: &Comparison, method: Method) -> Vec<f64> {
    group.gains(method).into_iter().map(|gain| gain * 100.0).collect()
}

pub fn figure_7(experiments: &mut Experiments) -> Result<Answer, Failure> {
    let rounds = experiments.compared();
    let each = |number: &dyn Fn(&[Comparison]) -> f64| -> Vec<f64> {
        rounds.iter().map(|round| number(&round.groups)).collect()
    };
    let rise = |number: fn(&Execution) -> f64| {
        each(&|groups| {
            over(groups, |group| {
                let [first, last] = ends(group, number);
                (last - first) * 100.0
            })
        })
    };
    let gain_rises = each(&|groups| {
        over(groups, |group| {
            let linux = group.mean_of(None, |one| one.makespan_us);
            let [first, last] = ends(group, |one| linux / one.makespan_us - 1.0);
            (last - first) * 100.0
        })
    });
    let best = |group: &Comparison| group.best(Method::Across) * 100.0;
    let greatest = each(&|groups| groups.iter().map(best).fold(f64::NEG_INFINITY, f64::max));
    let legible = |groups: &[Comparison]| -> f64 { over(groups.iter().filter(|group| is_legible(&group.name)), best) };
    let claims = [
        Claim::new(
            "coverage does not fall by more than 0.2 points: last quarter of executions less first",
            None,
            Expected::AtLeast(-FALL_MAX),
            rise(|one| one.coverage),
        ),
        Claim::new(
            "accuracy does not fall by more than 0.2 points",
            None,
            Expected::AtLeast(-FALL_MAX),
            rise(|one| one.accuracy),
        ),
        Claim::new("the gain does not fall by more than 0.2 points", None, Expected::AtLeast(-FALL_MAX), gain_rises),
        Claim::new("gain of the best execution of any group, %", Some(8.46), Expected::Within(1.0), greatest),
        Claim::new(
            "gain of the best execution, mean of ten groups, %",
            Some(5.5),
            Expected::Within(1.0),
            each(&|groups| over(groups, best)),
        ),
        Claim::new("the same without WL#09 and WL#10, %", Some(5.5), Expected::Within(1.0), each(&legible)),
    ];
    let measured = rise(|one| one.measured);
    let mut found = table(&claims);
    writeln!(
        found,
        "\n{} Coverage counts phases that have the estimates of a neighbour which executes mostly the same code. The paper has no \
         such rule. Without neighbours coverage changes by {:.2} points: each execution finds new phases, such as quanta in \
         which one piece of code follows another. A best execution is the best of {}.\n",
        rises(&claims[..3]),
        median(&measured),
        rounds[0].groups[0].methods[&Method::Across].len()
    )
    .expect("a string takes everything");
    found += &each_group(rounds);
    found += "\nMedians of the rounds. figure-7.svg shows four curves of the paper's method in the paper's groups, and figure-7-mean.svg \
              means of five executions in the paper's groups and in random ones, with the paper's method and with our additions.";
    let why = || format!("{} The gains are those of figure 8", rises(&claims[..3]));
    Ok(Answer::new(found, verdict(&claims, why))
        .with("figure-7.svg", of_groups(rounds))
        .with("figure-7-mean.svg", of_kinds(rounds))
        .with("figure-7.csv", csv(rounds)))
}

/// Says which of coverage, accuracy and gain rise by a tenth of a point or more.
fn rises(claims: &[Claim]) -> String {
    let rising = ["coverage", "accuracy", "gain"].into_iter().zip(claims);
    let names: Vec<&str> = rising.filter(|(_, claim)| median(&claim.here) >= RISE_MIN).map(|(name, _)| name).collect();
    if names.is_empty() {
        "Nothing rises by 0.1 points or more.".into()
    } else {
        format!("Rising by 0.1 points or more: {}.", names.join(", "))
    }
}

fn each_group(rounds: &[Compared]) -> String {
    let mut text = String::from(
        "| group | coverage, first and last quarter | accuracy | gain | quanta in which programs were chosen |\n|---|---|---|---|---|\n",
    );
    for (place, group) in rounds[0].groups.iter().enumerate() {
        let linux = |group: &Comparison| group.mean_of(None, |one| one.makespan_us);
        let cell = |number: &dyn Fn(&Comparison, &Execution) -> f64, digits: usize| {
            let both = [0, 1].map(|end| {
                let each = rounds.iter().map(|round| {
                    let group = &round.groups[place];
                    ends(group, |one| number(group, one) * 100.0)[end]
                });
                format!("{:.digits$}", median(&each.collect::<Vec<f64>>()))
            });
            format!("{} and {} %", both[0], both[1])
        };
        writeln!(
            text,
            "| {} | {} | {} | {} | {} |",
            marked(&group.name),
            cell(&|_, one| one.coverage, 1),
            cell(&|_, one| one.accuracy, 1),
            cell(&|group, one| linux(group) / one.makespan_us - 1.0, 1),
            cell(&|_, one| one.chosen, 0)
        )
        .expect("a string takes everything");
    }
    text
}

/// Draws the mean gain of the groups, and the gain of the groups with the greatest and the least, and of WL#02, each
/// point the median of the rounds.
fn of_groups(rounds: &[Compared]) -> String {
    let median_of = |place: usize| -> Vec<f64> {
        let each: Vec<Vec<f64>> = rounds.iter().map(|round| gains(&round.groups[place], Method::Across)).collect();
        (0..each[0].len()).map(|at| median(&each.iter().map(|gains| gains[at]).collect::<Vec<f64>>())).collect()
    };
    let all: Vec<(&str, Vec<f64>)> =
        rounds[0].groups.iter().enumerate().map(|(place, group)| (group.name.as_str(), median_of(place))).collect();
    let by_mean = |one: &&(&str, Vec<f64>), other: &&(&str, Vec<f64>)| mean(&one.1).total_cmp(&mean(&other.1));
    let of_all = (0..all[0].1.len()).map(|at| mean(&all.iter().map(|(_, gains)| gains[at]).collect::<Vec<f64>>()));
    let mut shown = vec![("mean of the groups".to_owned(), of_all.collect::<Vec<f64>>(), "green")];
    for (what, group, class) in [
        ("the greatest mean", all.iter().max_by(by_mean), "orange"),
        ("the least mean", all.iter().min_by(by_mean), "violet"),
        ("the paper's fall in execution 9", all.iter().find(|(name, _)| *name == "WL#02"), "blue"),
    ] {
        shown.extend(group.map(|(name, gains)| (format!("{name}: {what}"), gains.clone(), class)));
    }
    let points = |gains: &[f64]| (1_u32..).map(f64::from).zip(gains.iter().copied()).collect();
    let lines: Vec<Line> = shown.iter().map(|(_, gains, class)| Line { points: points(gains), class }).collect();
    let legend: Vec<(&str, &str)> = shown.iter().map(|(name, _, class)| (name.as_str(), *class)).collect();
    drawn("Gain across executions, the paper's groups", &lines, &legend)
}

/// Draws the mean gain of the paper's groups and of random ones, with the paper's method and with additions, each point
/// a mean of five executions.
fn of_kinds(rounds: &[Compared]) -> String {
    const AROUND: usize = 2;
    let line = |groups: fn(&Compared) -> &[Comparison], method: Method, class: &'static str| {
        let all: Vec<Vec<f64>> = rounds.iter().flat_map(groups).map(|group| gains(group, method)).collect();
        let count = all.iter().map(Vec::len).min().unwrap_or(0);
        let at = |at: usize| mean(&all.iter().map(|gains| gains[at]).collect::<Vec<f64>>());
        let smooth = |place: usize| {
            let near = place.saturating_sub(AROUND)..(place + AROUND + 1).min(count);
            ((place + 1) as f64, mean(&near.map(at).collect::<Vec<f64>>()))
        };
        Line { points: (0..count).map(smooth).collect(), class }
    };
    let lines = [
        line(|round| &round.groups, Method::Beyond, "blue"),
        line(|round| &round.groups, Method::Across, "green"),
        line(|round| &round.random, Method::Beyond, "violet"),
        line(|round| &round.random, Method::Across, "orange"),
    ];
    let legend = [
        ("the paper's groups, with our additions", "blue"),
        ("the paper's groups, across executions", "green"),
        ("random groups, with our additions", "violet"),
        ("random groups, across executions", "orange"),
    ];
    drawn("Means of five executions, with and without our additions", &lines, &legend)
}

fn drawn(heading: &str, lines: &[Line], legend: &[(&str, &str)]) -> String {
    let points = || lines.iter().flat_map(|line| &line.points);
    let last = points().map(|(x, _)| *x).fold(1.0, f64::max);
    let x = Ticks::around("execution", [0.0, last].into_iter());
    let y = Ticks::around("gain over Linux, %", points().map(|(_, y)| *y).chain([0.0]));
    picture(heading, &x, &y, &[], lines, legend)
}

/// Formats a row for each execution.
fn csv(rounds: &[Compared]) -> String {
    let mut csv =
        String::from("round,kind,group,method,execution,makespan_s,lost,idle,coverage,measured,accuracy,chosen\n");
    for (number, round) in rounds.iter().enumerate() {
        for (kind, groups) in [("paper", &round.groups), ("random", &round.random)] {
            for group in groups {
                let methods = group.methods.iter().map(|(method, all)| (method.name(), all));
                for (method, all) in [("Linux", &group.linux)].into_iter().chain(methods) {
                    for (at, one) in all.iter().enumerate() {
                        let Execution { makespan_us, lost, idle, coverage, measured, accuracy, chosen } = one;
                        writeln!(
                            csv,
                            "{},{kind},{},\"{method}\",{},{:.4},{lost:.4},{idle:.4},{coverage:.4},{measured:.4},{accuracy:.4},{chosen:.4}",
                            number + 1,
                            group.name,
                            at + 1,
                            makespan_us / 1e6
                        )
                        .expect("a string takes everything");
                    }
                }
            }
        }
    }
    csv
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Falls of a tenth stood on the page as rises that hold.
    #[test]
    fn a_fall_is_never_called_a_rise() {
        let claim = |here: f64| Claim::new("", None, Expected::AtLeast(-FALL_MAX), vec![here; 3]);
        let falling = [-0.02, -0.12, -0.12].map(claim);
        assert!(falling.iter().all(Claim::holds));
        assert_eq!(rises(&falling), "Nothing rises by 0.1 points or more.");
        assert_eq!(rises(&[0.3, 0.09, 0.1].map(claim)), "Rising by 0.1 points or more: coverage, gain.");
        assert!(!claim(-0.3).holds());
    }
}
