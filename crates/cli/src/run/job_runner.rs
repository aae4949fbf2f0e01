//! Runs the jobs of a subcommand, with the shared options, progress and statistics.

use std::cell;
use std::ffi::OsString;
use std::fmt::Display;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use gristmill::{
    BadFile, Choice, Datum, Error, Input, InputNews, Job, MapReduce, Next, Outcome, Part, Row, Step, Summary, Target,
    Trial,
};
use gristmill_apps::Overflow;

use crate::options::inputs::Inputs;
use crate::options::job_options::JobOptions;
use crate::options::streams::check_once;
use crate::options::text::Text;
use crate::output::column::Field;
use crate::output::destination::{Destination, Output, Ranking};
use crate::output::outputs::Outputs;
use crate::report::bad_records::{self, BadRecords};
use crate::report::stats::Stats;
use crate::report::timeline::Timeline;
use crate::run::checkpoint_folder::CheckpointFolder;
use crate::run::common_options::CommonOptions;
use crate::run::learned::{self, in_home};
use crate::terminal::failure::Failure;
use crate::terminal::messages::{line, printable, tell};
use crate::terminal::progress::{Besides, Terminal, Unit};

/// A runner of one subcommand's jobs, which also reports on the last one.
pub struct JobRunner<'o> {
    /// From here on, the deadline counts.
    began: Instant,
    options: &'o JobOptions,
    /// The input options, if the subcommand reads files.
    inputs: Option<&'o Inputs>,
    record_bytes_max: usize,
    /// The number of workers for which there is memory, given the longest record.
    workers_max: Option<usize>,
    outputs: Outputs,
    terminal: Terminal,
    stats: Option<Stats>,
    timeline: Option<Timeline>,
    /// The list of bad records, if any may be set aside.
    bad_records: Option<BadRecords>,
    /// The files that were set aside.
    bad_files: Arc<Mutex<Vec<BadFile>>>,
    /// The number of files of the input.
    files: cell::Cell<u64>,
    /// Earlier runs of this application.
    trials: cell::RefCell<Vec<Trial>>,
    /// The checkpoint folder, from the first job on.
    checkpoint: cell::OnceCell<CheckpointFolder>,
    /// The number of jobs so far.
    jobs: cell::Cell<u32>,
    /// True once a plan has been explained: later jobs have a similar one.
    explained: cell::Cell<bool>,
    besides: cell::Cell<Besides>,
}

