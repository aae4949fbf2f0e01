//! Figure 8: the methods side by side.

use std::fmt::Write;

use gristmill_cli::Failure;
use gristmill_report::plane::{Axis, Dot, Line};

use crate::bandwidth::claims::{Claim, Expected, median, spread, table, verdict};
use crate::bandwidth::comparison::{Comparison, Execution, METHODS, Method, over};
use crate::bandwidth::experiments::{Compared, Experiments};
use crate::bandwidth::oracle::Small;
use crate::bandwidth::paper::{is_legible, marked};
use crate::bandwidth::pictures::{percents, picture};
use crate::page::Answer;

/// The paper's mean gains over its ten groups, in percent.
const IN_THE_PAPER: [(Method, f64); 3] = [(Method::Offline, 2.89), (Method::Across, 3.73), (Method::Exact, 7.42)];
const COLOURS: [&str; 5] = ["grey", "green", "orange", "violet", "blue"];

/// The groups of which a mean is taken.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Ten,
    /// Those of table 3 whose members are legible.
    Listed,
    Random,
}

impl Kind {
    fn of(self, round: &Compared) -> Vec<&Comparison> {
        match self {
            Kind::Ten => round.groups.iter().collect(),
            Kind::Listed => round.groups.iter().filter(|group| is_legible(&group.name)).collect(),
            Kind::Random => round.random.iter().collect(),
        }
    }
}

/// Returns the mean gain of a method in each round, in percent.
fn gains(rounds: &[Compared], kind: Kind, method: Method) -> Vec<f64> {
    rounds.iter().map(|round| over(kind.of(round), |group| group.gain(method) * 100.0)).collect()
}

/// Returns the same before anything is charged.
fn uncharged(rounds: &[Compared], kind: Kind, method: Method) -> Vec<f64> {
    let without = |gain: f64| (1.0 + gain) * (1.0 + method.charge()) - 1.0;
    rounds.iter().map(|round| over(kind.of(round), |group| without(group.gain(method)) * 100.0)).collect()
}

fn difference(more: Vec<f64>, less: Vec<f64>) -> Vec<f64> {
    more.into_iter().zip(less).map(|(more, less)| more - less).collect()
}

pub fn figure_8(experiments: &mut Experiments) -> Result<Answer, Failure> {
    let small = experiments.small().to_vec();
    let rounds = experiments.compared();
    let mut claims = Vec::new();
    for (kind, groups) in [(Kind::Ten, "ten groups"), (Kind::Listed, "without WL#09 and WL#10")] {
        for (method, paper) in IN_THE_PAPER {
            let what = format!("gain of {}, {groups}, %", method.name());
            claims.push(Claim::new(what, Some(paper), Expected::Within(1.0), gains(rounds, kind, method)));
        }
    }
    let ten = |method| gains(rounds, Kind::Ten, method);
    for (more, less, paper) in [
        (Method::Exact, Method::Across, Some(3.69)),
        (Method::Across, Method::Offline, Some(0.84)),
        (Method::Exact, Method::Peak, None),
    ] {
        let what = format!("\"{}\" gains more than \"{}\", points", more.name(), less.name());
        claims.push(Claim::new(what, paper, Expected::MoreThan(0.0), difference(ten(more), ten(less))));
    }
    let mut found = table(&claims);
    found += &each_group(rounds);
    found += &where_time_goes(rounds);
    found += &possible(&small);
    Ok(Answer::new(found, verdict(&claims, || why(rounds))).with("figure-8.svg", drawn(rounds)))
}

/// Returns the median round's mean over the ten groups, in percent.
fn percent(rounds: &[Compared], method: Option<Method>, number: fn(&Execution) -> f64) -> f64 {
    let of_round = |round: &Compared| over(Kind::Ten.of(round), |group| group.mean_of(method, number)) * 100.0;
    median(&rounds.iter().map(of_round).collect::<Vec<f64>>())
}

/// Says where the gain is lost, by numbers of this run.
fn why(rounds: &[Compared]) -> String {
    let free = |method| median(&uncharged(rounds, Kind::Ten, method));
    let lost = |method| percent(rounds, method, |one| one.lost);
    let idle = |method| percent(rounds, method, |one| one.idle);
    let (linux, exact) = (None, Some(Method::Exact));
    format!(
        "Before anything is charged, offline gains {:.1} %, across executions {:.1} % and exact {:.1} %. So what is learned is worth \
         nearly as much as profiles, and the charge, which only a method that samples pays here, makes most of the difference; the \
         paper does not say what it charges the others, and its exact method predicts phases, too. Exact knowledge gains less than \
         in the paper for two reasons that can be read off: programs still lose {:.1} % of their speed to others (in Linux's order \
         {:.1} %), and its selection leaves processors idle for {:.1} % of the time (Linux {:.1} %), because programs with a middling \
         demand end first. Our additions mend the latter, and gain {:.1} % before they are charged. A third cannot be read off: \
         the simulated memory loses nothing but time when it is full, and a real one may lose more",
        free(Method::Offline),
        free(Method::Across),
        free(Method::Exact),
        lost(exact),
        lost(linux),
        idle(exact),
        idle(linux),
        free(Method::Beyond)
    )
}

