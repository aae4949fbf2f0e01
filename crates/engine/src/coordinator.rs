//! Starts the workers, watches over the job, and takes in the result.
//!
//! The coordinator touches no data until results arrive. It sleeps until a worker announces something, a
//! worker dies, or a tick passes; then it looks at the shared words and moves the job on:
//!
//! ```text
//!  round k open --all tasks committed--> mapped --all reducers drained--> taint? --no--> finish --> over
//!       ^                                                                  | yes
//!       +------------------------- round k + 1: map again, for tainted partitions only ----+
//! ```
//!
//! A dead worker's tasks of its open epoch go back to the queue; if it reduced, its partitions are tainted
//! and given to the worker that replaces it (`coordinator/deaths.rs`).
//!
//! An iterated job has no finish, but steps (`coordinator/steps.rs`).

mod deaths;
mod failures;
mod overdue;
mod prepare;
mod results;
mod set_aside;
mod stages;
mod steps;

use std::cell::Cell;
use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;
use std::thread::Scope;
use std::time::Duration;

use gristmill_os::clock::monotonic_ns;
use gristmill_os::ended::WorkerThread;
use gristmill_os::file_size::LimitIsAnError;
use gristmill_os::process::{Child, ForkError, fork_worker};
use gristmill_os::wake::poll;
use gristmill_page::Pages;
use gristmill_ring::Futex;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use self::deaths::{End, look};
use self::overdue::{Clock, Overdue, Rest};
use self::prepare::{Kind, Prepared};
use self::stages::Stages;
use crate::checkpoint::log::{Checkpoint, Facts};
use crate::control::words::{COORDINATOR, Given, Place, Shared};
use crate::coordinator::results::{Arrangement, Results};
use crate::data::datum::Datum;
use crate::data::order::Order;
use crate::error::{Asked, Error, Result, gave};
use crate::exchange::lane::JobIsOver;
use crate::job::builder::{Job, Progress};
use crate::output::outcome::{self, Summary};
use crate::output::parts::{Part, Writing, Written};
use crate::plan::settings::Isolation;
use crate::program::map_reduce::MapReduce;
use crate::program::ranges::Ranges;
use crate::shared_output::array::Scopes;
use crate::steps::step::{Next, Step};
use crate::worker::bad_record_search::{be_quiet, panic_message};
use crate::worker::main_loop::{Role, Work, work};

/// How long the coordinator sleeps at most when progress or a timeout is wanted.
const TICK: Duration = Duration::from_millis(100);

/// How often a job begins anew because a task gave other pairs the second time.
const ANEW_MAX: u32 = 3;

/// How long workers have to end by themselves when the job is done.
const FAREWELL: Duration = Duration::from_millis(200);

/// Runs `job` and visits its result.
pub(crate) fn run<J: MapReduce>(
    job: Job<'_, J>,
    mut visit: impl FnMut(<J::Key as Datum>::Ref<'_>, <J::Value as Datum>::Ref<'_>) -> ControlFlow<()>,
) -> Result<Summary> {
    supervise(job, None, None, |coordinator| coordinator.conduct(&mut visit))
}

/// Runs `job`, whose reducers write the result.
pub(crate) fn write<J: MapReduce>(job: Job<'_, J>, writing: Writing<'_, J>) -> Result<(Vec<Part>, Summary)> {
    let mut parts = Vec::new();
    let summary = supervise(job, None, Some(writing), |coordinator| {
        let (written, counted) = coordinator.conduct_writing()?;
        parts = written;
        Ok(counted)
    })?;
    Ok((parts, summary))
}

