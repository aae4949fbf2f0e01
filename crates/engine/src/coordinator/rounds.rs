//! Rounds: when a round is mapped, when it is drained, and what follows. After the death of a reducer the next round
//! maps the same tasks again, only for the tainted partitions.

use crate::control::accumulated::add;
use crate::control::ledger::Sums;
use crate::control::result_parts::PartSize;
use crate::coordinator::state::{Coordinator, Taint};
use crate::error::{Error, Result, overwritten};
use crate::output::timeline::Event;
use crate::program::accumulator::Values;
use crate::worker::setup::Setup;

impl Coordinator<'_, '_, '_, '_> {
    /// Decides where each part of a result starts that the reducers write. A place that was decided before a death
    /// stays.
    fn place_parts(&mut self) -> Result<()> {
        let Setup { shared, plan, target: Some(target), .. } = *self.setup else { return Ok(()) };
        (0..plan.partitions).try_for_each(|partition| shared.check_partition(partition))?;
        let sizes: Vec<PartSize> = (0..plan.partitions).map(|partition| shared.part_size(partition)).collect();
        if let Some(placed) = &self.placed {
            return match *placed == sizes {
                true => Ok(()),
                false => Err(overwritten(None, "the same pairs take another place")),
            };
        }
        let starts = target.starts(sizes.iter().map(|size| size.bytes));
        starts.into_iter().enumerate().for_each(|(partition, start)| shared.set_start(partition, start));
        self.kept.delivered = true;
        self.placed = Some(sizes);
        Ok(())
    }

    /// Adds what the tasks of this step have accumulated to the totals of the job; returns that of the step.
    pub(super) fn accumulate(&mut self) -> Result<Values> {
        let Setup { shared, accumulators, .. } = *self.setup;
        let mut of_step = Values::new();
        let fits = shared.add_accumulated(accumulators, &mut of_step)?
            && of_step.iter().all(|(kind, value)| add(&mut self.totals, *kind, *value).is_some());
        match fits {
            true => Ok(of_step),
            false => Err(Error::TooLarge { what: "the total of an accumulator exceeds 64 bits".into() }),
        }
    }

    /// Opens the first round of a step.
    pub(super) fn open_step(&mut self, round: u32, tasks: usize) {
        self.attempts.clear();
        self.attempts.resize(tasks, 0);
        self.suspects.clear();
        self.setup.shared.clear_careful();
        self.tasks += tasks;
        self.first_round = round;
        self.setup.shared.set_first_round(round);
        self.done = 0;
        self.setup.shared.open_round(round, tasks);
    }

    /// Advances the round by one step if possible. Returns whether it did.
    pub(super) fn advance(&mut self) -> Result<bool> {
        let shared = self.setup.shared;
        let round = shared.round();
        if !shared.is_mapped(round) {
            // A task that is done stays done until the next round.
            while self.done < self.attempts.len() && shared.is_done(self.done, round)? {
                self.done += 1;
            }
            let mapped = self.done == self.attempts.len();
            if mapped {
                // Bad records of the tasks were reported before the tasks were done.
                self.hear()?;
                self.check_mapped(round)?;
                shared.set_mapped(round);
            }
            return Ok(mapped);
        }
        Ok(match self.drained() {
            Some(Taint::Some) => {
                self.done = 0;
                self.kept.mark(self.setup.start_ns, Event::Redo);
                shared.open_round(round + 1, self.attempts.len());
                true
            }
            Some(Taint::None) if self.is_last_step() && !shared.may_finish(round) => {
                self.check_received()?;
                self.place_parts()?;
                shared.set_may_finish(round);
                true
            }
            _ => false,
        })
    }

    /// Checks that each task of `round`, which are all done, is in the ledger of one worker.
    fn check_mapped(&self, round: u32) -> Result<()> {
        let mut all = Sums::default();
        (0..self.attempts.len()).for_each(|task| all.add_task(task));
        match self.setup.shared.entered(round)?.tasks == all.tasks {
            true => Ok(()),
            false => Err(overwritten(None, "a task was mapped twice or not at all")),
        }
    }

    /// Checks that reducers have received the pages that were sent to them in the current round, which is drained.
    pub(super) fn check_received(&self) -> Result<()> {
        let shared = self.setup.shared;
        let round = shared.round();
        if self.reducer_lost_in == Some(round) {
            return Ok(()); // Nobody knows what it had received. It counts for nothing, or was put on the shelf.
        }
        let received = self.reducers.iter().map(|slot| shared.received(*slot, round)).fold(0, u64::wrapping_add);
        match shared.entered(round)?.pages == received {
            true => Ok(()),
            false => Err(overwritten(None, "pages that were sent were not received")),
        }
    }

    /// Returns whether reducers may finish once this round is drained: they may, unless more steps or stages follow.
    pub(super) fn is_last_step(&self) -> bool {
        !self.setup.mode.iterates() && self.stages.as_ref().is_none_or(|stages| stages.is_last)
    }

    /// Returns whether partitions are tainted once the round is drained, and `None` before that.
    pub(super) fn drained(&self) -> Option<Taint> {
        let Setup { plan, shared, .. } = *self.setup;
        let round = shared.round();
        // Only the reducers that receive pages of this round must report that they have all of them. Others may be
        // waiting for the coordinator to take their result while the coordinator waits for this round.
        let is_drained = |partition: &usize| {
            let owner = shared.owner(*partition);
            shared.since(*partition) != round || self.is_idle(owner) || shared.is_drained(owner, round)
        };
        // 1. A drained partition stays drained until the next round, unless it is tainted.
        let (of, below) = self.drained.get();
        let below = if of == round { below } else { 0 };
        let below = below + (below..plan.partitions).take_while(is_drained).count();
        self.drained.set((round, below));
        if below < plan.partitions {
            return None;
        }
        // 2. Only a death taints.
        let deaths = shared.pages.deaths();
        if let Some((of, after, taint)) = self.taint.get()
            && (of, after) == (round, deaths)
        {
            return Some(taint);
        }
        let is_tainted = (0..plan.partitions).any(|partition| shared.since(partition) > round);
        let taint = if is_tainted { Taint::Some } else { Taint::None };
        self.taint.set(Some((round, deaths, taint)));
        Some(taint)
    }
}
