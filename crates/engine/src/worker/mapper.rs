//! The map side of a worker: one task after the other, in epochs.

use gristmill_os::clock::monotonic_ns;
use gristmill_ring::Latch;

use crate::buffer::{ArrayBuffer, DenseArray, DenseBuffer, HashBuffer, HashTable, MapBuffer, RangeBuffer};
use crate::control::bad_records::SetAside;
use crate::control::counters::{Count, Phase};
use crate::control::job_is_over::JobIsOver;
use crate::control::meter::Meter;
use crate::control::words::Shared;
use crate::data::digest::Digest;
use crate::exchange::lane::Lane;
use crate::failure::Failure;
use crate::input::reader::Reader;
use crate::plan::job_plan::Plan;
use crate::plan::settings::Buffer;
use crate::program::accumulator;
use crate::program::ending::Program;
use crate::program::map_reduce::MapReduce;
use crate::program::pairs::Pairs;
use crate::program::partition::Partitioner;
use crate::steps::shelf_writer::pairs_of;
use crate::testing::kill_points::Moment;
use crate::worker::bad_record_search::BadRecordSearch;
use crate::worker::work::Work;

/// The map side of a worker.
pub(super) struct Mapper<J: Program> {
    reader: Reader,
    /// The memory of the buffer, allocated for the first task.
    kept: MapTable<J>,
    partitioner: Partitioner,
    /// Records to leave out.
    set_aside: SetAside,
    /// The round whose state the reader shows.
    state_of: Option<u32>,
    /// The number of tasks in the open epoch.
    pub open_tasks: usize,
    /// The number of pages sent before the open epoch.
    pages_before: u64,
    /// The start of the first task in the open epoch.
    epoch_since_ns: u64,
}

/// The age at which an epoch ends with its current task. A crash loses at most this time of one worker, plus that task.
const EPOCH_NS_MAX: u64 = 100_000_000;

/// The memory that a map-side buffer keeps from task to task.
enum MapTable<J: Program> {
    /// No task has run yet, or the buffer keeps nothing.
    Nothing,
    Table(HashTable<J::Key, J::Value>),
    Array(DenseArray<J::Value>),
}

impl<J: Program> Mapper<J> {
    pub fn new(plan: &Plan) -> Mapper<J> {
        Mapper {
            reader: Reader::new(plan.chunk_bytes),
            kept: MapTable::Nothing,
            partitioner: Partitioner::new(plan.share_partitions()),
            set_aside: SetAside::default(),
            state_of: None,
            open_tasks: 0,
            pages_before: 0,
            epoch_since_ns: 0,
        }
    }

    /// Shows the map function the state of the step that `round` belongs to.
    pub fn see_state(&mut self, shared: &Shared<'_>, round: u32) {
        if self.state_of != Some(round) {
            self.state_of = Some(round);
            shared.copy_state(&mut self.reader.state);
        }
    }

    /// Makes the next pairs belong to `share`.
    pub fn turn_to_share(&mut self, plan: &Plan, lane: &mut Lane<'_, J>, share: usize) {
        let start = share * plan.share_partitions();
        assert!(self.open_tasks == 0 || lane.outbox.share_start == start, "an epoch has pairs of one share");
        lane.outbox.share_start = start;
    }

