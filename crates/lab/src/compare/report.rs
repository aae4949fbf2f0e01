//! The report page: comparisons, machine, rounds, spread and winners.

use std::path::Path;
use std::time::Duration;

use gristmill_counters::load::{Load, SHARE_MAX};
use gristmill_report::chart::milliseconds;
use gristmill_report::text::escape;

use super::comparison::{Comparison, Kind};
use super::conclusion::{Judged, conclusion, of_start_up, taken};
use super::machine::MachineFacts;
use super::subject::Subject;
use super::time::Time;
use super::trial::{Contest, Measure};
use crate::generate::Size;

/// The circumstances of the measurements.
pub struct About<'e> {
    pub machine: MachineFacts,
    pub size: Size,
    pub rounds: u32,
    pub by: Time,
    pub took: Duration,
    pub subjects: &'e [Subject],
    /// The commands that make the input again if it is not kept.
    pub preparation: &'e [String],
    /// The folder where the input is kept.
    pub kept: Option<&'e Path>,
}

/// Renders the whole page, which is self-contained.
pub fn html(about: &About<'_>, comparisons: &[Comparison], trials: &[Contest<'_>]) -> String {
    let judged: Vec<Judged<'_>> = trials.iter().filter_map(|trial| Judged::new(trial, about.by)).collect();
    let mut body = introduction(about, trials);
    body += &overview(about, comparisons, &judged);
    for comparison in comparisons {
        let of_this = |trial: &&Judged<'_>| trial.trial.comparison.name == comparison.name;
        let here: Vec<&Judged<'_>> = judged.iter().filter(of_this).collect();
        let tried: Vec<&Contest<'_>> = trials.iter().filter(|trial| trial.comparison.name == comparison.name).collect();
        body += &section(about, comparison, &here, &tried);
        if comparison.kind == Kind::Workers {
            body += &start_up(&here);
        }
    }
    let failures: Vec<String> = trials.iter().flat_map(failures).collect();
    if !failures.is_empty() {
        body += &format!("<section><h2>What failed</h2><ul>{}</ul></section>", failures.concat());
    }
    gristmill_report::document("Gristmill: strategies compared", &[], &body)
}

fn introduction(about: &About<'_>, trials: &[Contest<'_>]) -> String {
    let size = match about.size {
        Size::Small => "small input: the times are short, and start-up is a large part of them",
        Size::Medium => "medium input",
        Size::Large => "large input, of the size in DMR (Yu and Zhang 2017)",
    };
    let all = || trials.iter().flat_map(|trial| &trial.loads);
    let repeated: usize = trials.iter().map(Contest::repeated).sum();
    let mut facts = about.machine.facts.clone();
    facts.push(("Input", format!("generated, {size}")));
    facts.push(("Rounds", format!("{}, after one that does not count", about.rounds)));
    facts.push((
        "Others meanwhile",
        match Load::mean(all().flatten().copied()) {
            Some(load) => taken(&[load]),
            None => "unknown: /proc/stat does not tell".to_owned(),
        },
    ));
    facts.push(("Repeated rounds", format!("{repeated} of {}, because of other programs", all().count())));
    facts.push(("Took", format!("{} s", about.took.as_secs())));
    let time = match about.by {
        Time::Wall => "time from start to exit",
        Time::Processor => "processor time of all processes together",
    };
    let facts: String =
        facts.iter().map(|(name, value)| format!("<dt>{name}</dt><dd>{}</dd>", escape(value))).collect();
    let applications: String = about
        .subjects
        .iter()
        .map(|subject| format!("<dt>{}</dt><dd>{}</dd>", subject.workload.title, escape(&subject.input)))
        .collect();
    let under_load: Vec<Load> = trials.iter().filter_map(Contest::load).collect();
    let warning = match &under_load[..] {
        [] => String::new(),
        loads => format!(
            "<p class='warning'>The machine was under load in {} of {} measurements: {}. They are marked below; \
             measure again on a quiet machine before you rely on them.</p>",
            loads.len(),
            trials.len(),
            taken(loads)
        ),
    };
    let input = match about.kept {
        Some(directory) => format!("<p>The input is kept in {}.</p>", escape(&directory.display().to_string())),
        None if about.preparation.is_empty() => String::new(),
        None => {
            format!("<p>The input was removed. These commands make the same again:</p>{}", commands(about.preparation))
        }
    };
    format!(
        "<h1>Strategies compared</h1>{warning}\
         <p>Each application ran with each strategy as a program of its own, with its input in memory. The strategies of one \
         comparison ran in turn, round after round, so that a disturbance meets all of them. A round in which other programs \
         used more than {:.0} % of the processors was repeated. The answers were compared and were the same.</p><dl>{facts}</dl>\
         <p><b>How to read the charts.</b> A bar is the median {time}: shorter is better. The thick line over its end spans the \
         middle half of the runs, the thin one all of them. Green is the fastest strategy, and every other whose middle half \
         overlaps with its own, or whose median is within 1 %: between those the runs show no difference. A dashed frame means \
         that the machine was under load.</p>\
         <h2>Applications</h2><dl>{applications}</dl>{input}",
        SHARE_MAX * 100.0
    )
}

