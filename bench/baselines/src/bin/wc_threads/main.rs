//! Word count by hand: the program with threads and without a framework that Gristmill is compared with.
//!
//! 1. Threads claim chunks of the file from a shared counter, each aligned to white space, and read them into one
//!    reused buffer per thread.
//! 2. Token boundaries come from bit masks (edges.rs). Tokens are hashed in batches, their slots prefetched, then
//!    counted in a table that fits the core's own cache (table.rs).
//! 3. A full table is emptied into 256 partitions by the highest hash bits, so it never outgrows the cache, whatever
//!    the number of distinct words.
//! 4. Threads claim partitions and add them up, again in tables that fit the cache. Each keeps its most frequent
//!    words.

mod edges;
mod memory;
mod partition;
mod table;

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use baselines::words::{Args, Tokens, print_top};
use partition::{PARTITION_BITS, PARTITIONS, Partitions};
use table::{SHORT, Table};

const CHUNK: usize = 256 << 10;
/// The amount of text whose edges are listed at a time, so that the list stays in the first-level cache.
const STRETCH: usize = 8 << 10;
const BATCH: usize = 64;
/// 2^16 slots of 32 bytes, the size of the second-level cache; measured best of 2^14 to 2^17.
const TABLE_BITS: u32 = 16;

fn main() -> std::io::Result<()> {
    let args = Args::parse();
    let file = File::open(&args.path)?;
    let size = file.metadata()?.len() as usize;
    let (next_chunk, next_partition) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let mapped = Barrier::new(args.threads);
    let filled: Vec<std::sync::OnceLock<Partitions>> = (0..args.threads).map(|_| Default::default()).collect();

    let results: Vec<std::io::Result<Summary>> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..args.threads)
            .map(|me| {
                let (filled, mapped, next_chunk, next_partition) = (&filled, &mapped, &next_chunk, &next_partition);
                let (file, tokens, top) = (&file, args.tokens, args.top);
                scope.spawn(move || {
                    let counted = count(file, size, tokens, next_chunk);
                    let error = match counted {
                        Ok(partitions) => {
                            filled[me].set(partitions).err().map(|_| unreachable!("one thread, one place"))
                        }
                        Err(error) => Some(error),
                    };
                    mapped.wait();
                    match error {
                        Some(error) => Err(error),
                        None => Ok(merge(filled, next_partition, top)),
                    }
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("no thread panics")).collect()
    });

    let summaries = results.into_iter().collect::<std::io::Result<Vec<_>>>()?;
    let distinct = summaries.iter().map(|s| s.distinct).sum();
    let total = summaries.iter().map(|s| s.total).sum();
    let words = summaries.iter().flat_map(|s| &s.best).map(|(word, count)| (&word[..], *count));
    print_top(distinct, total, words, args.top)
}

/// Steps 1 to 3 in one thread.
fn count(file: &File, size: usize, tokens: Tokens, next_chunk: &AtomicUsize) -> std::io::Result<Partitions> {
    let mut counter = Counter::new();
    let mut buffer = Vec::new();
    loop {
        let start = next_chunk.fetch_add(1, Relaxed) * CHUNK;
        if start >= size {
            return Ok(counter.finish());
        }
        let text = read_chunk(file, start, size, &mut buffer)?;
        match tokens {
            Tokens::Alpha => counter.count_with_cpu::<true>(&mut buffer, text),
            Tokens::Space => counter.count_with_cpu::<false>(&mut buffer, text),
        }
    }
}

/// Reads the chunk that starts at `start` and returns the range of its text in the buffer. A run of non-white bytes
/// belongs to the chunk in which it starts. White space follows the text up to the next whole block, and 16 bytes
/// more.
fn read_chunk(file: &File, start: usize, size: usize, buffer: &mut Vec<u8>) -> std::io::Result<std::ops::Range<usize>> {
    const MORE: usize = 512;
    const PADDING: usize = edges::BLOCK + SHORT;
    let from = start.saturating_sub(1);
    let end = (start + CHUNK).min(size) - from;
    let mut have = 0;
    let mut want = (end + MORE).min(size - from);
    let stop = loop {
        if buffer.len() < want + PADDING {
            buffer.resize(want + PADDING, b' ');
        }
        while have < want {
            match file.read_at(&mut buffer[have..want], (from + have) as u64)? {
                0 => {
                    return Err(std::io::Error::other("the file was truncated while it was read"));
                }
                n => have += n,
            }
        }
        // The byte before `end` belongs to this chunk. If it is not white, its run continues into the next chunk.
        match buffer[end - 1..have].iter().position(u8::is_ascii_whitespace) {
            Some(white) => break end - 1 + white,
            None if from + have == size => break have,
            None => want = (have + have).min(size - from),
        }
    };
    buffer[stop..stop + PADDING].fill(b' ');
    let first = match start {
        0 => 0,
        _ => buffer[..stop].iter().position(u8::is_ascii_whitespace).unwrap_or(stop),
    };
    Ok(first..stop)
}

