//! One worker's side of the exchange: pages going out, pages coming in.
//!
//! [`Outbox`] fills one open page per partition and sends full ones to the partition's owner. [`Inbox`]
//! receives pages, holds back those of epochs that are still open, and feeds the rest to a [`Reduction`].
//! [`Lane`] is both, because whoever waits for an empty page must keep draining its own inbound rings: that
//! is why nobody waits for ever (ring/README).
//!
//! ```text
//!  page:  | epoch, 8 | partition, 4 | bytes, 4 | pairs, 4 | round, 4 | kind, 4 | 0, 4 | pairs ... |
//! ```

use std::collections::VecDeque;
use std::rc::Rc;

use gristmill_os::clock::monotonic_ns;
use gristmill_os::futex::SharedFutex;
use gristmill_page::{PageMut, PageRef, Receiver, Sender, prefetch_to_write};

use crate::counters::{Count, Meter, Phase};
use crate::entry;
use crate::fate::{Fate, Moment};
use crate::plan::Plan;
use crate::reduction::Reduction;
use crate::settings::Exchange;
use crate::shared::{COORDINATOR, Failure, Given, Reducing, Shared};
use crate::spill::{Extent, Spill};
use crate::written::Written;
use crate::{Datum, Key, MapReduce, SHORT_BYTES, Short};

/// Bytes in front of the pairs of a page.
pub(crate) const HEADER_BYTES: usize = 32;

/// How far ahead of what is written a page's lines are asked for: two lines.
const WRITE_AHEAD_BYTES: usize = 128;

/// What the bytes of a page are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Kind {
    /// Whole pairs.
    Pairs = 1,
    /// A piece of a pair that is larger than a page; more follows on the next page of this producer.
    Piece = 2,
    /// The last piece of such a pair.
    LastPiece = 3,
    /// The last page of a result.
    End = 4,
}

/// What stands in front of the pairs of a page.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Header {
    pub epoch: u64,
    pub partition: u32,
    pub bytes: u32,
    pub pairs: u32,
    pub round: u32,
    pub kind: Kind,
}

impl Header {
    fn write(&self, page: &mut [u8]) {
        page[..8].copy_from_slice(&self.epoch.to_le_bytes());
        for (at, word) in [self.partition, self.bytes, self.pairs, self.round, self.kind as u32].iter().enumerate() {
            page[8 + at * 4..][..4].copy_from_slice(&word.to_le_bytes());
        }
    }

    pub fn read(page: &[u8]) -> Header {
        let word = |at: usize| u32::from_le_bytes(page[at..at + 4].try_into().expect("four bytes"));
        Header {
            epoch: u64::from_le_bytes(page[..8].try_into().expect("eight bytes")),
            partition: word(8),
            bytes: word(12),
            pairs: word(16),
            round: word(20),
            kind: match word(24) {
                1 => Kind::Pairs,
                2 => Kind::Piece,
                3 => Kind::LastPiece,
                4 => Kind::End,
                other => panic!("a page of kind {other} was received"),
            },
        }
    }
}

/// A page being filled.
struct Open<'r> {
    page: PageMut<'r>,
    used: usize,
    pairs: u32,
}

/// The way out: one open page per partition.
pub(crate) struct Outbox<'r> {
    shared: &'r Shared<'r>,
    sender: Sender<'r>,
    open: Vec<Option<Open<'r>>>,
    page_bytes: usize,
    /// The epoch that pages now belong to.
    pub epoch: u64,
    /// The round that pages now belong to.
    pub round: u32,
    /// Consumers that were sent pages since they were last rung: they cannot use them before the commit, so
    /// they are not woken for each.
    unrung: Vec<bool>,
    /// Dead consumers whose pages have been taken back.
    reclaimed: Vec<bool>,
    /// For tests.
    pub fate: Fate,
}

