//! Group-by-sum of pairs of 32-bit numbers by hand. Pairs are divided by hash into parts whose tables fit the cache
//! (radix partitioning), then each part is summed. Prints the ten keys with the largest sums.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use baselines::{arguments, blocks, fail};

/// The number of pairs that a thread collects for a part before it writes them out together: two cache lines.
const STAGED: usize = 16;

/// The partitioned pairs of one thread. A pair is one word: the value in the high half, the key in the low half.
struct Parts {
    staged: Vec<[u64; STAGED]>,
    filled: Vec<u8>,
    pairs: Vec<Vec<u64>>,
}

impl Parts {
    fn new(count: usize) -> Parts {
        Parts { staged: vec![[0; STAGED]; count], filled: vec![0; count], pairs: vec![Vec::new(); count] }
    }

    fn flush(&mut self) {
        for (part, filled) in self.filled.iter_mut().enumerate() {
            self.pairs[part].extend_from_slice(&self.staged[part][..usize::from(*filled)]);
            *filled = 0;
        }
    }
}

fn hash(key: u32) -> u32 {
    key.wrapping_mul(0x9e37_79b1)
}

/// Sums by key, with open addressing. Keys are stored plus one, so that 0 is an empty slot.
struct Table {
    slots: Vec<(u64, u64)>,
    keys: usize,
}

impl Table {
    fn new() -> Table {
        Table { slots: vec![(0, 0); 1 << 10], keys: 0 }
    }

    #[inline(always)]
    fn add(&mut self, key: u32, value: u64) {
        let mask = self.slots.len() - 1;
        let mut at = (u64::from(key).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20) as usize & mask;
        loop {
            let slot = &mut self.slots[at];
            if slot.0 == u64::from(key) + 1 {
                slot.1 += value;
                return;
            }
            if slot.0 == 0 {
                *slot = (u64::from(key) + 1, value);
                self.keys += 1;
                if self.keys > self.slots.len() / 2 {
                    self.grow();
                }
                return;
            }
            at = (at + 1) & mask;
        }
    }

    #[cold]
    fn grow(&mut self) {
        let twice = vec![(0, 0); self.slots.len() * 2];
        self.keys = 0;
        for (key, sum) in std::mem::replace(&mut self.slots, twice) {
            if key != 0 {
                self.add((key - 1) as u32, sum);
            }
        }
    }

    fn clear(&mut self) {
        self.slots.fill((0, 0));
        self.keys = 0;
    }

    /// Merges its sums into `best` and keeps the ten largest.
    fn rank(&self, best: &mut Vec<(u64, u32)>) {
        let least = best.get(9).map_or(0, |row| row.0);
        best.extend(
            self.slots.iter().filter(|slot| slot.0 != 0 && slot.1 >= least).map(|slot| (slot.1, (slot.0 - 1) as u32)),
        );
        best.sort_unstable_by_key(|&(sum, key)| (std::cmp::Reverse(sum), key));
        best.truncate(10);
    }
}

fn main() -> std::io::Result<()> {
    let usage = "group_by_hand FILE [--threads N] [--bits OF-THE-PARTS]";
    let ([path], [threads, bits]) = arguments(usage, [("--threads", "2"), ("--bits", "8")]);
    let threads = threads.parse().unwrap_or_else(|_| fail("--threads needs a number"));
    let bits: u32 = bits.parse().unwrap_or_else(|_| fail("--bits needs a number"));
    let mut best = Vec::new();
    if bits == 0 {
        // Few enough keys that each thread sums all of them.
        let tables = blocks::each(&path, 0, 256 << 10, threads, Table::new, |table, block| {
            for pair in block.as_chunks::<8>().0 {
                let pair = u64::from_le_bytes(*pair);
                table.add(pair as u32, pair >> 32);
            }
        })?;
        let mut all = Table::new();
        for (key, sum) in tables.iter().flat_map(|table| &table.slots).filter(|slot| slot.0 != 0) {
            all.add((key - 1) as u32, *sum);
        }
        all.rank(&mut best);
    } else {
        let new = || Parts::new(1 << bits);
        let mut divided = blocks::each(&path, 0, 256 << 10, threads, new, |parts, block| {
            for pair in block.as_chunks::<8>().0 {
                let pair = u64::from_le_bytes(*pair);
                let part = (hash(pair as u32) >> (32 - bits)) as usize;
                let filled = usize::from(parts.filled[part]);
                parts.staged[part][filled % STAGED] = pair;
                parts.filled[part] = filled as u8 + 1;
                if filled + 1 == STAGED {
                    parts.pairs[part].extend_from_slice(&parts.staged[part]);
                    parts.filled[part] = 0;
                }
            }
        })?;
        divided.iter_mut().for_each(Parts::flush);
        let next = AtomicUsize::new(0);
        let ranked = std::thread::scope(|scope| {
            let work = || {
                let (mut table, mut best) = (Table::new(), Vec::new());
                loop {
                    let part = next.fetch_add(1, Relaxed);
                    if part >= 1 << bits {
                        return best;
                    }
                    for pair in divided.iter().flat_map(|parts| &parts.pairs[part]) {
                        table.add(*pair as u32, pair >> 32);
                    }
                    table.rank(&mut best);
                    table.clear();
                }
            };
            let running: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
            running.into_iter().flat_map(|thread| thread.join().expect("no thread panics")).collect::<Vec<_>>()
        });
        best = ranked;
        best.sort_unstable_by_key(|&(sum, key)| (std::cmp::Reverse(sum), key));
        best.truncate(10);
    }
    for (sum, key) in best {
        println!("{key}\t{sum}");
    }
    Ok(())
}
