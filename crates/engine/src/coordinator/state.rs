//! The state of the coordinator while a job runs. Each of the other files of this room changes it for one kind of
//! event.

use std::cell::Cell;
use std::collections::{HashMap, HashSet};
use std::thread::Scope;

use gristmill_os::clock::monotonic_ns;
use gristmill_os::process::Child;
use gristmill_os::wake::Watch;

use crate::checkpoint::log::{Checkpoint, Facts};
use crate::control::heartbeat::Heartbeat;
use crate::control::place::Place;
use crate::control::progress::Progress;
use crate::control::result_parts::PartSize;
use crate::control::words::Shared;
use crate::coordinator::clock::{Clock, Standstill};
use crate::coordinator::stages::Stages;
use crate::coordinator::worker_handle::{Body, WorkerHandle};
use crate::error::{Asked, Result};
use crate::interrupt::Interrupt;
use crate::output::timeline::{Event, Marks};
use crate::program::accumulator::Values;
use crate::worker::setup::{Role, Setup};

pub(super) struct Coordinator<'scope, 'env, 'w, 'p> {
    pub setup: &'env Setup<'w>,
    /// The work of a worker in a role; it returns the exit status.
    pub run_worker: &'env (dyn Fn(Role) -> i32 + Sync),
    pub scope: &'scope Scope<'scope, 'env>,
    /// One for each slot that has, had or may have a worker; `hands[i]` is in slot `i + 1`.
    pub hands: Vec<WorkerHandle<'scope>>,
    /// The events that the coordinator waits for: the bell, reports of workers, and the ends of processes by their
    /// index in `hands`.
    pub waits: Watch,
    /// For each reducer, its current slot.
    pub reducers: Vec<usize>,
    /// The number of workers that may map at the same time.
    pub map_at_once: usize,
    /// When a worker died for lack of memory while others mapped; 0: never.
    pub had_company_ns: u64,
    /// For each task of the current step, the number of workers that it killed.
    pub attempts: Vec<u32>,
    /// For each reducer, the number of deaths that it caused itself, including its predecessors.
    pub reduce_attempts: Vec<u32>,
    /// For a task, the chunk or record that last killed a worker.
    pub suspects: HashMap<usize, Place>,
    /// The records that were set aside, each with its cause.
    pub bad_records: Vec<(Place, String)>,
    /// Their sources and offsets.
    pub places_aside: HashSet<(usize, u64)>,
    /// The approximate memory of their list.
    pub aside_bytes: u64,
    /// All tasks below this one are done in this round.
    pub done: usize,
    /// In this round, all partitions below this one are drained.
    pub drained: Cell<(u32, usize)>,
    /// Whether a partition was tainted in this round, and the number of deaths at that time.
    pub taint: Cell<Option<(u32, u32, Taint)>>,
    /// The round and the number of done bytes in the last progress report.
    pub told: (u32, u64),
    /// The number of tasks of all steps so far.
    pub tasks: usize,
    /// The first round of the current step.
    pub first_round: u32,
    /// The size of each partition when its place in the result was decided.
    pub placed: Option<Vec<PartSize>>,
    pub kept: &'env mut AcrossAttempts<'p>,
    /// The round in which a reducer died last, so that it is not known what it had received.
    pub reducer_lost_in: Option<u32>,
    pub standstill: Standstill,
    pub next_tick_ns: u64,
    pub clock: Clock,
    /// For a job with a checkpoint.
    pub stages: Option<Stages>,
    /// The values that the steps so far have accumulated.
    pub totals: Values,
}

impl<'scope, 'env, 'w, 'p> Coordinator<'scope, 'env, 'w, 'p> {
    /// Makes a coordinator that has started no worker.
    pub fn new(
        setup: &'env Setup<'w>,
        run_worker: &'env (dyn Fn(Role) -> i32 + Sync),
        scope: &'scope Scope<'scope, 'env>,
        kept: &'env mut AcrossAttempts<'p>,
    ) -> Result<Coordinator<'scope, 'env, 'w, 'p>> {
        Ok(Coordinator {
            setup,
            run_worker,
            scope,
            hands: Vec::new(),
            waits: Watch::new().asked("making an epoll descriptor")?,
            reducers: Vec::new(),
            map_at_once: setup.plan.map_at_once,
            had_company_ns: 0,
            attempts: Vec::new(),
            reduce_attempts: vec![0; setup.plan.reduce_workers],
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
            reducer_lost_in: None,
            standstill: Standstill::default(),
            next_tick_ns: 0,
            clock: Clock::new(setup.start_ns),
            stages: None,
            totals: Vec::new(),
        })
    }
}

/// State that a job keeps when it starts over.
pub(super) struct AcrossAttempts<'p> {
    pub progress: Option<Box<dyn FnMut(Progress) -> bool + Send + 'p>>,
    /// For the program that started this one, if it listens.
    pub heartbeat: Option<Heartbeat>,
    pub on_news: Option<Box<dyn FnMut(&str) + Send + 'p>>,
    pub interrupt: Interrupt,
    pub deaths: Vec<String>,
    /// For a timeline; `None` if the job has none.
    pub marks: Option<Marks>,
    /// The checkpoint and what it says is done, if the job has one.
    pub checkpoint: Option<(Checkpoint, Facts)>,
    /// The process that samples the input, until it has ended.
    pub sampler: Option<Child>,
    /// Whether the caller has seen some of the result, or some of it was written.
    pub delivered: bool,
    /// The number of times that the job has started over.
    pub anew: u32,
}

impl AcrossAttempts<'_> {
    /// Notes when something happened.
    pub fn mark(&mut self, start_ns: u64, event: Event) {
        if let Some(marks) = &mut self.marks {
            marks.add(monotonic_ns() - start_ns, event);
        }
    }

    pub fn tell(&mut self, news: &str) {
        if let Some(on_news) = &mut self.on_news {
            on_news(news);
        }
    }
}

/// Ends the job when it is dropped, also during a panic. Threads see the word and end, and then the scope that waits
/// for them. Processes are killed when the coordinator is dropped.
pub(super) struct Over<'s, 'p>(pub &'s Shared<'p>);

impl Drop for Over<'_, '_> {
    fn drop(&mut self) {
        self.0.set_over();
        self.0.ring_all_after_death();
    }
}

impl Drop for Coordinator<'_, '_, '_, '_> {
    /// After a panic some processes may be left, perhaps in the middle of a write to a shared output.
    fn drop(&mut self) {
        for hand in &mut self.hands {
            if let Body::Process(child) = std::mem::replace(&mut hand.body, Body::Gone) {
                self.setup.outputs.let_out(hand.role.slot, &child.end());
            }
        }
    }
}

/// Whether partitions must be remade.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Taint {
    None,
    Some,
}
