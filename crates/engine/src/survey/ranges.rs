//! Partitions in the order of the result: where one range of pairs ends and the next begins.
//!
//! The cuts are pairs of a sample of the input, so that about as many pairs fall into each range. A cut is a whole pair,
//! not a key: where half of all records have one key, their values divide them. Whatever the cuts are, the result is the
//! same; they decide only who makes which part of it.

use std::io::Write;
use std::marker::PhantomData;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use gristmill_os::clock::monotonic_ns;

use crate::data::datum::{Datum, Key};
use crate::data::entry;
use crate::gather::store::{Pile, Store};
use crate::input::reader::Reader;
use crate::input::source::Source;
use crate::plan::settings::{Isolation, Order, Settings};
use crate::program::map_reduce::{Emit, MapReduce};
use crate::survey::sample::{ask, cut, is_worth_it, map_piece};

/// Pieces that are looked at, spread over the input, and their size, about: thousands of pairs, so that the largest of 64
/// ranges is hardly a tenth larger than the average.
const PIECES: u64 = 128;
const PIECE_BYTES: usize = 8 << 10;
/// How long the look may take; it takes 2 ms where pairs are records of 100 bytes. Without cuts one process merges what the
/// others have sorted: a map function that is slower than this does not wait for it. If nobody can merge it is worth more.
const PATIENCE_MS: u32 = 200;
const PATIENCE_TO_WRITE_MS: u32 = 5000;
/// Pairs that are kept of it: longer ones need fewer pieces.
const PAIRS_BYTES: usize = 4 << 20;

/// Cuts between ranges, ascending.
pub(crate) struct Ranges<K, V> {
    /// For each cut, the number that decides most comparisons with it.
    prefixes: Vec<u64>,
    /// The cuts as they lie in a page, one behind the other.
    bytes: Vec<u8>,
    places: Vec<usize>,
    kind: PhantomData<fn() -> (K, V)>,
}

impl<K: Key, V: Datum> Ranges<K, V> {
    /// One range: there was nothing to learn where to cut.
    pub fn whole() -> Ranges<K, V> {
        Ranges { prefixes: Vec::new(), bytes: Vec::new(), places: Vec::new(), kind: PhantomData }
    }

    /// Looks for cuts in pieces of the input, before the job starts. There are none if the map function crashes on them or is so
    /// slow that whoever merges its pairs need not hurry, and if the input is hardly more than the pieces.
    pub fn sample<J: MapReduce<Key = K, Value = V>>(
        program: &J,
        settings: &Settings,
        sources: &Arc<[Source]>,
        count: usize,
        writes: bool,
    ) -> Option<Ranges<K, V>> {
        if !is_worth_it(settings, sources) {
            return None;
        }
        let patience_ms = if writes { PATIENCE_TO_WRITE_MS } else { PATIENCE_MS };
        let look = || {
            let deadline_ns = monotonic_ns() + u64::from(patience_ms) * 1_000_000;
            let tasks = cut(settings, sources, PIECES);
            let mut reader = Reader::new(PIECE_BYTES);
            let mut collector = Collector { pairs: Pile::new(1) };
            for task in 0..tasks.len() {
                map_piece(&mut reader, &tasks, task, |split| program.map(split, &mut collector));
                if monotonic_ns() > deadline_ns {
                    return None;
                }
            }
            Some(Ranges::cut(collector.pairs, count))
        };
        if settings.isolation == Isolation::Thread {
            // Here a map function hangs only if the job would, too.
            return catch_unwind(AssertUnwindSafe(look)).ok()?;
        }
        let (told, ..) = ask(patience_ms, |to| {
            let Some(ranges) = look() else { return };
            let length = ranges.bytes.len() as u64;
            // If nobody listens any more, nobody misses it.
            let _ = to.write_all(&length.to_le_bytes()).and_then(|()| to.write_all(&ranges.bytes));
        })?;
        let (length, cuts) = told.split_first_chunk()?;
        (u64::from_le_bytes(*length) == cuts.len() as u64).then(|| Ranges::read(cuts.to_vec()))
    }

    /// Cuts so that each of at most `count` ranges holds as many pairs of `sample`; equal cuts are one.
    fn cut(sample: Pile<K, V>, count: usize) -> Ranges<K, V> {
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

    /// The ranges with these cuts, which another process has made.
    fn read(bytes: Vec<u8>) -> Ranges<K, V> {
        let mut ranges = Ranges { bytes, ..Ranges::whole() };
        for (place, cut) in entry::pairs::<K, V>(&ranges.bytes) {
            ranges.prefixes.push(K::prefix(cut.key));
            ranges.places.push(place);
        }
        ranges
    }

    /// How many ranges there are: one more than cuts.
    pub fn len(&self) -> usize {
        self.places.len() + 1
    }

    /// The range that a pair lies in: a cut is the first pair of its range.
    #[inline(always)]
    pub fn of(&self, key: K::Ref<'_>, value: V::Ref<'_>) -> usize {
        let prefix = K::prefix(key);
        let before = self.prefixes.partition_point(|cut| *cut < prefix);
        match self.prefixes.get(before) {
            Some(cut) if *cut == prefix => self.among_equal(before, prefix, key, value),
            _ => before,
        }
    }

    /// The same where prefixes do not decide.
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

/// Takes pairs and keeps them.
struct Collector<K: Key, V: Datum> {
    pairs: Pile<K, V>,
}

impl<K: Key, V: Datum> Emit<K, V> for Collector<K, V> {
    fn emit(&mut self, key: K::Ref<'_>, value: V::Ref<'_>) {
        if self.pairs.bytes() < PAIRS_BYTES {
            self.pairs.push(0, key, value);
        }
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
                // By the definition, one cut after the other.
                let before = (0..ranges.len() - 1).filter(|cut| ranges.at(*cut) <= (&key[..], &value[..])).count();
                prop_assert_eq!(range, before);
                last = range;
            }
        }
    }

    #[test]
    fn ranges_hold_about_as_many_pairs_also_where_half_of_them_have_one_key() {
        let key = |n: u32| if n.is_multiple_of(2) { b"hot".to_vec() } else { n.reverse_bits().to_be_bytes().to_vec() };
        let pairs = |count: u32| (0..count).map(|n| (key(n), (n.wrapping_mul(0x9e37_79b9)).to_be_bytes().to_vec()));
        let ranges = Ranged::cut(sample(&pairs(4096).collect()), 8);
        let mut held = [0; 8];
        pairs(100_000).for_each(|(key, value)| held[ranges.of(&key, &value)] += 1);
        assert!(held.iter().all(|pairs| (9_000..16_000).contains(pairs)), "{held:?}");
    }
}
