//! Watches over a running job: looks at everything once, reports progress, sleeps until there is something to look at, and sends the
//! workers home.

use std::os::fd::AsFd;
use std::sync::atomic::AtomicU32;
use std::time::Duration;

use gristmill_os::clock::monotonic_ns;
use gristmill_os::process::Child;
use gristmill_os::wake::poll;
use gristmill_ring::Futex;

use crate::control::progress::Progress;
use crate::control::words::COORDINATOR;
use crate::coordinator::clock::TICK;
use crate::coordinator::deaths::look;
use crate::coordinator::hand::Body;
use crate::coordinator::state::Coordinator;
use crate::error::Result;
use crate::program::map_reduce::MapReduce;
use crate::worker::work::Work;

/// How long workers have to end by themselves when the job is done.
const FAREWELL: Duration = Duration::from_millis(200);

impl<J: MapReduce> Coordinator<'_, '_, '_, '_, J> {
    /// Looks at everything once and moves the job on; `has_ended` says of a reducer that it has done all that it was
    /// there for.
    pub(super) fn watch(&mut self, has_ended: impl Fn(usize) -> bool) -> Result<()> {
        let Work { shared, plan, .. } = *self.work;
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
        if let Some(limit) = plan.faults.task_timeout {
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

    pub(super) fn report(&mut self, round: u32) {
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
    pub(super) fn sleep(&self, announced: u64, has_arrived: impl Fn() -> bool) {
        let shared = self.work.shared;
        let wants_ticks = self.kept.progress.is_some() || self.work.plan.faults.task_timeout.is_some();
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
    pub(super) fn dismiss(&mut self, orderly: bool) {
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
