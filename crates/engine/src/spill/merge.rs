//! The merge of many sorted streams: runs on disk, and the pairs in memory.

use std::ops::{ControlFlow, Range};
use std::rc::Rc;

use crate::data::datum::{Datum, Key};
use crate::data::order::Order;
use crate::failure::Failure;
use crate::gather::store::{ROWS_AHEAD, SortRow, Store};
use crate::spill::run::{Run, RunReader};
use crate::spill::spill_file::Spill;
use crate::spill::tournament::{Streams, Tournament};

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
    rows: Vec<SortRow>,
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

/// The streams of a merge.
struct Merged<K: Key, V: Datum> {
    order: Order,
    streams: Vec<SortedStream<K, V>>,
}

impl<K: Key, V: Datum> Streams for Merged<K, V> {
    #[inline(always)]
    fn prefix(&self, stream: usize) -> u64 {
        self.order.prefix_of_next::<K, V>(self.streams[stream].pair())
    }

    fn comes_before(&self, a: usize, b: usize) -> bool {
        let next = self.order.compare_next::<K, V>(self.streams[a].pair(), self.streams[b].pair());
        next.then(a.cmp(&b)).is_lt()
    }
}

/// The merged stream.
pub(crate) struct Merge<K: Key, V: Datum> {
    merged: Merged<K, V>,
    tournament: Tournament,
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
        let merged = Merged { order, streams };
        Ok(Merge { tournament: Tournament::new(merged.streams.len(), &merged), merged, failure: None })
    }

    /// Returns the next pair; `None` at the end and after a failure.
    #[inline(always)]
    pub fn pair(&self) -> Option<(K::Ref<'_>, V::Ref<'_>)> {
        self.merged.streams[self.tournament.winner()?].pair()
    }

    /// Advances to the pair after it.
    #[inline(always)]
    pub fn advance(&mut self) {
        let Some(winner) = self.tournament.winner() else { return };
        match self.merged.streams[winner].advance() {
            Ok(()) => self.tournament.play_again(&self.merged),
            Err(failure) => {
                self.failure = Some(failure);
                self.tournament = Tournament::default();
            }
        }
    }

    /// Calls `visit` with every pair until it breaks. (`dyn`, because a job calls this from ten places, and each would
    /// be a copy of the merge to compile.)
    pub fn for_each(mut self, visit: &mut Visit<'_, K, V>) -> Result<(), Failure> {
        while let Some((key, value)) = self.pair() {
            if let ControlFlow::Break(outcome) = visit(key, value) {
                return outcome;
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

/// A visitor of pairs.
pub(crate) type Visit<'v, K, V> = dyn FnMut(<K as Datum>::Ref<'_>, <V as Datum>::Ref<'_>) -> Flow + 'v;

/// The answer of a visitor. A break ends the visit: with a failure, or because the rest is not wanted.
pub(crate) type Flow = ControlFlow<Result<(), Failure>>;

/// Goes on unless something has failed.
pub(crate) fn go_on(done: Result<(), Failure>) -> Flow {
    match done {
        Ok(()) => ControlFlow::Continue(()),
        failed => ControlFlow::Break(failed),
    }
}
