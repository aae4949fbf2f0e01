//! The life of one worker: map what it can claim, reduce what arrives, sleep when there is neither.

use std::rc::Rc;

use gristmill_os::allocations::Allocations;
use gristmill_os::clock::monotonic_ns;
use gristmill_os::folder::Folder;
use gristmill_os::futex::SharedFutex;
use gristmill_os::usage::Usage;
use gristmill_page::{Reuse, Shelver};
use gristmill_ring::Latch;
use rustix::process::Signal;

use crate::buffer::{ArrayBuffer, DenseArray, DenseBuffer, HashBuffer, HashTable, RangeBuffer};
use crate::control::counters::{Count, Meter, Phase};
use crate::control::words::{SetAside, Shared};
use crate::data::contract::Contract;
use crate::data::digest::Digest;
use crate::data::seed::Seed;
use crate::exchange::lane::{Inbox, JobIsOver, Lane, Outbox};
use crate::failure::Failure;
use crate::gather::store::Store;
use crate::input::reader::Reader;
use crate::input::tasks::Tasks;
use crate::output::parts::Written;
use crate::plan::job_plan::Plan;
use crate::plan::settings::{Buffer, Isolation, PagePolicy};
use crate::program::map_reduce::{Emit, MapReduce, Reduce};
use crate::program::pairs::Pairs;
use crate::program::partition::Partitioner;
use crate::program::ranges::Ranges;
use crate::reduce::delivery::{in_partitions, run_order};
use crate::reduce::reduction::Reduction;
use crate::shared_output::array::Scopes;
use crate::spill::spill_file::{Spill, Tally};
use crate::steps::shelf_writer::{Keeper, NoRoom, pairs_of};
use crate::testing::kill_points::{Fate, Moment};
use crate::worker::bad_record_search::Narrow;
use crate::worker::deliver::finish;
use crate::worker::save;

/// What a worker does, and in which slot.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Role {
    pub slot: usize,
    pub maps: bool,
    /// The round whose pages make up the partitions that it reduces, if it reduces any.
    pub reduces: Option<u32>,
}

/// What all workers of a job are given: the same memory, before and after a fork.
pub(crate) struct Work<'w, J: MapReduce> {
    pub program: &'w J,
    pub plan: &'w Plan,
    pub tasks: &'w Tasks,
    pub shared: &'w Shared<'w>,
    pub reduce: Option<&'w Reduce<'w, J::Key, J::Value>>,
    pub settings: &'w crate::plan::settings::Settings,
    /// Those of the settings, until the job begins anew.
    pub fates: &'w [(usize, Moment, u64, Signal)],
    /// What the partitions are, if they are ranges of pairs.
    pub ranges: Option<&'w Ranges<J::Key, J::Value>>,
    /// Reducers write the result themselves.
    pub written: Option<&'w Written<'w, J>>,
    pub outputs: &'w Scopes<'w>,
    /// Where the job goes on, if it keeps that.
    pub checkpoint: Option<&'w Folder>,
    /// What all hashes begin with.
    pub seed: &'w Seed,
    pub start_ns: u64,
    /// The job runs in steps: its result stays in the region.
    pub iterates: bool,
}

impl<J: MapReduce> Work<'_, J> {
    /// Bytes of input in a task of the running step.
    pub fn task_bytes(&self, task: usize) -> u64 {
        let of_input = || self.tasks.bytes(self.shared.input_task(task));
        self.shared.piece(task).map_or_else(of_input, |piece| u64::from(piece.bytes))
    }
}

/// The map side of a worker.
struct Mapper<J: MapReduce> {
    reader: Reader,
    /// What the buffer keeps, made for the first task.
    kept: Kept<J>,
    partitioner: Partitioner,
    /// Records that are left out.
    set_aside: SetAside,
    /// The round whose state the reader shows.
    state_of: Option<u32>,
    /// Tasks of the open epoch.
    open_tasks: usize,
    /// Pages that had been sent when the open epoch began.
    pages_before: u64,
    /// When the first task of the open epoch began.
    epoch_since_ns: u64,
}

