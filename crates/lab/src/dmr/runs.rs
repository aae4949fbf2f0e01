//! Runs of the model: this program as a child, which runs strategies in turn.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use gristmill_cli::Failure;
use gristmill_counters::load::{Load, Watch};
use gristmill_report::tally::Tally;

use super::model::application::ModelApp;
use super::model::strategy::Strategy;
use crate::generate::{Size, name};

/// Strategies that run with one allocator.
#[derive(Clone)]
pub struct Group {
    /// The library of the allocator, unless it is the C library's.
    pub preload: Option<PathBuf>,
    pub strategies: Vec<Strategy>,
}

/// The runs of some strategies on an application.
#[derive(Default)]
pub struct ModelRuns {
    /// For each strategy, with the number of its group: the numbers of each run.
    runs: Vec<(usize, Strategy, BTreeMap<String, f64>)>,
    /// The load of other programs.
    pub load: Option<Load>,
}

impl ModelRuns {
    /// Runs all strategies of all groups `rounds` times in turn. Each round begins with another one. `extra` are
    /// arguments for all.
    pub fn measure(
        app: ModelApp,
        size: Size,
        groups: &[Group],
        rounds: u32,
        extra: &[&str],
    ) -> Result<ModelRuns, Failure> {
        let mut measured = ModelRuns::default();
        let watch = Watch::start();
        for round in 0..rounds as usize {
            for number in (0..groups.len()).map(|at| (at + round) % groups.len()) {
                let Group { preload, strategies } = &groups[number];
                if strategies.is_empty() {
                    continue;
                }
                let first = round * strategies.len() / rounds as usize;
                let mut command = model(app, size)?;
                command.args(["--first", &first.to_string()]).args(extra);
                command.args(strategies.iter().map(Strategy::to_string));
                if let Some(library) = preload {
                    command.env("LD_PRELOAD", library);
                }
                for line in output(&mut command)?.lines() {
                    let (strategy, values) = parse(line).ok_or_else(|| failed(io::Error::other(line.to_owned())))?;
                    measured.runs.push((number, strategy, values));
                }
            }
        }
        measured.load = watch.load();
        Ok(measured)
    }

    /// Returns the tally of a function of the numbers of a run; `None` if it has no value.
    pub fn tally_of(
        &self,
        group: usize,
        strategy: &Strategy,
        value: impl Fn(&dyn Fn(&str) -> Option<f64>) -> Option<f64>,
    ) -> Option<Tally> {
        let runs = self.runs.iter().filter(|(number, ran, _)| *number == group && ran == strategy);
        let values: Vec<f64> = runs.filter_map(|(_, _, values)| value(&|name| values.get(name).copied())).collect();
        (!values.is_empty()).then(|| Tally::of(&values))
    }

    /// Returns the tally of a number of runs.
    pub fn tally(&self, group: usize, strategy: &Strategy, name: &str) -> Option<Tally> {
        self.tally_of(group, strategy, |value| value(name))
    }

    /// Returns the tally of the processor time of all workers, in milliseconds.
    pub fn processor_ms(&self, group: usize, strategy: &Strategy) -> Option<Tally> {
        self.tally_of(group, strategy, |value| Some(value("processor_ns")? / 1e6))
    }

    /// Formats all runs, a line for each number of each.
    pub fn csv(&self, app: &str) -> String {
        let mut text = String::new();
        for (group, strategy, values) in &self.runs {
            for (name, value) in values {
                // A strategy has commas.
                writeln!(text, "{app},{group},\"{strategy}\",{name},{value}").expect("a string takes everything");
            }
        }
        text
    }
}

/// The names of the columns of [`ModelRuns::csv`].
pub const COLUMNS: &str = "application,allocator,strategy,name,value";

/// Returns this program as the model, with the options of an application.
pub fn model(app: ModelApp, size: Size) -> Result<Command, Failure> {
    let program = std::env::current_exe().map_err(failed)?;
    let mut command = Command::new(program);
    command.args(["dmr-model", "--app", &name(app), "--size", &name(size)]).stdin(Stdio::null());
    Ok(command)
}

/// Runs a command and returns its standard output.
fn output(command: &mut Command) -> Result<String, Failure> {
    let output = command.output().map_err(failed)?;
    let complaint = String::from_utf8_lossy(&output.stderr);
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(failed(io::Error::other(format!("{}: {}", output.status, complaint.trim_end())))),
    }
}

pub fn failed(source: io::Error) -> Failure {
    gristmill::Error::System { what: "running the model", source }.into()
}

/// Parses a line of the model: a strategy, then `name=number` for each number.
fn parse(line: &str) -> Option<(Strategy, BTreeMap<String, f64>)> {
    let (strategy, numbers) = line.split_once(' ')?;
    let value = |word: &str| {
        let (name, value) = word.split_once('=')?;
        Some((name.to_owned(), value.parse().ok()?))
    };
    Some((strategy.parse().ok()?, numbers.split(' ').map(value).collect::<Option<_>>()?))
}

/// Tells whether a program is installed.
pub fn is_installed(program: &str) -> bool {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&paths).any(|folder| Path::new(&folder).join(program).is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_model_is_a_strategy_and_numbers() {
        let (strategy, values) = parse("phoenix+map+reduce,4 wall_ns=1200 keys=3").expect("a line");
        assert_eq!(strategy, Strategy::phoenix(true, 4));
        assert_eq!(values, BTreeMap::from([("wall_ns".to_owned(), 1200.0), ("keys".to_owned(), 3.0)]));
        assert!(parse("phoenix,4 wall_ns").is_none() && parse("pigeon,4 wall_ns=1").is_none() && parse("").is_none());
    }

    #[test]
    fn a_number_is_tallied_over_the_runs_of_its_strategy_and_group() {
        let run = |group, workers, ns| {
            (group, Strategy::phoenix(true, workers), BTreeMap::from([("wall_ns".to_owned(), ns)]))
        };
        let runs = vec![run(0, 1, 1.0), run(0, 1, 3.0), run(0, 2, 50.0), run(1, 1, 70.0)];
        let measured = ModelRuns { runs, load: None };
        let tally = measured.tally(0, &Strategy::phoenix(true, 1), "wall_ns").expect("two runs");
        assert_eq!((tally.least, tally.median, tally.most), (1.0, 2.0, 3.0));
        assert_eq!(measured.tally(1, &Strategy::phoenix(true, 2), "wall_ns"), None);
        assert_eq!(measured.tally(0, &Strategy::phoenix(true, 1), "keys"), None);
    }
}
