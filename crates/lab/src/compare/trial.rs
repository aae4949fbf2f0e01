//! Runs the strategies of one comparison on one application, in turn.

use std::fmt::Write;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use gristmill_cli::Failure;
use gristmill_counters::load::{Load, Watch};
use gristmill_os::room::{no_temporary, private_folder, temporary_folder};
use gristmill_os::usage::Usage;
use gristmill_report::tally::Tally;
use serde_json::Value;

use super::comparison::{Comparison, Variant};
use super::subject::Subject;

/// One comparison on one application.
pub struct Contest<'e> {
    pub comparison: &'e Comparison,
    pub subject: &'e Subject,
    pub variants: Vec<&'e Variant>,
    /// For each variant, its runs, one per round, or fewer if it failed.
    pub runs: Vec<Vec<Measures>>,
    /// For each round, the load of other programs, if the machine reports it.
    pub loads: Vec<Option<Load>>,
    /// For each round, whether it counts. The others were repeated.
    pub counts: Vec<bool>,
    /// For each variant, why it has no runs, or too few.
    pub failures: Vec<Option<String>>,
}

/// A measured quantity of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Measure {
    /// The time from the start of the program to its exit, in milliseconds.
    WallMs,
    /// The processor time of all processes.
    CpuMs,
    /// The part of it in user mode.
    UserMs,
    /// The part of it in the kernel.
    SystemMs,
    MinorFaults,
    /// Allocations of all processes, including the command itself.
    Allocations,
    AllocatedBytes,
    /// The time from the call of the (last) job until every worker had been started.
    StartMs,
    /// The time of the job, from the call to the last row.
    JobMs,
    PagesFresh,
    PagesReused,
    PagesCopied,
    PairsSent,
    BytesSent,
}

/// All measures with their names, in the order of the CSV.
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

/// One run: the value of each measure, if the program reports it.
#[derive(Clone, Debug, Default)]
pub struct Measures([Option<f64>; MEASURES.len()]);

impl Measures {
    /// Returns the value of one measure.
    pub fn get(&self, measure: Measure) -> Option<f64> {
        self.0[measure as usize]
    }

    fn set(&mut self, measure: Measure, value: f64) {
        self.0[measure as usize] = Some(value);
    }

