//! Jobs in steps: what a step leaves on the shelf, and what its caller sees of it.
//!
//! In: reduced partitions. Out: pieces that the tasks of the next step map. Workers write here, the coordinator reads. A partition is
//! published whole or not at all.

pub(crate) mod shelf_writer;
pub(crate) mod step;
