//! From a reducer's pairs to its part of the result.
//!
//! ```text
//!  pairs -> keys with their values -> combine, reduce -> order of the result -> delivered
//! ```
//!
//! Steps that are not needed are skipped. Pairs that are not grouped are sorted once, in the order of the result. A
//! table that was never spilled holds each key once. A result in key order is already sorted if no reduce function made
//! it.

use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::rc::Rc;

use crate::data::contract::InOrder;
use crate::data::datum::{Datum, Key};
use crate::data::order::Order;
use crate::failure::{Failure, ReducePanic, words_of};
use crate::gather::store::{Pile, Store};
use crate::plan::job_plan::Plan;
use crate::program::ending::{Program, ReduceOf};
use crate::program::map_reduce::{MapReduce, combines};
use crate::reduce::reduction::{Reduction, erased_combiner};
use crate::spill::merge::{Merge, Sorted, Visit, go_on};
use crate::spill::reduce_memory::ReduceMemory;
use crate::spill::sorter::Sorter;
use crate::spill::values::{Combine, for_each_key};

/// Returns the order and the limit of a reducer's runs: those of the result, unless pairs must first be grouped by key.
pub(crate) fn run_order<J: MapReduce>(program: &J, plan: &Plan, reduces: bool) -> (Order, usize) {
    if combines(program) || reduces { (Order::ByKey, usize::MAX) } else { (plan.order, plan.limit) }
}

/// The functions that all values of a key still need: combine, or reduce.
struct Grouping<'w, J: Program> {
    combine: Option<Rc<Combine<'w, J::Value>>>,
    reduce: Option<&'w ReduceOf<'w, J>>,
}

impl<'w, J: Program> Grouping<'w, J> {
    /// Returns what is still to be done with the pairs of `reduction`, if anything. If the job does not combine pairs
    /// as they come, and all of them are in memory, it combines them now.
    fn find(
        mut reduction: Reduction<'w, J>,
        plan: &Plan,
        reduce: Option<&'w ReduceOf<'w, J>>,
    ) -> Result<(Reduction<'w, J>, Option<Self>), Failure> {
        if !combines(reduction.program) {
            return Ok((reduction, reduce.map(|reduce| Grouping { combine: None, reduce: Some(reduce) })));
        }
        let combine = Some(erased_combiner(reduction.program));
        if !reduction.combines() && !reduction.sorter.has_runs() {
            match plan.combining.in_order {
                true => Grouping { combine: combine.clone(), reduce: None }.regroup(&mut reduction)?,
                false => reduction.begin_to_combine()?,
            }
        }
        // A run may share keys with other runs, or with the pairs in memory.
        let combine = combine.filter(|_| reduction.sorter.has_runs());
        let grouping = (combine.is_some() || reduce.is_some()).then_some(Grouping { combine, reduce });
        Ok((reduction, grouping))
    }

    /// Replaces the pairs in memory by those made from them, partition by partition: small sorts are faster than a
    /// large one.
    fn regroup(&self, reduction: &mut Reduction<'_, J>) -> Result<(), Failure> {
        let sorter = &mut reduction.sorter;
        let partitions = sorter.store.partitions();
        let mut made = Pile::new(partitions);
        for partition in 0..partitions {
            let memory = Sorted::new(sorter.store.take(partition), Order::ByKey, usize::MAX);
            let merge = Merge::new(Order::ByKey, &sorter.spill, [], Some(memory))?;
            self.for_each(merge, &mut |key, value| {
                let (key, value) = J::back(key, value);
                made.push(partition, key, value);
                ControlFlow::Continue(())
            })?;
            made.close(partition);
        }
        sorter.held_bytes = made.bytes();
        sorter.store = Store::Pile(made);
        Ok(())
    }

