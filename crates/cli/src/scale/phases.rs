//! Where the workers of our own applications spend their time: from the statistics of each run.

use std::fmt::Write;
use std::path::Path;
use std::{fs, io};

use serde_json::Value;

use super::page::Section;
use super::runs::Series;

/// The kinds of time, each with the phases of a worker that belong to it (`docs/statistics.md`).
const KINDS: [(&str, &[&str]); 6] = [
    ("reading", &["input"]),
    ("mapping", &["map", "merge", "combine"]),
    ("sending", &["send_wait", "receive"]),
    ("reducing", &["reduce", "spill", "sort"]),
    ("output", &["output"]),
    ("idle", &["start", "idle"]),
];

/// The time of all workers of a run, in thread-seconds, by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Phases([f64; KINDS.len()]);

impl Phases {
    /// Reads the statistics of a run.
    ///
    /// # Errors
    /// The file cannot be read, or holds no statistics.
    pub fn read(path: &Path) -> io::Result<Phases> {
        let stats: Value = serde_json::from_slice(&fs::read(path)?)?;
        let workers =
            stats["workers"].as_array().ok_or_else(|| io::Error::other("there are no statistics of workers"))?;
        let of_phase = |phase: &&str| -> f64 {
            workers.iter().filter_map(|worker| worker["phases"][phase]["ns"].as_f64()).sum::<f64>() / 1e9
        };
        Ok(Phases(KINDS.map(|(_, phases)| phases.iter().map(of_phase).sum())))
    }

    /// Returns the thread-seconds spent reading.
    pub fn reading(&self) -> f64 {
        self.0[0]
    }

    /// Returns the thread-seconds spent in the map function.
    pub fn mapping(&self) -> f64 {
        self.0[1]
    }
}

/// Returns the phases of the run whose time is the median, for each number of workers.
pub fn medians(all: &[Series]) -> Vec<(u64, Phases)> {
    let of = |series: &Series| {
        let mut runs: Vec<_> = series.runs.iter().filter(|run| run.phases.is_some()).collect();
        runs.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
        Some((series.workers, runs.get(runs.len() / 2)?.phases?))
    };
    all.iter().filter_map(of).collect()
}

const TITLE: &str = "Thread-seconds by phase, all workers together, in the run of median time";

/// Formats a row for each number of workers; empty for other commands than our own.
pub fn section(all: &[Series]) -> Section {
    let medians = medians(all);
    if medians.is_empty() { Section::default() } else { Section { text: text(&medians), html: html(&medians) } }
}

fn text(medians: &[(u64, Phases)]) -> String {
    let mut text = format!("{TITLE}:\n{:>8}", "workers");
    KINDS.iter().for_each(|(kind, _)| write!(text, "{kind:>10}").expect("a string takes everything"));
    for (workers, Phases(seconds)) in medians {
        write!(text, "\n{workers:>8}").expect("a string takes everything");
        seconds.iter().for_each(|seconds| write!(text, "{seconds:>10.3}").expect("a string takes everything"));
    }
    text + "\n\n"
}

fn html(medians: &[(u64, Phases)]) -> String {
    let heads: String = KINDS.iter().map(|(kind, _)| format!("<th class='number'>{kind}</th>")).collect();
    let row = |(workers, Phases(seconds)): &(u64, Phases)| {
        let cells: String = seconds.iter().map(|seconds| format!("<td class='number'>{seconds:.3}</td>")).collect();
        format!("<tr><td class='number'>{workers}</td>{cells}</tr>")
    };
    let rows: String = medians.iter().map(row).collect();
    format!(
        "<h2>Phases</h2><p class='soft'>{TITLE}.</p>\
         <div class='scroll'><table><tr><th class='number'>Workers</th>{heads}</tr>{rows}</table></div>"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_phase_of_a_worker_belongs_to_one_kind() {
        let mut ours: Vec<&str> = KINDS.iter().flat_map(|(_, phases)| phases.iter().copied()).collect();
        let mut all: Vec<&str> = gristmill::PHASES.iter().map(|phase| phase.name()).collect();
        ours.sort_unstable();
        all.sort_unstable();
        assert_eq!(ours, all);
    }
}
