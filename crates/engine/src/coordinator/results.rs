//! The result as it arrives: one sorted stream of pages from each reducer, merged into one.
//!
//! A reducer that dies while it delivers is replaced by one that makes the same stream again. The pairs that were
//! already taken from the old stream are skipped in the new one. If the new stream may differ, because the result has
//! no order or its sums are rounded, a stream is held back until it is complete. A large one is held back on disk, with
//! checksums as in a run.

use std::collections::{BTreeMap, VecDeque};
use std::ops::ControlFlow;
use std::rc::Rc;

use gristmill_os::room::TemporaryFolder;
use gristmill_page::{Overwritten, PageRef, Receiver, prefetch};

use crate::control::node_reads::NodeMeter;
use crate::control::words::Shared;
use crate::data::datum::{Datum, Key, Owned};
use crate::data::entry::{self, Entry};
use crate::data::key;
use crate::data::order::Order;
use crate::error::{Result, explain_spill, overwritten};
use crate::exchange::header::{HEADER_BYTES, Header, PageKind};
use crate::exchange::inbox::give_back;
use crate::failure::Failure;
use crate::plan::job_plan::Plan;
use crate::program::ending::Program;
use crate::program::map_reduce::combiner;
use crate::spill::run::{RunReader, RunWriter};
use crate::spill::spill_file::Spill;
use crate::spill::tournament::{Streams, Tournament};

/// How the streams of the reducers form the result.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Arrangement {
    /// One stream after the other.
    Unordered,
    /// This number of partitions, each a range of the result. They follow each other, and the streams take turns.
    Ranges(usize),
    /// Each stream is in this order.
    Merge(Order),
    /// Each stream is in the order of keys. Values of one key in several streams are combined.
    Join,
    /// Each stream is in this order, but that of a replacement may differ.
    MergeHeldBack(Order),
}

/// The distance ahead of the reader at which pairs of a stream are prefetched.
const READ_AHEAD_BYTES: usize = 128;

/// A function of the caller that takes the pairs of the result.
pub(super) type Visit<'v, J> = dyn FnMut(<<J as Program>::OutKey as Datum>::Ref<'_>, <<J as Program>::OutValue as Datum>::Ref<'_>) -> ControlFlow<()>
    + 'v;

/// Called whenever the next page has not arrived.
type Wait<'w, R> = dyn FnMut(&mut R) -> Result<()> + 'w;

/// The streams of all reducers.
pub(crate) struct Results<'r, J: Program> {
    program: &'r J::User,
    shared: &'r Shared<'r>,
    receiver: Receiver<'r>,
    /// Pages that arrived before their stream needed them, by the slot that sent them.
    arrived: BTreeMap<usize, VecDeque<PageRef<'r>>>,
    streams: Vec<ReducerStream<'r>>,
    /// The whole streams that were held back.
    held: Vec<Option<HeldBack<J::OutKey, J::OutValue>>>,
    /// The stream whose next page is awaited.
    awaited: usize,
    /// The mailbox of the coordinator was overwritten.
    broken: Option<Overwritten>,
    /// The number of bytes held back in memory.
    held_bytes_max: usize,
    spill_dirs: &'r [TemporaryFolder],
    spill: Rc<Spill>,
    block_bytes: usize,
    node_meter: NodeMeter<'r>,
}

/// The stream of one reducer and of those that replaced it.
#[derive(Default)]
struct ReducerStream<'r> {
    /// The slot that it comes from now, and the number of slots before.
    slot: usize,
    lives: usize,
    /// The number of pages received from that slot.
    received: u32,
    page: PairMemory<'r>,
    /// The offsets in the page of the next pair and of the end, and the number of pairs between them.
    at: usize,
    end: usize,
    left: u64,
    ended: bool,
    /// The partition of the current pairs.
    partition: usize,
    /// The number of pairs taken, and of pairs to skip because they were taken from a predecessor.
    taken: u64,
    skip: u64,
    pieces: Vec<u8>,
}

/// The memory that the next pairs are read from.
#[derive(Default)]
enum PairMemory<'r> {
    #[default]
    None,
    Page(PageRef<'r>),
    /// One pair that was larger than a page, or a held-back piece.
    Copy(Vec<u8>),
}

impl ReducerStream<'_> {
    /// Returns whether its next pair is there.
    fn has_pair(&self) -> bool {
        self.at < self.end
    }

    fn bytes(&self) -> &[u8] {
        match &self.page {
            PairMemory::None => &[],
            PairMemory::Page(page) => &page.bytes()[self.at..self.end],
            PairMemory::Copy(pairs) => &pairs[self.at..self.end],
        }
    }
}

