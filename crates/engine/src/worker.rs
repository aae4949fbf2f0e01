//! The life of one worker: map what it can claim, reduce what arrives, sleep when there is neither.

use gristmill_os::clock::monotonic_ns;
use gristmill_os::futex::SharedFutex;
use gristmill_os::usage::Usage;
use gristmill_page::Reuse;

use crate::buffer::{ArrayBuffer, HashBuffer, HashTable};
use crate::counters::{Count, Meter, Phase};
use crate::exchange::{Inbox, Lane, Outbox};
use crate::job::{Buffer, Exchange, Isolation, PagePolicy};
use crate::map_reduce::MapReduce;
use crate::partition::Partitioner;
use crate::plan::Plan;
use crate::reduction::Reduction;
use crate::shared::{Failure, Shared};
use crate::split::{Reader, Tasks};

/// What a worker does, and in which slot.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Role {
    pub slot: usize,
    pub maps: bool,
    pub reduces: bool,
    /// For tests: die after so many hand-overs.
    pub die_after_pages: Option<u64>,
}

/// What all workers of a job are given: the same memory, before and after a fork.
pub(crate) struct Work<'w, J: MapReduce> {
    pub program: &'w J,
    pub plan: &'w Plan,
    pub tasks: &'w Tasks,
    pub shared: &'w Shared<'w>,
    pub settings: &'w crate::job::Settings,
    pub start_ns: u64,
}

/// The map side of a worker.
struct Mapper<J: MapReduce> {
    reader: Reader,
    /// The combining table, made for the first task and kept; `None` for an array buffer.
    table: Option<HashTable<J::Key, J::Value>>,
    partitioner: Partitioner,
    /// Tasks of the open epoch.
    open_tasks: usize,
    /// Pages that had been sent when the open epoch began.
    pages_before: u64,
}

/// Runs until the job is over.
pub(crate) fn work<J: MapReduce>(work: &Work<'_, J>, role: Role) {
    let Work { plan, shared, .. } = *work;
    let (mut sender, receiver) = shared.pages.claim(role.slot);
    match plan.pages {
        PagePolicy::Fresh => sender.set_reuse(Reuse::Discard),
        PagePolicy::Reuse => {}
        // A kernel that cannot populate leaves the pages to be faulted in later.
        PagePolicy::Prealloc => drop(sender.populate()),
    }
    let inbox = role.reduces.then(|| {
        let reduction = Reduction::new(plan.partitions, plan.combine_in_reduce);
        Inbox::new(shared, receiver, plan.held_pages_max(), plan.exchange == Exchange::Barrier, reduction)
    });
    let mut lane: Lane<'_, J> = Lane {
        shared,
        slot: role.slot,
        outbox: Outbox::new(shared, sender, role.die_after_pages),
        inbox,
        meter: Meter::new(work.start_ns),
    };
    let mut mapper = role.maps.then(|| Mapper {
        reader: Reader::new(plan.chunk_bytes),
        table: None,
        partitioner: Partitioner::new(plan.partitions),
        open_tasks: 0,
        pages_before: 0,
    });
    let usage = || match plan.isolation {
        Isolation::Process => Usage::of_process(),
        Isolation::Thread => Usage::of_thread(),
    };
    let usage_before = usage();
    let (mut drained, mut finished) = (None, false);

    while !shared.is_over() {
        let round = shared.round();
        let mapped = shared.is_mapped(round);
        // 1. What has arrived.
        lane.meter.enter(Phase::Receive);
        let arrived = lane.drain();
        // 2. One task, or the end of the epoch when there is none.
        if let Some(mapper) = &mut mapper {
            lane.outbox.round = round;
            let claimed = match shared.take_permit(role.slot) {
                true => shared.claim_task(round, role.slot, lane.outbox.epoch),
                false => None,
            };
            if let Some((task, put_back)) = claimed {
                // A task that failed before runs in an epoch of its own: if it fails again, nothing else
                // is lost with it. Its claim names the epoch, so the one before must be closed first.
                if let Err(error) = mapper.run(work, &mut lane, task) {
                    shared.fail(role.slot, &error);
                    break;
                }
                if put_back || lane.meter.counters.get(Count::PagesSent) - mapper.pages_before >= plan.epoch_pages {
                    mapper.commit(work, &mut lane);
                    if !shared.has_free_task(round) {
                        // This may have been the last commit that the coordinator waits for.
                        shared.announce();
                    }
                }
                publish(&mut lane, usage_before, usage());
                continue;
            }
            if mapper.open_tasks > 0 {
                mapper.commit(work, &mut lane);
                publish(&mut lane, usage_before, usage());
                shared.announce();
                continue;
            }
            shared.give_permit(role.slot);
        }
        if arrived {
            continue;
        }
        // 3. Everything of this round was mapped before the drain that found nothing.
        if role.reduces && mapped && drained != Some(round) {
            drained = Some(round);
            publish(&mut lane, usage_before, usage());
            shared.set_drained(role.slot, round);
            shared.announce();
            continue;
        }
        // 4. The result.
        if role.reduces && shared.may_finish(round) && !finished {
            finished = true;
            finish(work, &mut lane);
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
                || mapper.is_some() && shared.has_permit_left() && shared.has_free_task(round)
                || role.reduces && shared.is_mapped(round) && drained != Some(round)
                || role.reduces && shared.may_finish(round) && !finished
        });
    }
    lane.meter.enter(Phase::Idle);
    publish(&mut lane, usage_before, usage());
}