/// An epoch ends with the task that is running when it is so old: so much a worker may lose, beside that one task.
const EPOCH_NS_MAX: u64 = 100_000_000;

/// What a map-side buffer keeps from task to task.
enum Kept<J: MapReduce> {
    /// There was no task yet, or the buffer keeps nothing.
    Nothing,
    Table(HashTable<J::Key, J::Value>),
    Array(DenseArray<J::Value>),
}

/// Runs until the job is over.
pub(crate) fn work<J: MapReduce>(work: &Work<'_, J>, role: Role) {
    let Work { plan, shared, .. } = *work;
    let (mut sender, receiver) = shared.pages.claim(role.slot);
    let mut shelver = Shelver::new(shared.pages.shelf());
    match plan.pages {
        PagePolicy::Fresh => {
            sender.set_reuse(Reuse::Discard);
            shelver.set_reuse(Reuse::Discard);
        }
        PagePolicy::Reuse => {}
        PagePolicy::Prealloc => {
            // A kernel that cannot populate leaves the pages to be faulted in later.
            drop(sender.populate());
            shelver.set_populate();
        }
    }
    let mut keeper = Keeper::new(shelver, work.seed);
    let inbox = role.reduces.map(|_| {
        let spill = Rc::new(Spill::new(&work.settings.spill_dirs));
        let reduction = empty_reduction(work, spill.clone());
        Inbox::new(shared, role.slot, receiver, plan, spill, reduction, work.written)
    });
    let mut fates = work.fates.iter();
    let fate = fates.find(|(slot, ..)| *slot == role.slot).map(|(_, moment, nth, signal)| (*moment, *nth, *signal));
    let mut lane: Lane<'_, J> = Lane {
        shared,
        slot: role.slot,
        outbox: Outbox::new(shared, sender, Fate::new(fate)),
        inbox,
        meter: Meter::new(work.start_ns),
        contract: Contract::default(),
        seed: work.seed,
    };
    if role.maps {
        work.outputs.attach().expect("a worker maps its views of shared outputs");
    }
    let mut mapper = role.maps.then(|| Mapper {
        reader: Reader::new(plan.chunk_bytes),
        kept: Kept::Nothing,
        partitioner: Partitioner::new(plan.partitions),
        set_aside: SetAside::default(),
        state_of: None,
        open_tasks: 0,
        pages_before: 0,
        epoch_since_ns: 0,
    });
    let usage = || match plan.isolation {
        Isolation::Process => Usage::of_process(),
        Isolation::Thread => Usage::of_thread(),
    };
    let usage = || (usage(), Allocations::of_thread());
    let usage_before = usage();
    let (mut drained, mut finished) = (None, false);
    // A reducer finishes the round that it is made of or a later one. The words may still speak of the round
    // before, in which the reducer that it replaces died.
    let may_finish = |round| role.reduces.is_some_and(|since| since <= round) && shared.may_finish(round);

    while !shared.is_over() {
        let round = shared.round();
        let mapped = shared.is_mapped(round);
        // 1. What has arrived.
        lane.meter.enter(Phase::Receive);
        let arrived = lane.drain();
        // 2. One task, or the end of the epoch when there is none.
        //    Who has delivered a result maps no more: its pages may lie with the coordinator until another
        //    result is there, and that one must not wait for them.
        if let Some(mapper) = &mut mapper
            && !finished
        {
            lane.outbox.round = round;
            if mapper.state_of != Some(round) {
                mapper.state_of = Some(round);
                shared.copy_state(&mut mapper.reader.state);
            }
            let drawn = || lane.outbox.fate.passes(Moment::Drawn);
            let permitted = shared.take_permit(role.slot);
            let claimed = if permitted { shared.claim_new(round, role.slot, lane.outbox.epoch, drawn) } else { None };
            if let Some(task) = claimed {
                if let Err(error) = mapper.run(work, &mut lane, task) {
                    shared.fail(role.slot, &error);
                    break;
                }
                if plan.flush_each_task {
                    mapper.flush(&mut lane);
                }
                if mapper.has_enough(plan, &lane.meter) {
                    mapper.commit(work, &mut lane);
                }
                publish(&mut lane, usage_before, usage());
                continue;
            }
            if mapper.open_tasks > 0 {
                mapper.commit(work, &mut lane);
                publish(&mut lane, usage_before, usage());
                continue;
            }
            // A task whose worker died runs in an epoch of its own: if it is what kills, nothing else is
            // lost with it.
            if permitted && let Some(task) = shared.claim_put_back(round, role.slot, lane.outbox.epoch) {
                if let Err(error) = mapper.run(work, &mut lane, task) {
                    shared.fail(role.slot, &error);
                    break;
                }
                mapper.commit(work, &mut lane);
                publish(&mut lane, usage_before, usage());
                continue;
            }
            if shared.give_permit(role.slot) && shared.has_free_task(shared.round()) {
                // A round was opened meanwhile, and who woke for it may have found no permit.
                shared.ring_all();
            }
        }
        if arrived {
            continue;
        }
        // 3. Everything of this round was mapped before the drain that found nothing.
        if role.reduces.is_some() && mapped && drained != Some(round) {
            drained = Some(round);
            let left = match work.checkpoint {
                Some(folder) => save::save(work, &mut lane, folder, round),
                None if work.iterates => keep(work, &mut lane, &mut keeper, round),
                None => Ok(()),
            };
            if let Err(error) = left {
                shared.fail(role.slot, &error);
                break;
            }
            if let (Some(_), Some(inbox)) = (work.written, &lane.inbox) {
                for partition in (0..plan.partitions).filter(|partition| shared.owner(*partition) == role.slot) {
                    shared.set_given(partition, inbox.given[partition]);
                }
            }
            publish(&mut lane, usage_before, usage());
            shared.set_drained(role.slot, round);
            lane.outbox.fate.passes(Moment::Drained);
            shared.announce();
            continue;
        }
        // 4. The result.
        if may_finish(round) && !finished {
            finished = true;
            let delivered = match work.checkpoint {
                Some(folder) => save::finish(work, &mut lane, folder),
                None => finish(work, &mut lane),
            };
            if let Err(failure) = delivered {
                shared.fail(role.slot, &failure);
                break;
            }
            publish(&mut lane, usage_before, usage());
            continue;
        }
        // 5. Nothing to do.
        lane.meter.enter(Phase::Idle);
        lane.meter.add(Count::Sleeps, 1);
        shared.pages.doorbell(role.slot).sleep_unless(&SharedFutex, || {
            shared.is_over()
                || shared.round() != round
                || lane.inbox.as_ref().is_some_and(Inbox::has_work)
                || mapper.is_some() && !finished && shared.has_permit_left() && shared.has_free_task(round)
                || role.reduces.is_some() && shared.is_mapped(round) && drained != Some(round)
                || may_finish(round) && !finished
        });
    }
    lane.meter.enter(Phase::Idle);
    publish(&mut lane, usage_before, usage());
}