/// Formats where time goes: the makespan is the work by the speed kept, the processors used, and the charge.
fn where_time_goes(rounds: &[Compared]) -> String {
    let mut text = String::from(
        "\nWhere the time goes, ten groups: the time of a group is its work alone, by the speed that is kept, by the processors that \
         are not idle, and times one plus the charge.\n\n\
         | | speed lost to others | processors idle | charged |\n|---|---|---|---|\n",
    );
    let methods = METHODS.map(|method| (Some(method), method.name(), method.charge()));
    for (method, name, charge) in [(None, "Linux", 0.0)].into_iter().chain(methods) {
        let [lost, idle] = [percent(rounds, method, |one| one.lost), percent(rounds, method, |one| one.idle)];
        writeln!(text, "| {name} | {lost:.1} % | {idle:.1} % | {:.2} % |", charge * 100.0)
            .expect("a string takes everything");
    }
    text
}

fn each_group(rounds: &[Compared]) -> String {
    let heads = METHODS.map(Method::name).join(" | ");
    let mut text = format!(
        "\nMean gain over Linux in %, medians of the rounds, and the range from the least to the greatest execution of all rounds:\n\n\
         | group | programs | Linux loses | {heads} |\n|---|---|---|---|---|---|---|---|\n"
    );
    for (place, group) in rounds[0].groups.iter().enumerate() {
        let of_rounds = |number: &dyn Fn(&Comparison) -> f64| {
            rounds.iter().map(|round| number(&round.groups[place])).collect::<Vec<f64>>()
        };
        let cells = METHODS.map(|method| {
            let all = rounds.iter().flat_map(|round| round.groups[place].gains(method));
            let (least, most) =
                all.fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), gain| (least.min(gain), most.max(gain)));
            let middle = median(&of_rounds(&|group| group.gain(method)));
            format!("{:.1} ({:.1} to {:.1})", middle * 100.0, least * 100.0, most * 100.0)
        });
        let lost = median(&of_rounds(&|group| group.mean_of(None, |one| one.lost)));
        writeln!(
            text,
            "| {} | {} | {:.0} % | {} |",
            marked(&group.name),
            group.programs,
            lost * 100.0,
            cells.join(" | ")
        )
        .expect("a string takes everything");
    }
    let mut row = |name: &str, kind: Kind, number: fn(&[Compared], Kind, Method) -> Vec<f64>| {
        let cells = METHODS.map(|method| spread(&number(rounds, kind, method))).join(" | ");
        writeln!(text, "| {name} | | | {cells} |").expect("a string takes everything");
    };
    row("**ten groups**", Kind::Ten, gains);
    row("**without the two**", Kind::Listed, gains);
    row("ten groups, nothing charged", Kind::Ten, uncharged);
    row("random groups", Kind::Random, gains);
    row("random groups, nothing charged", Kind::Random, uncharged);
    text + "\n*: most members are made up (table 3). Behind a mean over groups stands its range over the rounds. Each method is \
            charged what the paper measured of what it does: 3.19 % if it samples and looks for phases, 0.2 % if it only chooses. \
            \"Exact, fills the peak\" is the policy that the paper argues against: demands swing within a quantum, by half of their \
            mean on the simulated machine, so that programs whose mean demands fill the memory still collide. Random groups have \
            two to four programs per processor, and nothing was tuned on them.\n"
}

/// Formats what the best order of small groups would gain.
fn possible(small: &[Small]) -> String {
    let mut text = String::from(
        "\nWhat an order can gain at all: small groups of programs with constant demands on two processors, against the best of \
         all orders.\n\n| demands | Linux | exact | best order |\n|---|---|---|---|\n",
    );
    for Small { demands, linux_us, exact_us, least_us, .. } in small {
        let demands = demands.iter().map(|demand| format!("{demand:.0}")).collect::<Vec<String>>().join(", ");
        let [linux, exact, least] = [linux_us, exact_us, least_us].map(|us| format!("{:.2} s", us / 1e6));
        writeln!(text, "| {demands} | {linux} | {exact} | {least} |").expect("a string takes everything");
    }
    text
}

/// Draws the mean gain of each group with each method, with a line from the least to the greatest round.
fn drawn(rounds: &[Compared]) -> String {
    let (mut dots, mut lines) = (Vec::new(), Vec::new());
    for place in 0..rounds[0].groups.len() {
        for (at, (method, class)) in METHODS.into_iter().zip(COLOURS).enumerate() {
            let gains: Vec<f64> = rounds.iter().map(|round| round.groups[place].gain(method) * 100.0).collect();
            let x = (place + 1) as f64 + (at as f64 - 2.0) * 0.13;
            let least = gains.iter().copied().fold(f64::INFINITY, f64::min);
            let most = gains.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            dots.push(Dot { x, y: median(&gains), class });
            lines.push(Line { points: vec![(x, least), (x, most)], class });
        }
    }
    let groups = rounds[0].groups.len() as f64;
    let y = percents(
        "mean gain over Linux, %",
        lines.iter().flat_map(|line| &line.points).map(|(_, y)| *y).chain([0.0]),
        4.0,
    );
    let x = Axis { from: 0.0, to: ((groups + 1.0) / 4.0).ceil() * 4.0, name: "number of the group (WL#01 to WL#10)" };
    lines.push(Line { points: vec![(x.from, 0.0), (x.to, 0.0)], class: "pale" });
    let legend: Vec<(&str, &str)> = METHODS.map(Method::name).into_iter().zip(COLOURS).collect();
    picture(&x, &y, &dots, &lines, &legend)
}
