//! Watches over a running job: looks at everything once, reports progress, sleeps until there is something to look at,
//! and ends the workers.

use std::sync::atomic::AtomicU32;
use std::time::Duration;

use gristmill_os::clock::monotonic_ns;
use gristmill_os::wake::poll;
use gristmill_ring::Futex;

use crate::control::progress::Progress;
use crate::control::words::COORDINATOR;
use crate::coordinator::clock::{LONG_SLEEP, TICK};
use crate::coordinator::deaths::look;
use crate::coordinator::state::Coordinator;
use crate::coordinator::worker_handle::{Body, End};
use crate::error::{Asked, Error, Result};
use crate::failure::Failure;
use crate::plan::settings::Isolation;
use crate::worker::setup::Setup;

/// Numbers of what the coordinator waits for, other than worker processes, which are numbered from 0.
const CANCEL: u64 = u64::MAX - 2;
const SAMPLER: u64 = u64::MAX - 1;
const BELL: u64 = u64::MAX;

/// The time that workers have to end by themselves when the job is done.
const FAREWELL: Duration = Duration::from_millis(200);

impl Coordinator<'_, '_, '_, '_> {
    /// Looks at everything once and moves the job on. `has_ended` returns whether a reducer has finished its work.
    pub(super) fn watch(&mut self, has_ended: &dyn Fn(usize) -> bool) -> Result<()> {
        let Setup { shared, plan, .. } = *self.setup;
        self.kept.interrupt.check()?;
        // 1. Bad records, failures, deaths, and workers that are needed now.
        self.hear()?;
        let (ended, failure) = look(self, Self::ended, Self::failure)?;
        if let Some((slot, failure)) = failure {
            return Err(self.explain(slot, failure));
        }
        for (at, end) in ended {
            self.bury(at, end, has_ended)?;
        }
        self.start_wanted()?;
        // 2. Time.
        let now_ns = monotonic_ns();
        if let Some(limit) = plan.task_timeout {
            self.keep_time(now_ns, limit)?;
        }
        shared.check_counters(shared.round(), plan.map_at_once)?;
        self.notice_standstill(now_ns)?;
        // 3. The round.
        while self.advance()? {
            shared.ring_all();
        }
        // 4. Progress.
        if now_ns >= self.next_tick_ns {
            self.next_tick_ns = now_ns + TICK.as_nanos() as u64;
            if self.report(shared.round()) {
                return Err(Error::Cancelled);
            }
        }
        Ok(())
    }

    /// Starts to wait for the bell, for reports of workers, for the end of the sampler, and for the cancel token.
    pub(super) fn listen(&mut self) -> Result<()> {
        let shared = self.setup.shared;
        let bell = self.waits.add(&shared.bell.0, BELL);
        let told = shared.telling().into_iter().map(|telling| self.waits.add(&telling, BELL));
        let sampler = self.kept.sampler.as_ref().map(|sampler| self.waits.add(&sampler.pidfd(), SAMPLER));
        let token = self.kept.interrupt.token.as_ref().map(|token| self.waits.add(token, CANCEL));
        std::iter::once(bell)
            .chain(told)
            .chain(sampler)
            .chain(token)
            .collect::<std::io::Result<()>>()
            .asked("waiting for the workers")
    }

    /// Returns the workers that have ended, by their index in `hands`.
    fn ended(&mut self) -> Result<Vec<(usize, End)>> {
        let candidates: Vec<usize> = match self.setup.plan.isolation {
            Isolation::Thread => (0..self.hands.len()).collect(),
            // The kernel lists at most some of them; the next call lists others.
            Isolation::Process => {
                let ready = self.waits.wait(Some(0)).asked("waiting for the workers")?;
                if ready.contains(&SAMPLER)
                    && let Some(mut sampler) = self.kept.sampler.take()
                {
                    self.waits.remove(&sampler.pidfd()).asked("waiting for the workers")?;
                    drop(sampler.try_wait());
                }
                ready.into_iter().filter(|number| *number < CANCEL).map(|number| number as usize).collect()
            }
        };
        let mut ended = Vec::new();
        for at in candidates {
            ended.extend(self.hands[at].ended()?.map(|end| (at, end)));
        }
        Ok(ended)
    }

    /// Returns the failure of a worker, if there is one.
    fn failure(&self) -> Option<(usize, Failure)> {
        let shared = self.setup.shared;
        let failure = |slot: usize| Some((slot, shared.failure(slot)?));
        shared.somebody_failed().then(|| self.hands.iter().find_map(|hand| failure(hand.role.slot))).flatten()
    }

