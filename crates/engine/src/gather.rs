//! One partition whose values combine: a list of pairs that is combined in place.
//!
//! ```text
//!  list:  | pairs with different keys, combined ... | pairs that wait ... |
//! ```
//!
//! Pairs wait behind those that are combined until there are as many, at least a batch that is worth it. Then all are
//! combined at once: a pair whose key is new moves up, the value of any other is combined into the pair that is there.
//! The slots by which pairs are found are scratch memory, made anew each time and shared by all partitions of a worker.
//! So a partition takes little more memory than its pairs, no table ever grows, and slots and pairs of one partition stay
//! in the cache while they are worked on. Every pair is looked at twice at most on average, because a list has doubled
//! before it is combined again.

use std::marker::PhantomData;

use gristmill_os::memory::populate;
use gristmill_page::prefetch;

use crate::datum::{Combine, Datum, Key};
use crate::entry::{self, Entry};

/// Bytes of pairs that wait at least.
const WAITING_BYTES_MIN: usize = 1 << 20;
/// Memory that the kernel is asked for at a time, bytes; a quarter of the list when that is more.
const POPULATED_BYTES_MIN: usize = 16 << 10;
/// Pairs looked at together, so that the slots of all of them are on their way from memory at once.
const BATCH: usize = 32;
/// Places of pairs are 32-bit.
const LIST_BYTES_MAX: usize = u32::MAX as usize;
/// Pairs up to this size move up by one copy of this size.
const SHORT_PAIR: usize = 32;

/// Where the pairs of a list are found by their hash, while it is combined.
///
/// ```text
///  slot:  | hash, 4 | place + 1, 4 |   open addressing, linear probing, 0 is empty
/// ```
#[derive(Default)]
pub(crate) struct Scratch {
    slots: Vec<u64>,
}

impl Scratch {
    /// Empty slots for so many pairs, a power of two of them.
    fn slots(&mut self, pairs: usize) -> &mut [u64] {
        let wanted = (pairs + pairs / 3 + 1).next_power_of_two();
        if self.slots.len() < wanted {
            self.slots = vec![0; wanted];
        } else {
            self.slots[..wanted].fill(0);
        }
        &mut self.slots[..wanted]
    }
}

pub(crate) struct Gathered<K, V> {
    list: Vec<u8>,
    /// Bytes of its memory that the kernel has given already.
    populated_bytes: usize,
    /// Bytes and pairs of the list that are combined.
    combined_bytes: usize,
    combined_pairs: usize,
    /// Pairs that wait.
    waiting_pairs: usize,
    kind: PhantomData<(K, V)>,
}

impl<K: Key, V: Datum> Gathered<K, V> {
    /// Values of variable width are never combined; the plan sees to that.
    const VALUE_BYTES: usize = if let Some(bytes) = V::WIDTH { bytes } else { 0 };

    /// No pairs.
    pub fn new() -> Self {
        Gathered {
            list: Vec::new(),
            populated_bytes: 0,
            combined_bytes: 0,
            combined_pairs: 0,
            waiting_pairs: 0,
            kind: PhantomData,
        }
    }

    /// Takes so many pairs that lie one behind the other.
    pub fn take(&mut self, pairs: usize, body: &[u8], scratch: &mut Scratch, combine: Combine<V>) {
        let waiting_bytes = self.list.len() - self.combined_bytes + body.len();
        if waiting_bytes > WAITING_BYTES_MIN.max(self.combined_bytes) {
            self.combine(scratch, combine);
        }
        assert!(self.list.len() + body.len() < LIST_BYTES_MAX, "a partition holds less than 4 GiB");
        if self.list.capacity() == 0 {
            self.list.reserve_exact(WAITING_BYTES_MIN);
        }
        if self.list.len() + body.len() > self.populated_bytes {
            self.list.reserve(body.len());
            let listed = self.list.len();
            let spare = self.list.spare_capacity_mut();
            let bytes = spare.len().min(POPULATED_BYTES_MIN.max(listed / 4).max(body.len()));
            populate(&mut spare[..bytes]);
            self.populated_bytes = listed + bytes;
        }
        self.list.extend_from_slice(body);
        self.waiting_pairs += pairs;
    }

