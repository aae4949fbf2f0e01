//! The setup that all workers of a job receive, whatever their program.

use gristmill_os::folder::Folder;

use crate::control::words::Shared;
use crate::data::seed::Seed;
use crate::input::tasks::Tasks;
use crate::output::parts::OpenTarget;
use crate::plan::job_plan::Plan;
use crate::plan::mode::Mode;
use crate::program::accumulator::Kind;
use crate::shared_output::array::Scopes;
use crate::testing::kill_points::{Deed, Moment};

/// The role of a worker, and its slot.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Role {
    pub slot: usize,
    pub maps: bool,
    /// The round whose pages make up the partitions that it reduces, if it reduces any.
    pub reduces: Option<u32>,
    /// The home that it is pinned to, if any; also its share, in a job that has several.
    pub home: Option<usize>,
}

/// The part of a job that its workers share, whatever their program: the same memory, before and after a fork.
///
/// The coordinator sees hardly more of a job than this, so most of it is compiled once, and not for each program. What
/// depends on the program is in [`Functions`](super::work::Functions).
pub(crate) struct Setup<'w> {
    pub plan: &'w Plan,
    pub mode: Mode<'w>,
    pub tasks: &'w Tasks,
    pub shared: &'w Shared<'w>,
    /// For tests: the kill points of the settings. Empty once the job has started over.
    pub kill_points: &'w [(usize, Moment, u64, Deed)],
    /// The file that reducers write the result to, if they do.
    pub target: Option<&'w OpenTarget<'w>>,
    pub outputs: &'w Scopes<'w>,
    /// The accumulators that map functions may add to.
    pub accumulators: &'w [Kind],
    /// The folder of the checkpoint, if the job has one.
    pub checkpoint: Option<&'w Folder>,
    /// The seed of all hashes.
    pub seed: &'w Seed,
    pub start_ns: u64,
    /// How often the job has begun anew.
    pub anew: u32,
    /// The bytes that the pairs of two steps in a row may take, in memory and on disk.
    pub kept_bytes_max: u64,
}

impl Setup<'_> {
    /// Returns the number of input bytes in a task of the current step.
    pub fn task_bytes(&self, task: usize) -> u64 {
        let of_input = || self.tasks.bytes(self.shared.input_task(task));
        self.shared.piece(task).map_or_else(of_input, |piece| u64::from(piece.bytes))
    }

    /// Returns the number of the reducer in `slot`, which is that of its first partition.
    pub fn reducer_in(&self, slot: usize) -> usize {
        (0..self.plan.reduce_workers).find(|partition| self.shared.owner(*partition) == slot).expect("it reduces")
    }
}
