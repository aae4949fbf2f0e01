//! Starts workers, at the beginning and in place of those that died.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use gristmill_os::clock::monotonic_ns;
use gristmill_os::ended::WorkerThread;
use gristmill_os::process::{ForkError, fork_worker};

use crate::control::job_is_over::JobIsOver;
use crate::coordinator::clock::Rest;
use crate::coordinator::hand::{Body, WorkerHandle};
use crate::coordinator::state::Coordinator;
use crate::error::{Asked, Error, Result};
use crate::plan::settings::Isolation;
use crate::program::map_reduce::MapReduce;
use crate::worker::bad_record_search::{be_quiet, panic_message};
use crate::worker::main_loop::work;
use crate::worker::work::{Role, Work};

impl<'scope, 'env, J: MapReduce> Coordinator<'scope, 'env, '_, '_, J> {
    /// Starts all workers, and returns when that was done.
    pub(super) fn start_all(&mut self) -> Result<u64> {
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

    pub(super) fn start(&mut self, role: Role, reducer: Option<usize>) -> Result<()> {
        let job = self.work;
        let body = match job.plan.isolation {
            Isolation::Process => {
                let body = || {
                    if job.plan.faults.skip_bad_records > 0 {
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
        self.hands.push(WorkerHandle { role, body, reducer, rest: Rest::default(), overdue: None });
        Ok(())
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
