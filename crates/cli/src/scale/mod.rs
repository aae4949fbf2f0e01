//! `gristmill scale`: finds where more workers stop helping, for any command.
//!
//! ```text
//!  words          the words of a command, with places for the number of workers
//!  section        the parts of the report
//!  phases         where the workers of our own applications spend their time
//!  reads          the files that one of our own applications reads, and their copies in memory
//!  own            one of our own applications as a command
//!  look           what the threads of a run do now
//!  beside         processes that keep the machine busy beside a run
//!  circumstances  what differs from an ordinary run
//!  command        one run with all its processes
//!  runs           the order of the runs, and which of them count
//!                 (the analysis of their times, and the conclusion: `gristmill_diagnose`)
//!  phase_table    the phases as a part of the report
//!  vary           combinations of other parameters
//!  what           the words of each run, from the command line
//!  palindromes    what thread bottlenecks (Chen 2020) measures beyond that
//!  experiments    runs under changed circumstances, which rule out causes
//!  evidence       the account of the workers' time, with one more run each, whose threads are sampled
//!  measure        all of these runs, as the command line asks for them
//!  notes          facts about the runs beside their times: failures, load, processors in use
//!  keep           the times in the history, for the plans of later runs
//!  text           the report on the terminal
//!  chart          the curve as SVG
//!  page           the report as a page
//!  json           the report for programs
//! ```

mod words;
mod section;
mod phases;
mod reads;
mod own;
mod look;
mod beside;
mod circumstances;
mod command;
mod runs;
mod phase_table;
mod vary;
mod what;
mod palindromes;
mod experiments;
mod evidence;
mod measure;
mod notes;
mod keep;
mod text;
mod chart;
mod page;
mod json;

use std::ffi::OsString;
use std::fs;
use std::io::{self, Read};
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueHint};
use gristmill::Error;
use gristmill_counters::card::Card;
use gristmill_diagnose::{Circumstances, Conclusion, Curve, Failure as Failed, Times};

use crate::output::aside::{Aside, write_whole};
use crate::run::learned::in_home;
use crate::terminal::failure::Failure;
use crate::terminal::messages::{printable, tell};
use crate::terminal::standard_output::print;
use evidence::Evidence;
use experiments::When;
use gristmill::units;
use measure::{Asked, Measured, Plan, system};
use runs::Series;
use section::{About, Section};
use vary::{Combination, Parameter};
use what::Described;

/// Find out where more workers stop helping
///
/// Runs one of Gristmill's applications, or any command behind --, with several numbers of workers, in turn, and says how its time follows them: where it falls, where it hardly
/// changes, where it rises, which law describes that, and how sure this is. Standard output of the command is thrown away.
#[derive(Args)]
#[command(after_help = EXAMPLES, override_usage = USAGE)]
pub struct Scale {
    /// An application of Gristmill with its arguments, but without --workers; or, behind --, any command, in which {workers} stands
    /// for the number of workers
    #[arg(trailing_var_arg = true, value_hint = ValueHint::CommandWithArguments, conflicts_with = "from")]
    program: Vec<OsString>,

    /// Numbers of workers, separated by commas [default: 1, 2, 4 and so on to twice the processors]
    #[arg(long, value_name = "N", value_delimiter = ',', value_parser = clap::value_parser!(u64).range(1..=4096))]
    workers: Vec<u64>,

    /// Another parameter and its values, for a table with a row for each; {NAME} stands for the value, and one of Gristmill's
    /// applications gets --NAME. May be given several times, for all combinations
    #[arg(long, value_name = "NAME=A,B", value_parser = Parameter::parse, conflicts_with = "from")]
    vary: Vec<Parameter>,

    /// The work grows with the workers: times are divided by their number. One of Gristmill's applications reads its input as often as there are
    /// workers; in a command, {workers*N} is N times the number
    #[arg(long, conflicts_with = "from")]
    weak: bool,

    /// How often the command runs with each number at least, after one run that does not count. There are up to three times as many
    /// while the times lie far apart
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
    repeats: u32,

    /// End a run that takes longer
    #[arg(long, value_name = "TIME", value_parser = units::duration, default_value = "10min")]
    timeout: Duration,

    /// Do not run once more with each number to see where the time of the workers goes
    #[arg(long, conflicts_with = "from")]
    no_account: bool,

