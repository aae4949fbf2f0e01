//! Pairs in memory before they are sorted: gathered by partition if values combine, or piled up as they came if they do
//! not.

use std::cmp::Ordering;
use std::marker::PhantomData;
use std::ops::Range;

use gristmill_os::memory::prefer_huge_pages;
use gristmill_page::prefetch;

use crate::data::datum::{Bytes, Datum, Key};
use crate::data::entry;
use crate::data::key;
use crate::data::order::Order;
use crate::gather::combined::{Gathered, LIST_BITS};
use crate::gather::partitions::Partitions;

/// The size of a [`SortRow`]. Sorting needs one per pair, so a store accounts for it from the beginning.
pub(crate) const ROW_BYTES: usize = size_of::<SortRow>();
/// The distance in rows at which pairs are prefetched when they are read in order.
pub(crate) const ROWS_AHEAD: usize = 16;
/// Fewer rows are sorted by comparing them whole.
const FEW_ROWS: usize = 32;
/// The number of bits of a place for the position in a chunk or partition: 32, and the number of a list.
const AT_BITS: u32 = 32 + LIST_BITS;
/// The largest number of chunks in a pile: the other bits of a place number them.
const CHUNKS_MAX: usize = 1 << (u64::BITS - AT_BITS);
/// The smallest size of a chunk, for pages that are almost empty.
const CHUNK_BYTES_MIN: usize = 256;
/// The size of a chunk that is filled pair by pair.
const CHUNK_BYTES: usize = 32 << 10;
/// The largest size of a chunk that is made for later pages, too.
const CHUNK_BYTES_MAX: usize = 8 << 20;
/// A new chunk has about this share of what its partition has already, so that no more than that stays unused.
const CHUNK_SHARE: usize = 8;
/// The overhead of an allocation in bytes.
const CHUNK_COST: usize = 64;

/// The place of a pair, and the prefix that decides most comparisons.
#[derive(Clone, Copy)]
pub(crate) struct SortRow {
    pub prefix: u64,
    /// The number of a chunk or partition, and the position in it.
    place: u64,
}

impl SortRow {
    fn new(prefix: u64, part: usize, at: usize) -> SortRow {
        SortRow { prefix, place: (part as u64) << AT_BITS | at as u64 }
    }

    fn part(self) -> usize {
        (self.place >> AT_BITS) as usize
    }

    fn at(self) -> usize {
        (self.place & ((1 << AT_BITS) - 1)) as usize
    }
}

/// The pairs of one worker.
pub(crate) enum Store<K: Key, V: Datum> {
    /// By partition, pairs that are combined from time to time.
    Gathered(Partitions<K, V>),
    /// Pairs as they came.
    Pile(Pile<K, V>),
}

impl<K: Key, V: Datum> Store<K, V> {
    /// Makes a store without pairs, with partitions that combine pairs, are ranges of the result, or neither.
    pub fn empty(partitions: usize, combines: bool, ranged: bool) -> Store<K, V> {
        match combines {
            true => Store::gathered(partitions),
            false if ranged => Store::Pile(Pile::of_ranges(partitions)),
            false => Store::Pile(Pile::new(partitions)),
        }
    }

    /// Makes a store without pairs, with partitions that combine pairs.
    pub fn gathered(partitions: usize) -> Store<K, V> {
        Store::Gathered(Partitions::new(partitions))
    }

    /// Returns the number of keys; of pairs, in a pile.
    pub fn len(&self) -> usize {
        match self {
            Store::Gathered(partitions) => partitions.list.iter().map(Gathered::len).sum(),
            Store::Pile(pile) => pile.pairs,
        }
    }

    /// Returns the bytes of memory in use, including those needed for sorting.
    pub fn bytes(&self) -> usize {
        match self {
            Store::Gathered(partitions) => partitions.list.iter().map(Store::gathered_bytes).sum(),
            Store::Pile(pile) => pile.bytes(),
        }
    }

    /// Returns the bytes of one partition in use. The slots for combining are no larger than the rows for sorting, and
    /// never exist at the same time.
    #[inline]
    pub fn gathered_bytes(gathered: &Gathered<K, V>) -> usize {
        gathered.bytes() + gathered.len() * ROW_BYTES
    }

    pub fn partitions(&self) -> usize {
        match self {
            Store::Gathered(partitions) => partitions.of_job(),
            Store::Pile(pile) => pile.open.len(),
        }
    }

    /// Removes and returns the pairs of one partition.
    pub fn take(&mut self, partition: usize) -> Store<K, V> {
        match self {
            Store::Gathered(partitions) => Store::Gathered(partitions.take(partition)),
            Store::Pile(pile) => {
                let mut taken = Pile::new(1);
                for chunk in pile.chunks.extract_if(.., |chunk| chunk.partition == partition) {
                    taken.pairs += chunk.pairs;
                    taken.chunks.push(chunk);
                }
                pile.open.fill(0);
                Store::Pile(taken)
            }
        }
    }

