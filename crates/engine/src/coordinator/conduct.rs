//! Runs a job without steps, from its first worker to the last pair of its result.

use std::cell::Cell;
use std::ops::ControlFlow;

use crate::checkpoint::log::Checkpoint;
use crate::control::result_parts::PartSize;
use crate::control::words::COORDINATOR;
use crate::coordinator::results::{Arrangement, Results, Visit};
use crate::coordinator::stages::Stages;
use crate::coordinator::state::Coordinator;
use crate::data::datum::Datum;
use crate::data::order::Order;
use crate::error::{Result, overwritten};
use crate::output::parts::Part;
use crate::output::sink::Attempt;
use crate::plan::mode::Mode;
use crate::program::ending::Program;
use crate::program::ranges::Ranges;
use crate::worker::setup::Setup;
use crate::worker::work::Work;

impl Coordinator<'_, '_, '_, '_> {
    /// Runs the whole job. Returns the number of pairs, and the time at which all workers had been started.
    pub(super) fn conduct<J: Program>(&mut self, work: &Work<'_, J>, visit: &mut Visit<'_, J>) -> Result<(u64, u64)> {
        let Setup { plan, shared, .. } = *self.setup;
        let started_ns = self.start_all()?;
        self.conduct_stages()?;
        let (_, receiver) = shared.pages.claim(COORDINATOR);
        // The result arrives in order. While the coordinator waits for its next page, it watches over the job.
        let mut results = Results::<J>::new(work.functions.program, shared, receiver, plan);
        let arrangement = match (work.functions.ranges, plan.order) {
            // No pairs arrive, only the ends of the streams.
            _ if work.functions.sink.is_some() => Arrangement::Unordered,
            (Some(_), _) => Arrangement::Ranges(plan.partitions),
            (None, Order::Unordered) => Arrangement::Unordered,
            // Rounding changes no order here, because each key has one pair.
            _ if plan.shares > 1 => Arrangement::Join,
            (None, Order::ByKey) if work.functions.reduce.is_none() => Arrangement::Merge(Order::ByKey),
            (None, order) if plan.combining.rounds_as_it_comes => Arrangement::MergeHeldBack(order),
            (None, order) => Arrangement::Merge(order),
        };
        let visited = Cell::new(false);
        let mut idle_ended = false;
        let interrupt = self.kept.interrupt.clone();
        let mut interrupted = Ok(());
        let mut visit = |key: <J::OutKey as Datum>::Ref<'_>, value: <J::OutValue as Datum>::Ref<'_>| {
            visited.set(true);
            // While pages arrive faster than their pairs are visited, the coordinator does not watch.
            interrupted = interrupt.check();
            match interrupted {
                Ok(()) => visit(key, value),
                Err(_) => ControlFlow::Break(()),
            }
        };
        let pairs = results.visit(arrangement, plan.limit, &mut visit, &mut |results| {
            self.kept.delivered |= visited.get();
            // Read the count before the look, so that an announcement during the look ends the sleep.
            let announced = shared.announced();
            self.watch(&|reducer| results.has_ended(reducer))?;
            self.note_results()?;
            results.follow(&self.reducers);
            if shared.may_finish(shared.round()) && !std::mem::replace(&mut idle_ended, true) {
                let idle = self.reducers.iter().enumerate().filter(|(_, slot)| self.is_idle(**slot));
                idle.for_each(|(reducer, _)| results.end(reducer));
            }
            if !results.has_arrived() {
                self.sleep(announced, &mut || results.has_arrived());
            }
            Ok(())
        })?;
        interrupted.map(|()| (pairs, started_ns))
    }

    /// Continues a job that has a checkpoint from what its log says is done.
    pub(super) fn go_on(&mut self) -> Result<()> {
        let Some((log, facts)) = self.kept.checkpoint.take() else { return Ok(()) };
        self.set_aside(facts.bad.clone())?;
        let Setup { plan, tasks, mode, .. } = *self.setup;
        let every_ns = match mode {
            Mode::Stages(checkpoint) => u64::try_from(checkpoint.every.as_nanos()).unwrap_or(u64::MAX),
            _ => unreachable!("only a job in stages has a checkpoint"),
        };
        self.stages = Some(Stages::new(log, &facts, plan.reduce_workers, every_ns));
        if facts.tasks > 0 {
            self.kept.tell(&format!("continuing: {} of {} tasks were done", facts.tasks, tasks.len()));
        }
        Ok(())
    }

    /// Keeps the checkpoint for a job that starts over. If its log cannot be read again, the job must not start over.
    pub(super) fn keep_checkpoint(&mut self) {
        if let Some(stages) = self.stages.take() {
            let log = stages.log;
            match Checkpoint::read(&log.folder) {
                Ok(facts) => self.kept.checkpoint = Some((log, facts)),
                Err(_) => self.kept.delivered = true,
            }
        }
    }

    /// As [`Coordinator::conduct`], for a job whose reducers write the result. Also returns the parts.
    pub(super) fn conduct_writing<J: Program>(&mut self, work: &Work<'_, J>) -> Result<(Vec<Part>, (u64, u64))> {
        // The first and the last key of each part that has pairs.
        let mut keys = Vec::new();
        let (_, started_ns) = self.conduct(work, &mut |key, _| {
            let mut text = Vec::new();
            J::OutKey::to_text(key, &mut text);
            keys.push(text);
            ControlFlow::Continue(())
        })?;
        let mut keys = keys.into_iter();
        let shared = self.setup.shared;
        let mut parts = Vec::new();
        for partition in 0..work.functions.ranges.map_or(0, Ranges::len) {
            shared.check_partition(partition)?;
            let PartSize { pairs, bytes } = shared.part_size(partition);
            let ends = if pairs > 0 { keys.next().zip(keys.next()).map(<[_; 2]>::from) } else { None };
            if ends.is_some() != (pairs > 0) {
                return Err(overwritten(None, "a part of the result has no ends"));
            }
            parts.push(Part { records: pairs, bytes, checksum: shared.checksum(partition), keys: ends });
        }
        let pairs = parts.iter().map(|part| part.records).sum();
        Ok((parts, (pairs, started_ns)))
    }

    /// As [`Coordinator::conduct`], for a job with a sink. Also returns the parts that were closed.
    pub(super) fn conduct_into_sink<J: Program>(&mut self, work: &Work<'_, J>) -> Result<(Vec<Attempt>, (u64, u64))> {
        let (_, started_ns) = self.conduct(work, &mut |_, _| unreachable!("reducers write every pair to the sink"))?;
        let Setup { shared, plan, .. } = *self.setup;
        (0..plan.reduce_workers).try_for_each(|part| shared.check_partition(part))?;
        let closed = (0..plan.reduce_workers).filter_map(|part| Some((part, shared.closed(part)?)));
        let (parts, pairs): (Vec<Attempt>, Vec<u64>) =
            closed.map(|(part, (attempt, pairs))| (Attempt { part, attempt }, pairs)).unzip();
        Ok((parts, (pairs.iter().sum(), started_ns)))
    }
}
