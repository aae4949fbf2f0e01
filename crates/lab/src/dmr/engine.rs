//! Runs of the engine's applications, to stand beside those of the model.

use std::io;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use gristmill_cli::Failure;
use gristmill_counters::load::Load;
use gristmill_os::room::{no_temporary, private_folder, temporary_folder};
use gristmill_report::tally::Tally;

use super::model::application::ModelApp;
use crate::compare::comparison::{Comparison, Variant};
use crate::compare::subject::Subject;
use crate::compare::trial::{Contest, Measure, Runner};
use crate::generate::{Generator, Present, Size, name};
use crate::workloads::{PairKind, WORKLOADS, Workload};

/// The seed of the input.
const SEED: u64 = 1;

/// The strategies of the engine on one application.
pub struct EngineRuns {
    pub runs: Vec<EngineRun>,
    pub load: Option<Load>,
}

/// The runs of one strategy.
pub struct EngineRun {
    pub name: String,
    pub wall_ms: Option<Tally>,
    pub start_ms: Option<Tally>,
    pub allocations: Option<Tally>,
    pub allocated_bytes: Option<Tally>,
}

/// Returns the workload of the engine that is the same application.
pub fn workload(app: ModelApp) -> &'static Workload {
    let same = WORKLOADS.iter().find(|workload| workload.name == name(app));
    same.expect("each application of the model is one of the engine")
}

/// Runs strategies of the engine in turn, on input that is removed afterwards.
pub fn race(app: ModelApp, size: Size, variants: Vec<Variant>, rounds: u32) -> Result<EngineRuns, Failure> {
    let workload = workload(app);
    with_input(workload, size, |paths| {
        let subject = Subject::new(workload, size, paths, paths[0].parent().expect("a file in a folder"));
        let comparison = Comparison::new("", "", variants);
        let mut contest = Contest::new(&comparison, &subject);
        Runner::new()?.run(&mut contest, rounds, 0)?;
        let run = |(number, variant): (usize, &&Variant)| {
            let tally = |measure| contest.tally(number, measure);
            EngineRun {
                name: variant.name.clone(),
                wall_ms: tally(Measure::WallMs),
                start_ms: tally(Measure::StartMs),
                allocations: tally(Measure::Allocations),
                allocated_bytes: tally(Measure::AllocatedBytes),
            }
        };
        Ok(EngineRuns { runs: contest.variants.iter().enumerate().map(run).collect(), load: contest.load() })
    })
}

/// Makes the input of a workload, calls `with` with its files, and removes it.
pub fn with_input<T>(
    workload: &Workload,
    size: Size,
    with: impl FnOnce(&[PathBuf]) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let failed = |source| gristmill::Error::System { what: "making the input", source };
    let folder = private_folder(&temporary_folder()).map_err(no_temporary).map_err(failed)?;
    let generator = Generator { size, seed: SEED, directory: folder.path(), present: Present::Keep };
    let kind = workload.input.expect("the applications of the paper read files");
    with(&generator.make(kind)?)
}

/// Returns what the engine plans for an application: its buffer, and where it combines.
pub fn plan(app: ModelApp, size: Size) -> Result<String, Failure> {
    let workload = workload(app);
    with_input(workload, size, |paths| {
        let failed = |source| Failure::from(gristmill::Error::System { what: "starting this program again", source });
        let program = std::env::current_exe().map_err(failed)?;
        let mut command = Command::new(program);
        command.arg("application").args((workload.command)(size).split(' ')).args(paths).arg("--explain");
        let output = command.stdin(Stdio::null()).stdout(Stdio::null()).output().map_err(failed)?;
        let said = String::from_utf8_lossy(&output.stderr);
        if !output.status.success() {
            return Err(failed(io::Error::other(said.into_owned())));
        }
        Ok(planned(&said))
    })
}

/// Picks the buffer and the combiner from what `--explain` prints.
fn planned(said: &str) -> String {
    let choice = |what: &str| {
        let line = said.lines().find_map(|line| line.strip_prefix(&format!("plan: {what}: ")));
        line.map_or("", |line| line.split(" (").next().unwrap_or(line)).to_owned()
    };
    format!("{}, combined {}", choice("buffer"), choice("combining"))
}

/// A worker on each of some numbers of processors.
pub fn workers(numbers: &[usize]) -> Vec<Variant> {
    numbers.iter().map(|workers| Variant::new(workers.to_string(), &format!("--workers {workers}"))).collect()
}

/// The plan, and every buffer with every place to combine at that the engine has.
pub fn gatherings(processors: usize) -> Vec<Variant> {
    let with = |name: &str, arguments: &str| Variant::on_all(processors, name, arguments);
    vec![
        Variant::new("the plan", ""),
        with("hash, combined in map and in reduce", "--buffer hash").needing(PairKind::Combining),
        with("hash, combined in map", "--buffer hash --combine map").needing(PairKind::Combining),
        with("array, combined in reduce", "--buffer array --combine reduce").needing(PairKind::Combining),
        with("array, not combined", "--buffer array --combine off"),
        with("dense, combined in map and in reduce", "--buffer dense").needing(PairKind::Dense),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_plan_is_read_from_what_the_engine_explains() {
        let said = "plan: buffer: dense (a place for each of 768 keys)\nplan: combining: in map and in reduce (less is sent)\n";
        assert_eq!(planned(said), "dense, combined in map and in reduce");
        assert_eq!(planned("nothing"), ", combined ");
    }

    #[test]
    fn every_application_of_the_model_is_one_of_the_engine() {
        ModelApp::ALL.iter().for_each(|app| assert!(workload(*app).input.is_some()));
    }
}
