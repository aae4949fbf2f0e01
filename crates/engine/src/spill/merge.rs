//! The merge of many sorted streams: runs on disk, and the pairs in memory.
//!
//! It is a tournament. Each inner node of a tree of streams stores the loser of its match, so the next pair costs one
//! comparison per level on the way from its leaf to the root. Most comparisons look at two numbers only, the prefixes
//! of the pairs. The winner is unpredictable, so it is selected without a branch.

use std::hint::select_unpredictable;
use std::ops::{ControlFlow, Range};
use std::rc::Rc;

use crate::data::datum::{Datum, Key};
use crate::data::order::Order;
use crate::failure::Failure;
use crate::gather::store::{ROWS_AHEAD, Row, Store};
use crate::spill::run::{Run, RunReader};
use crate::spill::spill_file::Spill;

/// A sorted stream.
enum SortedStream<K: Key, V: Datum> {
    Run(RunReader<K, V>),
    Memory(Sorted<K, V>),
}

/// The pairs in memory, sorted part by part on demand.
pub(crate) struct Sorted<K: Key, V: Datum> {
    store: Store<K, V>,
    order: Order,
    limit: usize,
    /// Parts that are not sorted yet, the next one last.
    parts: Vec<Range<usize>>,
    rows: Vec<Row>,
    at: usize,
}

impl<K: Key, V: Datum> Sorted<K, V> {
    pub fn new(mut store: Store<K, V>, order: Order, limit: usize) -> Sorted<K, V> {
        let mut parts = store.parts();
        parts.reverse();
        let mut sorted = Sorted { store, order, limit, parts, rows: Vec::new(), at: 0 };
        sorted.sort_next();
        sorted
    }

    /// Returns the current pair; `None` after the last.
    #[inline(always)]
    pub fn pair(&self) -> Option<(K::Ref<'_>, V::Ref<'_>)> {
        self.rows.get(self.at).map(|row| self.store.pair(*row))
    }

    #[inline(always)]
    fn advance(&mut self) {
        self.at += 1;
        // Rows are in order, but their pairs are scattered.
        if let Some(ahead) = self.rows.get(self.at + ROWS_AHEAD) {
            self.store.prefetch(*ahead);
        }
        if self.at == self.rows.len() {
            self.sort_next();
        }
    }

    /// Sorts the next part that has pairs.
    #[cold]
    fn sort_next(&mut self) {
        (self.at, self.rows) = (0, Vec::new());
        while self.rows.is_empty()
            && let Some(part) = self.parts.pop()
        {
            self.rows = self.store.rows(part, self.order, self.limit);
        }
    }
}

impl<K: Key, V: Datum> SortedStream<K, V> {
    #[inline(always)]
    fn pair(&self) -> Option<(K::Ref<'_>, V::Ref<'_>)> {
        match self {
            SortedStream::Run(reader) => reader.pair(),
            SortedStream::Memory(sorted) => sorted.pair(),
        }
    }

    #[inline(always)]
    fn advance(&mut self) -> Result<(), Failure> {
        match self {
            SortedStream::Run(reader) => reader.advance(),
            SortedStream::Memory(sorted) => {
                sorted.advance();
                Ok(())
            }
        }
    }
}

/// A stream with the prefix of its next pair; the largest number if the stream has ended.
#[derive(Clone, Copy, Default)]
struct Player {
    prefix: u64,
    stream: u32,
}

/// The merged stream.
pub(crate) struct Merge<K: Key, V: Datum> {
    order: Order,
    streams: Vec<SortedStream<K, V>>,
    /// `losers[0]` is the stream with the next pair. Node n has the children 2n and 2n + 1, and stream s is node s +
    /// the number of streams.
    losers: Vec<Player>,
    failure: Option<Failure>,
}

