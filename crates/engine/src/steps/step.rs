//! Jobs in steps: what the caller of [`Job::iterate`](crate::Job::iterate) sees between two steps.

use std::marker::PhantomData;

use gristmill_page::Reader;

use crate::control::steps::KeptPartition;
use crate::control::words::Shared;
use crate::data::datum::Datum;
use crate::data::entry;
use crate::data::key;
use crate::data::seed::Seed;
use crate::program::accumulator::{Accumulator, Values};
use crate::program::map_reduce::MapReduce;
use crate::program::pairs::Pairs;
use crate::program::partition::Partitioner;
use crate::shared_output::array::{Plain, Settled, SharedOutput};
use crate::steps::shelf_writer::{pairs_of, pieces};

/// The input of the next step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// None: the job is done.
    Stop,
    /// The input of the job again, with [`MapReduce::map`].
    Input,
    /// The pairs made by this step, with [`MapReduce::map_pairs`].
    Pairs,
}

/// Decides what follows each step: see [`Job::iterate`](crate::Job::iterate).
pub type Control<'c, J> = dyn FnMut(&mut Step<'_, J>) -> Next + 'c;

/// A complete step of an iterated job. Its pairs are in the region, where the workers wrote them.
pub struct Step<'s, J: MapReduce> {
    shared: &'s Shared<'s>,
    shelf: &'s Reader<'s>,
    outputs: &'s Settled<'s>,
    totals: &'s Values,
    seed: &'s Seed,
    number: u32,
    kind: PhantomData<J>,
}

impl<'s, J: MapReduce> Step<'s, J> {
    pub(crate) fn new(
        shared: &'s Shared<'s>,
        shelf: &'s Reader<'s>,
        outputs: &'s Settled<'s>,
        totals: &'s Values,
        seed: &'s Seed,
        number: u32,
    ) -> Self {
        Step { shared, shelf, outputs, totals, seed, number, kind: PhantomData }
    }

    /// Returns its number, from 0.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Returns the number of its pairs.
    pub fn pairs(&self) -> u64 {
        self.partitions().map(|kept| kept.pairs).sum()
    }

    /// Calls `visit` with every pair, in no order.
    pub fn for_each(&self, mut visit: impl FnMut(<J::Key as Datum>::Ref<'_>, <J::Value as Datum>::Ref<'_>)) {
        for kept in self.partitions() {
            self.runs(kept).for_each(|pairs| pairs.iter().for_each(|(key, value)| visit(key, value)));
        }
    }

    /// Returns the value of `key`, the first one if there are several, by a search through the pairs of one partition.
    pub fn get(&self, key: <J::Key as Datum>::Ref<'_>) -> Option<<J::Value as Datum>::Ref<'s>> {
        let hash = entry::short_hash(key::hash::<J::Key>(key, self.seed));
        let partition = Partitioner::new(self.shared.partitions()).of::<J>(hash, key);
        self.runs(self.shared.kept(partition))
            .flat_map(|pairs| pairs.iter())
            .find(|(other, _)| key::equal::<J::Key>(*other, key))
            .map(|(_, value)| value)
    }

    /// Returns a shared output as this step left it, and as the next one will find it.
    ///
    /// # Panics
    /// When the job does not [write](crate::Job::writes) this output.
    pub fn values<'v, T: Plain>(&'v self, output: &'v SharedOutput<T>) -> &'v [T] {
        self.outputs.values(output)
    }

    /// Returns what the map function has added to `accumulator` in this step; `None` if it has added nothing.
    pub fn total(&self, accumulator: &Accumulator) -> Option<i64> {
        self.totals.iter().find(|(kind, _)| *kind == accumulator.kind).map(|(_, total)| *total)
    }

    /// Sets the state that later steps see ([`Chunk::state`](crate::Chunk::state), [`Pairs::state`]).
    ///
    /// # Panics
    /// When it is longer than the state that the job began with, which determined its room.
    pub fn set_state(&mut self, state: &[u8]) {
        self.shared.set_state(state);
    }

    fn partitions(&self) -> impl Iterator<Item = KeptPartition> {
        (0..self.shared.partitions()).map(|partition| self.shared.kept(partition))
    }

    fn runs(&self, kept: KeptPartition) -> impl Iterator<Item = Pairs<'s, J::Key, J::Value>> + use<'s, J> {
        let shelf = self.shelf;
        pieces(shelf, kept).map(move |piece| Pairs::new(pairs_of(shelf, piece), &[]))
    }
}