    /// When the account leaves several causes: run again under changed circumstances, such as half the processors, to rule some out
    #[arg(long, value_name = "WHEN", value_enum, default_value_t = When::Auto, conflicts_with = "from")]
    experiments: When,

    /// Say what stops the workers even if other programs use the processors, and keep the times; it may be their work
    #[arg(long, conflicts_with = "from")]
    despite_load: bool,

    /// Run this by a shell before each run, such as 'make clean'; it is not timed, and {workers} is replaced in it as well
    #[arg(long, value_name = "COMMAND")]
    prepare: Option<OsString>,

    /// Analyse times that were measured elsewhere: a file with a number of workers and seconds in each line, separated by a comma;
    /// - for standard input
    #[arg(long, value_name = "FILE")]
    from: Option<PathBuf>,

    /// How many processors the machine of --from had: more workers than these take turns, and are not fitted
    #[arg(long, value_name = "N", requires = "from", value_parser = clap::value_parser!(u64).range(1..))]
    processors: Option<u64>,

    /// Do not keep the times of one of Gristmill's applications for the plans of later runs
    #[arg(long)]
    no_history: bool,

    /// Exit with 0 even if the command fails with some numbers of workers
    #[arg(long, short, conflicts_with = "from")]
    keep_going: bool,

    /// Print the times and what they mean as JSON: times in seconds
    #[arg(long)]
    json: bool,

    /// Write the report to this file as well, as a page of HTML
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

const USAGE: &str = "\
gristmill scale [OPTIONS] APPLICATION [ARGUMENT]...
       gristmill scale [OPTIONS] -- COMMAND...
       gristmill scale [OPTIONS] --from FILE";

const EXAMPLES: &str = "\
Examples:
  gristmill scale word-count logs
  gristmill scale --vary chunk-bytes=64KiB,1MiB,16MiB word-count logs
  gristmill scale --prepare 'make clean' -- make -j{workers}
  gristmill scale --workers 1,2,4,8 -- sort --parallel={workers} -o /dev/null words.txt
  gristmill scale --output report.html -- env OMP_NUM_THREADS={workers} ./simulate
  gristmill scale --weak --vary size=1000,2000 -- ./simulate --threads {workers} --cells {workers*1000} --side {size}
  gristmill scale --from times.csv

In the report, busy is how many processors the command kept busy, on average. A run that other programs disturbed (more than a tenth of the processors) is repeated. Laws need five numbers of workers up to the
processors; with fewer, the report says what was seen and no more.";

/// The limit on the input of --from.
const TABLE_BYTES_MAX: u64 = 16 << 20;

impl Scale {
    pub fn run(&self) -> Result<(), Failure> {
        // Minutes of measurements would be lost if the page could not be written.
        if let Some(path) = &self.output {
            Aside::create(path).map_err(|source| Failure::output(path, source))?;
        }
        match &self.from {
            Some(path) => self.analyse(path),
            None => self.measure(),
        }
    }

    /// Analyses times measured elsewhere.
    fn analyse(&self, path: &PathBuf) -> Result<(), Failure> {
        let failed = |source| Failure::Job(Error::Input { path: path.clone(), source });
        let mut bytes = Vec::new();
        if path.as_os_str() == "-" {
            io::stdin().take(TABLE_BYTES_MAX).read_to_end(&mut bytes).map_err(failed)?;
        } else {
            fs::File::open(path).and_then(|file| file.take(TABLE_BYTES_MAX).read_to_end(&mut bytes)).map_err(failed)?;
        }
        let wrong = |error: gristmill_diagnose::Error| failed(io::Error::other(error.to_string()));
        let (times, zeros) = Times::from_table(&String::from_utf8_lossy(&bytes)).map_err(wrong)?;
        let mut notes = Vec::new();
        if let [first, ..] = zeros[..] {
            let lines = if zeros.len() == 1 {
                format!("line {first}")
            } else {
                format!("line {first} and {} more", zeros.len() - 1)
            };
            notes.push(format!("Times of 0 were left out ({lines}): the clock was too coarse for them."));
        }
        let curve = Curve::with(&times, self.processors).map_err(wrong)?;
        let title = printable(&path.display().to_string());
        let conclusion = Conclusion::of(&curve, &Circumstances::default());
        let (facts, varied, phases) = Default::default();
        let about = About { title, facts, conclusion, notes, time: "time", varied, phases };
        self.report(&curve, &about, None, |_| String::new())
    }

