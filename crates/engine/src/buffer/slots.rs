//! The combining table of a map worker: fixed in size, so that it stays in the second-level cache.
//!
//! ```text
//!  slot, 32 bytes for 8-byte values:  | key, 16 | hash, 4 | length + 1, 4 | value, 8 |
//!  longer keys:                       | place in `long`, 8 | whole hash, 8 | hash | length + 1 | value |
//! ```
//!
//! Keys of up to 16 bytes lie in the slot and are compared as two words.

use gristmill_os::memory::HugeArray;
use gristmill_page::prefetch;

use crate::datum::{Combine, Datum, Key, SHORT_BYTES, Short};
use crate::entry::short_hash;

/// Slots: 2 MiB of them for 8-byte values, one huge page and the size of a common second-level cache; measured best of
/// 2^14 to 2^17.
const SLOTS: usize = 1 << SLOT_BITS;
const SLOT_BITS: u32 = 16;
/// Keys at which the table counts as full: beyond this probing gets long.
pub(super) const KEYS_MAX: usize = SLOTS / 8 * 5;
/// Bytes of long keys at which it counts as full.
const LONG_BYTES_MAX: usize = 512 << 10;

/// A key and its value, in the table or on the way to it. Length + 1 of 0 is an empty slot.
#[derive(Clone, Copy, Default)]
#[repr(align(32))]
pub(super) struct Slot<O> {
    words: [u64; 2],
    hash: u32,
    len_and_1: u32,
    value: O,
}

impl<O> Slot<O> {
    #[inline(always)]
    pub fn short(key: Short, value: O) -> Slot<O> {
        Slot { words: key.words, hash: short_hash(key.hash()), len_and_1: key.len + 1, value }
    }

    /// Hash, key and value of a slot that holds a short key.
    #[inline(always)]
    pub fn as_short(&self) -> (u32, Short, &O) {
        (self.hash, Short { words: self.words, len: self.len_and_1 - 1 }, &self.value)
    }
}

/// A key as the table holds it.
pub(super) enum Stored<R> {
    Short(Short),
    Long(R),
}

/// The slot where the search for a key begins. By the high bits of the hash, which also choose the partition: so the
/// table is emptied one partition after the other, and only one page is written at a time.
#[inline(always)]
fn home(hash: u32) -> usize {
    (hash >> (32 - SLOT_BITS)) as usize
}

pub(crate) struct Slots<K: Key, V: Datum> {
    slots: HugeArray<Slot<V::Owned>, SLOTS>,
    long: Vec<u8>,
    keys: usize,
    kind: std::marker::PhantomData<(K, V)>,
}

impl<K: Key, V: Datum> Slots<K, V> {
    /// What a table takes at most; one long key more is of no account.
    pub const BYTES: usize = SLOTS * size_of::<Slot<V::Owned>>() + LONG_BYTES_MAX;

    pub fn new() -> Slots<K, V> {
        Slots { slots: HugeArray::filled(&Slot::default()), long: Vec::new(), keys: 0, kind: std::marker::PhantomData }
    }

    /// Number of keys.
    pub fn len(&self) -> usize {
        self.keys
    }

    /// True when `more` keys fit.
    #[inline(always)]
    pub fn has_room(&self, more: usize) -> bool {
        self.keys + more <= KEYS_MAX && self.long.len() < LONG_BYTES_MAX
    }

    /// Asks for the slot of a pair to be brought near.
    #[inline(always)]
    pub fn prefetch(&self, pair: &Slot<V::Owned>) {
        prefetch(&self.slots[home(pair.hash)]);
    }

    /// Combines a pair with a short key. There must be room.
    #[inline(always)]
    pub fn merge_short(&mut self, pair: &Slot<V::Owned>, combine: Combine<V>) {
        let mut at = home(pair.hash);
        loop {
            let slot = &mut self.slots[at];
            let differs = (slot.words[0] ^ pair.words[0])
                | (slot.words[1] ^ pair.words[1])
                | u64::from(slot.len_and_1 ^ pair.len_and_1);
            if differs == 0 {
                slot.value = combine(slot.value.clone(), pair.value.clone());
                return;
            }
            if slot.len_and_1 == 0 {
                *slot = pair.clone();
                self.keys += 1;
                return;
            }
            at = (at + 1) % SLOTS;
        }
    }

    /// Combines a pair whose key is longer than 16 bytes. There must be room.
    #[cold]
    #[inline(never)]
    pub fn merge_long(&mut self, key: K::Ref<'_>, value: V::Ref<'_>, combine: Combine<V>) {
        let whole = K::hash(key);
        let (hash, len) = (short_hash(whole), K::width(key));
        let mut at = home(hash);
        loop {
            let slot = &mut self.slots[at];
            if slot.len_and_1 as usize == len + 1 && slot.words[1] == whole {
                let place = slot.words[0] as usize;
                if K::equal(K::read(&self.long[place..place + len]), key) {
                    slot.value = combine(slot.value.clone(), V::own(value));
                    return;
                }
            }
            if slot.len_and_1 == 0 {
                let place = self.long.len();
                self.long.resize(place + len, 0);
                K::write(key, &mut self.long[place..]);
                let words = [place as u64, whole];
                *slot = Slot { words, hash, len_and_1: len as u32 + 1, value: V::own(value) };
                self.keys += 1;
                return;
            }
            at = (at + 1) % SLOTS;
        }
    }

    /// Calls `take` with hash, key and value of every entry, and empties the table.
    #[inline(always)]
    pub fn empty(&mut self, mut take: impl FnMut(u32, Stored<K::Ref<'_>>, V::Ref<'_>)) {
        if self.keys == 0 {
            return;
        }
        for slot in self.slots.iter_mut().filter(|slot| slot.len_and_1 != 0) {
            let len = slot.len_and_1 as usize - 1;
            let value = V::lend(&slot.value);
            if len <= SHORT_BYTES {
                take(slot.hash, Stored::Short(Short { words: slot.words, len: len as u32 }), value);
            } else {
                let place = slot.words[0] as usize;
                take(slot.hash, Stored::Long(K::read(&self.long[place..place + len])), value);
            }
            slot.len_and_1 = 0;
        }
        self.long.clear();
        self.keys = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::datum::Bytes;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn counts_are_those_of_a_map(words in prop::collection::vec("[ab]{0,3}|[a-z]{0,40}|a{14,18}", 0..400)) {
            let mut table = Slots::<Bytes, u64>::new();
            let mut expected = BTreeMap::<Vec<u8>, u64>::new();
            for word in &words {
                assert!(table.has_room(1));
                match Bytes::short(word.as_bytes()) {
                    Some(short) => table.merge_short(&Slot::short(short, 1), |a, b| a + b),
                    None => table.merge_long(word.as_bytes(), 1, |a, b| a + b),
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
