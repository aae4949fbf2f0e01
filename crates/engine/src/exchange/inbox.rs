//! The receiving side, which drains the mailbox of its worker. It takes pages from every producer, knows which of them
//! count, and lets the reducer make room or combine early (`--combine-after`).

use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use gristmill_page::{PageRef, Receiver};

use crate::control::counters::{Count, Phase};
use crate::control::job_is_over::JobIsOver;
use crate::control::ledger::Sums;
use crate::control::meter::Meter;
use crate::control::node_reads::NodeMeter;
use crate::control::result_parts::PartSize;
use crate::control::words::{Reducing, Shared};
use crate::exchange::header::{HEADER_BYTES, Header, PageKind};
use crate::failure::Failure;
use crate::output::parts::{Row, row_bytes};
use crate::plan::job_plan::Plan;
use crate::plan::settings::Exchange;
use crate::program::ending::Program;
use crate::reduce::reduction::Reduction;
use crate::spill::spill_file::{FileRange, Spill};
use crate::testing::kill_points::{KillPoint, Moment};

/// The next step of a page that has arrived.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PageStep {
    /// Hold it back: its epoch is open, or the exchange has a barrier.
    Hold,
    /// Consume it.
    Consume,
    /// Drop it: its producer died with the epoch open, or its partition is made from another round.
    Drop,
}

/// A page that is held back until its epoch is committed.
enum Held<'r> {
    Page(PageRef<'r>),
    Copy(Vec<u8>),
    /// On disk, because too many are copied already. The checksum covers the whole page.
    Spilled {
        header: Header,
        extent: FileRange,
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

/// The pages of one producer that are held back, oldest first: those of open epochs, or all pages before a barrier.
#[derive(Default)]
struct Waiting<'r> {
    held: VecDeque<Held<'r>>,
    /// The number of them that are still pages of the region.
    pages: usize,
}

/// The pages of every producer in the order they were sent, and the partitions that they make up.
pub(crate) struct Inbox<'r, J: Program> {
    shared: &'r Shared<'r>,
    slot: usize,
    receiver: Receiver<'r>,
    /// The held-back pages of each producer that has any.
    waiting: BTreeMap<usize, Waiting<'r>>,
    /// The most pages of the region that are held back, for each producer.
    held_pages_max: usize,
    /// The total size of copies in bytes.
    copied_bytes: usize,
    copied_bytes_max: usize,
    pub spill: Rc<Spill>,
    /// For each producer that is sending a pair larger than a page, the pieces so far.
    pieces: BTreeMap<usize, Vec<u8>>,
    /// Consume nothing before everything is mapped.
    barrier: bool,
    pub reduction: Reduction<'r, J>,
    /// The size of each partition that has pairs. Bytes are counted only if this worker will write its rows.
    pub part_sizes: BTreeMap<usize, PartSize>,
    /// The round of the last page that was consumed, and the sum of all that were in that round.
    received: (u32, Sums),
    /// How this worker will write a pair, if it does.
    row: Option<&'r dyn Row<J::OutKey, J::OutValue>>,
    pub node_meter: NodeMeter<'r>,
}

impl<'r, J: Program> Inbox<'r, J> {
    pub fn new(
        shared: &'r Shared<'r>,
        slot: usize,
        receiver: Receiver<'r>,
        plan: &'r Plan,
        spill: Rc<Spill>,
        reduction: Reduction<'r, J>,
        row: Option<&'r dyn Row<J::OutKey, J::OutValue>>,
    ) -> Self {
        Inbox {
            shared,
            slot,
            receiver,
            waiting: BTreeMap::new(),
            held_pages_max: plan.held_pages_max(),
            copied_bytes: 0,
            copied_bytes_max: plan.reduce_memory.held_bytes,
            spill,
            pieces: BTreeMap::new(),
            barrier: plan.exchange == Exchange::Barrier,
            reduction,
            part_sizes: BTreeMap::new(),
            received: (0, Sums::default()),
            row,
            node_meter: NodeMeter::new(&plan.places),
        }
    }

