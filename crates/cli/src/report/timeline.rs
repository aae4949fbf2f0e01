//! The timeline of a run as a page (`--timeline`).

use std::cell::RefCell;
use std::path::Path;
use std::time::{Duration, Instant};

use gristmill::Summary;
use gristmill_report::timeline::{TimelineJob, page};

use crate::output::side_files::WholeFile;
use crate::terminal::failure::Failure;

/// The page, written when the last job has ended.
pub struct Timeline {
    file: WholeFile,
    /// When the command began its work.
    since: Instant,
    /// The jobs so far, each with its beginning.
    jobs: RefCell<Vec<(Duration, gristmill::stats::Timeline)>>,
}

impl Timeline {
    /// Begins the file, so that a failure to write shows before the first job begins.
    pub fn open(path: &Path) -> Result<Timeline, Failure> {
        if path.extension().is_none_or(|extension| extension != "html") {
            return Err(Failure::Usage(format!("{} is not .html: --timeline writes a page", path.display())));
        }
        Ok(Timeline { file: WholeFile::begin(path)?, since: Instant::now(), jobs: RefCell::default() })
    }

    /// Keeps the timeline of a job that has just ended.
    pub fn note(&self, summary: &Summary) {
        if let Some(timeline) = &summary.timeline {
            let began = self.since.elapsed().saturating_sub(Duration::from_nanos(summary.wall_ns));
            self.jobs.borrow_mut().push((began, timeline.clone()));
        }
    }

    /// Writes the file.
    pub fn finish(self) -> Result<(), Failure> {
        let jobs = self.jobs.into_inner();
        let runs: Vec<TimelineJob<'_>> = jobs
            .iter()
            .enumerate()
            .map(|(at, (began, timeline))| {
                let title = format!("Job {} of {}", at + 1, jobs.len());
                TimelineJob { title, began: *began, timeline }
            })
            .collect();
        let command: Vec<_> = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
        let page = page(&format!("gristmill {}", command.join(" ")), &runs);
        self.file.write(|to| to.write_all(page.as_bytes()))
    }
}
