//! The page that a person reads: what was compared, where, how often, the spread, the winner.

use std::time::Duration;

use super::Time;
use super::application::Application;
use super::chart::{self, Bar, escape, milliseconds};
use super::comparison::{Comparison, Topic};
use super::machine::Machine;
use super::tally::{Tally, Verdict};
use super::trial::{Measure, Trial};
use crate::generate::Size;

/// The circumstances.
pub struct About<'e> {
    pub machine: Machine,
    pub size: Size,
    pub rounds: u32,
    pub by: Time,
    pub took: Duration,
    pub applications: &'e [Application],
}

/// The plan shall be at most this much slower than the best fixed strategy.
const PLAN_TOLERANCE: f64 = 0.03;

/// The whole page; it needs nothing from elsewhere.
pub fn html(about: &About<'_>, comparisons: &[Comparison], trials: &[Trial<'_>]) -> String {
    let judged: Vec<Judged<'_>> = trials.iter().filter_map(|trial| Judged::new(trial, about.by)).collect();
    let mut body = introduction(about);
    body += &overview(about, comparisons, &judged);
    for comparison in comparisons {
        let of_this = |trial: &&Judged<'_>| trial.trial.comparison.topic == comparison.topic;
        let here: Vec<&Judged<'_>> = judged.iter().filter(of_this).collect();
        body += &section(about, comparison, &here);
        if comparison.topic == Topic::Workers {
            body += &start_up(&here);
        }
    }
    let failures: Vec<String> = trials.iter().flat_map(failures).collect();
    if !failures.is_empty() {
        body += &format!("<section><h2>What failed</h2><ul>{}</ul></section>", failures.concat());
    }
    format!(
        "<!doctype html>\n<html lang='en'><head><meta charset='utf-8'><title>Gristmill: strategies compared</title>\
         <meta name='viewport' content='width=device-width, initial-scale=1'><style>{}</style></head>\n<body>{body}</body></html>\n",
        include_str!("report.css")
    )
}

/// A trial that has runs of two strategies at least, and what they say.
struct Judged<'e> {
    trial: &'e Trial<'e>,
    /// Places of the strategies that ran, among those of the trial, with their times.
    ran: Vec<(usize, Tally)>,
    /// Its places are those in `ran`.
    verdict: Verdict,
}

impl<'e> Judged<'e> {
    fn new(trial: &'e Trial<'e>, by: Time) -> Option<Judged<'e>> {
        let measure = match by {
            Time::Wall => Measure::WallMs,
            Time::Processor => Measure::CpuMs,
        };
        let ran: Vec<(usize, Tally)> =
            (0..trial.variants.len()).filter_map(|variant| Some((variant, trial.tally(variant, measure)?))).collect();
        if ran.len() < 2 {
            return None;
        }
        let tallies: Vec<Tally> = ran.iter().map(|(_, tally)| *tally).collect();
        Some(Judged { trial, verdict: Verdict::of(&tallies), ran })
    }

    fn name(&self, place: usize) -> &str {
        &self.trial.variants[self.ran[place].0].name
    }

    fn bars(&self) -> String {
        let bars: Vec<Bar<'_>> = (0..self.ran.len())
            .map(|place| Bar {
                name: self.name(place),
                tally: self.ran[place].1,
                is_first: self.verdict.first.contains(&place),
            })
            .collect();
        chart::bars(&bars)
    }

    fn curve(&self, processors: usize) -> String {
        let points: Vec<(f64, Tally)> = (0..self.ran.len())
            .map(|place| (self.name(place).parse().expect("a number of workers"), self.ran[place].1))
            .collect();
        chart::curve(&points, processors)
    }

    /// `hash is first; the next takes 1.80 times as long`
    fn sentence(&self) -> String {
        let names: Vec<&str> = self.verdict.first.iter().map(|place| self.name(*place)).collect();
        let names = match &names[..] {
            [one] => format!("{one} is fastest"),
            all if all.len() == self.ran.len() => return "No difference: the spreads overlap.".to_owned(),
            [before @ .., last] => format!("no difference between {} and {last}", before.join(", ")),
            [] => unreachable!("one of two or more is fastest"),
        };
        let ahead =
            self.verdict.ahead.map_or(String::new(), |ahead| format!("; the next takes {:.2}× as long", 1.0 + ahead));
        let mut sentence = format!("{names}{ahead}.");
        sentence[..1].make_ascii_uppercase();
        sentence
    }

    /// How much more time the plan (the first strategy) takes than the best of the others, and whether that is good enough.
    fn plan(&self) -> Option<(f64, &str, bool)> {
        let (0, plan) = self.ran[0] else { return None };
        let fixed = (1..self.ran.len()).min_by(|a, b| self.ran[*a].1.median.total_cmp(&self.ran[*b].1.median))?;
        let more = plan.median / self.ran[fixed].1.median - 1.0;
        Some((more, self.name(fixed), more <= PLAN_TOLERANCE || self.verdict.first.contains(&0)))
    }

    fn caption(&self) -> String {
        match (self.trial.comparison.topic, self.plan()) {
            (Topic::Plan, Some((more, best, enough))) => format!(
                "The plan takes {:+.1} % against the best fixed strategy, {best}: {}.",
                more * 100.0,
                match enough {
                    true if more <= PLAN_TOLERANCE => "good enough",
                    true => "the spreads overlap",
                    false => "too slow",
                }
            ),
            _ => self.sentence(),
        }
    }
}

