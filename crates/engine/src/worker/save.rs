//! A reducer's side of a checkpoint: what it saves after each stage, and the result that it makes from all stages.
//!
//! ```text
//!  after each stage:  what has arrived -> sorted -> a run behind the others in DIR/n.pairs -> synced -> told
//!  in the end:        all runs in DIR/n.pairs -> combined, reduced, sorted -> DIR/n.result -> synced -> told -> delivered
//! ```

use std::ops::ControlFlow;
use std::rc::Rc;

use gristmill_os::folder::Folder;

use crate::checkpoint::log::{Checkpoint, Facts};
use crate::control::counters::{Count, Phase};
use crate::data::datum::{Datum, Key};
use crate::exchange::lane::{Lane, RESULT};
use crate::failure::{Doing, Failure};
use crate::gather::store::Store;
use crate::plan::job_plan::Plan;
use crate::program::ending::Program;
use crate::reduce::delivery::{Delivery, run_order};
use crate::reduce::reduction::Reduction;
use crate::spill::merge::{Merge, Visit, go_on};
use crate::spill::run::{Run, RunWriter};
use crate::spill::spill_file::{FileRange, Spill};
use crate::testing::kill_points::Moment;
use crate::worker::deliver::into_sink;
use crate::worker::reduction::reduced;
use crate::worker::setup::Setup;
use crate::worker::work::Work;

/// Saves what this worker has gathered in a stage.
pub(crate) fn save<'w, J: Program>(
    work: &Work<'w, J>,
    lane: &mut Lane<'w, J>,
    dir: &Folder,
    round: u32,
) -> Result<(), Failure> {
    let Setup { shared, plan, .. } = *work.setup;
    let number = work.reducer_in(lane.slot);
    // Nothing is mapped in the last stage, and what an earlier round made is saved already.
    if shared.tasks() == 0 || shared.since(number) != round {
        return Ok(());
    }
    let before = lane.meter.enter(Phase::Reduce);
    let reduction = reduced(work, lane);
    lane.meter.enter(Phase::Spill);
    let end = facts(work, dir)?.runs(number).1;
    let (spill, folder) = saved_in(plan, dir, &format!("{number}.pairs"), end)?;
    let (order, limit) = run_order(work.functions.program, plan, work.functions.reduce.is_some());
    let run = write::<J::Key, J::Value>(&spill, folder, plan.reduce_memory.block_bytes, |push| {
        reduction.sorter.into_merge(order, limit)?.for_each(push)
    })?;
    spill.sync(folder)?;
    lane.outbox.kill_point.passes(Moment::Saved);
    shared.set_saved(lane.slot, run.bytes());
    lane.meter.enter(before);
    Ok(())
}

/// Delivers what this worker makes from all stages, or has made in an earlier run.
pub(crate) fn finish<J: Program>(work: &Work<'_, J>, lane: &mut Lane<'_, J>, dir: &Folder) -> Result<(), Failure> {
    let (shared, plan, reduce) = (work.shared, work.plan, work.functions.reduce);
    let number = work.reducer_in(lane.slot);
    let facts = facts(work, dir)?;
    lane.meter.enter(Phase::Sort);
    let (spill, folder) = saved_in(plan, dir, &format!("{number}.result"), 0)?;
    let result = match facts.result(number) {
        Some(bytes) => Run::find(&spill, FileRange { folder, start: 0, bytes })?,
        None => {
            let (runs, end) = facts.runs(number);
            let (saved, saved_folder) = saved_in(plan, dir, &format!("{number}.pairs"), end)?;
            let saved = Rc::new(saved);
            let (order, limit) = run_order(work.functions.program, plan, reduce.is_some());
            let store = Store::empty(plan.partitions, plan.combining.in_reduce, false);
            let mut reduction = Reduction::<J>::new(
                work.functions.program,
                store,
                order,
                limit,
                plan.reduce_memory,
                saved.clone(),
                work.seed,
            );
            for (start, bytes) in runs {
                reduction.sorter.adopt(Run::find(&saved, FileRange { folder: saved_folder, start, bytes })?);
            }
            let delivery = Delivery::prepare(reduction, plan, reduce)?;
            let mut keys = 0;
            let run = write::<J::OutKey, J::OutValue>(&spill, folder, plan.reduce_memory.block_bytes, |push| {
                keys = delivery.for_each(push)?;
                Ok(())
            })?;
            spill.sync(folder)?;
            lane.meter.add(Count::Keys, keys);
            shared.set_saved(lane.slot, run.bytes());
            shared.announce();
            run
        }
    };
    lane.outbox.kill_point.passes(Moment::RunsMerged);
    lane.meter.enter(Phase::Output);
    let merge = Merge::<J::OutKey, J::OutValue>::new(plan.order, &Rc::new(spill), [result], None)?;
    match work.functions.sink {
        Some(sink) => into_sink(work, sink, lane, |visit| merge.for_each(visit))?,
        None => merge.for_each(&mut |key, value| {
            lane.append_result::<J::OutKey, J::OutValue>(RESULT, key, value);
            ControlFlow::Continue(())
        })?,
    }
    lane.end_result(RESULT);
    Ok(())
}

/// Returns spill files with a file of the checkpoint in `dir` among them, to be written from byte `end` on, and the
/// number of that file.
fn saved_in(plan: &Plan, dir: &Folder, name: &str, end: u64) -> Result<(Spill, usize), Failure> {
    Spill::with_file(&plan.spill_dirs, dir, plan.checkpoint_kept_free_bytes, name, end)
}

fn facts<J: Program>(work: &Work<'_, J>, dir: &Folder) -> Result<Facts, Failure> {
    Checkpoint::read(dir).map_err(|error| Failure::Spill {
        folder: work.plan.spill_dirs.len(),
        doing: Doing::Read,
        errno: error.raw_os_error().unwrap_or(0),
        bytes: 0,
    })
}

/// Writes what `pairs` pushes as one run, until a push breaks.
fn write<K: Key, V: Datum>(
    spill: &Spill,
    folder: usize,
    block_bytes: usize,
    pairs: impl FnOnce(&mut Visit<'_, K, V>) -> Result<(), Failure>,
) -> Result<Run, Failure> {
    let mut writer = RunWriter::in_folder(spill, folder, block_bytes);
    pairs(&mut |key, value| go_on(writer.push::<K, V>(key, value)))?;
    writer.finish()
}
