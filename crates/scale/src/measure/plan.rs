//! Measures a command: the plan of its runs, the runs, and the account of the fastest combination of parameters.

use std::time::Duration;

use gristmill::Error;
use gristmill_counters::card::Card;
use gristmill_os::machine::Processors;
use indicatif::{ProgressBar, ProgressStyle};

use super::evidence::{self, Evidence};
use super::experiments::{self, Surroundings};
use super::palindromes::Control;
use super::table::Table;
use super::what;
use crate::request::{Request, When};
use crate::run::applications::Applications;
use crate::run::command::{BrokenOff, Launcher, What};
use crate::run::own::system;
use crate::run::parameters::Combination;
use crate::run::rounds::{self, Effort, Series};

/// The time after which no optional round begins.
const ENOUGH: Duration = Duration::from_secs(24);

/// The runs that are to be made.
pub struct PlannedRuns {
    pub card: Card,
    pub processors: u64,
    pub combinations: Vec<Combination>,
    /// Runs beside the combinations, and is compared with them.
    pub control: Option<Control>,
    /// The numbers of workers.
    workers: Vec<u64>,
    /// One for each combination, then the control.
    programs: Vec<Launcher>,
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

impl PlannedRuns {
    /// Plans the runs of a request.
    pub fn of(request: &Request, applications: &Applications) -> Result<PlannedRuns, Error> {
        let combinations = Combination::all(&request.vary).map_err(Error::Setting)?;
        let whats = combinations.iter().map(|values| what::with(request, values, applications));
        let mut whats = whats.collect::<Result<Vec<What>, Error>>()?;
        let card = Card::here();
        let processors = Processors::within(card.topology.allowed.len(), card.quota).usable as u64;
        let workers = if request.workers.is_empty() { numbers(processors) } else { sorted(&request.workers) };
        let control = match &whats[..] {
            [What { own: Some(own), .. }] if !request.is_weak => {
                let workers_max = *workers.last().expect("at least one");
                Control::of(&request.program, own, workers_max, applications)?
            }
            _ => None,
        };
        // The control runs in the same rounds.
        let control = control.map(|(control, what)| {
            whats.push(what);
            control
        });
        let programs = Launcher::all(whats, request.timeout).map_err(system)?;
        Ok(PlannedRuns { card, processors, combinations, control, workers, programs })
    }

    /// Makes the runs.
    pub fn make(&self, request: &Request) -> Result<Measured, BrokenOff> {
        let effort = Effort { repeats: request.repeats as usize, enough: ENOUGH };
        let bar = self.bar(&effort);
        let made = self.runs(request, &effort, &bar);
        bar.finish_and_clear();
        made
    }

    fn bar(&self, effort: &Effort) -> ProgressBar {
        let bar = ProgressBar::new(((self.workers.len() * effort.repeats + 1) * self.programs.len()) as u64);
        let style = ProgressStyle::with_template("{msg:28} {wide_bar} {pos}/{len} {elapsed}");
        bar.set_style(style.expect("the template is right"));
        bar
    }

    fn runs(&self, request: &Request, effort: &Effort, bar: &ProgressBar) -> Result<Measured, BrokenOff> {
        let warm = self.workers.iter().rev().find(|count| **count <= self.processors).unwrap_or(&self.workers[0]);
        let mut series = rounds::make(&self.programs, &self.workers, *warm, effort, |workers, round| {
            // Rounds beyond the least are not in its length.
            if round > 0 && bar.position() >= bar.length().unwrap_or(0) {
                bar.inc_length(1);
            }
            bar.set_message(match round {
                0 => "warm-up".to_owned(),
                _ => format!("round {round}, workers: {workers}"),
            });
            bar.inc(1);
        })?;
        let without = self.control.as_ref().map(|_| series.pop().expect("it ran last"));
        let fastest = self.table(request.is_weak, &series).fastest();
        let mut measured = Measured { series, without, fastest, evidence: None };
        if request.account && !request.is_weak {
            let place = Surroundings::here(&self.card, self.processors, request.despite_load);
            let evidence = looked_at(request, &self.programs[fastest], &measured.series[fastest], &place, bar)?;
            measured.evidence = Some(evidence);
        }
        Ok(measured)
    }

    /// Returns the table of all combinations.
    pub fn table<'t>(&'t self, is_weak: bool, series: &'t [Vec<Series>]) -> Table<'t> {
        Table { combinations: &self.combinations, series, is_weak }
    }

    /// Ends this process as the signal would have.
    pub fn end_by(self, signal: i32) {
        Launcher::end_by(self.programs, signal);
    }
}

/// Looks at runs, and makes experiments if they leave several causes.
fn looked_at(
    request: &Request,
    program: &Launcher,
    all: &[Series],
    place: &Surroundings,
    bar: &ProgressBar,
) -> Result<Evidence, BrokenOff> {
    let begins = |workers| bar.set_message(format!("sampled, workers: {workers}"));
    let mut evidence = evidence::gather(program, all, begins)?;
    evidence.despite_load = request.despite_load;
    let loss = match request.experiments {
        When::Auto => evidence.loss(place.processors).ok(),
        When::Always => evidence.any_loss(place.processors),
        When::Never => None,
    };
    if let Some((loss, busy)) = loss {
        let begins = |change| bar.set_message(format!("{change}"));
        evidence.findings = experiments::make(program, all, (&loss, busy), place, request.experiments, begins)?;
    }
    Ok(evidence)
}

/// Returns 1, 2, 4 and so on to twice the processors. With few processors, 3 and 6 are included.
fn numbers(processors: u64) -> Vec<u64> {
    let end = processors * 2;
    if end <= 8 {
        return (1..=end).filter(|count| *count <= 4 || count % 2 == 0).collect();
    }
    let mut numbers: Vec<u64> =
        std::iter::successors(Some(1), |count| Some(count * 2)).take_while(|count| *count <= end).collect();
    numbers.extend([processors, end]);
    sorted(&numbers)
}

fn sorted(numbers: &[u64]) -> Vec<u64> {
    let mut numbers = numbers.to_vec();
    numbers.sort_unstable();
    numbers.dedup();
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_go_to_twice_the_processors() {
        assert_eq!(numbers(1), [1, 2]);
        assert_eq!(numbers(2), [1, 2, 3, 4]);
        assert_eq!(numbers(4), [1, 2, 3, 4, 6, 8]);
        assert_eq!(numbers(12), [1, 2, 4, 8, 12, 16, 24]);
    }
}
