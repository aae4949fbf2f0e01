//! Runs the jobs of a subcommand, with the shared options, progress and statistics.

use std::cell::{Cell, OnceCell, RefCell};
use std::fmt::Display;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::PoisonError;

use gristmill::files::InputNews;
use gristmill::options::Choice;
use gristmill::sinks::{Part, Row, Target};
use gristmill::{Datum, Error, Input, Job, MapReduce, Next, Outcome, Step, Summary};
use gristmill_apps::Overflow;

use crate::options::inputs::Inputs;
use crate::options::job_options::JobOptions;
use crate::options::text::Text;
use crate::output::column::Field;
use crate::output::destination::{Destination, Output, Ranking};
use crate::output::outputs::Outputs;
use crate::report::bad_records::{self, BadRecords};
use crate::report::stats::Stats;
use crate::run::checkpoint_folder::CheckpointFolder;
use crate::run::common_options::CommonOptions;
use crate::run::reports::Reports;
use crate::run::request::{Found, Request};
use crate::terminal::failure::Failure;
use crate::terminal::messages::{line, tell};
use crate::terminal::progress::{Besides, Terminal, Unit};

/// The greatest number of fields in the rows of pairs.
const FIELDS_MAX: usize = 6;

/// A runner of one subcommand's jobs, which also reports on the last one.
pub struct JobRunner<'o> {
    request: Request<'o>,
    reports: Reports,
    terminal: Terminal,
    /// The input, once it is found.
    found: RefCell<Found>,
    /// The checkpoint folder, from the first job on.
    checkpoint: OnceCell<CheckpointFolder>,
    /// The number of jobs so far.
    jobs: Cell<u32>,
}