/// One thread's table, and the partitions into which it is emptied.
struct Counter {
    table: Table,
    long_keys: LongKeys,
    partitions: Partitions,
    edges: Vec<u32>,
}

/// A token whose slot is being prefetched.
#[derive(Clone, Copy, Default)]
struct Pending {
    key: [u64; 2],
    hash: u64,
    len: u32,
}

impl Counter {
    fn new() -> Self {
        Self {
            table: Table::new(TABLE_BITS, 0),
            long_keys: LongKeys::default(),
            partitions: Partitions::new(),
            edges: Vec::new(),
        }
    }

    /// Runs the same code compiled for the processor's instructions.
    fn count_with_cpu<const ALPHA: bool>(&mut self, buffer: &mut [u8], text: std::ops::Range<usize>) {
        #[cfg(target_arch = "x86_64")]
        {
            #[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
            fn modern<const ALPHA: bool>(counter: &mut Counter, buffer: &mut [u8], text: std::ops::Range<usize>) {
                counter.count_text::<ALPHA>(buffer, text);
            }
            if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("bmi2") {
                // SAFETY: the processor has these instructions (BMI2 came with the others or later).
                return unsafe { modern::<ALPHA>(self, buffer, text) };
            }
        }
        self.count_text::<ALPHA>(buffer, text);
    }

    #[inline(always)]
    fn count_text<const ALPHA: bool>(&mut self, buffer: &mut [u8], text: std::ops::Range<usize>) {
        let mut carry = edges::Carry::default();
        let mut at = text.start;
        self.edges.clear();
        while at < text.end {
            let stop = (at + STRETCH).min(at + (text.end - at).next_multiple_of(edges::BLOCK));
            edges::find::<ALPHA>(&buffer[at..stop], at, &mut carry, &mut self.edges);
            at = stop;
            let mut found = std::mem::take(&mut self.edges);
            let (pairs, unfinished) = found.as_chunks::<2>();
            for batch in pairs.chunks(BATCH) {
                if !self.table.has_room(BATCH) {
                    self.empty_table();
                }
                self.count_batch::<ALPHA>(buffer, batch);
            }
            // A token that crosses into the next stretch keeps its start in the list.
            let start = unfinished.first().copied();
            found.clear();
            found.extend(start);
            self.edges = found;
        }
        // A token can end exactly at the last block, because the padding after it is white.
        if let Some(&start) = self.edges.first() {
            if !self.table.has_room(1) {
                self.empty_table();
            }
            self.count_batch::<ALPHA>(buffer, &[[start, at as u32]]);
        }
    }

    #[inline(always)]
    fn count_batch<const ALPHA: bool>(&mut self, buffer: &mut [u8], batch: &[[u32; 2]]) {
        let mut pending = [Pending::default(); BATCH];
        for (pending, &[start, end]) in pending.iter_mut().zip(batch) {
            let len = (end - start) as usize;
            let (key, hash) = if len <= SHORT {
                // SAFETY: 16 readable bytes follow every token, inside the buffer or its padding.
                let bytes = unsafe { buffer.as_ptr().add(start as usize).cast::<[u64; 2]>().read_unaligned() };
                let mut key = [bytes[0] & MASKS[len][0], bytes[1] & MASKS[len][1]];
                if ALPHA {
                    key = key.map(upper);
                }
                (key, hash_short(key))
            } else {
                let token = &mut buffer[start as usize..end as usize];
                if ALPHA {
                    token.make_ascii_uppercase();
                }
                ([start as u64, 0], hash_long(token))
            };
            self.table.prefetch((hash >> 32) as u32);
            *pending = Pending { key, hash, len: len as u32 };
        }
        for pending in &pending[..batch.len()] {
            let hash = (pending.hash >> 32) as u32;
            if pending.len as usize <= SHORT {
                self.table.add_short(pending.key, hash, pending.len, 1);
            } else {
                let token = &buffer[pending.key[0] as usize..][..pending.len as usize];
                self.table.add_long(token, pending.hash, hash, 1, |bytes| self.long_keys.keep(bytes));
            }
        }
    }

