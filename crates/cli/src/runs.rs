//! The jobs of an application that makes an answer of their results: the options, progress and statistics that all
//! subcommands share.

use gristmill::{Job, MapReduce, Outcome, Summary};

use crate::failure::Failure;
use crate::job_options::JobOptions;
use crate::progress::Terminal;
use crate::stats::Stats;

/// Runs the jobs of one application, and tells what the last one took.
pub struct Runs<'o> {
    options: &'o JobOptions,
    terminal: Terminal,
    stats: Option<Stats>,
}

impl<'o> Runs<'o> {
    /// Opens the statistics file, so that what cannot be written fails before the first job begins.
    pub fn new(options: &'o JobOptions) -> Result<Runs<'o>, Failure> {
        let stats = options.stats.as_deref().map(Stats::open).transpose()?;
        Ok(Runs { options, terminal: Terminal::new(options.quiet), stats })
    }

    /// Runs one job.
    pub fn run<J: MapReduce>(&self, job: Job<'_, J>) -> Result<Outcome<J>, Failure> {
        let mut job = self.options.apply(job);
        if self.terminal.is_watched() {
            job = job.on_progress(|progress| self.terminal.show(progress));
        }
        Ok(job.run()?)
    }

    /// Writes the statistics of the job that `summary` is of, and sums it up: what map emits, and what keys are.
    pub fn finish(self, summary: &Summary, pairs: &str, keys: &str) -> Result<(), Failure> {
        if let Some(stats) = self.stats {
            stats.finish(summary)?;
        }
        self.terminal.sum_up(summary, pairs, keys);
        Ok(())
    }
}