    /// Calls `visit` with every pair of a partition until it fails.
    pub fn try_for_each<E>(
        &self,
        partition: usize,
        mut visit: impl FnMut(K::Ref<'_>, V::Ref<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        match self {
            Store::Gathered(partitions) => {
                let mut pairs = partitions.get(partition).into_iter().flat_map(Gathered::pairs);
                pairs.try_for_each(|(_, pair)| visit(pair.key, pair.value))
            }
            Store::Pile(pile) => {
                let mut chunks = pile.chunks.iter().filter(|chunk| chunk.partition == partition);
                chunks.try_for_each(|chunk| {
                    entry::pairs::<K, V>(&chunk.bytes).try_for_each(|(_, pair)| visit(pair.key, pair.value))
                })
            }
        }
    }

    /// Removes all pairs.
    pub fn clear(&mut self) {
        match self {
            Store::Gathered(partitions) => partitions.list.iter_mut().for_each(Gathered::clear),
            Store::Pile(pile) => *pile = Pile { ranged: pile.ranged, ..Pile::new(pile.open.len()) },
        }
    }

    /// Returns the parts that can be sorted separately: if partitions are ranges of the result, the chunks of each
    /// range, in order; otherwise everything as one part. A part is a range of chunk or partition numbers.
    pub fn parts(&mut self) -> Vec<Range<usize>> {
        let everything = match self {
            Store::Gathered(partitions) => 0..partitions.list.len(),
            Store::Pile(pile) if pile.ranged => {
                sort_by_partition(&mut pile.chunks);
                // Sorting has moved the open chunks.
                pile.open.fill(0);
                let parts = pile.chunks.chunk_by(|a, b| a.partition == b.partition).map(<[RowChunk]>::len);
                let starts = parts.scan(0, |end, chunks| {
                    *end += chunks;
                    Some(*end - chunks..*end)
                });
                return starts.collect();
            }
            Store::Pile(pile) => 0..pile.chunks.len(),
        };
        std::iter::once(everything).collect()
    }

    /// Returns the rows of a part's pairs in `order`, at most `limit` of them.
    pub fn rows(&self, part: Range<usize>, order: Order, limit: usize) -> Vec<SortRow> {
        let compare = |a: &SortRow, b: &SortRow| -> Ordering {
            a.prefix.cmp(&b.prefix).then_with(|| order.compare::<K, V>(self.pair(*a), self.pair(*b)))
        };
        // With a limit, twice as many rows are gathered before the worse half is dropped. Rows worse than the worst one
        // kept are not gathered at all.
        let gathered_max = limit.saturating_mul(2).max(1024);
        let mut rows: Vec<SortRow> = Vec::with_capacity(self.len_of(part.clone()).min(gathered_max));
        let mut worst = u64::MAX;
        self.for_each(part, |part, at, key, value| {
            let prefix = order.prefix::<K, V>(key, value);
            if prefix > worst {
                return;
            }
            rows.push(SortRow::new(prefix, part, at));
            if order != Order::Unordered && rows.len() == gathered_max {
                rows.select_nth_unstable_by(limit, compare);
                rows.truncate(limit);
                worst = rows.iter().map(|row| row.prefix).max().unwrap_or(u64::MAX);
            }
        });
        if order != Order::Unordered {
            // Sort by prefix first, which needs no unpredictable branches, and then sort rows with equal prefixes.
            sort_by_prefix(&mut rows);
            for equal in rows.chunk_by_mut(|a, b| a.prefix == b.prefix) {
                self.sort_equal(equal, order, 0);
            }
        }
        rows.truncate(limit);
        rows
    }

    /// Sorts rows whose prefixes are equal. If they are in the order of their keys, these have their first `depth`
    /// bytes in common.
    fn sort_equal(&self, rows: &mut [SortRow], order: Order, depth: usize) {
        if rows.len() < 2 {
            return;
        }
        if order == Order::ByKey {
            let (key, _) = self.pair(rows[0]);
            if rows.iter().all(|row| key::equal::<K>(self.pair(*row).0, key)) {
                // The values of one key, which is what equal prefixes mostly are.
                rows.iter_mut().for_each(|row| row.prefix = V::prefix(self.pair(*row).1));
            } else if let Some(first) = K::written(&key).filter(|_| rows.len() >= FEW_ROWS) {
                return self.sort_after_common(rows, order, first, depth);
            }
        }
        self.sort_by_pair(rows, order);
    }

