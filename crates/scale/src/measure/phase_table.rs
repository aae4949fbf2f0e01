//! A table of the phases of our own applications, with a row for each number of workers.

use crate::run::phases::{KINDS, Phases};
use crate::run::rounds::Series;
use crate::section::{Grid, Section};

/// Returns the phases of the run whose time is the median, for each number of workers.
pub fn medians(all: &[Series]) -> Vec<(u64, Phases)> {
    let median = |series: &Series| {
        let mut runs: Vec<_> = series.runs.iter().filter(|run| run.phases.is_some()).collect();
        runs.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
        Some((series.workers, runs.get(runs.len() / 2)?.phases?))
    };
    all.iter().filter_map(median).collect()
}

const TITLE: &str = "Thread-seconds by phase, all workers together, in the run of median time";

/// Formats a row for each number of workers; empty for other commands than our own.
pub fn section(all: &[Series]) -> Section {
    let medians = medians(all);
    if medians.is_empty() {
        return Section::default();
    }
    let grid = |workers: &str| {
        let heads = [workers].into_iter().chain(KINDS.map(|(kind, _)| kind)).map(str::to_owned).collect();
        let row = |(workers, Phases { seconds, .. }): &(u64, Phases)| {
            [workers.to_string()].into_iter().chain(seconds.map(|seconds| format!("{seconds:.3}"))).collect()
        };
        Grid([heads].into_iter().chain(medians.iter().map(row)).collect())
    };
    let text = grid("workers").text(|column| if column == 0 { 8 } else { 10 });
    Section {
        text: format!("{TITLE}:\n{text}\n"),
        html: format!("<h2>Phases</h2><p class='soft'>{TITLE}.</p>{}", grid("Workers").html(None)),
    }
}
