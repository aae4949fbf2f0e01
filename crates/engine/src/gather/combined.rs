//! A partition whose values are combined: one list of pairs, or many lists by hash once its keys outgrow the cache.
//!
//! A list is combined as a whole ([`List`]), with slots and pairs in the second-level cache. Once they would not fit,
//! the partition is divided for good, and arriving pairs are first distributed to its lists by hash. Thus a pair of
//! fifty million keys costs little more than one of four million.

mod list;

use crate::data::datum::{Datum, Key, Owned};
use crate::data::entry::{self, Entry};
use list::List;
pub(crate) use list::Scratch;

/// The size of combined pairs at which a partition is divided; measured as the best between 512 KiB and 2 MiB.
const DIVIDE_BYTES: usize = 1 << 20;
/// The number of lists of a divided partition.
const LISTS: usize = 1 << LIST_BITS;
pub(crate) const LIST_BITS: u32 = 4;
/// The number of hash bits below those that choose a list. The bits above choose the partition, of which there are up
/// to 2^10.
const BITS_BELOW: u32 = 18;
/// The least size of the pairs that wait in all partitions of a job. What waits takes memory that must be faulted in,
/// so it must not grow with the number of partitions.
const WAITING_BYTES: usize = 64 << 20;
/// The limits of the share of one partition.
const WAITING_BYTES_MIN: usize = 64 << 10;
const WAITING_BYTES_MAX: usize = 1 << 20;

/// Returns the list of a divided partition that a hash belongs to.
#[inline(always)]
fn list_of(hash: u32) -> usize {
    (hash >> BITS_BELOW) as usize % LISTS
}

pub(crate) struct Gathered<K, V> {
    /// No list, one, or [`LISTS`].
    lists: Vec<List<K, V>>,
    /// The least size of the pairs that wait in all lists.
    waiting_bytes_min: usize,
}

impl<K: Key, V: Datum> Gathered<K, V> {
    /// Makes a partition without pairs, one of `partitions`.
    pub fn new(partitions: usize) -> Self {
        let waiting_bytes_min = (WAITING_BYTES / partitions.max(1)).clamp(WAITING_BYTES_MIN, WAITING_BYTES_MAX);
        Gathered { lists: Vec::new(), waiting_bytes_min }
    }

    /// Adds `pairs` pairs, which lie one after the other in `body`.
    pub fn take(
        &mut self,
        pairs: usize,
        body: &[u8],
        scratch: &mut Scratch,
        combine: impl Fn(Owned<V>, Owned<V>) -> Owned<V> + Copy,
    ) {
        if self.lists.is_empty() {
            self.lists.push(List::new());
        }
        if let [list] = &mut self.lists[..] {
            list.take(pairs, body, scratch);
            if list.is_due(self.waiting_bytes_min) {
                list.combine(scratch, combine);
                if list.combined_bytes() > DIVIDE_BYTES {
                    let list = self.lists.swap_remove(0);
                    self.lists = list.divide(LISTS, list_of, scratch);
                }
            }
            return;
        }
        for (at, pair) in entry::pairs::<K, V>(body) {
            self.lists[list_of(pair.hash(scratch.seed()))].take_one(&body[at..], pair.bytes, scratch);
        }
        for list in self.lists.iter_mut().filter(|list| list.is_due(self.waiting_bytes_min / LISTS)) {
            list.combine(scratch, combine);
        }
    }

    /// Combines the waiting pairs.
    pub fn combine(&mut self, scratch: &mut Scratch, combine: impl Fn(Owned<V>, Owned<V>) -> Owned<V> + Copy) {
        self.lists.iter_mut().for_each(|list| list.combine(scratch, combine));
    }

    /// Returns whether a list nears the limit of what places can address.
    pub fn is_crowded(&self) -> bool {
        self.lists.iter().any(List::is_crowded)
    }

    /// Removes all pairs.
    pub fn clear(&mut self) {
        self.lists.iter_mut().for_each(List::clear);
    }

    /// Returns the number of pairs; of keys, if no pairs wait.
    pub fn len(&self) -> usize {
        self.lists.iter().map(List::len).sum()
    }

    /// Returns the size of all pairs.
    pub fn bytes(&self) -> usize {
        self.lists.iter().map(List::bytes).sum()
    }

    /// Iterates over all pairs with their places: the number of a list, and in the low 32 bits the place in it.
    pub fn pairs(&self) -> impl Iterator<Item = (usize, Entry<'_, K, V>)> {
        let lists = self.lists.iter().enumerate();
        lists.flat_map(|(number, list)| list.pairs().map(move |(at, pair)| (number << 32 | at, pair)))
    }

