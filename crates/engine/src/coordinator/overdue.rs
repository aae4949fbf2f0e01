//! Decides when a worker has taken too long, in a job with a task timeout.
//!
//! ```text
//!  a task whose clock runs    the timeout is that of the task
//!  anything else              a worker that stands still for the timeout is ended: its process uses no processor time, although
//!                             it is rung, and waits for no disk
//! ```
//!
//! The second rule needs no help from the worker, so it holds wherever a worker is stopped: asleep, between two tasks,
//! or while it waits for a page, combines, spills or delivers. A worker that works uses processor time. A worker that
//! sleeps is rung after half of the timeout, and uses some time to look and sleep again.

use std::time::Duration;

use gristmill_os::process::Activity;

use crate::coordinator::clock::{Answer, Overdue, Rest, TICK};
use crate::coordinator::state::Coordinator;
use crate::coordinator::worker_handle::Body;
use crate::error::{Asked, Result};
use crate::worker::setup::Setup;

impl Coordinator<'_, '_, '_, '_> {
    /// Ends the workers that have taken longer than `limit`.
    pub(super) fn keep_time(&mut self, now_ns: u64, limit: Duration) -> Result<()> {
        let Setup { shared, .. } = *self.setup;
        let Coordinator { clock, hands, .. } = self;
        let limit_ns = u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX);
        clock.look(now_ns, || {
            let alive = || hands.iter().filter(|hand| matches!(hand.body, Body::Process(_)));
            let began = alive().filter_map(|hand| shared.task(hand.role.slot)).map(|(_, since_ns)| since_ns);
            began.chain(alive().map(|hand| hand.rest.since_ns)).min().unwrap_or(now_ns)
        });
        if now_ns.saturating_sub(clock.judged_ns) < TICK.as_nanos() as u64 {
            return Ok(());
        }
        clock.judged_ns = now_ns;
        for hand in hands.iter_mut().filter(|hand| hand.overdue.is_none()) {
            let Body::Process(child) = &mut hand.body else { continue };
            let slot = hand.role.slot;
            // 1. The task, unless its clock is stopped.
            let of_task = shared.task(slot).filter(|(_, since_ns)| *since_ns != u64::MAX);
            let overdue = if let Some((_, since_ns)) = of_task {
                hand.rest = Rest { since_ns: now_ns, ..Rest::default() };
                (clock.passed_ns(since_ns) > limit_ns).then_some(Overdue::Task)
            } else {
                // 2. Anything else. A worker that cannot be asked has ended, which the next look finds.
                let Ok(cpu_ns) = child.cpu_ns() else { continue };
                let activity = if cpu_ns == hand.rest.cpu_ns { child.activity() } else { Activity::Runs };
                let is_busy = matches!(activity, Activity::Runs | Activity::WaitsForDevice);
                match hand.rest.judge(clock, limit_ns, cpu_ns, is_busy) {
                    Answer::Nothing => None,
                    Answer::Ring => {
                        shared.wake(slot);
                        None
                    }
                    Answer::End => Some(Overdue::Still),
                }
            };
            if let Some(overdue) = overdue {
                let was_stopped = child.activity() == Activity::Stopped;
                hand.overdue = Some(if was_stopped { Overdue::Stopped } else { overdue });
                child.kill().asked("ending a worker that takes too long")?;
            }
        }
        Ok(())
    }
}