    /// Combines what waits.
    pub fn combine(&mut self, scratch: &mut Scratch, combine: Combine<V>) {
        if self.waiting_pairs == 0 {
            return;
        }
        let slots = scratch.slots(self.len());
        let mask = slots.len() - 1;
        // 1. The pairs that are combined, whose keys are different.
        let mut at = 0;
        while at < self.combined_bytes {
            let pair = entry::read::<K, V>(&self.list[at..]);
            let mut slot = pair.hash as usize & mask;
            while slots[slot] != 0 {
                slot = (slot + 1) & mask;
            }
            slots[slot] = u64::from(pair.hash) << 32 | (at as u64 + 1);
            at += pair.bytes;
        }
        // 2. Those that wait.
        let mut end = at;
        while at < self.list.len() {
            // Find where up to BATCH pairs begin, and ask for their slots.
            let mut found = [(0, 0); BATCH];
            let mut count = 0;
            while count < BATCH && at < self.list.len() {
                let pair = entry::read::<K, V>(&self.list[at..]);
                prefetch(&slots[pair.hash as usize & mask]);
                found[count] = (at, pair.hash);
                count += 1;
                at += pair.bytes;
            }
            // Ask for the pairs that the slots most likely lead to.
            for (_, hash) in &found[..count] {
                let slot = slots[*hash as usize & mask];
                if (slot >> 32) as u32 == *hash
                    && let Some(pair) = self.list.get((slot as u32).wrapping_sub(1) as usize)
                {
                    prefetch(pair);
                }
            }
            for (start, hash) in &found[..count] {
                end = self.merge(slots, *start, *hash, end, combine);
            }
        }
        self.list.truncate(end);
        self.combined_bytes = end;
        self.waiting_pairs = 0;
    }

    /// Combines the pair at `start` into the pair of its key, or moves it up to `end`, the end of the combined pairs;
    /// returns where they end now.
    #[inline(always)]
    fn merge(&mut self, slots: &mut [u64], start: usize, hash: u32, end: usize, combine: Combine<V>) -> usize {
        let mask = slots.len() - 1;
        let mut at = hash as usize & mask;
        loop {
            let slot = slots[at & mask];
            if slot == 0 {
                let bytes = entry::read::<K, V>(&self.list[start..]).bytes;
                self.move_up(start, bytes, end);
                slots[at & mask] = u64::from(hash) << 32 | (end as u64 + 1);
                self.combined_pairs += 1;
                return end + bytes;
            }
            if (slot >> 32) as u32 == hash {
                let place = (slot as u32 - 1) as usize;
                // What is combined ends before this pair begins.
                let (before, from) = self.list.split_at_mut(start);
                let (pair, known) = (entry::read::<K, V>(from), entry::read::<K, V>(&before[place..]));
                if K::equal(pair.key, known.key) {
                    let combined = combine(V::own(known.value), V::own(pair.value));
                    let value = place + known.bytes - Self::VALUE_BYTES..place + known.bytes;
                    V::write(V::lend(&combined), &mut before[value]);
                    return end;
                }
            }
            at += 1;
        }
    }

    #[inline(always)]
    fn move_up(&mut self, start: usize, bytes: usize, end: usize) {
        if bytes <= SHORT_PAIR && start - end >= SHORT_PAIR && start + SHORT_PAIR <= self.list.len() {
            // What is too much lands where nothing is needed any more.
            let pair: [u8; SHORT_PAIR] = self.list[start..start + SHORT_PAIR].try_into().expect("so many");
            self.list[end..end + SHORT_PAIR].copy_from_slice(&pair);
        } else if start != end {
            self.list.copy_within(start..start + bytes, end);
        }
    }

    /// True when the list comes near to what a place can say.
    pub fn is_crowded(&self) -> bool {
        self.list.len() > LIST_BYTES_MAX / 2
    }

    /// Gives memory back that nothing waits for.
    pub fn trim(&mut self) {
        if self.list.len() < self.list.capacity() / 2 {
            self.list.shrink_to_fit();
            self.populated_bytes = self.populated_bytes.min(self.list.capacity());
        }
    }

    /// Forgets all pairs and keeps the memory.
    pub fn clear(&mut self) {
        self.list.clear();
        (self.combined_bytes, self.combined_pairs, self.waiting_pairs) = (0, 0, 0);
    }

    /// Number of pairs; of keys, when nothing waits.
    pub fn len(&self) -> usize {
        self.combined_pairs + self.waiting_pairs
    }

    /// Bytes of memory in use.
    pub fn bytes(&self) -> usize {
        self.list.len()
    }

    /// All pairs with their places.
    pub fn pairs(&self) -> impl Iterator<Item = (usize, Entry<'_, K, V>)> {
        entry::pairs(&self.list)
    }

    /// The bytes that begin with the pair at a place.
    #[inline(always)]
    pub fn from(&self, place: usize) -> &[u8] {
        &self.list[place..]
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
}
