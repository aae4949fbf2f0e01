//! The main loop of a worker: it looks, takes the next action, and sleeps if there is none.

use std::rc::Rc;

use gristmill_os::allocations::Allocations;
use gristmill_os::futex::SharedFutex;
use gristmill_os::machine::pin_to_cpus;
use gristmill_os::usage::Usage;
use gristmill_page::{Reuse, Shelver};

use crate::control::counters::{Count, Phase};
use crate::control::meter::Meter;
use crate::data::contract::Contract;
use crate::exchange::inbox::Inbox;
use crate::exchange::lane::Lane;
use crate::exchange::outbox::Outbox;
use crate::failure::Failure;
use crate::plan::settings::{Isolation, PagePolicy};
use crate::program::ending::Program;
use crate::spill::spill_file::{Spill, Tally};
use crate::steps::shelf_writer::ShelfWriter;
use crate::testing::kill_points::{KillPoint, Moment};
use crate::worker::mapper::Mapper;
use crate::worker::next_action::{Action, View, next_action};
use crate::worker::reduction::{empty_reduction, keep};
use crate::worker::setup::{Role, Setup};
use crate::worker::work::Work;
use crate::worker::{deliver, save};

/// A worker.
struct WorkerLoop<'w, J: Program> {
    work: &'w Work<'w, J>,
    role: Role,
    lane: Lane<'w, J>,
    mapper: Option<Mapper<J>>,
    shelf_writer: ShelfWriter<'w>,
    /// The last round for which it has reported that it has all pages.
    drained: Option<u32>,
    has_delivered: bool,
    usage_before: (Usage, Allocations),
}

/// Runs until the job is over.
pub(crate) fn work<J: Program>(work: &Work<'_, J>, role: Role) {
    let overwrite = |seed| work.shared.overwrite_a_word(seed);
    let mut worker = WorkerLoop::new(work, role, &overwrite);
    loop {
        let round = work.shared.round();
        worker.lane.meter.enter(Phase::Receive);
        let done = match next_action(worker.view(round)) {
            Action::End => break,
            Action::Receive => {
                worker.lane.drain();
                continue;
            }
            Action::GivePermit => {
                worker.give_permit();
                continue;
            }
            Action::Sleep => {
                worker.sleep(round);
                continue;
            }
            Action::MapNew => worker.map(round, false),
            Action::MapReturned => worker.map(round, true),
            Action::Commit => worker.commit(),
            Action::SayDrained => worker.say_drained(round),
            Action::Deliver => worker.deliver(),
        };
        if let Err(failure) = done {
            work.shared.fail(role.slot, &failure);
            break;
        }
        worker.publish();
    }
    worker.lane.meter.enter(Phase::Idle);
    worker.publish();
    worker.lane.meter.end();
}