    /// Adds the engine's counts, as written by `--stats`.
    fn add_statistics(&mut self, statistics: &Value) {
        let of_job = |name: &str| statistics["job"][name].as_f64();
        if let (Some(start_ns), Some(wall_ns)) = (of_job("started_ns"), of_job("wall_ns")) {
            self.set(Measure::StartMs, start_ns / 1e6);
            self.set(Measure::JobMs, wall_ns / 1e6);
        }
        let workers = statistics["workers"].as_array().map_or(&[][..], Vec::as_slice);
        // The standard library's sum of nothing is -0.
        let of_workers = |name: &str| {
            let counts = workers.iter().filter_map(|worker| worker["counts"][name].as_f64());
            counts.fold(0.0, |sum, count| sum + count)
        };
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

impl<'e> Contest<'e> {
    /// Makes a trial without runs, with the strategies that suit the application.
    pub fn new(comparison: &'e Comparison, subject: &'e Subject) -> Contest<'e> {
        let variants: Vec<_> = comparison.variants.iter().filter(|variant| variant.suits(subject)).collect();
        let (runs, failures) = (vec![Vec::new(); variants.len()], vec![None; variants.len()]);
        Contest { comparison, subject, variants, runs, loads: Vec::new(), counts: Vec::new(), failures }
    }

    /// Returns the tally of a measure over the runs of a variant that count; `None` if there is no run.
    pub fn tally(&self, variant: usize, measure: Measure) -> Option<Tally> {
        let counted = self.runs[variant].iter().zip(&self.counts).filter(|(_, counts)| **counts);
        let values: Vec<f64> = counted.filter_map(|(run, _)| run.get(measure)).collect();
        (!values.is_empty()).then(|| Tally::of(&values))
    }

    /// Returns the load of other programs during the rounds that count, if one of them was disturbed.
    pub fn load(&self) -> Option<Load> {
        let counted =
            || self.loads.iter().zip(&self.counts).filter(|(_, counts)| **counts).filter_map(|(load, _)| *load);
        match counted().any(|load| load.disturbs()) {
            true => Load::mean(counted()),
            false => None,
        }
    }

    /// The number of rounds that were repeated.
    pub fn repeated(&self) -> usize {
        self.counts.iter().filter(|counts| !**counts).count()
    }
}

/// Returns true if the load disturbs. An unknown load does not.
fn disturbs(load: Option<Load>) -> bool {
    load.is_some_and(|load| load.disturbs())
}

/// Selects the rounds that count: all undisturbed ones and, if they are fewer than `rounds`, the least disturbed
/// others.
fn counted(loads: &[Option<Load>], rounds: usize) -> Vec<bool> {
    let mut order: Vec<usize> = (0..loads.len()).collect();
    let key = |round: usize| loads[round].filter(Load::disturbs).map_or(0.0, |load| load.foreign);
    order.sort_by(|a, b| key(*a).total_cmp(&key(*b)));
    let mut counts = vec![false; loads.len()];
    order.iter().take(rounds).for_each(|round| counts[*round] = true);
    counts
}

/// The load is measured over at least this time, or the remaining rounds, because the kernel counts in ticks of 10
/// ms.
const STRETCH: Duration = Duration::from_millis(300);

/// Runs this program repeatedly as a child process.
pub struct Runner {
    program: PathBuf,
    /// The folder for answers and statistics: in memory if possible, so that no disk is measured.
    directory: tempfile::TempDir,
}

impl Runner {
    pub fn new() -> Result<Runner, Failure> {
        let failed = |what, source| Failure::from(gristmill::Error::System { what, source });
        let program =
            std::env::current_exe().map_err(|source| failed("asking for the path of this program", source))?;
        let directory = private_folder(Path::new("/dev/shm")).or_else(|_| private_folder(&temporary_folder()));
        let directory = directory.map_err(|source| failed("making a temporary directory", no_temporary(source)))?;
        Ok(Runner { program, directory })
    }

    /// Runs every variant once as a warm-up, then `rounds` times in turn; each round begins with another variant. At
    /// most `repeats` rounds that other programs disturbed are repeated.
    pub fn run(&self, trial: &mut Contest<'_>, rounds: u32, repeats: u32) -> Result<(), Failure> {
        let (rounds, all) = (rounds as usize, rounds as usize + repeats as usize);
        let mut answer: Option<Vec<u8>> = None;
        self.round(trial, 0, &mut answer)?;
        loop {
            let (done, quiet) = (trial.loads.len(), trial.loads.iter().filter(|load| !disturbs(**load)).count());
            let wanted = (rounds - quiet).min(all - done);
            if wanted == 0 {
                break;
            }
            let (watch, mut now) = (Watch::start(), 0);
            while now < wanted && (now == 0 || watch.elapsed() < STRETCH) {
                now += 1;
                self.round(trial, done + now, &mut answer)?;
            }
            let load = watch.load();
            trial.loads.extend(std::iter::repeat_n(load, now));
        }
        trial.counts = counted(&trial.loads, rounds);
        Ok(())
    }

    /// Runs every variant once. Round 0 does not count; all answers must equal the first one.
    fn round(&self, trial: &mut Contest<'_>, round: usize, answer: &mut Option<Vec<u8>>) -> Result<(), Failure> {
        let count = trial.variants.len();
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
        Ok(())
    }

