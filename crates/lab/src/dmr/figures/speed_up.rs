//! Figures 1, 4, 8 and 17: Phoenix with more workers.

use gristmill_cli::Failure;
use gristmill_report::tally::Tally;

use super::words::{by_workers, drawn_quotients, quotient, ratio};
use crate::dmr::curves::Curve;
use crate::dmr::engine::EngineRuns;
use crate::dmr::experiments::{Experiments, GLIBC, JEMALLOC, OfApps, System, WORKERS, worst};
use crate::dmr::judge::{Claim, all_hold, judged};
use crate::dmr::model::application::ModelApp;
use crate::dmr::runs::COLUMNS;
use crate::mr_search::allocator::ALLOCATORS;
use crate::page::{Answer, Contrast, Judgement, all_of};

/// An application, and the number of workers from which on the paper has it slower.
type Turn = (ModelApp, usize);

/// With a combiner, on the allocator of the C library.
pub fn figure_1(experiments: &mut Experiments) -> Result<Answer, Failure> {
    let turns = ModelApp::ALL.map(|app| (app, 16));
    let answer = speed_up(experiments, "figure-1", GLIBC, System::PhoenixCombined, &turns)?;
    let engine = experiments.engine()?;
    let row = |(app, runs): &(ModelApp, EngineRuns)| {
        let first = runs.runs.first().and_then(|run| run.wall_ms);
        (app.title().to_owned(), runs.runs.iter().map(|run| quotient(first, run.wall_ms)).collect())
    };
    let beside = by_workers("the engine", engine.iter().map(row));
    Ok(Answer {
        found: format!("{}\nBeside it the engine's applications, from start to exit:\n\n{beside}", answer.found),
        ..answer
    })
}

/// With a combiner, on jemalloc.
pub fn figure_4(experiments: &mut Experiments) -> Result<Answer, Failure> {
    let turn = |app| if matches!(app, ModelApp::WordCount | ModelApp::Histogram) { 8 } else { 16 };
    speed_up(experiments, "figure-4", JEMALLOC, System::PhoenixCombined, &ModelApp::ALL.map(|app| (app, turn(app))))
}

/// Without a combiner, on the allocator of the C library.
pub fn figure_8(experiments: &mut Experiments) -> Result<Answer, Failure> {
    let turns = [ModelApp::Histogram, ModelApp::WordCount, ModelApp::Pca].map(|app| (app, 4));
    speed_up(experiments, "figure-8", GLIBC, System::PhoenixPlain, &turns)
}

/// Without a combiner, on jemalloc.
pub fn figure_17(experiments: &mut Experiments) -> Result<Answer, Failure> {
    let turns = [ModelApp::WordCount, ModelApp::Histogram].map(|app| (app, 8));
    speed_up(experiments, "figure-17", JEMALLOC, System::PhoenixPlain, &turns)
}

fn speed_up(
    experiments: &mut Experiments,
    name: &str,
    group: usize,
    system: System,
    turns: &[Turn],
) -> Result<Answer, Failure> {
    if group == JEMALLOC && ALLOCATORS[0].find().is_none() {
        return Ok(Answer::cannot_be_asked(ALLOCATORS[0].advice()));
    }
    let (rounds, processors, own) = (experiments.rounds, experiments.processors, experiments.own_processors());
    let scaling = experiments.scaling()?;
    let time = |app: ModelApp, workers: usize| {
        let runs = scaling.iter().find(|(measured, _)| *measured == app).map(|(_, runs)| runs);
        runs.and_then(|runs| runs.tally(group, &system.with(workers), "wall_ns"))
    };
    let body = ModelApp::ALL.map(|app| {
        let cells = WORKERS.map(|workers| quotient(time(app, 1), time(app, workers)));
        (app.title().to_owned(), cells.to_vec())
    });
    let lines = ModelApp::ALL.map(|app| Curve {
        name: app.title().to_owned(),
        values: WORKERS.map(|workers| ratio(time(app, 1), time(app, workers))).to_vec(),
    });
    let found = format!(
        "Phoenix's way, built here, on {processors} processors; how many times as fast as with one worker:\n\n{}",
        by_workers("application", body)
    );
    let verdict = judged(rounds, worst(scaling.iter().map(|(_, runs)| &runs.load)), || {
        let parts: Vec<Claim> =
            turns.iter().map(|(app, turn)| rises_and_falls(*app, *turn, own, |n| time(*app, n))).collect();
        let needed = 2 * turns.iter().map(|(_, turn)| *turn).max().unwrap_or(1);
        match all_hold(&parts) {
            Judgement::Agrees if processors < needed => Judgement::CannotBeAsked(format!(
                "the paper's curves turn at {} cores or fewer, so {needed} processors are needed and {processors} are here. As far \
                 as those reach, it is as in the paper; beyond, workers only wait for a processor",
                needed / 2
            )),
            verdict => verdict,
        }
    });
    Ok(drawn_quotients(Answer::new(found, verdict), name, "times as fast as with one worker", &lines)
        .with("scaling-runs.csv", csv(scaling)))
}

