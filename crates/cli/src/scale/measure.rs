//! Measures a command: the plan of its runs, the runs, and the account of the fastest combination of parameters.

use std::io;

use gristmill::Error;
use gristmill_counters::card::Card;
use gristmill_os::machine::Processors;
use indicatif::{ProgressBar, ProgressStyle};

use super::command::{Program, What};
use super::evidence::{self, Evidence};
use super::experiments::{self, Place, When};
use super::palindromes::Control;
use super::runs::{self, Effort, Series};
use super::vary::{Combination, Table};
use super::what::Described;
use super::{ENOUGH, Scale, numbers, sorted};
use crate::terminal::failure::Failure;

/// The runs that are to be made.
pub struct Plan {
    pub card: Card,
    pub processors: u64,
    pub combinations: Vec<Combination>,
    /// What runs beside the combinations, and is compared with them.
    pub control: Option<Control>,
    /// The numbers of workers.
    workers: Vec<u64>,
    /// One for each combination, then the control.
    programs: Vec<Program>,
}

/// The runs that were made.
pub struct Measured {
    /// Those of each combination, one series for each number of workers.
    pub series: Vec<Vec<Series>>,
    /// The runs of the control.
    pub without: Option<Vec<Series>>,
    /// The place of the combination with the shortest time.
    pub fastest: usize,
    /// Where the time of its workers went.
    pub evidence: Option<Evidence>,
}

impl Plan {
    /// Plans the runs of a command line.
    pub fn of(scale: &Scale) -> Result<Plan, Failure> {
        let combinations = Combination::all(&scale.vary).map_err(Failure::Usage)?;
        let described = Described { program: &scale.program, prepare: scale.prepare.as_ref(), is_weak: scale.weak };
        let whats: io::Result<Result<Vec<What>, String>> =
            combinations.iter().map(|values| described.with(values)).collect();
        let mut whats = whats.map_err(system)?.map_err(Failure::Usage)?;
        let card = Card::here();
        let processors = Processors::within(card.topology.allowed.len(), card.quota).usable as u64;
        let workers = if scale.workers.is_empty() { numbers(processors) } else { sorted(&scale.workers) };
        let control = match &whats[..] {
            [What { own: Some(own), .. }] if !scale.weak => {
                Control::of(&scale.program, own, *workers.last().expect("at least one")).map_err(system)?
            }
            _ => None,
        };
        // The control runs in the same rounds.
        let control = control.map(|(control, what)| {
            whats.push(what);
            control
        });
        let programs = Program::all(whats, scale.timeout).map_err(system)?;
        Ok(Plan { card, processors, combinations, control, workers, programs })
    }

    /// Makes the runs. Returns a signal if this program was asked to end.
    pub fn make(&self, scale: &Scale) -> Result<Result<Measured, i32>, Failure> {
        let effort = Effort { repeats: scale.repeats as usize, enough: ENOUGH };
        let bar = self.bar(&effort);
        let made = self.runs(scale, &effort, &bar).map_err(system);
        bar.finish_and_clear();
        made
    }

    fn bar(&self, effort: &Effort) -> ProgressBar {
        let bar = ProgressBar::new(((self.workers.len() * effort.repeats + 1) * self.programs.len()) as u64);
        let style = ProgressStyle::with_template("{msg:28} {wide_bar} {pos}/{len} {elapsed}");
        bar.set_style(style.expect("the template is right"));
        bar
    }

    fn runs(&self, scale: &Scale, effort: &Effort, bar: &ProgressBar) -> io::Result<Result<Measured, i32>> {
        let warm = self.workers.iter().rev().find(|count| **count <= self.processors).unwrap_or(&self.workers[0]);
        let made = runs::make(&self.programs, &self.workers, *warm, effort, |workers, round| {
            if round as u64 * bar.length().unwrap_or(0) > 0 && bar.position() + 1 > bar.length().unwrap_or(0) {
                bar.inc_length(1);
            }
            bar.set_message(match round {
                0 => "warm-up".to_owned(),
                _ => format!("round {round}, workers: {workers}"),
            });
            bar.inc(1);
        })?;
        let mut series = match made {
            Ok(series) => series,
            Err(signal) => return Ok(Err(signal)),
        };
        let without = self.control.as_ref().map(|_| series.pop().expect("it ran last"));
        let fastest = self.table(scale, &series).fastest();
        let mut measured = Measured { series, without, fastest, evidence: None };
        if !scale.no_account && !scale.weak {
            let place = Place::here(&self.card, self.processors, scale.despite_load);
            measured.evidence = match looked_at(scale, &self.programs[fastest], &measured.series[fastest], &place, bar)?
            {
                Ok(evidence) => Some(evidence),
                Err(signal) => return Ok(Err(signal)),
            };
        }
        Ok(Ok(measured))
    }

    /// Returns the table of all combinations.
    pub fn table<'t>(&'t self, scale: &Scale, series: &'t [Vec<Series>]) -> Table<'t> {
        Table { combinations: &self.combinations, series, is_weak: scale.weak }
    }

    /// Ends this process as the signal would have.
    pub fn end_by(self, signal: i32) {
        Program::end_by(self.programs, signal);
    }
}

/// Looks at runs, and makes experiments if they leave several causes. Returns a signal if this program was asked to end.
fn looked_at(
    scale: &Scale,
    program: &Program,
    all: &[Series],
    place: &Place,
    bar: &ProgressBar,
) -> io::Result<Result<Evidence, i32>> {
    let begins = |workers| bar.set_message(format!("sampled, workers: {workers}"));
    let mut evidence = match evidence::gather(program, all, begins)? {
        Ok(evidence) => evidence,
        Err(signal) => return Ok(Err(signal)),
    };
    evidence.despite_load = scale.despite_load;
    let loss = match scale.experiments {
        When::Auto => evidence.loss(place.processors).ok(),
        When::Always => evidence.any_loss(place.processors),
        When::Never => None,
    };
    if let Some((loss, busy)) = loss {
        let begins = |change| bar.set_message(format!("{change}"));
        evidence.findings = match experiments::make(program, all, (&loss, busy), place, scale.experiments, begins)? {
            Ok(findings) => findings,
            Err(signal) => return Ok(Err(signal)),
        };
    }
    Ok(Ok(evidence))
}

/// Makes the failure of a system call around the runs.
pub fn system(source: io::Error) -> Failure {
    Failure::Job(Error::System { what: "running the command", source })
}
