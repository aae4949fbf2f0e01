//! The partitions of one reduce worker, from the first page to the sorted result.
//!
//! While map still runs, the pairs of each page are added to their partition, which combines them when there are enough
//! (or keeps them, when values do not combine). When all has arrived the worker sorts what it has, over all its partitions, and hands it on.

use std::cmp::Ordering;

use crate::datum::{Datum, Key};
use crate::entry;
use crate::gather::{Gathered, Scratch};
use crate::job::Order;
use crate::map_reduce::{MapReduce, Reduce, combiner};
use crate::skew::Skew;

/// Places of pairs are 32-bit.
const PARTITION_BYTES_MAX: usize = u32::MAX as usize;

/// One partition.
enum Partition<K: Key, V: Datum> {
    /// Values are combined.
    Combined(Gathered<K, V>),
    /// Pairs as they lie in pages, one after the other.
    List(Vec<u8>),
}

/// All partitions of one reduce worker; those it does not own stay empty.
pub(crate) struct Reduction<J: MapReduce> {
    /// Combine pairs as they come; else keep them.
    combines: bool,
    /// Watches what is kept, if somebody wants to know of keys with too many values.
    skew: Option<Skew>,
    partitions: Vec<Partition<J::Key, J::Value>>,
    scratch: Scratch,
}

impl<J: MapReduce> Reduction<J> {
    pub fn new(partitions: usize, combines: bool) -> Reduction<J> {
        Reduction {
            combines,
            skew: None,
            partitions: (0..partitions).map(|_| Partition::List(Vec::new())).collect(),
            scratch: Scratch::default(),
        }
    }

    /// True when it combines pairs as they come.
    pub fn combines(&self) -> bool {
        self.combines
    }

    /// Notices, from now on, when one key has gathered more than `after` values, unless they are combined as they come.
    pub fn watch_for_skew(&mut self, after: Option<u32>) {
        self.skew = after.filter(|_| !self.combines).map(Skew::new);
    }

    /// True when what is kept should be combined now: it is full of one key.
    #[inline]
    pub fn is_skewed(&self) -> bool {
        self.skew.as_ref().is_some_and(Skew::is_found)
    }

    /// Takes the pairs of one page.
    pub fn take(&mut self, partition: usize, pairs: u32, body: &[u8]) {
        let slot = &mut self.partitions[partition];
        if !self.combines {
            if let Some(skew) = &mut self.skew {
                skew.count::<J::Key, J::Value>(body);
            }
            let Partition::List(list) = slot else { unreachable!("lists stay lists without a combiner") };
            assert!(
                list.len() + body.len() < PARTITION_BYTES_MAX,
                "a partition that is not combined holds less than 4 GiB"
            );
            return list.extend_from_slice(body);
        }
        let combine = const { combiner::<J>() };
        if let Partition::List(_) = slot {
            *slot = Partition::Combined(Gathered::new());
        }
        let Partition::Combined(gathered) = slot else { unreachable!("made above") };
        gathered.take(pairs as usize, body, &mut self.scratch, combine);
    }

    /// Combines what still waits.
    pub fn combine(&mut self) {
        for partition in &mut self.partitions {
            if let Partition::Combined(gathered) = partition {
                gathered.combine(&mut self.scratch, const { combiner::<J>() });
            }
        }
    }

    /// Number of keys (of pairs, without a combiner).
    pub fn len(&self) -> usize {
        self.partitions.iter().map(Partition::len).sum()
    }

