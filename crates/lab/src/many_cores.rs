//! `gristmill-lab many-cores`: where more workers stop helping on a machine, in one file.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::Args;
use gristmill::Error;
use gristmill_cli::{Failure, print};
use gristmill_os::room::{no_temporary, private_folder, temporary_folder};
use gristmill_report::messages::tell;
use gristmill_report::tally::Tally;
use serde_json::{Map, Value, json};

use crate::compare::comparison::Comparison;
use crate::compare::machine::MachineFacts;
use crate::compare::subject::Subject;
use crate::compare::trial::{Contest, MEASURES, Runner};
use crate::generate::{Generator, Present, Size};
use crate::page::{Item, Paper};
use crate::results::ResultFile;
use crate::workloads::WORKLOADS;
use crate::{bottlenecks, dmr, mr_search};

/// Measure where more workers stop helping on this machine, and write all of it into one file
///
/// Runs applications with 1, 2, 4 ... workers, in processes and in threads, with each memory of pages and each way to
/// exchange them, and then asks the papers that are about workers. The file is written anew after each part, and names
/// the parts for which no time was left. Nothing but this program is needed: built without shared libraries, it can be
/// copied to a machine that has no compiler and no network.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct ManyCores {
    /// Begin no part later than this
    #[arg(long, value_name = "SECONDS", default_value_t = 480)]
    seconds: u64,

    /// How often each measurement is repeated; fewer than three give no verdict
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,

    /// Small input: a first look
    #[arg(long)]
    quick: bool,

    /// The file (JSON)
    #[arg(long, short, value_name = "FILE", default_value = "many-cores.json")]
    output: PathBuf,
}

const EXAMPLES: &str = "\
Examples:
  gristmill-lab many-cores --quick --seconds 60
  RUSTFLAGS='-C target-feature=+crt-static' cargo build --release --locked -p gristmill-lab --target x86_64-unknown-linux-gnu";