/// Runs `job` in steps, of which the first sees `state`.
pub(crate) fn iterate<J: MapReduce>(
    job: Job<'_, J>,
    state: &[u8],
    mut control: impl FnMut(&mut Step<'_, J>) -> Next,
) -> Result<Summary> {
    supervise(job, Some(state), None, |coordinator| coordinator.conduct_steps(&mut control))
}

/// Makes everything that workers share, lets `conduct` run the job, and ends the workers. Iterated jobs have a state, and
/// some jobs have something to write.
///
/// A job whose map function gives other pairs when it runs again cannot keep what it has. As long as nobody has seen anything of
/// the result it begins anew, with new workers, and behind the last stage that its checkpoint has.
fn supervise<J: MapReduce>(
    job: Job<'_, J>,
    state: Option<&[u8]>,
    writing: Option<Writing<'_, J>>,
    mut conduct: impl FnMut(&mut Coordinator<'_, '_, '_, '_, J>) -> Result<(u64, u64)>,
) -> Result<Summary> {
    let start_ns = monotonic_ns();
    let _guard = LimitIsAnError::new();
    let Job { program, input, mut settings, reduce, progress, mut on_news, outputs, on_plan } = job;
    let kind = Kind {
        state,
        writes_outputs: !outputs.is_empty(),
        writes_result: writing.is_some(),
        reduces: reduce.is_some(),
    };
    let mut prepared = Prepared::new(program, &input, &mut settings, kind, on_plan, &mut on_news)?;
    let (checkpoint, sampler) = (prepared.checkpoint.take(), prepared.sampler.take());
    let folder = checkpoint.as_ref().map(|(log, _)| log.folder.clone());
    let Prepared { plan, tasks, ranges, .. } = &prepared;
    let written = match (writing, ranges) {
        (Some(writing), Some(ranges)) => {
            let path = writing.path;
            let opened = Written::open(writing, ranges.len());
            Some(opened.map_err(|source| Error::Output { path: path.to_owned(), source })?)
        }
        _ => None,
    };
    let iterates = state.is_some();
    let resumed_tasks = checkpoint.as_ref().map_or(0, |(_, facts)| facts.tasks);
    let mut kept = Kept { progress, on_news, deaths: Vec::new(), checkpoint, sampler, delivered: false, anew: 0 };
    let mut attempt = |kept: &mut Kept<'_>| {
        let pages = Pages::new(prepared.shape()).asked("mapping the shared region")?;
        pages.region().ask_for_huge_pages();
        let shared = Shared::new(&pages, prepared.room).asked("making an eventfd")?;
        shared.set_state(state.unwrap_or_default());
        let outputs = Scopes::begin(outputs.clone(), iterates)?;
        let work = Work {
            program,
            plan,
            tasks,
            shared: &shared,
            reduce: reduce.as_deref(),
            settings: &settings,
            fates: if kept.anew == 0 { &settings.fates } else { &[] },
            ranges: ranges.as_ref(),
            written: written.as_ref(),
            outputs: &outputs,
            checkpoint: folder.as_deref(),
            seed: &prepared.seed,
            start_ns,
            iterates,
        };
        let outcome = std::thread::scope(|scope| {
            let over = Over(&shared);
            let mut coordinator = Coordinator {
                work: &work,
                scope,
                hands: Vec::new(),
                reducers: Vec::new(),
                attempts: Vec::new(),
                reduce_attempts: vec![0; plan.reduce_workers],
                suspects: HashMap::new(),
                bad_records: Vec::new(),
                places_aside: HashSet::new(),
                done: 0,
                told: (0, 0),
                tasks: 0,
                first_round: 0,
                placed: None,
                kept,
                next_tick_ns: 0,
                clock: Clock::new(start_ns),
                stages: None,
            };
            let begun = coordinator.go_on();
            let outcome = begun.and_then(|()| conduct(&mut coordinator));
            drop(over);
            coordinator.dismiss(outcome.is_ok());
            let (pairs, started_ns) = outcome.inspect_err(|_| coordinator.keep_checkpoint())?;
            let bad_records = coordinator.list_bad_records()?;
            Ok(Summary {
                wall_ns: monotonic_ns() - start_ns,
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
                    .map(|hand| outcome::Worker {
                        number: hand.role.slot,
                        maps: hand.role.maps,
                        reduces: hand.role.reduces.is_some(),
                        counters: shared.counters(hand.role.slot),
                    })
                    .collect(),
                deaths: std::mem::take(&mut coordinator.kept.deaths),
                bad_records,
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
                kept.tell(&format!(
                    "{place} {} when it was mapped again after a death. \
                     Nobody has seen any of the result, so the job begins anew; a map function that depends on nothing but its split \
                     would have spared that",
                    gave(first, again)
                ));
                kept.anew += 1;
            }
            outcome => return outcome,
        }
    }
}

/// What a job keeps when it begins anew.
struct Kept<'p> {
    progress: Option<Box<dyn FnMut(Progress) + 'p>>,
    on_news: Option<Box<dyn FnMut(&str) + 'p>>,
    deaths: Vec<String>,
    /// Where the job goes on, if it keeps that.
    checkpoint: Option<(Checkpoint, Facts)>,
    /// Who has looked at the input, until it has ended.
    sampler: Option<Child>,
    /// The caller has seen something of the result, or it is being written.
    delivered: bool,
    /// How often the job has begun anew.
    anew: u32,
}

impl Kept<'_> {
    fn tell(&mut self, news: &str) {
        if let Some(on_news) = &mut self.on_news {
            on_news(news);
        }
    }
}