fn publish<J: MapReduce>(lane: &mut Lane<'_, J>, before: Usage, now: Usage) {
    let counters = &mut lane.meter.counters;
    let (fresh, reused) = lane.outbox.page_uses();
    counters.set(Count::PagesFresh, fresh);
    counters.set(Count::PagesReused, reused);
    counters.set(Count::UserUs, now.user_us - before.user_us);
    counters.set(Count::SystemUs, now.sys_us - before.sys_us);
    counters.set(Count::MinorFaults, now.minor_faults - before.minor_faults);
    counters.set(Count::MajorFaults, now.major_faults - before.major_faults);
    counters.set(Count::VoluntarySwitches, now.voluntary_switches - before.voluntary_switches);
    counters.set(Count::InvoluntarySwitches, now.involuntary_switches - before.involuntary_switches);
    lane.shared.set_counters(lane.slot, counters);
}

impl<J: MapReduce> Mapper<J> {
    fn run(&mut self, work: &Work<'_, J>, lane: &mut Lane<'_, J>, task: usize) -> Result<(), Failure> {
        work.shared.set_task(lane.slot, Some(task), monotonic_ns());
        lane.meter.enter(Phase::Map);
        lane.meter.add(Count::Tasks, 1);
        self.open_tasks += 1;
        self.reader.read_ns = 0;
        if work.plan.buffer == Buffer::Hash && self.table.is_none() {
            self.table = Some(HashTable::new());
        }
        for part in work.tasks.parts(task) {
            match &mut self.table {
                Some(table) => {
                    let mut buffer = HashBuffer::new(lane, table, self.partitioner);
                    self.reader.for_each_chunk(work.tasks, part, |mut split| work.program.map(&mut split, &mut buffer))?;
                }
                None => {
                    let mut buffer = ArrayBuffer::new(lane, self.partitioner);
                    self.reader.for_each_chunk(work.tasks, part, |mut split| work.program.map(&mut split, &mut buffer))?;
                }
            }
        }
        lane.meter.move_time(Phase::Map, Phase::Input, self.reader.read_ns);
        lane.meter.add(Count::InputBytes, work.tasks.bytes(task));
        work.shared.set_task(lane.slot, None, 0);
        Ok(())
    }

    /// Ends the epoch: everything that its tasks emitted leaves, and then counts.
    fn commit(&mut self, work: &Work<'_, J>, lane: &mut Lane<'_, J>) {
        if let Some(table) = &mut self.table {
            HashBuffer::new(lane, table, self.partitioner).flush();
        }
        lane.send_all();
        // After the last page was pushed, and by one store.
        work.shared.commit(lane.slot).commit(lane.outbox.epoch);
        lane.ring_receivers();
        lane.outbox.epoch += 1;
        lane.meter.add(Count::Epochs, 1);
        self.open_tasks = 0;
        self.pages_before = lane.meter.counters.get(Count::PagesSent);
    }
}

/// Sorts what this worker has reduced and sends it to the coordinator.
fn finish<J: MapReduce>(work: &Work<'_, J>, lane: &mut Lane<'_, J>) {
    lane.meter.enter(Phase::Sort);
    let inbox = lane.inbox.as_mut().expect("a reducer has an inbox");
    let empty = Reduction::new(work.plan.partitions, false);
    let mut reduction = std::mem::replace(&mut inbox.reduction, empty);
    if J::COMBINE.is_some() && !work.plan.combine_in_reduce {
        reduction = reduction.combined();
    }
    lane.meter.add(Count::Keys, reduction.len() as u64);
    lane.meter.add(Count::PartitionBytes, reduction.bytes() as u64);
    let rows = reduction.rows(work.settings.order, work.settings.limit);
    lane.meter.enter(Phase::Output);
    reduction.visit(&rows, |key, value| lane.append_result::<J::Key, J::Value>(key, value));
    lane.end_result();
}
