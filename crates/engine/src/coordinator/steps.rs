//! Jobs in steps.
//!
//! Reducers leave what they have drained on the shelf; when everything is drained and nothing is tainted, the step is
//! complete. The next one begins with a round of its own, for all partitions:
//!
//! ```text
//!  round k open --all tasks committed--> mapped --all reducers drained, and kept--> taint? --no--> control: what next?
//!       ^                                                                             | yes          |          |
//!       +------------------- round k + 1: the same step, for tainted partitions ------+              |        stop
//!       +------------------- round k + 1: the next step, for all partitions -------------------------+
//! ```
//!
//! *What lies on the shelf.* While step n runs, its input (if it maps the pairs of step n - 1) and what its reducers have
//! left so far. The input goes when step n is complete, not before: any of its partitions may have to be made again.

use gristmill_page::Piece;

use crate::control::claims::ROUNDS_MAX;
use crate::control::words::COORDINATOR;
use crate::coordinator::state::{Coordinator, Taint};
use crate::error::{Error, Result};
use crate::program::map_reduce::MapReduce;
use crate::steps::shelf_writer::pieces;
use crate::steps::step::{Next, Step};
use crate::worker::work::Work;

impl<J: MapReduce> Coordinator<'_, '_, '_, '_, J> {
    /// The whole of an iterated job; returns the number of pairs of its last step, and when all workers had been started.
    pub(super) fn conduct_steps(&mut self, mut control: impl FnMut(&mut Step<'_, J>) -> Next) -> Result<(u64, u64)> {
        let Work { shared, tasks, outputs, seed, .. } = *self.work;
        let started_ns = self.start_all()?;
        // It reads what lies on the shelf.
        let _ends = shared.pages.claim(COORDINATOR);
        let shelf = shared.pages.shelf();
        for number in 0.. {
            // 1. What the step makes. No worker has done all that it is there for before the last step is complete.
            while !self.step_is_complete() {
                let announced = shared.announced();
                self.watch(|_| false)?;
                if !self.step_is_complete() {
                    self.sleep(announced, || false);
                }
            }
            // All its tasks are committed, so nobody is in one.
            let settled = outputs.settle()?;
            let reader = shelf.reader(COORDINATOR);
            let mut step = Step::new(shared, &reader, &settled, seed, number);
            let pairs = step.pairs();
            self.kept.delivered = true;
            // 2. What the next one maps, on the shelf in the generation after its number. Nothing older is needed.
            let next = control(&mut step);
            let pieces: Option<Vec<Piece>> = match next {
                Next::Stop => return Ok((pairs, started_ns)),
                Next::Input => None,
                Next::Pairs => {
                    let partitions = 0..shared.partitions();
                    Some(partitions.flat_map(|partition| pieces(&reader, shared.kept(partition))).collect())
                }
            };
            drop((reader, settled));
            shelf.clear(if pieces.is_some() { number + 1 } else { number + 2 });
            // 3. A round of its own for all partitions.
            let round = shared.round() + 1;
            // Each death takes a slot, and a round at most.
            if round + shared.slots() as u32 >= ROUNDS_MAX {
                return Err(Error::TooManyRounds { limit: ROUNDS_MAX });
            }
            (0..shared.partitions()).for_each(|partition| shared.assign(partition, shared.owner(partition), round));
            shared.set_step(number + 1, pieces.as_deref());
            self.open_step(round, pieces.map_or(tasks.len(), |pieces| pieces.len()));
            shared.ring_all();
        }
        unreachable!("a job runs out of rounds before it runs out of numbers")
    }

    /// True when every partition of the running step lies on the shelf (of a stage: in the checkpoint).
    pub(super) fn step_is_complete(&self) -> bool {
        let shared = self.work.shared;
        shared.is_mapped(shared.round()) && self.drained() == Some(Taint::None)
    }
}