impl<'o> JobRunner<'o> {
    /// Opens the statistics file, so that a failure to write shows before the first job begins.
    pub fn new(options: &'o CommonOptions) -> Result<JobRunner<'o>, Failure> {
        JobRunner::with_outputs(options, Outputs::begin(options.destination.path()))
    }

    /// Makes a runner with additional outputs of the subcommand.
    pub fn with_outputs(options: &'o CommonOptions, mut outputs: Outputs) -> Result<JobRunner<'o>, Failure> {
        let sets_aside = options.job.engine().skip_bad_records() > 0 || options.inputs.skip_bad_files > 0;
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
            (None, None) => Some(bad_records::unused_name()),
        };
        if let Some(path) = &bad_records {
            outputs.file("--bad-records", path);
        }
        let runs = JobRunner::begin(&options.job, outputs, Some(&options.inputs))?;
        let is_default = options.job.bad_records.is_none() && options.destination.path().is_none();
        let bad_records = bad_records.map(|path| BadRecords::open(&path, is_default)).transpose()?;
        Ok(JobRunner { bad_records, ..runs })
    }

    /// Makes a runner for a subcommand that reads matrices, which are whole before the job begins.
    pub fn of_matrices(options: &'o CommonOptions) -> Result<JobRunner<'o>, Failure> {
        let why = "a matrix is read as a whole, and not by records";
        refuse("--skip-bad-records", options.job.engine().skip_bad_records() > 0, why)?;
        refuse("--record-bytes-max", options.inputs.limits_records(), why)?;
        JobRunner::new(options)
    }

    /// Makes a runner for a subcommand that reads nothing.
    pub fn without_input(options: &'o JobOptions, destination: &Destination) -> Result<JobRunner<'o>, Failure> {
        let why = "this subcommand reads no records";
        refuse("--skip-bad-records", options.engine().skip_bad_records() > 0, why)?;
        refuse("--bad-records", options.bad_records.is_some(), why)?;
        JobRunner::begin(options, Outputs::begin(destination.path()), None)
    }

    fn begin(
        options: &'o JobOptions,
        mut outputs: Outputs,
        inputs: Option<&'o Inputs>,
    ) -> Result<JobRunner<'o>, Failure> {
        if let Some(path) = &options.stats {
            outputs.file("--stats", path);
        }
        if let Some(path) = &options.timeline {
            outputs.file("--timeline", path);
        }
        if let Some(path) = &options.checkpoint {
            outputs.folder("--checkpoint", path);
        }
        outputs.check()?;
        outputs.check_named(inputs.into_iter().flat_map(Inputs::named))?;
        check_once(inputs.into_iter().flat_map(Inputs::with_options))?;
        let engine = options.engine();
        let (record_bytes_max, workers) = match inputs {
            Some(inputs) => inputs.record_bytes_max(engine.memory(), engine.workers())?,
            None => (usize::MAX, None),
        };
        let stats = options.stats.as_deref().map(Stats::open).transpose()?;
        let timeline = options.timeline.as_deref().map(Timeline::open).transpose()?;
        Ok(JobRunner {
            began: Instant::now(),
            options,
            inputs,
            record_bytes_max,
            workers_max: workers.filter(|_| engine.workers().is_none()),
            outputs,
            terminal: Terminal::new(options.quiet),
            stats,
            timeline,
            bad_records: None,
            bad_files: Arc::default(),
            files: cell::Cell::new(0),
            trials: cell::RefCell::default(),
            checkpoint: cell::OnceCell::new(),
            jobs: cell::Cell::new(0),
            explained: cell::Cell::new(false),
            besides: cell::Cell::default(),
        })
    }

    /// Excludes pairs and keys that do not belong to the answer from the summary.
    pub fn leave_out(&self, besides: Besides) {
        self.besides.set(besides);
    }

    /// Shows the progress of the jobs in another unit than bytes of the input.
    pub fn counted_in(self, unit: Unit) -> JobRunner<'o> {
        self.terminal.count_in(unit);
        self
    }

    /// Returns the input of the job, after checking that no output is part of it. Prints what a user should know
    /// about it.
    pub fn input(&self) -> Result<Input, Failure> {
        self.opened(|input| input)
    }

    /// Returns the input of a job that reads text.
    pub fn text(&self, text: &Text) -> Result<Input, Failure> {
        self.opened(|input| text.of(input))
    }

    fn opened(&self, read_as: impl FnOnce(Input) -> Input) -> Result<Input, Failure> {
        let inputs = self.inputs.expect("a subcommand that reads files");
        let input = read_as(inputs.input(self.options.engine().memory())?);
        let input = match self.options.engine().spill_dirs().next() {
            Some(dir) => input.spool_dir(dir),
            None => input,
        };
        let input = self.in_time(self.options.engine().keep_free().into_iter().fold(input, Input::keep_free));
        let (found, tell) = (self.bad_files.clone(), self.terminal.of_input());
        let mut input = input.on_news(move |news| match news {
            InputNews::SetAside(file) => found.lock().unwrap_or_else(PoisonError::into_inner).push((*file).clone()),
            news => tell(news),
        });
        let sources = input.look()?;
        self.outputs.check_sources(sources)?;
        self.files.set(sources.len() as u64);
        self.remember(sources.iter().map(|source| source.bytes).sum());
        Ok(input)
    }

    /// Looks up what is known of this command with an input of this size.
    fn remember(&self, input_bytes: u64) {
        let Some(path) = in_home().filter(|_| !self.options.no_history) else { return };
        let words: Vec<OsString> = std::env::args_os().skip(1).collect();
        match learned::trials(&path, &words, self.files.get(), input_bytes) {
            Ok(trials) => *self.trials.borrow_mut() = trials,
            Err(problem) if !self.options.quiet => {
                line(format_args!("the history {} is not used: {problem}", printable(&path.display().to_string())));
            }
            Err(_) => {}
        }
    }

    /// Opens a file that the subcommand reads in addition to its input, within the memory of the job; `option` names it.
    pub fn reads(&self, option: &'static str, path: &Path) -> Result<Input, Failure> {
        self.outputs.check_named([path].into_iter())?;
        check_once([(option, path)].into_iter().chain(self.inputs.into_iter().flat_map(Inputs::with_options)))?;
        Ok(self.in_time(self.options.engine().memory().into_iter().fold(Input::paths([path]), Input::memory)))
    }

    /// Lets the deadline, if there is one, also end the search for an input.
    fn in_time(&self, input: Input) -> Input {
        self.options.engine().deadline().into_iter().fold(input, |input, limit| input.deadline(limit, self.began))
    }

    /// Runs one job and returns its whole result, for a subcommand that computes an answer from it.
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
        let summary = self.prepared(job).iterate(state, control)?;
        self.draw(&summary);
        Ok(summary)
    }