    /// Sorts rows by their prefixes, and those that have one in common by their pairs.
    fn sort_by_pair(&self, rows: &mut [SortRow], order: Order) {
        rows.sort_unstable_by(|a, b| {
            a.prefix.cmp(&b.prefix).then_with(|| order.compare::<K, V>(self.pair(*a), self.pair(*b)))
        });
    }

    /// Sorts rows by the eight bytes of their keys behind those that all have in common, and then rows for which these
    /// are equal, too. Long keys that begin alike, such as the addresses of one site, are so compared few times.
    /// `first` is one of the keys.
    fn sort_after_common(&self, rows: &mut [SortRow], order: Order, first: &[u8], depth: usize) {
        let mut common = first.len();
        self.for_each_key(rows, |_, key| {
            let alike = first[depth..common].iter().zip(&key[depth..]).take_while(|(a, b)| a == b);
            common = depth + alike.count();
        });
        self.for_each_key(rows, |row, key| row.prefix = Bytes::prefix(&key[common..]));
        sort_by_prefix(rows);
        let deeper = common + size_of::<u64>();
        for equal in rows.chunk_by_mut(|a, b| a.prefix == b.prefix).filter(|equal| equal.len() > 1) {
            // A key that ends here differs from one that goes on with zeros, although their prefixes are equal.
            let mut go_on = true;
            self.for_each_key(equal, |_, key| go_on &= key.len() >= deeper);
            if go_on {
                self.sort_equal(equal, order, deeper);
            } else {
                self.sort_by_pair(equal, order);
            }
        }
    }

    /// Visits rows with the bytes of their keys, which are written as such.
    fn for_each_key(&self, rows: &mut [SortRow], mut visit: impl FnMut(&mut SortRow, &[u8])) {
        for number in 0..rows.len() {
            if let Some(ahead) = rows.get(number + ROWS_AHEAD) {
                self.prefetch(*ahead);
            }
            let (key, _) = self.pair(rows[number]);
            visit(&mut rows[number], K::written(&key).expect("all keys are of one type"));
        }
    }

    /// Returns an upper bound of the number of pairs in a part.
    fn len_of(&self, part: Range<usize>) -> usize {
        match self {
            Store::Gathered(partitions) => partitions.list[part].iter().map(Gathered::len).sum(),
            Store::Pile(pile) => pile.chunks[part].iter().map(|chunk| chunk.pairs).sum(),
        }
    }

    /// Calls `visit` with every pair of a part and its place.
    fn for_each(&self, part: Range<usize>, mut visit: impl FnMut(usize, usize, K::Ref<'_>, V::Ref<'_>)) {
        for number in part {
            match self {
                Store::Gathered(partitions) => {
                    partitions.list[number].pairs().for_each(|(at, pair)| visit(number, at, pair.key, pair.value));
                }
                Store::Pile(pile) => {
                    let pairs = entry::pairs::<K, V>(&pile.chunks[number].bytes);
                    pairs.for_each(|(at, pair)| visit(number, at, pair.key, pair.value));
                }
            }
        }
    }

    /// Returns the bytes from a row's pair on.
    #[inline(always)]
    fn from(&self, row: SortRow) -> &[u8] {
        match self {
            Store::Gathered(partitions) => partitions.list[row.part()].from(row.at()),
            Store::Pile(pile) => &pile.chunks[row.part()].bytes[row.at()..],
        }
    }

    /// Prefetches the pair of a row.
    #[inline(always)]
    pub fn prefetch(&self, row: SortRow) {
        prefetch(&self.from(row)[0]);
    }

    /// Returns the pair of a row in the page format.
    #[inline(always)]
    pub fn entry(&self, row: SortRow) -> &[u8] {
        let from = self.from(row);
        &from[..entry::read::<K, V>(from).bytes]
    }

    /// Returns the pair of a row.
    #[inline(always)]
    pub fn pair(&self, row: SortRow) -> (K::Ref<'_>, V::Ref<'_>) {
        let pair = entry::read::<K, V>(self.from(row));
        (pair.key, pair.value)
    }
}

/// Pairs as they came, in chunks that never move.
pub(crate) struct Pile<K, V> {
    chunks: Vec<RowChunk>,
    /// For each partition, the index of its last chunk + 1.
    open: Vec<u32>,
    room_bytes: usize,
    pairs: usize,
    /// Whether partitions are ranges of the result.
    ranged: bool,
    kind: PhantomData<(K, V)>,
}

/// Pairs of one partition, one after the other.
pub(crate) struct RowChunk {
    pub partition: usize,
    pub pairs: usize,
    pub bytes: Vec<u8>,
}

