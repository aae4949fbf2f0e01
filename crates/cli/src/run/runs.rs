//! The jobs of a subcommand, with the options, progress and statistics that all subcommands share.

use std::cell;
use std::fmt::Display;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use gristmill::{
    BadFile, Choice, Datum, Error, Input, InputNews, Job, MapReduce, Next, Outcome, Part, Row, Step, Summary, Target,
};
use gristmill_apps::Overflow;

use crate::options::inputs::Inputs;
use crate::options::job_options::JobOptions;
use crate::output::column::Field;
use crate::output::destination::{Destination, Output, Ranking};
use crate::output::names::Outputs;
use crate::report::bad_records::BadRecords;
use crate::report::stats::Stats;
use crate::run::common::Common;
use crate::terminal::failure::Failure;
use crate::terminal::messages::line;
use crate::terminal::progress::{Besides, Terminal, Unit};

/// Runs the jobs of one subcommand, and tells what the last one took.
pub struct Runs<'o> {
    options: &'o JobOptions,
    /// Where there is input from outside.
    inputs: Option<&'o Inputs>,
    record_bytes_max: usize,
    /// More workers would not find the memory for such a record.
    workers_max: Option<usize>,
    outputs: Outputs,
    terminal: Terminal,
    stats: Option<Stats>,
    /// If records or files may be set aside.
    bad_records: Option<BadRecords>,
    /// Files that were set aside.
    bad_files: Arc<Mutex<Vec<BadFile>>>,
    /// Jobs so far.
    jobs: cell::Cell<u32>,
    /// The plan has been told: jobs that follow have a similar one.
    explained: cell::Cell<bool>,
    besides: cell::Cell<Besides>,
}