fn publish<J: MapReduce>(lane: &mut Lane<'_, J>, before: (Usage, Allocations), now: (Usage, Allocations)) {
    let counters = &mut lane.meter.counters;
    let allocated = now.1 - before.1;
    counters.set(Count::Allocations, allocated.count);
    counters.set(Count::AllocatedBytes, allocated.bytes);
    let (before, now) = (before.0, now.0);
    let (fresh, reused) = lane.outbox.page_uses();
    counters.set(Count::PagesFresh, fresh);
    counters.set(Count::PagesReused, reused);
    counters.set(Count::UserUs, now.user_us - before.user_us);
    counters.set(Count::SystemUs, now.sys_us - before.sys_us);
    counters.set(Count::MinorFaults, now.minor_faults - before.minor_faults);
    counters.set(Count::MajorFaults, now.major_faults - before.major_faults);
    counters.set(Count::VoluntarySwitches, now.voluntary_switches - before.voluntary_switches);
    counters.set(Count::InvoluntarySwitches, now.involuntary_switches - before.involuntary_switches);
    if let Some(inbox) = &lane.inbox {
        let Tally { written_bytes, runs, runs_merged } = inbox.spill.tally();
        counters.set(Count::SpilledBytes, written_bytes);
        counters.set(Count::Runs, runs);
        counters.set(Count::RunsMerged, runs_merged);
        inbox.reduction.count_memory(counters);
    }
    lane.shared.set_counters(lane.slot, counters);
}