impl<'o> JobRunner<'o> {
    /// Opens the statistics file, so that a failure to write shows before the first job begins.
    pub fn new(options: &'o CommonOptions) -> Result<JobRunner<'o>, Failure> {
        JobRunner::with_outputs(options, Outputs::begin(options.destination.path()))
    }

    /// Makes a runner with additional outputs of the subcommand.
    pub fn with_outputs(options: &'o CommonOptions, mut outputs: Outputs) -> Result<JobRunner<'o>, Failure> {
        let (asked, output) = (options.job.bad_records.as_deref(), options.destination.path());
        let sets_aside = options.job.engine().skip_bad_records() > 0 || options.inputs.skip_bad_files > 0;
        if asked.is_some() && !sets_aside {
            return Err(Failure::Usage(
                "--bad-records lists what is set aside: add --skip-bad-records or --skip-bad-files".into(),
            ));
        }
        let bad_records = sets_aside.then(|| bad_records::place(asked, output));
        if let Some(path) = &bad_records {
            outputs.file("--bad-records", path);
        }
        let mut runs = JobRunner::begin(&options.job, outputs, Some(&options.inputs))?;
        let is_default = asked.is_none() && output.is_none();
        runs.reports.bad_records = bad_records.map(|path| BadRecords::open(&path, is_default)).transpose()?;
        Ok(runs)
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

    fn begin(options: &'o JobOptions, outputs: Outputs, inputs: Option<&'o Inputs>) -> Result<JobRunner<'o>, Failure> {
        Ok(JobRunner {
            request: Request::new(options, outputs, inputs)?,
            reports: Reports::open(options)?,
            terminal: Terminal::new(options.quiet),
            found: RefCell::default(),
            checkpoint: OnceCell::new(),
            jobs: Cell::new(0),
        })
    }

    /// Excludes pairs and keys that do not belong to the answer from the summary.
    pub fn leave_out(&self, besides: Besides) {
        self.reports.besides.set(besides);
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
        let (bad_files, tell) = (self.reports.bad_files.clone(), self.terminal.of_input());
        let mut input = self.request.input(read_as)?.on_news(move |news| match news {
            InputNews::SetAside(file) => bad_files.lock().unwrap_or_else(PoisonError::into_inner).push((*file).clone()),
            news => tell(news),
        });
        *self.found.borrow_mut() = self.request.find(&mut input)?;
        Ok(input)
    }

    /// Opens a file that the subcommand reads in addition to its input, within the memory of the job; `option` names
    /// it.
    pub fn reads(&self, option: &'static str, path: &Path) -> Result<Input, Failure> {
        self.request.reads(option, path)
    }

    /// Runs one job and returns its whole result, for a subcommand that computes an answer from it.
    pub fn run<J: MapReduce>(&self, job: Job<'_, J>) -> Result<Outcome<J>, Failure> {
        let outcome = self.prepared(job).run()?;
        self.reports.note(&outcome.1);
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
        self.reports.draw(&summary);
        Ok(summary)
    }

    /// Runs one job and visits its result, for a subcommand with its own output.
    pub fn run_while<J: MapReduce>(
        &self,
        job: Job<'_, J>,
        mut visit: impl FnMut(<J::Key as Datum>::Ref<'_>, <J::Value as Datum>::Ref<'_>) -> ControlFlow<()>,
    ) -> Result<Summary, Failure> {
        let mut is_first = true;
        let summary = self.prepared(job).run_each(|key, value| {
            if std::mem::take(&mut is_first) {
                self.terminal.clear();
            }
            visit(key, value)
        })?;
        self.reports.note(&summary);
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
        self.reports.note(&summary);
        Ok((parts, summary))
    }

    /// Runs one job and writes the pairs of its result as rows, selected and ordered by `ranking`.
    pub fn write<J: MapReduce<Value = u64>>(
        &self,
        job: Job<'_, J>,
        ranking: &Ranking,
        output: Output,
    ) -> Result<Summary, Failure>
    where
        for<'r> <J::Key as Datum>::Ref<'r>: Into<Field<'r>>,
    {
        self.write_fields(job, ranking, |_| true, output, |_, count| Ok(Some([Field::Integer(count)])))
    }

    /// Does the same with a function for the fields behind the key of each row: `None` means no row, an error that no
    /// field can hold the value.
    pub fn write_fields<J: MapReduce, const FIELDS: usize>(
        &self,
        job: Job<'_, J>,
        ranking: &Ranking,
        is_row: impl Fn(<J::Value as Datum>::Ref<'_>) -> bool,
        mut output: Output,
        mut fields: impl FnMut(
            <J::Key as Datum>::Ref<'_>,
            <J::Value as Datum>::Ref<'_>,
        ) -> Result<Option<[Field<'static>; FIELDS]>, Failure>,
    ) -> Result<Summary, Failure>
    where
        for<'r> <J::Key as Datum>::Ref<'r>: Into<Field<'r>>,
    {
        let (mut written, mut failed) = (Ok(()), None);
        let summary = self.visit(job, ranking, is_row, |key, value| {
            match fields(key, value) {
                Ok(Some(fields)) => {
                    let mut row = [Field::Nothing; FIELDS_MAX];
                    row[0] = key.into();
                    row[1..=FIELDS].copy_from_slice(&fields);
                    written = output.row(&row[..=FIELDS]);
                }
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
    fn visit<J: MapReduce>(
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
            job.run_each(|key, value| {
                self.terminal.clear();
                if is_wanted(value) { visit(key, value) } else { ControlFlow::Continue(()) }
            })?
        };
        self.reports.note(&summary);
        Ok(summary)
    }

    /// Writes the statistics of the job of `summary` and the timeline of all jobs, and prints a summary. `pairs` and
    /// `keys` name what the job counts.
    pub fn finish(self, summary: &Summary, pairs: &str, keys: &str) -> Result<(), Failure> {
        self.reports.finish(summary, self.found.into_inner().files, &self.terminal, [pairs, keys])?;
        // The result is complete.
        let Some(checkpoint) = self.checkpoint.get() else { return Ok(()) };
        (1..=self.jobs.get()).map(|job| checkpoint.of_job(job)).try_for_each(|path| {
            gristmill::remove_checkpoint(&path).map_err(|source| Failure::Job(Error::Checkpoint { path, source }))
        })
    }

    /// Returns the statistics file, for work that was done without the engine.
    pub fn into_stats(self) -> Option<Stats> {
        self.reports.stats
    }

    fn prepared<'j, J: MapReduce>(&'j self, job: Job<'j, J>) -> Job<'j, J> {
        let (terminal, options) = (&self.terminal, self.request.options);
        let number = self.jobs.get() + 1;
        self.jobs.set(number);
        let mut job = self.request.apply(job).on_news(|news| terminal.tell(news));
        job = job.timeline(options.timeline.is_some());
        job = job.history(self.found.borrow().trials.iter().copied());
        // The plans of later jobs are similar.
        if number == 1 {
            job = job.on_plan(|choices| tell_plan(choices, options.explain, options.quiet));
        }
        if let Some(dir) = &options.checkpoint {
            // The command determines everything that a map function depends on.
            let command: Vec<_> = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
            let folder = self.checkpoint.get_or_init(|| CheckpointFolder::begin(dir)).of_job(number);
            job = job.checkpoint(folder, &command.join(" "), options.checkpoint_every);
        }
        if terminal.is_watched() { job.on_progress(|progress| terminal.show(progress)) } else { job }
    }
}

/// Prints the options that a plan does not follow or, if it `explains`, a line for each choice, with its reason.
fn tell_plan(choices: &[Choice], explains: bool, quiet: bool) {
    for Choice { what, chosen, why, is_ignored, .. } in choices {
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
