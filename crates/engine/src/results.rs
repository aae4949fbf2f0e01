//! The result as it comes in: one sorted stream of pages per reducer, merged into one.
//!
//! A reducer that dies while it delivers is replaced by one that makes the same stream again; what had
//! been taken from the old one is skipped in the new. A stream that would not be the same, because it has no order or because its
//! sums are rounded otherwise, is held back until it is complete: on disk, when it is large.

use std::io::{Read, Seek, Write};
use std::ops::ControlFlow;
use std::path::Path;

use gristmill_page::{PageRef, Receiver};
use tempfile::{SpooledTempFile, spooled_tempfile_in};

use crate::datum::Datum;
use crate::entry::{self, Entry};
use crate::error::{Error, Result};
use crate::exchange::{HEADER_BYTES, Header, Kind, give_back};
use crate::map_reduce::MapReduce;
use crate::plan::Plan;
use crate::settings::{Order, Settings};
use crate::shared::Shared;

/// How the streams of the reducers make up the result.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Arrangement {
    /// One stream after the other.
    Unordered,
    /// So many partitions are ranges of it: one after the other, from the streams in turns.
    Ranges(usize),
    /// Each stream is in this order.
    Merge(Order),
    /// The same, and a replacement's stream may be another.
    MergeHeldBack(Order),
}

/// The streams of all reducers.
pub(crate) struct Results<'r, J: MapReduce> {
    shared: &'r Shared<'r>,
    receiver: Receiver<'r>,
    streams: Vec<Stream<'r>>,
    /// The stream whose next page is waited for.
    awaited: usize,
    /// Bytes that are held back in memory.
    held_bytes_max: usize,
    spill_dir: &'r Path,
    kind: std::marker::PhantomData<J>,
}

/// The stream of one reducer, through all its lives.
#[derive(Default)]
struct Stream<'r> {
    /// The slot it comes from now, and how many it came from before.
    slot: usize,
    lives: usize,
    page: Source<'r>,
    /// Where in the page the next pair begins, where the pairs end, and how many there are between.
    at: usize,
    end: usize,
    left: u64,
    ended: bool,
    /// The partition that the pairs at hand are of.
    partition: usize,
    /// Pairs taken, and pairs still to be skipped because they were taken from a predecessor.
    taken: u64,
    skip: u64,
    pieces: Vec<u8>,
    /// All of it, if it was held back.
    held: Option<HeldBack<'r>>,
}

/// What the next pairs are read from.
#[derive(Default)]
enum Source<'r> {
    #[default]
    None,
    Page(PageRef<'r>),
    /// One pair that was larger than a page, or what was held back.
    Copy(Vec<u8>),
}

impl Stream<'_> {
    fn bytes(&self) -> &[u8] {
        match &self.page {
            Source::None => &[],
            Source::Page(page) => &page.bytes()[self.at..self.end],
            Source::Copy(pairs) => &pairs[self.at..self.end],
        }
    }
}

/// A stream until it is whole: in memory, or in a file without a name.
struct HeldBack<'r> {
    file: SpooledTempFile,
    /// Pieces that are in it and were not asked for again.
    pieces: usize,
    spill_dir: &'r Path,
}

impl HeldBack<'_> {
    /// Holds back so many whole pairs.
    fn push(&mut self, pairs: u64, bytes: &[u8]) -> Result<()> {
        let mut head = [0; 16];
        head[..8].copy_from_slice(&pairs.to_le_bytes());
        head[8..].copy_from_slice(&(bytes.len() as u64).to_le_bytes());
        self.pieces += 1;
        let written = self.file.write_all(&head).and_then(|()| self.file.write_all(bytes));
        written.map_err(|source| self.failed("write", source))
    }

    /// Nothing more comes: goes back to the beginning.
    fn rewind(&mut self) -> Result<()> {
        self.file.rewind().map_err(|source| self.failed("read", source))
    }

    /// What was pushed next: how many pairs, and their bytes.
    fn next(&mut self) -> Result<Option<(u64, Vec<u8>)>> {
        let Some(left) = self.pieces.checked_sub(1) else { return Ok(None) };
        self.pieces = left;
        let mut head = [0; 16];
        let piece = self.file.read_exact(&mut head).and_then(|()| {
            let [pairs, length] =
                [0, 8].map(|at| u64::from_le_bytes(head[at..at + 8].try_into().expect("eight bytes")));
            let mut bytes = vec![0; length as usize];
            self.file.read_exact(&mut bytes).map(|()| (pairs, bytes))
        });
        piece.map(Some).map_err(|source| self.failed("read", source))
    }

    fn failed(&self, doing: &'static str, source: std::io::Error) -> Error {
        Error::Spill { path: self.spill_dir.to_owned(), doing, spilled_bytes: 0, source }
    }
}

