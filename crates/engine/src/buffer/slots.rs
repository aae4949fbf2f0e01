//! The combining table of a map worker: fixed in size, so that it stays in the second-level cache.
//!
//! ```text
//!  slot, 32 bytes for 8-byte values:  | key, 16 | hash, 4 | length + 1, 4 | value, 8 |
//!  longer keys:                       | place in `long`, 8 | whole hash, 8 | hash | length + 1 | value |
//! ```
//!
//! Keys of up to 16 bytes are stored in the slot and compared as two words.

use gristmill_os::memory::HugeArray;
use gristmill_page::prefetch;

use crate::buffer::marks::Marks;
use crate::buffer::value_bytes::{Measure, VALUE_BYTES_MAX, ValueBytes};
use crate::data::datum::{Datum, Key, Owned};
use crate::data::entry::short_hash;
use crate::data::key;
use crate::data::short::{SHORT_BYTES, Short};

/// The number of slots: 2 MiB of them for 8-byte values, which is one huge page and the size of a common second-level
/// cache; measured as the best between 2^14 and 2^17.
const SLOTS: usize = 1 << SLOT_BITS;
const SLOT_BITS: u32 = 16;
/// The number of keys at which the table is full: beyond it, probing takes long.
pub(super) const KEYS_MAX: usize = SLOTS / 8 * 5;
/// The size of long keys at which the table is full.
pub(super) const LONG_BYTES_MAX: usize = 512 << 10;

/// A key and its value, in the table or on the way to it. In an empty slot, length + 1 is 0.
#[derive(Clone, Copy, Default)]
#[repr(align(32))]
pub(super) struct TableSlot<O> {
    words: [u64; 2],
    hash: u32,
    len_and_1: u32,
    value: O,
}

impl<O> TableSlot<O> {
    /// Makes a pair with a short key, whose hash is `hash`.
    #[inline(always)]
    pub fn short(key: Short, hash: u64, value: O) -> TableSlot<O> {
        TableSlot { words: key.words, hash: short_hash(hash), len_and_1: key.len + 1, value }
    }

    /// Returns hash, key and value of a slot with a short key.
    #[inline(always)]
    pub fn as_short(&self) -> (u32, Short, &O) {
        (self.hash, Short { words: self.words, len: self.len_and_1 - 1 }, &self.value)
    }
}

/// A key in the form in which the table stores it.
pub(super) enum Stored<R> {
    Short(Short),
    Long(R),
}

/// Returns the slot where the search for a key begins. It uses the high bits of the hash, which also choose the
/// partition, so the table is emptied partition by partition, and only one page is written at a time.
#[inline(always)]
fn home(hash: u32) -> usize {
    (hash >> (32 - SLOT_BITS)) as usize
}

pub(crate) struct Slots<K: Key, V: Datum> {
    slots: HugeArray<TableSlot<V::Owned>, SLOTS>,
    /// The slots that are not empty.
    filled: Marks,
    long: Vec<u8>,
    value_bytes: ValueBytes,
    keys: usize,
    kind: std::marker::PhantomData<(K, V)>,
}

impl<K: Key, V: Datum> Slots<K, V> {
    /// The maximal size of a table, apart from one long key or value.
    pub const BYTES: usize = SLOTS * size_of::<TableSlot<V::Owned>>()
        + LONG_BYTES_MAX
        + if V::WIDTH.is_none() { VALUE_BYTES_MAX } else { 0 };

    pub fn new() -> Slots<K, V> {
        let (slots, kind) = (HugeArray::filled(&TableSlot::default()), std::marker::PhantomData);
        Slots { slots, filled: Marks::new(SLOTS), long: Vec::new(), value_bytes: ValueBytes::default(), keys: 0, kind }
    }

    /// Returns the number of keys.
    pub fn len(&self) -> usize {
        self.keys
    }

    /// Returns whether `more` keys fit.
    #[inline(always)]
    pub fn has_room(&self, more: usize) -> bool {
        let has_room = self.keys + more <= KEYS_MAX && self.long.len() < LONG_BYTES_MAX;
        has_room && (V::WIDTH.is_some() || self.value_bytes.get() < VALUE_BYTES_MAX)
    }

