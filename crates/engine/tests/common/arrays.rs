//! Shared by the tests of shared outputs: input of numbers that are their own indexes, and functions of them.

use gristmill::types::Plain;
use gristmill::{Chunk, Input, Isolation, Job, MapReduce, Records, SharedOutput};

use super::Random;

pub const BOTH: [Isolation; 2] = [Isolation::Process, Isolation::Thread];

/// The workers of a job.
#[derive(Clone, Copy)]
pub enum Team {
    /// One worker.
    Alone,
    /// Two that both map and reduce.
    Fused,
    /// Two that map and one that reduces.
    Chunk,
}

impl Team {
    pub fn set<J: MapReduce>(self, job: Job<'_, J>) -> Job<'_, J> {
        match self {
            Team::Alone => job.workers(1),
            Team::Fused => job.workers(2),
            Team::Chunk => job.map_workers(2).reduce_workers(1),
        }
        .map_at_once(2)
    }
}

/// Makes a job over the numbers below `count`, `per_task` of them in each task.
pub fn numbers<J: MapReduce>(program: &J, count: u64, per_task: u64) -> Job<'_, J> {
    let bytes: Vec<u8> = (0..count).flat_map(u64::to_le_bytes).collect();
    let input = Input::bytes("numbers", &bytes).expect("in memory");
    Job::new(program, input).records(Records::Fixed(8)).split_bytes(8 * per_task).page_bytes(4096)
}

/// Returns the numbers in a split.
pub fn numbers_of(chunk: &Chunk<'_>) -> Vec<u64> {
    chunk.bytes().as_chunks::<8>().0.iter().map(|eight| u64::from_le_bytes(*eight)).collect()
}

pub fn output<T: Plain>(name: &str, len: usize) -> SharedOutput<T> {
    SharedOutput::new(name, len).expect("mapped")
}

/// Returns a different value for each number, never 0.
pub fn scramble(number: u64) -> u64 {
    Random(number).next() | 1
}
