//! From a request to its report: the runs, or times that were measured elsewhere, and what they mean.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;

use gristmill::Error;
use gristmill_counters::card::Card;
use gristmill_report::messages::printable;

use crate::diagnose::{self, Circumstances, Conclusion, Curve, Failure, Times};
use crate::measure::evidence::Evidence;
use crate::measure::phase_table;
use crate::measure::plan::{Measured, PlannedRuns};
use crate::report::{json, keep, notes, page, text};
use crate::request::Request;
use crate::run::applications::Applications;
use crate::run::command::BrokenOff;
use crate::run::own::system;
use crate::run::parameters::Combination;
use crate::run::rounds::{self, Series};
use crate::section::{About, Section};

/// All that is known of a command, or of times that were measured elsewhere.
pub struct Report {
    curve: Curve,
    about: About,
    /// Where the time of the workers went, if that was looked at.
    evidence: Option<Evidence>,
    /// The notes of the table, by number of workers.
    marks: BTreeMap<u64, String>,
}

impl Report {
    /// Returns true if the command failed in some of the runs.
    pub fn has_failures(&self) -> bool {
        !self.about.conclusion.failures.is_empty()
    }

    /// Returns the report for a terminal.
    pub fn text(&self) -> String {
        let mark = |workers| self.marks.get(&workers).cloned().unwrap_or_default();
        text::report(&self.about, &self.curve, self.evidence.as_ref(), mark)
    }

    /// Returns the times and what they mean as one object, with times in seconds.
    pub fn json(&self) -> String {
        json::object(&self.about, &self.curve)
    }

    /// Returns the report as a page.
    pub fn html(&self) -> String {
        page::html(&self.about, &self.curve, self.evidence.as_ref())
    }
}

/// Analyses times measured elsewhere: a number of workers and seconds in each line. The machine had this many
/// `processors`.
///
/// # Errors
/// There are too few times, or a line has none.
///
/// ```
/// let report = gristmill_scale::analyse("times.csv", "1,40.6\n2,21.2\n4,11.0\n8,6.6\n16,5.2\n32,5.7\n", None)?;
/// assert!(report.text().contains("More workers help up to 16"));
/// # Ok::<(), gristmill_scale::diagnose::Error>(())
/// ```
pub fn analyse(title: &str, table: &str, processors: Option<u64>) -> Result<Report, diagnose::Error> {
    let (times, zeros) = Times::from_table(table)?;
    let mut notes = Vec::new();
    if let [first, ..] = zeros[..] {
        let lines = match zeros.len() {
            1 => format!("line {first}"),
            count => format!("line {first} and {} more", count - 1),
        };
        notes.push(format!("Times of 0 were left out ({lines}): the clock was too coarse for them."));
    }
    let curve = Curve::with(&times, processors)?;
    let conclusion = Conclusion::of(&curve, &Circumstances::default());
    let (facts, varied, phases) = Default::default();
    let about = About { title: printable(title), facts, conclusion, notes, time: "time", varied, phases };
    Ok(Report { curve, about, evidence: None, marks: BTreeMap::new() })
}

/// Runs a command with several numbers of workers. Returns nothing if this process was asked to end, and has not ended
/// yet.
///
/// # Errors
/// [`Error::Setting`] if the request makes no sense. Otherwise nothing could be measured, or the system refuses.
pub fn measure(request: &Request, applications: &Applications) -> Result<Option<Report>, Error> {
    let plan = PlannedRuns::of(request, applications)?;
    match plan.make(request) {
        Ok(measured) => conclude(request, applications, &plan, measured).map(Some),
        Err(BrokenOff::Failed(source)) => Err(system(source)),
        Err(BrokenOff::Asked(signal)) => {
            plan.end_by(signal);
            Ok(None)
        }
    }
}

/// Draws the conclusion from runs.
fn conclude(
    request: &Request,
    applications: &Applications,
    plan: &PlannedRuns,
    measured: Measured,
) -> Result<Report, Error> {
    let Measured { series, without, fastest, evidence } = measured;
    let all = &series[fastest];
    let failures = notes::failures(&plan.combinations, &series);
    let wrong = |error: diagnose::Error| system(io::Error::other(error.to_string()));
    let times = rounds::times(all, request.is_weak).map_err(wrong)?;
    if times.points().next().is_none() {
        let why = failures.first().map_or(String::new(), Failure::sentence);
        return Err(system(io::Error::other(format!("nothing could be measured. {why}"))));
    }
    let mut notes = notes::disturbances(all);
    notes.extend(keep(request, applications, &plan.combinations, &series));
    let curve = Curve::with(&times, Some(plan.processors)).map_err(wrong)?;
    let circumstances = Circumstances {
        failures,
        is_weak: request.is_weak,
        cause: evidence.as_ref().and_then(|evidence| evidence.sentence(plan.processors)),
        threads: evidence.as_ref().map_or_else(Vec::new, notes::threads),
        ..notes::circumstances(all)
    };
    let mut phases = phase_table::section(all);
    if let (Some(control), Some(without)) = (&plan.control, &without) {
        let paper = control.section(all, without, plan.processors);
        phases = Section { text: phases.text + &paper.text, html: phases.html + &paper.html };
    }
    let about = About {
        title: title(&request.program),
        facts: facts(&plan.card),
        conclusion: Conclusion::of(&curve, &circumstances),
        notes,
        time: if request.is_weak { "time / k" } else { "time" },
        varied: plan.table(request.is_weak, &series).section(),
        phases,
    };
    let marks = all.iter().map(|series| (series.workers, notes::mark(series))).collect();
    Ok(Report { curve, about, evidence, marks })
}

fn title(program: &[OsString]) -> String {
    let words: Vec<String> = program.iter().map(|word| printable(&word.to_string_lossy())).collect();
    words.join(" ")
}

/// Keeps the times of an application for later plans. Those of a growing input are of many inputs, and what prepares a
/// run may have emptied the page cache.
fn keep(
    request: &Request,
    applications: &Applications,
    combinations: &[Combination],
    series: &[Vec<Series>],
) -> Option<String> {
    let path = request.history.as_ref().filter(|_| !request.is_weak && request.prepare.is_none())?;
    let words = |values: &Combination| [&request.program[..1], &values.options(), &request.program[1..]].concat();
    let all: Vec<_> = combinations.iter().zip(series).map(|(values, series)| (words(values), &series[..])).collect();
    keep::keep(path, &all, request.despite_load, applications)
}

/// Returns the circumstances of the runs, as names and values.
fn facts(card: &Card) -> Vec<(String, String)> {
    let mut facts: Vec<(String, String)> =
        card.facts().into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    facts.push(("Date".to_owned(), humantime::format_rfc3339_seconds(std::time::SystemTime::now()).to_string()));
    facts
}