    /// Returns the bytes from the pair at `place` on.
    #[inline(always)]
    pub fn from(&self, place: usize) -> &[u8] {
        self.lists[place >> 32].from(place as u32 as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::datum::Bytes;
    use crate::data::entry::short_hash;
    use crate::data::key;
    use crate::data::seed::Seed;
    use gristmill_os::memory::BLOCK_BYTES;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn combined_counts_equal_those_of_a_btree_map(
            pages in prop::collection::vec(prop::collection::vec("[ab]{0,3}|[a-z]{0,300}", 0..100), 0..8),
            crowded: bool,
        ) {
            let mut scratch = Scratch::new(&Seed::of(1));
            let mut gathered = Gathered::<Bytes, u64>::new(64);
            let mut expected = BTreeMap::<Vec<u8>, u64>::new();
            for words in &pages {
                let mut page = Vec::new();
                for word in words {
                    // If crowded, all hashes collide in few slots, so keys must be told apart by their bytes.
                    let hash = short_hash(key::hash::<Bytes>(word.as_bytes(), &Seed::of(1))) & if crowded { 3 } else { u32::MAX };
                    entry::append::<Bytes, u64>(hash, word.as_bytes(), 1, &mut page);
                    *expected.entry(word.clone().into_bytes()).or_default() += 1;
                }
                gathered.take(words.len(), &page, &mut scratch, |a, b| a + b);
                if words.len() % 2 == 0 {
                    gathered.combine(&mut scratch, |a, b| a + b);
                }
            }
            gathered.combine(&mut scratch, |a, b| a + b);
            let mut counted = BTreeMap::new();
            for (_, pair) in gathered.pairs() {
                counted.insert(pair.key.to_vec(), pair.value);
            }
            prop_assert_eq!(gathered.len(), expected.len());
            prop_assert_eq!(counted, expected);
        }
    }

    #[test]
    fn pairs_of_any_size_up_to_a_block_and_beyond_are_found_again() {
        let (mut scratch, mut gathered) = (Scratch::new(&Seed::of(1)), Gathered::<Bytes, u64>::new(64));
        let words: Vec<Vec<u8>> = (BLOCK_BYTES - 40..BLOCK_BYTES + 10).map(|bytes| vec![b'a'; bytes]).collect();
        for round in 1..=3 {
            for word in &words {
                let mut page = Vec::new();
                for key in [&word[..], &word[..10], b"", &word[..300]] {
                    entry::append::<Bytes, u64>(short_hash(key::hash::<Bytes>(key, &Seed::of(1))), key, 1, &mut page);
                }
                gathered.take(4, &page, &mut scratch, |a, b| a + b);
            }
            gathered.combine(&mut scratch, |a, b| a + b);
            assert_eq!(gathered.len(), words.len() + 3);
            for (place, pair) in gathered.pairs() {
                let times = if pair.key.len() > 300 { 1 } else { words.len() as u64 };
                assert_eq!(pair.value, round * times);
                assert_eq!(entry::read::<Bytes, u64>(gathered.from(place)).key, pair.key);
            }
        }
    }

    #[test]
    fn a_divided_partition_holds_each_key_once() {
        let (mut scratch, mut gathered) = (Scratch::new(&Seed::of(1)), Gathered::<u32, u64>::new(64));
        let keys = 3 * DIVIDE_BYTES as u32 / 12;
        let mut page = Vec::new();
        for round in 0..3 {
            for key in round..keys {
                entry::append::<u32, u64>(0, key, u64::from(key), &mut page);
                if page.len() >= 32 << 10 || key + 1 == keys {
                    gathered.take(page.len() / 12, &page, &mut scratch, |a, b| a + b);
                    page.clear();
                }
            }
        }
        gathered.combine(&mut scratch, |a, b| a + b);
        assert_eq!(gathered.lists.len(), LISTS);
        let mut sums: Vec<_> = gathered.pairs().map(|(_, pair)| (pair.key, pair.value)).collect();
        sums.sort_unstable();
        let expected = (0..keys).map(|key| (key, u64::from(key) * u64::from(3.min(key + 1))));
        assert!(sums.into_iter().eq(expected));
        for (place, pair) in gathered.pairs().step_by(1000) {
            assert_eq!(entry::read::<u32, u64>(gathered.from(place)).key, pair.key);
        }
    }
}