impl<J: MapReduce> Mapper<J> {
    fn run(&mut self, work: &Work<'_, J>, lane: &mut Lane<'_, J>, task: usize) -> Result<(), Failure> {
        lane.outbox.fate.passes(Moment::Claimed);
        let now_ns = monotonic_ns();
        work.shared.begin_task(lane.slot, task, now_ns);
        if self.open_tasks == 0 {
            self.epoch_since_ns = now_ns;
        }
        lane.meter.enter(Phase::Map);
        lane.meter.add(Count::Tasks, 1);
        self.open_tasks += 1;
        self.reader.read_ns = 0;
        if let Kept::Nothing = self.kept {
            self.kept = match (work.plan.buffer, work.program.keys()) {
                (Buffer::Hash, _) => Kept::Table(HashTable::new(work.plan.table_may_rest, work.iterates)),
                (Buffer::Dense, Some(keys)) => Kept::Array(DenseArray::new(keys)),
                _ => Kept::Nothing,
            };
        }
        let Mapper { reader, kept, partitioner, set_aside, .. } = self;
        set_aside.learn(work.shared);
        let narrow = Narrow::new(work, lane.slot, task, set_aside);
        let digest = match kept {
            Kept::Table(table) if table.rests() => {
                let mut past = ArrayBuffer::new(lane, *partitioner);
                map_task(work, reader, task, narrow, &mut past)?;
                let digest = past.digest;
                drop(past);
                table.passed(digest.pairs);
                lane.meter.add(Count::PairsPassed, digest.pairs);
                digest
            }
            Kept::Table(table) => {
                let mut buffer = HashBuffer::new(lane, table, *partitioner);
                map_task(work, reader, task, narrow, &mut buffer)?;
                buffer.digest
            }
            Kept::Array(array) => {
                let mut buffer = DenseBuffer::new(lane, array, *partitioner);
                map_task(work, reader, task, narrow, &mut buffer)?;
                buffer.digest
            }
            Kept::Nothing => match work.ranges {
                Some(ranges) => {
                    let mut buffer = RangeBuffer::new(lane, ranges);
                    map_task(work, reader, task, narrow, &mut buffer)?;
                    buffer.digest
                }
                None => {
                    let mut buffer = ArrayBuffer::new(lane, *partitioner);
                    map_task(work, reader, task, narrow, &mut buffer)?;
                    buffer.digest
                }
            },
        };
        lane.meter.move_time(Phase::Map, Phase::Input, self.reader.read_ns);
        let changes = changes_of_outputs(work, lane, task)?;
        let digest = Digest { changes, ..digest };
        let Digest { pairs: again, .. } = digest;
        let proved = work.shared.prove(task, lane.outbox.round, digest, !work.outputs.is_empty());
        proved.map_err(|Digest { pairs: first, .. }| Failure::OtherPairs { task, first, again })?;
        merge_outputs(work, lane, task)?;
        lane.meter.add(Count::InputBytes, work.task_bytes(task));
        work.shared.end_task(lane.slot);
        Ok(())
    }

