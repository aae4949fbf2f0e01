//! Figures 3 and 16: Phoenix with jemalloc against Phoenix with the allocator of the C library.

use gristmill_cli::Failure;

use super::words::{by_workers, drawn_quotients, median, quotient, ratio, table};
use crate::dmr::curves::Curve;
use crate::dmr::experiments::{Experiments, GLIBC, JEMALLOC, System, WORKERS, share_of_allocations, worst};
use crate::dmr::judge::{Claim, SHARE_MIN, enough_hold, findings, judged, too_few_processors};
use crate::dmr::model::application::ModelApp;
use crate::dmr::runs::ModelRuns;
use crate::mr_search::allocator::ALLOCATORS;
use crate::page::{Answer, Contrast};

/// Processors on which the paper finds a difference.
const PROCESSORS: usize = 16;

pub fn figure_3(experiments: &mut Experiments) -> Result<Answer, Failure> {
    let answer = allocators(experiments, "figure-3", System::PhoenixCombined, &ModelApp::ALL, |count| count / 2 + 1)?;
    let allocations = kinds(experiments)?;
    Ok(Answer { found: answer.found + &allocations, ..answer })
}

pub fn figure_16(experiments: &mut Experiments) -> Result<Answer, Failure> {
    let apps = [ModelApp::Histogram, ModelApp::WordCount, ModelApp::Pca];
    allocators(experiments, "figure-16", System::PhoenixPlain, &apps, |count| count)
}

/// Compares allocators; the claim is about `apps`, and of those that count `needed` are enough.
fn allocators(
    experiments: &mut Experiments,
    name: &str,
    system: System,
    apps: &[ModelApp],
    needed: fn(usize) -> usize,
) -> Result<Answer, Failure> {
    if ALLOCATORS[0].find().is_none() {
        return Ok(Answer::cannot_be_asked(ALLOCATORS[0].advice()));
    }
    let (rounds, processors) = (experiments.rounds, experiments.processors);
    let scaling = experiments.scaling()?;
    let both = |runs: &ModelRuns, workers: usize| {
        [JEMALLOC, GLIBC].map(|group| runs.tally(group, &system.with(workers), "wall_ns"))
    };
    let body = scaling.iter().map(|(app, runs)| {
        let cells = WORKERS.map(|workers| {
            let [other, own] = both(runs, workers);
            quotient(other, own)
        });
        (app.title().to_owned(), cells.to_vec())
    });
    let found = format!(
        "Phoenix's way, built here, on {processors} processors; time with jemalloc divided by time with the C library's \
         allocator:\n\n{}",
        by_workers("application", body)
    );
    let lines: Vec<Curve> = scaling
        .iter()
        .map(|(app, runs)| {
            let value = |workers| {
                let [other, own] = both(runs, workers);
                ratio(other, own)
            };
            Curve { name: app.title().to_owned(), values: WORKERS.map(value).to_vec() }
        })
        .collect();
    let most = WORKERS[WORKERS.len() - 1];
    let parts: Vec<Claim> = scaling
        .iter()
        .filter(|(app, _)| apps.contains(app))
        .filter_map(|(app, runs)| {
            let share = share_of_allocations(runs, GLIBC, &system.with(most)).map_or(0.0, |share| share.median);
            let part = |holds, found| Some(Claim { application: app.title(), holds, found });
            match both(runs, most) {
                [Some(_), Some(_)] if share < SHARE_MIN => None,
                [Some(other), Some(own)] => {
                    let contrast = Contrast::of(&other, &own);
                    let (times, caveat) = (other.median / own.median, contrast.caveat());
                    part(
                        contrast.holds(Contrast::Faster),
                        format!("with {most} workers jemalloc takes {times:.2} times as long{caveat}"),
                    )
                }
                _ => part(None, "it did not run".into()),
            }
        })
        .collect();
    let verdict = judged(rounds, worst(scaling.iter().map(|(_, runs)| &runs.load)), || {
        if processors < PROCESSORS {
            let what = "threads that allocate at the same time need";
            return too_few_processors(what, PROCESSORS, processors, &findings(&parts));
        }
        let needed = needed(parts.len());
        enough_hold(parts, needed)
    });
    Ok(drawn_quotients(Answer::new(found, verdict), name, "time with jemalloc ÷ time with the C library", &lines))
}

/// Returns the allocations of the model and of the engine, by kind.
fn kinds(experiments: &mut Experiments) -> Result<String, Failure> {
    let most = WORKERS[WORKERS.len() - 1];
    let numbers = ["map_allocations", "map_bytes", "reduce_allocations", "reduce_bytes"];
    let mut body = Vec::new();
    for (app, runs) in experiments.scaling()? {
        for (name, system) in [
            ("Phoenix", System::PhoenixCombined),
            ("Phoenix, not combined", System::PhoenixPlain),
            ("DMR, array", System::DmrArray),
        ] {
            let cells = numbers.map(|number| median(runs.tally(GLIBC, &system.with(most), number), 1.0));
            body.push([vec![app.title().to_owned(), name.to_owned()], cells.to_vec()].concat());
        }
    }
    for (app, runs) in experiments.engine()? {
        let run = runs.runs.last();
        let cell = |tally: Option<gristmill_report::tally::Tally>| median(tally, 1.0);
        let (calls, bytes) = (run.and_then(|run| run.allocations), run.and_then(|run| run.allocated_bytes));
        let name = "the engine, all phases".to_owned();
        body.push(vec![app.title().to_owned(), name, cell(calls), cell(bytes), String::new(), String::new()]);
    }
    let head = ["application", "system", "calls in map", "bytes", "calls in reduce", "bytes"];
    Ok(format!(
        "\nAllocations with {most} workers: in map the keys and the lists of values of the tables, in reduce those of the \
         merged table; DMR's buffers are pages that are mapped once, and do not count. Calls are counted and not timed, because \
         that would cost more than the calls:\n\n{}",
        table(&head, body)
    ))
}
