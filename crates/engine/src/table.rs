//! The combining table: one entry per key, values combined in place.
//!
//! ```text
//!  slots:    | hash, 4 | entry + 1, 4 |  ...   open addressing, linear probing, 0 is empty
//!  entries:  | value | length | key |  | value | length | key |  ...   in order of first appearance
//! ```
//!
//! Keys met early lie close together, and early keys are the frequent ones. Growing moves slots only: their
//! hashes are in them.

use std::marker::PhantomData;

use gristmill_page::prefetch;

use crate::datum::{Combine, Datum, Key};
use crate::entry::{read_length, write_length};

const SLOTS_MIN: usize = 64;
/// Places are 32-bit.
const LIMIT: usize = u32::MAX as usize - 1024;
/// Room for a value and a length.
const HEADER_MAX: usize = 32;

pub(crate) struct Table<K, V> {
    slots: Vec<u64>,
    entries: Vec<u8>,
    len: usize,
    kind: PhantomData<(K, V)>,
}

impl<K: Key, V: Datum> Table<K, V> {
    /// Bytes in front of the key.
    const VALUE_BYTES: usize = {
        // Values of variable width are never combined; the plan sees to that.
        let bytes = if let Some(width) = V::WIDTH { width } else { 0 };
        assert!(V::WIDTH.is_none() || bytes + 5 <= HEADER_MAX, "values of a fixed width have at most 27 bytes");
        bytes
    };

    /// An empty table that grows when `keys` have come.
    pub fn with_room_for(keys: usize) -> Table<K, V> {
        Table {
            slots: vec![0; (keys + keys / 3).next_power_of_two().max(SLOTS_MIN)],
            entries: Vec::new(),
            len: 0,
            kind: PhantomData,
        }
    }

    /// Forgets all keys and keeps the memory.
    pub fn clear(&mut self) {
        if self.len > 0 {
            self.slots.fill(0);
            self.entries.clear();
            self.len = 0;
        }
    }

    /// Number of keys.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Bytes of memory used for slots and entries.
    pub fn bytes(&self) -> usize {
        self.slots.len() * 8 + self.entries.len()
    }

    /// Asks for the slot of `hash` to be brought near: [`Table::merge`] will follow.
    #[inline(always)]
    pub fn prefetch(&self, hash: u32) {
        let mask = self.slots.len() - 1;
        prefetch(&self.slots[hash as usize & mask]);
    }

    /// Asks for the entry that the slot of `hash` most likely leads to; worth it once the slot is near.
    #[inline(always)]
    pub fn prefetch_entry(&self, hash: u32) {
        let slot = self.slots[hash as usize & (self.slots.len() - 1)];
        if (slot >> 32) as u32 == hash
            && let Some(entry) = self.entries.get((slot as u32).wrapping_sub(1) as usize)
        {
            prefetch(entry);
        }
    }

    /// Combines `value` into the entry of `key`, or makes a new one.
    #[inline(always)]
    pub fn merge(&mut self, hash: u32, key: K::Ref<'_>, value: V::Ref<'_>, combine: Combine<V>) {
        let mask = self.slots.len() - 1;
        let mut at = hash as usize & mask;
        loop {
            let slot = self.slots[at & mask];
            if slot == 0 {
                return self.insert(at, hash, key, value);
            }
            if (slot >> 32) as u32 == hash {
                let start = (slot as u32 - 1) as usize;
                let key_start = start + Self::VALUE_BYTES;
                let (length, key_start) = match K::WIDTH {
                    Some(width) => (width, key_start),
                    None => read_length(&self.entries, key_start),
                };
                if K::equal(K::read(&self.entries[key_start..key_start + length]), key) {
                    let place = &mut self.entries[start..start + Self::VALUE_BYTES];
                    let combined = combine(V::own(V::read(place)), V::own(value));
                    V::write(V::lend(&combined), place);
                    return;
                }
            }
            at = (at + 1) & mask;
        }
    }

    #[inline]
    fn insert(&mut self, at: usize, hash: u32, key: K::Ref<'_>, value: V::Ref<'_>) {
        let start = self.entries.len();
        assert!(start + K::width(key) < LIMIT, "a table holds less than 4 GiB of entries");
        let mut header = [0; HEADER_MAX];
        V::write(value, &mut header[..Self::VALUE_BYTES]);
        let mut header_bytes = Self::VALUE_BYTES;
        if K::WIDTH.is_none() {
            header_bytes += write_length(K::width(key), &mut header[header_bytes..]);
        }
        match K::short(key) {
            // Two copies of a size known to the compiler, and what is too much is cut off again.
            Some(short) => {
                self.entries.extend_from_slice(&header);
                self.entries.truncate(start + header_bytes);
                self.entries.extend_from_slice(&short.bytes());
                self.entries.truncate(start + header_bytes + short.len as usize);
            }
            None => {
                self.entries.extend_from_slice(&header[..header_bytes]);
                self.entries.resize(start + header_bytes + K::width(key), 0);
                K::write(key, &mut self.entries[start + header_bytes..]);
            }
        }
        self.slots[at] = u64::from(hash) << 32 | (start as u64 + 1);
        self.len += 1;
        if self.len * 4 > self.slots.len() * 3 {
            self.grow();
        }
    }

    #[cold]
    fn grow(&mut self) {
        let mask = self.slots.len() * 2 - 1;
        let old = std::mem::replace(&mut self.slots, vec![0; mask + 1]);
        for slot in old.into_iter().filter(|slot| *slot != 0) {
            let mut at = (slot >> 32) as usize & mask;
            while self.slots[at] != 0 {
                at = (at + 1) & mask;
            }
            self.slots[at] = slot;
        }
    }

    /// Places of all entries, in the order in which their keys first came, to be read with [`Table::entry`].
    pub fn places(&self) -> impl Iterator<Item = usize> + '_ {
        let mut next = 0;
        std::iter::from_fn(move || {
            let place = next;
            if place == self.entries.len() {
                return None;
            }
            let key_start = place + Self::VALUE_BYTES;
            next = match K::WIDTH {
                Some(width) => key_start + width,
                None => {
                    let (length, start) = read_length(&self.entries, key_start);
                    start + length
                }
            };
            Some(place)
        })
    }

    /// Key and value at a place.
    #[inline(always)]
    pub fn entry(&self, place: usize) -> (K::Ref<'_>, V::Ref<'_>) {
        let key_start = place + Self::VALUE_BYTES;
        let (length, start) = match K::WIDTH {
            Some(width) => (width, key_start),
            None => read_length(&self.entries, key_start),
        };
        (K::read(&self.entries[start..start + length]), V::read(&self.entries[place..key_start]))
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
        fn counts_are_those_of_a_map(words in prop::collection::vec("[ab]{0,3}|[a-z]{0,300}", 0..400), crowded: bool) {
            let mut table = Table::<Bytes, u64>::with_room_for(1);
            let mut expected = BTreeMap::<Vec<u8>, u64>::new();
            for word in &words {
                // Crowded: all hashes collide in few slots, so keys are told apart by their bytes.
                let hash = short_hash(Bytes::hash(word.as_bytes())) & if crowded { 3 } else { u32::MAX };
                table.merge(hash, word.as_bytes(), 1, |a, b| a + b);
                *expected.entry(word.clone().into_bytes()).or_default() += 1;
            }
            let mut counted = BTreeMap::new();
            for place in table.places() {
                let (key, value) = table.entry(place);
                counted.insert(key.to_vec(), value);
            }
            prop_assert_eq!(table.len(), expected.len());
            prop_assert_eq!(counted, expected);
        }
    }
}
