//! Pairs in memory, before they are sorted: gathered by partition where values combine, and a pile of what came where
//! they do not.

use std::cmp::Ordering;
use std::marker::PhantomData;
use std::ops::Range;

use gristmill_page::prefetch;

use crate::data::datum::{Datum, Key};
use crate::data::entry;
use crate::data::key;
use crate::data::order::Order;
use crate::gather::combined::{Gathered, LIST_BITS};

/// Memory of one [`Row`]: sorting needs one per pair, so a store counts it from the beginning.
pub(crate) const ROW_BYTES: usize = size_of::<Row>();
/// How far ahead of what is read in order pairs are asked for.
pub(crate) const ROWS_AHEAD: usize = 16;
/// Bits of a place that say where in a chunk or partition: 32, and the number of a list.
const AT_BITS: u32 = 32 + LIST_BITS;
/// Chunks of a pile at most: the other bits of a place number them.
const CHUNKS_MAX: usize = 1 << (u64::BITS - AT_BITS);
/// A chunk has at least so much room, for the bodies of pages that are almost empty.
const CHUNK_BYTES_MIN: usize = 256;
/// Room of a chunk that is filled pair by pair.
const CHUNK_BYTES: usize = 32 << 10;
/// What an allocation costs beside its bytes.
const CHUNK_COST: usize = 64;

/// Where a pair lies, with what decides most comparisons beside it.
#[derive(Clone, Copy)]
pub(crate) struct Row {
    pub prefix: u64,
    /// The number of a chunk or partition, and where in it.
    place: u64,
}

impl Row {
    fn new(prefix: u64, part: usize, at: usize) -> Row {
        Row { prefix, place: (part as u64) << AT_BITS | at as u64 }
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
    /// For each partition, pairs that are combined when there are enough.
    Gathered(Vec<Gathered<K, V>>),
    /// Pairs as they came.
    Pile(Pile<K, V>),
}

impl<K: Key, V: Datum> Store<K, V> {
    /// No pairs, of so many partitions: ones that combine them, ones that are ranges, or others.
    pub fn empty(partitions: usize, combines: bool, ranged: bool) -> Store<K, V> {
        match combines {
            true => Store::gathered(partitions),
            false if ranged => Store::Pile(Pile::of_ranges(partitions)),
            false => Store::Pile(Pile::new(partitions)),
        }
    }

    /// No pairs, of so many partitions that combine them.
    pub fn gathered(partitions: usize) -> Store<K, V> {
        Store::Gathered((0..partitions).map(|_| Gathered::new()).collect())
    }

    /// Number of keys (of pairs, in a pile).
    pub fn len(&self) -> usize {
        match self {
            Store::Gathered(partitions) => partitions.iter().map(Gathered::len).sum(),
            Store::Pile(pile) => pile.pairs,
        }
    }

    /// Bytes of memory in use, those that sorting will need included.
    pub fn bytes(&self) -> usize {
        match self {
            Store::Gathered(partitions) => partitions.iter().map(Store::gathered_bytes).sum(),
            Store::Pile(pile) => pile.bytes(),
        }
    }

    /// The same of one partition. The slots by which it is combined take no more than its rows, and never at the same time.
    #[inline]
    pub fn gathered_bytes(gathered: &Gathered<K, V>) -> usize {
        gathered.bytes() + gathered.len() * ROW_BYTES
    }

    pub fn partitions(&self) -> usize {
        match self {
            Store::Gathered(partitions) => partitions.len(),
            Store::Pile(pile) => pile.open.len(),
        }
    }

    /// Takes out the pairs of one partition.
    pub fn take(&mut self, partition: usize) -> Store<K, V> {
        match self {
            Store::Gathered(partitions) => {
                Store::Gathered(vec![std::mem::replace(&mut partitions[partition], Gathered::new())])
            }
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
                partitions[partition].pairs().try_for_each(|(_, pair)| visit(pair.key, pair.value))
            }
            Store::Pile(pile) => {
                let mut chunks = pile.chunks.iter().filter(|chunk| chunk.partition == partition);
                chunks.try_for_each(|chunk| {
                    entry::pairs::<K, V>(&chunk.bytes).try_for_each(|(_, pair)| visit(pair.key, pair.value))
                })
            }
        }
    }