    /// Calls `emit` with the pairs made from a stream in key order, until it breaks; returns the number of keys.
    fn for_each(
        &self,
        merge: Merge<J::Key, J::Value>,
        emit: &mut Visit<'_, J::OutKey, J::OutValue>,
    ) -> Result<u64, Failure> {
        let mut keys = 0;
        for_each_key(merge, self.combine.as_deref(), &mut |key, values| {
            keys += 1;
            let mut flow = ControlFlow::Continue(());
            match self.reduce {
                Some(reduce) => {
                    let reduced = naming::<J::Key, _>(key, || {
                        reduce(key, values, &mut |key, value| {
                            if flow.is_continue() {
                                flow = emit(key, value);
                            }
                        })
                    });
                    if let Err(error) = reduced {
                        let (key, error) = (text_of::<J::Key>(key), error.unless_retried());
                        flow = ControlFlow::Break(Err(Failure::Reduce { key, error }));
                    }
                }
                None => {
                    while flow.is_continue()
                        && let Some(value) = values.next()
                    {
                        let (key, value) = J::out(key, value);
                        flow = emit(key, value);
                    }
                }
            }
            flow
        })?;
        Ok(keys)
    }
}

/// The greatest length of a key in a message, in characters.
const KEY_CHARS_MAX: usize = 60;

/// Returns a key as a message shows it: a number as it is, anything else as its text in quotes.
fn text_of<K: Key>(key: K::Ref<'_>) -> String {
    let mut text = Vec::new();
    K::to_text(key, &mut text);
    let text = String::from_utf8_lossy(&text);
    let (shown, more) = match text.char_indices().nth(KEY_CHARS_MAX) {
        Some((end, _)) => (&text[..end], "..."),
        None => (&*text, ""),
    };
    if shown.parse::<f64>().is_ok() && format!("{key:?}") == shown {
        shown.to_owned()
    } else {
        format!("{shown:?}{more}")
    }
}

/// Calls a reduce function for a key. Its panic goes on with the key.
fn naming<K: Key, R>(key: K::Ref<'_>, reduce: impl FnOnce() -> R) -> R {
    // The worker ends with the panic, so nothing that was left half done is seen again.
    catch_unwind(AssertUnwindSafe(reduce)).unwrap_or_else(|panic| match words_of(&*panic) {
        Some(words) => resume_unwind(Box::new(ReducePanic { key: text_of::<K>(key), words: words.to_owned() })),
        None => resume_unwind(panic),
    })
}

/// The pairs of a step, reduced partition by partition.
pub(crate) struct InPartitions<'w, J: Program> {
    reduction: Reduction<'w, J>,
    grouping: Option<Grouping<'w, J>>,
    /// Whether pairs are still as they came: neither combined again, nor reduced, nor spilled.
    as_they_came: bool,
}

impl<'w, J: Program> InPartitions<'w, J> {
    /// Combines what need not be sorted for it.
    pub fn prepare(
        reduction: Reduction<'w, J>,
        plan: &Plan,
        reduce: Option<&'w ReduceOf<'w, J>>,
    ) -> Result<InPartitions<'w, J>, Failure> {
        let combined_late = combines(reduction.program) && !reduction.combines();
        let (reduction, grouping) = Grouping::find(reduction, plan, reduce)?;
        let as_they_came = grouping.is_none() && !combined_late && !reduction.sorter.has_runs();
        Ok(InPartitions { reduction, grouping, as_they_came })
    }

    /// Calls `visit` with the pairs that are made from those of a partition, until it fails; returns the number of keys
    /// (of pairs, if they are not grouped). To be called once for each partition.
    pub fn try_for_each(
        &mut self,
        partition: usize,
        mut visit: impl FnMut(<J::Key as Datum>::Ref<'_>, <J::Value as Datum>::Ref<'_>) -> Result<(), Failure>,
    ) -> Result<u64, Failure> {
        let sorter = &mut self.reduction.sorter;
        if self.grouping.is_none() && !sorter.has_runs() {
            let mut pairs = 0;
            sorter.store.try_for_each(partition, |key, value| {
                pairs += 1;
                visit(key, value)
            })?;
            return Ok(pairs);
        }
        let merge = sorter.take_partition(partition).into_merge(Order::ByKey, usize::MAX)?;
        let mut pairs = 0;
        let mut take = |key: <J::Key as Datum>::Ref<'_>, value: <J::Value as Datum>::Ref<'_>| {
            pairs += 1;
            go_on(visit(key, value))
        };
        let keys = match &self.grouping {
            None => merge.for_each(&mut take).map(|()| None)?,
            Some(grouping) => Some(grouping.for_each(merge, &mut |key, value| {
                let (key, value) = J::back(key, value);
                take(key, value)
            })?),
        };
        Ok(keys.unwrap_or(pairs))
    }

    /// Returns the reduction, whose memory can be used again, if pairs are still as they came.
    pub fn into_reduction(self) -> Option<Reduction<'w, J>> {
        self.as_they_came.then_some(self.reduction)
    }
}

