//! Many sorted streams become one: runs on disk, and what is still in memory.
//!
//! A tournament: each inner node of a tree of streams remembers who lost there, so the next pair costs one comparison per
//! level on the way from its leaf to the root. Most comparisons look at two numbers only, the prefixes of the pairs; who wins
//! cannot be foreseen, so it is selected, not branched upon.

use std::hint::select_unpredictable;
use std::ops::{ControlFlow, Range};
use std::rc::Rc;

use crate::data::datum::{Datum, Key};
use crate::data::order::Order;
use crate::failure::Failure;
use crate::gather::store::{ROWS_AHEAD, Row, Store};
use crate::spill::run::{Run, RunReader};
use crate::spill::spill_file::Spill;

/// One sorted stream.
enum Stream<K: Key, V: Datum> {
    Run(RunReader<K, V>),
    Memory(Sorted<K, V>),
}

/// What is in memory, sorted part by part as it is asked for.
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

    /// The pair at hand, until the last.
    #[inline(always)]
    pub fn pair(&self) -> Option<(K::Ref<'_>, V::Ref<'_>)> {
        self.rows.get(self.at).map(|row| self.store.pair(*row))
    }

    #[inline(always)]
    fn advance(&mut self) {
        self.at += 1;
        // Rows lie in order, their pairs anywhere.
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

impl<K: Key, V: Datum> Stream<K, V> {
    #[inline(always)]
    fn pair(&self) -> Option<(K::Ref<'_>, V::Ref<'_>)> {
        match self {
            Stream::Run(reader) => reader.pair(),
            Stream::Memory(sorted) => sorted.pair(),
        }
    }

    #[inline(always)]
    fn advance(&mut self) -> Result<(), Failure> {
        match self {
            Stream::Run(reader) => reader.advance(),
            Stream::Memory(sorted) => {
                sorted.advance();
                Ok(())
            }
        }
    }
}

/// A stream, with what of its next pair decides most comparisons: the largest number when it has ended.
#[derive(Clone, Copy, Default)]
struct Player {
    prefix: u64,
    stream: u32,
}

/// The merged stream.
pub(crate) struct Merge<K: Key, V: Datum> {
    order: Order,
    streams: Vec<Stream<K, V>>,
    /// `losers[0]` is the stream whose pair is next; node n has the nodes 2n and 2n + 1 below it, and stream s is
    /// node s + the number of streams.
    losers: Vec<Player>,
    failure: Option<Failure>,
}

impl<K: Key, V: Datum> Merge<K, V> {
    /// Merges `runs`, and what is in memory, all of them in `order`.
    pub fn new(
        order: Order,
        spill: &Rc<Spill>,
        runs: impl IntoIterator<Item = Run>,
        memory: Option<Sorted<K, V>>,
    ) -> Result<Merge<K, V>, Failure> {
        let mut streams = Vec::new();
        for run in runs {
            streams.push(Stream::Run(RunReader::new(spill.clone(), run)?));
        }
        streams.extend(memory.map(Stream::Memory));
        let mut merge = Merge { order, streams, losers: Vec::new(), failure: None };
        merge.losers = vec![Player::default(); merge.streams.len()];
        if !merge.streams.is_empty() {
            merge.losers[0] = merge.play(1);
        }
        Ok(merge)
    }

    /// Who wins below `node`; the losers are written down on the way.
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

    /// The same where prefixes do not decide: a stream that has ended comes after all others.
    fn beats_equal(&self, a: u32, b: u32) -> bool {
        match (self.streams[a as usize].pair(), self.streams[b as usize].pair()) {
            (Some(pair_a), Some(pair_b)) => self.order.compare::<K, V>(pair_a, pair_b).then(a.cmp(&b)).is_lt(),
            (pair_a, _) => pair_a.is_some(),
        }
    }

    /// The next pair; none at the end, and after a failure.
    #[inline(always)]
    pub fn pair(&self) -> Option<(K::Ref<'_>, V::Ref<'_>)> {
        let winner = self.losers.first()?;
        self.streams[winner.stream as usize].pair()
    }

    /// Goes on to the pair after it.
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

    /// Calls `visit` with every pair until it breaks.
    pub fn for_each(mut self, mut visit: impl FnMut(K::Ref<'_>, V::Ref<'_>) -> ControlFlow<()>) -> Result<(), Failure> {
        while let Some((key, value)) = self.pair() {
            if visit(key, value).is_break() {
                return Ok(());
            }
            self.advance();
        }
        self.failure()
    }

    /// What ended the stream before its time.
    pub fn failure(&mut self) -> Result<(), Failure> {
        self.failure.take().map_or(Ok(()), Err)
    }
}