fn introduction(about: &About<'_>) -> String {
    let size = match about.size {
        Size::Small => "small input: the times are short, and start-up is a large part of them",
        Size::Medium => "medium input",
        Size::Large => "input of the papers' size",
    };
    let mut facts = about.machine.facts.clone();
    facts.push(("Input", format!("generated, {size}")));
    facts.push(("Rounds", format!("{}, and one before that does not count", about.rounds)));
    facts.push(("Took", format!("{} s", about.took.as_secs())));
    let time = match about.by {
        Time::Wall => "time from start to exit",
        Time::Processor => "processor time of all processes together",
    };
    let facts: String =
        facts.iter().map(|(name, value)| format!("<dt>{name}</dt><dd>{}</dd>", escape(value))).collect();
    let applications: String = about
        .applications
        .iter()
        .map(|application| {
            let command = application.arguments.join(" ");
            format!(
                "<dt>{}</dt><dd>{} <span class='soft'>gristmill {}</span></dd>",
                application.name,
                escape(&application.input),
                escape(&command)
            )
        })
        .collect();
    format!(
        "<h1>Strategies compared</h1>\
         <p>Each application ran with each strategy as a program of its own, from start to exit, with its input in memory. The \
         strategies of one comparison ran in turn, round after round, so that a disturbance meets all of them. Their answers were \
         compared and were the same.</p><dl>{facts}</dl>\
         <p><b>How to read the charts.</b> A bar is the median {time}: shorter is better. The thick line over its end spans the \
         middle half of the runs, the thin one all of them. Green is the fastest strategy, and every other whose middle half \
         overlaps with its own, or whose median is within 1 %: between those the runs show no difference.</p>\
         <h2>Applications</h2><dl>{applications}</dl>"
    )
}

