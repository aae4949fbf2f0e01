//! The tables on a terminal.

use std::fmt::Write;

use super::rows::name;
use crate::bandwidth::comparison::{Comparison, METHODS, Method};
use crate::bandwidth::interval::Interval;
use crate::bandwidth::paper::{BENCHMARKS, IN_TABLE_2, OVERHEAD};
use crate::bandwidth::repetition::Repetition;
use crate::bandwidth::table_2::Covered;

/// The paper's gains in percent, for [`METHODS`]. Methods beyond the paper have none.
pub const IN_THE_PAPER: [Option<f64>; 4] = [Some(2.89), Some(3.73), Some(7.42), None];

/// Formats all tables.
pub fn text(repetition: &Repetition) -> String {
    let mut text = String::new();
    let mut line = |content: String| writeln!(text, "{}", content.trim_end()).expect("a string takes everything");
    line(
        "Executions until 80 % of a program's quanta are known without contention (accuracy of its time alone then)"
            .into(),
    );
    let loads = repetition.table_2.iter().map(|(load, count, _)| format!("{load}, {count} of 8"));
    let heads: String = loads.map(|head| format!("{head:>18}")).collect();
    line(format!("{:12}{:>10}{:>8}{heads}", "program", "demand", "found"));
    for (place, benchmark) in BENCHMARKS.iter().take(IN_TABLE_2).enumerate() {
        let cells: String =
            repetition.table_2.iter().map(|(_, _, rows)| format!("{:>18}", executions(&rows[place]))).collect();
        line(format!("{:12}{:>10.1}{:>8}{cells}", benchmark.name, benchmark.bandwidth, phases(repetition, place)));
    }
    line(String::new());
    line(format!(
        "Gain over Linux in percent: mean of {} executions (least to greatest); {:.2} % of overhead are charged",
        repetition.plan.rounds,
        OVERHEAD * 100.0
    ));
    let heads: String = METHODS.map(|method| format!("{:>23}", name(method))).concat();
    let paper = IN_THE_PAPER.map(|gain| format!("{:>23}", gain.map_or(String::new(), |gain| format!("{gain:.2}"))));
    let paper = format!("{:33}{}", "mean in the paper", paper.concat());
    for (title, groups, below) in
        [("groups of table 3", &repetition.groups, Some(paper)), ("random groups", &repetition.unseen, None)]
    {
        line(format!("{title:18}{:>9}{:>6}{heads}", "programs", "IABW"));
        for group in groups {
            let cells = METHODS.map(|method| format!("{:>23}", spread(&Interval::of(&group.gains(method))))).concat();
            line(format!("{:18}{:>9}{:>6.0}{cells}", group.name, group.programs, group.ideal_average));
        }
        let cells = METHODS.map(|method| format!("{:>23}", interval(&Repetition::gain(groups, method)))).concat();
        line(format!("{:33}{cells}", "mean (95 % interval over groups)"));
        below.into_iter().for_each(&mut line);
        line(String::new());
    }
    line("Small groups on two processors, seconds without overhead".into());
    line(format!("{:24}{:>10}{:>10}{:>10}", "demands", "Linux", "exact", "oracle"));
    for small in &repetition.small {
        let demands = small.demands.iter().map(|demand| format!("{demand:.0}")).collect::<Vec<_>>().join(" ");
        let [linux, exact, least] = [small.linux_us, small.exact_us, small.least_us].map(|time_us| time_us / 1e6);
        line(format!("{demands:24}{linux:>10.2}{exact:>10.2}{least:>10.2}"));
    }
    line(String::new());
    line(cost(repetition));
    line(String::new());
    for (claim, holds) in claims(repetition) {
        line(format!("{}: {claim}", if holds { "yes" } else { "NO" }));
    }
    text
}

/// Returns a sentence about the cost of a decision.
pub fn cost(repetition: &Repetition) -> String {
    let scale = &repetition.scale;
    format!(
        "{} programs on {} processors: {} selections, in each of which at most {} programs were looked at, {:.0} % of N times C.",
        scale.programs,
        scale.processors,
        scale.cost.selections,
        scale.cost.looks_max,
        scale.looks_share() * 100.0
    )
}

/// Returns the claims that the paper's results support, and whether these results support them too.
pub fn claims(repetition: &Repetition) -> Vec<(String, bool)> {
    let gain = |method| Repetition::gain(&repetition.groups, method).mean * 100.0;
    let [offline, across, exact, beyond] = METHODS.map(gain);
    let means = |part: std::ops::Range<usize>| -> Vec<f64> {
        repetition.table_2.iter().map(|(_, _, rows)| mean_executions(&rows[part.clone()])).collect()
    };
    let half = IN_TABLE_2 / 2;
    let (heavy, light, by_load) = (means(0..half), means(half..IN_TABLE_2), means(0..BENCHMARKS.len()));
    let unseen = |method: Method| Repetition::gain(&repetition.unseen, method).mean * 100.0;
    vec![
        (
            format!("exact knowledge gains more than knowledge across executions ({exact:.2} and {across:.2} %)"),
            exact > across,
        ),
        (
            format!("across executions gains no less than offline correction ({across:.2} and {offline:.2} %)"),
            across >= offline,
        ),
        (format!("offline correction gains something ({offline:.2} %)"), offline > 0.0),
        (format!("across executions gains 3.7 %, give or take 2 ({across:.2} %)"), (across - 3.7).abs() <= 2.0),
        (format!("with our additions it gains more ({beyond:.2} %)"), beyond > across),
        (
            format!("so it does for random groups ({:.2} and {:.2} %)", unseen(Method::Beyond), unseen(Method::Across)),
            unseen(Method::Beyond) > unseen(Method::Across),
        ),
        (
            "under each load, programs that ask for more need more executions".into(),
            heavy.iter().zip(&light).all(|(heavy, light)| heavy > light),
        ),
        ("higher loads need more executions".into(), by_load.windows(2).all(|pair| pair[0] < pair[1])),
    ]
}

fn mean_executions(rows: &[Covered]) -> f64 {
    let needed = |row: &Covered| row.executions.unwrap_or(row.executed + 1) as f64;
    rows.iter().map(needed).sum::<f64>() / rows.len() as f64
}

/// Formats `12 (97 %)`, or `> 61 (80 %)` for a program that was never covered.
pub fn executions(row: &Covered) -> String {
    let accuracy = row.accuracy * 100.0;
    match row.executions {
        Some(count) => format!("{count} ({accuracy:.0} %)"),
        None => format!("> {} ({accuracy:.0} %)", row.executed),
    }
}

/// Returns the number of phases found in a program under the medium load.
pub fn phases(repetition: &Repetition, place: usize) -> usize {
    repetition.table_2.get(1).map_or(0, |(_, _, rows)| rows[place].phases)
}

/// Formats the mean gain of executions with its spread.
pub fn spread(gains: &Interval) -> String {
    let percent = |gain: f64| gain * 100.0;
    format!("{:.1} ({:.1} to {:.1})", percent(gains.mean), percent(gains.least), percent(gains.greatest))
}

/// Formats a mean with its interval.
pub fn interval(gains: &Interval) -> String {
    let percent = |gain: f64| gain * 100.0;
    format!("{:.2} ({:.1} to {:.1})", percent(gains.mean), percent(gains.low), percent(gains.high))
}

/// Returns the gains of every execution of a group, in percent.
pub fn percents(group: &Comparison, method: Method) -> Vec<f64> {
    group.gains(method).into_iter().map(|gain| gain * 100.0).collect()
}