    /// Combines `value` into the value of a slot.
    #[inline(always)]
    fn combine_into(
        bytes: &mut ValueBytes,
        slot: &mut V::Owned,
        value: V::Owned,
        combine: impl Fn(Owned<V>, Owned<V>) -> Owned<V> + Copy,
    ) {
        bytes.change::<V>(slot, Measure::Always, |slot| {
            // Avoid a copy of a value that may have grown long.
            let before = if V::WIDTH.is_some() { slot.clone() } else { std::mem::take(slot) };
            *slot = combine(before, value);
        });
    }

    /// Prefetches the slot of a pair.
    #[inline(always)]
    pub fn prefetch(&self, pair: &TableSlot<V::Owned>) {
        prefetch(&self.slots[home(pair.hash)]);
    }

    /// Returns the slot of a short key with the hash `whole`, or the empty slot for it, and whether that is empty.
    #[inline(always)]
    fn find_short(&self, key: Short, whole: u64) -> (usize, bool) {
        let mut at = home(short_hash(whole));
        loop {
            let slot = &self.slots[at];
            let differs = (slot.words[0] ^ key.words[0])
                | (slot.words[1] ^ key.words[1])
                | u64::from(slot.len_and_1 ^ (key.len + 1));
            if differs == 0 || slot.len_and_1 == 0 {
                return (at, differs != 0);
            }
            at = (at + 1) % SLOTS;
        }
    }

    /// As [`Slots::find_short`], for a key that is longer than 16 bytes and has the hash `whole`.
    fn find_long(&self, key: K::Ref<'_>, whole: u64) -> (usize, bool) {
        let len_and_1 = key::width::<K>(key) as u32 + 1;
        let mut at = home(short_hash(whole));
        loop {
            let slot = &self.slots[at];
            if slot.len_and_1 == len_and_1 && slot.words[1] == whole {
                let place = slot.words[0] as usize;
                if key::equal::<K>(K::read(&self.long[place..place + len_and_1 as usize - 1]), key) {
                    return (at, false);
                }
            }
            if slot.len_and_1 == 0 {
                return (at, true);
            }
            at = (at + 1) % SLOTS;
        }
    }

    /// Fills the empty slot at `at`.
    #[inline(always)]
    fn fill(&mut self, at: usize, pair: TableSlot<V::Owned>) {
        self.value_bytes.add::<V>(&pair.value);
        self.keys += 1;
        self.filled.set(at);
        self.slots[at] = pair;
    }

    /// Fills the empty slot at `at` with a pair whose key is longer than 16 bytes.
    fn fill_long(&mut self, at: usize, key: K::Ref<'_>, whole: u64, value: V::Owned) {
        let (place, len) = (self.long.len(), key::width::<K>(key));
        self.long.resize(place + len, 0);
        K::write(key, &mut self.long[place..]);
        let words = [place as u64, whole];
        self.fill(at, TableSlot { words, hash: short_hash(whole), len_and_1: len as u32 + 1, value });
    }

    /// Combines a pair with a short key. There must be room. It searches as [`Slots::find_short`] does; to call that,
    /// and to ask then what it found, takes 3 % more instructions of a whole word count.
    #[inline(always)]
    pub fn merge_short(&mut self, pair: &TableSlot<V::Owned>, combine: impl Fn(Owned<V>, Owned<V>) -> Owned<V> + Copy) {
        let mut at = home(pair.hash);
        loop {
            let slot = &mut self.slots[at];
            let differs = (slot.words[0] ^ pair.words[0])
                | (slot.words[1] ^ pair.words[1])
                | u64::from(slot.len_and_1 ^ pair.len_and_1);
            if differs == 0 {
                return Self::combine_into(&mut self.value_bytes, &mut slot.value, pair.value.clone(), combine);
            }
            if slot.len_and_1 == 0 {
                return self.fill(at, pair.clone());
            }
            at = (at + 1) % SLOTS;
        }
    }

