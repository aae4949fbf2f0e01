//! The one thing that all buffers have in common.

use crate::data::datum::{Datum, Key};
use crate::data::digest::Digest;
use crate::program::map_reduce::Emit;

/// A buffer that takes the pairs of one task.
pub(crate) trait MapBuffer<K: Key, V: Datum>: Emit<K, V> {
    /// Returns the digest of the pairs so far.
    fn digest(&self) -> Digest;
}