    /// Forgets all pairs.
    pub fn clear(&mut self) {
        match self {
            Store::Gathered(partitions) => partitions.iter_mut().for_each(Gathered::clear),
            Store::Pile(pile) => *pile = Pile { ranged: pile.ranged, ..Pile::new(pile.open.len()) },
        }
    }

    /// What can be sorted by itself: numbers of chunks or partitions whose pairs come before those of the next, where
    /// partitions are ranges of the result; else everything.
    pub fn parts(&mut self) -> Vec<Range<usize>> {
        let everything = match self {
            Store::Gathered(partitions) => 0..partitions.len(),
            Store::Pile(pile) if pile.ranged => {
                pile.chunks.sort_by_key(|chunk| chunk.partition);
                // The open chunks are not where they were.
                pile.open.fill(0);
                let parts = pile.chunks.chunk_by(|a, b| a.partition == b.partition).map(<[Chunk]>::len);
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

    /// Where the pairs of a part lie, in `order`, at most `limit` of them.
    pub fn rows(&self, part: Range<usize>, order: Order, limit: usize) -> Vec<Row> {
        let compare = |a: &Row, b: &Row| -> Ordering {
            a.prefix.cmp(&b.prefix).then_with(|| order.compare::<K, V>(self.pair(*a), self.pair(*b)))
        };
        // With a limit, twice as many rows are gathered before the worse half is dropped; what is worse than
        // the worst that was kept is not even gathered.
        let gathered_max = limit.saturating_mul(2).max(1024);
        let mut rows: Vec<Row> = Vec::with_capacity(self.len_of(part.clone()).min(gathered_max));
        let mut worst = u64::MAX;
        self.for_each(part, |part, at, key, value| {
            let prefix = order.prefix::<K, V>(key, value);
            if prefix > worst {
                return;
            }
            rows.push(Row::new(prefix, part, at));
            if order != Order::Unordered && rows.len() == gathered_max {
                rows.select_nth_unstable_by(limit, compare);
                rows.truncate(limit);
                worst = rows.iter().map(|row| row.prefix).max().unwrap_or(u64::MAX);
            }
        });
        if order != Order::Unordered {
            // Numbers first, which sorts without a branch that depends on them; then those that are equal.
            rows.sort_unstable_by_key(|row| row.prefix);
            for equal in rows.chunk_by_mut(|a, b| a.prefix == b.prefix).filter(|equal| equal.len() > 1) {
                // Values of one key, mostly: numbers again.
                let (key, _) = self.pair(equal[0]);
                if order == Order::ByKey && equal.iter().all(|row| key::equal::<K>(self.pair(*row).0, key)) {
                    equal.iter_mut().for_each(|row| row.prefix = V::prefix(self.pair(*row).1));
                }
                equal.sort_unstable_by(compare);
            }
        }
        rows.truncate(limit);
        rows
    }

    /// Number of pairs in a part, or more.
    fn len_of(&self, part: Range<usize>) -> usize {
        match self {
            Store::Gathered(partitions) => partitions[part].iter().map(Gathered::len).sum(),
            Store::Pile(pile) => pile.chunks[part].iter().map(|chunk| chunk.pairs).sum(),
        }
    }

    /// Calls `visit` with every pair of a part and where it lies.
    fn for_each(&self, part: Range<usize>, mut visit: impl FnMut(usize, usize, K::Ref<'_>, V::Ref<'_>)) {
        for number in part {
            match self {
                Store::Gathered(partitions) => {
                    partitions[number].pairs().for_each(|(at, pair)| visit(number, at, pair.key, pair.value));
                }
                Store::Pile(pile) => {
                    let pairs = entry::pairs::<K, V>(&pile.chunks[number].bytes);
                    pairs.for_each(|(at, pair)| visit(number, at, pair.key, pair.value));
                }
            }
        }
    }

    /// The bytes that begin with the pair at a row.
    #[inline(always)]
    fn from(&self, row: Row) -> &[u8] {
        match self {
            Store::Gathered(partitions) => partitions[row.part()].from(row.at()),
            Store::Pile(pile) => &pile.chunks[row.part()].bytes[row.at()..],
        }
    }

    /// Asks for the pair at a row to be brought near.
    #[inline(always)]
    pub fn prefetch(&self, row: Row) {
        prefetch(&self.from(row)[0]);
    }

    /// The pair at a row as it lies in a page.
    #[inline(always)]
    pub fn entry(&self, row: Row) -> &[u8] {
        let from = self.from(row);
        &from[..entry::read::<K, V>(from).bytes]
    }

    /// The pair at a row.
    #[inline(always)]
    pub fn pair(&self, row: Row) -> (K::Ref<'_>, V::Ref<'_>) {
        let pair = entry::read::<K, V>(self.from(row));
        (pair.key, pair.value)
    }
}

/// Pairs as they came, in chunks that are never moved.
pub(crate) struct Pile<K, V> {
    chunks: Vec<Chunk>,
    /// For each partition, its last chunk + 1.
    open: Vec<u32>,
    room_bytes: usize,
    pairs: usize,
    /// Partitions are ranges of the result.
    ranged: bool,
    kind: PhantomData<(K, V)>,
}

/// Pairs of one partition, one behind the other.
pub(crate) struct Chunk {
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

    /// The same, of partitions that are ranges of the result.
    pub fn of_ranges(partitions: usize) -> Pile<K, V> {
        Pile { ranged: true, ..Pile::new(partitions) }
    }

    pub fn bytes(&self) -> usize {
        self.room_bytes + self.pairs * ROW_BYTES
    }

    /// Takes so many pairs that lie one behind the other.
    pub fn append(&mut self, partition: usize, pairs: u32, body: &[u8]) {
        self.pairs += pairs as usize;
        let chunk = self.room(partition, body.len(), CHUNK_BYTES_MIN);
        chunk.pairs += pairs as usize;
        chunk.bytes.extend_from_slice(body);
    }

    /// Takes one pair.
    pub fn push(&mut self, partition: usize, key: K::Ref<'_>, value: V::Ref<'_>) {
        self.pairs += 1;
        let bytes = entry::width::<K, V>(key, value);
        let chunk = self.room(partition, bytes, CHUNK_BYTES);
        chunk.pairs += 1;
        entry::append::<K, V>(0, key, value, &mut chunk.bytes);
    }

    /// A chunk of `partition` with room for so many bytes, made with at least `room_min` when there is none.
    fn room(&mut self, partition: usize, bytes: usize, room_min: usize) -> &mut Chunk {
        let last = self.open[partition] as usize;
        let fits = last > 0 && {
            let chunk = &self.chunks[last - 1].bytes;
            chunk.capacity() - chunk.len() >= bytes
        };
        if !fits {
            let room = bytes.max(room_min);
            self.room_bytes += room + CHUNK_COST;
            self.chunks.push(Chunk { partition, pairs: 0, bytes: Vec::with_capacity(room) });
            assert!(self.chunks.len() <= CHUNKS_MAX, "a pile has at most 2^28 chunks");
            self.open[partition] = self.chunks.len() as u32;
        }
        &mut self.chunks[self.open[partition] as usize - 1]
    }

    /// Nothing more comes of a partition: gives back what its last chunk has not used.
    pub fn close(&mut self, partition: usize) {
        if let Some(last) = (std::mem::take(&mut self.open[partition]) as usize).checked_sub(1) {
            let chunk = &mut self.chunks[last].bytes;
            self.room_bytes -= chunk.capacity() - chunk.len();
            chunk.shrink_to_fit();
        }
    }

    /// The chunks, partition by partition.
    pub fn into_chunks(mut self) -> impl Iterator<Item = Chunk> {
        self.chunks.sort_by_key(|chunk| chunk.partition);
        self.chunks.into_iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::datum::Bytes;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn rows_are_the_pairs_in_order_and_no_more_than_wanted(
            pairs in prop::collection::vec((prop::collection::vec(0u8..3, 0..12), 0u64..5), 0..300),
            limit in 0usize..400,
        ) {
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
