//! The costs of every source of memory with every number of workers.

use gristmill_report::chart::milliseconds;
use gristmill_report::tally::Tally;

use super::measure::MeasuredRun;
use crate::page::{Turns, spread};

/// Runs of the search with every source of memory and every number of workers.
pub struct Grid {
    pub workers: Vec<u64>,
    /// By number of workers, and for each by source.
    pub turns: Turns<MeasuredRun>,
    pub sources: usize,
}

impl Grid {
    fn way(&self, workers: u64, source: usize) -> usize {
        let at = self.workers.iter().position(|number| *number == workers).expect("it was measured");
        at * self.sources + source
    }

    pub fn tally(&self, workers: u64, source: usize, value: fn(&MeasuredRun) -> f64) -> Tally {
        self.turns.tally(self.way(workers, source), value)
    }

    pub fn last(&self, workers: u64, source: usize) -> &MeasuredRun {
        self.turns.of(self.way(workers, source)).last().expect("there is a round")
    }
    /// Returns the speed-ups of MapReduce alone over the first source, by number of workers.
    pub fn over_the_first(&self, source: usize) -> Vec<(f64, f64)> {
        let speed_up = |workers: &u64| (*workers as f64, self.costs(*workers, source).speed_up);
        self.workers.iter().map(speed_up).collect()
    }

    /// Returns the share of the kernel in the processor time of MapReduce alone, with the first source: as much time as
    /// another source could save at most.
    pub fn kernel_share(&self, workers: u64) -> f64 {
        self.tally(workers, 0, |run| run.system_ms / (run.system_ms + run.user_ms).max(f64::MIN_POSITIVE)).median
    }

    /// Returns the costs of a source.
    pub fn costs(&self, workers: u64, source: usize) -> Costs {
        let median = |value| self.tally(workers, source, value).median;
        Costs {
            steps: self.tally(workers, source, |run| run.steps_ms),
            speed_up: self.tally(workers, 0, |run| run.steps_ms).median / median(|run| run.steps_ms),
            whole_ms: median(|run| run.whole_ms),
            faults: [median(|run| run.faults), median(|run| run.whole_faults)],
            system_ms: [median(|run| run.system_ms), median(|run| run.whole_system_ms)],
            placed: self.last(workers, source).placed,
        }
    }
}

/// The costs of a source of memory; medians.
pub struct Costs {
    /// MapReduce alone.
    pub steps: Tally,
    /// Over the first source.
    pub speed_up: f64,
    whole_ms: f64,
    /// Page faults of MapReduce alone, and of the whole program.
    faults: [f64; 2],
    system_ms: [f64; 2],
    pub placed: Option<[u64; 2]>,
}

/// The names of the fields of a row.
pub const FIELDS: &str = "steps_ms,least_ms,most_ms,whole_ms,faults,whole_faults,system_ms,whole_system_ms,placed_bytes,\
                          remote_bytes";

impl Costs {
    /// Formats the cells of a table.
    pub fn cells(&self) -> String {
        let ([faults, all_faults], [system, all_system]) = (self.faults, self.system_ms.map(milliseconds));
        format!(
            "{} | {:.2} | {} | {faults:.0} ({all_faults:.0}) | {system} ({all_system}) | {}",
            spread(&self.steps),
            self.speed_up,
            milliseconds(self.whole_ms),
            remote(self.placed)
        )
    }

    /// Formats the fields of a row.
    pub fn fields(&self) -> String {
        let Tally { least, median, most, .. } = self.steps;
        let ([faults, all_faults], [system, all_system]) = (self.faults, self.system_ms);
        let placed = self.placed.map_or_else(|| ",".to_owned(), |[placed, remote]| format!("{placed},{remote}"));
        let whole = self.whole_ms;
        format!(
            "{median:.3},{least:.3},{most:.3},{whole:.3},{faults:.0},{all_faults:.0},{system:.3},{all_system:.3},{placed}"
        )
    }
}

/// Formats the bytes on other nodes.
pub fn remote(placed: Option<[u64; 2]>) -> String {
    placed.map_or("unknown".to_owned(), |[placed, remote]| {
        format!("{:.1} of {:.1} MB", remote as f64 / 1e6, placed as f64 / 1e6)
    })
}