/// Holds a stream back until it is complete: in memory, and what does not fit there as a run on disk.
struct HeldBack<K: Key, V: Datum> {
    /// Pieces of whole pairs in the order of arrival: the number of pairs, and their bytes. Reversed once all have
    /// arrived.
    pieces: Vec<(u64, Vec<u8>)>,
    bytes: usize,
    bytes_max: usize,
    /// The pairs that came before `pieces`.
    run: Option<RunReader<K, V>>,
}

impl<K: Key, V: Datum> HeldBack<K, V> {
    /// Holds nothing yet, and at most this many bytes in memory.
    fn new(bytes_max: usize) -> Self {
        HeldBack { pieces: Vec::new(), bytes: 0, bytes_max, run: None }
    }

    /// Holds back a piece of whole pairs. If memory is full, writes all pieces to `writer`, which `begin` makes.
    fn push<'s>(
        &mut self,
        pairs: u64,
        bytes: &[u8],
        writer: &mut Option<RunWriter<'s>>,
        begin: impl FnOnce() -> RunWriter<'s>,
    ) -> std::result::Result<(), Failure> {
        self.pieces.push((pairs, bytes.to_vec()));
        self.bytes += bytes.len();
        if self.bytes <= self.bytes_max {
            return Ok(());
        }
        let writer = writer.get_or_insert_with(begin);
        self.bytes = 0;
        self.pieces.drain(..).try_for_each(|(_, bytes)| {
            let mut pairs = entry::pairs::<K, V>(&bytes);
            pairs.try_for_each(|(at, pair)| writer.push_entry(&bytes[at..at + pair.bytes]))
        })
    }

    /// Notes that the stream is complete.
    fn end(&mut self, spill: &Rc<Spill>, writer: Option<RunWriter<'_>>) -> std::result::Result<(), Failure> {
        self.pieces.reverse();
        self.run = writer.map(|writer| RunReader::new(spill.clone(), writer.finish()?)).transpose()?;
        Ok(())
    }

    /// Returns the next piece: the number of pairs, and their bytes.
    fn next(&mut self) -> std::result::Result<Option<(u64, Vec<u8>)>, Failure> {
        if let Some(run) = &mut self.run {
            if let Some(block) = run.take_block()? {
                return Ok(Some((entry::pairs::<K, V>(&block).count() as u64, block)));
            }
            self.run = None;
        }
        Ok(self.pieces.pop())
    }
}

impl<'r, J: Program> Results<'r, J> {
    pub fn new(program: &'r J::User, shared: &'r Shared<'r>, receiver: Receiver<'r>, plan: &'r Plan) -> Self {
        let (held_bytes_max, spill_dirs) = (plan.budget.result_bytes, &plan.spill_dirs[..]);
        let (spill, block_bytes) = (Rc::new(Spill::new(spill_dirs)), plan.reduce_memory.block_bytes);
        Results {
            program,
            shared,
            receiver,
            arrived: BTreeMap::new(),
            streams: (0..plan.reduce_workers).map(|_| ReducerStream::default()).collect(),
            held: (0..plan.reduce_workers).map(|_| None).collect(),
            awaited: 0,
            broken: None,
            held_bytes_max,
            spill_dirs,
            spill,
            block_bytes,
            node_meter: NodeMeter::new(&plan.places),
        }
    }

    /// Reads a stream to its end before any of it is used, and holds it back in at most this many bytes of memory.
    fn hold_back(&mut self, number: usize, memory_bytes: usize, wait: &mut Wait<'_, Self>) -> Result<()> {
        let (spill, block_bytes) = (self.spill.clone(), self.block_bytes);
        let (mut whole, mut writer, mut life) = (HeldBack::new(memory_bytes), None, 0);
        loop {
            let more = self.fill(number, wait)?;
            let stream = &mut self.streams[number];
            if stream.lives != life {
                (whole, writer, life) = (HeldBack::new(memory_bytes), None, stream.lives);
            }
            if !more {
                break;
            }
            let pushed = whole.push(stream.left, stream.bytes(), &mut writer, || RunWriter::new(&spill, block_bytes));
            pushed.map_err(|failure| explain_spill(self.spill_dirs, failure))?;
            (stream.at, stream.left) = (stream.end, 0);
        }
        whole.end(&spill, writer).map_err(|failure| explain_spill(self.spill_dirs, failure))?;
        self.held[number] = Some(whole);
        Ok(())
    }