/// Renders commands to copy, one per line.
fn commands(lines: &[String]) -> String {
    let lines: Vec<String> = lines.iter().map(|line| escape(line)).collect();
    format!("<pre class='commands'>{}</pre>", lines.join("\n"))
}

/// Renders a table of winners.
fn overview(about: &About<'_>, comparisons: &[Comparison], judged: &[Judged<'_>]) -> String {
    let heads: String = about.subjects.iter().map(|subject| format!("<th>{}</th>", subject.workload.title)).collect();
    let rows: String = comparisons
        .iter()
        .map(|comparison| {
            let cells: String = about
                .subjects
                .iter()
                .map(|subject| {
                    let here = judged.iter().find(|judged| {
                        judged.trial.comparison.name == comparison.name
                            && judged.trial.subject.workload.name == subject.workload.name
                    });
                    let load =
                        here.and_then(|judged| judged.load).map_or("", |_| " <span class='soft'>under load</span>");
                    match here {
                        None => "<td></td>".to_owned(),
                        Some(judged) if comparison.kind == Kind::Plan => match judged.plan() {
                            Some((more, _, true)) => format!("<td class='first'>{:+.1} %{load}</td>", more * 100.0),
                            Some((more, _, false)) => format!("<td>{:+.1} %{load}</td>", more * 100.0),
                            None => "<td>failed</td>".to_owned(),
                        },
                        Some(judged) => match &judged.verdict.first[..] {
                            [one] => format!("<td class='first'>{}{load}</td>", escape(judged.name(*one))),
                            all if all.len() == judged.ran.len() => {
                                format!("<td class='soft'>no difference{load}</td>")
                            }
                            some => {
                                let names: Vec<&str> = some.iter().map(|place| judged.name(*place)).collect();
                                format!("<td>{}{load}</td>", escape(&names.join(", ")))
                            }
                        },
                    }
                })
                .collect();
            format!("<tr><th><a href='#{}'>{}</a></th>{cells}</tr>", comparison.name, comparison.title)
        })
        .collect();
    format!(
        "<h2>At a glance</h2><p class='soft'>The fastest strategy; several, where the runs show no difference between them. For \
         the plan: its time against the best fixed strategy.</p>\
         <div class='scroll'><table><tr><th></th>{heads}</tr>{rows}</table></div>"
    )
}

fn section(about: &About<'_>, comparison: &Comparison, trials: &[&Judged<'_>], tried: &[&Contest<'_>]) -> String {
    let charts: String = trials
        .iter()
        .map(|judged| {
            let chart = match comparison.kind {
                Kind::Workers => judged.curve(about.machine.processors),
                _ => judged.bars(),
            };
            let (name, class) = (judged.trial.subject.workload.title, judged.load.map_or("", |_| " class='loaded'"));
            format!(
                "<figure{class}><h3>{name}</h3>{chart}<figcaption>{}</figcaption></figure>",
                escape(&judged.caption())
            )
        })
        .collect();
    let lines: Vec<String> = tried
        .iter()
        .flat_map(|trial| trial.variants.iter().map(|variant| comparison.line(trial.subject, variant)))
        .collect();
    let lines = match &lines[..] {
        [] => String::new(),
        lines => format!("<details><summary>Commands</summary>{}</details>", commands(lines)),
    };
    let absent: String =
        comparison.absent.iter().map(|absent| format!("<p class='note'>{}.</p>", escape(absent))).collect();
    let legend = match comparison.kind {
        Kind::Workers => {
            "<p class='soft'>Left to right: the number of workers. Dashed: the time of one worker, divided by the workers, or \
             by the processors if they are fewer.</p>"
        }
        _ => "",
    };
    format!(
        "<section id='{}'><h2>{}</h2><p>{}</p>{legend}<p class='result'>{}</p>{absent}<div class='charts'>{charts}</div>{}{lines}</section>",
        comparison.name,
        comparison.title,
        comparison.question,
        escape(&conclusion(comparison, trials, tried.len(), about.machine.processors)),
        numbers(comparison, trials)
    )
}

/// Returns the share of the processors that other programs took during the runs that count.
fn others(trial: &Contest<'_>) -> Option<String> {
    let counted = trial.loads.iter().zip(&trial.counts).filter(|(_, counts)| **counts);
    let load = Load::mean(counted.filter_map(|(load, _)| *load))?;
    let mark = if trial.load().is_some() { " (load)" } else { "" };
    Some(format!("{:.0} %{mark}", load.foreign * 100.0))
}

