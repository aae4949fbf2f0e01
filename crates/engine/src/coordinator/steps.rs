//! Jobs in steps.
//!
//! Reducers put what they have drained on the shelf. When everything is drained and nothing is tainted, the step is
//! complete. The next step starts with a round of its own, for all partitions:
//!
//! ```text
//!  round k open --all tasks committed--> mapped --all reducers drained, and kept--> taint? --no--> control: what next?
//!       ^                                                                             | yes          |          |
//!       +------------------- round k + 1: the same step, for tainted partitions ------+              |        stop
//!       +------------------- round k + 1: the next step, for all partitions -------------------------+
//! ```
//!
//! While step n runs, the shelf holds its input (if it maps the pairs of step n - 1) and what its reducers have put
//! there so far. The input stays until step n is complete, because any of its partitions may have to be remade.

use gristmill_page::{Overwritten, Piece, Reader};

use crate::control::claims::ROUNDS_MAX;
use crate::control::words::COORDINATOR;
use crate::coordinator::state::{Coordinator, Taint};
use crate::error::{Error, Result, overwritten};
use crate::output::timeline::Event;
use crate::program::map_reduce::MapReduce;
use crate::steps::shelf_writer::before;
use crate::steps::step::{Next, Step};
use crate::worker::setup::Setup;

impl Coordinator<'_, '_, '_, '_> {
    /// Runs a job in steps. Returns the number of pairs of its last step, and the time at which all workers had been
    /// started.
    pub(super) fn conduct_steps<J: MapReduce>(
        &mut self,
        control: &mut dyn FnMut(&mut Step<'_, J>) -> Next,
    ) -> Result<(u64, u64)> {
        let Setup { shared, tasks, outputs, seed, .. } = *self.setup;
        let started_ns = self.start_all()?;
        // The coordinator reads from the shelf.
        let _ends = shared.pages.claim(COORDINATOR);
        let shelf = shared.pages.shelf();
        // What the step maps, if it maps pairs.
        let mut mapped: Vec<Piece> = Vec::new();
        for number in 0.. {
            // 1. Run the step. No worker is finished before the last step is complete.
            self.complete_step()?;
            // All tasks are committed, so no worker is inside one.
            let settled = outputs.settle()?;
            let reader = shelf.reader(COORDINATOR);
            let kept = self.check_kept(&reader, &mapped)?;
            let totals = self.accumulate()?;
            let mut step = Step::new(shared, &reader, &settled, &totals, seed, number);
            let pairs = step.pairs();
            self.kept.delivered = true;
            // 2. Ask what the next step maps. It goes to the shelf as the generation after its number. Nothing older is
            // needed.
            let next = control(&mut step);
            let pieces: Option<Vec<Piece>> = match next {
                Next::Stop => {
                    // They are in the totals already.
                    shared.clear_accumulated();
                    return Ok((pairs, started_ns));
                }
                Next::Input => None,
                Next::Pairs => Some(kept),
            };
            drop((reader, settled));
            let cleared = shelf.clear(if pieces.is_some() { number + 1 } else { number + 2 });
            cleared.map_err(|Overwritten(what)| overwritten(None, what))?;
            shared.clear_accumulated();
            // 3. Open a round for all partitions.
            let round = shared.round() + 1;
            // Each death takes a slot, and at most one round.
            if round + shared.slots as u32 >= ROUNDS_MAX {
                return Err(Error::TooManyRounds { limit: ROUNDS_MAX });
            }
            (0..shared.partitions()).for_each(|partition| shared.assign(partition, shared.owner(partition), round));
            shared.set_step(number + 1, pieces.as_deref());
            self.kept.mark(self.setup.start_ns, Event::Step(number + 1));
            self.open_step(round, pieces.as_ref().map_or(tasks.len(), Vec::len));
            mapped = pieces.unwrap_or_default();
            shared.ring_all();
        }
        unreachable!("a job runs out of rounds before it runs out of numbers")
    }

    /// Returns the pieces of all partitions, after checking that they are on the shelf and overlap neither with each
    /// other nor with those that the step has `mapped`.
    fn check_kept(&self, reader: &Reader<'_>, mapped: &[Piece]) -> Result<Vec<Piece>> {
        let shared = self.setup.shared;
        let mut all = Vec::new();
        for partition in 0..shared.partitions() {
            shared.check_partition(partition)?;
            let mut next = shared.kept(partition).last;
            while let Some(piece) = next {
                next = before(reader, piece).map_err(|Overwritten(what)| overwritten(None, what))?;
                all.push(piece);
            }
        }
        let mut places: Vec<(u32, u32, u32)> =
            all.iter().chain(mapped).map(|piece| (piece.extent, piece.start, piece.bytes)).collect();
        places.sort_unstable();
        let meet = |two: &[(u32, u32, u32)]| two[0].0 == two[1].0 && two[1].1 - two[0].1 < two[0].2;
        match places.windows(2).any(meet) {
            true => Err(overwritten(None, "an extent of the shelf was taken twice")),
            false => Ok(all),
        }
    }

    /// Watches the workers until the step is complete, and checks what they have received.
    pub(super) fn complete_step(&mut self) -> Result<()> {
        while !self.step_is_complete() {
            let announced = self.setup.shared.announced();
            self.watch(&|_| false)?;
            if !self.step_is_complete() {
                self.sleep(announced, &mut || false);
            }
        }
        self.check_received()
    }

    /// Returns whether every partition of the current step is on the shelf, or in the checkpoint for a stage.
    fn step_is_complete(&self) -> bool {
        let shared = self.setup.shared;
        shared.is_mapped(shared.round()) && self.drained() == Some(Taint::None)
    }
}
