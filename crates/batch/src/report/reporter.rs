//! Reports on the programs of a queue: a table on a terminal, a record of each attempt, the summary, and the history.

use std::collections::BTreeMap;
use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::queue::{BatchJob, Queue, State};
use gristmill_schedule::Reason;

use super::live::Live;
use super::log::Log;
use super::printer::Style;
use super::record::{Record, decisions};
use super::recorder::Recorder;
use super::tally::{Left, Tally, json_summary, left, summary};
use super::written::Written;
use crate::program::running::Running;
use gristmill_os::standard::print;
use gristmill_report::messages::tell;

/// The reports that the user wants, and where they go.
pub struct Reports {
    /// The folder for their output.
    pub output: Option<PathBuf>,
    /// How their output is printed.
    pub style: Style,
    pub history: Option<PathBuf>,
    /// The table of attempts.
    pub log: Option<Log>,
    /// Lines of JSON on standard output.
    pub json: bool,
    /// No table, and of the summary only what failed.
    pub quiet: bool,
}

/// Reports on the programs of a queue.
pub struct Reporter {
    pub reports: Reports,
    records: Vec<Record>,
    pub recorder: Recorder,
    /// The usual time of each job in seconds, for the estimate on a terminal.
    usual: Vec<Option<f64>>,
    pub live: Live,
    /// The number of quanta by the reason of their decision.
    decided: BTreeMap<Reason, u64>,
    /// A report could not be written.
    pub is_broken: bool,
    began: Instant,
}

impl Reporter {
    pub fn new(reports: Reports) -> Reporter {
        let recorder = Recorder::open(reports.history.as_deref());
        let live = Live::new(!reports.quiet && io::stderr().is_terminal());
        Reporter {
            reports,
            records: Vec::new(),
            usual: Vec::new(),
            recorder,
            live,
            decided: BTreeMap::new(),
            is_broken: false,
            began: Instant::now(),
        }
    }

    /// Looks up how long jobs usually take that have arrived.
    pub fn expect(&mut self, jobs: &[BatchJob]) {
        if self.live.is_shown() {
            self.usual.extend(self.recorder.usual_seconds(jobs));
        }
    }

    pub fn records(&self) -> &[Record] {
        &self.records
    }

    pub fn tier(&self) -> Option<&'static str> {
        self.recorder.tier
    }

    /// Sets how many quanta were decided for each reason, for the history and the summary.
    pub fn decided(&mut self, reasons: &BTreeMap<Reason, u64>) {
        self.recorder.decided(reasons);
        self.decided = reasons.clone();
    }

    /// Keeps a record of a job in its slot. Returns its line, if one is to be printed.
    pub fn note(&mut self, job: &BatchJob, record: Record) -> Option<Written> {
        let line = self.reports.json.then(|| Written::text(format!("{}\n", record.json(job)), false));
        self.recorder.note(&record);
        if let Some(Err(why)) = self.reports.log.as_ref().map(|log| log.attempt(job, &record)) {
            self.lost(&why);
        }
        self.records.push(record);
        line
    }

    /// Writes the jobs that have no end to the log.
    pub fn log_left(&mut self, jobs: &[BatchJob], queue: &Queue) {
        let Some(log) = &self.reports.log else { return };
        let lines = left(queue.states(), &self.records).into_iter().zip(jobs).enumerate();
        let write = |(number, (left, job)): (usize, (Option<Left<'_>>, &BatchJob))| {
            log.left(number, job, left.and_then(Left::status)?).err()
        };
        let lost: Vec<String> = lines.filter_map(write).collect();
        lost.iter().for_each(|why| self.lost(why));
    }

    fn lost(&mut self, why: &str) {
        self.live.aside(|| tell(why));
        self.is_broken = true;
    }

    /// Draws the table again, if it is shown.
    ///
    /// `held` says why no further program begins, if that is so.
    pub fn show(&mut self, jobs: &[BatchJob], queue: &Queue, running: &BTreeMap<usize, Running>, held: Option<&str>) {
        if self.live.is_shown() {
            let left = self.time_left(queue, running).filter(|_| queue.is_closed());
            let all = queue.is_closed().then_some(jobs.len());
            self.live.show(jobs, running.values(), (&queue.counts(), all), left, held);
        }
    }

    /// Estimates the time left: the usual time of each job that has not ended, or the mean of those that have.
    fn time_left(&self, queue: &Queue, running: &BTreeMap<usize, Running>) -> Option<Duration> {
        let seconds = self.records.iter().map(|record| record.took.as_secs_f64());
        let mean = (!self.records.is_empty()).then(|| seconds.sum::<f64>() / self.records.len() as f64);
        let mut left = 0.0;
        for (job, state) in queue.states().iter().enumerate() {
            let begun = match state {
                State::Waiting => 0.0,
                State::Running => running.get(&job).map_or(0.0, |program| program.began.elapsed().as_secs_f64()),
                State::Ended(_) | State::Skipped(_) => continue,
            };
            left += (self.usual[job].or(mean)? - begun).max(0.0);
        }
        let running = queue.counts().running;
        (running > 0).then(|| Duration::from_secs_f64(left / running as f64))
    }

    /// Takes the table away, and writes the history.
    pub fn finish(&mut self) {
        self.live.clear();
        self.recorder.write();
    }

    /// Prints the summary.
    pub fn summarise(&self, jobs: &[BatchJob], queue: &Queue) {
        let (counts, took) = (queue.counts(), self.began.elapsed());
        if self.reports.json {
            let tally = Tally::of(&counts, &left(queue.states(), &self.records));
            let _ = print(format!("{}\n", json_summary(&tally, took, &self.decided)).as_bytes());
        }
        // The first line counts, and the others name failures.
        let lines = summary(jobs, queue.states(), &counts, &self.records, took);
        lines.into_iter().skip(usize::from(self.reports.quiet)).for_each(tell);
        if !self.reports.quiet {
            decisions(&self.decided).into_iter().for_each(tell);
        }
    }
}