impl<'r> Outbox<'r> {
    pub fn new(shared: &'r Shared<'r>, sender: Sender<'r>, fate: Fate) -> Outbox<'r> {
        let open = (0..shared.partitions()).map(|_| None).collect();
        let page_bytes = shared.pages.shape().page_bytes;
        let (reclaimed, unrung) = (vec![false; shared.slots()], vec![false; shared.slots()]);
        Outbox { shared, sender, open, page_bytes, epoch: 1, round: 0, unrung, reclaimed, fate }
    }

    /// How many pages were taken whose memory had to be faulted in, and how many whose memory was there.
    pub fn page_uses(&self) -> (u64, u64) {
        self.sender.uses()
    }

    /// Room for a pair of `bytes` in the open page of `partition`, if there is an open page with room.
    #[inline(always)]
    pub fn room(&mut self, partition: usize, bytes: usize) -> Option<&mut [u8]> {
        self.room_and_more(partition, bytes, 0)
    }

    /// Room for a pair of `bytes`, with `more` bytes behind it that may be scribbled on.
    #[inline(always)]
    fn room_and_more(&mut self, partition: usize, bytes: usize, more: usize) -> Option<&mut [u8]> {
        let open = self.open[partition].as_mut()?;
        let (start, end) = (open.used, open.used + bytes + more);
        if end > self.page_bytes {
            return None;
        }
        open.used = start + bytes;
        open.pairs += 1;
        let page = open.page.bytes_mut();
        // A page comes back from another processor's cache; its lines are asked for before they are reached.
        if let Some(ahead) = page.get_mut(end + WRITE_AHEAD_BYTES) {
            prefetch_to_write(ahead);
        }
        Some(&mut page[start..end])
    }

    fn open_page(&mut self, partition: usize, page: PageMut<'r>) {
        self.open[partition] = Some(Open { page, used: HEADER_BYTES, pairs: 0 });
    }

    /// Seals the open page of `partition`, if any, and sends it to the partition's owner.
    fn send_open(&mut self, partition: usize, meter: &mut Meter) {
        if let Some(open) = self.open[partition].take() {
            match self.owner(partition) {
                Some(owner) => self.send(owner, open, partition, Kind::Pairs, meter),
                None => self.sender.keep(open.page),
            }
        }
    }

    /// Who reduces what this round makes of `partition`: nobody when an earlier round made it already, or
    /// when it is tainted and the next round will make it again.
    fn owner(&self, partition: usize) -> Option<usize> {
        // In this order: a new owner comes with its round.
        let owner = self.shared.owner(partition);
        (self.shared.since(partition) == self.round).then_some(owner)
    }

    fn send(&mut self, consumer: usize, open: Open<'r>, partition: usize, kind: Kind, meter: &mut Meter) {
        let Open { mut page, used, pairs } = open;
        if self.shared.pages.is_dead(consumer) {
            return self.sender.keep(page); // Its partitions are tainted, or soon will be.
        }
        Header {
            epoch: self.epoch,
            partition: partition as u32,
            bytes: (used - HEADER_BYTES) as u32,
            pairs,
            round: self.round,
            kind,
        }
        .write(page.bytes_mut());
        meter.add(Count::PagesSent, 1);
        meter.add(Count::PairsSent, u64::from(pairs));
        meter.add(Count::BytesSent, (used - HEADER_BYTES) as u64);
        self.sender.send(consumer, page);
        self.fate.passes(Moment::Pushed);
        if consumer == COORDINATOR {
            self.shared.ring_with(&self.fate, consumer);
        } else {
            self.unrung[consumer] = true;
        }
        self.fate.passes(Moment::Sent);
    }

    /// Takes back what newly dead consumers held; true when there was something.
    fn reclaim(&mut self) -> bool {
        let mut found = false;
        for consumer in 0..self.shared.slots_born() {
            if !self.reclaimed[consumer] && self.shared.pages.is_dead(consumer) {
                self.reclaimed[consumer] = true;
                self.sender.reclaim_from_dead(consumer);
                found = true;
            }
        }
        found
    }
}

/// What to do with a page.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Verdict {
    /// Its epoch is open, or a barrier stands before it.
    Hold,
    /// It counts.
    Consume,
    /// It never will: its epoch died open, or its partition is made of another round.
    Drop,
}

/// A page that waits for its epoch to be committed.
enum Held<'r> {
    Page(PageRef<'r>),
    Copy(Vec<u8>),
    /// Too many were copied already. The checksum is that of the whole.
    Spilled {
        header: Header,
        extent: Extent,
        checksum: u32,
    },
}

impl Held<'_> {
    fn header(&self) -> Header {
        match self {
            Held::Page(page) => Header::read(page.bytes()),
            Held::Copy(bytes) => Header::read(bytes),
            Held::Spilled { header, .. } => *header,
        }
    }
}

