//! The times of a job with every way to pass pairs and every number of workers.

use std::fmt::Write;

use clap::ValueEnum;
use gristmill_cli::Failure;
use gristmill_report::tally::Tally;

use super::job::Way;
use super::measure::{MeasuredRun, Memory, Task, Variation};
use crate::generate::name;
use crate::page::picture::Curve;
use crate::page::{Turns, spread};

/// The runs of a job.
pub struct Passing<'w> {
    job: &'static str,
    workers: &'w [u64],
    pub turns: Turns<MeasuredRun>,
}

impl Passing<'_> {
    /// Runs a job in every way, with this memory.
    pub fn measure<'w>(
        job: &'static str,
        task: &Task,
        memory: &Memory,
        workers: &'w [u64],
        rounds: u32,
    ) -> Result<Passing<'w>, Failure> {
        let with = |workers: &u64| {
            let workers = *workers;
            Way::value_variants().iter().map(move |exchange| Variation { exchange: *exchange, memory, workers })
        };
        let plans: Vec<Variation> = workers.iter().flat_map(with).collect();
        Ok(Passing { job, workers, turns: task.measure(&plans, rounds)? })
    }

    /// The times of MapReduce alone with so many workers, for each way.
    fn times(&self, workers: u64) -> Vec<Tally> {
        let at = self.workers.iter().position(|number| *number == workers).expect("it was measured");
        let ways = Way::value_variants().len();
        (at * ways..(at + 1) * ways).map(|way| self.turns.tally(way, |run| run.steps_ms)).collect()
    }

    /// Returns the speed-ups over one worker, for each way.
    pub fn speed_ups(&self, workers: u64) -> Vec<f64> {
        let [one, all] = [1, workers].map(|workers| self.times(workers));
        one.iter().zip(all).map(|(one, all)| one.median / all.median).collect()
    }

    /// Returns a table: a row for each number of workers, a column for each way.
    pub fn table(&self, processors: u64) -> String {
        let names: Vec<String> = Way::value_variants().iter().map(|way| name(*way)).collect();
        let mut table =
            format!("\n| {}, workers | {} |\n|---|{}\n", self.job, names.join(" | "), "---|".repeat(names.len()));
        for workers in self.workers {
            let cells: Vec<String> = self.times(*workers).iter().map(spread).collect();
            let star = if *workers > processors { "*" } else { "" };
            let _ = writeln!(table, "| {workers}{star} | {} |", cells.join(" | "));
        }
        table
    }

    /// Formats a row for each number of workers and each way: `job,workers,exchange,steps_ms,least_ms,most_ms`.
    pub fn rows(&self) -> String {
        let mut rows = String::new();
        for workers in self.workers {
            for (way, Tally { least, median, most, .. }) in Way::value_variants().iter().zip(self.times(*workers)) {
                let _ = writeln!(rows, "{},{workers},{},{median:.3},{least:.3},{most:.3}", self.job, name(*way));
            }
        }
        rows
    }

    /// Returns the speed-up of each way as a curve.
    pub fn curves(&self) -> Vec<Curve> {
        let curve = |(way, exchange): (usize, &Way)| {
            let point = |workers: &u64| (*workers as f64, self.speed_ups(*workers)[way]);
            (name(*exchange), self.workers.iter().map(point).collect())
        };
        Way::value_variants().iter().enumerate().map(curve).collect()
    }
}
