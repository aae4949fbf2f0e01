//! The entry points of a job (run, run_into, write, iterate), and how its rounds follow each other.
//!
//! The coordinator touches no data until results arrive. It sleeps until a worker announces something, a worker dies,
//! or a tick passes. Then it looks at the shared words and moves the job on:
//!
//! ```text
//!  round k open --all tasks committed--> mapped --all reducers drained--> taint? --no--> finish --> over
//!       ^                                                                  | yes
//!       +------------------------- round k + 1: map again, for tainted partitions only ----+
//! ```
//!
//! The tasks of a dead worker's open epoch return to the queue. If it was a reducer, its partitions are tainted and
//! assigned to the worker that replaces it (`coordinator/deaths.rs`).
//!
//! A job in steps repeats this for each step (`coordinator/steps.rs`).

use std::ops::ControlFlow;
use std::sync::Arc;

use gristmill_os::clock::monotonic_ns;
use gristmill_os::file_size::LimitIsAnError;

use crate::control::heartbeat::Heartbeat;
use crate::coordinator::attempts::Attempts;
use crate::coordinator::prepare::Prepared;
use crate::coordinator::request::{Request, Terms};
use crate::coordinator::start::run_worker;
use crate::coordinator::state::{AcrossAttempts, Coordinator};
use crate::data::datum::{Datum, Key};
use crate::error::{Error, Result};
use crate::input::paths::Opened;
use crate::interrupt::Interrupt;
use crate::output::outcome::Summary;
use crate::output::parts::{OpenTarget, Part, WriteRequest};
use crate::output::sink::{Attempt, Sink};
use crate::output::timeline::Marks;
use crate::plan::mode::Mode;
use crate::program::ending::Program;
use crate::steps::step::{Next, Step};
use crate::worker::work::{Functions, Work};

/// Runs a job and visits its result. `open` finds the input; it is called when the settings have been checked.
pub(crate) fn run<J: Program>(
    job: Request<'_, J>,
    open: impl FnOnce(&Interrupt) -> Result<Arc<Opened>>,
    mut visit: impl FnMut(<J::OutKey as Datum>::Ref<'_>, <J::OutValue as Datum>::Ref<'_>) -> ControlFlow<()>,
) -> Result<Summary> {
    supervise(job, open, Way::Visited, &mut |coordinator, work| coordinator.conduct(work, &mut visit))
}

/// Runs a job whose reducers write their parts of the result to `sink`.
pub(crate) fn run_into<J: Program>(
    job: Request<'_, J>,
    open: impl FnOnce(&Interrupt) -> Result<Arc<Opened>>,
    sink: &dyn Sink<J::OutKey, J::OutValue>,
) -> Result<Summary> {
    let mut parts = Vec::new();
    let ran = supervise(job, open, Way::Sink(sink), &mut |coordinator, work| {
        let (closed, counted) = coordinator.conduct_into_sink(work)?;
        parts = closed;
        Ok(counted)
    });
    committed(sink, &parts, ran)
}

/// Begins a result of this many parts.
pub(crate) fn begun<K: Key, V: Datum>(sink: &dyn Sink<K, V>, parts: usize) -> Result<()> {
    sink.begin(parts).map_err(|error| Error::program("the sink, before the job began", &error))
}

/// Commits these parts if the job has gone well, and removes them if not.
pub(crate) fn committed<K: Key, V: Datum>(
    sink: &dyn Sink<K, V>,
    parts: &[Attempt],
    ran: Result<Summary>,
) -> Result<Summary> {
    let failed = |error| Error::program("the sink, when it committed the result", &error);
    let outcome = ran.and_then(|summary| sink.commit(parts).map(|()| summary).map_err(failed));
    outcome.inspect_err(|_| sink.abort())
}