/// Renders all numbers of a comparison.
fn numbers(comparison: &Comparison, trials: &[&Judged<'_>]) -> String {
    let rows: String = trials
        .iter()
        .flat_map(|judged| {
            judged.ran.iter().enumerate().map(|(place, (variant, tally))| {
                let median = |measure| judged.trial.tally(*variant, measure).map(|tally| tally.median);
                let number = |text: Option<String>| format!("<td class='number'>{}</td>", text.unwrap_or_default());
                let count = |measure| number(median(measure).map(|value| format!("{value:.0}")));
                let cpu = median(Measure::UserMs).zip(median(Measure::SystemMs));
                let first = if judged.verdict.first.contains(&place) { " class='first'" } else { "" };
                format!(
                    "<tr data-trial='{}/{}/{}' data-median='{:.3}'><td>{}</td><td{first}>{}</td>{}{}{}{}{}{}{}{}{}{}{}{}{}</tr>",
                    comparison.name,
                    judged.trial.subject.workload.title,
                    escape(judged.name(place)),
                    tally.median,
                    judged.trial.subject.workload.title,
                    escape(judged.name(place)),
                    number(Some(milliseconds(tally.median))),
                    number(Some(format!("{} – {}", milliseconds(tally.lower_quartile), milliseconds(tally.upper_quartile)))),
                    number(Some(format!("{} – {}", milliseconds(tally.least), milliseconds(tally.most)))),
                    number(median(Measure::WallMs).map(milliseconds)),
                    number(cpu.map(|(user, _)| milliseconds(user))),
                    number(cpu.map(|(_, system)| milliseconds(system))),
                    count(Measure::MinorFaults),
                    count(Measure::Allocations),
                    number(median(Measure::AllocatedBytes).map(|bytes| indicatif::DecimalBytes(bytes as u64).to_string())),
                    count(Measure::PagesFresh),
                    count(Measure::PagesReused),
                    number(others(judged.trial)),
                    number(Some(judged.trial.repeated().to_string())),
                )
            })
        })
        .collect();
    let heads: String = [
        "Median",
        "Middle half",
        "All runs",
        "Start to exit",
        "User time",
        "System time",
        "Page faults",
        "Allocations",
        "Bytes allocated",
        "Pages from the kernel",
        "Pages used again",
        "Used by others",
        "Repeated rounds",
    ]
    .map(|head| format!("<th class='number'>{head}</th>"))
    .concat();
    format!(
        "<details><summary>All numbers</summary><div class='scroll'><table><tr><th>Application</th><th>Strategy</th>{heads}</tr>\
         {rows}</table></div></details>"
    )
}

/// Renders the share of start-up, from the statistics of runs with different numbers of workers.
fn start_up(trials: &[&Judged<'_>]) -> String {
    let Some(widest) = trials.iter().max_by_key(|judged| judged.ran.len()) else { return String::new() };
    let heads: String =
        (0..widest.ran.len()).map(|place| format!("<th class='number'>{}</th>", widest.name(place))).collect();
    let mut shares = Vec::new();
    let rows: String = trials
        .iter()
        .map(|judged| {
            let cells: String = judged
                .ran
                .iter()
                .map(|(variant, _)| {
                    match [Measure::StartMs, Measure::WallMs].map(|measure| judged.trial.tally(*variant, measure)) {
                        [Some(start), Some(wall)] => {
                            let share = start.median / wall.median;
                            shares.push(share);
                            format!("<td class='number'>{} · {:.1} %</td>", milliseconds(start.median), share * 100.0)
                        }
                        _ => "<td></td>".to_owned(),
                    }
                })
                .collect();
            format!("<tr><td>{}</td>{cells}</tr>", judged.trial.subject.workload.title)
        })
        .collect();
    let loads: Vec<Load> = trials.iter().filter_map(|judged| judged.load).collect();
    format!(
        "<section id='start-up'><h2>Share of start-up</h2><p>How long it takes until every worker has been started, and which part \
         of the whole time that is, by the number of workers. (Of an application that runs several jobs: the last one.)</p>\
         <p class='result'>{}</p>\
         <div class='scroll'><table><tr><th>Workers</th>{heads}</tr>{rows}</table></div></section>",
        escape(&of_start_up(&shares, &loads))
    )
}

fn failures(trial: &Contest<'_>) -> Vec<String> {
    let named = trial.variants.iter().zip(&trial.failures);
    named
        .filter_map(|(variant, failure)| {
            let what = format!("{}, {}, {}", trial.comparison.title, trial.subject.workload.title, variant.name);
            Some(format!("<li>{}: {}</li>", escape(&what), escape(failure.as_ref()?)))
        })
        .collect()
}