/// A worker, seen from here.
struct Hand<'scope> {
    role: Role,
    body: Body<'scope>,
    /// Its place among the reducers, kept by whoever replaces it.
    reducer: Option<usize>,
    rest: Rest,
    /// Why it was ended, if it took too long.
    overdue: Option<Overdue>,
}

/// Ends the job when it is dropped, also by a panic: threads see the word and end, and the scope that waits for them with them.
/// Processes are killed when their hands are dropped.
struct Over<'s, 'p>(&'s Shared<'p>);

impl Drop for Over<'_, '_> {
    fn drop(&mut self) {
        self.0.set_over();
        self.0.ring_all_after_death();
    }
}

/// Whether partitions must be made again.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Taint {
    None,
    Some,
}

enum Body<'scope> {
    Process(Child),
    Thread(Option<(WorkerThread<'scope>, Arc<AtomicBool>)>),
    Gone,
}

struct Coordinator<'scope, 'env, 'w, 'p, J: MapReduce> {
    work: &'env Work<'w, J>,
    scope: &'scope Scope<'scope, 'env>,
    /// One per slot that was ever filled; `hands[i]` is in slot `i + 1`.
    hands: Vec<Hand<'scope>>,
    /// For each reducer, the slot it is in now.
    reducers: Vec<usize>,
    /// For each task of the running step, how often a worker died of it.
    attempts: Vec<u32>,
    /// For each reducer, how often it died of itself, with those that it replaced.
    reduce_attempts: Vec<u32>,
    /// For a task, the chunk or record at which a worker died of it last.
    suspects: HashMap<usize, Place>,
    /// Records that were set aside, each with its cause.
    bad_records: Vec<(Place, String)>,
    /// Their sources and offsets.
    places_aside: HashSet<(usize, u64)>,
    /// All tasks below this one are done in this round.
    done: usize,
    /// The round that progress was told of last, and how many bytes of it were done.
    told: (u32, u64),
    /// Tasks of all steps so far.
    tasks: usize,
    /// The first round of the running step.
    first_round: u32,
    /// What each partition was given when its place in the result was fixed.
    placed: Option<Vec<Given>>,
    kept: &'env mut Kept<'p>,
    next_tick_ns: u64,
    clock: Clock,
    /// Of a job with a checkpoint.
    stages: Option<Stages>,
}

impl<'scope, 'env, J: MapReduce> Coordinator<'scope, 'env, '_, '_, J> {
    /// The whole job; returns the number of pairs and when all workers had been started.
    fn conduct(
        &mut self,
        mut visit: impl FnMut(<J::Key as Datum>::Ref<'_>, <J::Value as Datum>::Ref<'_>) -> ControlFlow<()>,
    ) -> Result<(u64, u64)> {
        let Work { plan, shared, settings, reduce, .. } = *self.work;
        let started_ns = self.start_all()?;
        self.conduct_stages()?;
        let (_, receiver) = shared.pages.claim(COORDINATOR);
        // The result, in order; whoever waits for the next page of it watches over the job meanwhile.
        let mut results = Results::<J>::new(shared, receiver, plan, settings);
        let arrangement = match (self.work.ranges, settings.order) {
            (Some(_), _) => Arrangement::Ranges(plan.partitions),
            (None, Order::Unordered) => Arrangement::Unordered,
            // Whatever the sums, there is one for each key.
            (None, Order::ByKey) if reduce.is_none() => Arrangement::Merge(Order::ByKey),
            (None, order) if settings.rounds_as_it_comes::<J>() => Arrangement::MergeHeldBack(order),
            (None, order) => Arrangement::Merge(order),
        };
        let visited = Cell::new(false);
        let visit = |key: <J::Key as Datum>::Ref<'_>, value: <J::Value as Datum>::Ref<'_>| {
            visited.set(true);
            visit(key, value)
        };
        let pairs = results.visit(arrangement, settings.limit, visit, |results| {
            self.kept.delivered |= visited.get();
            // Counted before the look, so that what is announced during it is not slept through.
            let announced = shared.announced();
            self.watch(|reducer| results.has_ended(reducer))?;
            self.note_results()?;
            results.follow(&self.reducers);
            if !results.has_arrived() {
                self.sleep(announced, || results.has_arrived());
            }
            Ok(())
        })?;
        Ok((pairs, started_ns))
    }

    /// Goes on with a job that has a checkpoint: what its log says is done.
    fn go_on(&mut self) -> Result<()> {
        let Some((log, facts)) = self.kept.checkpoint.take() else { return Ok(()) };
        self.set_aside(facts.bad.clone())?;
        let Work { plan, tasks, settings, .. } = *self.work;
        let every = settings
            .checkpoint
            .as_ref()
            .map_or(0, |checkpoint| u64::try_from(checkpoint.every.as_nanos()).unwrap_or(u64::MAX));
        self.stages = Some(Stages::new(log, &facts, plan.reduce_workers, every));
        if facts.tasks > 0 {
            self.kept.tell(&format!("continuing: {} of {} tasks were done", facts.tasks, tasks.len()));
        }
        Ok(())
    }

    /// Keeps the checkpoint for a job that begins anew. If its log cannot be read any more, the job does not.
    fn keep_checkpoint(&mut self) {
        if let Some(stages) = self.stages.take() {
            let log = stages.into_log();
            match Checkpoint::read(&log.folder) {
                Ok(facts) => self.kept.checkpoint = Some((log, facts)),
                Err(_) => self.kept.delivered = true,
            }
        }
    }

    /// The same for a job whose reducers write the result; returns its parts, too.
    fn conduct_writing(&mut self) -> Result<(Vec<Part>, (u64, u64))> {
        // Of each part that has any, the first key and the last.
        let mut keys = Vec::new();
        let (_, started_ns) = self.conduct(|key, _| {
            let mut text = Vec::new();
            J::Key::to_text(key, &mut text);
            keys.push(text);
            ControlFlow::Continue(())
        })?;
        let mut keys = keys.into_iter();
        let Work { shared, ranges, .. } = *self.work;
        let parts: Vec<Part> = (0..ranges.map_or(0, Ranges::len))
            .map(|partition| {
                let Given { pairs, bytes } = shared.given(partition);
                let ends =
                    (pairs > 0).then(|| [(); 2].map(|()| keys.next().expect("two pairs of each part were sent")));
                Part { records: pairs, bytes, checksum: shared.checksum(partition), keys: ends }
            })
            .collect();
        let pairs = parts.iter().map(|part| part.records).sum();
        Ok((parts, (pairs, started_ns)))
    }

    /// Fixes where each part of a result begins that reducers write. What was fixed before a death stays.
    fn place_parts(&mut self) {
        let Work { shared, plan, written: Some(written), .. } = *self.work else { return };
        let given: Vec<Given> = (0..plan.partitions).map(|partition| shared.given(partition)).collect();
        if let Some(placed) = &self.placed {
            assert_eq!(*placed, given, "the same pairs take the same place");
            return;
        }
        let starts = written.starts(given.iter().map(|given| given.bytes));
        starts.into_iter().enumerate().for_each(|(partition, start)| shared.set_start(partition, start));
        self.kept.delivered = true;
        self.placed = Some(given);
    }

    /// Opens the first round of a step.
    fn open_step(&mut self, round: u32, tasks: usize) {
        self.attempts.clear();
        self.attempts.resize(tasks, 0);
        self.suspects.clear();
        self.work.shared.clear_careful();
        self.tasks += tasks;
        self.first_round = round;
        self.work.shared.set_first_round(round);
        self.done = 0;
        self.work.shared.open_round(round, tasks);
    }

    /// Starts all workers, and returns when that was done.
    fn start_all(&mut self) -> Result<u64> {
        let Work { plan, shared, .. } = *self.work;
        // 1. Words that the first worker may read.
        let workers = plan.workers();
        self.reducers = (1..=workers).rev().take(plan.reduce_workers).collect();
        self.reducers.reverse();
        for partition in 0..plan.partitions {
            shared.assign(partition, self.reducers[partition % plan.reduce_workers], 0);
        }
        let first = self.tasks_to_begin_with();
        self.open_step(0, first);
        shared.set_slots_born(1 + workers);
        shared.set_permits(plan.mapping_at_once);
        // 2. Workers.
        for slot in 1..=workers {
            let reducer = self.reducers.iter().position(|reducer| *reducer == slot);
            let maps = plan.fused || reducer.is_none();
            let reduces = reducer.map(|_| 0);
            self.start(Role { slot, maps, reduces }, reducer)?;
        }
        Ok(monotonic_ns())
    }

    fn start(&mut self, role: Role, reducer: Option<usize>) -> Result<()> {
        let job = self.work;
        let body = match job.plan.isolation {
            Isolation::Process => {
                let body = || {
                    if job.settings.skip_bad_records > 0 {
                        be_quiet();
                    }
                    run_worker(job, role)
                };
                Body::Process(fork_worker(body).map_err(|error| match error {
                    ForkError::ThreadsRunning { count } => Error::ThreadsRunning { threads: count },
                    ForkError::Kernel(source) => Error::System { what: "starting a worker process", source },
                })?)
            }
            Isolation::Thread => {
                // Said by the worker itself and before the announcement: a thread that announces is not finished yet, and
                // the coordinator that looks then and goes to sleep is not called again.
                let ended = Arc::new(AtomicBool::new(false));
                let has_ended = ended.clone();
                let thread = WorkerThread::spawn(self.scope, format!("gristmill {}", role.slot), move || {
                    run_worker(job, role);
                    has_ended.store(true, Ordering::Release);
                    job.shared.announce();
                });
                Body::Thread(Some((thread.asked("starting a worker thread")?, ended)))
            }
        };
        self.hands.push(Hand { role, body, reducer, rest: Rest::default(), overdue: None });
        Ok(())
    }

    /// Looks at everything once and moves the job on; `has_ended` says of a reducer that it has done all that it was
    /// there for.
    fn watch(&mut self, has_ended: impl Fn(usize) -> bool) -> Result<()> {
        let Work { shared, settings, .. } = *self.work;
        // 1. Bad records, errors and deaths.
        if self.kept.sampler.as_mut().is_some_and(|sampler| !matches!(sampler.try_wait(), Ok(None))) {
            self.kept.sampler = None;
        }
        self.hear()?;
        for at in 0..self.hands.len() {
            let slot = self.hands[at].role.slot;
            let (end, failure) = look(|| self.hands[at].ended(), || shared.failure(slot))?;
            if let Some(failure) = failure {
                return Err(self.explain(failure));
            }
            if let Some(end) = end {
                self.bury(at, end, &has_ended)?;
            }
        }
        // 2. Time.
        let now_ns = monotonic_ns();
        if let Some(limit) = settings.task_timeout {
            self.keep_time(now_ns, limit)?;
        }
        // 3. The round.
        while self.advance()? {
            shared.ring_all();
        }
        // 4. Progress.
        if now_ns >= self.next_tick_ns {
            self.next_tick_ns = now_ns + TICK.as_nanos() as u64;
            self.report(shared.round());
        }
        Ok(())
    }

    /// Moves the round on by one step if it is time; false when it is not.
    fn advance(&mut self) -> Result<bool> {
        let shared = self.work.shared;
        let round = shared.round();
        if !shared.is_mapped(round) {
            // Done tasks stay done until the next round.
            self.done += (self.done..self.attempts.len()).take_while(|task| shared.is_done(*task)).count();
            let mapped = self.done == self.attempts.len();
            if mapped {
                // What the tasks have found was told before they were done.
                self.hear()?;
                shared.set_mapped(round);
            }
            return Ok(mapped);
        }
        Ok(match self.drained() {
            Some(Taint::Some) => {
                self.done = 0;
                shared.open_round(round + 1, self.attempts.len());
                true
            }
            Some(Taint::None) if self.is_last_step() && !shared.may_finish(round) => {
                self.place_parts();
                shared.set_may_finish(round);
                true
            }
            _ => false,
        })
    }

    /// True when reducers may finish once the running round is drained: unless there are more steps, or stages.
    fn is_last_step(&self) -> bool {
        !self.work.iterates && self.stages.as_ref().is_none_or(|stages| stages.is_last)
    }

    /// Whether partitions are tainted when the round has been drained; `None` as long as it has not.
    fn drained(&self) -> Option<Taint> {
        let Work { plan, shared, .. } = *self.work;
        let round = shared.round();
        // Only who receives pages of this round need say that it has them all. The others may be waiting for
        // the coordinator to take their result, and the coordinator for the result of this round.
        let (mut drained, mut taint) = (true, Taint::None);
        for partition in 0..plan.partitions {
            let since = shared.since(partition);
            drained &= since != round || shared.is_drained(shared.owner(partition), round);
            if since > round {
                taint = Taint::Some;
            }
        }
        drained.then_some(taint)
    }

    fn report(&mut self, round: u32) {
        let shared = self.work.shared;
        if let Some(progress) = &mut self.kept.progress {
            let Work { tasks, .. } = *self.work;
            let done = (0..self.attempts.len()).filter(|task| shared.is_done(*task));
            let done_bytes: u64 = done.map(|task| self.work.task_bytes(task)).sum();
            let reached = self.hands.iter().filter_map(|hand| {
                let (task, _) = shared.task(hand.role.slot)?;
                let is_running = !matches!(hand.body, Body::Gone) && !shared.is_done(task);
                is_running.then(|| shared.reached(hand.role.slot).min(self.work.task_bytes(task)))
            });
            // What was read once and is mapped again is not told twice.
            let (of, most_bytes) = self.told;
            let done_bytes = (done_bytes + reached.sum::<u64>()).max(if of == round { most_bytes } else { 0 });
            self.told = (round, done_bytes);
            let bytes = |tasks: std::ops::Range<usize>| tasks.map(|task| self.work.tasks.bytes(task)).sum::<u64>();
            let (before_bytes, total_bytes) = match &self.stages {
                Some(_) => (bytes(0..shared.input_task(0)), bytes(0..tasks.len())),
                None => (0, (0..self.attempts.len()).map(|task| self.work.task_bytes(task)).sum()),
            };
            progress(Progress {
                done_bytes: before_bytes + done_bytes,
                total_bytes,
                workers: self.hands.iter().filter(|hand| !matches!(hand.body, Body::Gone)).count(),
                deaths: self.kept.deaths.len(),
                step: shared.step(),
                round: round - self.first_round,
                finishing: shared.may_finish(round),
            });
        }
    }

    /// Sleeps until something is announced, a page of the result arrives, a worker dies, or a tick passes.
    fn sleep(&self, announced: u64, has_arrived: impl Fn() -> bool) {
        let shared = self.work.shared;
        let wants_ticks = self.kept.progress.is_some() || self.work.settings.task_timeout.is_some();
        let waiting = Waiting { coordinator: self, timeout_ms: wants_ticks.then_some(TICK.as_millis() as u32) };
        let mut slept = false;
        shared.pages.doorbell(COORDINATOR).sleep_unless(&waiting, || {
            let again = std::mem::replace(&mut slept, true);
            again || shared.announced() != announced || has_arrived()
        });
    }

    /// Waits until every worker has ended. Processes have a moment to end by themselves and leave their counters
    /// if the job went well; then, or at once, they are killed: one may still map for a round that nobody needs
    /// any more, or be stopped.
    fn dismiss(&mut self, orderly: bool) {
        let deadline_ns = monotonic_ns() + if orderly { FAREWELL.as_nanos() as u64 } else { 0 };
        for hand in &mut self.hands {
            match std::mem::replace(&mut hand.body, Body::Gone) {
                Body::Process(child) => {
                    let left_ms = deadline_ns.saturating_sub(monotonic_ns()).div_ceil(1_000_000) as u32;
                    if left_ms > 0 {
                        // If the wait fails the worker is killed a little earlier.
                        drop(poll(&[child.pidfd()], Some(left_ms)));
                    }
                    // The drop kills it if it has not ended, and reaps it.
                    drop(child);
                }
                Body::Thread(thread) => drop(thread.map(|(thread, _)| thread.join())),
                Body::Gone => {}
            }
        }
    }
}

impl Hand<'_> {
    /// How the worker ended, if it has: before the job is over every end is a death.
    fn ended(&mut self) -> Result<Option<End>> {
        match &mut self.body {
            Body::Process(child) => {
                let death = child.try_wait().asked("waiting for a worker")?;
                let proved = death.zip(child.ended());
                Ok(proved.map(|(death, proof)| End {
                    cause: death.to_string(),
                    from_outside: death.is_from_outside(),
                    proof,
                }))
            }
            Body::Thread(thread) if thread.as_ref().is_some_and(|(_, ended)| ended.load(Ordering::Acquire)) => {
                let proof = thread.take().map(|(thread, _)| thread.join());
                Ok(proof.map(|proof| End { cause: "its thread ended".to_owned(), from_outside: false, proof }))
            }
            Body::Thread(_) | Body::Gone => Ok(None),
        }
    }
}

