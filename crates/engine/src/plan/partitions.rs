//! Partitions: how many there are.

use crate::data::order::Order;
use crate::error::{Error, Result};
use crate::plan::known::Known;
use crate::plan::reason::Reason::{self, Asked, Because};
use crate::plan::settings::Buffer;

/// The default number of partitions: enough that the keys of one partition fit in the second-level cache for millions
/// of keys.
const PARTITIONS_MIN: usize = 64;
/// The least number of partitions of each reducer where pairs are sent as they are: a reducer that has a partition with
/// a heavy key gets fewer others.
const PER_REDUCER_AS_SENT: usize = 8;
/// The largest number of partitions: each has an open page in every worker.
const PARTITIONS_MAX: usize = 1 << 12;
/// The least number of keys in each partition of a dense buffer. Each flush sends a page to every partition, which
/// should not be nearly empty.
const DENSE_KEYS_PER_PARTITION: usize = 64;

/// Chooses the number of partitions of a share: a power of two.
pub(crate) fn partitions(known: &Known<'_>, buffer: Buffer, reduce_workers: usize) -> Result<(usize, Reason)> {
    let (partitions, why) = match (known.settings.partitions, buffer, known.program.keys) {
        (Some(asked), ..) if asked == 0 || asked > PARTITIONS_MAX => {
            return Err(Error::Setting(format!(
                "{asked} partitions were asked for; a job has between 1 and {PARTITIONS_MAX}"
            )));
        }
        (Some(asked), ..) if asked < reduce_workers => {
            (reduce_workers, Reason::FewPartitions { asked, reduce_workers })
        }
        (Some(asked), ..) => (asked, Asked),
        (None, Buffer::Dense, Some(keys)) => (
            PARTITIONS_MIN.min(keys.div_ceil(DENSE_KEYS_PER_PARTITION)).max(reduce_workers * 2),
            Because("several for each reducer, and no more than the keys can fill"),
        ),
        (None, ..) => {
            let why = "what is reduced of one stays in the cache for millions of keys, and each reducer has several";
            let per_reducer = if buffer == Buffer::Array { PER_REDUCER_AS_SENT } else { 2 };
            (PARTITIONS_MIN.max(reduce_workers * per_reducer), Because(why))
        }
    };
    Ok((partitions.next_power_of_two(), why))
}

/// Returns whether partitions are ranges of pairs in the order of the result, provided that cuts between them are
/// found.
pub(crate) fn are_ranges(known: &Known<'_>) -> bool {
    let settings = known.settings;
    // Ranges are cut by a sample, but a job that is continued must be cut as it was before.
    known.program.passes && settings.order == Order::ByKey && settings.limit.is_none() && settings.checkpoint.is_none()
}
