//! Table 2 and figure 6: how soon programs are known, and from which states of little contention.

use std::fmt::Write;

use gristmill_cli::Failure;
use gristmill_schedule::Little;

use crate::bandwidth::claims::{Claim, Expected, median, table, verdict};
use crate::bandwidth::comparison::mean;
use crate::bandwidth::experiments::{Experiments, Learning};
use crate::bandwidth::paper::{BENCHMARKS, EXECUTIONS_LOW, IN_TABLE_2};
use crate::bandwidth::table_2::{Covered, LOADS};
use crate::page::Answer;

/// The number of executions that a program needed, or one more than it had.
fn needed(row: &Covered) -> f64 {
    row.executions.unwrap_or(row.executed + 1) as f64
}

fn mean_needed<'r>(rows: impl IntoIterator<Item = &'r Covered>) -> f64 {
    mean(&rows.into_iter().map(needed).collect::<Vec<f64>>())
}

/// Returns a number of each round.
fn rounds(learned: &[Learning], number: impl Fn(&Learning) -> f64) -> Vec<f64> {
    learned.iter().map(number).collect()
}

pub fn table_2(experiments: &mut Experiments) -> Result<Answer, Failure> {
    let learned = experiments.learned();
    let rows = |round: &Learning, load: usize| round.loads[load].1.clone();
    let half = IN_TABLE_2 / 2;
    let is_low = |row: &Covered| EXECUTIONS_LOW.iter().any(|(name, _)| *name == row.name);
    let in_paper = mean(&EXECUTIONS_LOW.map(|(_, executions)| executions as f64));
    let low = rounds(learned, |round| mean_needed(rows(round, 0).iter().filter(|row| is_low(row))));
    let light = rounds(learned, |round| {
        let all = (0..LOADS.len()).map(|load| mean_needed(&rows(round, load)[IN_TABLE_2..]));
        all.fold(0.0, f64::max)
    });
    let accuracy = rounds(learned, |round| {
        let listed = (0..LOADS.len()).flat_map(|load| rows(round, load).into_iter().take(IN_TABLE_2));
        median(&listed.map(|row| row.accuracy * 100.0).collect::<Vec<f64>>())
    });
    let heavier = rounds(learned, |round| {
        let high = rows(round, LOADS.len() - 1);
        mean_needed(&high[..half]) - mean_needed(&high[half..IN_TABLE_2])
    });
    let higher = rounds(learned, |round| {
        let by_load: Vec<f64> = (0..LOADS.len()).map(|load| mean_needed(&rows(round, load)[..IN_TABLE_2])).collect();
        by_load.windows(2).map(|pair| pair[1] - pair[0]).fold(f64::INFINITY, f64::min)
    });
    let claims = [
        Claim::new(
            "executions until known under a low load, mean of the 13 programs whose cell is legible",
            Some((in_paper * 10.0).round() / 10.0),
            Expected::Within(1.0),
            low,
        ),
        Claim::new(
            "executions of programs that ask for less than wrf, under any load, mean",
            Some(1.0),
            Expected::AtMost(1.5),
            light,
        ),
        Claim::new(
            "accuracy of the time alone then, median of programs and loads, %",
            Some(95.0),
            Expected::Within(5.0),
            accuracy,
        ),
        Claim::new(
            "executions that the more demanding half of the table needs more than the other, high load",
            None,
            Expected::MoreThan(0.0),
            heavier,
        ),
        Claim::new("executions more under each higher load, least difference", None, Expected::MoreThan(0.0), higher),
    ];
    let mut found = table(&claims);
    found += &each_program(learned);
    let why = "In the simulation eight programs on eight processors rarely leave one that asks for much alone, and programs of \
               one kind end together";
    Ok(Answer::new(found, verdict(&claims, || why.into())).with("table-2.csv", csv(learned)))
}