    /// Returns whether a page has arrived, or a held-back page may be consumed.
    pub fn has_work(&self) -> bool {
        !self.receiver.is_empty()
            || self.waiting.iter().any(|(producer, waiting)| {
                waiting.held.front().is_some_and(|held| self.judge(*producer, held.header()) != PageStep::Hold)
            })
    }

    /// Tells the coordinator which pages of `round` were received, all of them.
    pub fn publish_received(&self, round: u32) {
        let (of, sums) = self.received;
        self.shared.set_received(self.slot, round, if of == round { sums.pages } else { 0 });
    }

    fn judge(&self, producer: usize, header: Header) -> PageStep {
        if header.round != self.shared.since(header.partition as usize) {
            return PageStep::Drop;
        }
        if self.barrier && !self.shared.is_mapped(header.round) {
            return PageStep::Hold;
        }
        // Check for death before reading the commit word: a worker that is dead by then will never commit more.
        let dead = self.shared.pages.is_dead(producer);
        match header.epoch <= self.shared.commit(producer).committed() {
            true => PageStep::Consume,
            false if dead => PageStep::Drop,
            false => PageStep::Hold,
        }
    }

    /// Consumes what has arrived. Returns the number of pages that were received or consumed.
    pub fn drain(&mut self, meter: &mut Meter, kill_point: &KillPoint<'_>) -> usize {
        let mut work = 0;
        self.node_meter.begin();
        // 1. Held-back pages, oldest first.
        for producer in self.waiting.keys().copied().collect::<Vec<_>>() {
            work += self.drain_waiting(producer, meter, kill_point);
        }
        // 2. New arrivals.
        while let Some(page) = self.receiver.recv() {
            let producer = page.producer();
            meter.add(Count::PagesReceived, 1);
            kill_point.passes(Moment::Received);
            work += 1;
            let verdict = self.judge(producer, Header::read(page.bytes()));
            if verdict == PageStep::Hold || self.waiting.contains_key(&producer) {
                self.hold(page, meter);
            } else {
                if verdict == PageStep::Consume {
                    self.consume(producer, page.bytes(), meter, kill_point);
                }
                give_back(self.shared, &mut self.receiver, page);
            }
        }
        work
    }

    /// Consumes or drops held-back pages of `producer`, up to the first one that must be held back longer. Returns
    /// their number.
    fn drain_waiting(&mut self, producer: usize, meter: &mut Meter, kill_point: &KillPoint<'_>) -> usize {
        let mut work = 0;
        while let Some(waiting) = self.waiting.get_mut(&producer)
            && let Some(front) = waiting.held.front()
        {
            let header = front.header();
            let verdict = self.judge(producer, header);
            if verdict == PageStep::Hold {
                return work;
            }
            self.let_go(producer, verdict == PageStep::Consume, meter, kill_point);
            work += 1;
        }
        self.waiting.remove(&producer);
        work
    }

