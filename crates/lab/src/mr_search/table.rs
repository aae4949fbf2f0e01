//! The pairs of a partition by key, with one value for each key.

use super::supply::{Role, Supply};

/// A table with open addressing: two words for each slot, the key and the value. No key is 0.
pub struct Table {
    slots: Vec<u64>,
    keys: usize,
}

/// Mixes the bits of a key (the finalizer of splitmix64).
pub fn mixed(key: u64) -> u64 {
    let key = (key ^ (key >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let key = (key ^ (key >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    key ^ (key >> 31)
}

impl Table {
    /// Makes an empty table that has room for about so many keys, and grows when it has more.
    pub fn new(keys: usize, supply: &mut Supply<'_>) -> Table {
        let slots = (2 * keys).next_power_of_two().max(1024);
        Table { slots: supply.zeros(Role::Table, 2 * slots), keys: 0 }
    }

    /// Adds a pair; `combine` joins two values of a key.
    #[inline]
    pub fn insert(&mut self, key: u64, value: u64, combine: impl Fn(u64, u64) -> u64, supply: &mut Supply<'_>) {
        assert_ne!(key, 0, "no key is 0");
        let at = self.find(key);
        if self.slots[at] == key {
            self.slots[at + 1] = combine(self.slots[at + 1], value);
            return;
        }
        self.slots[at..at + 2].copy_from_slice(&[key, value]);
        self.keys += 1;
        // At most half full: two words are a slot.
        if self.keys * 4 > self.slots.len() {
            self.grow(supply);
        }
    }

    /// Returns the place of a key, or the free one where it would be.
    fn find(&self, key: u64) -> usize {
        let last = self.slots.len() / 2 - 1;
        let mut slot = mixed(key) as usize & last;
        while self.slots[2 * slot] != 0 && self.slots[2 * slot] != key {
            slot = (slot + 1) & last;
        }
        2 * slot
    }

    fn grow(&mut self, supply: &mut Supply<'_>) {
        let larger = supply.zeros(Role::Table, 2 * self.slots.len());
        let smaller = std::mem::replace(&mut self.slots, larger);
        for pair in smaller.as_chunks::<2>().0.iter().filter(|[key, _]| *key != 0) {
            let at = self.find(pair[0]);
            self.slots[at..at + 2].copy_from_slice(pair);
        }
        supply.give_back(Role::Table, smaller);
    }

    /// The number of keys.
    pub fn keys(&self) -> usize {
        self.keys
    }

    /// The memory of the table.
    pub fn words(&self) -> &[u64] {
        &self.slots
    }

    /// Lists all pairs, and gives the memory of the table back.
    pub fn into_list(self, supply: &mut Supply<'_>) -> Vec<u64> {
        let mut list = supply.take(Role::List, 0);
        for pair in self.slots.as_chunks::<2>().0.iter().filter(|[key, _]| *key != 0) {
            if list.len() + 2 > list.capacity() {
                supply.grow(Role::List, &mut list);
            }
            list.extend_from_slice(pair);
        }
        supply.give_back(Role::Table, self.slots);
        list
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::mr_search::supply::{MemorySource, Pool};

    #[test]
    fn a_table_that_grows_has_one_value_for_each_key() {
        let pool = Pool::default();
        for source in [MemorySource::Malloc, MemorySource::Reuse, MemorySource::Pool, MemorySource::Prealloc] {
            let mut supply = Supply::new(source, &pool);
            for _ in 0..2 {
                let (mut table, mut expected) = (Table::new(10, &mut supply), BTreeMap::new());
                for number in 0..10_000_u64 {
                    let key = number * number % 4999 + 1;
                    table.insert(key, number, |a, b| a + b, &mut supply);
                    *expected.entry(key).or_insert(0) += number;
                }
                assert_eq!(table.keys(), expected.len());
                let list = table.into_list(&mut supply);
                let listed: BTreeMap<u64, u64> =
                    list.as_chunks::<2>().0.iter().map(|[key, sum]| (*key, *sum)).collect();
                assert_eq!(listed, expected, "{source:?}");
                supply.give_back(Role::List, list);
            }
        }
    }
}
