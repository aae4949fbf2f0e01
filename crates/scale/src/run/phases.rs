//! Where the workers of our own applications spend their time: from the statistics of each run.

use std::path::Path;
use std::{fs, io};

use serde_json::Value;

/// The kinds of time, each with the phases of a worker that belong to it (`docs/statistics.md`).
pub const KINDS: [(&str, &[&str]); 6] = [
    ("reading", &["input"]),
    ("mapping", &["map", "merge", "combine"]),
    ("sending", &["send_wait", "receive"]),
    ("reducing", &["reduce", "spill", "sort"]),
    ("output", &["output"]),
    ("idle", &["start", "idle"]),
];

/// The time of all workers of a run, by kind, and the size of its input.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Phases {
    /// Thread-seconds of each kind.
    pub seconds: [f64; KINDS.len()],
    /// The number of files of the input.
    pub files: u64,
    /// Their size.
    pub input_bytes: u64,
}

impl Phases {
    /// Reads the statistics of a run.
    ///
    /// # Errors
    /// The file cannot be read, or holds no statistics.
    pub fn read(path: &Path) -> io::Result<Phases> {
        let stats: Value = serde_json::from_slice(&fs::read(path)?)?;
        Phases::of(&stats).ok_or_else(|| io::Error::other("there are no statistics of workers"))
    }

    fn of(stats: &Value) -> Option<Phases> {
        let workers = stats["workers"].as_array()?;
        let of_phase = |phase| workers.iter().filter_map(move |worker| worker["phases"][phase]["ns"].as_f64());
        let of_job = |name: &str| stats["job"][name].as_u64().unwrap_or(0);
        Some(Phases {
            // The standard library's sum of nothing is -0.
            seconds: KINDS.map(|(_, phases)| phases.iter().flat_map(of_phase).fold(0.0, |sum, ns| sum + ns) / 1e9),
            files: of_job("files"),
            input_bytes: of_job("input_bytes"),
        })
    }

    /// Returns the thread-seconds spent reading.
    pub fn reading(&self) -> f64 {
        self.seconds[0]
    }

    /// Returns the thread-seconds spent in the map function.
    pub fn mapping(&self) -> f64 {
        self.seconds[1]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_phase_of_a_worker_belongs_to_one_kind() {
        let mut ours: Vec<&str> = KINDS.iter().flat_map(|(_, phases)| phases.iter().copied()).collect();
        let mut all: Vec<&str> = gristmill::stats::PHASES.iter().map(|phase| phase.name()).collect();
        ours.sort_unstable();
        all.sort_unstable();
        assert_eq!(ours, all);
    }

    /// The table of phases said that -0.000 seconds were spent in phases that no worker had.
    #[test]
    fn a_phase_that_no_worker_had_took_no_time() {
        let stats = serde_json::json!({ "workers": [{ "phases": { "map": { "ns": 2e9 } } }, {}] });
        let phases = Phases::of(&stats).expect("there are workers");
        assert_eq!(phases.mapping(), 2.0);
        let shown = phases.seconds.map(|seconds| format!("{seconds:.3}"));
        assert!(shown.iter().filter(|shown| *shown == "0.000").count() == KINDS.len() - 1, "{shown:?}");
    }
}
