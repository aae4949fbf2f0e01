//! `--combine-after`: detection of a key with very many values, in a reducer that keeps all values until the end.
//! `exchange::inbox` then lets the reducer combine. (The combiner on the reduce side of DMR, Yu and Zhang 2017, also
//! fires when one key has gathered more than a set number of values.)
//!
//! Keys are counted in a sketch of fixed size: two rows of counters, chosen by different bits of the hash. A key's
//! count is the smaller of its two counters. It may be too high if other keys share both counters, but is never too
//! low.

use crate::data::datum::{Datum, Key};
use crate::data::entry;
use crate::data::seed::Seed;

/// The number of counters in a row.
const COUNTERS: usize = 1 << 12;

/// Counts the values of each key, approximately.
pub(crate) struct Skew {
    /// The number of values that one key may have.
    after: u32,
    rows: Box<[[u32; COUNTERS]; 2]>,
    is_found: bool,
    seed: Seed,
}

impl Skew {
    pub fn new(after: u32, seed: &Seed) -> Skew {
        Skew { after, rows: Box::new([[0; COUNTERS]; 2]), is_found: false, seed: seed.clone() }
    }

    /// Counts pairs in the page format.
    pub fn count<K: Key, V: Datum>(&mut self, pairs: &[u8]) {
        for (_, pair) in entry::pairs::<K, V>(pairs) {
            // All pairs of a partition share the high bits, so only low bits are used.
            let hash = pair.hash(&self.seed) as usize;
            let places = [hash % COUNTERS, (hash >> 12) % COUNTERS];
            let counts = [0, 1].map(|row| {
                let count = &mut self.rows[row][places[row]];
                *count = count.saturating_add(1);
                *count
            });
            self.is_found |= counts[0].min(counts[1]) > self.after;
        }
    }

    /// Returns whether a key has too many values.
    pub fn is_found(&self) -> bool {
        self.is_found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(after: u32, keys: impl Iterator<Item = u64>) -> bool {
        let mut skew = Skew::new(after, &Seed::of(1));
        for key in keys {
            let mut pair = [0; 16];
            entry::write::<u64, u64>(0, key, 1, &mut pair);
            skew.count::<u64, u64>(&pair);
        }
        skew.is_found()
    }

    #[test]
    fn a_key_with_too_many_values_is_found_among_many_others() {
        let others = || 1000..5000u64;
        assert!(!found(100, others()));
        assert!(!found(100, others().chain(std::iter::repeat_n(7, 90))));
        assert!(found(100, others().chain(std::iter::repeat_n(7, 101))));
    }
}