/// The stream that the pairs of the result are made from.
enum Stream<'w, J: Program> {
    /// The pairs are the result.
    AsTheyAre(Merge<J::Key, J::Value>),
    /// They are grouped while they are sent.
    Grouped(Merge<J::Key, J::Value>, Grouping<'w, J>),
    /// They were grouped, and sorted again.
    Made(Merge<J::OutKey, J::OutValue>),
}

/// A reducer's part of the result, ready to be sent.
pub(crate) struct Delivery<'w, J: Program> {
    stream: Stream<'w, J>,
    order: Order,
    limit: usize,
    /// The number of keys so far; of pairs, if they were not grouped.
    keys: u64,
}

impl<'w, J: Program> Delivery<'w, J> {
    /// Sorts, merges and reduces until pairs can be delivered one by one.
    pub fn prepare(
        reduction: Reduction<'w, J>,
        plan: &Plan,
        reduce: Option<&'w ReduceOf<'w, J>>,
    ) -> Result<Delivery<'w, J>, Failure> {
        let (order, limit) = (plan.order, plan.limit);
        let (reduction, grouping) = Grouping::find(reduction, plan, reduce)?;
        let mut sorter = reduction.sorter;
        // 1. Pairs are delivered as they are.
        let Some(grouping) = grouping else {
            let keys = sorter.pairs();
            return Ok(Delivery { stream: Stream::AsTheyAre(sorter.into_merge(order, limit)?), order, limit, keys });
        };
        // 2. Pairs are made in the order of the result, or the result needs no order.
        if order == Order::Unordered || order == Order::ByKey && reduce.is_none() {
            let merge = sorter.into_merge(Order::ByKey, usize::MAX)?;
            return Ok(Delivery { stream: Stream::Grouped(merge, grouping), order, limit, keys: 0 });
        }
        // 3. Pairs are sorted again, in the memory that the first sort leaves free: all of it, once the rest has been
        //    spilled.
        if sorter.has_runs() {
            sorter.spill()?;
        }
        let pairs_bytes = sorter.room.pairs_bytes;
        let left_bytes = pairs_bytes.saturating_sub(sorter.held_bytes).max(pairs_bytes / 4);
        let room = ReduceMemory { pairs_bytes: left_bytes, ..sorter.room };
        let mut second = Sorter::of_pairs(order, limit, room, Rc::clone(&sorter.spill));
        let merge = sorter.into_merge(Order::ByKey, usize::MAX)?;
        let keys = grouping.for_each(merge, &mut |key, value| go_on(second.push(key, value)))?;
        Ok(Delivery { stream: Stream::Made(second.into_merge(order, limit)?), order, limit, keys })
    }

    /// Calls `emit` with the pairs of the result, in order, until it breaks; returns the number of keys.
    pub fn for_each(self, emit: &mut Visit<'_, J::OutKey, J::OutValue>) -> Result<u64, Failure> {
        let (mut left, keys, order) = (self.limit, self.keys, self.order);
        let mut in_order = InOrder::default();
        let mut take = |key: <J::OutKey as Datum>::Ref<'_>, value: <J::OutValue as Datum>::Ref<'_>| {
            if left == 0 {
                return ControlFlow::Break(Ok(()));
            }
            left -= 1;
            in_order.next::<J::OutKey, J::OutValue>(order, key, value);
            emit(key, value)
        };
        match self.stream {
            Stream::Grouped(merge, grouping) => grouping.for_each(merge, &mut take),
            Stream::Made(merge) => merge.for_each(&mut take).map(|()| keys),
            Stream::AsTheyAre(merge) => {
                let pairs = merge.for_each(&mut |key, value| {
                    let (key, value) = J::out(key, value);
                    take(key, value)
                });
                pairs.map(|()| keys)
            }
        }
    }
}
