//! One worker's side of the exchange: pages going out, pages coming in.
//!
//! [`Outbox`] fills one open page per partition and sends full ones to the partition's owner. [`Inbox`] receives pages,
//! holds back those of open epochs, and feeds the others to a [`Reduction`](crate::reduce::reduction::Reduction).
//! [`Lane`] has both, because a worker that waits for an empty page must keep draining its own mailbox. That is why no
//! worker waits for ever (ring/README).

use gristmill_os::clock::monotonic_ns;
use gristmill_os::futex::SharedFutex;
use gristmill_page::PageMut;

use crate::control::counters::{Count, Phase};
use crate::control::job_is_over::JobIsOver;
use crate::control::meter::Meter;
use crate::control::words::{COORDINATOR, Shared};
use crate::data::contract::Contract;
use crate::data::datum::{Datum, Key};
use crate::data::entry;
use crate::data::seed::Seed;
use crate::data::short::{SHORT_BYTES, Short};
use crate::exchange::header::PageKind;
use crate::exchange::inbox::Inbox;
use crate::exchange::outbox::{Open, Outbox};
use crate::program::ending::Program;

/// Both directions, and the counters.
pub(crate) struct Lane<'r, J: Program> {
    pub program: &'r J::User,
    pub shared: &'r Shared<'r>,
    pub slot: usize,
    pub outbox: Outbox<'r>,
    /// `None` in a worker that only maps.
    pub inbox: Option<Inbox<'r, J>>,
    pub meter: Meter<'r>,
    /// Checks the types of emitted pairs.
    pub contract: Contract,
    /// The seed of all hashes.
    pub seed: &'r Seed,
}

impl<'r, J: Program> Lane<'r, J> {
    /// Writes a pair into the open page of `partition`, and sends the page when it is full.
    #[inline(always)]
    pub fn append<K: Key, V: Datum>(&mut self, partition: usize, hash: u32, key: K::Ref<'_>, value: V::Ref<'_>) {
        let bytes = entry::width::<K, V>(key, value);
        if let Some(room) = self.outbox.room(partition, bytes) {
            return entry::write::<K, V>(hash, key, value, room);
        }
        self.append_anew::<K, V>(partition, hash, key, value, false);
    }

    /// As [`Lane::append`], for a pair with a short key of variable width. It writes 16 bytes for the key; the value
    /// and the next pair overwrite the excess.
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

    /// Sends the open page of `partition`, and writes a pair to a new one. A pair larger than a page goes in pieces.
    #[cold]
    #[inline(never)]
    fn append_anew<K: Key, V: Datum>(
        &mut self,
        partition: usize,
        hash: u32,
        key: K::Ref<'_>,
        value: V::Ref<'_>,
        is_result: bool,
    ) {
        match is_result {
            true => self.send_result(partition),
            false => self.outbox.send_open(partition, &mut self.meter),
        }
        let bytes = entry::width::<K, V>(key, value);
        if bytes <= self.outbox.page_room() {
            let page = self.wait_for_page();
            self.outbox.open_page(partition, page);
            let room = self.outbox.room(partition, bytes).expect("a new page has room");
            return entry::write::<K, V>(hash, key, value, room);
        }
        entry::check_width(bytes);
        let mut pair = Vec::with_capacity(bytes);
        entry::append::<K, V>(hash, key, value, &mut pair);
        if is_result {
            self.send_in_pieces(COORDINATOR, partition, &pair);
        } else if let Some(owner) = self.outbox.owner(partition) {
            self.send_in_pieces(owner, self.outbox.share_start + partition, &pair);
        }
    }

    fn send_in_pieces(&mut self, consumer: usize, partition: usize, pair: &[u8]) {
        let mut pieces = pair.chunks(self.outbox.page_room()).peekable();
        while let Some(piece) = pieces.next() {
            let (kind, pairs) = if pieces.peek().is_some() { (PageKind::Piece, 0) } else { (PageKind::LastPiece, 1) };
            let page = Open::with(self.wait_for_page(), piece, pairs);
            self.outbox.send(consumer, page, partition, kind, &mut self.meter);
        }
    }

    /// Sends all open pages, full or not.
    pub fn send_all(&mut self) {
        self.outbox.send_all(&mut self.meter);
    }

    /// Consumes what has arrived. Returns whether there was anything.
    pub fn drain(&mut self) -> bool {
        match &mut self.inbox {
            Some(inbox) => inbox.drain(&mut self.meter, &self.outbox.kill_point) > 0,
            None => false,
        }
    }

    fn spill_early(&mut self) -> bool {
        let Some(inbox) = self.inbox.as_mut().filter(|inbox| inbox.should_spill()) else { return false };
        inbox.make_room(&mut self.meter, &self.outbox.kill_point);
        true
    }

    fn wait_for_page(&mut self) -> PageMut<'r> {
        if let Some(page) = self.outbox.take_page() {
            return page;
        }
        let before = self.meter.enter(Phase::SendWait);
        // Other workers are slow, not this task, so its clock is stopped.
        let start_ns = self.shared.stop_clock(self.slot);
        let waits_since_ns = monotonic_ns();
        let page = loop {
            if let Some(page) = self.outbox.take_page() {
                break page;
            }
            if self.drain() || self.outbox.reclaim() || self.spill_early() {
                continue;
            }
            if self.shared.is_over() {
                std::panic::resume_unwind(Box::new(JobIsOver));
            }
            self.outbox.ring_receivers();
            if let Some(page) = self.outbox.take_reserve() {
                break page;
            }
            self.meter.add(Count::Sleeps, 1);
            let Lane { shared, slot, outbox, inbox, .. } = self;
            shared.pages.doorbell(*slot).sleep_unless(&SharedFutex, || {
                outbox.has_pages()
                    || inbox.as_ref().is_some_and(|inbox| inbox.has_work() || inbox.should_spill())
                    || shared.is_over()
            });
        };
        self.shared.start_clock(self.slot, start_ns.saturating_add(monotonic_ns() - waits_since_ns));
        self.meter.enter(before);
        page
    }

    /// Sends one pair of the result to the coordinator, in order. The page names its partition.
    pub fn append_result<K: Key, V: Datum>(&mut self, partition: usize, key: K::Ref<'_>, value: V::Ref<'_>) {
        let bytes = entry::width::<K, V>(key, value);
        if let Some(room) = self.outbox.room(partition, bytes) {
            return entry::write::<K, V>(0, key, value, room);
        }
        self.append_anew::<K, V>(partition, 0, key, value, true);
    }

    /// Sends the open page of the result, if there is one.
    pub fn send_result(&mut self, partition: usize) {
        self.outbox.send_result(partition, &mut self.meter);
    }

    /// Ends the result, whose last pairs belong to `partition`.
    pub fn end_result(&mut self, partition: usize) {
        self.send_result(partition);
        let empty = Open::with(self.wait_for_page(), &[], 0);
        self.outbox.send(COORDINATOR, empty, partition, PageKind::End, &mut self.meter);
    }
}

/// The partition whose open page carries results that are not ranges. The page is idle once everything is mapped.
pub(crate) const RESULT: usize = 0;
