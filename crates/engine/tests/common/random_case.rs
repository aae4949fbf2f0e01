//! Random jobs.

use std::time::Duration;

use gristmill::Order;
use gristmill::options::{Buffer, Combining, Exchange, PagePolicy};

use super::{Case, Random, random_text};

/// Makes a job and its text from `seed`. If it `spills`, they do not fit in the memory of the job.
pub fn random_case(seed: u64, spills: bool) -> (Case, Vec<u8>) {
    let mut random = Random(seed);
    let count = random.below(3) > 0;
    let split = (random.below(2) == 0).then(|| (1 + random.below(3) as usize, 1 + random.below(3) as usize));
    // Some results are larger than all pages of a worker together.
    let large = random.below(6) == 0 || spills;
    let bytes = if large { 2_000_000 } else { random.below(120_000) as usize };
    let vocabulary = if large { 1 << 40 } else { 1 << random.below(14) };
    let giants = random.below(4) == 0;
    let word_bytes = 4 + random.below(60);
    let text = random_text(&mut random, bytes, vocabulary, word_bytes, giants);
    let combine = random.pick(&[Combining::Both, Combining::Both, Combining::Map, Combining::Reduce, Combining::Off]);
    let combines_in_map = count && matches!(combine, Combining::Both | Combining::Map);
    let buffer = random.pick(&[Buffer::Auto, Buffer::Array, Buffer::Hash]);
    let splits = 1 + random.below(80);
    let case = Case {
        count,
        // Now and then many more than there are processors, most of which are started when they are sent something.
        workers: if random.below(12) == 0 { 40 } else { 1 + random.below(7) as usize },
        split,
        exchange: random.pick(&[Exchange::Pipelined, Exchange::Pipelined, Exchange::Barrier]),
        // The hash buffer is for values that combine in map; the array buffer combines none there, so it is refused
        // for such alone.
        buffer: match buffer {
            Buffer::Hash if !combines_in_map => Buffer::Array,
            Buffer::Array if count && combine == Combining::Map => Buffer::Hash,
            buffer => buffer,
        },
        combine,
        pages: random.pick(&[PagePolicy::Reuse, PagePolicy::Reuse, PagePolicy::Fresh, PagePolicy::Prealloc]),
        page_bytes: 4096 * random.pick(&[1, 1, 2, 8]),
        split_bytes: 1 + text.len() as u64 / splits,
        order: random.pick(&[Order::ByKey, Order::ByValueDescending, Order::Unordered]),
        limit: if random.below(5) == 0 { 1 + random.below(20) as usize } else { usize::MAX },
        retries: random.pick(&[0, 2, 2, 5]) as u32,
        map_pause: Duration::from_micros(random.pick(&[0, 0, 100, 1000])),
        take_pause: Duration::from_micros(random.pick(&[0, 0, 0, 1000])),
        // With progress, the coordinator looks ten times a second, which would hide a lost wake-up.
        progress: random.below(4) == 0,
        steps: if random.below(3) == 0 { 1 + random.below(if spills { 3 } else { 7 }) as u32 } else { 0 },
        least_memory: random.below(3) == 0 || spills,
        deterministic: random.below(6) == 0,
        sink: random.below(4) == 0,
        timeline: random.below(2) == 0,
        by_node: random.below(4) == 0,
        task_timeout: None,
        overwrite: None,
    };
    (case, text)
}
