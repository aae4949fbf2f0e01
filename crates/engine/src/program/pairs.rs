//! Pairs that a step of a job has made, as the next step maps them.

use std::marker::PhantomData;

use crate::data::datum::{Datum, Key};
use crate::data::entry;

/// Some of the pairs of one partition, made by the step before, as [`MapReduce::map_pairs`](crate::MapReduce::map_pairs) sees them.
pub struct Pairs<'a, K, V> {
    bytes: &'a [u8],
    state: &'a [u8],
    kind: PhantomData<(K, V)>,
}

impl<'a, K: Key, V: Datum> Pairs<'a, K, V> {
    pub(crate) fn new(bytes: &'a [u8], state: &'a [u8]) -> Self {
        Pairs { bytes, state, kind: PhantomData }
    }

    /// The pairs.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = (K::Ref<'a>, V::Ref<'a>)> + use<'a, K, V> {
        entry::pairs::<K, V>(self.bytes).map(|(_, pair)| (pair.key, pair.value))
    }

    /// The state of this step, as the caller of [`Job::iterate`](crate::Job::iterate) has set it.
    pub fn state(&self) -> &'a [u8] {
        self.state
    }
}