impl<K: Key, V: Datum> Pile<K, V> {
    pub fn new(partitions: usize) -> Pile<K, V> {
        Pile {
            chunks: Vec::new(),
            open: vec![0; partitions],
            room_bytes: 0,
            pairs: 0,
            ranged: false,
            kind: PhantomData,
        }
    }

    /// Makes an empty pile whose partitions are ranges of the result.
    pub fn of_ranges(partitions: usize) -> Pile<K, V> {
        Pile { ranged: true, ..Pile::new(partitions) }
    }

    pub fn bytes(&self) -> usize {
        self.room_bytes + self.pairs * ROW_BYTES
    }

    /// Adds `pairs` pairs, which lie one after the other in `body`.
    pub fn append(&mut self, partition: usize, pairs: u32, body: &[u8]) {
        self.pairs += pairs as usize;
        let chunk = self.room(partition, body.len(), CHUNK_BYTES_MIN);
        chunk.pairs += pairs as usize;
        chunk.bytes.extend_from_slice(body);
    }

    /// Adds one pair.
    pub fn push(&mut self, partition: usize, key: K::Ref<'_>, value: V::Ref<'_>) {
        self.pairs += 1;
        let bytes = entry::width::<K, V>(key, value);
        let chunk = self.room(partition, bytes, CHUNK_BYTES);
        chunk.pairs += 1;
        entry::append::<K, V>(0, key, value, &mut chunk.bytes);
    }

    /// Returns a chunk of `partition` with room for `bytes` bytes; if there is none, makes one of at least `room_min`.
    fn room(&mut self, partition: usize, bytes: usize, room_min: usize) -> &mut RowChunk {
        let last = self.open[partition] as usize;
        let fits = last > 0 && {
            let chunk = &self.chunks[last - 1].bytes;
            chunk.capacity() - chunk.len() >= bytes
        };
        if !fits {
            let share = self.room_bytes / (self.open.len() * CHUNK_SHARE);
            let room = bytes.max(room_min).max(share.min(CHUNK_BYTES_MAX));
            self.room_bytes += room + CHUNK_COST;
            let mut memory = Vec::with_capacity(room);
            // Pairs are read in the order of keys, which is anywhere in it.
            prefer_huge_pages(memory.spare_capacity_mut());
            self.chunks.push(RowChunk { partition, pairs: 0, bytes: memory });
            assert!(self.chunks.len() <= CHUNKS_MAX, "a pile has at most 2^28 chunks");
            self.open[partition] = self.chunks.len() as u32;
        }
        &mut self.chunks[self.open[partition] as usize - 1]
    }

    /// Closes a partition to further pairs and frees the unused end of its last chunk.
    pub fn close(&mut self, partition: usize) {
        if let Some(last) = (std::mem::take(&mut self.open[partition]) as usize).checked_sub(1) {
            let chunk = &mut self.chunks[last].bytes;
            self.room_bytes -= chunk.capacity() - chunk.len();
            chunk.shrink_to_fit();
        }
    }

    /// Returns the chunks, ordered by partition.
    pub fn into_chunks(mut self) -> impl Iterator<Item = RowChunk> {
        sort_by_partition(&mut self.chunks);
        self.chunks.into_iter()
    }
}

// Outside the types, so that a sort is compiled once and not for each type of pairs.

fn sort_by_prefix(rows: &mut [SortRow]) {
    rows.sort_unstable_by_key(|row| row.prefix);
}

fn sort_by_partition(chunks: &mut [RowChunk]) {
    chunks.sort_by_key(|chunk| chunk.partition);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::datum::Bytes;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn rows_are_the_first_pairs_in_order(
            pairs in prop::collection::vec((prop::collection::vec(0u8..3, 0..12), 0u64..5), 0..300),
            limit in 0usize..400,
            common in prop::collection::vec(0u8..3, 0..20),
        ) {
            let pairs: Vec<_> = pairs.into_iter().map(|(key, value)| ([&common[..], &key].concat(), value)).collect();
            let mut pile = Pile::<Bytes, u64>::new(1);
            pairs.iter().for_each(|(key, value)| pile.push(0, key, *value));
            let mut store = Store::Pile(pile);
            let all = store.parts().swap_remove(0);
            prop_assert_eq!(store.len(), pairs.len());
            for order in [Order::ByKey, Order::ByValueDescending] {
                let mut expected = pairs.clone();
                expected.sort_by(|a, b| order.compare::<Bytes, u64>((&a.0, a.1), (&b.0, b.1)));
                expected.truncate(limit);
                let rows = store.rows(all.clone(), order, limit);
                let found: Vec<_> =
                    rows.iter().map(|row| store.pair(*row)).map(|(key, value)| (key.to_vec(), value)).collect();
                prop_assert_eq!(found, expected);
            }
        }
    }
}