    pub fn run(&mut self, work: &Work<'_, J>, lane: &mut Lane<'_, J>, task: usize) -> Result<(), Failure> {
        lane.outbox.kill_point.passes(Moment::Claimed);
        let now_ns = monotonic_ns();
        work.shared.begin_task(lane.slot, task, now_ns);
        if self.open_tasks == 0 {
            self.epoch_since_ns = now_ns;
        }
        accumulator::set_of_this_task(Vec::new());
        lane.meter.enter(Phase::Map);
        lane.meter.add(Count::Tasks, 1);
        self.open_tasks += 1;
        self.reader.read_ns = 0;
        if let MapTable::Nothing = self.kept {
            self.kept = match (work.plan.buffer, work.functions.program.keys()) {
                (Buffer::Hash, _) => MapTable::Table(HashTable::new(work.plan.table_may_rest, work.mode.iterates())),
                (Buffer::Dense, Some(keys)) => MapTable::Array(DenseArray::new(keys)),
                _ => MapTable::Nothing,
            };
        }
        let Mapper { reader, kept, partitioner, set_aside, .. } = self;
        set_aside.learn(work.shared);
        let search = BadRecordSearch::new(work, lane.slot, task, set_aside);
        let digest = match kept {
            MapTable::Table(table) if table.rests() => {
                let past = map_task(work, reader, task, search, ArrayBuffer::new(lane, *partitioner))?;
                table.passed(past.pairs);
                lane.meter.add(Count::PairsPassed, past.pairs);
                past
            }
            MapTable::Table(table) => map_task(work, reader, task, search, HashBuffer::new(lane, table, *partitioner))?,
            MapTable::Array(array) => {
                map_task(work, reader, task, search, DenseBuffer::new(lane, array, *partitioner))?
            }
            MapTable::Nothing => match work.functions.ranges {
                Some(ranges) => map_task(work, reader, task, search, RangeBuffer::new(lane, ranges))?,
                None => map_task(work, reader, task, search, ArrayBuffer::new(lane, *partitioner))?,
            },
        };
        lane.meter.add(Count::PairsEmitted, digest.pairs);
        lane.meter.move_time(Phase::Map, Phase::Input, self.reader.read_ns);
        let changes = changes_of_outputs(work, lane, task)?;
        let digest = Digest { changes, ..digest };
        let Digest { pairs: again, .. } = digest;
        let proved = work.shared.prove(task, lane.outbox.round(), digest, !work.outputs.is_empty());
        proved.map_err(|Digest { pairs: first, .. }| Failure::OtherPairs { task, first, again })?;
        work.shared.set_accumulated(task, work.accumulators, &accumulator::of_this_task());
        merge_outputs(work, lane, task)?;
        lane.meter.add(Count::InputBytes, work.task_bytes(task));
        lane.outbox.sums.add_task(task);
        work.shared.end_task(lane.slot);
        Ok(())
    }

    /// Empties the buffer into pages.
    pub fn flush(&mut self, lane: &mut Lane<'_, J>) {
        match &mut self.kept {
            MapTable::Table(table) => HashBuffer::new(lane, table, self.partitioner).flush(),
            MapTable::Array(array) => DenseBuffer::new(lane, array, self.partitioner).flush(),
            MapTable::Nothing => {}
        }
    }

    /// Returns whether the open epoch should end with the task just done: it has sent enough pages, or is old enough.
    pub fn has_enough(&self, plan: &Plan, meter: &Meter) -> bool {
        meter.counters.get(Count::PagesSent) - self.pages_before >= plan.epoch_pages
            || meter.read_ns() - self.epoch_since_ns >= EPOCH_NS_MAX
    }

