//! Figures 19, 20 and 21: the time from the call until map begins.

use gristmill_cli::Failure;
use gristmill_report::tally::Tally;

use super::words::{by_workers, drawn, median};
use crate::dmr::curves::{Curve, short};
use crate::dmr::engine::EngineRuns;
use crate::dmr::experiments::{Experiments, GLIBC, OfApps, System, WORKERS, worst};
use crate::dmr::judge::judged;
use crate::dmr::model::application::ModelApp;
use crate::dmr::runs::ModelRuns;
use crate::generate::Size;
use crate::page::{Answer, Judgement};

/// The longest start of Phoenix in the paper, in milliseconds.
const PHOENIX_MOST: f64 = 2.0;

/// The start of a system in milliseconds, for an application and each number of workers.
type Starts = (ModelApp, [Option<Tally>; 6]);

fn starts(scaling: &OfApps, system: System) -> Vec<Starts> {
    let of_app = |(app, runs): &(ModelApp, ModelRuns)| {
        let start = |workers| runs.tally_of(GLIBC, &system.with(workers), |value| Some(value("start_ns")? / 1e6));
        (*app, WORKERS.map(start))
    };
    scaling.iter().map(of_app).collect()
}

/// Returns the starts of all applications with at most `workers` workers.
fn asked(starts: &[Starts], workers: usize) -> impl Iterator<Item = Tally> {
    let all = starts.iter().flat_map(|(_, starts)| WORKERS.iter().zip(starts));
    all.filter(move |(number, _)| **number <= workers).filter_map(|(_, start)| *start)
}

/// Returns the least and the greatest median with at most `workers` workers, in milliseconds.
fn bounds(starts: &[Starts], workers: usize) -> [f64; 2] {
    let medians = asked(starts, workers).map(|start| start.median);
    medians.fold([f64::INFINITY, 0.0], |[least, most], start| [least.min(start), most.max(start)])
}

/// Returns the start with the greatest median, of those with at most `workers` workers.
fn slowest(starts: &[Starts], workers: usize) -> Option<Tally> {
    asked(starts, workers).max_by(|a, b| a.median.total_cmp(&b.median))
}

fn cells(starts: &[Starts]) -> Vec<(String, Vec<String>)> {
    let named = |(app, starts): &Starts| (app.title().to_owned(), starts.map(|start| median(start, 1.0)).to_vec());
    starts.iter().map(named).collect()
}

fn lines(starts: &[Starts]) -> Vec<Curve> {
    let line = |(app, starts): &Starts| Curve {
        name: app.title().to_owned(),
        values: starts.map(|start| start.map(|start| start.median)).to_vec(),
    };
    starts.iter().map(line).collect()
}

pub fn figure_19(experiments: &mut Experiments) -> Result<Answer, Failure> {
    let (rounds, own) = (experiments.rounds, experiments.own_processors());
    let scaling = experiments.scaling()?;
    let (dmr, phoenix) = (starts(scaling, System::DmrArray), starts(scaling, System::PhoenixCombined));
    let load = worst(scaling.iter().map(|(_, runs)| &runs.load));
    let engine = experiments.engine()?.iter().map(|(app, EngineRuns { runs, .. })| {
        (app.title().to_owned(), runs.iter().map(|run| median(run.start_ms, 1.0)).collect())
    });
    let found = format!(
        "Milliseconds until all processes had been started and each had its channels, in the model:\n\n{}\n\
         The engine, from the call of the job until every worker had been started:\n\n{}",
        by_workers("application", cells(&dmr)),
        by_workers("application", engine.collect::<Vec<_>>())
    );
    let verdict = judged(rounds, load, || {
        let [[least, most], [_, threads]] = [bounds(&dmr, own), bounds(&phoenix, own)];
        match least >= 10.0 * threads && most <= 2.0 * least {
            true => Judgement::Agrees,
            false => Judgement::CannotBeAsked(format!(
                "DMR makes the heaps of its processes and a channel for each pair of workers ahead, in its own kernel. Here processes with \
                 mailboxes take {} to {} ms with up to {own} workers, and threads {} ms at most",
                short(least),
                short(most),
                short(threads)
            )),
        }
    });
    Ok(drawn(Answer::new(found, verdict), "figure-19", "ms until all have been started", &lines(&dmr)))
}