/// The way in: pages of every producer, in the order they were sent, and the partitions they make up.
pub(crate) struct Inbox<'r, J: MapReduce> {
    shared: &'r Shared<'r>,
    slot: usize,
    receiver: Receiver<'r>,
    /// For each producer, its pages whose epoch is open (or, behind a barrier, all its pages).
    held: Vec<VecDeque<Held<'r>>>,
    /// For each producer, how many of `held` are still pages of the region.
    held_pages: Vec<usize>,
    held_pages_max: usize,
    /// Bytes of copies, of all producers.
    copied_bytes: usize,
    copied_bytes_max: usize,
    pub spill: Rc<Spill>,
    /// For each producer, the pieces so far of a pair larger than a page.
    pieces: Vec<Vec<u8>>,
    /// Reduce nothing before everything is mapped.
    barrier: bool,
    pub reduction: Reduction<J>,
    /// For each partition, what it was given; bytes are counted if this worker will write its rows.
    pub given: Vec<Given>,
    written: Option<&'r Written<'r, J>>,
}

impl<'r, J: MapReduce> Inbox<'r, J> {
    pub fn new(
        shared: &'r Shared<'r>,
        slot: usize,
        receiver: Receiver<'r>,
        plan: &Plan,
        spill: Rc<Spill>,
        reduction: Reduction<J>,
        written: Option<&'r Written<'r, J>>,
    ) -> Self {
        let slots = shared.slots();
        Inbox {
            shared,
            slot,
            receiver,
            held: (0..slots).map(|_| VecDeque::new()).collect(),
            held_pages: vec![0; slots],
            held_pages_max: plan.held_pages_max(),
            copied_bytes: 0,
            copied_bytes_max: plan.room.held_bytes,
            spill,
            pieces: vec![Vec::new(); slots],
            barrier: plan.exchange == Exchange::Barrier,
            reduction,
            given: vec![Given::default(); shared.partitions()],
            written,
        }
    }

    /// True when a page has arrived, or one that waited may be consumed.
    pub fn has_work(&self) -> bool {
        (1..self.shared.slots_born()).any(|producer| {
            !self.receiver.is_empty(producer)
                || self.held[producer].front().is_some_and(|held| self.judge(producer, held.header()) != Verdict::Hold)
        })
    }

    fn judge(&self, producer: usize, header: Header) -> Verdict {
        if header.round != self.shared.since(header.partition as usize) {
            return Verdict::Drop;
        }
        if self.barrier && !self.shared.is_mapped(header.round) {
            return Verdict::Hold;
        }
        // Death is asked for before the commit word: what a dead worker has not committed by then it never will.
        let dead = self.shared.pages.is_dead(producer);
        match header.epoch <= self.shared.commit(producer).committed() {
            true => Verdict::Consume,
            false if dead => Verdict::Drop,
            false => Verdict::Hold,
        }
    }

    /// Consumes what has arrived; returns the number of pages taken or consumed.
    pub fn drain(&mut self, meter: &mut Meter, fate: &Fate) -> usize {
        let mut work = 0;
        for producer in 1..self.shared.slots_born() {
            // 1. Pages that waited, oldest first.
            while let Some(front) = self.held[producer].front() {
                let verdict = self.judge(producer, front.header());
                if verdict == Verdict::Hold {
                    break;
                }
                let held = self.held[producer].pop_front().expect("there is a front");
                self.let_go(producer, held, verdict == Verdict::Consume, meter, fate);
                work += 1;
            }
            // 2. New arrivals.
            while let Some(page) = self.receiver.recv(producer) {
                meter.add(Count::PagesReceived, 1);
                fate.passes(Moment::Received);
                work += 1;
                let verdict = self.judge(producer, Header::read(page.bytes()));
                if verdict == Verdict::Hold || !self.held[producer].is_empty() {
                    self.hold(producer, page, meter);
                } else {
                    if verdict == Verdict::Consume {
                        self.consume(producer, page.bytes(), meter, fate);
                    }
                    give_back(self.shared, &mut self.receiver, page);
                }
            }
        }
        work
    }