impl<K: Key, V: Datum> Merge<K, V> {
    /// Merges `runs` and the pairs in memory, all of them in `order`.
    pub fn new(
        order: Order,
        spill: &Rc<Spill>,
        runs: impl IntoIterator<Item = Run>,
        memory: Option<Sorted<K, V>>,
    ) -> Result<Merge<K, V>, Failure> {
        let mut streams = Vec::new();
        for run in runs {
            streams.push(SortedStream::Run(RunReader::new(spill.clone(), run)?));
        }
        streams.extend(memory.map(SortedStream::Memory));
        let mut merge = Merge { order, streams, losers: Vec::new(), failure: None };
        merge.losers = vec![Player::default(); merge.streams.len()];
        if !merge.streams.is_empty() {
            merge.losers[0] = merge.play(1);
        }
        Ok(merge)
    }

    /// Returns the winner below `node`, and records the losers on the way.
    fn play(&mut self, node: usize) -> Player {
        let streams = self.streams.len();
        if node >= streams {
            return self.player(node - streams);
        }
        let (left, right) = (self.play(node * 2), self.play(node * 2 + 1));
        let (winner, loser) = if self.beats(left, right) { (left, right) } else { (right, left) };
        self.losers[node] = loser;
        winner
    }

    #[inline(always)]
    fn player(&self, stream: usize) -> Player {
        let pair = self.streams[stream].pair();
        let prefix = pair.map_or(u64::MAX, |(key, value)| self.order.prefix::<K, V>(key, value));
        Player { prefix, stream: stream as u32 }
    }

    #[inline(always)]
    fn beats(&self, a: Player, b: Player) -> bool {
        if a.prefix == b.prefix { self.beats_equal(a.stream, b.stream) } else { a.prefix < b.prefix }
    }

    /// Compares streams with equal prefixes. A stream that has ended comes after all others.
    fn beats_equal(&self, a: u32, b: u32) -> bool {
        match (self.streams[a as usize].pair(), self.streams[b as usize].pair()) {
            (Some(pair_a), Some(pair_b)) => self.order.compare::<K, V>(pair_a, pair_b).then(a.cmp(&b)).is_lt(),
            (pair_a, _) => pair_a.is_some(),
        }
    }

    /// Returns the next pair; `None` at the end and after a failure.
    #[inline(always)]
    pub fn pair(&self) -> Option<(K::Ref<'_>, V::Ref<'_>)> {
        let winner = self.losers.first()?;
        self.streams[winner.stream as usize].pair()
    }

    /// Advances to the pair after it.
    #[inline(always)]
    pub fn advance(&mut self) {
        let Some(winner) = self.losers.first() else { return };
        let stream = winner.stream as usize;
        if let Err(failure) = self.streams[stream].advance() {
            self.failure = Some(failure);
            self.losers.clear();
            return;
        }
        let mut winner = self.player(stream);
        let mut node = (stream + self.streams.len()) / 2;
        while node > 0 {
            let other = self.losers[node];
            let wins = self.beats(other, winner);
            let choose = |if_wins: Player, if_not: Player| Player {
                prefix: select_unpredictable(wins, if_wins.prefix, if_not.prefix),
                stream: select_unpredictable(wins, if_wins.stream, if_not.stream),
            };
            self.losers[node] = choose(winner, other);
            winner = choose(other, winner);
            node /= 2;
        }
        self.losers[0] = winner;
    }

    /// Calls `visit` with every pair until it breaks. (`dyn`, because a job calls this from ten places, and each would be a copy
    /// of the merge to compile.)
    pub fn for_each(mut self, visit: &mut Visit<'_, K, V>) -> Result<(), Failure> {
        while let Some((key, value)) = self.pair() {
            if visit(key, value).is_break() {
                return Ok(());
            }
            self.advance();
        }
        self.failure()
    }

    /// Returns the failure that ended the stream early, if any.
    pub fn failure(&mut self) -> Result<(), Failure> {
        self.failure.take().map_or(Ok(()), Err)
    }
}

/// Receives a pair.
pub(crate) type Visit<'v, K, V> = dyn FnMut(<K as Datum>::Ref<'_>, <V as Datum>::Ref<'_>) -> ControlFlow<()> + 'v;
