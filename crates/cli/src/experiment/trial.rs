//! Runs the strategies of one comparison on one application, in turn.

use std::fmt::Write;
use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::time::Instant;

use gristmill_os::usage::Usage;
use serde_json::Value;

use super::application::Application;
use super::comparison::{Comparison, Variant};
use super::tally::Tally;
use crate::failure::Failure;

/// One comparison on one application.
pub struct Trial<'e> {
    pub comparison: &'e Comparison,
    pub application: &'e Application,
    pub variants: Vec<&'e Variant>,
    /// For each variant, its runs, one per round; fewer when it failed.
    pub runs: Vec<Vec<Run>>,
    /// For each variant, why it has none, or too few.
    pub failures: Vec<Option<String>>,
}

/// What a run took.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Measure {
    /// From the start of the program to its exit, milliseconds.
    WallMs,
    /// Processor time of all processes.
    CpuMs,
    /// Of it, in user mode.
    UserMs,
    /// Of it, in the kernel.
    SystemMs,
    MinorFaults,
    /// Of all processes, the command itself included.
    Allocations,
    AllocatedBytes,
    /// From the call of the (last) job until every worker had been started.
    StartMs,
    /// The job, from the call to the last row.
    JobMs,
    PagesFresh,
    PagesReused,
    PagesCopied,
    PairsSent,
    BytesSent,
}

/// All measures, in the order of the CSV, with their names there.
pub const MEASURES: [(Measure, &str); 14] = [
    (Measure::WallMs, "wall_ms"),
    (Measure::CpuMs, "cpu_ms"),
    (Measure::UserMs, "user_ms"),
    (Measure::SystemMs, "system_ms"),
    (Measure::MinorFaults, "minor_faults"),
    (Measure::Allocations, "allocations"),
    (Measure::AllocatedBytes, "allocated_bytes"),
    (Measure::StartMs, "start_ms"),
    (Measure::JobMs, "job_ms"),
    (Measure::PagesFresh, "pages_fresh"),
    (Measure::PagesReused, "pages_reused"),
    (Measure::PagesCopied, "pages_copied"),
    (Measure::PairsSent, "pairs_sent"),
    (Measure::BytesSent, "bytes_sent"),
];

/// One run: for each measure its value, if the program tells it.
#[derive(Clone, Debug, Default)]
pub struct Run([Option<f64>; MEASURES.len()]);

impl Run {
    /// The value of one measure.
    pub fn get(&self, measure: Measure) -> Option<f64> {
        self.0[measure as usize]
    }

    fn set(&mut self, measure: Measure, value: f64) {
        self.0[measure as usize] = Some(value);
    }

    /// Takes what the engine counted, as `--stats` writes it.
    fn add_statistics(&mut self, statistics: &Value) {
        let of_job = |name: &str| statistics["job"][name].as_f64();
        if let (Some(start_ns), Some(wall_ns)) = (of_job("started_ns"), of_job("wall_ns")) {
            self.set(Measure::StartMs, start_ns / 1e6);
            self.set(Measure::JobMs, wall_ns / 1e6);
        }
        let workers = statistics["workers"].as_array().map_or(&[][..], Vec::as_slice);
        let of_workers = |name: &str| workers.iter().filter_map(|worker| worker["counts"][name].as_f64()).sum::<f64>();
        for (measure, name) in &MEASURES[Measure::Allocations as usize..] {
            match measure {
                Measure::StartMs | Measure::JobMs => {}
                Measure::Allocations | Measure::AllocatedBytes => {
                    self.set(*measure, of_workers(name) + of_job(name).unwrap_or(0.0));
                }
                _ => self.set(*measure, of_workers(name)),
            }
        }
    }
}

impl<'e> Trial<'e> {
    /// The strategies that suit the application; no run yet.
    pub fn new(comparison: &'e Comparison, application: &'e Application) -> Trial<'e> {
        let variants: Vec<_> = comparison.variants.iter().filter(|variant| variant.suits(application)).collect();
        let (runs, failures) = (vec![Vec::new(); variants.len()], vec![None; variants.len()]);
        Trial { comparison, application, variants, runs, failures }
    }

    /// What the runs of a variant say about a measure; `None` when there is no run.
    pub fn tally(&self, variant: usize, measure: Measure) -> Option<Tally> {
        let values: Vec<f64> = self.runs[variant].iter().filter_map(|run| run.get(measure)).collect();
        (!values.is_empty()).then(|| Tally::of(&values))
    }
}