    fn hold(&mut self, producer: usize, page: PageRef<'r>, meter: &mut Meter) {
        if self.held_pages[producer] < self.held_pages_max {
            self.held_pages[producer] += 1;
            self.held[producer].push_back(Held::Page(page));
            return;
        }
        let header = Header::read(page.bytes());
        let used = &page.bytes()[..HEADER_BYTES + header.bytes as usize];
        let held = if self.copied_bytes + used.len() <= self.copied_bytes_max {
            self.copied_bytes += used.len();
            Held::Copy(used.to_vec())
        } else {
            match self.spill.append(self.spill.next_folder(), used) {
                Ok(extent) => Held::Spilled { header, extent, checksum: crc32fast::hash(used) },
                Err(failure) => self.stop(&failure),
            }
        };
        self.held[producer].push_back(held);
        meter.add(Count::PagesCopied, 1);
        give_back(self.shared, &mut self.receiver, page);
    }

    /// Consumes or drops a page that was held.
    fn let_go(&mut self, producer: usize, held: Held<'r>, consume: bool, meter: &mut Meter, fate: &Fate) {
        match held {
            Held::Page(page) => {
                if consume {
                    self.consume(producer, page.bytes(), meter, fate);
                }
                self.held_pages[producer] -= 1;
                give_back(self.shared, &mut self.receiver, page);
            }
            Held::Copy(bytes) => {
                self.copied_bytes -= bytes.len();
                if consume {
                    self.consume(producer, &bytes, meter, fate);
                }
            }
            Held::Spilled { extent, checksum, .. } => {
                if consume {
                    let mut page = vec![0; extent.bytes as usize];
                    if let Err(failure) = self.spill.read(extent.folder, extent.start, &mut page) {
                        self.stop(&failure);
                    }
                    if crc32fast::hash(&page) != checksum {
                        self.stop(&self.spill.damaged(extent.folder, extent.start));
                    }
                    self.consume(producer, &page, meter, fate);
                }
                self.spill.free(extent);
            }
        }
    }

    /// Ends the worker, and with it the job.
    fn stop(&self, failure: &Failure) -> ! {
        self.shared.fail(self.slot, failure);
        std::panic::resume_unwind(Box::new(JobIsOver));
    }

    fn consume(&mut self, producer: usize, page: &[u8], meter: &mut Meter, fate: &Fate) {
        let before = meter.enter(Phase::Reduce);
        self.shared.set_reducing(self.slot, Reducing::Takes);
        let header = Header::read(page);
        let body = &page[HEADER_BYTES..][..header.bytes as usize];
        match header.kind {
            Kind::Pairs => self.take(header, body),
            Kind::Piece => self.pieces[producer].extend_from_slice(body),
            Kind::LastPiece => {
                let mut pair = std::mem::take(&mut self.pieces[producer]);
                pair.extend_from_slice(body);
                self.take(header, &pair);
            }
            Kind::End => unreachable!("results go to the coordinator"),
        }
        meter.add(Count::PairsReduced, u64::from(header.pairs));
        if self.reduction.is_full() {
            self.make_room(meter, fate);
        } else if self.reduction.is_skewed() {
            self.combine_early(meter);
        }
        self.shared.set_reducing(self.slot, Reducing::Nothing);
        meter.enter(before);
    }

    /// True when this worker, which has nothing else to do, should spill now and not later: somebody else does. Who spills takes no
    /// pages, so the others soon wait for theirs; and as pairs go to all reducers alike, these have nearly as much to spill.
    fn should_spill(&self) -> bool {
        self.reduction.is_nearly_full() && self.shared.somebody_spills()
    }

    fn take(&mut self, header: Header, pairs: &[u8]) {
        let given = &mut self.given[header.partition as usize];
        given.pairs += u64::from(header.pairs);
        given.bytes += self.written.map_or(0, |written| written.bytes(pairs));
        self.reduction.take(header.partition as usize, header.pairs, pairs);
    }

    #[cold]
    fn make_room(&mut self, meter: &mut Meter, fate: &Fate) {
        let before = meter.enter(Phase::Spill);
        self.shared.set_reducing(self.slot, Reducing::Spills);
        self.shared.ring_all();
        self.reduction.count_memory(&mut meter.counters);
        let runs = self.spill.tally().runs;
        if let Err(failure) = self.reduction.make_room() {
            self.stop(&failure);
        }
        if self.spill.tally().runs > runs {
            fate.passes(Moment::Spilled);
        }
        self.shared.set_reducing(self.slot, Reducing::Nothing);
        meter.enter(before);
    }