    /// Updates the slot of each reducer.
    pub fn follow(&mut self, reducers: &[usize]) {
        for (stream, slot) in self.streams.iter_mut().zip(reducers) {
            if stream.slot != *slot && !stream.ended {
                // Their sender is dead, so nobody takes them back.
                self.arrived.remove(&stream.slot);
                stream.slot = *slot;
                stream.received = 0;
                stream.lives += 1;
                // The current page outlives its sender. The pairs left in it count as taken.
                stream.skip = stream.taken + stream.left;
                stream.pieces.clear();
            }
        }
    }

    /// Notes that `reducer` has nothing to deliver.
    pub fn end(&mut self, reducer: usize) {
        self.streams[reducer].ended = true;
    }

    /// Returns whether everything from `reducer` has been received.
    pub fn has_ended(&self, reducer: usize) -> bool {
        self.streams[reducer].ended
    }

    /// Returns whether the awaited page has arrived, or will never arrive.
    pub fn has_arrived(&mut self) -> bool {
        self.take_in();
        let ReducerStream { slot, ended, .. } = &self.streams[self.awaited];
        *ended || self.broken.is_some() || self.arrived.contains_key(slot)
    }

    /// Sorts arrived pages by their sender.
    fn take_in(&mut self) {
        loop {
            let page = match self.receiver.try_recv() {
                Ok(Some(page)) => page,
                Ok(None) => return,
                Err(overwritten) => return self.broken = Some(overwritten),
            };
            if let Some(header) = Header::try_read(page.bytes()) {
                self.node_meter.begin();
                self.node_meter.read(header.node as usize, HEADER_BYTES + header.bytes as usize);
                self.node_meter.publish(self.shared);
            }
            self.arrived.entry(page.producer()).or_default().push_back(page);
        }
    }

