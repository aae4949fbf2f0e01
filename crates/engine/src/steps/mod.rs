//! Jobs in steps: the pairs that a step keeps on the shelf, and the step as its caller sees it.
//!
//! In: reduced partitions. Out: pieces that the tasks of the next step map. Workers write here, the coordinator reads.
//! A partition is published whole or not at all.

pub(crate) mod shelf_writer;
pub(crate) mod step;
