//! The shelf of a job in steps: how much it holds, in memory and in a file.

use crate::plan::splits::TASKS_MAX;

/// Sizes of an extent of the shelf: large enough that few are taken, small enough that a worker's last one wastes
/// little.
const EXTENT_BYTES_MIN: u64 = 64 << 10;
const EXTENT_BYTES_MAX: u64 = 1 << 20;
/// The number of extents for each reduce worker on a small shelf.
const EXTENTS_PER_WORKER: u64 = 16;
/// The largest number of extents: each may be a task.
const EXTENTS_MAX: u64 = TASKS_MAX / 2;

/// The extents of a shelf.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ShelfShape {
    pub extents: usize,
    /// How many of them, the last ones, lie in a file.
    pub file_extents: usize,
    pub extent_bytes: usize,
}

impl ShelfShape {
    /// Returns a shelf of at most `limit_bytes` in memory, and `file_bytes` in a file.
    pub fn of(limit_bytes: u64, reduce_workers: usize, file_bytes: u64) -> ShelfShape {
        let fair = limit_bytes / (reduce_workers as u64 * EXTENTS_PER_WORKER);
        let extent_bytes = fair.clamp(EXTENT_BYTES_MIN, EXTENT_BYTES_MAX).max(limit_bytes / EXTENTS_MAX);
        let extent_bytes = extent_bytes / 4096 * 4096;
        let in_memory = (limit_bytes / extent_bytes).min(EXTENTS_MAX);
        let in_file = (file_bytes / extent_bytes).min(EXTENTS_MAX - in_memory);
        ShelfShape {
            extents: (in_memory + in_file) as usize,
            file_extents: in_file as usize,
            extent_bytes: extent_bytes as usize,
        }
    }
}
