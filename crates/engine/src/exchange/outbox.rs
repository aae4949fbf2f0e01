//! The sending side: one open page for each partition.

use gristmill_page::{PageMut, Sender, prefetch_to_write};

use crate::control::counters::Count;
use crate::control::ledger::Sums;
use crate::control::meter::Meter;
use crate::control::words::{COORDINATOR, Shared};
use crate::exchange::header::{HEADER_BYTES, Header, PageKind};
use crate::testing::kill_points::{KillPoint, Moment};

/// The distance ahead of the writer at which cache lines of a page are prefetched: two lines.
const WRITE_AHEAD_BYTES: usize = 128;

/// A page that is being filled.
pub(crate) struct Open<'r> {
    page: PageMut<'r>,
    used: usize,
    pairs: u32,
}

impl<'r> Open<'r> {
    /// Makes a page with these bytes, in which `pairs` pairs end.
    pub fn with(mut page: PageMut<'r>, bytes: &[u8], pairs: u32) -> Self {
        let used = HEADER_BYTES + bytes.len();
        page.bytes_mut()[HEADER_BYTES..used].copy_from_slice(bytes);
        Open { page, used, pairs }
    }
}

/// The sending side: one open page for each partition of a share.
pub(crate) struct Outbox<'r> {
    shared: &'r Shared<'r>,
    slot: usize,
    sender: Sender<'r>,
    /// The open page of each partition. Empty before the first page.
    open: Vec<Option<Open<'r>>>,
    page_bytes: usize,
    /// The first partition of the share that pairs are sent to. Pages are open for the partitions of one share.
    pub share_start: usize,
    /// The epoch of new pages.
    pub epoch: u64,
    /// The round of new pages.
    round: u32,
    /// The tasks of this round that were mapped, and the pages that were sent for them.
    pub sums: Sums,
    /// The number of pages sent in this round to workers, and of pages sent to the coordinator.
    serials: [u32; 2],
    /// Consumers that have been sent pages since they were last rung. They cannot use the pages before the commit, so
    /// they are not woken for each one.
    unrung: Vec<usize>,
    /// For each slot, whether it is in `unrung`.
    is_unrung: Vec<bool>,
    /// Dead consumers whose pages have been taken back.
    reclaimed: Vec<usize>,
    /// The number of deaths when pages were last taken back.
    deaths_seen: u32,
    /// For tests.
    pub kill_point: KillPoint<'r>,
}

