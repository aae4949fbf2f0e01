//! `gristmill-lab experiment`: the comparisons of DMR and MR-Search (docs/bibliography.md) on this machine, in one
//! report.

use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use gristmill::Error;
use gristmill_cli::{Failure, print};
use gristmill_os::folder::Folder;
use gristmill_os::room::{no_temporary, private_folder, temporary_folder};
use gristmill_report::messages::tell;

use crate::compare::comparison::Comparison;
use crate::compare::machine::MachineFacts;
use crate::compare::subject::Subject;
use crate::compare::time::Time;
use crate::compare::trial::{self, Contest};
use crate::compare::{conclusion, report};
use crate::generate::{Generator, Present, Size, name};
use crate::results::ResultFile;
use crate::workloads::{WORKLOADS, Workload};
use crate::{dmr, mr_search};

/// Compare the strategies of the engine on this machine, and write a report about it
///
/// Runs the applications with each strategy in turn, round after round. Writes report.html, a page that explains
/// itself, and runs.csv with a row for each run.
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

    /// How many rounds of a comparison to repeat at most because other programs used more than a tenth of the
    /// processors [default: as many as --rounds]
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
  gristmill-lab experiment --quick
  gristmill-lab experiment --only buffer,combiner --apps word-count,histogram --rounds 21
  gristmill-lab experiment --size large --data /data/gristmill --output report

Other programs that run at the same time disturb the measurement. Rounds in which they used more than a tenth of the
processors are repeated; where that did not help, the conclusion says that the machine was under load.";

/// Makes the parser for names of workloads.
fn workloads() -> impl TypedValueParser<Value = String> {
    PossibleValuesParser::new(WORKLOADS.iter().map(|workload| {
        let value = PossibleValue::new(workload.name);
        if workload.name == workload.title.replace(' ', "-") { value } else { value.help(workload.title) }
    }))
}

/// A choice of the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Topic {
    /// The number of workers
    Workers,
    /// The choice of the plan, against every fixed strategy
    Plan,
    /// Processes or threads
    Isolation,
    /// Workers that map and reduce, or workers for each
    Topology,
    /// Reduce while map runs, or after it
    Exchange,
    /// The buffer between map and the pages
    Buffer,
    /// Where values are combined
    Combiner,
    /// Where the memory of pages comes from
    Pages,
    /// Written into a shared array, or emitted
    Output,
}

impl Topic {
    /// Returns the strategies to compare on a machine with this many processors.
    fn comparison(self, processors: usize) -> Comparison {
        let compared = match self {
            Topic::Workers => dmr::comparisons::workers(processors),
            Topic::Plan => dmr::comparisons::plan(processors),
            Topic::Isolation => dmr::comparisons::isolation(processors),
            Topic::Topology => dmr::comparisons::topology(processors),
            Topic::Exchange => dmr::comparisons::exchange(processors),
            Topic::Buffer => dmr::comparisons::buffer(processors),
            Topic::Combiner => dmr::comparisons::combiner(processors),
            Topic::Pages => mr_search::comparisons::pages(processors),
            Topic::Output => dmr::comparisons::output(processors),
        };
        Comparison { name: name(self), ..compared }
    }
}

/// The seed of the input.
const SEED: u64 = 1;

impl Experiment {
    pub fn run(&self) -> Result<(), Failure> {
        let rounds = self.rounds.unwrap_or(if self.quick { 5 } else { 11 });
        let machine = MachineFacts::here();
        let topics = Topic::value_variants().iter().filter(|topic| self.only.is_empty() || self.only.contains(topic));
        let comparisons: Vec<Comparison> = topics.map(|topic| topic.comparison(machine.processors)).collect();
        Folder::make(&self.output).map_err(|source| Failure::output(&self.output, source))?;
        let [to_rows, to_report] = ["runs.csv", "report.html"].map(|name| self.output.join(name));
        let (rows, report) = (ResultFile::begin(&to_rows)?, ResultFile::begin(&to_report)?);
        // Removed with this when the report is written.
        let temporary = match self.data {
            Some(_) => None,
            None => {
                let made = private_folder(&temporary_folder()).map_err(no_temporary);
                Some(made.map_err(|source| Error::System { what: "making the input", source })?)
            }
        };
        let directory = self.data.as_deref().or(temporary.as_ref().map(|dir| dir.path()));
        let input = self.make_input(directory.expect("one of the two was chosen above"))?;
        let began = Instant::now();
        let trials = self.run_trials(&comparisons, &input.subjects, rounds)?;
        let about = report::About {
            machine,
            size: self.size(),
            rounds,
            by: self.by,
            took: began.elapsed(),
            subjects: &input.subjects,
            preparation: &input.preparation,
            kept: self.data.as_ref().map(|_| &input.shown as &Path),
        };
        rows.publish(&trial::csv(&trials))?;
        print(to_rows)?;
        report.publish(&report::html(&about, &comparisons, &trials))?;
        print(to_report)
    }

    fn size(&self) -> Size {
        self.size.unwrap_or(if self.quick { Size::Small } else { Size::Medium })
    }

    /// Makes the input of the chosen applications in this directory.
    fn make_input(&self, directory: &Path) -> Result<ComparedInputs, Failure> {
        let size = self.size();
        let generator = Generator { size, seed: SEED, directory, present: Present::Keep };
        // Removed input can be made again. The report says how, and assumes where.
        let shown = match &self.data {
            Some(kept) => std::path::absolute(kept).map_err(|source| Failure::output(kept, source))?,
            None => PathBuf::from("data"),
        };
        let (mut subjects, mut preparation) = (Vec::new(), Vec::new());
        let is_chosen = |workload: &&Workload| self.apps.is_empty() || self.apps.iter().any(|app| app == workload.name);
        for workload in WORKLOADS.iter().filter(is_chosen) {
            let mut paths = Vec::new();
            if let Some(kind) = workload.input {
                tell(format_args!("input of {}", workload.title));
                paths = generator.make(kind)?;
                let (kind, size) = (name(kind), name(size));
                let line = format!("gristmill-lab generate {kind} --size {size} --seed {SEED} --output data");
                if self.data.is_none() && !preparation.contains(&line) {
                    preparation.push(line);
                }
            }
            subjects.push(Subject::new(workload, size, &paths, &shown));
        }
        Ok(ComparedInputs { subjects, preparation, shown })
    }

    /// Runs every comparison on every application to which it applies.
    fn run_trials<'e>(
        &self,
        comparisons: &'e [Comparison],
        subjects: &'e [Subject],
        rounds: u32,
    ) -> Result<Vec<Contest<'e>>, Failure> {
        let mut trials: Vec<Contest> = comparisons
            .iter()
            .flat_map(|comparison| {
                let on = subjects.iter().filter(|subject| (comparison.asks)(subject.workload));
                on.map(|subject| Contest::new(comparison, subject))
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
            runner.run(trial, rounds, self.repeats.unwrap_or(rounds))?;
            if let Some(load) = trial.load() {
                tell(format_args!("{comparison}, {application}: measured under load, {}", conclusion::taken(&[load])));
            }
        }
        Ok(trials)
    }
}

/// The input of an experiment.
struct ComparedInputs {
    subjects: Vec<Subject>,
    /// The commands that make it again, if it is removed.
    preparation: Vec<String>,
    /// Where the report says that it is.
    shown: PathBuf,
}