impl<'r, J: MapReduce> Results<'r, J> {
    pub fn new(shared: &'r Shared<'r>, receiver: Receiver<'r>, plan: &Plan, settings: &'r Settings) -> Self {
        let streams = (0..plan.reduce_workers).map(|_| Stream::default()).collect();
        let (held_bytes_max, spill_dir) = (plan.budget.result_bytes, &settings.spill_dirs[0]);
        Results { shared, receiver, streams, awaited: 0, held_bytes_max, spill_dir, kind: std::marker::PhantomData }
    }

    /// Reads a stream to its end, so that no other life of it begins, and holds it back in so much memory.
    fn hold_back(
        &mut self,
        number: usize,
        memory_bytes: usize,
        wait: &mut impl FnMut(&mut Self) -> Result<()>,
    ) -> Result<()> {
        let spill_dir = self.spill_dir;
        // In memory it grows by doubling.
        let empty = || HeldBack { file: spooled_tempfile_in(memory_bytes / 2, spill_dir), pieces: 0, spill_dir };
        let (mut whole, mut life) = (empty(), 0);
        loop {
            let more = self.fill(number, wait)?;
            let stream = &mut self.streams[number];
            if stream.lives != life {
                (whole, life) = (empty(), stream.lives);
            }
            if !more {
                break;
            }
            whole.push(stream.left, stream.bytes())?;
            (stream.at, stream.left) = (stream.end, 0);
        }
        whole.rewind()?;
        self.streams[number].held = Some(whole);
        Ok(())
    }

    /// Says in which slot each reducer is now.
    pub fn follow(&mut self, reducers: &[usize]) {
        for (stream, slot) in self.streams.iter_mut().zip(reducers) {
            if stream.slot != *slot && !stream.ended {
                stream.slot = *slot;
                stream.lives += 1;
                // The page at hand outlives its sender: what is left of it counts as taken.
                stream.skip = stream.taken + stream.left;
                stream.pieces.clear();
            }
        }
    }

    /// True when all that `reducer` had to deliver has been taken in.
    pub fn has_ended(&self, reducer: usize) -> bool {
        self.streams[reducer].ended
    }

    /// True when the page that is waited for has arrived.
    pub fn has_arrived(&self) -> bool {
        let Stream { slot, .. } = self.streams[self.awaited];
        slot != 0 && !self.receiver.is_empty(slot)
    }

    /// Visits the pairs of all streams, at most `limit` and until `visit` breaks, and returns how many; calls
    /// `wait` whenever the next page has not arrived.
    pub fn visit(
        &mut self,
        arrangement: Arrangement,
        limit: usize,
        mut visit: impl FnMut(<J::Key as Datum>::Ref<'_>, <J::Value as Datum>::Ref<'_>) -> ControlFlow<()>,
        mut wait: impl FnMut(&mut Self) -> Result<()>,
    ) -> Result<u64> {
        let mut visited = 0;
        let counted = |key: <J::Key as Datum>::Ref<'_>, value: <J::Value as Datum>::Ref<'_>| {
            if visited == limit as u64 {
                return ControlFlow::Break(());
            }
            visited += 1;
            visit(key, value)
        };
        // Who breaks has no wish for the rest.
        let _ = match arrangement {
            Arrangement::Unordered => self.visit_one_by_one(counted, &mut wait)?,
            Arrangement::Ranges(partitions) => self.visit_ranges(partitions, counted, &mut wait)?,
            Arrangement::Merge(order) => self.visit_merged(order, counted, &mut wait)?,
            Arrangement::MergeHeldBack(order) => {
                let streams = self.streams.len();
                for number in 0..streams {
                    self.hold_back(number, self.held_bytes_max / streams, &mut wait)?;
                }
                self.visit_merged(order, counted, &mut wait)?
            }
        };
        Ok(visited)
    }