/// A comparison: its name, its strategies, and the applications on which they are compared.
type Question = (&'static str, fn(usize) -> Comparison, &'static [&'static str]);

const QUESTIONS: [Question; 6] = [
    (
        "workers",
        dmr::comparisons::workers,
        &["word-count", "histogram", "linear-regression", "kmeans", "sort", "palindromes", "tile-search"],
    ),
    ("isolation", dmr::comparisons::isolation, &["word-count", "histogram", "sort"]),
    ("pages", mr_search::comparisons::pages, &["word-count", "sort"]),
    ("exchange", dmr::comparisons::exchange, &["word-count", "sort"]),
    ("topology", dmr::comparisons::topology, &["word-count", "sort"]),
    ("placement", mr_search::comparisons::placement, &["word-count", "sort"]),
];

impl ManyCores {
    pub fn run(&self) -> Result<(), Failure> {
        let machine = MachineFacts::here();
        let mut findings = Findings::begin(self, &machine)?;
        let made = private_folder(&temporary_folder()).map_err(no_temporary);
        let folder = made.map_err(|source| Error::System { what: "making the input", source })?;
        let runner = Runner::new()?;
        for (name, comparison, applications) in QUESTIONS {
            let comparison = Comparison { name: name.to_owned(), ..comparison(machine.processors) };
            for application in applications {
                findings.part("comparisons", &format!("{name}: {application}"), || {
                    let subject = self.subject(application, machine.processors, folder.path())?;
                    let mut contest = Contest::new(&comparison, &subject);
                    runner.run(&mut contest, self.rounds, 0)?;
                    Ok(told(&contest))
                })?;
            }
        }
        drop(folder);
        let size = if self.quick { Size::Small } else { Size::Medium };
        let mut asked = dmr::experiments::Experiments::new(size, self.rounds, machine.processors);
        findings.paper(&dmr::paper::PAPER, &mut asked)?;
        let mut asked = mr_search::paper::Experiments::new(self.rounds, self.quick, None)?;
        findings.paper(&mr_search::paper::PAPER, &mut asked)?;
        let mut asked = bottlenecks::paper::Experiments::new(self.rounds, self.quick, None)?;
        findings.paper(&bottlenecks::paper::PAPER, &mut asked)?;
        print(&self.output)
    }

    /// Makes the input of an application, which is read once for every four processors.
    fn subject(&self, application: &str, processors: usize, folder: &Path) -> Result<Subject, Failure> {
        let size = if self.quick { Size::Small } else { Size::Medium };
        let found = WORKLOADS.iter().find(|workload| workload.name == application);
        let workload = found.expect("the questions name applications that there are");
        let generator = Generator { size, seed: 1, directory: folder, present: Present::Keep };
        let paths = workload.input.map_or(Ok(Vec::new()), |kind| generator.make(kind))?;
        let repeated: Vec<PathBuf> = (0..processors.div_ceil(4)).flat_map(|_| paths.clone()).collect();
        Ok(Subject::new(workload, size, &repeated, folder))
    }
}

/// The measurements so far.
struct Findings {
    path: PathBuf,
    until: Instant,
    content: Map<String, Value>,
}

impl Findings {
    /// Writes a file that describes the machine.
    fn begin(asked: &ManyCores, machine: &MachineFacts) -> Result<Findings, Failure> {
        let facts: Map<String, Value> =
            machine.facts.iter().map(|(name, value)| ((*name).to_owned(), value.as_str().into())).collect();
        let content = json!({
            "machine": facts, "seconds": asked.seconds, "rounds": asked.rounds, "quick": asked.quick,
            "comparisons": [], "figures": [], "failed": [], "left_out": [],
        });
        let Value::Object(content) = content else { unreachable!("it is an object") };
        let findings = Findings {
            path: asked.output.clone(),
            until: Instant::now() + Duration::from_secs(asked.seconds),
            content,
        };
        findings.write()?;
        Ok(findings)
    }

    fn write(&self) -> Result<(), Failure> {
        let text = serde_json::to_string_pretty(&self.content).expect("strings and numbers");
        ResultFile::begin(&self.path)?.publish(&(text + "\n"))
    }

    fn add(&mut self, kind: &str, value: Value) {
        self.content[kind].as_array_mut().expect("each kind is a list").push(value);
    }

    /// Measures a part, if there is time. One that fails does not keep the others from being measured.
    fn part(
        &mut self,
        kind: &str,
        name: &str,
        measure: impl FnOnce() -> Result<Value, Failure>,
    ) -> Result<(), Failure> {
        if Instant::now() >= self.until {
            self.add("left_out", name.into());
        } else {
            tell(name);
            match measure() {
                Ok(measured) => self.add(kind, measured),
                Err(failure) => self.add("failed", json!({ "part": name, "why": failure.to_string() })),
            }
        }
        self.write()
    }

    /// Asks the figures and tables of a paper that are experiments.
    fn paper<R>(&mut self, paper: &Paper<R>, asked: &mut R) -> Result<(), Failure> {
        for Item { label, title, paper: claim, agrees_if, ask } in paper.items {
            if agrees_if.is_empty() {
                continue;
            }
            self.part("figures", &format!("{}: {label}", paper.name), || {
                let answer = ask(asked)?;
                let (verdict, why) = answer.verdict.words();
                Ok(json!({
                    "paper": paper.name, "label": label, "title": title, "claim": claim, "agrees_if": agrees_if,
                    "found": answer.found, "verdict": verdict, "why": why,
                }))
            })?;
        }
        Ok(())
    }
}

/// Returns what one comparison found: of each strategy the median, the least and the greatest value of each measure.
fn told(contest: &Contest<'_>) -> Value {
    let numbers = |Tally { median, least, most, .. }| json!({ "median": median, "least": least, "most": most });
    let strategies = contest.variants.iter().enumerate().map(|(at, variant)| {
        let measured = MEASURES.iter().filter_map(|(measure, name)| Some((*name, contest.tally(at, *measure)?)));
        let mut strategy: Map<String, Value> =
            measured.map(|(name, tally)| (name.to_owned(), numbers(tally))).collect();
        strategy.insert("strategy".into(), variant.name.as_str().into());
        if let Some(failure) = &contest.failures[at] {
            strategy.insert("failure".into(), failure.as_str().into());
        }
        Value::Object(strategy)
    });
    json!({
        "comparison": contest.comparison.name,
        "application": contest.subject.workload.name,
        "input": contest.subject.input,
        "foreign_percent": contest.load().map(|load| load.foreign * 100.0),
        "strategies": strategies.collect::<Vec<_>>(),
    })
}
