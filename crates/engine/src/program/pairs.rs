//! Pairs made by one step of a job, as the next step maps them.

use std::marker::PhantomData;

use crate::data::datum::{Datum, Key};
use crate::data::entry;

/// Some of the pairs of one partition, made by the previous step, as
/// [`MapReduce::map_pairs`](crate::MapReduce::map_pairs) sees them.
pub struct Pairs<'a, K, V> {
    bytes: &'a [u8],
    state: &'a [u8],
    kind: PhantomData<(K, V)>,
}

impl<'a, K: Key, V: Datum> Pairs<'a, K, V> {
    pub(crate) fn new(bytes: &'a [u8], state: &'a [u8]) -> Self {
        Pairs { bytes, state, kind: PhantomData }
    }

    /// Iterates over the pairs.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = (K::Ref<'a>, V::Ref<'a>)> + use<'a, K, V> {
        entry::pairs::<K, V>(self.bytes).map(|(_, pair)| (pair.key, pair.value))
    }

    /// Returns the state of this step, as set by the caller of [`Job::iterate`](crate::Job::iterate).
    pub fn state(&self) -> &'a [u8] {
        self.state
    }
}