    /// Combines what was kept until now, and what arrives from now on.
    #[cold]
    fn combine_early(&mut self, meter: &mut Meter) {
        meter.add(Count::SkewsFound, 1);
        if let Err(failure) = self.reduction.begin_to_combine() {
            self.stop(&failure);
        }
    }
}

/// Returns a page to its producer, and tells it.
pub(crate) fn give_back<'r>(shared: &Shared<'_>, receiver: &mut Receiver<'r>, page: PageRef<'r>) {
    let producer = page.producer();
    receiver.give_back(page);
    shared.ring(producer);
}

/// Both ways, and the counters.
pub(crate) struct Lane<'r, J: MapReduce> {
    pub shared: &'r Shared<'r>,
    pub slot: usize,
    pub outbox: Outbox<'r>,
    /// `None` in a worker that only maps.
    pub inbox: Option<Inbox<'r, J>>,
    pub meter: Meter,
}

/// Unwinds a worker thread whose job is over before its map function has returned.
pub(crate) struct JobIsOver;

impl<'r, J: MapReduce> Lane<'r, J> {
    /// Writes a pair into the open page of `partition`, and sends the page when it is full.
    #[inline(always)]
    pub fn append<K: Key, V: Datum>(&mut self, partition: usize, hash: u32, key: K::Ref<'_>, value: V::Ref<'_>) {
        let bytes = entry::width::<K, V>(key, value);
        if let Some(room) = self.outbox.room(partition, bytes) {
            return entry::write::<K, V>(hash, key, value, room);
        }
        self.append_slow::<K, V>(partition, hash, key, value, bytes);
    }

    /// The same for a pair whose key is short and of variable width: the key is written as 16 bytes, and what
    /// is too much is overwritten by the value and by the next pair.
    #[inline(always)]
    pub fn append_short<K: Key, V: Datum>(&mut self, partition: usize, hash: u32, key: Short, value: V::Ref<'_>) {
        if let (None, Some(value_bytes)) = (K::WIDTH, V::WIDTH) {
            let key_at = 4 + 1;
            let bytes = key_at + key.len as usize + value_bytes;
            if let Some(room) = self.outbox.room_and_more(partition, bytes, SHORT_BYTES) {
                room[..4].copy_from_slice(&hash.to_le_bytes());
                room[4] = key.len as u8;
                room[key_at..key_at + SHORT_BYTES].copy_from_slice(&key.bytes());
                return V::write(value, &mut room[key_at + key.len as usize..bytes]);
            }
        }
        let key_bytes = key.bytes();
        self.append::<K, V>(partition, hash, K::read(&key_bytes[..key.len as usize]), value);
    }

    #[cold]
    #[inline(never)]
    fn append_slow<K: Key, V: Datum>(
        &mut self,
        partition: usize,
        hash: u32,
        key: K::Ref<'_>,
        value: V::Ref<'_>,
        bytes: usize,
    ) {
        self.outbox.send_open(partition, &mut self.meter);
        self.append_anew::<K, V>(partition, hash, key, value, bytes, |outbox| outbox.owner(partition));
    }

