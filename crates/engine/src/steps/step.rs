//! Jobs in steps: what the caller of [`Job::iterate`](crate::Job::iterate) sees between two of them.

use std::marker::PhantomData;

use gristmill_page::Shelf;

use crate::control::steps::KeptPartition;
use crate::control::words::Shared;
use crate::data::datum::Datum;
use crate::data::entry;
use crate::data::key;
use crate::data::seed::Seed;
use crate::program::map_reduce::MapReduce;
use crate::program::pairs::Pairs;
use crate::program::partition::Partitioner;
use crate::shared_output::array::{Plain, Scopes, SharedOutput};
use crate::steps::shelf_writer::{pairs_of, pieces};

/// What the next step maps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Nothing: the job is done.
    Stop,
    /// The input of the job again, with [`MapReduce::map`].
    Input,
    /// The pairs that this step has made, with [`MapReduce::map_pairs`].
    Pairs,
}

/// What decides between two steps: see [`Job::iterate`](crate::Job::iterate).
pub type Control<'c, J> = dyn FnMut(&mut Step<'_, J>) -> Next + 'c;

/// A step of an iterated job that is complete. Its pairs lie in the region, where the workers have left them.
pub struct Step<'s, J: MapReduce> {
    shared: &'s Shared<'s>,
    outputs: &'s Scopes<'s>,
    seed: &'s Seed,
    number: u32,
    kind: PhantomData<J>,
}

impl<'s, J: MapReduce> Step<'s, J> {
    pub(crate) fn new(shared: &'s Shared<'s>, outputs: &'s Scopes<'s>, seed: &'s Seed, number: u32) -> Self {
        Step { shared, outputs, seed, number, kind: PhantomData }
    }

    /// Its number, from 0.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Pairs that it has made.
    pub fn pairs(&self) -> u64 {
        self.partitions().map(|kept| kept.pairs).sum()
    }

    /// Calls `visit` with every pair, in no order.
    pub fn for_each(&self, mut visit: impl FnMut(<J::Key as Datum>::Ref<'_>, <J::Value as Datum>::Ref<'_>)) {
        for kept in self.partitions() {
            self.runs(kept).for_each(|pairs| pairs.iter().for_each(|(key, value)| visit(key, value)));
        }
    }

    /// The value of `key`, the first if there are more: a look through the pairs of one partition.
    pub fn get(&self, key: <J::Key as Datum>::Ref<'_>) -> Option<<J::Value as Datum>::Ref<'s>> {
        let hash = entry::short_hash(key::hash::<J::Key>(key, self.seed));
        let partition = Partitioner::new(self.shared.partitions()).of::<J>(hash, key);
        self.runs(self.shared.kept(partition))
            .flat_map(|pairs| pairs.iter())
            .find(|(other, _)| key::equal::<J::Key>(*other, key))
            .map(|(_, value)| value)
    }

    /// A shared output as this step has left it, and as the next one will find it.
    ///
    /// # Panics
    /// When it is not one that the job [writes](crate::Job::writes).
    pub fn values<'v, T: Plain>(&'v self, output: &'v SharedOutput<T>) -> &'v [T] {
        self.outputs.values(output)
    }

    /// Gives the next steps another state ([`Split::state`](crate::Split::state), [`Pairs::state`]).
    ///
    /// # Panics
    /// When it is longer than the state that the job began with: that one made the room.
    pub fn set_state(&mut self, state: &[u8]) {
        self.shared.set_state(state);
    }

    fn partitions(&self) -> impl Iterator<Item = KeptPartition> {
        (0..self.shared.partitions()).map(|partition| self.shared.kept(partition))
    }

    fn runs(&self, kept: KeptPartition) -> impl Iterator<Item = Pairs<'s, J::Key, J::Value>> + use<'s, J> {
        let shelf: Shelf<'s> = self.shared.pages.shelf();
        pieces(shelf, kept).map(move |piece| Pairs::new(pairs_of(&shelf, piece), &[]))
    }
}