    fn once(&self, trial: &Contest<'_>, variant: usize) -> Result<(Measures, Output), Failure> {
        let Contest { comparison, subject, variants, .. } = trial;
        let [answer, statistics] = ["answer", "stats.json"].map(|name| self.directory.path().join(name));
        let to_answer = File::create(&answer).map_err(|source| Failure::output(&answer, source))?;
        let mut command = Command::new(&self.program);
        command.args(comparison.arguments(&subject.arguments)).args(&variants[variant].arguments).stdin(Stdio::null());
        command.stdout(to_answer);
        command.arg("--stats").arg(&statistics);
        if let Some(library) = &variants[variant].preload {
            command.env("LD_PRELOAD", library);
        }
        let (before, began) = (Usage::of_children(), Instant::now());
        let mut output = command
            .output()
            .map_err(|source| gristmill::Error::System { what: "starting this program again", source })?;
        let (wall, used) = (began.elapsed(), Usage::of_children() - before);
        let mut run = Measures::default();
        run.set(Measure::WallMs, wall.as_secs_f64() * 1e3);
        run.set(Measure::CpuMs, (used.user_us + used.sys_us) as f64 / 1e3);
        run.set(Measure::UserMs, used.user_us as f64 / 1e3);
        run.set(Measure::SystemMs, used.sys_us as f64 / 1e3);
        run.set(Measure::MinorFaults, used.minor_faults as f64);
        // A failed run has left no statistics and is not counted.
        output.stdout = fs::read(&answer).map_err(|source| gristmill::Error::Input { path: answer, source })?;
        if let Some(statistics) = fs::read(&statistics).ok().and_then(|text| serde_json::from_slice(&text).ok()) {
            run.add_statistics(&statistics);
        }
        // The file may be missing.
        let _ = fs::remove_file(&statistics);
        Ok((run, output))
    }
}

/// Formats every run of every trial, one per line.
pub fn csv(trials: &[Contest<'_>]) -> String {
    let names: Vec<&str> = MEASURES.iter().map(|(_, name)| *name).collect();
    let mut text = format!("comparison,application,variant,round,{},foreign_percent,counts\n", names.join(","));
    for trial in trials {
        for (variant, runs) in trial.variants.iter().zip(&trial.runs) {
            for (round, run) in runs.iter().enumerate() {
                let fields: Vec<String> = MEASURES
                    .iter()
                    .map(|(measure, _)| run.get(*measure).map_or(String::new(), |value| format!("{value:.3}")))
                    .collect();
                let (comparison, application) = (&trial.comparison.name, trial.subject.workload.title);
                let foreign = trial.loads[round].map_or(String::new(), |load| format!("{:.1}", load.foreign * 100.0));
                let counts = if trial.counts[round] { "yes" } else { "no" };
                // No name contains a comma or a quote.
                let (name, round, fields) = (&variant.name, round + 1, fields.join(","));
                writeln!(text, "{comparison},{application},{name},{round},{fields},{foreign},{counts}")
                    .expect("a string takes everything");
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Half of the runs were once made during a build, and the median was taken over all of them.
    #[test]
    fn disturbed_rounds_count_only_if_there_are_no_others() {
        let load = |foreign| Some(Load { foreign, stolen: 0.0, foreign_least: foreign });
        let loads = [load(0.5), load(0.01), None, load(0.09), load(0.3)];
        assert_eq!(counted(&loads, 3), [false, true, true, true, false]);
        // The first of those that are equally good.
        assert_eq!(counted(&loads, 2), [false, true, true, false, false]);
        assert_eq!(counted(&loads, 4), [false, true, true, true, true]);
        assert_eq!(counted(&loads[..1], 1), [true]);
    }

    /// Answers, which are made of the user's data with --data, lay in a folder that all users could read.
    #[test]
    fn answers_lie_in_a_folder_of_their_owner() {
        let runner = Runner::new().expect("a runner");
        let facts = fs::metadata(runner.directory.path()).expect("a folder");
        assert_eq!(std::os::unix::fs::MetadataExt::mode(&facts) & 0o7777, 0o700);
    }
}
