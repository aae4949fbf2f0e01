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

use std::cell::Cell;
use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;
use std::sync::Arc;

use gristmill_os::clock::monotonic_ns;
use gristmill_os::file_size::LimitIsAnError;
use gristmill_os::wake::Watch;

use crate::control::heartbeat::Heartbeat;
use crate::control::words::Shared;
use crate::coordinator::clock::Clock;
use crate::coordinator::prepare::Prepared;
use crate::coordinator::request::{Request, Terms};
use crate::coordinator::state::{AcrossAttempts, Coordinator, Over};
use crate::data::datum::{Datum, Key};
use crate::error::{Asked, Error, Result, gave};
use crate::input::paths::Opened;
use crate::interrupt::Interrupt;
use crate::output::outcome::{Summary, Worker};
use crate::output::parts::{OpenTarget, Part, WriteRequest};
use crate::output::sink::{Attempt, Sink};
use crate::output::timeline::{Event, Marks};
use crate::plan::mode::Mode;
use crate::program::ending::Program;
use crate::shared_output::array::Scopes;
use crate::steps::step::{Next, Step};
use crate::worker::work::Work;

/// The number of times that a job starts over because a task emitted other pairs the second time.
const ANEW_MAX: u32 = 3;

/// Runs a job and visits its result. `open` finds the input; it is called when the settings have been checked.
pub(crate) fn run<J: Program>(
    job: Request<'_, J>,
    open: impl FnOnce(&Interrupt) -> Result<Arc<Opened>>,
    mut visit: impl FnMut(<J::OutKey as Datum>::Ref<'_>, <J::OutValue as Datum>::Ref<'_>) -> ControlFlow<()>,
) -> Result<Summary> {
    supervise(job, open, Way::Visited, |coordinator| coordinator.conduct(&mut visit))
}

/// Runs a job whose reducers write their parts of the result to `sink`.
pub(crate) fn run_into<J: Program>(
    job: Request<'_, J>,
    open: impl FnOnce(&Interrupt) -> Result<Arc<Opened>>,
    sink: &dyn Sink<J::OutKey, J::OutValue>,
) -> Result<Summary> {
    let mut parts = Vec::new();
    let ran = supervise(job, open, Way::Sink(sink), |coordinator| {
        let (closed, counted) = coordinator.conduct_into_sink()?;
        parts = closed;
        Ok(counted)
    });
    committed(sink, &parts, ran)
}

/// Begins a result of this many parts.
pub(crate) fn begun<K: Key, V: Datum>(sink: &dyn Sink<K, V>, parts: usize) -> Result<()> {
    sink.begin(parts).map_err(|error| {
        let what = "the sink, before the job began".into();
        Error::Program { what, why: error.to_string(), code: error.number() }
    })
}

