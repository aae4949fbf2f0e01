//! Reports that a run leaves beside its result: statistics, a timeline, bad records, and a line of summary.

use std::cell::Cell;
use std::sync::{Arc, Mutex, PoisonError};

use gristmill::Summary;
use gristmill::files::BadFile;

use crate::options::job_options::JobOptions;
use crate::report::bad_records::BadRecords;
use crate::report::stats::Stats;
use crate::report::timeline::Timeline;
use crate::terminal::failure::Failure;
use crate::terminal::progress::{Besides, Terminal};

/// The reports of a run.
pub struct Reports {
    quiet: bool,
    pub stats: Option<Stats>,
    timeline: Option<Timeline>,
    /// The list of what is set aside, if anything may be.
    pub bad_records: Option<BadRecords>,
    /// The files that were set aside.
    pub bad_files: Arc<Mutex<Vec<BadFile>>>,
    /// Pairs and keys that do not belong to the answer.
    pub besides: Cell<Besides>,
}

impl Reports {
    /// Opens the files, so that a failure to write shows before the first job begins.
    pub fn open(options: &JobOptions) -> Result<Reports, Failure> {
        Ok(Reports {
            quiet: options.quiet,
            stats: options.stats.as_deref().map(Stats::open).transpose()?,
            timeline: options.timeline.as_deref().map(Timeline::open).transpose()?,
            bad_records: None,
            bad_files: Arc::default(),
            besides: Cell::default(),
        })
    }

    /// Keeps what a job has set aside, and its timeline.
    pub fn note(&self, summary: &Summary) {
        if let Some(bad) = &self.bad_records {
            bad.take(&summary.bad_records);
        }
        self.draw(summary);
    }

    /// Keeps the timeline of a job.
    pub fn draw(&self, summary: &Summary) {
        self.timeline.iter().for_each(|timeline| timeline.note(summary));
    }

    /// Writes the files, and prints the summary. `files` is the number of files of the input; `words` name the pairs
    /// and keys that the job counts.
    pub fn finish(self, summary: &Summary, files: u64, terminal: &Terminal, words: [&str; 2]) -> Result<(), Failure> {
        let bad_files = self.bad_files.lock().unwrap_or_else(PoisonError::into_inner);
        self.stats.map_or(Ok(()), |stats| stats.finish(summary, files, bad_files.len() as u64))?;
        self.timeline.map_or(Ok(()), Timeline::finish)?;
        terminal.sum_up(summary, self.besides.get(), words[0], words[1]);
        self.bad_records.map_or(Ok(()), |bad| bad.finish(&bad_files, self.quiet))
    }
}