    fn hold(&mut self, page: PageRef<'r>, meter: &mut Meter) {
        let producer = page.producer();
        let waiting = self.waiting.entry(producer).or_default();
        if waiting.pages < self.held_pages_max {
            waiting.pages += 1;
            waiting.held.push_back(Held::Page(page));
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
        self.waiting.entry(producer).or_default().held.push_back(held);
        meter.add(Count::PagesCopied, 1);
        give_back(self.shared, &mut self.receiver, page);
    }

    /// Consumes or drops the oldest held-back page of `producer`.
    fn let_go(&mut self, producer: usize, consume: bool, meter: &mut Meter, kill_point: &KillPoint<'_>) {
        let waiting = self.waiting.get_mut(&producer).expect("a page of it waits");
        let held = waiting.held.pop_front().expect("a page of it waits");
        if matches!(held, Held::Page(_)) {
            waiting.pages -= 1;
        }
        match held {
            Held::Page(page) => {
                if consume {
                    self.consume(producer, page.bytes(), meter, kill_point);
                }
                give_back(self.shared, &mut self.receiver, page);
            }
            Held::Copy(bytes) => {
                self.copied_bytes -= bytes.len();
                if consume {
                    self.consume(producer, &bytes, meter, kill_point);
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
                    self.consume(producer, &page, meter, kill_point);
                }
                self.spill.free(extent);
            }
        }
    }

    /// Ends this worker, and with it the job.
    fn stop(&self, failure: &Failure) -> ! {
        self.shared.fail(self.slot, failure);
        std::panic::resume_unwind(Box::new(JobIsOver));
    }

    fn consume(&mut self, producer: usize, page: &[u8], meter: &mut Meter, kill_point: &KillPoint<'_>) {
        let before = meter.enter(Phase::Reduce);
        self.shared.set_reducing(self.slot, Reducing::Takes);
        let header = Header::read(page);
        let body = &page[HEADER_BYTES..][..header.bytes as usize];
        self.node_meter.read(header.node as usize, HEADER_BYTES + body.len());
        if self.received.0 != header.round {
            self.received = (header.round, Sums::default());
        }
        self.received.1.add_page(producer, header.serial);
        match header.kind {
            PageKind::Pairs => self.take(header, body),
            PageKind::Piece => self.pieces.entry(producer).or_default().extend_from_slice(body),
            PageKind::LastPiece => {
                let mut pair = self.pieces.remove(&producer).unwrap_or_default();
                pair.extend_from_slice(body);
                self.take(header, &pair);
            }
            PageKind::End => unreachable!("results go to the coordinator"),
        }
        meter.add(Count::PairsReduced, u64::from(header.pairs));
        if self.reduction.is_full() {
            self.make_room(meter, kill_point);
        } else if self.reduction.is_skewed() {
            self.combine_early(meter);
        }
        self.shared.set_reducing(self.slot, Reducing::Nothing);
        meter.enter(before);
    }

    /// Returns whether this worker, which has nothing else to do, should spill now rather than later, because another
    /// worker spills. A worker that spills receives no pages, so the others soon wait for theirs. Pairs go evenly to
    /// all reducers, so the others have nearly as much to spill.
    pub fn should_spill(&self) -> bool {
        self.reduction.is_nearly_full() && self.shared.somebody_spills()
    }

    fn take(&mut self, header: Header, pairs: &[u8]) {
        let size = self.part_sizes.entry(header.partition as usize).or_default();
        size.pairs += u64::from(header.pairs);
        size.bytes += self.row.map_or(0, |row| row_bytes::<J>(row, pairs));
        self.reduction.take(header.partition as usize, header.pairs, pairs);
    }

    /// Combines waiting pairs, and spills if that does not free enough memory.
    #[cold]
    pub fn make_room(&mut self, meter: &mut Meter, kill_point: &KillPoint<'_>) {
        let before = meter.enter(Phase::Spill);
        self.shared.set_reducing(self.slot, Reducing::Spills);
        self.shared.ring_all();
        self.reduction.count_memory(&mut meter.counters);
        let runs = self.spill.tally().runs;
        if let Err(failure) = self.reduction.make_room() {
            self.stop(&failure);
        }
        if self.spill.tally().runs > runs {
            kill_point.passes(Moment::Spilled);
        }
        self.shared.set_reducing(self.slot, Reducing::Nothing);
        meter.enter(before);
    }

    /// Combines the pairs kept so far, and from now on those that arrive.
    #[cold]
    fn combine_early(&mut self, meter: &mut Meter) {
        meter.add(Count::SkewsFound, 1);
        if let Err(failure) = self.reduction.begin_to_combine() {
            self.stop(&failure);
        }
    }
}

/// Returns a page to its producer and wakes it.
pub(crate) fn give_back<'r>(shared: &Shared<'_>, receiver: &mut Receiver<'r>, page: PageRef<'r>) {
    let producer = page.producer();
    receiver.give_back(page);
    shared.ring(producer);
}
