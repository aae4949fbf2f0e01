//! The state of a job, the number of jobs in each, and the limits on those that run.

use super::halt::Halt;
use super::outcome::Outcome;

/// The state of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// It has not begun, or will be tried again.
    Waiting,
    /// It runs.
    Running,
    /// It has ended and is not tried again.
    Ended(Outcome),
    /// It does not run, because the job at this place failed.
    Skipped(usize),
}

/// The limits on jobs that run at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// The number of jobs at the same time.
    pub slots: usize,
    /// The memory of all jobs at the same time.
    pub memory_bytes: u64,
    /// When no further jobs begin.
    pub halt: Halt,
}

/// The number of jobs in each state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Jobs that wait.
    pub waiting: usize,
    /// Jobs that run.
    pub running: usize,
    /// Jobs that succeeded.
    pub succeeded: usize,
    /// Jobs that failed.
    pub failed: usize,
    /// Jobs that were skipped.
    pub skipped: usize,
    /// Those that had succeeded or failed before this queue, and did not run in it. They are counted above, too.
    pub ended_before: usize,
}
