//! Writes runs to the history. If that is not possible, it says so once, and the work goes on.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::queue::{BatchJob, Outcome};
use gristmill_history::{History, PastRun, Problem, TIER_B, UNDISTURBED_US};
use gristmill_os::machine::host_name;
use gristmill_schedule::{Key, Reading, Reason, Store};

use super::record::{Record, word};
use crate::journal_file::now_ms;
use crate::program::identity::Identity;
use gristmill_report::messages::{printable, tell};

/// The number of runs that are written together.
const RUNS_TOGETHER: usize = 500;

/// The history of one queue.
pub struct Recorder {
    /// `None` without a history, or after a problem.
    history: Option<History>,
    path: String,
    host: String,
    pub tier: Option<&'static str>,
    runs: Vec<PastRun>,
    /// The builds and inputs that were already looked up.
    asked: BTreeSet<(String, Option<String>)>,
}

impl Recorder {
    /// Opens the history; `None` for none.
    pub fn open(path: Option<&Path>) -> Recorder {
        let host = host_name();
        let shown = path.map_or(String::new(), |path| printable(&path.display().to_string()));
        let mut recorder =
            Recorder { history: None, path: shown, host, tier: None, runs: Vec::new(), asked: BTreeSet::new() };
        match path.map(History::open) {
            Some(Ok(history)) => recorder.history = Some(history),
            Some(Err(problem)) => recorder.give_up(&problem),
            None => {}
        }
        recorder
    }

    fn give_up(&mut self, problem: &Problem) {
        self.history = None;
        tell(format_args!("the history {} is not used: {problem}", self.path));
    }

    /// Asks the history something, and gives it up if it cannot answer. Returns nothing without one.
    fn ask<T>(&mut self, question: impl FnOnce(&mut History) -> Result<T, Problem>) -> Option<T> {
        let answer = question(self.history.as_mut()?);
        answer.map_err(|problem| self.give_up(&problem)).ok()
    }

    /// Returns the host, under which demands are kept. Those of tier B have another unit, so they are kept apart.
    fn host_of_demands(&self) -> String {
        match self.tier {
            Some("B") => format!("{}{TIER_B}", self.host),
            _ => self.host.clone(),
        }
    }

    /// Returns what was learned on this host, in this tier, about a program with an input; `None` after the first
    /// time. If the program was looked up with another input before, only the part about this input is read.
    pub fn learned(&mut self, Key { build, input }: &Key) -> Option<Store> {
        let is_new = self.asked.insert((build.clone(), None));
        if !self.asked.insert((build.clone(), Some(input.clone()))) {
            return None;
        }
        let host = self.host_of_demands();
        self.ask(|history| {
            let mut store = if is_new { history.load_program(&host, build)? } else { Store::default() };
            if let Some(known) = history.load_input(&host, build, input)? {
                store.programs.entry(build.clone()).or_default().inputs.insert(input.clone(), known);
            }
            Ok(store)
        })
    }

    /// Keeps what was learned.
    pub fn keep(&mut self, store: &Store) {
        let host = self.host_of_demands();
        self.ask(|history| history.save(&host, store));
    }

    /// Keeps the median of the readings that nothing disturbed.
    pub fn undisturbed(&mut self, readings: &[Reading]) {
        let mut times: Vec<f64> = readings.iter().map(|reading| reading.took_us).collect();
        times.sort_unstable_by(f64::total_cmp);
        let host = self.host_of_demands();
        if let Some(median_us) = times.get(times.len() / 2) {
            self.ask(|history| history.save_ceiling(&host, UNDISTURBED_US, now_ms(), *median_us));
        }
    }

    /// Keeps what was decided: the number of quanta for each reason.
    pub fn decided(&mut self, reasons: &BTreeMap<Reason, u64>) {
        let quanta: Vec<(&str, u64)> = reasons.iter().map(|(reason, quanta)| (word(*reason), *quanta)).collect();
        let (host, tier) = (self.host.clone(), self.tier.unwrap_or_default());
        self.ask(|history| history.add_decisions(&host, now_ms(), tier, &quanta));
    }

    /// Returns the usual time of each job, in seconds.
    pub fn usual_seconds(&mut self, jobs: &[BatchJob]) -> Vec<Option<f64>> {
        jobs.iter().map(|job| self.usual(job).map(|[seconds, _]| seconds)).collect()
    }

    /// The usual time and processor time of a job, in seconds.
    fn usual(&mut self, job: &BatchJob) -> Option<[f64; 2]> {
        let host = self.host.clone();
        self.ask(|history| {
            let identity = Identity::of(job);
            history.usual_seconds(&host, &identity.build, &identity.input)
        })?
    }

    /// Returns true if these jobs usually take less than `seconds` altogether, when `processors` share their work.
    pub fn is_shorter(&mut self, jobs: &[BatchJob], processors: usize, seconds: f64) -> bool {
        let mut sum = 0.0;
        jobs.iter().all(|job| {
            let processor = self.usual(job).map_or(f64::INFINITY, |[_, processor]| processor);
            sum += processor;
            processor < seconds && sum < seconds * processors as f64
        })
    }

    /// Returns true if runs are kept.
    pub fn keeps(&self) -> bool {
        self.history.is_some()
    }

    /// Notes a run that ended by itself.
    pub fn note(&mut self, record: &Record) {
        let is_run = |outcome: &&Outcome| !matches!(outcome, Outcome::Refused(_) | Outcome::Incomplete(_));
        let outcome = record.outcome.as_ref().filter(is_run);
        let (Some(outcome), Some(identity), true) = (outcome, &record.identity, self.keeps()) else { return };
        let Identity { name, build, input } = identity.clone();
        self.runs.push(PastRun {
            build,
            name,
            input,
            began_ms: record.at_ms,
            seconds: record.took.as_secs_f64(),
            user_seconds: record.used.user_us as f64 / 1e6,
            system_seconds: record.used.sys_us as f64 / 1e6,
            memory_bytes: record.used.memory_bytes,
            outcome: outcome.to_string(),
            chosen: record.chosen,
        });
        if self.runs.len() >= RUNS_TOGETHER {
            self.write();
        }
    }

    /// Writes all runs that were noted.
    pub fn write(&mut self) {
        let runs = std::mem::take(&mut self.runs);
        if !runs.is_empty() {
            let host = self.host.clone();
            self.ask(|history| history.add_runs(&host, &runs));
        }
    }
}