    /// Writes a pair into a new page, or sends it in pieces to `consumer` when it is larger than a page.
    fn append_anew<K: Key, V: Datum>(
        &mut self,
        partition: usize,
        hash: u32,
        key: K::Ref<'_>,
        value: V::Ref<'_>,
        bytes: usize,
        consumer: impl FnOnce(&Outbox<'r>) -> Option<usize>,
    ) {
        if bytes <= self.outbox.page_bytes - HEADER_BYTES {
            let page = self.wait_for_page();
            self.outbox.open_page(partition, page);
            let room = self.outbox.room(partition, bytes).expect("a new page has room");
            return entry::write::<K, V>(hash, key, value, room);
        }
        let mut pair = Vec::with_capacity(bytes);
        entry::append::<K, V>(hash, key, value, &mut pair);
        if let Some(consumer) = consumer(&self.outbox) {
            self.send_in_pieces(consumer, partition, &pair);
        }
    }

    fn send_in_pieces(&mut self, consumer: usize, partition: usize, pair: &[u8]) {
        let mut pieces = pair.chunks(self.outbox.page_bytes - HEADER_BYTES).peekable();
        while let Some(piece) = pieces.next() {
            let (kind, pairs) = if pieces.peek().is_some() { (Kind::Piece, 0) } else { (Kind::LastPiece, 1) };
            let mut page = self.wait_for_page();
            let used = HEADER_BYTES + piece.len();
            page.bytes_mut()[HEADER_BYTES..used].copy_from_slice(piece);
            self.outbox.send(consumer, Open { page, used, pairs }, partition, kind, &mut self.meter);
        }
    }

    /// Sends all open pages, full or not.
    pub fn send_all(&mut self) {
        for partition in 0..self.outbox.open.len() {
            self.outbox.send_open(partition, &mut self.meter);
        }
    }

    /// Wakes the reducers that have been sent pages: those of a committed epoch to consume them, those of an
    /// open one to copy them out.
    pub fn ring_receivers(&mut self) {
        for consumer in 0..self.outbox.unrung.len() {
            if std::mem::take(&mut self.outbox.unrung[consumer]) {
                self.shared.ring(consumer);
            }
        }
    }

    /// Consumes what has arrived; true when there was something.
    pub fn drain(&mut self) -> bool {
        match &mut self.inbox {
            Some(inbox) => inbox.drain(&mut self.meter, &self.outbox.fate) > 0,
            None => false,
        }
    }

    fn spill_early(&mut self) -> bool {
        let Some(inbox) = self.inbox.as_mut().filter(|inbox| inbox.should_spill()) else { return false };
        inbox.make_room(&mut self.meter, &self.outbox.fate);
        true
    }

    fn wait_for_page(&mut self) -> PageMut<'r> {
        if let Some(page) = self.outbox.sender.take() {
            return page;
        }
        let before = self.meter.enter(Phase::SendWait);
        // Others are slow, not this task: its time does not run meanwhile.
        let start_ns = self.shared.stop_clock(self.slot);
        let waits_since_ns = monotonic_ns();
        let page = loop {
            if let Some(page) = self.outbox.sender.take() {
                break page;
            }
            if self.drain() || self.outbox.reclaim() || self.spill_early() {
                continue;
            }
            if self.shared.is_over() {
                std::panic::resume_unwind(Box::new(JobIsOver));
            }
            self.ring_receivers();
            self.meter.add(Count::Sleeps, 1);
            let Lane { shared, slot, outbox, inbox, .. } = self;
            shared.pages.doorbell(*slot).sleep_unless(&SharedFutex, || {
                outbox.sender.collect() > 0
                    || inbox.as_ref().is_some_and(|inbox| inbox.has_work() || inbox.should_spill())
                    || shared.is_over()
                    || (0..shared.slots_born()).any(|slot| !outbox.reclaimed[slot] && shared.pages.is_dead(slot))
            });
        };
        self.shared.start_clock(self.slot, start_ns + (monotonic_ns() - waits_since_ns));
        self.meter.enter(before);
        page
    }

    /// Sends one pair of the result to the coordinator, in order; the page says of which partition.
    pub fn append_result<K: Key, V: Datum>(&mut self, partition: usize, key: K::Ref<'_>, value: V::Ref<'_>) {
        let bytes = entry::width::<K, V>(key, value);
        if let Some(room) = self.outbox.room(partition, bytes) {
            return entry::write::<K, V>(0, key, value, room);
        }
        self.send_result(partition);
        self.append_anew::<K, V>(partition, 0, key, value, bytes, |_| Some(COORDINATOR));
    }

    /// Sends the open page of the result, if there is one.
    pub fn send_result(&mut self, partition: usize) {
        if let Some(open) = self.outbox.open[partition].take() {
            self.outbox.send(COORDINATOR, open, partition, Kind::Pairs, &mut self.meter);
        }
    }

    /// Ends the result, whose last pairs are of `partition`.
    pub fn end_result(&mut self, partition: usize) {
        self.send_result(partition);
        let page = self.wait_for_page();
        let empty = Open { page, used: HEADER_BYTES, pairs: 0 };
        self.outbox.send(COORDINATOR, empty, partition, Kind::End, &mut self.meter);
    }
}

/// Results use the open page of a partition, which is idle once everything is mapped: this one, where partitions are
/// not ranges of the result.
pub(crate) const RESULT: usize = 0;
