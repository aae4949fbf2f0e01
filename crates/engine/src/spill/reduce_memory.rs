//! The memory of a reducer, divided by use.

/// The limits for each use of a reducer's memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReduceMemory {
    /// Bytes of pairs and of the rows that sort them.
    pub pairs_bytes: usize,
    /// Bytes of copied pages whose epoch is still open.
    pub held_bytes: usize,
    /// The size of a block of a run.
    pub block_bytes: usize,
    /// The number of streams merged at once, including the pairs in memory.
    pub streams_max: usize,
}

impl ReduceMemory {
    /// Returns the size above which the pairs are spilled even after they were combined.
    pub fn nearly_full_bytes(self) -> usize {
        self.pairs_bytes / 4 * 3
    }
}