/// Runs this program as a child, again and again.
pub struct Runner {
    program: PathBuf,
    /// Where answers and statistics pass through: in memory if possible, so that no disk is measured.
    directory: tempfile::TempDir,
}

impl Runner {
    pub fn new() -> Result<Runner, Failure> {
        let failed = |what, source| Failure::from(gristmill::Error::System { what, source });
        let program =
            std::env::current_exe().map_err(|source| failed("asking for the path of this program", source))?;
        let directory = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir());
        let directory = directory.map_err(|source| failed("making a temporary directory", source))?;
        Ok(Runner { program, directory })
    }

    /// Runs every variant once for warmth, then `rounds` times in turn; each round begins with another variant.
    pub fn run(&self, trial: &mut Trial<'_>, rounds: u32) -> Result<(), Failure> {
        let count = trial.variants.len();
        let mut answer: Option<Vec<u8>> = None;
        for round in 0..=rounds as usize {
            for variant in (0..count).map(|at| (at + round) % count) {
                if trial.failures[variant].is_some() {
                    continue;
                }
                let (run, output) = self.once(trial, variant)?;
                let expected = answer.get_or_insert_with(|| output.stdout.clone());
                if !output.status.success() {
                    let words = String::from_utf8_lossy(&output.stderr);
                    let first = words.lines().next().unwrap_or("it said nothing").to_owned();
                    trial.failures[variant] = Some(format!("{}: {first}", output.status));
                } else if *expected != output.stdout {
                    trial.failures[variant] = Some("its answer differs from that of the first run".to_owned());
                } else if round > 0 {
                    trial.runs[variant].push(run);
                }
            }
        }
        Ok(())
    }

    fn once(&self, trial: &Trial<'_>, variant: usize) -> Result<(Run, Output), Failure> {
        let Trial { comparison, application, variants, .. } = trial;
        let [answer, statistics] = ["answer", "stats.json"].map(|name| self.directory.path().join(name));
        let to_answer = File::create(&answer).map_err(|source| Failure::output(&answer, source))?;
        let mut command = Command::new(&self.program);
        command.args(comparison.command(application)).args(&variants[variant].arguments).stdin(Stdio::null());
        command.stdout(to_answer);
        if comparison.has_statistics() {
            command.arg("--stats").arg(&statistics);
        }
        if let Some(library) = &variants[variant].preload {
            command.env("LD_PRELOAD", library);
        }
        let (before, began) = (Usage::of_children(), Instant::now());
        let mut output = command
            .output()
            .map_err(|source| gristmill::Error::System { what: "starting this program again", source })?;
        let (wall, used) = (began.elapsed(), Usage::of_children() - before);
        let mut run = Run::default();
        run.set(Measure::WallMs, wall.as_secs_f64() * 1e3);
        run.set(Measure::CpuMs, (used.user_us + used.sys_us) as f64 / 1e3);
        run.set(Measure::UserMs, used.user_us as f64 / 1e3);
        run.set(Measure::SystemMs, used.sys_us as f64 / 1e3);
        run.set(Measure::MinorFaults, used.minor_faults as f64);
        // A run that failed has left none, and is not counted.
        output.stdout = fs::read(&answer).map_err(|source| gristmill::Error::Input { path: answer, source })?;
        if let Some(statistics) = fs::read(&statistics).ok().and_then(|text| serde_json::from_slice(&text).ok()) {
            run.add_statistics(&statistics);
        }
        // A missing file is what is wanted.
        let _ = fs::remove_file(&statistics);
        Ok((run, output))
    }
}

/// Every run of every trial, one per line.
pub fn csv(trials: &[Trial<'_>]) -> String {
    let names: Vec<&str> = MEASURES.iter().map(|(_, name)| *name).collect();
    let mut text = format!("comparison,application,variant,round,{}\n", names.join(","));
    for trial in trials {
        for (variant, runs) in trial.variants.iter().zip(&trial.runs) {
            for (round, run) in runs.iter().enumerate() {
                let fields: Vec<String> = MEASURES
                    .iter()
                    .map(|(measure, _)| run.get(*measure).map_or(String::new(), |value| format!("{value:.3}")))
                    .collect();
                let (comparison, application) = (&trial.comparison.name, trial.application.name);
                // None of the names has a comma or a quote.
                writeln!(text, "{comparison},{application},{},{},{}", variant.name, round + 1, fields.join(","))
                    .expect("a string takes everything");
            }
        }
    }
    text
}