impl<'r> Outbox<'r> {
    pub fn new(shared: &'r Shared<'r>, slot: usize, sender: Sender<'r>, kill_point: KillPoint<'r>) -> Outbox<'r> {
        let page_bytes = shared.pages.shape().page_bytes;
        let (open, reclaimed, unrung, is_unrung) = (Vec::new(), Vec::new(), Vec::new(), vec![false; shared.slots]);
        let (share_start, epoch, round, deaths_seen, serials) = (0, 1, 0, 0, [0; 2]);
        Outbox {
            shared,
            slot,
            sender,
            open,
            page_bytes,
            share_start,
            epoch,
            round,
            sums: Sums::default(),
            serials,
            unrung,
            is_unrung,
            reclaimed,
            deaths_seen,
            kill_point,
        }
    }

    /// Makes the next pages belong to `round`.
    pub fn turn_to_round(&mut self, round: u32) {
        if self.round != round {
            (self.round, self.sums, self.serials[0]) = (round, Sums::default(), 0);
        }
    }

    /// Returns the round of new pages.
    pub fn round(&self) -> u32 {
        self.round
    }

    /// Returns the number of pages used whose memory was new, and of those whose memory had been used before.
    pub fn page_uses(&self) -> (u64, u64) {
        self.sender.uses()
    }

    /// Returns room for a pair of `bytes` in the open page of `partition`, counted within the share, if that page
    /// exists and has room.
    #[inline(always)]
    pub fn room(&mut self, partition: usize, bytes: usize) -> Option<&mut [u8]> {
        self.room_and_more(partition, bytes, 0)
    }

    /// Returns room for a pair of `bytes`, followed by `more` bytes that the caller may overwrite.
    #[inline(always)]
    pub fn room_and_more(&mut self, partition: usize, bytes: usize, more: usize) -> Option<&mut [u8]> {
        let open = self.open.get_mut(partition)?.as_mut()?;
        let (start, end) = (open.used, open.used + bytes + more);
        if end > self.page_bytes {
            return None;
        }
        open.used = start + bytes;
        open.pairs += 1;
        let page = open.page.bytes_mut();
        // The page comes from another processor's cache, so its lines are prefetched.
        if let Some(ahead) = page.get_mut(end + WRITE_AHEAD_BYTES) {
            prefetch_to_write(ahead);
        }
        Some(&mut page[start..end])
    }

    /// Returns an empty page, if one has come back.
    pub fn take_page(&mut self) -> Option<PageMut<'r>> {
        self.sender.take()
    }

    /// Returns an empty page that was kept for the case that none comes back soon, if any is left.
    pub fn take_reserve(&mut self) -> Option<PageMut<'r>> {
        self.sender.take_reserve()
    }

    /// Returns the room for pairs in an empty page, in bytes.
    pub fn page_room(&self) -> usize {
        self.page_bytes - HEADER_BYTES
    }

    /// Makes `page` the open page of `partition`.
    pub fn open_page(&mut self, partition: usize, page: PageMut<'r>) {
        if self.open.is_empty() {
            self.open.resize_with(self.shared.partitions(), || None);
        }
        self.open[partition] = Some(Open::with(page, &[], 0));
    }

    fn take_open(&mut self, partition: usize) -> Option<Open<'r>> {
        self.open.get_mut(partition)?.take()
    }

    /// Seals the open page of `partition`, if any, and sends it to the partition's owner.
    pub fn send_open(&mut self, partition: usize, meter: &mut Meter) {
        if let Some(open) = self.take_open(partition) {
            match self.owner(partition) {
                Some(owner) => self.send(owner, open, self.share_start + partition, PageKind::Pairs, meter),
                None => self.sender.keep(open.page),
            }
        }
    }

    /// Returns the worker that reduces this round's pairs of `partition` of the share. `None` if an earlier round has
    /// made the partition, or if it is tainted and the next round will make it.
    pub fn owner(&self, partition: usize) -> Option<usize> {
        let partition = self.share_start + partition;
        // In this order: a new owner is stored before its round.
        let owner = self.shared.owner(partition);
        (self.shared.since(partition) == self.round).then_some(owner)
    }

    /// Sends all open pages, full or not.
    pub fn send_all(&mut self, meter: &mut Meter) {
        for partition in 0..self.open.len() {
            self.send_open(partition, meter);
        }
    }

    /// Sends the open page of the result, if there is one.
    pub fn send_result(&mut self, partition: usize, meter: &mut Meter) {
        if let Some(open) = self.take_open(partition) {
            self.send(COORDINATOR, open, partition, PageKind::Pairs, meter);
        }
    }

    /// Seals a page and sends it to `consumer`.
    pub fn send(&mut self, consumer: usize, open: Open<'r>, partition: usize, kind: PageKind, meter: &mut Meter) {
        let Open { mut page, used, pairs } = open;
        let serials = &mut self.serials[usize::from(consumer == COORDINATOR)];
        let serial = *serials;
        *serials = serial.wrapping_add(1);
        if consumer != COORDINATOR {
            self.sums.add_page(self.slot, serial);
        }
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
            node: page.node(),
            serial,
        }
        .write(page.bytes_mut());
        meter.add(Count::PagesSent, 1);
        meter.add(Count::PairsSent, u64::from(pairs));
        meter.add(Count::BytesSent, (used - HEADER_BYTES) as u64);
        self.sender.send(consumer, page);
        self.kill_point.passes(Moment::Pushed);
        if consumer == COORDINATOR {
            self.shared.ring_with(&self.kill_point, consumer);
        } else {
            if !std::mem::replace(&mut self.is_unrung[consumer], true) {
                self.unrung.push(consumer);
                self.shared.want(consumer);
            }
        }
        self.kill_point.passes(Moment::Sent);
    }

    /// Wakes the reducers that have been sent pages. They consume pages of a committed epoch, and copy pages of an open
    /// one.
    pub fn ring_receivers(&mut self) {
        for consumer in self.unrung.drain(..) {
            self.is_unrung[consumer] = false;
            self.shared.ring(consumer);
        }
    }

    /// Returns whether a page has come back, or may be taken back from a dead worker.
    pub fn has_pages(&mut self) -> bool {
        self.sender.collect() > 0 || self.shared.pages.deaths() != self.deaths_seen
    }

    /// Takes back the pages held by workers that have died since the last call. Returns whether there were any such
    /// workers.
    pub fn reclaim(&mut self) -> bool {
        // Read before the look: a death declared meanwhile is found now or next time.
        let deaths = self.shared.pages.deaths();
        if deaths == self.deaths_seen {
            return false;
        }
        self.deaths_seen = deaths;
        for consumer in 0..self.shared.slots_born() {
            if self.shared.pages.is_dead(consumer) && !self.reclaimed.contains(&consumer) {
                self.reclaimed.push(consumer);
                self.sender.reclaim_from_dead(consumer);
            }
        }
        true
    }
}
