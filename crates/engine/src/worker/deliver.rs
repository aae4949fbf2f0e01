//! Ends a reducer: makes its part of the result from what it has gathered, and sends it to the coordinator or writes
//! it.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use crate::control::counters::{Count, Phase};
use crate::control::result_parts::PartSize;
use crate::data::datum::Datum;
use crate::exchange::lane::{Lane, RESULT};
use crate::failure::Failure;
use crate::output::parts::{OpenTarget, Row};
use crate::output::sink::{Attempt, OpenPart, Sink};
use crate::program::ending::Program;
use crate::reduce::delivery::Delivery;
use crate::spill::merge::{Visit, go_on};
use crate::testing::kill_points::Moment;
use crate::worker::reduction::reduced;
use crate::worker::setup::Setup;
use crate::worker::work::Work;

/// Sorts the pairs that this worker has reduced, and sends them to the coordinator or writes them.
pub(crate) fn finish<'w, J: Program>(work: &Work<'w, J>, lane: &mut Lane<'w, J>) -> Result<(), Failure> {
    let reduction = reduced(work, lane);
    lane.meter.enter(Phase::Sort);
    let spilled = reduction.sorter.has_runs();
    let delivery = Delivery::prepare(reduction, work.plan, work.functions.reduce)?;
    if spilled {
        lane.outbox.kill_point.passes(Moment::RunsMerged);
    }
    lane.meter.enter(Phase::Output);
    // If partitions are ranges, the stream has one after the other, and the coordinator takes them in turn.
    let mut parts = match (work.functions.ranges, &lane.inbox) {
        (Some(_), Some(inbox)) => Parts::new(&inbox.part_sizes),
        _ => Parts::one(),
    };
    let keys = match (work.target.zip(work.functions.row), work.functions.sink) {
        (Some(target), _) => write(work, target, lane, delivery, &mut parts)?,
        (None, Some(sink)) => into_sink(work, sink, lane, |visit| delivery.for_each(visit))?,
        (None, None) => delivery.for_each(&mut |key, value| {
            if let Some(ended) = parts.advance().ended {
                lane.send_result(ended);
            }
            lane.append_result::<J::OutKey, J::OutValue>(parts.partition, key, value);
            ControlFlow::Continue(())
        })?,
    };
    lane.meter.add(Count::Keys, keys);
    lane.end_result(parts.partition);
    Ok(())
}

/// Writes what `pairs` visits to a part of `sink`.
pub(super) fn into_sink<J: Program, T>(
    work: &Work<'_, J>,
    sink: &dyn Sink<J::OutKey, J::OutValue>,
    lane: &Lane<'_, J>,
    pairs: impl FnOnce(&mut Visit<'_, J::OutKey, J::OutValue>) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let part = work.reducer_in(lane.slot);
    let attempt = work.anew as usize * work.plan.slots() + lane.slot;
    let mut open = OpenPart::open(sink, Attempt { part, attempt })?;
    let visited = pairs(&mut |key, value| go_on(open.pair(key, value)))?;
    let pairs = open.close()?;
    lane.outbox.kill_point.passes(Moment::Written);
    work.shared.set_closed(part, attempt, pairs);
    Ok(visited)
}

/// Writes partitions that are ranges of the result to their places. Sends the first and the last pair of each.
fn write<J: Program>(
    work: &Work<'_, J>,
    (target, format): (&OpenTarget<'_>, &dyn Row<J::OutKey, J::OutValue>),
    lane: &mut Lane<'_, J>,
    delivery: Delivery<'_, J>,
    parts: &mut Parts,
) -> Result<u64, Failure> {
    let Setup { shared, plan, .. } = *work.setup;
    let mut writer = None;
    let mut row = |key: <J::OutKey as Datum>::Ref<'_>, value: <J::OutValue as Datum>::Ref<'_>| -> Result<(), Failure> {
        let step = parts.advance();
        if let Some(ended) = step.ended {
            lane.send_result(ended);
        }
        let partition = parts.partition;
        // The blocks for writing runs are free by now.
        let begin = || target.writer(partition, shared.start(partition), 2 * plan.reduce_memory.block_bytes);
        if writer.get_or_insert_with(begin).row::<J::OutKey, J::OutValue>(format, key, value)? {
            lane.outbox.kill_point.passes(Moment::Written);
        }
        if step.is_first {
            lane.append_result::<J::OutKey, J::OutValue>(partition, key, value);
        }
        if step.is_last {
            lane.append_result::<J::OutKey, J::OutValue>(partition, key, value);
            let (bytes, checksum) = writer.take().expect("begun above").finish()?;
            assert_eq!(bytes, shared.part_size(partition).bytes, "a part is as large as the pairs that came for it");
            shared.set_checksum(partition, checksum);
            lane.outbox.kill_point.passes(Moment::Written);
        }
        Ok(())
    };
    delivery.for_each(&mut |key, value| go_on(row(key, value)))
}

/// Tracks the partition of the next pair in a stream of consecutive partitions.
struct Parts {
    /// The partitions that have pairs, with the number of pairs, the next one last.
    left: Vec<(usize, u64)>,
    partition: usize,
    pairs_left: u64,
}

/// The position of the next pair in its partition.
struct Turn {
    is_first: bool,
    is_last: bool,
    /// The previous partition, if any.
    ended: Option<usize>,
}

impl Parts {
    fn new(sizes: &BTreeMap<usize, PartSize>) -> Parts {
        let left = sizes.iter().rev().filter(|(_, size)| size.pairs > 0);
        Parts {
            left: left.map(|(partition, size)| (*partition, size.pairs)).collect(),
            partition: RESULT,
            pairs_left: 0,
        }
    }

    /// All pairs belong to one partition.
    fn one() -> Parts {
        Parts { left: Vec::new(), partition: RESULT, pairs_left: u64::MAX }
    }

    #[inline(always)]
    fn advance(&mut self) -> Turn {
        let (is_first, before) = (self.pairs_left == 0, self.partition);
        if is_first {
            (self.partition, self.pairs_left) = self.left.pop().expect("every pair is in a partition");
        }
        self.pairs_left -= 1;
        Turn { is_first, is_last: self.pairs_left == 0, ended: is_first.then_some(before) }
    }
}