/// Formats the rows of table 2.
fn each_program(learned: &[Learning]) -> String {
    let mut text = String::from(
        "\nExecutions until known (accuracy then), medians of the rounds:\n\n| program | demand | phases in the paper, here | low in the paper |",
    );
    LOADS.iter().for_each(|(load, count)| write!(text, " {load}: {count} of 8 |").expect("a string takes everything"));
    text += "\n|---|---|---|---|---|---|---|\n";
    for (place, benchmark) in BENCHMARKS.iter().take(IN_TABLE_2).enumerate() {
        let row = |load: usize, round: &Learning| round.loads[load].1[place].clone();
        let cell = |load: usize| {
            let needed = median(&rounds(learned, |round| needed(&row(load, round))));
            let accuracy = median(&rounds(learned, |round| row(load, round).accuracy * 100.0));
            let never =
                learned.iter().filter(|round| row(load, round).executions.is_none()).count() * 2 > learned.len();
            format!("{}{needed:.0} ({accuracy:.0} %)", if never { "≥ " } else { "" })
        };
        let listed = EXECUTIONS_LOW.iter().find(|(name, _)| *name == benchmark.name);
        let phases = median(&rounds(learned, |round| row(1, round).phases as f64));
        writeln!(
            text,
            "| {}{} | {} | {}, {phases:.0} | {} | {} |",
            benchmark.name,
            if benchmark.legible { "" } else { "*" },
            benchmark.bandwidth,
            benchmark.phases,
            listed.map_or("?".into(), |(_, executions)| executions.to_string()),
            (0..LOADS.len()).map(cell).collect::<Vec<String>>().join(" | ")
        )
        .expect("a string takes everything");
    }
    text + "\n*: the row is illegible in our copy, and its demand and phases are assumed. ≥: not known after that many executions. \
            The paper's loads are illegible; here they are two, four and eight programs on eight processors. Of its other cells \
            two have a place: under a high load zeusmp needs 37 executions and omnetpp one."
}

fn csv(learned: &[Learning]) -> String {
    let mut csv =
        String::from("round,load,program,executions,executed,accuracy,phases,own_demand,system,only_one,none\n");
    for (number, round) in learned.iter().enumerate() {
        for (load, row) in round.loads.iter().flat_map(|(load, rows)| rows.iter().map(move |row| (load, row))) {
            let executions = row.executions.map_or(String::new(), |executions| executions.to_string());
            let states = STATES.map(|state| row.states.get(&state).copied().unwrap_or(0).to_string()).join(",");
            let Covered { name, executed, accuracy, phases, .. } = row;
            writeln!(csv, "{},{load},{name},{executions},{executed},{accuracy:.4},{phases},{states}", number + 1)
                .expect("a string takes everything");
        }
    }
    csv
}

const STATES: [Option<Little>; 4] = [Some(Little::OwnDemand), Some(Little::System), Some(Little::OnlyOne), None];

/// Returns the shares of a program's quanta in each state, in percent.
fn shares(row: &Covered) -> [f64; 4] {
    let all: u64 = row.states.values().sum();
    STATES.map(|state| row.states.get(&state).copied().unwrap_or(0) as f64 / all.max(1) as f64 * 100.0)
}

pub fn figure_6(experiments: &mut Experiments) -> Result<Answer, Failure> {
    let learned = experiments.learned();
    let medium = |round: &Learning| round.loads[1].1.iter().map(shares).collect::<Vec<_>>();
    let part = |round: &Learning, places: std::ops::Range<usize>, share: fn(&[f64; 4]) -> f64| {
        mean(&medium(round)[places].iter().map(share).collect::<Vec<f64>>())
    };
    let own: fn(&[f64; 4]) -> f64 = |shares| shares[0];
    let valid: fn(&[f64; 4]) -> f64 = |shares| 100.0 - shares[3];
    let (half, all) = (IN_TABLE_2 / 2, BENCHMARKS.len());
    let claims = [
        Claim::new(
            "quanta with a low demand of their own, programs that only compute, %",
            None,
            Expected::AtLeast(90.0),
            rounds(learned, |round| part(round, IN_TABLE_2 + 1..all, own)),
        ),
        Claim::new(
            "such quanta of the five that ask for most, %",
            None,
            Expected::AtMost(10.0),
            rounds(learned, |round| part(round, 0..5, own)),
        ),
        Claim::new(
            "quanta in one of the three states, less of them in the more demanding half of table 2, difference in points",
            None,
            Expected::MoreThan(0.0),
            rounds(learned, |round| part(round, half..IN_TABLE_2, valid) - part(round, 0..half, valid)),
        ),
    ];
    let mut found = table(&claims);
    found += "\n| program | own demand low | system low | only one asks for much | none |\n|---|---|---|---|---|\n";
    for (place, benchmark) in BENCHMARKS.iter().enumerate() {
        let share = |at: usize| median(&rounds(learned, |round| medium(round)[place][at]));
        let cells = (0..4).map(|at| format!("{:.0} %", share(at))).collect::<Vec<String>>().join(" | ");
        writeln!(found, "| {} | {cells} |", benchmark.name).expect("a string takes everything");
    }
    found += "\nMedium load: four programs on eight processors. The numbers are in table-2.csv.";
    Ok(Answer::new(found, verdict(&claims, || "The states are found otherwise here".into())))
}