    /// Empties the buffer into pages.
    fn flush(&mut self, lane: &mut Lane<'_, J>) {
        match &mut self.kept {
            Kept::Table(table) => HashBuffer::new(lane, table, self.partitioner).flush(),
            Kept::Array(array) => DenseBuffer::new(lane, array, self.partitioner).flush(),
            Kept::Nothing => {}
        }
    }

    /// True when the open epoch has sent enough pages, or has lasted long enough, for the task just done to be its last.
    fn has_enough(&self, plan: &Plan, meter: &Meter) -> bool {
        meter.counters.get(Count::PagesSent) - self.pages_before >= plan.epoch_pages
            || meter.read_ns() - self.epoch_since_ns >= EPOCH_NS_MAX
    }

    /// Ends the epoch: everything that its tasks emitted leaves, and then counts.
    fn commit(&mut self, work: &Work<'_, J>, lane: &mut Lane<'_, J>) {
        self.flush(lane);
        lane.send_all();
        lane.outbox.fate.passes(Moment::Flushed);
        // After the last page was pushed, and by one store. While there are tasks that nobody has drawn the round is not over, and
        // nobody needs to look.
        let (commit, round) = (work.shared.commit(lane.slot), lane.outbox.round);
        let goes_on = commit.commit_and_look(lane.outbox.epoch, || work.shared.has_new_task(round));
        lane.outbox.fate.passes(Moment::Committed);
        lane.outbox.ring_receivers();
        if !goes_on {
            work.shared.announce();
        }
        lane.outbox.epoch += 1;
        lane.meter.add(Count::Epochs, 1);
        self.open_tasks = 0;
        self.pages_before = lane.meter.counters.get(Count::PagesSent);
    }
}

fn map_task<J: MapReduce>(
    work: &Work<'_, J>,
    reader: &mut Reader,
    task: usize,
    mut narrow: Narrow<'_, J>,
    buffer: &mut impl Emit<J::Key, J::Value>,
) -> Result<(), Failure> {
    if let Some(piece) = work.shared.piece(task) {
        let shelf = work.shared.pages.shelf();
        work.program.map_pairs(&Pairs::new(pairs_of(&shelf, piece), &reader.state), buffer);
        return Ok(());
    }
    let mut before_bytes = 0;
    for part in work.tasks.parts(work.shared.input_task(task)) {
        // Only a file that cannot be cut is a part for so long that somebody wants to see how far it is.
        let is_whole = part.range.start == 0;
        reader.for_each_chunk(work.tasks, part, |split| {
            if is_whole {
                work.shared.set_reached(narrow.slot, before_bytes + split.reached.min(part.stored_bytes));
            }
            if !narrow.is_plain {
                return narrow.map(split, buffer);
            }
            narrow.begin(split);
            work.program.map(split, buffer);
            narrow.end();
        })?;
        before_bytes += part.stored_bytes;
    }
    narrow.finish();
    Ok(())
}

/// A hash of what a task has changed in shared outputs.
fn changes_of_outputs<J: MapReduce>(work: &Work<'_, J>, lane: &mut Lane<'_, J>, task: usize) -> Result<u64, Failure> {
    if work.outputs.is_empty() {
        return Ok(0);
    }
    lane.meter.enter(Phase::Merge);
    work.outputs.changes(work.seed).map_err(|what| Failure::Conflict { task, what })
}

