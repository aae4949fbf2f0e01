//! Partitions in the order of the result: the cuts between ranges of pairs.
//!
//! The cuts are pairs from a sample of the input, chosen so that every range receives about the same number of pairs. A
//! cut is a whole pair, not a key: if half of all records share a key, their values divide them. The cuts do not change
//! the result; they decide only which reducer makes which part of it.

use std::marker::PhantomData;
use std::ops::Range;

use crate::data::datum::{Datum, Key};
use crate::data::entry;
use crate::data::order::Order;
use crate::gather::store::{Pile, Store};

/// The cuts between ranges, ascending.
pub(crate) struct Ranges<K, V> {
    /// For each cut, the number that decides most comparisons with it.
    prefixes: Vec<u64>,
    /// The cuts in the page format, one after the other.
    bytes: Vec<u8>,
    places: Vec<usize>,
    kind: PhantomData<fn() -> (K, V)>,
}

impl<K: Key, V: Datum> Ranges<K, V> {
    /// Returns one range without cuts, for lack of a sample.
    pub fn whole() -> Ranges<K, V> {
        Ranges { prefixes: Vec::new(), bytes: Vec::new(), places: Vec::new(), kind: PhantomData }
    }

    /// Cuts at most `count` ranges that each hold the same number of pairs of `sample`; equal cuts become one.
    pub fn cut(sample: Pile<K, V>, count: usize) -> Ranges<K, V> {
        let mut sample = Store::Pile(sample);
        let all = sample.parts().swap_remove(0);
        let rows = sample.rows(all, Order::ByKey, usize::MAX);
        let mut ranges = Ranges::whole();
        for number in 1..count.min(rows.len()) {
            let (key, value) = sample.pair(rows[number * rows.len() / count.min(rows.len())]);
            if ranges.places.is_empty()
                || Order::ByKey.compare::<K, V>(ranges.at(ranges.places.len() - 1), (key, value)).is_lt()
            {
                ranges.places.push(ranges.bytes.len());
                entry::append::<K, V>(0, key, value, &mut ranges.bytes);
                ranges.prefixes.push(K::prefix(key));
            }
        }
        ranges
    }

    /// Reads the cuts that another process made.
    pub fn read(bytes: Vec<u8>) -> Ranges<K, V> {
        let mut ranges = Ranges { bytes, ..Ranges::whole() };
        for (place, cut) in entry::pairs::<K, V>(&ranges.bytes) {
            ranges.prefixes.push(K::prefix(cut.key));
            ranges.places.push(place);
        }
        ranges
    }

    /// Returns the cuts, in the form that [`Ranges::read`] takes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the number of ranges: one more than there are cuts.
    pub fn len(&self) -> usize {
        self.places.len() + 1
    }

    /// Returns the range that a pair belongs to. A cut is the first pair of its range.
    #[inline(always)]
    pub fn of(&self, key: K::Ref<'_>, value: V::Ref<'_>) -> usize {
        let prefix = K::prefix(key);
        let before = self.prefixes.partition_point(|cut| *cut < prefix);
        match self.prefixes.get(before) {
            Some(cut) if *cut == prefix => self.among_equal(before, prefix, key, value),
            _ => before,
        }
    }

    /// Finds the range where prefixes do not decide.
    #[inline(never)]
    fn among_equal(&self, before: usize, prefix: u64, key: K::Ref<'_>, value: V::Ref<'_>) -> usize {
        let Range { mut start, mut end } =
            before..before + self.prefixes[before..].partition_point(|cut| *cut == prefix);
        while start < end {
            let middle = start.midpoint(end);
            match Order::ByKey.compare::<K, V>(self.at(middle), (key, value)).is_le() {
                true => start = middle + 1,
                false => end = middle,
            }
        }
        start
    }

    fn at(&self, cut: usize) -> (K::Ref<'_>, V::Ref<'_>) {
        let pair = entry::read::<K, V>(&self.bytes[self.places[cut]..]);
        (pair.key, pair.value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::datum::Bytes;
    use proptest::prelude::*;

    type Ranged = Ranges<Bytes, Bytes>;
    type Pairs = Vec<(Vec<u8>, Vec<u8>)>;

    fn sample(pairs: &Pairs) -> Pile<Bytes, Bytes> {
        let mut sample = Pile::new(1);
        pairs.iter().for_each(|(key, value)| sample.push(0, &key[..], &value[..]));
        sample
    }

    proptest! {
        #[test]
        fn a_greater_pair_never_lies_in_an_earlier_range(
            cuts in prop::collection::vec((prop::collection::vec(0u8..3, 0..12), prop::collection::vec(0u8..3, 0..3)), 0..60),
            pairs in prop::collection::vec((prop::collection::vec(0u8..3, 0..12), prop::collection::vec(0u8..3, 0..3)), 0..200),
            count in 1usize..20,
        ) {
            let cut = Ranged::cut(sample(&cuts), count);
            let ranges = Ranged::read(cut.bytes.clone());
            prop_assert!(ranges.len() <= count && cut.len() == ranges.len());
            let mut pairs = pairs;
            pairs.sort();
            let mut last = 0;
            for (key, value) in &pairs {
                let range = ranges.of(key, value);
                prop_assert!(range >= last && range < ranges.len());
                // By the definition: count the cuts that are not greater.
                let before = (0..ranges.len() - 1).filter(|cut| ranges.at(*cut) <= (&key[..], &value[..])).count();
                prop_assert_eq!(range, before);
                last = range;
            }
        }
    }

    #[test]
    fn ranges_are_balanced_even_if_half_of_all_pairs_share_a_key() {
        let key = |n: u32| if n.is_multiple_of(2) { b"hot".to_vec() } else { n.reverse_bits().to_be_bytes().to_vec() };
        let pairs = |count: u32| (0..count).map(|n| (key(n), (n.wrapping_mul(0x9e37_79b9)).to_be_bytes().to_vec()));
        let ranges = Ranged::cut(sample(&pairs(4096).collect()), 8);
        let mut held = [0; 8];
        pairs(100_000).for_each(|(key, value)| held[ranges.of(&key, &value)] += 1);
        assert!(held.iter().all(|pairs| (9_000..16_000).contains(pairs)), "{held:?}");
    }
}