    /// Reports progress; returns whether the caller wants the job to stop.
    pub(super) fn report(&mut self, round: u32) -> bool {
        let shared = self.setup.shared;
        if self.kept.progress.is_some() || self.kept.heartbeat.is_some() {
            let Setup { tasks, .. } = *self.setup;
            let is_done = |task: usize| shared.is_done(task, round).unwrap_or(false);
            let done = (0..self.attempts.len()).filter(|task| is_done(*task));
            let done_bytes: u64 = done.map(|task| self.setup.task_bytes(task)).sum();
            let reached = self.hands.iter().filter_map(|hand| {
                let (task, _) = shared.task(hand.role.slot)?;
                let is_running = !matches!(hand.body, Body::Gone) && !is_done(task);
                is_running.then(|| shared.reached(hand.role.slot).min(self.setup.task_bytes(task)))
            });
            // Bytes that are mapped again count once.
            let (of, most_bytes) = self.told;
            let done_bytes = (done_bytes + reached.sum::<u64>()).max(if of == round { most_bytes } else { 0 });
            self.told = (round, done_bytes);
            let bytes = |tasks: std::ops::Range<usize>| tasks.map(|task| self.setup.tasks.bytes(task)).sum::<u64>();
            let (before_bytes, total_bytes) = match &self.stages {
                Some(_) => (bytes(0..shared.input_task(0)), bytes(0..tasks.len())),
                None => (0, (0..self.attempts.len()).map(|task| self.setup.task_bytes(task)).sum()),
            };
            let progress = Progress {
                done_bytes: before_bytes + done_bytes,
                total_bytes,
                workers: self.hands.iter().filter(|hand| !matches!(hand.body, Body::Gone)).count(),
                deaths: self.kept.deaths.len(),
                step: shared.step(),
                round: round - self.first_round,
                finishing: shared.may_finish(round),
            };
            if let Some(heartbeat) = &self.kept.heartbeat {
                heartbeat.beat(&progress);
            }
            self.kept.progress.as_mut().is_some_and(|report| report(progress))
        } else {
            false
        }
    }

    /// Sleeps until something is announced, a page of the result arrives, a worker dies, the job is cancelled, or a
    /// tick passes.
    pub(super) fn sleep(&self, announced: u64, has_arrived: &mut dyn FnMut() -> bool) {
        let shared = self.setup.shared;
        let wants_ticks = self.kept.progress.is_some()
            || self.kept.heartbeat.is_some()
            || self.kept.interrupt.has_deadline()
            || self.setup.plan.task_timeout.is_some();
        let timeout = if wants_ticks || self.standstill.is_suspected() { TICK } else { LONG_SLEEP };
        let waiting = Waiting { coordinator: self, timeout_ms: Some(timeout.as_millis() as u32) };
        let mut slept = false;
        shared.pages.doorbell(COORDINATOR).sleep_unless(&waiting, || {
            let again = std::mem::replace(&mut slept, true);
            again || shared.announced() != announced || has_arrived()
        });
    }

    /// Waits until every worker has ended. After a successful job, processes have a moment to end by themselves and
    /// leave their counters. Then, or at once, they are killed: one may be stopped, or be mapping for a round that is
    /// no longer needed.
    pub(super) fn dismiss(&mut self, orderly: bool) {
        let deadline_ns = monotonic_ns() + if orderly { FAREWELL.as_nanos() as u64 } else { 0 };
        for hand in &mut self.hands {
            match std::mem::replace(&mut hand.body, Body::Gone) {
                Body::Process(child) => {
                    let left_ms = deadline_ns.saturating_sub(monotonic_ns()).div_ceil(1_000_000) as u32;
                    if left_ms > 0 {
                        // If the wait fails, the worker is killed a little earlier.
                        drop(poll(&[child.pidfd()], Some(left_ms)));
                    }
                    self.setup.outputs.let_out(hand.role.slot, &child.end());
                }
                Body::Thread(Some((thread, _))) => self.setup.outputs.let_out(hand.role.slot, &thread.join()),
                Body::Thread(None) | Body::NotStarted | Body::Gone => {}
            }
        }
    }
}

/// A wait for the bell, or for the end of any worker.
struct Waiting<'c, 'scope, 'env, 'w, 'p> {
    coordinator: &'c Coordinator<'scope, 'env, 'w, 'p>,
    timeout_ms: Option<u32>,
}

impl Futex for Waiting<'_, '_, '_, '_, '_> {
    fn wait(&self, _: &AtomicU32, _: u32) {
        // A wait that fails has found nothing. The next look at the workers reports the cause.
        drop(self.coordinator.waits.wait(self.timeout_ms));
        self.coordinator.setup.shared.bell.0.drain();
    }

    fn wake(&self, _: &AtomicU32) {
        unreachable!("the coordinator does not wake itself");
    }
}
