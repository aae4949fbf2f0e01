//! Figures 19, 20 and 21: the time from the call until map begins.

use gristmill_cli::Failure;

use super::words::{by_workers, drawn, median};
use crate::dmr::curves::{Curve, short};
use crate::dmr::engine::EngineRuns;
use crate::dmr::experiments::{Experiments, GLIBC, OfApps, System, WORKERS, worst};
use crate::dmr::judge::judged;
use crate::dmr::model::application::ModelApp;
use crate::page::{Answer, Judgement};

/// The start of DMR in the paper, in seconds, and the most of Phoenix.
const DMR: [f64; 2] = [0.25, 0.35];
const PHOENIX_MOST: f64 = 0.002;

/// Returns the medians of a system's start in seconds, for each application and number of workers.
fn starts(scaling: &OfApps, system: System) -> Vec<(ModelApp, [Option<f64>; 6])> {
    let of_app = |(app, runs): &(ModelApp, crate::dmr::runs::ModelRuns)| {
        let start = |workers: usize| runs.tally(GLIBC, &system.with(workers), "start_ns");
        (*app, WORKERS.map(|workers| start(workers).map(|start| start.median / 1e9)))
    };
    scaling.iter().map(of_app).collect()
}

/// Returns the least and the most of all starts.
fn bounds(starts: &[(ModelApp, [Option<f64>; 6])]) -> [f64; 2] {
    let all = || starts.iter().flat_map(|(_, starts)| starts.iter().flatten().copied());
    [all().fold(f64::INFINITY, f64::min), all().fold(0.0, f64::max)]
}

fn cells(starts: &[(ModelApp, [Option<f64>; 6])]) -> Vec<(String, Vec<String>)> {
    let cell = |start: Option<f64>| start.map_or("-".into(), short);
    starts.iter().map(|(app, starts)| (app.title().to_owned(), starts.map(cell).to_vec())).collect()
}

fn lines(starts: &[(ModelApp, [Option<f64>; 6])]) -> Vec<Curve> {
    starts.iter().map(|(app, starts)| Curve { name: app.title().to_owned(), values: starts.to_vec() }).collect()
}

pub fn figure_19(experiments: &mut Experiments) -> Result<Answer, Failure> {
    let rounds = experiments.rounds;
    let scaling = experiments.scaling()?;
    let (dmr, phoenix) = (starts(scaling, System::DmrArray), starts(scaling, System::PhoenixCombined));
    let load = worst(scaling.iter().map(|(_, runs)| &runs.load));
    let engine = experiments.engine()?.iter().map(|(app, EngineRuns { runs, .. })| {
        (app.title().to_owned(), runs.iter().map(|run| median(run.start_ms, 1e3)).collect())
    });
    let found = format!(
        "Seconds until all processes had been started and each had its channels, in the model:\n\n{}\n\
         The engine, from the call of the job until every worker had been started:\n\n{}",
        by_workers("application", cells(&dmr)),
        by_workers("application", engine.collect::<Vec<_>>())
    );
    let verdict = judged(rounds, load, || {
        let [[least, most], [_, threads]] = [bounds(&dmr), bounds(&phoenix)];
        let pairs = dmr.iter().zip(&phoenix).flat_map(|((_, dmr), (_, phoenix))| dmr.iter().zip(phoenix));
        let is_longer = pairs
            .into_iter()
            .all(|(dmr, phoenix)| dmr.zip(*phoenix).is_some_and(|(dmr, phoenix)| dmr >= 10.0 * phoenix));
        let is_steady = most <= 2.0 * least;
        Judgement::of(is_longer && is_steady, || {
            format!(
                "processes take {} to {} s, not {} to {} s, and more of them take longer; threads take {} s at most. A fork of \
                 a process that has mapped little costs less than a millisecond; no heaps and channels of fixed size are \
                 made ahead here",
                short(least),
                short(most),
                DMR[0],
                DMR[1],
                short(threads)
            )
        })
    });
    Ok(drawn(Answer::new(found, verdict), "figure-19", "seconds until map begins", &lines(&dmr)))
}

pub fn figure_20(experiments: &mut Experiments) -> Result<Answer, Failure> {
    let rounds = experiments.rounds;
    let scaling = experiments.scaling()?;
    let phoenix = starts(scaling, System::PhoenixCombined);
    let found = format!(
        "Seconds until all map threads had been started; figure 19 has the engine:\n\n{}",
        by_workers("application", cells(&phoenix))
    );
    let verdict = judged(rounds, worst(scaling.iter().map(|(_, runs)| &runs.load)), || {
        let [least, most] = bounds(&phoenix);
        Judgement::of(most <= PHOENIX_MOST, || {
            format!(
                "{} to {} s: threads that have no processor of their own start behind others that map already",
                short(least),
                short(most)
            )
        })
    });
    Ok(drawn(Answer::new(found, verdict), "figure-20", "seconds until map begins", &lines(&phoenix)))
}

pub fn figure_21(experiments: &mut Experiments) -> Result<Answer, Failure> {
    let (rounds, own) = (experiments.rounds, experiments.own_processors());
    let scaling = experiments.scaling()?;
    let share = |runs: &crate::dmr::runs::ModelRuns, workers: usize| {
        runs.tally_of(GLIBC, &System::DmrArray.with(workers), |value| Some(value("start_ns")? / value("wall_ns")?))
    };
    let body = scaling.iter().map(|(app, runs)| {
        (app.title().to_owned(), WORKERS.map(|workers| median(share(runs, workers), 0.01)).to_vec())
    });
    let found = format!("Percent of the time of DMR until map begins:\n\n{}", by_workers("application", body));
    let line = |(app, runs): &(ModelApp, crate::dmr::runs::ModelRuns)| Curve {
        name: app.title().to_owned(),
        values: WORKERS.map(|workers| share(runs, workers).map(|share| share.median * 100.0)).to_vec(),
    };
    let curves: Vec<Curve> = scaling.iter().map(line).collect();
    let verdict = judged(rounds, worst(scaling.iter().map(|(_, runs)| &runs.load)), || {
        let shares = scaling.iter().filter_map(|(app, runs)| Some((*app, share(runs, own)?.median)));
        let shares: Vec<(ModelApp, f64)> = shares.collect();
        let (app, most) = shares.iter().copied().max_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or((ModelApp::Pca, 0.0));
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
    fn bounds_are_those_of_all_applications() {
        let starts =
            [(ModelApp::Pca, [Some(2.0), None, Some(5.0), None, None, None]), (ModelApp::WordCount, [Some(1.0); 6])];
        assert_eq!(bounds(&starts), [1.0, 5.0]);
    }
}