/// The way in which the result leaves the workers.
enum Way<'t, 's, J: Program> {
    /// The coordinator visits its pairs.
    Visited,
    /// Reducers write it to places in files.
    Written(WriteRequest<'t, J>),
    /// Reducers write parts of it.
    Sink(&'t dyn Sink<J::OutKey, J::OutValue>),
    /// It stays in the region from step to step. The first step sees this state.
    Steps(&'s [u8]),
}

/// Runs a job whose reducers write the result.
pub(crate) fn write<J: Program>(
    job: Request<'_, J>,
    open: impl FnOnce(&Interrupt) -> Result<Arc<Opened>>,
    writing: WriteRequest<'_, J>,
) -> Result<(Vec<Part>, Summary)> {
    let mut parts = Vec::new();
    let summary = supervise(job, open, Way::Written(writing), &mut |coordinator, work| {
        let (written, counted) = coordinator.conduct_writing(work)?;
        parts = written;
        Ok(counted)
    })?;
    Ok((parts, summary))
}

/// Runs a job in steps. The first step sees `state`.
pub(crate) fn iterate<J: Program>(
    job: Request<'_, J>,
    open: impl FnOnce(&Interrupt) -> Result<Arc<Opened>>,
    state: &[u8],
    mut control: impl FnMut(&mut Step<'_, J::User>) -> Next,
) -> Result<Summary> {
    supervise(job, open, Way::Steps(state), &mut |coordinator, _| coordinator.conduct_steps(&mut control))
}

/// Runs a job from the first worker to the last pair of its result. Returns the number of pairs, and the time at which
/// all workers had been started.
type Conduct<'c, J> = dyn FnMut(&mut Coordinator<'_, '_, '_, '_>, &Work<'_, J>) -> Result<(u64, u64)> + 'c;

/// Prepares a job, and lets `conduct` run it.
fn supervise<J: Program>(
    job: Request<'_, J>,
    open: impl FnOnce(&Interrupt) -> Result<Arc<Opened>>,
    way: Way<'_, '_, J>,
    conduct: &mut Conduct<'_, J>,
) -> Result<Summary> {
    let start_ns = monotonic_ns();
    let _guard = LimitIsAnError::new();
    let Request { program, reduce, terms } = job;
    let Terms { mut settings, progress, on_news, outputs, accumulators, on_plan, cancel, search } = terms;
    settings.check()?;
    let visits = matches!(way, Way::Visited);
    let (state, writing, sink) = match way {
        Way::Visited => (None, None, None),
        Way::Written(writing) => (None, Some(writing), None),
        Way::Sink(sink) => (None, None, Some(sink)),
        Way::Steps(state) => (Some(state), None, None),
    };
    let interrupt = Interrupt::new(cancel, settings.deadline).or_earlier(&search);
    let described = settings.clone();
    let mode = Mode::new(&described, state, !outputs.is_empty(), writing.is_some())?;
    if !accumulators.is_empty() && matches!(mode, Mode::Stages(_)) {
        return Err(Error::Setting(
            "accumulators are not saved, so a job that has some cannot be continued: leave out Job::checkpoint".into(),
        ));
    }
    let (mut prepared, ranges) =
        Prepared::new::<J>(program, || open(&interrupt), &mut settings, mode, reduce.is_some(), visits, on_plan)?;
    prepared.room.accumulators = accumulators.len();
    let row = writing.as_ref().map(|writing| writing.row);
    let target = match (writing, &ranges) {
        (Some(WriteRequest { path, target, .. }), Some(ranges)) => {
            let opened = OpenTarget::open(path, target, ranges.len());
            Some(opened.map_err(|source| Error::Output { path: path.to_owned(), source })?)
        }
        _ => None,
    };
    if let Some(sink) = sink {
        begun(sink, prepared.plan.reduce_workers)?;
    }
    let checkpoint = prepared.checkpoint.take();
    let folder = checkpoint.as_ref().map(|(log, _)| log.folder.clone());
    let resumed_tasks = checkpoint.as_ref().map_or(0, |(_, facts)| facts.tasks);
    let kept = AcrossAttempts {
        progress,
        on_news,
        heartbeat: Heartbeat::from_environment(),
        interrupt,
        deaths: Vec::new(),
        marks: settings.timeline.then(Marks::default),
        checkpoint,
        sampler: prepared.sampler.take(),
        delivered: false,
        anew: 0,
    };
    let functions = Functions { program, reduce: reduce.as_deref(), ranges: ranges.as_ref(), row, sink };
    let attempts = Attempts {
        prepared: &prepared,
        settings: &settings,
        mode,
        target: target.as_ref(),
        outputs: &outputs,
        accumulators: &accumulators,
        checkpoint: folder.as_deref(),
        resumed_tasks,
        run_worker: &|setup, role| run_worker(&Work { setup, functions: &functions }, role),
        start_ns,
    };
    attempts.run(kept, &mut |coordinator| {
        let setup = coordinator.setup;
        conduct(coordinator, &Work { setup, functions: &functions })
    })
}