/// Commits these parts if the job has gone well, and removes them if not.
pub(crate) fn committed<K: Key, V: Datum>(
    sink: &dyn Sink<K, V>,
    parts: &[Attempt],
    ran: Result<Summary>,
) -> Result<Summary> {
    let outcome = ran.and_then(|summary| match sink.commit(parts) {
        Ok(()) => Ok(summary),
        Err(error) => {
            let what = "the sink, when it committed the result".into();
            Err(Error::Program { what, why: error.to_string(), code: error.number() })
        }
    });
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
    let summary = supervise(job, open, Way::Written(writing), |coordinator| {
        let (written, counted) = coordinator.conduct_writing()?;
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
    supervise(job, open, Way::Steps(state), |coordinator| coordinator.conduct_steps(&mut control))
}

/// Makes everything that workers share, lets `conduct` run the job, and ends the workers.
///
/// If a map function emits other pairs when it runs again, what was made of the first ones is useless. As long as
/// nobody has seen any of the result, the job starts over with new workers, after the last stage of its checkpoint.
fn supervise<J: Program>(
    job: Request<'_, J>,
    open: impl FnOnce(&Interrupt) -> Result<Arc<Opened>>,
    way: Way<'_, '_, J>,
    mut conduct: impl FnMut(&mut Coordinator<'_, '_, '_, '_, J>) -> Result<(u64, u64)>,
) -> Result<Summary> {
    let start_ns = monotonic_ns();
    let _guard = LimitIsAnError::new();
    let Request { program, reduce, terms } = job;
    let Terms { mut settings, progress, on_news, outputs, accumulators, on_plan, cancel } = terms;
    settings.check()?;
    let visits = matches!(way, Way::Visited);
    let (state, writing, sink) = match way {
        Way::Visited => (None, None, None),
        Way::Written(writing) => (None, Some(writing), None),
        Way::Sink(sink) => (None, None, Some(sink)),
        Way::Steps(state) => (Some(state), None, None),
    };
    let interrupt = Interrupt::new(cancel, settings.deadline);
    let described = settings.clone();
    let mode = Mode::new(&described, state, !outputs.is_empty(), writing.is_some())?;
    if !accumulators.is_empty() && matches!(mode, Mode::Stages(_)) {
        return Err(Error::Setting(
            "accumulators are not saved, so a job that has some cannot be continued: leave out Job::checkpoint".into(),
        ));
    }
    let mut prepared =
        Prepared::new(&program, || open(&interrupt), &mut settings, mode, reduce.is_some(), visits, on_plan)?;
    prepared.room.accumulators = accumulators.len();
    let (checkpoint, sampler) = (prepared.checkpoint.take(), prepared.sampler.take());
    let folder = checkpoint.as_ref().map(|(log, _)| log.folder.clone());
    let Prepared { plan, tasks, ranges, .. } = &prepared;
    let target = match (writing, ranges) {
        (Some(writing), Some(ranges)) => {
            let path = writing.path;
            let opened = OpenTarget::open(writing, ranges.len());
            Some(opened.map_err(|source| Error::Output { path: path.to_owned(), source })?)
        }
        _ => None,
    };
    if let Some(sink) = sink {
        begun(sink, plan.reduce_workers)?;
    }
    let resumed_tasks = checkpoint.as_ref().map_or(0, |(_, facts)| facts.tasks);
    let mut kept = AcrossAttempts {
        progress,
        on_news,
        heartbeat: Heartbeat::from_environment(),
        interrupt,
        deaths: Vec::new(),
        marks: settings.timeline.then(Marks::default),
        checkpoint,
        sampler,
        delivered: false,
        anew: 0,
    };
    let mut attempt = |kept: &mut AcrossAttempts<'_>| {
        let pages = prepared.pages()?;
        pages.region().ask_for_huge_pages();
        let shared = Shared::new(&pages, prepared.room).asked("making an eventfd")?;
        shared.set_state(mode.state().unwrap_or_default());
        let outputs = Scopes::begin(outputs.clone(), mode.iterates())?;
        let work = Work {
            program: &program,
            plan,
            mode,
            tasks,
            shared: &shared,
            reduce: reduce.as_deref(),
            kill_points: if kept.anew == 0 { &settings.kill_points } else { &[] },
            ranges: ranges.as_ref(),
            target: target.as_ref(),
            sink,
            outputs: &outputs,
            accumulators: &accumulators,
            checkpoint: folder.as_deref(),
            seed: &prepared.seed,
            start_ns,
            anew: kept.anew,
            kept_bytes_max: prepared.kept_bytes_max(),
        };
        let outcome = std::thread::scope(|scope| {
            let over = Over(&shared);
            let mut coordinator = Coordinator {
                work: &work,
                scope,
                hands: Vec::new(),
                waits: Watch::new().asked("making an epoll descriptor")?,
                reducers: Vec::new(),
                map_at_once: plan.map_at_once,
                had_company_ns: 0,
                attempts: Vec::new(),
                reduce_attempts: vec![0; plan.reduce_workers],
                suspects: HashMap::new(),
                bad_records: Vec::new(),
                places_aside: HashSet::new(),
                aside_bytes: 0,
                done: 0,
                drained: Cell::new((0, 0)),
                taint: Cell::new(None),
                told: (0, 0),
                tasks: 0,
                first_round: 0,
                placed: None,
                kept,
                next_tick_ns: 0,
                clock: Clock::new(start_ns),
                stages: None,
                totals: Vec::new(),
            };
            let begun = coordinator.listen().and_then(|()| coordinator.go_on());
            let outcome = begun.and_then(|()| conduct(&mut coordinator));
            drop(over);
            coordinator.dismiss(outcome.is_ok());
            let (pairs, started_ns) = outcome.inspect_err(|_| coordinator.keep_checkpoint())?;
            let bad_records = coordinator.list_bad_records()?;
            coordinator.accumulate()?;
            let wall_ns = monotonic_ns() - start_ns;
            Ok(Summary {
                wall_ns,
                start_ns: started_ns - start_ns,
                input_bytes: prepared.input_bytes,
                tasks: coordinator.tasks,
                resumed_tasks,
                memory_bytes: plan.budget.total_bytes as u64,
                pairs,
                rounds: shared.round() + 1,
                begun_anew: coordinator.kept.anew,
                steps: shared.step() + 1,
                workers: coordinator
                    .hands
                    .iter()
                    .map(|hand| Worker {
                        number: hand.role.slot,
                        maps: hand.role.maps,
                        reduces: hand.role.reduces.is_some(),
                        counters: shared.counters(hand.role.slot),
                    })
                    .collect(),
                deaths: std::mem::take(&mut coordinator.kept.deaths),
                timeline: coordinator.timeline(wall_ns),
                bad_records,
                node_reads: shared.node_reads(&plan.places.nodes),
                totals: std::mem::take(&mut coordinator.totals),
            })
        });
        if outcome.is_ok() {
            outputs.keep();
        }
        outcome
    };
    loop {
        match attempt(&mut kept) {
            Err(Error::Unrepeatable { place, first, again, .. }) if !kept.delivered && kept.anew < ANEW_MAX => {
                let why = format!("{place} {} when it was mapped again after a death", gave(first, again));
                kept.tell(&format!(
                    "{why}. Nobody has seen any of the result, so the job begins anew; a map function that depends on nothing but \
                     its chunk would have spared that",
                ));
                kept.mark(start_ns, Event::Anew(why));
                kept.anew += 1;
            }
            outcome => return outcome,
        }
    }
}
