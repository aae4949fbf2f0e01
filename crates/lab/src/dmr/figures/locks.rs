//! Figures 5 and 9: the share of the time that threads spend in page faults and at the lock of their address space.

use gristmill_cli::Failure;

use super::words::{by_workers, drawn, median};
use crate::compare::comparison::Variant;
use crate::dmr::curves::Curve;
use crate::dmr::engine;
use crate::dmr::experiments::{Experiments, GLIBC, JEMALLOC, System, WORKERS, worst};
use crate::dmr::judge::judged;
use crate::dmr::model::application::ModelApp;
use crate::dmr::model::strategy::Strategy;
use crate::dmr::runs::ModelRuns;
use crate::page::{Answer, Judgement};

/// Processors on which the paper finds the lock.
const PROCESSORS: usize = 16;
/// The share from which on the lock counts as found.
const LOCKED: f64 = 0.1;

pub fn figure_5(experiments: &mut Experiments) -> Result<Answer, Failure> {
    locks(
        experiments,
        "figure-5",
        &[("", GLIBC, System::PhoenixCombined), (", jemalloc", JEMALLOC, System::PhoenixCombined)],
    )
}

pub fn figure_9(experiments: &mut Experiments) -> Result<Answer, Failure> {
    let answer = locks(experiments, "figure-9", &[("", GLIBC, System::PhoenixPlain)])?;
    let workers = experiments.processors.max(2);
    let with = |isolation| Variant::new(isolation, &format!("--workers {workers} --isolation {isolation}"));
    let mut rows = String::new();
    for app in ModelApp::ALL {
        let runs = engine::race(app, experiments.size, vec![with("process"), with("thread")], experiments.rounds)?;
        let time = |at: usize| runs.runs.get(at).and_then(|run: &engine::EngineRun| run.wall_ms);
        rows += &format!("| {} | {} | {} |\n", app.title(), median(time(0), 1.0), median(time(1), 1.0));
    }
    let beside = format!(
        "\nBeside it the engine with {workers} workers that are processes or threads, milliseconds from start to exit:\n\n\
         | application | processes | threads |\n|---|---|---|\n{rows}"
    );
    Ok(Answer { found: answer.found + &beside, ..answer })
}

fn locks(experiments: &mut Experiments, name: &str, systems: &[(&str, usize, System)]) -> Result<Answer, Failure> {
    let (rounds, processors) = (experiments.rounds, experiments.processors);
    let sampled = experiments.sampled()?;
    // A sample stands for a millisecond of processor time; of less than twenty nothing is said.
    let share = |runs: &ModelRuns, group: usize, strategy: &Strategy, number: &str| {
        let of_run = |value: &dyn Fn(&str) -> Option<f64>| {
            Some([value(number)?, value("all_us").filter(|us| *us >= 20e3)? / 1e3])
        };
        runs.tally_of(group, strategy, |value| of_run(value).map(|[sampled, all]| sampled / all))
    };
    let is_known = sampled.iter().any(|(_, runs)| runs.tally(GLIBC, &systems[0].2.with(1), "lock_ms").is_some());
    if !is_known {
        let why = "the kernel's functions cannot be sampled: this user may not (kernel.perf_event_paranoid above 1), or they are \
                   hidden (kernel.kptr_restrict)";
        return Ok(Answer::cannot_be_asked(why));
    }
    let mut found = "The kernel is sampled once in each millisecond of processor time; of runs with fewer than twenty samples nothing is \
                     shown (-).\n\n"
        .to_owned();
    let kinds = [
        ("lock_ms", "locks of memory, which is a part of the two tables below it"),
        ("fault_ms", "page faults"),
        ("address_space_ms", "mmap, munmap, mprotect"),
    ];
    let mut lines: Vec<Vec<Curve>> = systems.iter().map(|_| Vec::new()).collect();
    for (number, what) in kinds {
        let mut body = Vec::new();
        for (app, runs) in sampled {
            for ((suffix, group, system), lines) in systems.iter().zip(&mut lines) {
                let tallies = WORKERS.map(|workers| share(runs, *group, &system.with(workers), number));
                let name = format!("{}{suffix}", app.title());
                body.push((name.clone(), tallies.map(|tally| median(tally, 0.01)).to_vec()));
                if number == "lock_ms" {
                    let values = tallies.map(|tally| tally.map(|tally| tally.median * 100.0)).to_vec();
                    lines.push(Curve { name, values });
                }
            }
        }
        found += &format!("Percent of the processor time in {what}:\n\n{}\n", by_workers("application", body));
    }
    let verdict = judged(rounds, worst(sampled.iter().map(|(_, runs)| &runs.load)), || {
        if processors < PROCESSORS {
            return Judgement::CannotBeAsked(format!(
                "the lock is fought for by threads that run at the same time: {PROCESSORS} processors are needed, and {processors} are here"
            ));
        }
        let (_, group, system) = systems[0];
        let histogram = sampled.iter().find(|(app, _)| *app == ModelApp::Histogram).map(|(_, runs)| runs);
        let at = |workers| {
            histogram
                .and_then(|runs| share(runs, group, &system.with(workers), "lock_ms"))
                .map_or(0.0, |share| share.median)
        };
        let (few, many) = (at(8), at(PROCESSORS));
        Judgement::of(many >= LOCKED && many >= 2.0 * few, || {
            format!("histogram: {:.1} % with 8 workers, {:.1} % with {PROCESSORS}", few * 100.0, many * 100.0)
        })
    });
    let mut answer = Answer::new(found, verdict);
    for (number, lines) in lines.iter().enumerate() {
        let name = if number == 0 { name.to_owned() } else { format!("{name}-jemalloc") };
        answer = drawn(answer, &name, "percent of the processor time in locks", lines);
    }
    Ok(answer)
}