    /// Calls `visit` with every pair of a partition until it fails.
    pub fn try_for_each<E>(
        &self,
        partition: usize,
        mut visit: impl FnMut(<J::Key as Datum>::Ref<'_>, <J::Value as Datum>::Ref<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let (partition, mut outcome) = (&self.partitions[partition], Ok(()));
        partition.for_each_place(|place| {
            if outcome.is_ok() {
                let (key, value) = partition.pair(place);
                outcome = visit(key, value);
            }
        });
        outcome
    }

    /// Forgets all pairs and keeps the memory.
    pub fn clear(&mut self) {
        for partition in &mut self.partitions {
            match partition {
                Partition::Combined(gathered) => gathered.clear(),
                Partition::List(list) => list.clear(),
            }
        }
    }

    /// Bytes of memory in use.
    pub fn bytes(&self) -> usize {
        self.partitions
            .iter()
            .map(|partition| match partition {
                Partition::Combined(gathered) => gathered.bytes(),
                Partition::List(list) => list.len(),
            })
            .sum()
    }

    /// The same pairs, combined now: for a job that did not combine them as they came.
    pub fn combined(self) -> Reduction<J> {
        let mut combined = Reduction::new(self.partitions.len(), true);
        for (number, partition) in self.partitions.into_iter().enumerate() {
            if let Partition::List(list) = partition {
                let pairs = entry::count::<J::Key, J::Value>(&list);
                combined.take(number, pairs, &list);
            }
        }
        combined.combine();
        combined
    }

    /// What `reduce` makes of each key and all its values: keys in order within their partition, the values
    /// of a key in the order in which they arrived.
    pub fn reduced(self, reduce: &Reduce<'_, J::Key, J::Value>) -> Reduction<J> {
        let mut reduced = Reduction::new(self.partitions.len(), false);
        for (number, partition) in self.partitions.iter().enumerate() {
            let mut places = Vec::with_capacity(partition.len());
            partition.for_each_place(|place| places.push(place));
            let key = |place: &usize| partition.pair(*place).0;
            places.sort_by(|a, b| J::Key::compare(key(a), key(b)));
            let Partition::List(made) = &mut reduced.partitions[number] else { unreachable!("made empty above") };
            for group in places.chunk_by(|a, b| J::Key::equal(key(a), key(b))) {
                let mut values = group.iter().map(|place| partition.pair(*place).1);
                reduce(key(&group[0]), &mut values, &mut |key, value| {
                    let start = made.len();
                    made.resize(start + entry::width::<J::Key, J::Value>(key, value), 0);
                    entry::write::<J::Key, J::Value>(0, key, value, &mut made[start..]);
                });
            }
        }
        reduced
    }

    /// Where the pairs lie, in `order`, at most `limit` of them.
    pub fn rows(&self, order: Order, limit: usize) -> Vec<Row> {
        let compare = |a: &Row, b: &Row| -> Ordering {
            a.prefix.cmp(&b.prefix).then_with(|| order.compare::<J::Key, J::Value>(self.pair(a), self.pair(b)))
        };
        // With a limit, twice as many rows are gathered before the worse half is dropped; what is worse than
        // the worst that was kept is not even gathered.
        let gathered_max = limit.saturating_mul(2).max(1024);
        let mut rows: Vec<Row> = Vec::with_capacity(self.len().min(gathered_max));
        let mut worst = u64::MAX;
        for (number, partition) in self.partitions.iter().enumerate() {
            partition.for_each_place(|place| {
                let (key, value) = partition.pair(place);
                let prefix = match order {
                    Order::Unordered => 0,
                    Order::ByKey => J::Key::prefix(key),
                    Order::ByValueDescending => !J::Value::prefix(value),
                };
                if prefix > worst {
                    return;
                }
                rows.push(Row { prefix, partition: number as u32, place: place as u32 });
                if order != Order::Unordered && rows.len() == gathered_max {
                    rows.select_nth_unstable_by(limit, compare);
                    rows.truncate(limit);
                    worst = rows.iter().map(|row| row.prefix).max().unwrap_or(u64::MAX);
                }
            });
        }
        if order != Order::Unordered {
            rows.sort_unstable_by(compare);
        }
        rows.truncate(limit);
        rows
    }

    /// Calls `visit` with the pairs at `rows`.
    pub fn visit(&self, rows: &[Row], mut visit: impl FnMut(<J::Key as Datum>::Ref<'_>, <J::Value as Datum>::Ref<'_>)) {
        for row in rows {
            let (key, value) = self.pair(row);
            visit(key, value);
        }
    }

    fn pair(&self, row: &Row) -> (<J::Key as Datum>::Ref<'_>, <J::Value as Datum>::Ref<'_>) {
        self.partitions[row.partition as usize].pair(row.place as usize)
    }
}

/// Where a pair lies, with what decides most comparisons beside it.
#[derive(Clone, Copy)]
pub(crate) struct Row {
    prefix: u64,
    partition: u32,
    place: u32,
}

impl<K: Key, V: Datum> Partition<K, V> {
    fn len(&self) -> usize {
        match self {
            Partition::Combined(gathered) => gathered.len(),
            Partition::List(_) => {
                let mut pairs = 0;
                self.for_each_place(|_| pairs += 1);
                pairs
            }
        }
    }

    fn for_each_place(&self, mut visit: impl FnMut(usize)) {
        match self {
            Partition::Combined(gathered) => gathered.places().for_each(visit),
            Partition::List(list) => {
                let mut at = 0;
                while at < list.len() {
                    visit(at);
                    at += entry::read::<K, V>(&list[at..]).bytes;
                }
            }
        }
    }

    #[inline(always)]
    fn pair(&self, place: usize) -> (K::Ref<'_>, V::Ref<'_>) {
        match self {
            Partition::Combined(gathered) => gathered.entry(place),
            Partition::List(list) => {
                let pair = entry::read::<K, V>(&list[place..]);
                (pair.key, pair.value)
            }
        }
    }
}