impl<'w, J: Program> WorkerLoop<'w, J> {
    fn new(work: &'w Work<'w, J>, role: Role, overwrite: &'w dyn Fn(u64)) -> WorkerLoop<'w, J> {
        let Setup { plan, shared, .. } = *work.setup;
        if let Some(home) = role.home {
            // If the kernel refuses, because the processors allowed to this process have just changed, the worker runs
            // elsewhere. Then what it reads is remote, and counted so.
            drop(pin_to_cpus(&plan.places.homes[home].cpus));
        }
        let (mut sender, receiver) = shared.pages.claim(role.slot);
        if plan.isolation == Isolation::Process {
            shared.pages.keep_to_arena(role.slot).expect("the kernel has memory to note what a worker may write");
        }
        sender.set_reserve(plan.reserve_pages);
        sender.set_nodes(&plan.places.node_of_cpu);
        let mut shelver = Shelver::new(shared.pages.shelf(), role.slot);
        match plan.pages {
            PagePolicy::Fresh => {
                sender.set_reuse(Reuse::Discard);
                shelver.set_reuse(Reuse::Discard);
            }
            PagePolicy::Reuse => {}
            PagePolicy::Prealloc => {
                // If the kernel cannot populate the pages, they are faulted in later.
                drop(sender.populate());
                shelver.set_populate();
            }
        }
        let inbox = role.reduces.map(|_| {
            let spill = Rc::new(Spill::new(&plan.spill_dirs));
            let reduction = empty_reduction(work, spill.clone());
            Inbox::new(shared, role.slot, receiver, plan, spill, reduction, work.functions.row)
        });
        let mut kill_points = work.kill_points.iter();
        let kill_point =
            kill_points.find(|(slot, ..)| *slot == role.slot).map(|(_, moment, nth, signal)| (*moment, *nth, *signal));
        let lane = Lane {
            program: work.functions.program,
            shared,
            slot: role.slot,
            outbox: Outbox::new(shared, role.slot, sender, KillPoint::new(kill_point, overwrite)),
            inbox,
            meter: Meter::new(work.start_ns, shared.recorder(role.slot, work.start_ns)),
            contract: Contract::default(),
            seed: work.seed,
        };
        if role.maps {
            work.outputs.attach(role.slot).expect("a worker maps its views of shared outputs");
        }
        WorkerLoop {
            work,
            role,
            lane,
            mapper: role.maps.then(|| Mapper::new(plan)),
            shelf_writer: ShelfWriter::new(shelver, work.seed, work.plan.shelf_folder),
            drained: None,
            has_delivered: false,
            usage_before: usage(plan.isolation),
        }
    }

    fn view(&self, round: u32) -> View {
        let Setup { shared, plan, .. } = *self.work.setup;
        let WorkerLoop { role, lane, mapper, .. } = self;
        let reduces = role.reduces.is_some();
        // In this order: see `View::round_is_mapped`.
        let round_is_mapped = shared.is_mapped(round);
        let has_arrived = lane.inbox.as_ref().is_some_and(Inbox::has_work);
        let maps = mapper.is_some() && !self.has_delivered;
        let has_new_task = maps && shared.has_new_task(round);
        let has_returned_task = maps && (plan.in_order || !has_new_task) && shared.has_returned_task(round);
        View {
            job_is_over: shared.is_over(),
            round_is_mapped,
            has_arrived,
            maps,
            holds_permit: maps && shared.holds_permit(role.slot),
            permit_is_left: maps && shared.has_permit_left(),
            permit_is_wanted: maps && shared.wants_permit_back(),
            // A task that was never drawn counts as returned, too, once a worker has died.
            has_new_task: has_new_task && !has_returned_task,
            has_returned_task,
            has_open_epoch: mapper.as_ref().is_some_and(|mapper| mapper.open_tasks > 0),
            must_drain: reduces && self.drained != Some(round),
            // A reducer delivers the round in which its partitions were made, or a later one. The words may still show
            // the previous round, in which its predecessor died.
            may_deliver: !self.has_delivered
                && role.reduces.is_some_and(|since| since <= round)
                && shared.may_finish(round),
        }
    }

    /// Maps a task, if there is a permit and no other worker was faster.
    fn map(&mut self, round: u32, returned: bool) -> Result<(), Failure> {
        let WorkerLoop { work, role, lane, mapper, .. } = self;
        let Setup { plan, shared, .. } = *work.setup;
        let mapper = mapper.as_mut().expect("it maps");
        if !shared.take_permit(role.slot) {
            return Ok(());
        }
        lane.outbox.turn_to_round(round);
        mapper.see_state(shared, round);
        let claimed = if returned {
            shared.claim_put_back(round, role.slot, lane.outbox.epoch)
        } else {
            shared.claim_new(round, role.slot, lane.outbox.epoch, || lane.outbox.kill_point.passes(Moment::Drawn))
        };
        let Some(task) = claimed else { return Ok(()) };
        let share = shared.share(task, round, role.home.unwrap_or(0));
        mapper.turn_to_share(plan, lane, share);
        mapper.run(work, lane, task)?;
        if plan.flush_each_task {
            mapper.flush(lane);
        }
        // The next task of a later round may belong to another share, and an epoch has pairs of one.
        let ends_share = plan.shares > 1 && !shared.is_first_round(round);
        if returned || ends_share || mapper.has_enough(plan, &lane.meter) {
            mapper.commit(work, lane);
        }
        Ok(())
    }

    fn commit(&mut self) -> Result<(), Failure> {
        self.mapper.as_mut().expect("it has mapped").commit(self.work, &mut self.lane);
        Ok(())
    }

    fn give_permit(&self) {
        let Setup { shared, .. } = *self.work.setup;
        if shared.give_permit(self.role.slot) && shared.has_free_task(shared.round()) {
            // A round has been opened meanwhile, and a worker that woke for it may have found no permit.
            shared.ring_all();
        }
    }

    /// Ends the round: everything has arrived. Keeps or saves it, if the job does that, and tells the coordinator.
    fn say_drained(&mut self, round: u32) -> Result<(), Failure> {
        let WorkerLoop { work, role, lane, shelf_writer, .. } = self;
        let Setup { shared, .. } = *work.setup;
        self.drained = Some(round);
        match work.checkpoint {
            Some(folder) => save::save(work, lane, folder, round)?,
            None if work.mode.iterates() => keep(work, lane, shelf_writer, round)?,
            None => {}
        }
        if let (Some(_), Some(inbox)) = (work.target, &lane.inbox) {
            // Partitions without pairs need no report.
            for (partition, size) in
                inbox.part_sizes.iter().filter(|(partition, _)| shared.owner(**partition) == role.slot)
            {
                shared.set_part_size(*partition, *size);
            }
        }
        if let Some(inbox) = &self.lane.inbox {
            inbox.publish_received(round);
        }
        self.publish();
        shared.set_drained(self.role.slot, round);
        self.lane.outbox.kill_point.passes(Moment::Drained);
        shared.announce();
        Ok(())
    }

    fn deliver(&mut self) -> Result<(), Failure> {
        self.has_delivered = true;
        match self.work.checkpoint {
            Some(folder) => save::finish(self.work, &mut self.lane, folder),
            None => deliver::finish(self.work, &mut self.lane),
        }
    }

    fn sleep(&mut self, round: u32) {
        self.lane.meter.enter(Phase::Idle);
        self.lane.meter.add(Count::Sleeps, 1);
        let Setup { shared, .. } = *self.work.setup;
        shared
            .pages
            .doorbell(self.role.slot)
            .sleep_unless(&SharedFutex, || shared.round() != round || next_action(self.view(round)) != Action::Sleep);
    }

    /// Publishes the counters of this worker.
    fn publish(&mut self) {
        let now = usage(self.work.plan.isolation);
        let WorkerLoop { lane, usage_before: before, .. } = self;
        if let Some(inbox) = &mut lane.inbox {
            inbox.node_meter.publish(lane.shared);
        }
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
}

fn usage(isolation: Isolation) -> (Usage, Allocations) {
    let usage = match isolation {
        Isolation::Process => Usage::of_process(),
        Isolation::Thread => Usage::of_thread(),
    };
    (usage, Allocations::of_thread())
}