    fn empty_table(&mut self) {
        for slot in self.table.iter() {
            self.partitions.push(slot);
        }
        self.table.clear();
        self.long_keys.clear();
    }

    fn finish(mut self) -> Partitions {
        self.empty_table();
        self.partitions
    }
}

/// The bytes of keys that do not fit in a slot. They stay in place until the table is emptied.
#[derive(Default)]
struct LongKeys {
    blocks: Vec<Vec<u8>>,
    current: usize,
}

impl LongKeys {
    const BLOCK: usize = 256 << 10;

    fn keep(&mut self, bytes: &[u8]) -> *const u8 {
        loop {
            let Some(block) = self.blocks.get_mut(self.current) else {
                self.blocks.push(Vec::with_capacity(Self::BLOCK.max(bytes.len())));
                continue;
            };
            if block.capacity() - block.len() >= bytes.len() {
                let start = block.len();
                block.extend_from_slice(bytes);
                return block[start..].as_ptr();
            }
            self.current += 1;
        }
    }

    fn clear(&mut self) {
        self.blocks.iter_mut().for_each(Vec::clear);
        self.current = 0;
    }
}

/// One thread's results from the partitions it added up.
#[derive(Default)]
struct Summary {
    distinct: usize,
    total: u64,
    best: Vec<(Vec<u8>, u64)>,
}

/// Step 4 in one thread.
fn merge(filled: &[std::sync::OnceLock<Partitions>], next: &AtomicUsize, top: usize) -> Summary {
    let mut summary = Summary::default();
    let mut least = 0;
    let mut table = Table::new(10, PARTITION_BITS);
    loop {
        let partition = next.fetch_add(1, Relaxed);
        if partition >= PARTITIONS {
            return summary;
        }
        for partitions in filled.iter().filter_map(|one| one.get()) {
            partitions.add_to(partition, &mut table);
        }
        summary.distinct += table.len();
        for slot in table.iter() {
            summary.total += slot.count;
            if slot.count >= least {
                summary.best.push((slot.bytes().to_vec(), slot.count));
                if summary.best.len() > 4 * top {
                    summary.best.sort_unstable_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
                    summary.best.truncate(top);
                    least = summary.best.last().map_or(u64::MAX, |last| last.1);
                }
            }
        }
        table.clear();
    }
}

/// Masks for the first `len` bytes of 16.
const MASKS: [[u64; 2]; SHORT + 1] = {
    let mut masks = [[0; 2]; SHORT + 1];
    let mut len = 0;
    while len <= SHORT {
        let mask = if len == 16 { u128::MAX } else { (1u128 << (8 * len)) - 1 };
        masks[len] = [mask as u64, (mask >> 64) as u64];
        len += 1;
    }
    masks
};

/// Converts letters and apostrophes to upper case: letters have bit 0x40, and lower-case ones also 0x20.
#[inline(always)]
fn upper(bytes: u64) -> u64 {
    bytes & !((bytes & 0x4040_4040_4040_4040) >> 1)
}

const SEEDS: [u64; 2] = [0x9e37_79b9_7f4a_7c15, 0xd6e8_feb8_6659_fd93];

#[inline(always)]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

#[inline(always)]
fn hash_short(key: [u64; 2]) -> u64 {
    fold(key[0] ^ SEEDS[0], key[1] ^ SEEDS[1])
}

#[inline(always)]
fn hash_long(bytes: &[u8]) -> u64 {
    // The last 16 bytes overlap the previous ones, so that there is no remainder; there are more than 16.
    let (blocks, _) = bytes.as_chunks::<16>();
    let last = bytes.last_chunk::<16>().expect("longer than 16");
    let mut hash = bytes.len() as u64;
    for block in blocks.iter().chain(std::iter::once(last)) {
        let block = u128::from_le_bytes(*block);
        hash = fold(block as u64 ^ SEEDS[0] ^ hash, (block >> 64) as u64 ^ SEEDS[1]);
    }
    hash
}