    fn visit_one_by_one(
        &mut self,
        mut visit: impl FnMut(<J::Key as Datum>::Ref<'_>, <J::Value as Datum>::Ref<'_>) -> ControlFlow<()>,
        wait: &mut impl FnMut(&mut Self) -> Result<()>,
    ) -> Result<ControlFlow<()>> {
        for number in 0..self.streams.len() {
            self.hold_back(number, self.held_bytes_max, wait)?;
            while self.fill(number, wait)? {
                let flow = self.take(number, &mut visit);
                if flow.is_break() {
                    return Ok(flow);
                }
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Partition by partition: a stream has its own in ascending order, and they were given to the streams in turns.
    fn visit_ranges(
        &mut self,
        partitions: usize,
        mut visit: impl FnMut(<J::Key as Datum>::Ref<'_>, <J::Value as Datum>::Ref<'_>) -> ControlFlow<()>,
        wait: &mut impl FnMut(&mut Self) -> Result<()>,
    ) -> Result<ControlFlow<()>> {
        for partition in 0..partitions {
            let number = partition % self.streams.len();
            while self.fill(number, wait)? && self.streams[number].partition == partition {
                let flow = self.take(number, &mut visit);
                if flow.is_break() {
                    return Ok(flow);
                }
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    fn visit_merged(
        &mut self,
        order: Order,
        mut visit: impl FnMut(<J::Key as Datum>::Ref<'_>, <J::Value as Datum>::Ref<'_>) -> ControlFlow<()>,
        wait: &mut impl FnMut(&mut Self) -> Result<()>,
    ) -> Result<ControlFlow<()>> {
        // Streams that have a next pair, the smallest last.
        let mut heads = Vec::with_capacity(self.streams.len());
        for number in 0..self.streams.len() {
            if self.fill(number, wait)? {
                self.insert(&mut heads, number, order);
            }
        }
        while let Some(number) = heads.pop() {
            let flow = self.take(number, &mut visit);
            if flow.is_break() {
                return Ok(flow);
            }
            if self.fill(number, wait)? {
                self.insert(&mut heads, number, order);
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Visits the next pair of a stream, and goes on behind it.
    fn take(
        &mut self,
        number: usize,
        visit: &mut impl FnMut(<J::Key as Datum>::Ref<'_>, <J::Value as Datum>::Ref<'_>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let head = self.head(number);
        let (flow, bytes) = (visit(head.key, head.value), head.bytes);
        let stream = &mut self.streams[number];
        stream.at += bytes;
        stream.left -= 1;
        stream.taken += 1;
        flow
    }

    /// Makes sure that the stream has a next pair; false when it has ended.
    fn fill(&mut self, number: usize, wait: &mut impl FnMut(&mut Self) -> Result<()>) -> Result<bool> {
        loop {
            let stream = &mut self.streams[number];
            if stream.at < stream.end {
                return Ok(true);
            }
            if let Source::Page(page) = std::mem::take(&mut stream.page) {
                give_back(self.shared, &mut self.receiver, page);
            }
            if let Some(held) = &mut stream.held {
                if let Some((pairs, bytes)) = held.next()? {
                    (stream.at, stream.end, stream.left) = (0, bytes.len(), pairs);
                    stream.page = Source::Copy(bytes);
                    return Ok(true);
                }
                // Its memory is the next stream's.
                stream.held = None;
            }
            if stream.ended {
                return Ok(false);
            }
            let next = if stream.slot == 0 { None } else { self.receiver.recv(stream.slot) };
            let Some(page) = next else {
                self.awaited = number;
                wait(self)?;
                continue;
            };
            let header = Header::read(page.bytes());
            stream.partition = header.partition as usize;
            match header.kind {
                Kind::Pairs => {
                    (stream.at, stream.end) = (HEADER_BYTES, HEADER_BYTES + header.bytes as usize);
                    stream.left = u64::from(header.pairs);
                    stream.page = Source::Page(page);
                }
                Kind::Piece | Kind::LastPiece => {
                    stream.pieces.extend_from_slice(&page.bytes()[HEADER_BYTES..][..header.bytes as usize]);
                    give_back(self.shared, &mut self.receiver, page);
                    if header.kind == Kind::LastPiece {
                        let pair = std::mem::take(&mut stream.pieces);
                        (stream.at, stream.end, stream.left) = (0, pair.len(), 1);
                        stream.page = Source::Copy(pair);
                    }
                }
                Kind::End => {
                    stream.ended = true;
                    give_back(self.shared, &mut self.receiver, page);
                }
            }
            while stream.skip > 0 && stream.left > 0 {
                stream.at += entry::read::<J::Key, J::Value>(stream.bytes()).bytes;
                stream.left -= 1;
                stream.skip -= 1;
            }
        }
    }

    fn head(&self, number: usize) -> Entry<'_, J::Key, J::Value> {
        entry::read(self.streams[number].bytes())
    }

    fn insert(&self, heads: &mut Vec<usize>, number: usize, order: Order) {
        let new = self.head(number);
        let at = heads.partition_point(|other| {
            let other = self.head(*other);
            order.compare::<J::Key, J::Value>((other.key, other.value), (new.key, new.value)).is_gt()
        });
        heads.insert(at, number);
    }
}
