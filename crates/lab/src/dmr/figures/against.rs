//! Figures 13, 15 and 18: DMR against Phoenix.

use gristmill_cli::Failure;

use super::words::{by_workers, drawn, quotient, ratio};
use crate::dmr::curves::Curve;
use crate::dmr::experiments::{Experiments, GLIBC, JEMALLOC, System, WORKERS, too_few_pairs, worst};
use crate::dmr::judge::{Claim, Contrast, SHARE_MIN, all_hold, judged};
use crate::dmr::model::application::ModelApp;
use crate::dmr::runs::ModelRuns;
use crate::mr_search::allocator::ALLOCATORS;
use crate::page::Answer;

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
        "Both built here, on {processors} processors, with the same map functions; time of DMR divided by time of Phoenix:\n\n\
         {}\nDMR with more workers, times as fast as with one:\n\n{}",
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
            // They differ in what becomes of pairs, and in how they start.
            let few = too_few_pairs(runs, &[system.with(own), phoenix.with(own)]).filter(|_| {
                let start = runs.tally(GLIBC, &system.with(own), "start_ns");
                ratio(start, Some(dmr)).is_none_or(|share| share < SHARE_MIN)
            });
            match few {
                Some(why) => part(None, format!("{why}, and so does the start")),
                None => {
                    let holds = Contrast::of(&dmr, &time) == *expected;
                    part(
                        Some(holds),
                        format!("with {own} workers DMR takes {:.2} times as long", dmr.median / time.median),
                    )
                }
            }
        });
        all_hold(&parts.collect::<Vec<_>>())
    });
    Ok(drawn(Answer::new(found, verdict), name, "time of DMR, of that of Phoenix", &lines))
}
