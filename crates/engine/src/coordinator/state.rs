//! The state of the coordinator while a job runs. The other files of this room change it, each for one event.

use std::cell::Cell;
use std::collections::{HashMap, HashSet};
use std::thread::Scope;

use gristmill_os::process::Child;
use gristmill_os::wake::Watch;

use crate::checkpoint::log::{Checkpoint, Facts};
use crate::control::place::Place;
use crate::control::progress::Progress;
use crate::control::result_parts::PartSize;
use crate::control::words::Shared;
use crate::coordinator::clock::Clock;
use crate::coordinator::stages::Stages;
use crate::coordinator::worker_handle::{Body, WorkerHandle};
use crate::interrupt::Interrupt;
use crate::program::map_reduce::MapReduce;
use crate::worker::work::Work;

pub(super) struct Coordinator<'scope, 'env, 'w, 'p, J: MapReduce> {
    pub work: &'env Work<'w, J>,
    pub scope: &'scope Scope<'scope, 'env>,
    /// One per slot that has, had or may have a worker; `hands[i]` is in slot `i + 1`.
    pub hands: Vec<WorkerHandle<'scope>>,
    /// What the coordinator waits for: the bell, what workers tell, and the ends of processes by their index in `hands`.
    pub waits: Watch,
    /// For each reducer, the slot it is in now.
    pub reducers: Vec<usize>,
    /// For each task of the running step, how often a worker died of it.
    pub attempts: Vec<u32>,
    /// For each reducer, how often it died of itself, with those that it replaced.
    pub reduce_attempts: Vec<u32>,
    /// For a task, the chunk or record at which a worker died of it last.
    pub suspects: HashMap<usize, Place>,
    /// Records that were set aside, each with its cause.
    pub bad_records: Vec<(Place, String)>,
    /// Their sources and offsets.
    pub places_aside: HashSet<(usize, u64)>,
    /// What their list takes, about.
    pub aside_bytes: u64,
    /// All tasks below this one are done in this round.
    pub done: usize,
    /// In this round, all partitions below this one are drained.
    pub drained: Cell<(u32, usize)>,
    /// Whether a partition was tainted in this round, after so many deaths.
    pub taint: Cell<Option<(u32, u32, Taint)>>,
    /// The round that progress was told of last, and how many bytes of it were done.
    pub told: (u32, u64),
    /// Tasks of all steps so far.
    pub tasks: usize,
    /// The first round of the running step.
    pub first_round: u32,
    /// The size of each partition when its place in the result was fixed.
    pub placed: Option<Vec<PartSize>>,
    pub kept: &'env mut AcrossAttempts<'p>,
    pub next_tick_ns: u64,
    pub clock: Clock,
    /// Of a job with a checkpoint.
    pub stages: Option<Stages>,
}

/// What a job keeps when it begins anew.
pub(super) struct AcrossAttempts<'p> {
    pub progress: Option<Box<dyn FnMut(Progress) -> bool + 'p>>,
    pub on_news: Option<Box<dyn FnMut(&str) + 'p>>,
    pub interrupt: Interrupt,
    pub deaths: Vec<String>,
    /// Where the job goes on, if it keeps that.
    pub checkpoint: Option<(Checkpoint, Facts)>,
    /// Who has looked at the input, until it has ended.
    pub sampler: Option<Child>,
    /// The caller has seen something of the result, or it is being written.
    pub delivered: bool,
    /// How often the job has begun anew.
    pub anew: u32,
}

impl AcrossAttempts<'_> {
    pub fn tell(&mut self, news: &str) {
        if let Some(on_news) = &mut self.on_news {
            on_news(news);
        }
    }
}

/// Ends the job when it is dropped, also by a panic: threads see the word and end, and the scope that waits for them with them.
/// Processes are killed when the coordinator is dropped.
pub(super) struct Over<'s, 'p>(pub &'s Shared<'p>);

impl Drop for Over<'_, '_> {
    fn drop(&mut self) {
        self.0.set_over();
        self.0.ring_all_after_death();
    }
}

impl<J: MapReduce> Drop for Coordinator<'_, '_, '_, '_, J> {
    /// After a panic there may be processes left, perhaps in the middle of a write to a shared output.
    fn drop(&mut self) {
        for hand in &mut self.hands {
            if let Body::Process(child) = std::mem::replace(&mut hand.body, Body::Gone) {
                self.work.outputs.let_out(hand.role.slot, &child.end());
            }
        }
    }
}

/// Whether partitions must be made again.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Taint {
    None,
    Some,
}