/// A table of winners.
fn overview(about: &About<'_>, comparisons: &[Comparison], judged: &[Judged<'_>]) -> String {
    let heads: String = about.applications.iter().map(|application| format!("<th>{}</th>", application.name)).collect();
    let rows: String = comparisons
        .iter()
        .map(|comparison| {
            let cells: String = about
                .applications
                .iter()
                .map(|application| {
                    let here = judged.iter().find(|judged| {
                        judged.trial.comparison.topic == comparison.topic
                            && judged.trial.application.subject == application.subject
                    });
                    match here {
                        None => "<td></td>".to_owned(),
                        Some(judged) if comparison.topic == Topic::Plan => match judged.plan() {
                            Some((more, _, true)) => format!("<td class='first'>{:+.1} %</td>", more * 100.0),
                            Some((more, _, false)) => format!("<td>{:+.1} %</td>", more * 100.0),
                            None => "<td>failed</td>".to_owned(),
                        },
                        Some(judged) => match &judged.verdict.first[..] {
                            [one] => format!("<td class='first'>{}</td>", escape(judged.name(*one))),
                            all if all.len() == judged.ran.len() => "<td class='soft'>no difference</td>".to_owned(),
                            some => {
                                let names: Vec<&str> = some.iter().map(|place| judged.name(*place)).collect();
                                format!("<td>{}</td>", escape(&names.join(", ")))
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

fn section(about: &About<'_>, comparison: &Comparison, trials: &[&Judged<'_>]) -> String {
    let charts: String = trials
        .iter()
        .map(|judged| {
            let chart = match comparison.topic {
                Topic::Workers => judged.curve(about.machine.processors),
                _ => judged.bars(),
            };
            let name = judged.trial.application.name;
            format!("<figure><h3>{name}</h3>{chart}<figcaption>{}</figcaption></figure>", escape(&judged.caption()))
        })
        .collect();
    let charts = if charts.is_empty() { "<p>Nothing ran.</p>".to_owned() } else { charts };
    let absent: String =
        comparison.absent.iter().map(|absent| format!("<p class='note'>{}.</p>", escape(absent))).collect();
    let legend = match comparison.topic {
        Topic::Workers => {
            "<p class='soft'>Left to right: the number of workers. Dashed: the time of one worker, divided by the workers, or \
             by the processors if they are fewer.</p>"
        }
        _ => "",
    };
    format!(
        "<section id='{}'><h2>{}</h2><p>{}</p>{legend}<p class='result'>{}</p>{absent}<div class='charts'>{charts}</div>{}</section>",
        comparison.name,
        comparison.title,
        comparison.question,
        escape(&result(about, comparison, trials)),
        numbers(comparison, trials)
    )
}

/// One sentence about all applications.
fn result(about: &About<'_>, comparison: &Comparison, trials: &[&Judged<'_>]) -> String {
    let all = trials.len();
    match comparison.topic {
        Topic::Plan => {
            let enough = trials.iter().filter(|judged| judged.plan().is_some_and(|(_, _, enough)| enough)).count();
            format!(
                "In {enough} of {all} applications the plan is within {:.0} % of the best fixed strategy, or their spreads overlap.",
                PLAN_TOLERANCE * 100.0
            )
        }
        Topic::Workers => {
            // Efficiency, as the papers define it: E = (T1 / Tk) / k.
            let efficiencies = trials.iter().filter_map(|judged| {
                let median = |workers: &str| {
                    let place = (0..judged.ran.len()).find(|place| judged.name(*place) == workers)?;
                    Some(judged.ran[place].1.median)
                };
                let at = about.machine.processors;
                Some(median("1")? / median(&at.to_string())? / at as f64)
            });
            let mut efficiencies: Vec<f64> = efficiencies.collect();
            efficiencies.sort_by(f64::total_cmp);
            match (efficiencies.first(), efficiencies.last()) {
                (Some(least), Some(most)) => format!(
                    "With {} workers, one per processor, efficiency (the time of one worker, divided by workers and time) is {:.0} to \
                     {:.0} %.",
                    about.machine.processors,
                    least * 100.0,
                    most * 100.0
                ),
                _ => String::new(),
            }
        }
        _ => {
            let alone = |variant: &str| {
                let first =
                    |judged: &&&Judged<'_>| matches!(judged.verdict.first[..], [one] if judged.name(one) == variant);
                trials.iter().filter(first).count()
            };
            let mut wins: Vec<(usize, &str)> =
                comparison.variants.iter().map(|variant| (alone(&variant.name), &variant.name[..])).collect();
            wins.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
            let undecided = all - wins.iter().map(|(count, _)| count).sum::<usize>();
            let mut parts: Vec<String> = wins
                .iter()
                .filter(|(count, _)| *count > 0)
                .map(|(count, name)| format!("{name} is fastest alone in {count} of {all}"))
                .collect();
            if undecided > 0 {
                parts.push(format!("in {undecided} of {all} several are level"));
            }
            parts.join("; ") + "."
        }
    }
}

/// Every number of a comparison.
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
                    "<tr data-trial='{}/{}/{}' data-median='{:.3}'><td>{}</td><td{first}>{}</td>{}{}{}{}{}{}{}{}{}{}{}</tr>",
                    comparison.name,
                    judged.trial.application.name,
                    escape(judged.name(place)),
                    tally.median,
                    judged.trial.application.name,
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
    ]
    .map(|head| format!("<th class='number'>{head}</th>"))
    .concat();
    format!(
        "<details><summary>All numbers</summary><div class='scroll'><table><tr><th>Application</th><th>Strategy</th>{heads}</tr>\
         {rows}</table></div></details>"
    )
}

/// The share of start-up, from the statistics of the runs with different numbers of workers.
fn start_up(trials: &[&Judged<'_>]) -> String {
    let Some(widest) = trials.iter().max_by_key(|judged| judged.ran.len()) else { return String::new() };
    let heads: String =
        (0..widest.ran.len()).map(|place| format!("<th class='number'>{}</th>", widest.name(place))).collect();
    let rows: String = trials
        .iter()
        .map(|judged| {
            let cells: String = judged
                .ran
                .iter()
                .map(|(variant, _)| {
                    match [Measure::StartMs, Measure::WallMs].map(|measure| judged.trial.tally(*variant, measure)) {
                        [Some(start), Some(wall)] => {
                            let share = start.median / wall.median * 100.0;
                            format!("<td class='number'>{} · {share:.1} %</td>", milliseconds(start.median))
                        }
                        _ => "<td></td>".to_owned(),
                    }
                })
                .collect();
            format!("<tr><td>{}</td>{cells}</tr>", judged.trial.application.name)
        })
        .collect();
    format!(
        "<section id='start-up'><h2>Share of start-up</h2><p>How long until every worker has been started, and which part of the \
         whole program that is, by the number of workers. (Of an application that runs several jobs: the last one.)</p>\
         <div class='scroll'><table><tr><th>Workers</th>{heads}</tr>{rows}</table></div></section>"
    )
}

fn failures(trial: &Trial<'_>) -> Vec<String> {
    let named = trial.variants.iter().zip(&trial.failures);
    named
        .filter_map(|(variant, failure)| {
            let what = format!("{}, {}, {}", trial.comparison.title, trial.application.name, variant.name);
            Some(format!("<li>{}: {}</li>", escape(&what), escape(failure.as_ref()?)))
        })
        .collect()
}
