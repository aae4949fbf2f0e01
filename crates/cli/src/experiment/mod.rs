//! `gristmill experiment`: repeats the comparisons of DMR and MR-Search (docs/bibliography.md) on this machine.
//!
//! ```text
//!  comparison   the strategies of one choice, each defined by a few arguments
//!  subject      a workload of an application with its input
//!  trial        runs them as child processes of this program, in turn, round after round
//!               (the load of other programs: `gristmill_counters::load`)
//!  tally        medians, quartiles, and the fastest strategy
//!  report       a page with a chart for each application and each comparison; rows of all runs as CSV
//!    conclusion   one sentence per comparison
//!    chart        bars and curves    shell        commands to copy and run
//! ```
//!
//! One comparison is a separate program: [`HandOver`] compares shared pages with a pipe and a socket.

mod time;
mod allocator;
mod subject;
mod machine;
mod shell;
mod comparison;
pub mod tally;
pub mod chart;
mod trial;
mod conclusion;
mod report;

use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use gristmill::Error;
use gristmill_os::folder::Folder;
use gristmill_os::room::temporary_folder;

use crate::commands::Applications;
use crate::commands::generate::{Generator, Present, Size, name};
use crate::experiment::time::Time;
use crate::output::aside::write_whole;
use crate::output::private_folder::private_folder;
use crate::terminal::failure::{Failure, no_temporary};
use crate::terminal::messages::tell;
use crate::terminal::standard_output::print;
pub use chart::escape;
use comparison::{Comparison, Topic};
use subject::Subject;
use trial::Trial;

/// Compare the strategies of the engine on this machine, and write a report about it
///
/// Runs the applications with each strategy in turn, round after round. Writes report.html, a page that explains itself,
/// and runs.csv with a row for each run.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Experiment {
    /// Small input and few rounds: one or two minutes on two processors
    #[arg(long)]
    quick: bool,

    /// Only these comparisons, separated by commas
    #[arg(long, value_enum, value_name = "COMPARISON", value_delimiter = ',')]
    only: Vec<Topic>,

    /// Only these applications, separated by commas
    #[arg(long, value_parser = workloads(), value_name = "APPLICATION", value_delimiter = ',')]
    apps: Vec<String>,

    /// Size of the input [default: medium, with --quick small]
    #[arg(long, value_enum)]
    size: Option<Size>,

    /// How often each strategy runs, after one run that does not count [default: 11, with --quick 5]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    rounds: Option<u32>,

    /// How many rounds of a comparison to repeat at most because other programs used more than a tenth of the processors
    /// [default: as many as --rounds]
    #[arg(long, value_name = "N")]
    repeats: Option<u32>,

    /// The time that decides
    #[arg(long, value_enum, default_value_t)]
    by: Time,

    /// Keep the input in this directory, and use the files that are there already [default: a temporary directory]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,

    /// Directory of report.html and runs.csv
    #[arg(long, short, value_name = "DIR", default_value = "experiment")]
    output: PathBuf,
}

const EXAMPLES: &str = "\
Examples:
  gristmill experiment --quick
  gristmill experiment --only buffer,combiner --apps word-count,histogram --rounds 21
  gristmill experiment --size large --data /data/gristmill --output report

Other programs that run at the same time disturb the measurement. Rounds in which they used more than a tenth of the
processors are repeated; where that did not help, the conclusion says that the machine was under load.";

/// Makes the parser for names of workloads.
fn workloads() -> impl TypedValueParser<Value = String> {
    PossibleValuesParser::new(Applications::workloads().map(|workload| {
        let value = PossibleValue::new(workload.name);
        if workload.name == workload.title.replace(' ', "-") { value } else { value.help(workload.title) }
    }))
}

/// The seed of the input.
const SEED: u64 = 1;

impl Experiment {
    pub fn run(&self) -> Result<(), Failure> {
        // 1. Choose comparisons and subjects.
        let size = self.size.unwrap_or(if self.quick { Size::Small } else { Size::Medium });
        let rounds = self.rounds.unwrap_or(if self.quick { 5 } else { 11 });
        let repeats = self.repeats.unwrap_or(rounds);
        let machine = machine::Machine::here();
        let comparisons: Vec<Comparison> = comparison::TOPICS
            .into_iter()
            .filter(|topic| self.only.is_empty() || self.only.contains(topic))
            .map(|topic| topic.comparison(machine.processors))
            .collect();
        Folder::make(&self.output).map_err(|source| Failure::output(&self.output, source))?;
        // 2. Make the input.
        let temporary = match self.data {
            Some(_) => None,
            None => {
                let made = private_folder(&temporary_folder()).map_err(no_temporary);
                Some(made.map_err(|source| Error::System { what: "making the input", source })?)
            }
        };
        let directory = self.data.as_deref().or(temporary.as_ref().map(|dir| dir.path()));
        let directory = directory.expect("one of the two was chosen above");
        let generator = Generator { size, seed: SEED, directory, present: Present::Keep };
        // Removed input can be made again. The report says how, and assumes where.
        let shown = match &self.data {
            Some(kept) => std::path::absolute(kept).map_err(|source| Failure::output(kept, source))?,
            None => PathBuf::from("data"),
        };
        let (mut subjects, mut preparation) = (Vec::new(), Vec::new());
        let is_chosen = |name: &str| self.apps.is_empty() || self.apps.iter().any(|chosen| chosen == name);
        for workload in Applications::workloads().filter(|workload| is_chosen(workload.name)) {
            let paths = match workload.input {
                Some(kind) => {
                    tell(format_args!("input of {}", workload.title));
                    let made = generator.make(kind)?;
                    let line =
                        format!("gristmill generate {} --size {} --seed {SEED} --output data", name(kind), name(size));
                    if self.data.is_none() && !preparation.contains(&line) {
                        preparation.push(line);
                    }
                    made
                }
                None => Vec::new(),
            };
            subjects.push(Subject::new(workload, size, &paths, &shown));
        }
        // 3. Run.
        let mut trials: Vec<Trial> = comparisons
            .iter()
            .flat_map(|comparison| {
                let on = subjects.iter().filter(|subject| comparison.asks(subject));
                on.map(|subject| Trial::new(comparison, subject))
            })
            .filter(|trial| trial.variants.len() > 1)
            .collect();
        let runner = trial::Runner::new()?;
        let (began, all) = (Instant::now(), trials.len());
        for (done, trial) in trials.iter_mut().enumerate() {
            let left = match done {
                0 => String::new(),
                _ => format!(", {:.0} s left", began.elapsed().as_secs_f64() / done as f64 * (all - done) as f64),
            };
            let (comparison, application) = (&trial.comparison.name, trial.subject.workload.title);
            tell(format_args!("{} of {all}: {comparison}, {application}{left}", done + 1));
            runner.run(trial, rounds, repeats)?;
            if let Some(load) = trial.load() {
                tell(format_args!("{comparison}, {application}: measured under load, {}", conclusion::taken(&[load])));
            }
        }
        // 4. Write the report.
        let about = report::About {
            machine,
            size,
            rounds,
            by: self.by,
            took: began.elapsed(),
            subjects: &subjects,
            preparation: &preparation,
            kept: self.data.as_ref().map(|_| &shown as &Path),
        };
        for (name, content) in
            [("runs.csv", trial::csv(&trials)), ("report.html", report::html(&about, &comparisons, &trials))]
        {
            let path = self.output.join(name);
            write_whole(&path, &content)?;
            print(path)?;
        }
        Ok(())
    }
}