    /// Returns the next page of the reducer in `slot`.
    fn recv(&mut self, slot: usize) -> Result<Option<PageRef<'r>>> {
        self.take_in();
        if let Some(Overwritten(what)) = self.broken {
            return Err(overwritten(None, what));
        }
        let Some(pages) = self.arrived.get_mut(&slot) else { return Ok(None) };
        let page = pages.pop_front();
        if pages.is_empty() {
            self.arrived.remove(&slot);
        }
        Ok(page)
    }

    /// Visits the pairs of all streams, at most `limit` of them and until `visit` breaks, and returns their number.
    /// Calls `wait` whenever the next page has not arrived.
    pub fn visit(
        &mut self,
        arrangement: Arrangement,
        limit: usize,
        visit: &mut Visit<'_, J>,
        wait: &mut Wait<'_, Self>,
    ) -> Result<u64> {
        let mut visited = 0;
        let mut counted = |key: <J::OutKey as Datum>::Ref<'_>, value: <J::OutValue as Datum>::Ref<'_>| {
            if visited == limit as u64 {
                return ControlFlow::Break(());
            }
            visited += 1;
            visit(key, value)
        };
        // A caller that breaks does not want the rest.
        let _ = match arrangement {
            Arrangement::Unordered => self.visit_one_by_one(&mut counted, wait)?,
            Arrangement::Ranges(partitions) => self.visit_ranges(partitions, &mut counted, wait)?,
            Arrangement::Merge(order) => self.visit_merged(order, &mut counted, wait)?,
            Arrangement::Join => self.visit_joined(&mut counted, wait)?,
            Arrangement::MergeHeldBack(order) => {
                let streams = self.streams.len();
                for number in 0..streams {
                    self.hold_back(number, self.held_bytes_max / streams, wait)?;
                }
                self.visit_merged(order, &mut counted, wait)?
            }
        };
        Ok(visited)
    }

    fn visit_one_by_one(&mut self, visit: &mut Visit<'_, J>, wait: &mut Wait<'_, Self>) -> Result<ControlFlow<()>> {
        for number in 0..self.streams.len() {
            self.hold_back(number, self.held_bytes_max, wait)?;
            while self.fill(number, wait)? {
                let flow = self.take(number, visit);
                if flow.is_break() {
                    return Ok(flow);
                }
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Visits partition by partition. Each stream has its own partitions in ascending order; they were assigned to the
    /// streams in turn.
    fn visit_ranges(
        &mut self,
        partitions: usize,
        visit: &mut Visit<'_, J>,
        wait: &mut Wait<'_, Self>,
    ) -> Result<ControlFlow<()>> {
        for partition in 0..partitions {
            let number = partition % self.streams.len();
            while self.fill(number, wait)? && self.streams[number].partition == partition {
                let flow = self.take(number, visit);
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
        visit: &mut Visit<'_, J>,
        wait: &mut Wait<'_, Self>,
    ) -> Result<ControlFlow<()>> {
        for number in 0..self.streams.len() {
            self.fill(number, wait)?;
        }
        let mut tournament = Tournament::new(self.streams.len(), &Ordered { results: self, order });
        while let Some(number) = tournament.winner().filter(|number| self.streams[*number].has_pair()) {
            let flow = self.take(number, visit);
            if flow.is_break() {
                return Ok(flow);
            }
            self.fill(number, wait)?;
            tournament.play_again(&Ordered { results: self, order });
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Merges streams in the order of keys, and combines the values of each key: every share may have one.
    fn visit_joined(&mut self, visit: &mut Visit<'_, J>, wait: &mut Wait<'_, Self>) -> Result<ControlFlow<()>> {
        let program = self.program;
        let combine = combiner(program);
        let mut pass_on = |key: &[u8], value: &Owned<J::Value>| {
            let (key, value) = J::out(J::Key::read(key), J::Value::lend(value));
            visit(key, value)
        };
        // The bytes of the last key, and its values so far.
        let mut last_key = Vec::new();
        let mut last: Option<Owned<J::Value>> = None;
        let mut take = |key: <J::OutKey as Datum>::Ref<'_>, value: <J::OutValue as Datum>::Ref<'_>| {
            let (key, value) = J::back(key, value);
            let value = J::Value::own(value);
            match last.take() {
                Some(before) if key::equal::<J::Key>(J::Key::read(&last_key), key) => {
                    last = Some(combine(before, value));
                    ControlFlow::Continue(())
                }
                before => {
                    let flow = before.map_or(ControlFlow::Continue(()), |before| pass_on(&last_key, &before));
                    last_key.resize(key::width::<J::Key>(key), 0);
                    J::Key::write(key, &mut last_key);
                    last = Some(value);
                    flow
                }
            }
        };
        let flow = self.visit_merged(Order::ByKey, &mut take, wait)?;
        match last {
            Some(last) if flow.is_continue() => Ok(pass_on(&last_key, &last)),
            _ => Ok(flow),
        }
    }

    /// Visits the next pair of a stream and advances.
    fn take(&mut self, number: usize, visit: &mut Visit<'_, J>) -> ControlFlow<()> {
        let head = self.head(number);
        let (flow, bytes) = (visit(head.key, head.value), head.bytes);
        let stream = &mut self.streams[number];
        stream.at += bytes;
        stream.left -= 1;
        stream.taken += 1;
        // The reads jump between streams, so the processor does not prefetch by itself.
        if let Some(ahead) = stream.bytes().get(READ_AHEAD_BYTES) {
            prefetch(ahead);
        }
        flow
    }

    /// Makes sure that the stream has a next pair. Returns false if it has ended.
    fn fill(&mut self, number: usize, wait: &mut Wait<'_, Self>) -> Result<bool> {
        loop {
            let stream = &mut self.streams[number];
            if stream.has_pair() {
                return Ok(true);
            }
            if let PairMemory::Page(page) = std::mem::take(&mut stream.page) {
                give_back(self.shared, &mut self.receiver, page);
            }
            if let Some(held) = &mut self.held[number] {
                let next = held.next().map_err(|failure| explain_spill(self.spill_dirs, failure))?;
                if let Some((pairs, bytes)) = next {
                    (stream.at, stream.end, stream.left) = (0, bytes.len(), pairs);
                    stream.page = PairMemory::Copy(bytes);
                    return Ok(true);
                }
                // The next stream may use its memory.
                self.held[number] = None;
            }
            if stream.ended {
                return Ok(false);
            }
            let slot = stream.slot;
            let Some(page) = self.recv(slot)? else {
                self.awaited = number;
                wait(self)?;
                continue;
            };
            let stream = &mut self.streams[number];
            let header = Header::try_read(page.bytes()).filter(|header| header.serial == stream.received);
            let Some(header) = header else {
                return Err(overwritten(
                    None,
                    &format!("page {} of the result of worker {slot} is missing", stream.received),
                ));
            };
            stream.received += 1;
            stream.partition = header.partition as usize;
            match header.kind {
                PageKind::Pairs => {
                    (stream.at, stream.end) = (HEADER_BYTES, HEADER_BYTES + header.bytes as usize);
                    stream.left = u64::from(header.pairs);
                    stream.page = PairMemory::Page(page);
                }
                PageKind::Piece | PageKind::LastPiece => {
                    stream.pieces.extend_from_slice(&page.bytes()[HEADER_BYTES..][..header.bytes as usize]);
                    give_back(self.shared, &mut self.receiver, page);
                    if header.kind == PageKind::LastPiece {
                        let pair = std::mem::take(&mut stream.pieces);
                        (stream.at, stream.end, stream.left) = (0, pair.len(), 1);
                        stream.page = PairMemory::Copy(pair);
                    }
                }
                PageKind::End => {
                    stream.ended = true;
                    give_back(self.shared, &mut self.receiver, page);
                }
            }
            while stream.skip > 0 && stream.left > 0 {
                stream.at += entry::read::<J::OutKey, J::OutValue>(stream.bytes()).bytes;
                stream.left -= 1;
                stream.skip -= 1;
            }
        }
    }

    fn head(&self, number: usize) -> Entry<'_, J::OutKey, J::OutValue> {
        entry::read(self.streams[number].bytes())
    }
}

/// The streams of the result, each of them in an order.
struct Ordered<'s, 'r, J: Program> {
    results: &'s Results<'r, J>,
    order: Order,
}

impl<J: Program> Ordered<'_, '_, J> {
    #[inline(always)]
    fn pair(&self, stream: usize) -> Option<(<J::OutKey as Datum>::Ref<'_>, <J::OutValue as Datum>::Ref<'_>)> {
        self.results.streams[stream].has_pair().then(|| {
            let head = self.results.head(stream);
            (head.key, head.value)
        })
    }
}

impl<J: Program> Streams for Ordered<'_, '_, J> {
    #[inline(always)]
    fn prefix(&self, stream: usize) -> u64 {
        self.order.prefix_of_next::<J::OutKey, J::OutValue>(self.pair(stream))
    }

    fn comes_before(&self, a: usize, b: usize) -> bool {
        self.order.compare_next::<J::OutKey, J::OutValue>(self.pair(a), self.pair(b)).is_lt()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::datum::Bytes;
    use crate::failure::Doing;

    type Held = HeldBack<Bytes, u64>;

    /// Holds back this many words in pieces of ten, most of them on disk.
    fn held_back(spill: &Rc<Spill>, words: u64) -> Held {
        let (mut held, mut writer) = (Held::new(1000), None);
        for first in (0..words).step_by(10) {
            let mut piece = Vec::new();
            for word in first..first + 10 {
                entry::append::<Bytes, u64>(0, format!("word {word:05}").as_bytes(), word, &mut piece);
            }
            held.push(10, &piece, &mut writer, || RunWriter::new(spill, 400)).expect("written");
        }
        held.end(spill, writer).expect("written");
        held
    }

    /// Reads everything back.
    fn read(mut held: Held) -> std::result::Result<Vec<u64>, Failure> {
        let mut values = Vec::new();
        while let Some((pairs, bytes)) = held.next()? {
            let before = values.len();
            values.extend(entry::pairs::<Bytes, u64>(&bytes).map(|(_, pair)| pair.value));
            assert_eq!(pairs as usize, values.len() - before);
        }
        Ok(values)
    }

    #[test]
    fn what_was_held_back_comes_back_and_a_flipped_bit_of_it_is_noticed() {
        // One flipped bit on the disk in a held-back result gave a wrong value and status 0.
        let dir = tempfile::tempdir().expect("a folder");
        let spill = || Rc::new(Spill::new(&[TemporaryFolder::new(dir.path(), Some(0))]));
        let whole = spill();
        assert!(read(held_back(&whole, 300)).expect("intact").into_iter().eq(0..300));
        let bytes = whole.tally().written_bytes;
        assert!(bytes > 4000, "{bytes} bytes are on disk");
        for bit in (0..bytes * 8).step_by(61) {
            let spill = spill();
            let held = held_back(&spill, 300);
            // Whether blocks are compressed depends on the speed of the disk, and so does their size.
            if bit / 8 >= spill.tally().written_bytes {
                break;
            }
            let mut byte = [0];
            spill.read(0, bit / 8, &mut byte).expect("read");
            spill.overwrite(bit / 8, byte[0] ^ 1 << (bit % 8));
            // The first block was read when the stream was complete.
            match read(held) {
                Err(Failure::Spill { doing: Doing::Check, .. }) => {}
                Ok(values) => {
                    assert!(bit / 8 < 440 && values.into_iter().eq(0..300), "bit {bit} was flipped unnoticed")
                }
                other => panic!("bit {bit} was flipped, and the answer was {other:?}"),
            }
        }
    }
}
