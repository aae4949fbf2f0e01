//! Splits and chunks: the sizes of what a worker maps in one task, and of what it reads at a time.

use crate::plan::known::Known;
use crate::plan::reason::Reason::{self, Asked, Because};
use crate::plan::sample::Sample;

/// The number of bytes that a worker reads at a time: input and combining table fit in its second-level cache together.
pub(crate) const CHUNK_BYTES: usize = 256 << 10;
const SPLIT_BYTES_MIN: u64 = 256 << 10;
pub(crate) const SPLIT_BYTES_MAX: u64 = 2 << 20;
/// The approximate shortest and longest time of a task, if the sample says how long a byte takes. Shorter tasks cost
/// more to hand out than they balance; longer ones leave workers waiting for the last.
const TASK_NS: [f64; 2] = [250e3, 50e6];
/// The smallest split for a slow map function.
const SLOW_SPLIT_BYTES_MIN: u64 = 4 << 10;
/// The number of splits for each worker that maps at once: enough that the last ones to finish wait little for each
/// other.
pub(crate) const SPLITS_PER_WORKER: u64 = 16;
/// The largest number of tasks, for which the shared words have room.
pub(crate) const TASKS_MAX: u64 = 1 << 16;

/// Chooses the size of a split.
pub(crate) fn split_bytes(known: &Known<'_>, map_at_once: usize) -> (u64, Reason) {
    let Known { settings, input_bytes, sample, .. } = *known;
    let bytes = settings.split_bytes.unwrap_or_else(|| match settings.deterministic {
        true => SPLIT_BYTES_MAX,
        false => {
            let [least, most] = split_limits(sample);
            (input_bytes / (map_at_once as u64 * SPLITS_PER_WORKER)).clamp(least, most)
        }
    });
    let split_bytes = bytes.max(input_bytes / TASKS_MAX).max(1);
    let why = match (settings.split_bytes, sample) {
        (Some(asked), _) if asked == split_bytes => Asked,
        (Some(asked_bytes), _) => Reason::ManyTasks { asked_bytes, split_bytes },
        (None, _) if settings.deterministic => {
            Because("values combine within a task, so its end must not depend on the workers")
        }
        (None, Some(sample)) => Reason::TaskTime { task_ns: sample.map_ns(split_bytes.min(input_bytes)) },
        (None, None) => Because("enough of them that the last ones wait little for each other"),
    };
    (split_bytes, why)
}

/// Returns the sizes of the smallest and the largest split.
fn split_limits(sample: Option<&Sample>) -> [u64; 2] {
    let Some(Sample { ns_per_byte, .. }) = sample.filter(|sample| sample.ns_per_byte > 0.0) else {
        return [SPLIT_BYTES_MIN, SPLIT_BYTES_MAX];
    };
    let [least, most] = TASK_NS.map(|task_ns| (task_ns / ns_per_byte) as u64);
    let least = least.clamp(SLOW_SPLIT_BYTES_MIN, SPLIT_BYTES_MIN);
    [least, most.clamp(least, SPLIT_BYTES_MAX)]
}

/// Chooses the number of bytes that a worker reads at a time.
pub(crate) fn chunk_bytes(known: &Known<'_>) -> (usize, Reason) {
    let learned = known.learned.and_then(|learned| Some((learned.best.chunk_bytes?, Reason::History(learned))));
    let (bytes, why) = match (known.settings.chunk_bytes, learned) {
        (Some(bytes), _) => (bytes, Asked),
        (None, Some(learned)) => learned,
        (None, None) => (CHUNK_BYTES, Because("input and combining table share the second-level cache")),
    };
    (bytes.max(1), why)
}
