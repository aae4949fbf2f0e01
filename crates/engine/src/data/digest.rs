//! The digest of a task's pairs, which shows whether a redo emitted the same pairs.
//!
//! A redo keeps some partitions from the first time and makes the others anew, so both must come from the same pairs.
//! Each task counts the pairs that its map function emits (of an aggregate, the key and the item) and adds up their
//! hashes. The sum does not depend on the order of the pairs. It is taken before anything is combined, so it is the
//! same for every buffer.

use crate::data::datum::Datum;
use crate::data::key;
use crate::data::seed::Seed;

/// The number of pairs that a task emitted, and the sum of their hashes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Digest {
    pub pairs: u64,
    pub sum: u64,
    /// The sum of the hashes of the task's changes to shared outputs.
    pub changes: u64,
}

impl Digest {
    /// Adds a pair whose key has this hash.
    #[inline(always)]
    pub fn add<V: Datum>(&mut self, key_hash: u64, value: V::Ref<'_>, seed: &Seed) {
        self.add_each(1, key_hash, weight::<V>(value, seed));
    }

    /// Adds `pairs` pairs that have one value, and keys whose hashes sum to `key_hashes`.
    #[inline(always)]
    pub fn add_each(&mut self, pairs: u64, key_hashes: u64, weight: u64) {
        self.pairs += pairs;
        self.sum = self.sum.wrapping_add(key_hashes.wrapping_mul(weight));
    }
}

/// Returns the factor by which a pair with this value multiplies the hash of its key. It is odd, so the multiplication
/// loses no bits of the hash. It is rotated, so that a key and a value of one type cannot be swapped unnoticed.
#[inline(always)]
pub(crate) fn weight<V: Datum>(value: V::Ref<'_>, seed: &Seed) -> u64 {
    key::hash_of_value::<V>(value, seed).rotate_left(29) | 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::datum::{Bytes, Key};
    use proptest::prelude::*;

    fn of<K: Key, V: Datum>(pairs: &[(K::Ref<'_>, V::Ref<'_>)]) -> Digest {
        let (mut digest, seed) = (Digest::default(), Seed::of(1));
        pairs.iter().for_each(|(key, value)| digest.add::<V>(key::hash::<K>(*key, &seed), *value, &seed));
        digest
    }

    proptest! {
        #[test]
        fn the_digest_ignores_the_order_of_pairs_and_detects_a_changed_pair(
            mut pairs in prop::collection::vec((0..9u64, 0..9u64), 1..40), at: prop::sample::Index, other in (0..9u64, 0..9u64),
        ) {
            let digest = of::<u64, u64>(&pairs);
            pairs.reverse();
            prop_assert_eq!(of::<u64, u64>(&pairs), digest);
            let one = at.index(pairs.len());
            let same = pairs[one] == other;
            pairs[one] = other;
            prop_assert_eq!(of::<u64, u64>(&pairs) == digest, same);
        }
    }

    /// Swapping two keys' values, or moving an amount from one key's values to the other's, changes no key and no
    /// total.
    #[test]
    fn swapping_values_between_keys_changes_the_digest() {
        let floats = |a: f64, b: f64| of::<u32, f64>(&[(1, a), (2, b)]);
        assert_ne!(floats(1.0, 2.0), floats(2.0, 1.0));
        let sums = |a: u64, b: u64| of::<Bytes, u64>(&[(b"rye", a), (b"rye", b)]);
        assert_ne!(sums(3, 5), sums(4, 4));
        let wide = |a: u64, b: f64| of::<u32, (u64, (f64, f64))>(&[(1, (a, (b, 0.5)))]);
        assert_ne!(wide(1, 2.0), wide(1, 2.5));
        for (a, b) in (0..30).flat_map(|a| (0..a).map(move |b| (a, b))) {
            assert_ne!(of::<u64, u64>(&[(a, b)]), of::<u64, u64>(&[(b, a)]), "an edge of a graph and its reverse");
        }
        let text = |a: &str, b: &str| {
            of::<Bytes, Bytes>(&[(b"a long key that is no short one", a.as_bytes()), (b"k", b.as_bytes())])
        };
        assert_ne!(text("one", "another and longer one"), text("another and longer one", "one"));
        assert_ne!(of::<Bytes, ()>(&[(b"rye", ())]), of::<Bytes, ()>(&[(b"rye", ()), (b"oat", ())]));
    }
}
