//! Jobs with a checkpoint. The input is mapped in stages, and each stage is on disk before the next one starts.
//!
//! ```text
//!  stage: some tasks, a round of their own --all reducers drained, and saved--> taint? --no--> noted in the log --> next stage
//!           ^                                                                     | yes                 | no task is left
//!           +----------- the same tasks again, for tainted partitions only -------+                     v
//!                                                                a stage without tasks, in which the reducers finish
//! ```
//!
//! The tasks of a stage are consecutive, so one number says what is done. A short stage is mostly syncing, and a long
//! one loses much in a crash. The first stage is short; the length of each later one is chosen so that it takes as long
//! as the job may lose.

use gristmill_os::clock::monotonic_ns;

use crate::coordinator::state::Coordinator;
use crate::error::{Result, overwritten};
use crate::output::timeline::Event;
use crate::worker::setup::Setup;

/// A stage has at most this many times the tasks of the previous one.
const GROWTH_MAX: u64 = 4;

impl Coordinator<'_, '_, '_, '_> {
    /// Returns the number of tasks in the first stage, or in the whole job if it has no stages.
    pub(super) fn tasks_to_begin_with(&mut self) -> usize {
        let Setup { plan, shared, tasks, .. } = *self.setup;
        let Some(stages) = &mut self.stages else { return tasks.len() };
        shared.set_first_task(stages.done);
        let left = tasks.len() - stages.done;
        stages.is_last = left == 0;
        left.min(2 * plan.map_at_once)
    }

    /// Runs all stages, up to the one in which the reducers finish. The first one is open already.
    pub(super) fn conduct_stages(&mut self) -> Result<()> {
        let Setup { shared, tasks, .. } = *self.setup;
        let (mut began_ns, mut stage) = (monotonic_ns(), 0);
        while self.stages.as_ref().is_some_and(|stages| !stages.is_last) {
            // 1. Run the stage. No worker is finished before the last stage.
            self.complete_step()?;
            // 2. Record the stage in the log.
            let count = self.attempts.len();
            let saved = |slot: &usize| {
                let not_saved = || overwritten(Some(*slot), "it has not saved the stage that it has drained");
                shared.saved(*slot)?.ok_or_else(not_saved)
            };
            let bytes = self.reducers.iter().map(saved).collect::<Result<Vec<u64>>>()?;
            let stages = self.stages.as_mut().expect("there are stages");
            stages.log.note_stage(count, &bytes)?;
            stages.done += count;
            // 3. Open the next stage, with a round of its own for all partitions.
            let now_ns = monotonic_ns();
            let fair = (count as u64).saturating_mul(stages.every_ns) / (now_ns - began_ns).max(1);
            let next = fair.clamp(1, count.max(1) as u64 * GROWTH_MAX).min((tasks.len() - stages.done) as u64) as usize;
            began_ns = now_ns;
            stages.is_last = next == 0;
            shared.set_first_task(stages.done);
            let round = shared.round() + 1;
            (0..shared.partitions()).for_each(|partition| shared.assign(partition, shared.owner(partition), round));
            if next > 0 {
                stage += 1;
                self.kept.mark(self.setup.start_ns, Event::Stage(stage));
            }
            self.open_step(round, next);
            shared.ring_all();
        }
        Ok(())
    }

    /// Records which reducers have made their results.
    pub(super) fn note_results(&mut self) -> Result<()> {
        let Some(stages) = &mut self.stages else { return Ok(()) };
        for (reducer, slot) in self.reducers.iter().enumerate() {
            if let Some(bytes) = self.setup.shared.saved(*slot)?.filter(|_| !stages.results[reducer]) {
                stages.log.note_result(reducer, bytes)?;
                stages.results[reducer] = true;
            }
        }
        Ok(())
    }
}