/// Returns whether an application gets faster with the workers that have a processor, up to `turn` of them, and slower
/// beyond, as far as there are processors.
fn rises_and_falls(app: ModelApp, turn: usize, own: usize, time: impl Fn(usize) -> Option<Tally>) -> Claim {
    let part = |holds, found| Claim { application: app.title(), holds, found };
    let numbers: Vec<usize> = WORKERS.into_iter().filter(|workers| *workers <= own).collect();
    let times: Option<Vec<(usize, Tally)>> = numbers.iter().map(|workers| Some((*workers, time(*workers)?))).collect();
    let Some([(_, first), .., (last_workers, last)]) = times.as_deref() else {
        return part(None, "there are times for one number of workers only".into());
    };
    let all = times.as_deref().unwrap_or_default();
    let fastest = |numbers: &mut dyn Iterator<Item = &(usize, Tally)>| {
        *numbers.min_by(|a, b| a.1.median.total_cmp(&b.1.median)).expect("two workers at least")
    };
    if own <= turn {
        let (contrast, times) = (Contrast::of(last, first), first.median / last.median);
        let found = format!("{last_workers} workers are {times:.2} times as fast as one{}", contrast.caveat());
        return part(contrast.holds(Contrast::Faster), found);
    }
    let (_, top) = fastest(&mut all.iter().filter(|(workers, _)| (2..=turn).contains(workers)));
    let mut beyond = all.iter().filter(|(workers, _)| *workers > turn);
    let claims = [Contrast::of(&top, first).holds(Contrast::Faster), Contrast::of(last, &top).holds(Contrast::Slower)];
    let gains_beyond = beyond.any(|(_, time)| Contrast::of(time, &top) == Contrast::Faster);
    let holds = if gains_beyond { Some(false) } else { all_of(&claims) };
    let (best_workers, best) = fastest(&mut all.iter());
    let found = match best_workers == *last_workers {
        true => format!("fastest with {best_workers} workers"),
        false => {
            let (lost, caveat) = (last.median / best.median, Contrast::of(last, &best).caveat());
            format!("fastest with {best_workers} workers; {last_workers} take {lost:.2} times as long{caveat}")
        }
    };
    part(holds, found)
}

/// Formats all runs of all systems.
pub fn csv(scaling: &OfApps) -> String {
    let rows: String = scaling.iter().map(|(app, runs)| runs.csv(app.title())).collect();
    format!("{COLUMNS}\n{rows}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curve_is_judged_as_far_as_there_are_processors() {
        let holds = |times: [f64; 6], turn, own| {
            let time = |workers: usize| Some(Tally::of(&[times[workers.ilog2() as usize]]));
            rises_and_falls(ModelApp::Pca, turn, own, time).holds
        };
        let turns = [100.0, 52.0, 30.0, 20.0, 40.0, 80.0];
        let rises = [100.0, 52.0, 30.0, 20.0, 12.0, 9.0];
        assert_eq!(
            [holds(turns, 16, 2), holds(turns, 16, 32), holds(turns, 4, 32)],
            [Some(true), Some(true), Some(false)]
        );
        assert_eq!([holds(rises, 16, 16), holds(rises, 16, 32)], [Some(true), Some(false)]);
        assert_eq!([holds([100.0; 6], 16, 2), holds([100.0; 6], 4, 32), holds(turns, 16, 1)], [None; 3]);
        assert_eq!(holds([100.0, 110.0, 120.0, 130.0, 160.0, 200.0], 8, 32), Some(false));
    }
}
