//! Figures 13, 15 and 18: DMR against Phoenix.

use gristmill_cli::Failure;

use super::words::{by_workers, drawn_quotients, quotient, ratio};
use crate::dmr::curves::Curve;
use crate::dmr::experiments::{Experiments, GLIBC, JEMALLOC, System, WORKERS, too_few_pairs, worst};
use crate::dmr::judge::{Claim, all_hold, findings, judged, too_few_processors};
use crate::dmr::model::application::ModelApp;
use crate::dmr::runs::ModelRuns;
use crate::mr_search::allocator::ALLOCATORS;
use crate::page::{Answer, Contrast};

/// Processors on which the paper finds most of the difference.
const PROCESSORS: usize = 16;

/// The paper's result for an application: DMR is faster, level or slower.
type Expected = (ModelApp, Contrast);

pub fn figure_13(experiments: &mut Experiments) -> Result<Answer, Failure> {
    let faster = [ModelApp::Histogram, ModelApp::Pca, ModelApp::StringMatch].map(|app| (app, Contrast::Faster));
    against(experiments, "figure-13", System::DmrHash, (GLIBC, System::PhoenixCombined), &faster)
}

pub fn figure_15(experiments: &mut Experiments) -> Result<Answer, Failure> {
    let expected = [
        (ModelApp::Histogram, Contrast::Faster),
        (ModelApp::WordCount, Contrast::Faster),
        (ModelApp::Pca, Contrast::Faster),
        (ModelApp::StringMatch, Contrast::Level),
        (ModelApp::LinearRegression, Contrast::Slower),
    ];
    against(experiments, "figure-15", System::DmrArray, (GLIBC, System::PhoenixCombined), &expected)
}

pub fn figure_18(experiments: &mut Experiments) -> Result<Answer, Failure> {
    if ALLOCATORS[0].find().is_none() {
        return Ok(Answer::cannot_be_asked(ALLOCATORS[0].advice()));
    }
    let expected = ModelApp::ALL.map(|app| match app {
        ModelApp::LinearRegression => (app, Contrast::Slower),
        _ => (app, Contrast::Faster),
    });
    against(experiments, "figure-18", System::DmrArrayPlain, (JEMALLOC, System::PhoenixPlain), &expected)
}

fn against(
    experiments: &mut Experiments,
    name: &str,
    system: System,
    (group, phoenix): (usize, System),
    expected: &[Expected],
) -> Result<Answer, Failure> {
    let (rounds, processors, own) = (experiments.rounds, experiments.processors, experiments.own_processors());
    let scaling = experiments.scaling()?;
    let both = |runs: &ModelRuns, workers: usize| {
        [runs.tally(GLIBC, &system.with(workers), "wall_ns"), runs.tally(group, &phoenix.with(workers), "wall_ns")]
    };
    let cells = |runs: &ModelRuns, cell: &dyn Fn([Option<gristmill_report::tally::Tally>; 2], usize) -> String| {
        WORKERS.map(|workers| cell(both(runs, workers), workers)).to_vec()
    };
    let quotients = scaling
        .iter()
        .map(|(app, runs)| (app.title().to_owned(), cells(runs, &|[dmr, phoenix], _| quotient(dmr, phoenix))));
    let speed_ups = scaling.iter().map(|(app, runs)| {
        let [first, _] = both(runs, 1);
        (app.title().to_owned(), cells(runs, &|[dmr, _], _| quotient(first, dmr)))
    });
    let found = format!(
        "Both built here, on {processors} processors, with the same map functions. DMR's pages are remapped, with the calls of \
         an ordinary kernel; its memory is the C library's{}. Time of DMR divided by time of Phoenix:\n\n{}\n\
         DMR with more workers, times as fast as with one:\n\n{}",
        if group == JEMALLOC { ", that of Phoenix jemalloc's" } else { "" },
        by_workers("application", quotients),
        by_workers("application", speed_ups)
    );
    let line = |(app, runs): &(ModelApp, ModelRuns)| {
        let value = |workers| {
            let [dmr, phoenix] = both(runs, workers);
            ratio(dmr, phoenix)
        };
        Curve { name: app.title().to_owned(), values: WORKERS.map(value).to_vec() }
    };
    let lines: Vec<Curve> = scaling.iter().map(line).collect();
    let verdict = judged(rounds, worst(scaling.iter().map(|(_, runs)| &runs.load)), || {
        let parts = scaling.iter().filter_map(|(app, runs)| {
            let (_, expected) = expected.iter().find(|(claimed, _)| claimed == app)?;
            let part = |holds, found| Some(Claim { application: app.title(), holds, found });
            let [Some(dmr), Some(time)] = both(runs, own) else { return part(None, "it did not run".into()) };
            if too_few_pairs(runs, &[system.with(own), phoenix.with(own)]).is_some() {
                return None;
            }
            let (contrast, times) = (Contrast::of(&dmr, &time), dmr.median / time.median);
            let caveat = contrast.caveat();
            part(contrast.holds(*expected), format!("with {own} workers DMR takes {times:.2} times as long{caveat}"))
        });
        let parts: Vec<Claim> = parts.collect();
        if processors < PROCESSORS {
            let what = "threads that wait for one address space need";
            return too_few_processors(what, PROCESSORS, processors, &findings(&parts));
        }
        all_hold(&parts)
    });
    Ok(drawn_quotients(Answer::new(found, verdict), name, "time of DMR ÷ time of Phoenix", &lines))
}