impl<'o> Runs<'o> {
    /// Opens the statistics file, so that what cannot be written fails before the first job begins.
    pub fn new(options: &'o Common) -> Result<Runs<'o>, Failure> {
        Runs::with_outputs(options, Outputs::begin(options.destination.path()))
    }

    /// The same with outputs of the subcommand's own.
    pub fn with_outputs(options: &'o Common, mut outputs: Outputs) -> Result<Runs<'o>, Failure> {
        let sets_aside = options.job.skip_bad_records > 0 || options.inputs.skip_bad_files > 0;
        let bad_records = match (&options.job.bad_records, options.destination.path()) {
            (Some(_), _) if !sets_aside => {
                return Err(Failure::Usage(
                    "--bad-records lists what is set aside: add --skip-bad-records or --skip-bad-files".into(),
                ));
            }
            _ if !sets_aside => None,
            (Some(path), _) => Some(path.clone()),
            (None, Some(output)) => {
                let mut name = output.to_owned().into_os_string();
                name.push(".bad.jsonl");
                Some(name.into())
            }
            (None, None) => Some("bad-records.jsonl".into()),
        };
        if let Some(path) = &bad_records {
            outputs.file("--bad-records", path);
        }
        let runs = Runs::begin(&options.job, outputs, Some(&options.inputs))?;
        Ok(Runs { bad_records: bad_records.as_deref().map(BadRecords::open).transpose()?, ..runs })
    }

    /// The same for a subcommand that reads nothing.
    pub fn without_input(options: &'o JobOptions, destination: &Destination) -> Result<Runs<'o>, Failure> {
        Runs::begin(options, Outputs::begin(destination.path()), None)
    }

    fn begin(options: &'o JobOptions, mut outputs: Outputs, inputs: Option<&'o Inputs>) -> Result<Runs<'o>, Failure> {
        if let Some(path) = &options.stats {
            outputs.file("--stats", path);
        }
        if let Some(path) = &options.checkpoint {
            outputs.folder("--checkpoint", path);
        }
        outputs.check()?;
        outputs.check_named(inputs.into_iter().flat_map(Inputs::named))?;
        let (record_bytes_max, workers) = match inputs {
            Some(inputs) => inputs.record_bytes_max(options.memory, options.workers())?,
            None => (usize::MAX, None),
        };
        let stats = options.stats.as_deref().map(Stats::open).transpose()?;
        Ok(Runs {
            options,
            inputs,
            record_bytes_max,
            workers_max: workers.filter(|_| options.workers().is_none()),
            outputs,
            terminal: Terminal::new(options.quiet),
            stats,
            bad_records: None,
            bad_files: Arc::default(),
            jobs: cell::Cell::new(0),
            explained: cell::Cell::new(false),
            besides: cell::Cell::default(),
        })
    }

    /// So much of a job is no part of its answer.
    pub fn leave_out(&self, besides: Besides) {
        self.besides.set(besides);
    }

    /// Shows the work of the jobs in another unit than bytes of the input.
    pub fn counted_in(self, unit: Unit) -> Runs<'o> {
        self.terminal.count_in(unit);
        self
    }

    /// The input of the job, once it is known that nothing of it is written. What a user should know of it is told.
    pub fn input(&self) -> Result<Input, Failure> {
        let inputs = self.inputs.expect("a subcommand that reads files");
        let input = inputs.input(self.options.memory)?;
        let input = match self.options.spool_dir() {
            Some(dir) => input.spool_dir(dir),
            None => input,
        };
        let (found, tell) = (self.bad_files.clone(), self.terminal.of_input());
        let mut input = input.on_news(move |news| match news {
            InputNews::SetAside(file) => found.lock().unwrap_or_else(PoisonError::into_inner).push((*file).clone()),
            news => tell(news),
        });
        self.outputs.check_sources(input.look()?)?;
        Ok(input)
    }

    /// A file that the subcommand reads beside its input, within the memory of the job.
    pub fn reads(&self, path: &Path) -> Result<Input, Failure> {
        self.outputs.check_named([path].into_iter())?;
        Ok(self.options.memory.into_iter().fold(Input::paths([path]), Input::memory))
    }

    /// Runs one job and gathers its result, for a subcommand that makes an answer of it.
    pub fn run<J: MapReduce>(&self, job: Job<'_, J>) -> Result<Outcome<J>, Failure> {
        let outcome = self.prepared(job).run()?;
        self.note(&outcome.1);
        Ok(outcome)
    }

    /// Runs one job in steps.
    pub fn iterate<J: MapReduce>(
        &self,
        job: Job<'_, J>,
        state: &[u8],
        control: impl FnMut(&mut Step<'_, J>) -> Next,
    ) -> Result<Summary, Failure> {
        Ok(self.prepared(job).iterate(state, control)?)
    }

    /// Runs one job and visits its result, for a subcommand that writes it in its own way.
    pub fn run_while<J: MapReduce>(
        &self,
        job: Job<'_, J>,
        mut visit: impl FnMut(<J::Key as Datum>::Ref<'_>, <J::Value as Datum>::Ref<'_>) -> ControlFlow<()>,
    ) -> Result<Summary, Failure> {
        let mut is_first = true;
        let summary = self.prepared(job).run_while(|key, value| {
            if std::mem::take(&mut is_first) {
                self.terminal.clear();
            }
            visit(key, value)
        })?;
        self.note(&summary);
        Ok(summary)
    }

    /// Runs one job whose reducers write the result.
    pub fn write_rows<'t, J: MapReduce>(
        &self,
        job: Job<'_, J>,
        path: &'t Path,
        target: Target<'t>,
        row: &'t dyn Row<J::Key, J::Value>,
    ) -> Result<(Vec<Part>, Summary), Failure> {
        let written = self.prepared(job).write(path, target, row);
        self.terminal.clear();
        let (parts, summary) = written?;
        self.note(&summary);
        Ok((parts, summary))
    }

    /// Runs one job and writes every pair of its result as a row, those and in the order that `ranking` says.
    pub fn write<J: MapReduce>(
        &self,
        job: Job<'_, J>,
        ranking: &Ranking,
        mut output: Output,
    ) -> Result<Summary, Failure>
    where
        for<'r> <J::Key as Datum>::Ref<'r>: Into<Field<'r>>,
        for<'r> <J::Value as Datum>::Ref<'r>: Into<Field<'r>>,
    {
        let mut written = Ok(());
        let summary = self.visit(
            job,
            ranking,
            |_| true,
            |key, value| {
                written = output.row(&[key.into(), value.into()]);
                if written.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            },
        )?;
        output.finish(written)?;
        Ok(summary)
    }

    /// The same, where `field` makes the second field of each row: `None` is no row. It fails where no field can hold the value.
    pub fn write_fields<J: MapReduce>(
        &self,
        job: Job<'_, J>,
        ranking: &Ranking,
        is_row: impl Fn(<J::Value as Datum>::Ref<'_>) -> bool,
        mut output: Output,
        mut field: impl FnMut(
            <J::Key as Datum>::Ref<'_>,
            <J::Value as Datum>::Ref<'_>,
        ) -> Result<Option<Field<'static>>, Failure>,
    ) -> Result<Summary, Failure>
    where
        for<'r> <J::Key as Datum>::Ref<'r>: Into<Field<'r>>,
    {
        let (mut written, mut failed) = (Ok(()), None);
        let summary = self.visit(job, ranking, is_row, |key, value| {
            match field(key, value) {
                Ok(Some(field)) => written = output.row(&[key.into(), field]),
                Ok(None) => {}
                Err(failure) => failed = Some(failure),
            }
            if written.is_ok() && failed.is_none() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        if let Some(failure) = failed {
            return Err(failure);
        }
        output.finish(written)?;
        Ok(summary)
    }

    /// Runs one job and visits the pairs of its result, those and in the order that `ranking` says. One pair may be no row, if it
    /// is greater than all others: `is_row` tells. It is visited whatever the ranking is.
    pub fn visit<J: MapReduce>(
        &self,
        job: Job<'_, J>,
        ranking: &Ranking,
        is_row: impl Fn(<J::Value as Datum>::Ref<'_>) -> bool,
        mut visit: impl FnMut(<J::Key as Datum>::Ref<'_>, <J::Value as Datum>::Ref<'_>) -> ControlFlow<()>,
    ) -> Result<Summary, Failure> {
        let job = ranking.apply(self.prepared(job));
        let mut rows_left = ranking.rows_max();
        let mut is_wanted = |value: <J::Value as Datum>::Ref<'_>| {
            let row = is_row(value);
            let wanted = !row || rows_left > 0;
            rows_left -= usize::from(row && wanted);
            wanted
        };
        let summary = if ranking.is_top_by_key() {
            let (greatest, summary) = job.run()?;
            let mut pairs: Vec<_> = greatest.iter().filter(|(_, value)| is_wanted(*value)).collect();
            pairs.sort_by(|a, b| J::Key::compare(a.0, b.0));
            self.terminal.clear();
            // Whoever breaks has a reason of his own.
            let _ = pairs.into_iter().try_for_each(|(key, value)| visit(key, value));
            summary
        } else {
            job.run_while(|key, value| {
                self.terminal.clear();
                if is_wanted(value) { visit(key, value) } else { ControlFlow::Continue(()) }
            })?
        };
        self.note(&summary);
        Ok(summary)
    }

    /// Writes the statistics of the job that `summary` is of, and sums it up: what map emits, and what keys are.
    pub fn finish(self, summary: &Summary, pairs: &str, keys: &str) -> Result<(), Failure> {
        if let Some(stats) = self.stats {
            let bad_files = self.bad_files.lock().unwrap_or_else(PoisonError::into_inner).len();
            stats.finish(summary, bad_files as u64)?;
        }
        self.terminal.sum_up(summary, self.besides.get(), pairs, keys);
        let files = self.bad_files.lock().unwrap_or_else(PoisonError::into_inner);
        self.bad_records.map_or(Ok(()), |bad| bad.finish(&files, self.options.quiet))?;
        // The result is where it belongs.
        let Some(dir) = &self.options.checkpoint else { return Ok(()) };
        let removed = (1..=self.jobs.get()).try_for_each(|job| gristmill::remove_checkpoint(&folder(dir, job)));
        removed.map_err(|source| Failure::Job(Error::Checkpoint { path: dir.clone(), source }))?;
        // Unless something else is in it.
        let _ = std::fs::remove_dir(dir);
        Ok(())
    }

    /// Remembers what a job has set aside.
    fn note(&self, summary: &Summary) {
        if let Some(bad) = &self.bad_records {
            bad.take(&summary.bad_records);
        }
    }

    fn prepared<'j, J: MapReduce>(&'j self, job: Job<'j, J>) -> Job<'j, J> {
        let mut job = self.options.apply(job).on_news(|news| self.terminal.tell(news));
        if self.inputs.is_some() {
            job = job.record_bytes_max(self.record_bytes_max);
            job = self.workers_max.into_iter().fold(job, Job::workers);
        }
        if self.options.explain && !self.explained.replace(true) {
            job = job.on_plan(explain);
        }
        if let Some(dir) = &self.options.checkpoint {
            self.jobs.set(self.jobs.get() + 1);
            // Whatever a map function depends on was said there.
            let command: Vec<_> = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
            job = job.checkpoint(folder(dir, self.jobs.get()), &command.join(" "), self.options.checkpoint_every);
        }
        if self.terminal.is_watched() { job.on_progress(|progress| self.terminal.show(progress)) } else { job }
    }
}

/// Where the checkpoint of one of several jobs lies.
fn folder(dir: &Path, job: u32) -> PathBuf {
    dir.join(format!("job-{job}"))
}

/// Prints a plan: a line for each choice, with its reason.
fn explain(choices: &[Choice]) {
    for Choice { what, chosen, why } in choices {
        line(format_args!("plan: {what}: {chosen} ({why})"));
    }
}

/// The error of a number that no field can hold; `of` says what it is of.
pub fn too_large(of: impl Display, why: Overflow) -> Failure {
    gristmill_apps::Error::Question(format!("{of}: {why}")).into()
}