/// What the coordinator waits for: the bell and the end of any worker.
struct Waiting<'c, 'scope, 'env, 'w, 'p, J: MapReduce> {
    coordinator: &'c Coordinator<'scope, 'env, 'w, 'p, J>,
    timeout_ms: Option<u32>,
}

impl<J: MapReduce> Futex for Waiting<'_, '_, '_, '_, '_, J> {
    fn wait(&self, _: &AtomicU32, _: u32) {
        let bell = &self.coordinator.work.shared.bell.0;
        let mut fds = vec![bell.as_fd()];
        fds.extend(self.coordinator.work.shared.telling());
        fds.extend(self.coordinator.hands.iter().filter_map(|hand| match &hand.body {
            Body::Process(child) => Some(child.pidfd()),
            Body::Thread(_) | Body::Gone => None,
        }));
        fds.extend(self.coordinator.kept.sampler.as_ref().map(Child::pidfd));
        // A poll that fails has found nothing; the next look at the workers will say why.
        drop(poll(&fds, self.timeout_ms));
        bell.drain();
    }

    fn wake(&self, _: &AtomicU32) {
        unreachable!("the coordinator does not wake itself");
    }
}

/// The body of a worker: its panic is a death with words. Returns the exit status.
fn run_worker<J: MapReduce>(job: &Work<'_, J>, role: Role) -> i32 {
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| work(job, role)));
    match outcome {
        Ok(()) => 0,
        Err(panic) if panic.is::<JobIsOver>() => 0,
        Err(panic) => {
            job.shared.set_message(role.slot, &panic_message(&*panic));
            gristmill_os::process::PANICKED
        }
    }
}