    /// Ends the epoch: sends everything that its tasks emitted, and then makes it count.
    pub fn commit(&mut self, work: &Work<'_, J>, lane: &mut Lane<'_, J>) {
        self.flush(lane);
        lane.send_all();
        lane.outbox.kill_point.passes(Moment::Flushed);
        // By one store, after the last page was sent. While some task is unclaimed, the round goes on, and nobody needs
        // to look.
        let (commit, round) = (work.shared.commit(lane.slot), lane.outbox.round());
        work.shared.enter(lane.slot, lane.outbox.epoch, round, lane.outbox.sums);
        let goes_on = commit.commit_and_look(lane.outbox.epoch, || work.shared.has_new_task(round));
        lane.outbox.kill_point.passes(Moment::Committed);
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

/// Maps a task into `buffer`. Returns the digest of its pairs.
fn map_task<J: Program>(
    work: &Work<'_, J>,
    reader: &mut Reader,
    task: usize,
    mut search: BadRecordSearch<'_, J>,
    mut buffer: impl MapBuffer<J::Key, J::Value>,
) -> Result<Digest, Failure> {
    let _mapping = work.outputs.map_task();
    if let Some(piece) = work.shared.piece(task) {
        let shelf = work.shared.pages.shelf().reader(search.slot);
        let mapped = work.functions.program.map_pairs(&Pairs::new(pairs_of(&shelf, piece), &reader.state), &mut buffer);
        mapped.map_err(|error| Failure::Pairs { error: error.unless_retried() })?;
        return Ok(buffer.digest());
    }
    let mut before_bytes = 0;
    let input_task = work.shared.input_task(task);
    for part in work.tasks.parts(input_task) {
        // Only a file that cannot be cut is a part large enough for its progress to matter.
        let is_whole = part.range.start == 0;
        reader.for_each_chunk(work.tasks, part, &mut |chunk| {
            chunk.task = input_task;
            if work.shared.is_over() {
                std::panic::resume_unwind(Box::new(JobIsOver));
            }
            if is_whole {
                work.shared.set_reached(search.slot, before_bytes + chunk.reached.min(part.stored_bytes));
            }
            if !search.is_plain {
                return search.map(chunk, &mut buffer);
            }
            search.begin(chunk);
            if let Err(error) = work.functions.program.map(chunk, &mut buffer) {
                return Err(search.find(chunk, error));
            }
            search.end();
            Ok(())
        })?;
        before_bytes += part.stored_bytes;
    }
    search.finish();
    work.functions.program.end_task(input_task);
    Ok(buffer.digest())
}

/// Returns a hash of what a task has changed in shared outputs.
fn changes_of_outputs<J: Program>(work: &Work<'_, J>, lane: &mut Lane<'_, J>, task: usize) -> Result<u64, Failure> {
    if work.outputs.is_empty() {
        return Ok(0);
    }
    lane.meter.enter(Phase::Merge);
    work.outputs.changes(work.seed).map_err(|what| Failure::Conflict { task, what })
}

/// Merges what a task has changed in shared outputs.
fn merge_outputs<J: Program>(work: &Work<'_, J>, lane: &mut Lane<'_, J>, task: usize) -> Result<(), Failure> {
    if work.outputs.is_empty() {
        return Ok(());
    }
    lane.meter.enter(Phase::Merge);
    let Lane { shared, slot, ref outbox, .. } = *lane;
    let take = |latch: Latch<'_>| {
        let mut impostor = Impostor::default();
        let mut try_take = || {
            latch.try_take(slot as u32, |holder| {
                let holder = holder as usize;
                let can_hold = holder != slot && holder < shared.slots_born();
                assert!(
                    !impostor.is_seen(holder, can_hold && (shared.is_merging(holder) || shared.pages.is_dead(holder))),
                    "a shared word was overwritten: a latch names worker {holder}, which does not merge"
                );
                can_hold && shared.pages.is_dead(holder)
            })
        };
        if !try_take() {
            // The holder of the latch merges one OS page, or is dead and will be declared dead, or is stopped. This
            // task is not late.
            let (start_ns, waits_since_ns) = (shared.stop_clock(slot), monotonic_ns());
            while !try_take() {
                if shared.is_over() {
                    std::panic::resume_unwind(Box::new(JobIsOver));
                }
                std::thread::yield_now();
            }
            shared.start_clock(slot, start_ns.saturating_add(monotonic_ns() - waits_since_ns));
        }
        outbox.kill_point.passes(Moment::Latched);
    };
    shared.set_merging(slot, true);
    let merged = work.outputs.merge(take, || outbox.kill_point.passes(Moment::Merged));
    shared.set_merging(slot, false);
    lane.meter.add(Count::OsPagesMerged, merged.map_err(|what| Failure::Conflict { task, what })?);
    Ok(())
}

/// A holder of a latch that cannot hold it: seen often enough, and in a row, that it has not just taken or released it.
#[derive(Default)]
struct Impostor {
    holder: usize,
    looks: u32,
}

impl Impostor {
    const LOOKS: u32 = 10_000;

    /// Notes the holder of the latch, and whether it can be one. Returns whether it is an impostor.
    fn is_seen(&mut self, holder: usize, can_hold: bool) -> bool {
        let goes_on = !can_hold && self.holder == holder;
        *self = Impostor { holder, looks: if goes_on { self.looks + 1 } else { 0 } };
        self.looks >= Impostor::LOOKS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_holder_that_never_merges_is_an_impostor() {
        // A latch that was overwritten with the number of a living worker was waited for without an end.
        let seen = |can_hold: &dyn Fn(u32) -> bool| {
            let mut impostor = Impostor::default();
            (0..3 * Impostor::LOOKS).position(|look| impostor.is_seen(2, can_hold(look)))
        };
        assert_eq!(seen(&|_| false), Some(Impostor::LOOKS as usize));
        assert_eq!(seen(&|look| look % 5000 == 0), None);
        assert_eq!(seen(&|_| true), None);
    }
}
