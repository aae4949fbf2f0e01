//! Facts about the runs, beside their times: those that failed, those that others disturbed, and the processors in use.

use crate::diagnose::{Circumstances, Counted, Disturbance, Failure};
use gristmill_counters::load::Load;

use crate::measure::evidence::{AccountRow, Evidence};
use crate::run::parameters::Combination;
use crate::run::rounds::Series;
use gristmill_report::messages::printable;

/// Returns the numbers of workers with which the command failed, by the values of other parameters and by the reason.
pub fn failures(combinations: &[Combination], all: &[Vec<Series>]) -> Vec<Failure> {
    let mut failures: Vec<Failure> = Vec::new();
    for (values, series) in
        combinations.iter().zip(all).flat_map(|(values, all)| all.iter().map(move |one| (values, one)))
    {
        let Some(why) = &series.failure else { continue };
        let mut run = values.to_string();
        if !run.is_empty() {
            run.insert_str(0, " and ");
        }
        match series.runs.len() {
            0 => {}
            1 => run.push_str(", after a run that succeeded,"),
            count => run.push_str(&format!(", after {count} runs that succeeded,")),
        }
        let why = printable(why.trim_end_matches('.'));
        match failures.iter_mut().find(|other| other.why == why && other.run == run) {
            Some(other) => other.workers.push(series.workers),
            None => failures.push(Failure { workers: vec![series.workers], run, why }),
        }
    }
    failures
}

/// Returns sentences about the load of other programs and about processes that the command left.
pub fn disturbances(all: &[Series]) -> Vec<String> {
    let mut notes = Vec::new();
    let repeated: usize = all.iter().map(|series| series.repeated).sum();
    if repeated > 0 {
        let runs = if repeated == 1 { "1 run was" } else { &format!("{repeated} runs were") };
        notes.push(format!("{runs} repeated because other programs used more than a tenth of the processors."));
    }
    let left: usize = all.iter().flat_map(|series| &series.runs).map(|run| run.left).sum();
    if left > 0 {
        notes.push(
            "The command left processes running when it ended; they were ended, and their work is not in its time."
                .to_owned(),
        );
    }
    notes
}

/// Returns what is known of the runs beside their times: the load of other programs, their length, and the processors
/// in use.
pub fn circumstances(all: &[Series]) -> Circumstances {
    let longest = all.iter().filter_map(Series::median).reduce(f64::max);
    Circumstances {
        load: under_load(all),
        too_short: longest.filter(|seconds| *seconds <= SECONDS_MIN),
        // Our own applications do use it.
        may_ignore_workers: all.iter().flat_map(|series| &series.runs).all(|run| run.phases.is_none()),
        busy: all.iter().filter_map(|series| Some((series.workers, series.busy()?))).collect(),
        ..Circumstances::default()
    }
}

fn under_load(all: &[Series]) -> Option<Disturbance> {
    let loaded: Vec<Load> = all.iter().filter_map(Series::load).filter(Load::disturbs).collect();
    let load = Load::mean(loaded.iter().copied())?;
    Some(Disturbance { numbers: loaded.len(), of: all.len(), share: load.foreign })
}

/// Returns how many threads of the command were there, on average, by number of workers.
pub fn threads(evidence: &Evidence) -> Vec<(u64, f64)> {
    let there = |AccountRow { account, .. }: &AccountRow| {
        let Counted { workers, seconds, .. } = account.counted;
        (workers, (account.whole() - account.absent) / seconds)
    };
    evidence.rows.iter().map(there).collect()
}

/// Returns the note of a row of the table: the processors in use, and whether other programs disturbed the runs.
pub fn mark(series: &Series) -> String {
    let busy = series.busy().map_or(String::new(), |busy| format!("{busy:.2} busy"));
    let load = if series.load().is_some_and(|load| load.disturbs()) { ", under load" } else { "" };
    busy + load
}

/// Runs up to this long are mostly the start of a process.
const SECONDS_MIN: f64 = 0.01;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_for_the_same_reason_are_one() {
        let series = |workers, failure: Option<&str>| Series {
            workers,
            failure: failure.map(str::to_owned),
            ..Series::default()
        };
        let all = vec![vec![
            series(1, None),
            series(2, Some("it broke.")),
            series(4, Some("it broke.")),
            series(8, Some("no")),
        ]];
        let failed =
            |workers: &[u64], why: &str| Failure { workers: workers.to_vec(), run: String::new(), why: why.to_owned() };
        assert_eq!(failures(&[Combination::default()], &all), [failed(&[2, 4], "it broke"), failed(&[8], "no")]);
    }
}
