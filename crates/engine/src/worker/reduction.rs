//! The reduction of a worker: made empty, taken from its inbox at the end, or put on the shelf for the next step.

use std::rc::Rc;

use crate::control::counters::{Count, Phase};
use crate::data::order::Order;
use crate::exchange::lane::Lane;
use crate::failure::Failure;
use crate::gather::store::Store;
use crate::plan::settings::PagePolicy;
use crate::program::ending::Program;
use crate::reduce::delivery::{InPartitions, run_order};
use crate::reduce::reduction::Reduction;
use crate::spill::spill_file::Spill;
use crate::steps::shelf_writer::ShelfWriter;
use crate::testing::kill_points::Moment;
use crate::worker::setup::Setup;
use crate::worker::work::Work;

/// Makes the reduction of a worker that has gathered nothing.
pub(super) fn empty_reduction<'w, J: Program>(work: &Work<'w, J>, spill: Rc<Spill>) -> Reduction<'w, J> {
    let (plan, reduce) = (work.plan, work.functions.reduce);
    let (order, limit) = match work.mode.iterates() {
        // The order and the limit of the result have no effect on steps.
        true => (Order::ByKey, usize::MAX),
        false => run_order(work.functions.program, plan, reduce.is_some()),
    };
    let store = Store::empty(plan.partitions, plan.combining.in_reduce, work.functions.ranges.is_some());
    let mut reduction =
        Reduction::new(work.functions.program, store, order, limit, plan.reduce_memory, spill, work.seed);
    reduction.watch_for_skew(plan.combining.after);
    if work.mode.iterates() {
        reduction.sorter.by_partition();
    }
    reduction
}

/// Takes everything that this worker has gathered. Its inbox is empty afterwards.
pub(super) fn reduced<'w, J: Program>(work: &Work<'w, J>, lane: &mut Lane<'w, J>) -> Reduction<'w, J> {
    lane.meter.enter(Phase::Reduce);
    let inbox = lane.inbox.as_mut().expect("a reducer has an inbox");
    let empty = empty_reduction(work, inbox.spill.clone());
    let mut reduction = std::mem::replace(&mut inbox.reduction, empty);
    reduction.combine();
    reduction.count_memory(&mut lane.meter.counters);
    lane.meter.add(Count::PartitionBytes, reduction.sorter.held_bytes as u64);
    reduction
}

/// Puts the partitions of `round` that this worker has reduced on the shelf, for the next step.
pub(super) fn keep<'w, J: Program>(
    work: &Work<'w, J>,
    lane: &mut Lane<'w, J>,
    shelf_writer: &mut ShelfWriter<'_>,
    round: u32,
) -> Result<(), Failure> {
    let Setup { plan, shared, .. } = *work.setup;
    let before = lane.meter.enter(Phase::Reduce);
    let mut partitions = InPartitions::prepare(reduced(work, lane), plan, work.functions.reduce)?;
    lane.meter.enter(Phase::Output);
    let step = shared.step();
    let mine = |partition: &usize| shared.owner(*partition) == lane.slot && shared.since(*partition) == round;
    // Partitions that a dead predecessor has put there stay as they are.
    for partition in (0..plan.partitions).filter(mine).filter(|partition| !shared.is_kept(*partition, step)) {
        // Generations count from 1.
        let mut writer = shelf_writer.begin(step + 1, lane.meter.counters.get(Count::SpilledBytes));
        let written = partitions.try_for_each(partition, |key, value| writer.append::<J::Key, J::Value>(key, value));
        lane.meter.add(Count::Keys, written?);
        let kept = writer.end();
        lane.outbox.kill_point.passes(Moment::Keeping);
        shared.publish(partition, step, kept);
        lane.outbox.kill_point.passes(Moment::Kept);
    }
    shelf_writer.end_generation();
    if let Some(mut reduction) = partitions.into_reduction()
        && plan.pages != PagePolicy::Fresh
    {
        reduction.sorter.clear();
        lane.inbox.as_mut().expect("a reducer has an inbox").reduction = reduction;
    }
    lane.meter.enter(before);
    Ok(())
}
