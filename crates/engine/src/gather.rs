//! One partition whose values combine: a list of pairs, and when its keys outgrow the cache many lists, by hash.
//!
//! A list is combined as a whole ([`List`]), with slots and pairs in the second-level cache. Once they would not fit, the
//! partition is divided for good, and what arrives is sorted by hash before it is added to its lists: so a pair of fifty million
//! keys costs little more than one of four million.

mod list;

use crate::datum::{Combine, Datum, Key};
use crate::entry::{self, Entry};
use list::{LIST_BYTES_MAX, List, Slots};

/// Bytes of combined pairs with which a partition is divided; measured best of 512 KiB to 2 MiB.
const DIVIDE_BYTES: usize = 1 << 20;
/// Lists of a partition that has been divided.
const LISTS: usize = 1 << LIST_BITS;
pub(crate) const LIST_BITS: u32 = 4;
/// Bits of a hash below those that choose a list: those above have chosen the partition, up to 2^10 of them.
const BITS_BELOW: u32 = 18;
/// Bytes of pairs that wait in a partition at least, in all lists.
const WAITING_BYTES_MIN: usize = 1 << 20;

/// The memory to combine in, shared by all partitions of a worker.
#[derive(Default)]
pub(crate) struct Scratch {
    slots: Slots,
    /// For each list of a divided partition, pairs on the way there.
    sorted: [(usize, Vec<u8>); LISTS],
}

impl Scratch {
    /// Sorts pairs by the list that they belong to.
    fn sort<K: Key, V: Datum>(&mut self, pairs: &[u8]) {
        for (place, pair) in entry::pairs::<K, V>(pairs) {
            let (count, sorted) = &mut self.sorted[(pair.hash >> BITS_BELOW) as usize % LISTS];
            sorted.extend_from_slice(&pairs[place..place + pair.bytes]);
            *count += 1;
        }
    }
}

pub(crate) struct Gathered<K, V> {
    /// None, one, or [`LISTS`].
    lists: Vec<List<K, V>>,
}

impl<K: Key, V: Datum> Gathered<K, V> {
    /// No pairs.
    pub fn new() -> Self {
        Gathered { lists: Vec::new() }
    }

    /// Takes so many pairs that lie one behind the other.
    pub fn take(&mut self, pairs: usize, body: &[u8], scratch: &mut Scratch, combine: Combine<V>) {
        if self.lists.is_empty() {
            self.lists.push(List::new());
        }
        if let [list] = &mut self.lists[..] {
            list.take(pairs, body, WAITING_BYTES_MIN, &mut scratch.slots, combine);
            if list.combined_bytes() > DIVIDE_BYTES {
                self.divide(scratch, combine);
            }
            return;
        }
        scratch.sort::<K, V>(body);
        for (list, (count, sorted)) in self.lists.iter_mut().zip(&mut scratch.sorted) {
            list.take(std::mem::take(count), sorted, WAITING_BYTES_MIN / LISTS, &mut scratch.slots, combine);
            sorted.clear();
        }
    }

    #[cold]
    fn divide(&mut self, scratch: &mut Scratch, combine: Combine<V>) {
        self.combine(scratch, combine);
        scratch.sort::<K, V>(self.lists[0].bytes());
        let sorted = scratch.sorted.iter_mut().map(|(count, sorted)| (std::mem::take(count), std::mem::take(sorted)));
        self.lists = sorted.map(|(count, sorted)| List::of_combined(count, &sorted)).collect();
    }

    /// Combines what waits.
    pub fn combine(&mut self, scratch: &mut Scratch, combine: Combine<V>) {
        self.lists.iter_mut().for_each(|list| list.combine(&mut scratch.slots, combine));
    }

    /// True when a list comes near to what a place can say.
    pub fn is_crowded(&self) -> bool {
        self.lists.iter().any(|list| list.bytes().len() > LIST_BYTES_MAX / 2)
    }

    /// Gives memory back that nothing waits for.
    pub fn trim(&mut self) {
        self.lists.iter_mut().for_each(List::trim);
    }

    /// Forgets all pairs and keeps the memory.
    pub fn clear(&mut self) {
        self.lists.iter_mut().for_each(List::clear);
    }

    /// Number of pairs; of keys, when nothing waits.
    pub fn len(&self) -> usize {
        self.lists.iter().map(List::len).sum()
    }

    /// Bytes of memory in use.
    pub fn bytes(&self) -> usize {
        self.lists.iter().map(|list| list.bytes().len()).sum()
    }

    /// All pairs with their places: the number of a list, and in the low 32 bits where in it.
    pub fn pairs(&self) -> impl Iterator<Item = (usize, Entry<'_, K, V>)> {
        let lists = self.lists.iter().enumerate();
        lists.flat_map(|(number, list)| list.pairs().map(move |(at, pair)| (number << 32 | at, pair)))
    }

    /// The bytes that begin with the pair at a place.
    #[inline(always)]
    pub fn from(&self, place: usize) -> &[u8] {
        &self.lists[place >> 32].bytes()[place as u32 as usize..]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::datum::Bytes;
    use crate::entry::short_hash;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn counts_are_those_of_a_map(
            pages in prop::collection::vec(prop::collection::vec("[ab]{0,3}|[a-z]{0,300}", 0..100), 0..8),
            crowded: bool,
        ) {
            let mut scratch = Scratch::default();
            let mut gathered = Gathered::<Bytes, u64>::new();
            let mut expected = BTreeMap::<Vec<u8>, u64>::new();
            for words in &pages {
                let mut page = Vec::new();
                for word in words {
                    // Crowded: all hashes collide in few slots, so keys are told apart by their bytes.
                    let hash = short_hash(Bytes::hash(word.as_bytes())) & if crowded { 3 } else { u32::MAX };
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
    fn so_many_keys_that_they_are_divided_are_still_each_there_once() {
        let (mut scratch, mut gathered) = (Scratch::default(), Gathered::<u32, u64>::new());
        let keys = 3 * DIVIDE_BYTES as u32 / 12;
        let mut page = Vec::new();
        for round in 0..3 {
            for key in round..keys {
                entry::append::<u32, u64>(short_hash(u32::hash(key)), key, u64::from(key), &mut page);
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