    /// Combines a pair whose key is longer than 16 bytes and has the hash `whole`. There must be room.
    #[cold]
    #[inline(never)]
    pub fn merge_long(
        &mut self,
        key: K::Ref<'_>,
        whole: u64,
        value: V::Ref<'_>,
        combine: impl Fn(Owned<V>, Owned<V>) -> Owned<V> + Copy,
    ) {
        match self.find_long(key, whole) {
            (at, true) => self.fill_long(at, key, whole, V::own(value)),
            (at, false) => {
                Self::combine_into(&mut self.value_bytes, &mut self.slots[at].value, V::own(value), combine);
            }
        }
    }

    /// Changes the value of a key that has the hash `whole`; the value of a new key is the default. There must be room.
    /// `measure` learns whether the key is new.
    #[inline(always)]
    pub fn change(
        &mut self,
        key: K::Ref<'_>,
        whole: u64,
        measure: impl FnOnce(bool) -> Measure,
        change: impl FnOnce(&mut Owned<V>),
    ) {
        let (at, is_new) = match key::short::<K>(key) {
            Some(short) => {
                let (at, is_new) = self.find_short(short, whole);
                if is_new {
                    self.fill(at, TableSlot::short(short, whole, V::Owned::default()));
                }
                (at, is_new)
            }
            None => {
                let (at, is_new) = self.find_long(key, whole);
                if is_new {
                    self.fill_long(at, key, whole, V::Owned::default());
                }
                (at, is_new)
            }
        };
        self.value_bytes.change::<V>(&mut self.slots[at].value, measure(is_new), change);
    }

    /// Calls `take` with hash, key and value of every entry, and empties the table.
    #[inline(always)]
    pub fn empty(&mut self, mut take: impl FnMut(u32, Stored<K::Ref<'_>>, V::Ref<'_>)) {
        if self.keys == 0 {
            return;
        }
        let Slots { slots, filled, long, .. } = self;
        filled.take(|at| {
            let slot = &mut slots[at];
            let len = slot.len_and_1 as usize - 1;
            let value = V::lend(&slot.value);
            if len <= SHORT_BYTES {
                take(slot.hash, Stored::Short(Short { words: slot.words, len: len as u32 }), value);
            } else {
                let place = slot.words[0] as usize;
                take(slot.hash, Stored::Long(K::read(&long[place..place + len])), value);
            }
            slot.len_and_1 = 0;
            if V::WIDTH.is_none() {
                slot.value = V::Owned::default();
            }
        });
        self.long.clear();
        self.keys = 0;
        self.value_bytes.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::datum::Bytes;
    use crate::data::seed::Seed;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn combined_counts_equal_those_of_a_btree_map(words in prop::collection::vec("[ab]{0,3}|[a-z]{0,40}|a{14,18}", 0..400)) {
            let (mut table, seed) = (Slots::<Bytes, u64>::new(), Seed::of(1));
            let mut expected = BTreeMap::<Vec<u8>, u64>::new();
            for (number, word) in words.iter().enumerate() {
                assert!(table.has_room(1));
                let whole = key::hash::<Bytes>(word.as_bytes(), &seed);
                match Bytes::short(word.as_bytes()) {
                    _ if number % 3 == 0 => table.change(word.as_bytes(), whole, |_| Measure::Always, |count| *count += 1),
                    Some(short) => table.merge_short(&TableSlot::short(short, seed.hash(short), 1), |a, b| a + b),
                    None => table.merge_long(word.as_bytes(), whole, 1, |a, b| a + b),
                }
                *expected.entry(word.clone().into_bytes()).or_default() += 1;
            }
            let mut counted = BTreeMap::new();
            table.empty(|_, key, value| {
                let key = match key {
                    Stored::Short(short) => short.bytes()[..short.len as usize].to_vec(),
                    Stored::Long(long) => long.to_vec(),
                };
                counted.insert(key, value);
            });
            prop_assert_eq!(counted, expected);
            table.empty(|_, _, _| panic!("an emptied table holds nothing"));
        }
    }
}