/// Merges what a task has changed in shared outputs.
fn merge_outputs<J: MapReduce>(work: &Work<'_, J>, lane: &mut Lane<'_, J>, task: usize) -> Result<(), Failure> {
    if work.outputs.is_empty() {
        return Ok(());
    }
    lane.meter.enter(Phase::Merge);
    let Lane { shared, slot, ref outbox, .. } = *lane;
    let take = |latch: Latch<'_>| {
        let try_take = || latch.try_take(slot as u32, |holder| shared.pages.is_dead(holder as usize));
        if !try_take() {
            // Its holder merges one OS page, or is dead and will be declared so, or is stopped: not this task is late.
            let (start_ns, waits_since_ns) = (shared.stop_clock(slot), monotonic_ns());
            while !try_take() {
                if shared.is_over() {
                    std::panic::resume_unwind(Box::new(JobIsOver));
                }
                std::thread::yield_now();
            }
            shared.start_clock(slot, start_ns + (monotonic_ns() - waits_since_ns));
        }
        outbox.fate.passes(Moment::Latched);
    };
    let merged = work.outputs.merge(take, || outbox.fate.passes(Moment::Merged));
    lane.meter.add(Count::OsPagesMerged, merged.map_err(|what| Failure::Conflict { task, what })?);
    Ok(())
}

fn empty_reduction<J: MapReduce>(work: &Work<'_, J>, spill: Rc<Spill>) -> Reduction<J> {
    let Work { plan, settings, reduce, .. } = *work;
    let (order, limit) = run_order::<J>(settings, reduce.is_some());
    let store = Store::empty(plan.partitions, plan.combine_in_reduce, work.ranges.is_some());
    let mut reduction = Reduction::new(store, order, limit, plan.room, spill, work.seed);
    reduction.watch_for_skew(settings.combine_after.filter(|_| !settings.combines_in_order::<J>()));
    reduction
}

/// What this worker has gathered, in the end; its inbox is left with nothing.
pub(crate) fn reduced<J: MapReduce>(work: &Work<'_, J>, lane: &mut Lane<'_, J>) -> Reduction<J> {
    lane.meter.enter(Phase::Reduce);
    let inbox = lane.inbox.as_mut().expect("a reducer has an inbox");
    let empty = empty_reduction(work, inbox.spill.clone());
    let mut reduction = std::mem::replace(&mut inbox.reduction, empty);
    reduction.combine();
    reduction.count_memory(&mut lane.meter.counters);
    lane.meter.add(Count::PartitionBytes, reduction.sorter.held_bytes as u64);
    reduction
}

/// Leaves the partitions of `round` that this worker has reduced where the next step finds them.
fn keep<J: MapReduce>(
    work: &Work<'_, J>,
    lane: &mut Lane<'_, J>,
    keeper: &mut Keeper<'_>,
    round: u32,
) -> Result<(), Failure> {
    let Work { plan, shared, .. } = *work;
    let before = lane.meter.enter(Phase::Reduce);
    let mut reduction = in_partitions(reduced(work, lane), work.settings, work.reduce)?;
    lane.meter.enter(Phase::Output);
    lane.meter.add(Count::Keys, reduction.sorter.store.len() as u64);
    let step = shared.step();
    let mine = |partition: &usize| shared.owner(*partition) == lane.slot && shared.since(*partition) == round;
    // What a dead predecessor has kept stays as it is.
    for partition in (0..plan.partitions).filter(mine).filter(|partition| !shared.is_kept(*partition, step)) {
        // Generations count from 1.
        let mut writer = keeper.begin(step + 1);
        let written = reduction
            .sorter
            .store
            .try_for_each(partition, |key, value| writer.append::<J::Key, J::Value>(key, value))
            .map(|()| writer.end());
        let kept = written.map_err(|why| match why {
            NoRoom::Shelf => Failure::ShelfFull,
            NoRoom::Pair { bytes } => Failure::PairTooLarge { bytes },
        })?;
        lane.outbox.fate.passes(Moment::Keeping);
        shared.publish(partition, step, kept);
        lane.outbox.fate.passes(Moment::Kept);
    }
    keeper.end_generation();
    let as_it_came = work.reduce.is_none() && (J::COMBINE.is_none() || plan.combine_in_reduce);
    if as_it_came && plan.pages != PagePolicy::Fresh {
        reduction.sorter.clear();
        lane.inbox.as_mut().expect("a reducer has an inbox").reduction = reduction;
    }
    lane.meter.enter(before);
    Ok(())
}
