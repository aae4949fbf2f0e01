//! The state of a job with a checkpoint: its log, and the stages that are done.

use crate::checkpoint::log::{Checkpoint, Facts};

/// The progress of a job with a checkpoint.
pub(super) struct Stages {
    pub log: Checkpoint,
    /// The number of input tasks that are done.
    pub done: usize,
    /// Whether everything is mapped.
    pub is_last: bool,
    /// For each reducer, whether its result is recorded.
    pub results: Vec<bool>,
    pub every_ns: u64,
}

impl Stages {
    /// Continues where `facts` end.
    pub fn new(log: Checkpoint, facts: &Facts, reducers: usize, every_ns: u64) -> Stages {
        let results = (0..reducers).map(|reducer| facts.result(reducer).is_some()).collect();
        Stages { log, done: facts.tasks, is_last: false, results, every_ns }
    }
}