    /// Measures the times of a command.
    fn measure(&self) -> Result<(), Failure> {
        let asked = self.asked();
        let plan = Plan::of(&asked)?;
        match plan.make(&asked)? {
            Ok(measured) => self.conclude(&plan, &measured),
            Err(signal) => {
                plan.end_by(signal);
                Ok(())
            }
        }
    }

    fn asked(&self) -> Asked<'_> {
        Asked {
            described: Described { program: &self.program, prepare: self.prepare.as_ref(), is_weak: self.weak },
            vary: &self.vary,
            workers: &self.workers,
            repeats: self.repeats,
            timeout: self.timeout,
            account: !self.no_account,
            experiments: self.experiments,
            despite_load: self.despite_load,
        }
    }

    /// Draws the conclusion from runs, and reports it.
    fn conclude(&self, plan: &Plan, measured: &Measured) -> Result<(), Failure> {
        let Measured { series, without, fastest, evidence } = measured;
        let all = &series[*fastest];
        let failures = notes::failures(&plan.combinations, series);
        let wrong = |error: gristmill_diagnose::Error| system(io::Error::other(error.to_string()));
        let times = runs::times(all, self.weak).map_err(wrong)?;
        if times.points().next().is_none() {
            let why = failures.first().map_or(String::new(), Failed::sentence);
            return Err(system(io::Error::other(format!("nothing could be measured. {why}"))));
        }
        let mut notes = notes::disturbances(all);
        notes.extend(self.keep(&plan.combinations, series));
        let curve = Curve::with(&times, Some(plan.processors)).map_err(wrong)?;
        let circumstances = Circumstances {
            failures,
            is_weak: self.weak,
            cause: evidence.as_ref().and_then(|evidence| evidence.sentence(plan.processors)),
            threads: evidence.as_ref().map_or_else(Vec::new, notes::threads),
            ..notes::circumstances(all)
        };
        let mut phases = phase_table::section(all);
        if let (Some(control), Some(without)) = (&plan.control, without) {
            let paper = control.section(all, without, plan.processors);
            phases = Section { text: phases.text + &paper.text, html: phases.html + &paper.html };
        }
        let about = About {
            title: self.title(),
            facts: facts(&plan.card),
            conclusion: Conclusion::of(&curve, &circumstances),
            notes,
            time: if self.weak { "time / k" } else { "time" },
            varied: plan.table(self.weak, series).section(),
            phases,
        };
        self.report(&curve, &about, evidence.as_ref(), |workers| notes::mark(all, workers))?;
        if circumstances.failures.is_empty() || self.keep_going {
            return Ok(());
        }
        tell("the command failed in some of the runs, which the report names; --keep-going makes this no error");
        Err(Failure::Told)
    }

    fn title(&self) -> String {
        let words: Vec<String> = self.program.iter().map(|word| printable(&word.to_string_lossy())).collect();
        words.join(" ")
    }

    /// Keeps the times of an application for later plans. Those of a growing input are of many inputs, and what prepares a run may
    /// have emptied the page cache.
    fn keep(&self, combinations: &[Combination], series: &[Vec<Series>]) -> Option<String> {
        let path = in_home().filter(|_| !self.no_history && !self.weak && self.prepare.is_none())?;
        let words = |values: &Combination| [&self.program[..1], &values.options(), &self.program[1..]].concat();
        let all: Vec<_> = combinations.iter().zip(series).map(|(values, of)| (words(values), &of[..])).collect();
        keep::keep(&path, &all, self.despite_load)
    }

    /// Prints the report and writes the page.
    fn report(
        &self,
        curve: &Curve,
        about: &About,
        evidence: Option<&Evidence>,
        mark: impl Fn(u64) -> String,
    ) -> Result<(), Failure> {
        if let Some(path) = &self.output {
            write_whole(path, &page::html(about, curve, evidence))?;
            tell(format_args!("the report is in {}", path.display()));
        }
        print(if self.json { json::object(about, curve) } else { text::report(about, curve, evidence, mark) })
    }
}

/// Returns the circumstances of the runs, as names and values.
fn facts(card: &Card) -> Vec<(String, String)> {
    let mut facts: Vec<(String, String)> =
        card.facts().into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    facts.push(("Date".to_owned(), humantime::format_rfc3339_seconds(std::time::SystemTime::now()).to_string()));
    facts
}
