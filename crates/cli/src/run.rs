//! The job of a subcommand, from its options to its result.

use std::ops::ControlFlow;

use gristmill::{Datum, Input, Job, MapReduce, Records};

use crate::failure::Failure;
use crate::job_options::JobOptions;
use crate::output::OutputOptions;
use crate::progress::Terminal;
use crate::rows::Cell;
use crate::stats::Stats;

/// What a subcommand runs, and how its result is told.
pub struct Run<'p, J: MapReduce> {
    pub program: &'p J,
    pub input: Input,
    pub records: Records,
    pub record_bytes_max: usize,
    /// Names of the columns of a row.
    pub columns: &'static [&'static str],
    /// What the summary calls what map emits, and the keys.
    pub pairs: &'static str,
    pub keys: &'static str,
}

impl<J: MapReduce<Key: Cell, Value: Cell>> Run<'_, J> {
    /// Runs the job, and writes result, statistics and summary.
    pub fn run(self, options: &JobOptions, output_options: &OutputOptions) -> Result<(), Failure> {
        // 1. What cannot be written fails before the job begins.
        let mut output = output_options.open(self.columns)?;
        let stats = options.stats.as_deref().map(Stats::open).transpose()?;
        // 2. The job.
        let terminal = Terminal::new(options.quiet);
        let job = Job::new(self.program, self.input).records(self.records).record_bytes_max(self.record_bytes_max);
        let mut job = output_options.apply(options.apply(job));
        if terminal.is_watched() {
            job = job.on_progress(|progress| terminal.show(progress));
        }
        // 3. The result.
        let mut written = Ok(());
        let summary = if output_options.top_by_key() {
            let (greatest, summary) = job.run()?;
            let mut rows: Vec<_> = greatest.iter().collect();
            rows.sort_by(|a, b| J::Key::compare(a.0, b.0));
            terminal.clear();
            written =
                rows.iter().try_for_each(|(key, value)| output.row(&[J::Key::field(*key), J::Value::field(*value)]));
            summary
        } else {
            job.run_while(|key, value| {
                terminal.clear();
                written = output.row(&[J::Key::field(key), J::Value::field(value)]);
                if written.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            })?
        };
        output.finish(written)?;
        // 4. What it took.
        if let Some(stats) = stats {
            stats.finish(&summary)?;
        }
        terminal.sum_up(&summary, self.pairs, self.keys);
        Ok(())
    }
}
