//! Starts workers: at the beginning, when they are sent a page, and in place of dead ones.
//!
//! A worker costs a fork, and in a small job most workers never receive anything: one mapper and one reducer count a
//! word, however many workers are requested. So a job starts with the workers that may map at once. Each of the others
//! is started when it is sent its first page ([`Shared::want`](crate::control::words::Shared::want)). A worker that was
//! sent nothing has nothing to drain and nothing to deliver. Jobs in steps or stages start all workers, because each
//! one keeps or saves its own part.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use gristmill_os::clock::monotonic_ns;
use gristmill_os::ended::WorkerThread;
use gristmill_os::process::{OomKills, fork_worker_of};

use crate::control::job_is_over::JobIsOver;
use crate::coordinator::clock::Rest;
use crate::coordinator::state::Coordinator;
use crate::coordinator::worker_handle::{Body, WorkerHandle};
use crate::error::{Asked, Error, Result};
use crate::failure::{Failure, panic_message};
use crate::plan::balance::largest_first;
use crate::plan::settings::Isolation;
use crate::program::ending::Program;
use crate::program_error::ProgramError;
use crate::worker::bad_record_search::be_quiet;
use crate::worker::main_loop;
use crate::worker::setup::{Role, Setup};
use crate::worker::work::Work;

impl<'scope, 'env> Coordinator<'scope, 'env, '_, '_> {
    /// Starts the first workers, and returns the time at which that was done.
    pub(super) fn start_all(&mut self) -> Result<u64> {
        let Setup { plan, shared, .. } = *self.setup;
        // 1. Set the words that the first worker may read.
        let workers = plan.workers();
        self.reducers = (1..=workers).rev().take(plan.reduce_workers).collect();
        self.reducers.reverse();
        for (share, reducers) in self.reducers_of_shares().iter().enumerate() {
            let first = share * plan.share_partitions();
            let placed = plan.weights.as_ref().map(|weights| largest_first(&weights.of, reducers.len()));
            for partition in 0..plan.share_partitions() {
                let reducer = placed.as_ref().map_or(partition % reducers.len(), |placed| placed[partition]);
                shared.assign(first + partition, reducers[reducer], 0);
            }
        }
        let first = self.tasks_to_begin_with();
        self.open_step(0, first);
        shared.set_slots_born(1 + workers);
        shared.set_permits(plan.map_at_once);
        // 2. Start the workers.
        for slot in 1..=workers {
            let reducer = self.reducers.iter().position(|reducer| *reducer == slot);
            let maps = plan.fused || reducer.is_none();
            let reduces = reducer.map(|_| 0);
            let role = Role { slot, maps, reduces, home: plan.places.of_worker.get(slot - 1).copied() };
            self.hands.push(WorkerHandle {
                role,
                body: Body::NotStarted,
                reducer,
                rest: Rest::default(),
                overdue: None,
            });
        }
        let first = match self.stages.is_some() || self.setup.mode.iterates() {
            true => workers,
            // If there is a second task, it may take long, so a second worker is worth its start.
            false => plan.map_workers.min(plan.map_at_once).min(first.max(2)),
        };
        let kills = OomKills::until_now();
        (0..first).try_for_each(|at| self.start(at, kills))?;
        Ok(monotonic_ns())
    }

    /// Returns the reducers of each share, in the order of slots.
    fn reducers_of_shares(&self) -> Vec<Vec<usize>> {
        let Setup { plan, .. } = *self.setup;
        if plan.shares == 1 {
            return vec![self.reducers.clone()];
        }
        let at_home = |share: usize| {
            self.reducers.iter().copied().filter(move |slot| plan.places.of_worker[*slot - 1] == share).collect()
        };
        (0..plan.shares).map(at_home).collect()
    }

    /// Starts the workers that have been sent a page.
    pub(super) fn start_wanted(&mut self) -> Result<()> {
        let wanted = |hand: &WorkerHandle<'_>| {
            matches!(hand.body, Body::NotStarted) && self.setup.shared.is_wanted(hand.role.slot)
        };
        let wanted: Vec<usize> = (0..self.hands.len()).filter(|at| wanted(&self.hands[*at])).collect();
        if wanted.is_empty() {
            return Ok(());
        }
        let kills = OomKills::until_now();
        wanted.into_iter().try_for_each(|at| self.start(at, kills))
    }

    /// Returns whether the reducer in `slot` was never started and has been sent nothing.
    pub(super) fn is_idle(&self, slot: usize) -> bool {
        // In this order, because only this process starts it.
        matches!(self.hands[slot - 1].body, Body::NotStarted) && !self.setup.shared.is_wanted(slot)
    }

    /// Starts the worker of `hands[at]`.
    pub(super) fn start(&mut self, at: usize, kills: OomKills) -> Result<()> {
        let (setup, run_worker, role) = (self.setup, self.run_worker, self.hands[at].role);
        let body = match setup.plan.isolation {
            Isolation::Process => {
                let body = || {
                    if setup.plan.skip_bad_records > 0 {
                        be_quiet();
                    }
                    run_worker(role)
                };
                let child =
                    fork_worker_of(kills, body).map_err(|error| Error::fork("starting a worker process", error))?;
                self.waits.add(&child.pidfd(), at as u64).asked("waiting for the end of a worker process")?;
                Body::Process(child)
            }
            Isolation::Thread => {
                // The worker sets this itself, before it announces its end. A thread that announces has not finished
                // yet, and if the coordinator looked at that moment and went to sleep, nobody would wake it.
                let ended = Arc::new(AtomicBool::new(false));
                let has_ended = ended.clone();
                let thread = WorkerThread::spawn(self.scope, format!("gristmill {}", role.slot), move || {
                    run_worker(role);
                    has_ended.store(true, Ordering::Release);
                    setup.shared.announce();
                });
                Body::Thread(Some((thread.asked("starting a worker thread")?, ended)))
            }
        };
        self.hands[at].body = body;
        Ok(())
    }
}

/// Runs a worker. A panic is a death with a message. Returns the exit status.
pub(super) fn run_worker<J: Program>(work: &Work<'_, J>, role: Role) -> i32 {
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| main_loop::work(work, role)));
    match outcome {
        Ok(()) => 0,
        Err(panic) if panic.is::<JobIsOver>() => 0,
        Err(panic) => match panic.downcast_ref::<ProgramError>() {
            Some(error) if !error.is_retried() => {
                work.shared.fail(role.slot, &Failure::Combine { error: error.clone() });
                0
            }
            _ => {
                work.shared.set_message(role.slot, &panic_message(&*panic));
                gristmill_os::process::PANICKED
            }
        },
    }
}
