//! Makes what workers share, runs a prepared job with it, and ends the workers.
//!
//! If a map function emits different pairs when a task is mapped again, everything made from the first pairs is wrong.
//! As long as the caller has seen none of the result, the job starts over with new workers, after the last stage of
//! its checkpoint.

use gristmill_os::clock::monotonic_ns;
use gristmill_os::folder::Folder;

use crate::control::words::Shared;
use crate::coordinator::prepare::Prepared;
use crate::coordinator::state::{AcrossAttempts, Coordinator, Over};
use crate::coordinator::worker_handle::WorkerHandle;
use crate::error::{Asked, Error, Result, gave};
use crate::output::outcome::{Summary, Worker};
use crate::output::parts::OpenTarget;
use crate::output::timeline::Event;
use crate::plan::mode::Mode;
use crate::plan::settings::Settings;
use crate::program::accumulator::Kind;
use crate::shared_output::array::{Scope, Scopes};
use crate::worker::setup::{Role, Setup};

/// The number of times that a job starts over because a task emitted other pairs the second time.
const ANEW_MAX: u32 = 3;

/// Runs a job until its result is complete. Returns the number of pairs, and the time at which all workers had been
/// started.
pub(super) type Conduct<'c> = dyn FnMut(&mut Coordinator<'_, '_, '_, '_>) -> Result<(u64, u64)> + 'c;

/// A prepared job, which may have to start over.
pub(super) struct Attempts<'a> {
    pub prepared: &'a Prepared,
    pub settings: &'a Settings,
    pub mode: Mode<'a>,
    pub target: Option<&'a OpenTarget<'a>>,
    pub outputs: &'a [&'a Scope],
    pub accumulators: &'a [Kind],
    /// The folder of the checkpoint, if the job has one, and the number of tasks that it says are done.
    pub checkpoint: Option<&'a Folder>,
    pub resumed_tasks: usize,
    /// The work of a worker in a role; it returns the exit status.
    pub run_worker: &'a (dyn Fn(&Setup<'_>, Role) -> i32 + Sync),
    pub start_ns: u64,
}

impl Attempts<'_> {
    /// Runs the job, again and again if it has to start over.
    pub fn run(&self, mut kept: AcrossAttempts<'_>, conduct: &mut Conduct<'_>) -> Result<Summary> {
        loop {
            match self.attempt(&mut kept, conduct) {
                Err(Error::Unrepeatable { place, first, again, .. }) if !kept.delivered && kept.anew < ANEW_MAX => {
                    let why = format!("{place} {} when it was mapped again after a death", gave(first, again));
                    kept.tell(&format!(
                        "{why}. Nobody has seen any of the result, so the job begins anew; a map function that depends \
                         on nothing but its chunk would have spared that",
                    ));
                    kept.mark(self.start_ns, Event::Anew(why));
                    kept.anew += 1;
                }
                outcome => return outcome,
            }
        }
    }

    fn attempt(&self, kept: &mut AcrossAttempts<'_>, conduct: &mut Conduct<'_>) -> Result<Summary> {
        let Attempts { prepared, mode, start_ns, .. } = *self;
        let plan = &prepared.plan;
        let pages = prepared.pages()?;
        pages.region().ask_for_huge_pages();
        let shared = Shared::new(&pages, prepared.room).asked("making an eventfd")?;
        shared.set_state(mode.state().unwrap_or_default());
        let outputs = Scopes::begin(self.outputs.to_vec(), mode.iterates())?;
        let setup = Setup {
            plan,
            mode,
            tasks: &prepared.tasks,
            shared: &shared,
            kill_points: if kept.anew == 0 { &self.settings.kill_points } else { &[] },
            target: self.target,
            outputs: &outputs,
            accumulators: self.accumulators,
            checkpoint: self.checkpoint,
            seed: &prepared.seed,
            start_ns,
            anew: kept.anew,
            kept_bytes_max: prepared.kept_bytes_max(),
        };
        let run_worker = |role| (self.run_worker)(&setup, role);
        let outcome = std::thread::scope(|scope| {
            let over = Over(&shared);
            let mut coordinator = Coordinator::new(&setup, &run_worker, scope, kept)?;
            let begun = coordinator.listen().and_then(|()| coordinator.go_on());
            let outcome = begun.and_then(|()| conduct(&mut coordinator));
            drop(over);
            coordinator.dismiss(outcome.is_ok());
            let (pairs, started_ns) = outcome.inspect_err(|_| coordinator.keep_checkpoint())?;
            self.sum_up(&mut coordinator, pairs, started_ns)
        });
        if outcome.is_ok() {
            outputs.keep();
        }
        outcome
    }

    /// Makes the summary of a job that has `pairs` in its result.
    fn sum_up(&self, coordinator: &mut Coordinator<'_, '_, '_, '_>, pairs: u64, started_ns: u64) -> Result<Summary> {
        let Setup { plan, shared, start_ns, .. } = *coordinator.setup;
        let bad_records = coordinator.list_bad_records()?;
        coordinator.accumulate()?;
        let wall_ns = monotonic_ns() - start_ns;
        let worker = |hand: &WorkerHandle<'_>| Worker {
            number: hand.role.slot,
            maps: hand.role.maps,
            reduces: hand.role.reduces.is_some(),
            counters: shared.counters(hand.role.slot),
        };
        Ok(Summary {
            wall_ns,
            start_ns: started_ns - start_ns,
            input_bytes: self.prepared.input_bytes,
            tasks: coordinator.tasks,
            resumed_tasks: self.resumed_tasks,
            memory_bytes: plan.budget.total_bytes as u64,
            pairs,
            rounds: shared.round() + 1,
            begun_anew: coordinator.kept.anew,
            steps: shared.step() + 1,
            workers: coordinator.hands.iter().map(worker).collect(),
            deaths: std::mem::take(&mut coordinator.kept.deaths),
            timeline: coordinator.timeline(wall_ns),
            bad_records,
            node_reads: shared.node_reads(&plan.places.nodes),
            totals: std::mem::take(&mut coordinator.totals),
        })
    }
}
