//! Sentences about the runs: those that failed, those that others disturbed, and those that are too short.

use gristmill_counters::load::Load;

use super::runs::Series;
use super::section::shown;
use crate::terminal::messages::printable;

/// Returns a sentence for each way in which the command failed.
pub fn failures(all: &[Series]) -> Vec<String> {
    let mut said: Vec<(String, Vec<String>)> = Vec::new();
    for series in all {
        let Some(why) = &series.failure else { continue };
        let workers = series.workers.to_string();
        match said.iter_mut().find(|(reason, _)| reason == why) {
            Some((_, list)) => list.push(workers),
            None => said.push((why.clone(), vec![workers])),
        }
    }
    said.into_iter()
        .map(|(why, list)| {
            let workers = if list == ["1"] { "worker" } else { "workers" };
            format!("With {} {workers} the command failed: {}.", list.join(", "), printable(why.trim_end_matches('.')))
        })
        .collect()
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

/// Returns the sentence that precedes everything else: other programs used the processors.
pub fn under_load(all: &[Series]) -> Option<String> {
    let loaded: Vec<Load> = all.iter().filter_map(Series::load).filter(Load::disturbs).collect();
    let load = Load::mean(loaded.iter().copied())?;
    Some(format!(
        "The machine was under load: with {} of {} numbers of workers others used {:.0} % of the processors. What follows may be \
         their work; measure again when it is quiet.",
        loaded.len(),
        all.len(),
        load.foreign * 100.0
    ))
}

/// Runs up to this long are mostly the start of a process.
const SECONDS_MIN: f64 = 0.01;

/// Returns the sentence that warns of runs which are too short to compare.
pub fn too_short(all: &[Series]) -> Option<String> {
    let longest = all.iter().filter_map(Series::median).reduce(f64::max).filter(|seconds| *seconds <= SECONDS_MIN)?;
    Some(format!(
        "The runs take {} at most, which is mostly the start of a process: their times say nothing about workers. Give the command more to \
         do.",
        shown(longest)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_for_the_same_reason_are_one_sentence() {
        let series = |workers, failure: Option<&str>| Series {
            workers,
            failure: failure.map(str::to_owned),
            ..Series::default()
        };
        let all = [series(1, None), series(2, Some("it broke.")), series(4, Some("it broke.")), series(8, Some("no"))];
        assert_eq!(
            failures(&all),
            ["With 2, 4 workers the command failed: it broke.", "With 8 workers the command failed: no."]
        );
    }
}
