//! The memory of a reducer, and what of it is for what.

/// How much of what a reducer may have.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReduceMemory {
    /// Pairs, and the rows that sort them.
    pub pairs_bytes: usize,
    /// Copies of pages whose epoch is still open.
    pub held_bytes: usize,
    /// A block of a run.
    pub block_bytes: usize,
    /// Streams that are merged at once, memory being one of them.
    pub streams_max: usize,
    /// Pairs that are more go to disk; if not, they end the job.
    pub spills: bool,
}

impl ReduceMemory {
    /// Pairs that take more than this after they were combined have outgrown their room.
    pub fn nearly_full_bytes(self) -> usize {
        self.pairs_bytes / 4 * 3
    }
}
