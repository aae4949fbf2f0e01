//! Figure 7: coverage, accuracy and gain of each group, execution by execution.

use std::fmt::Write;

use gristmill_cli::Failure;
use gristmill_report::plane::{Axis, Line};

use crate::bandwidth::claims::{Claim, Expected, median, table, verdict};
use crate::bandwidth::comparison::{Comparison, Execution, Method, mean, over};
use crate::bandwidth::experiments::{Compared, Experiments};
use crate::bandwidth::paper::{is_legible, marked};
use crate::bandwidth::pictures::{percents, picture};
use crate::page::Answer;

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
            "coverage rises: last quarter of executions less first, points",
            None,
            Expected::AtLeast(-0.2),
            rise(|one| one.coverage),
        ),
        Claim::new("accuracy rises, points", None, Expected::AtLeast(-0.2), rise(|one| one.accuracy)),
        Claim::new("the gain rises, points", None, Expected::AtLeast(-0.2), gain_rises),
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
        "\nCoverage counts phases that have the estimates of a neighbour which executes mostly the same code. The paper has no \
         such rule. Without neighbours coverage changes by {:.2} points: each execution finds quanta in which one piece of code \
         follows another, and mostly beside programs that ask for much.\n",
        median(&measured)
    )
    .expect("a string takes everything");
    found += &each_group(rounds);
    let why = "The gains are those of figure 8, which says what they lack";
    Ok(Answer::new(found, verdict(&claims, || why.into()))
        .with("figure-7.svg", of_groups(rounds))
        .with("figure-7-mean.svg", of_kinds(rounds))
        .with("figure-7.csv", csv(rounds)))
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

/// Draws the gain of each group, and their mean, in the median round.
fn of_groups(rounds: &[Compared]) -> String {
    let median_of = |place: usize, at: usize| {
        median(&rounds.iter().map(|round| gains(&round.groups[place], Method::Across)[at]).collect::<Vec<f64>>())
    };
    let count = rounds[0].groups[0].methods[&Method::Across].len();
    let groups = rounds[0].groups.len();
    let point = |at: usize, y: f64| ((at + 1) as f64, y);
    let mut lines: Vec<Line> = (0..groups)
        .map(|place| Line { points: (0..count).map(|at| point(at, median_of(place, at))).collect(), class: "pale" })
        .collect();
    let of_all = |at: usize| mean(&(0..groups).map(|place| median_of(place, at)).collect::<Vec<f64>>());
    lines.push(Line { points: (0..count).map(|at| point(at, of_all(at))).collect(), class: "green" });
    drawn(&lines, &[("one group", "pale"), ("mean of the groups", "green")])
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
    drawn(&lines, &legend)
}

fn drawn(lines: &[Line], legend: &[(&str, &str)]) -> String {
    let points = || lines.iter().flat_map(|line| &line.points);
    let last = points().map(|(x, _)| *x).fold(2.0, f64::max);
    let x = Axis { from: 0.0, to: (last / 4.0).ceil() * 4.0, name: "execution" };
    let y = percents("gain over Linux, %", points().map(|(_, y)| *y).chain([0.0]), 4.0);
    let zero = Line { points: vec![(x.from, 0.0), (x.to, 0.0)], class: "grey" };
    let all: Vec<Line> = [zero].into_iter().chain(lines.iter().cloned()).collect();
    picture(&x, &y, &[], &all, legend)
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