pub fn figure_20(experiments: &mut Experiments) -> Result<Answer, Failure> {
    let (rounds, own) = (experiments.rounds, experiments.own_processors());
    let scaling = experiments.scaling()?;
    let phoenix = starts(scaling, System::PhoenixCombined);
    let found = format!(
        "Milliseconds until all map threads had been started; figure 19 has the engine:\n\n{}",
        by_workers("application", cells(&phoenix))
    );
    let verdict = judged(rounds, worst(scaling.iter().map(|(_, runs)| &runs.load)), || {
        let [shortest, longest] = bounds(&phoenix, own).map(short);
        let found = format!("{shortest} to {longest} ms with up to {own} workers");
        match slowest(&phoenix, own) {
            Some(Tally { least, .. }) if least > PHOENIX_MOST => Judgement::Differs(found),
            Some(Tally { most, .. }) if most <= PHOENIX_MOST && own == WORKERS[WORKERS.len() - 1] => Judgement::Agrees,
            Some(Tally { most, .. }) if most <= PHOENIX_MOST => Judgement::CannotBeAsked(format!(
                "32 processors are needed. As far as those here reach, it is as in the paper: {found}; beyond, threads start when others, \
                 which map already, leave them a processor"
            )),
            _ => Judgement::Undecided(format!("{found}, whose range contains the limit")),
        }
    });
    Ok(drawn(Answer::new(found, verdict), "figure-20", "ms until all have been started", &lines(&phoenix)))
}

pub fn figure_21(experiments: &mut Experiments) -> Result<Answer, Failure> {
    let (rounds, own, size) = (experiments.rounds, experiments.own_processors(), experiments.size);
    let scaling = experiments.scaling()?;
    let share = |runs: &ModelRuns, workers: usize| {
        runs.tally_of(GLIBC, &System::DmrArray.with(workers), |value| Some(value("start_ns")? / value("wall_ns")?))
    };
    let body = scaling.iter().map(|(app, runs)| {
        (app.title().to_owned(), WORKERS.map(|workers| median(share(runs, workers), 0.01)).to_vec())
    });
    let found =
        format!("Percent of the time of DMR until all have been started:\n\n{}", by_workers("application", body));
    let line = |(app, runs): &(ModelApp, ModelRuns)| Curve {
        name: app.title().to_owned(),
        values: WORKERS.map(|workers| share(runs, workers).map(|share| share.median * 100.0)).to_vec(),
    };
    let curves: Vec<Curve> = scaling.iter().map(line).collect();
    let verdict = judged(rounds, worst(scaling.iter().map(|(_, runs)| &runs.load)), || {
        let shares = scaling.iter().filter_map(|(app, runs)| Some((*app, share(runs, own)?.median)));
        let shares: Vec<(ModelApp, f64)> = shares.collect();
        let (app, most) = shares.iter().copied().max_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or((ModelApp::Pca, 0.0));
        if size != Size::Large {
            return Judgement::Undecided(
                "the share depends on the size of the input: ask again with --size paper".into(),
            );
        }
        Judgement::of(app == ModelApp::LinearRegression, || {
            let found: Vec<String> =
                shares.iter().map(|(app, share)| format!("{} {:.1} %", app.title(), share * 100.0)).collect();
            format!(
                "with {own} workers {} has the largest share, {:.1} % ({})",
                app.title(),
                most * 100.0,
                found.join(", ")
            )
        })
    });
    Ok(drawn(Answer::new(found, verdict), "figure-21", "percent of the time", &curves))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_those_of_all_applications_with_workers_that_have_a_processor() {
        let tally = |ms: f64| Some(Tally::of(&[ms]));
        let starts = [
            (ModelApp::Pca, [tally(2.0), None, tally(5.0), None, None, tally(90.0)]),
            (ModelApp::WordCount, [tally(1.0); 6]),
        ];
        assert_eq!((bounds(&starts, 4), bounds(&starts, 32)), ([1.0, 5.0], [1.0, 90.0]));
        assert_eq!([2, 4].map(|workers| slowest(&starts, workers)), [tally(2.0), tally(5.0)]);
    }
}