    /// Runs one job and visits its result, for a subcommand with its own output.
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

    /// Runs one job and writes the pairs of its result as rows, selected and ordered by `ranking`.
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

    /// Does the same with a function for the second field of each row: `None` means no row, an error that no field
    /// can hold the value.
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

    /// Runs one job and visits the pairs of its result, selected and ordered by `ranking`. One pair may not be a row
    /// if it is greater than all others: `is_row` tells. That pair is visited whatever the ranking.
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
            // A visitor that breaks has recorded its reason.
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

    /// Writes the statistics of the job of `summary` and the timeline of all jobs, and prints a summary. `pairs` and `keys` name what the job
    /// counts.
    pub fn finish(self, summary: &Summary, pairs: &str, keys: &str) -> Result<(), Failure> {
        if let Some(stats) = self.stats {
            let bad_files = self.bad_files.lock().unwrap_or_else(PoisonError::into_inner).len();
            stats.finish(summary, self.files.get(), bad_files as u64)?;
        }
        self.timeline.map_or(Ok(()), Timeline::finish)?;
        self.terminal.sum_up(summary, self.besides.get(), pairs, keys);
        let files = self.bad_files.lock().unwrap_or_else(PoisonError::into_inner);
        self.bad_records.map_or(Ok(()), |bad| bad.finish(&files, self.options.quiet))?;
        // The result is complete.
        let Some(checkpoint) = self.checkpoint.get() else { return Ok(()) };
        (1..=self.jobs.get()).map(|job| checkpoint.of_job(job)).try_for_each(|path| {
            gristmill::remove_checkpoint(&path).map_err(|source| Failure::Job(Error::Checkpoint { path, source }))
        })
    }

    /// Returns the statistics file, for work that was done without the engine.
    pub fn into_stats(self) -> Option<Stats> {
        self.stats
    }

    /// Records what a job has set aside.
    fn note(&self, summary: &Summary) {
        if let Some(bad) = &self.bad_records {
            bad.take(&summary.bad_records);
        }
        self.draw(summary);
    }

    /// Keeps the timeline of a job.
    fn draw(&self, summary: &Summary) {
        self.timeline.iter().for_each(|timeline| timeline.note(summary));
    }

    fn prepared<'j, J: MapReduce>(&'j self, job: Job<'j, J>) -> Job<'j, J> {
        let terminal = &self.terminal;
        let mut job = job.options(self.options.engine()).on_news(|news| terminal.tell(news));
        job = job.timeline(self.timeline.is_some());
        job = job.history(self.trials.borrow().iter().copied());
        if self.inputs.is_some() {
            job = job.record_bytes_max(self.record_bytes_max);
            job = self.workers_max.into_iter().fold(job, Job::workers);
        }
        if !self.explained.replace(true) {
            let (explains, quiet) = (self.options.explain, self.options.quiet);
            job = job.on_plan(move |choices| tell_plan(choices, explains, quiet));
        }
        if let Some(dir) = &self.options.checkpoint {
            self.jobs.set(self.jobs.get() + 1);
            // The command determines everything that a map function depends on.
            let command: Vec<_> = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
            let folder = self.checkpoint.get_or_init(|| CheckpointFolder::begin(dir)).of_job(self.jobs.get());
            job = job.checkpoint(folder, &command.join(" "), self.options.checkpoint_every);
        }
        if terminal.is_watched() { job.on_progress(|progress| terminal.show(progress)) } else { job }
    }
}

/// Prints the options that a plan does not follow or, if it `explains`, a line for each choice, with its reason.
fn tell_plan(choices: &[Choice], explains: bool, quiet: bool) {
    for Choice { what, chosen, why, is_ignored } in choices {
        match is_ignored {
            _ if explains => line(format_args!("plan: {what}: {chosen} ({why})")),
            true if !quiet => tell(format_args!("--{what} is ignored: {why}")),
            _ => {}
        }
    }
}

/// Refuses an option that this subcommand cannot follow, if it is given.
pub fn refuse(option: &str, is_given: bool, why: &str) -> Result<(), Failure> {
    if is_given { Err(Failure::Usage(format!("{option} has no meaning here: {why}"))) } else { Ok(()) }
}

/// Returns the error for a number that no field can hold; `of` names it.
pub fn too_large(of: impl Display, why: Overflow) -> Failure {
    gristmill_apps::Error::Question(format!("{of}: {why}")).into()
}
