//! The secret seed of a job's hashes, so that nobody can choose keys that collide.
//!
//! Tables, partitions and the digests of tasks all hash with one seed, which the coordinator draws before the first
//! worker starts. A checkpoint stores the seed, because the runs on disk are divided by it. An attacker who writes the
//! input knows this file but not the seed. Three things prevent keys that collide under every seed:
//!
//! - Every word of a key is combined with a secret word first. So no product can be forced to zero, and differences
//!   that cancel in one job do not cancel in another.
//! - Each length has its own secret word, so the hash of a word says nothing about the hash of the same word followed
//!   by zeros.
//! - The last multiplication moves the middle bits of the product up to the bits that choose partitions and slots.
//!   Without it, consecutive numbers (or any at equal distances) crowd into few slots under one seed in fifty.
//!
//! Keys of more than [`SHORT_BYTES`] are hashed by `foldhash`, with all of its seeds secret.

use std::hash::{BuildHasher, Hasher, RandomState};

use foldhash::SharedSeed;
use foldhash::fast::FoldHasher;

use crate::data::short::{SHORT_BYTES, Short};

/// The secret words that a job's hashes start from.
#[derive(Clone, Debug)]
pub(crate) struct Seed {
    number: u64,
    /// Combined with the first word of a short key.
    first: u64,
    /// Combined with the second word of a short key; one for each length.
    second: [u64; SHORT_BYTES + 1],
    /// The seed for long keys.
    long: u64,
    long_words: SharedSeed,
}

impl Seed {
    /// Returns an unpredictable seed: the keys of `RandomState` come from the system's randomness.
    pub fn random() -> Seed {
        Seed::of(RandomState::new().build_hasher().finish())
    }

    /// Returns the seed derived from this number.
    pub fn of(number: u64) -> Seed {
        let mut state = number;
        let mut next = || {
            // SplitMix64 (Steele, Lea and Flood 2014).
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mixed = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
            mixed ^ mixed >> 31
        };
        let first = next();
        // Odd and large, because it is a factor in the hash of keys that have no second word.
        let second = std::array::from_fn(|_| next() | 1 << 63 | 1);
        Seed { number, first, second, long: next(), long_words: SharedSeed::from_u64(next()) }
    }

    /// Returns the number that the seed was derived from.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Returns the hash of a short key: one folded multiplication, and one that moves its middle bits up.
    #[inline(always)]
    pub fn hash(&self, key: Short) -> u64 {
        let a = key.words[0] ^ self.first;
        let b = key.words[1] ^ self.second[key.len as usize];
        let product = u128::from(a) * u128::from(b);
        (product as u64 ^ (product >> 64) as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }

    /// Returns the hash of four words.
    #[inline(always)]
    pub fn hash_words(&self, words: [u64; 4]) -> u64 {
        let fold = |a: u64, b: u64| {
            let product = u128::from(a) * u128::from(b);
            product as u64 ^ (product >> 64) as u64
        };
        let [a, b, c, d] = words;
        let half = fold(a ^ self.first, b ^ self.second[SHORT_BYTES]);
        half.wrapping_add(fold(c ^ self.long, d ^ self.second[0]))
    }

    /// Returns the hash of more bytes than a short key has.
    #[inline]
    pub fn hash_long(&self, bytes: &[u8]) -> u64 {
        let mut hasher = FoldHasher::with_seed(self.long, &self.long_words);
        hasher.write(bytes);
        hasher.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::datum::Bytes;
    use crate::data::key;
    use std::collections::HashSet;

    const KEYS: u64 = 40_000;

    /// Returns the number of slots probed for each key in a table of 2^16, and the number of keys in the fullest of 64
    /// partitions, both by the highest bits.
    fn crowding(keys: &[Vec<u8>], seed: &Seed) -> (f64, usize) {
        let (mut taken, mut looks, mut partitions) = (vec![false; 1 << 16], 0, [0; 64]);
        for key in keys {
            let hash = key::hash::<Bytes>(key, seed);
            partitions[(hash >> 58) as usize] += 1;
            let mut at = (hash >> 48) as usize;
            looks += 1;
            while std::mem::replace(&mut taken[at], true) {
                at = (at + 1) % taken.len();
                looks += 1;
            }
        }
        (f64::from(looks) / keys.len() as f64, partitions.into_iter().max().unwrap_or(0))
    }

    fn words<const N: usize>(words: impl Fn(u64) -> [u64; N]) -> Vec<Vec<u8>> {
        (0..KEYS).map(|n| words(n).map(u64::to_le_bytes).as_flattened().to_vec()).collect()
    }

    #[test]
    fn keys_chosen_to_collide_are_spread_under_any_seed() {
        // 80,000 words chosen to have one hash once took 8 seconds to count instead of 0.03.
        const FIRST: u64 = 0x9e37_79b9_7f4a_7c15;
        const SECOND: u64 = 0xadf8_5458_a2bb_4a9b + (16 << 7);
        // A constant of foldhash, from states without their own seed.
        const FOLD: u64 = 0xd1b5_4a32_d192_ed03;
        let mut attacks = vec![
            ("the first factor was zero", words(|n| [FIRST, n])),
            ("the second factor was zero", words(|n| [n, SECOND])),
            ("both words are one", words(|n| [n, n])),
            ("both words cancel", words(|n| [n, n ^ u64::MAX])),
            ("both words cancelled", words(|n| [FIRST ^ n, SECOND ^ n])),
            ("one is the other, turned around", words(|n| [n, n.swap_bytes()])),
            ("words are negated", words(|n| [n ^ (n & 1).wrapping_neg(), n ^ (n >> 1 & 1).wrapping_neg()])),
            ("words change places", words(|n| if n % 2 == 0 { [n, 7] } else { [7, n] })),
            ("products are the same", words(|n| [FIRST ^ (1 << (n % 50)), SECOND ^ (n / 50)])),
            ("zeros", (0..KEYS).map(|n| vec![0; n as usize % 400]).collect::<HashSet<_>>().into_iter().collect()),
            ("long, a factor of zero", words(|n| [FOLD, FOLD, n, n])),
            ("long, the first word differs", words(|n| [n, 0, 0, 0])),
            ("long, the last word differs", words(|n| [0, 0, 0, n])),
            ("long, high bits differ", words(|n| [0, n << 48, 0, 0])),
            ("long, words cancel", words(|n| [n, !n, n, !n, n])),
            ("very long", words(|n| std::array::from_fn::<_, 40, _>(|at| if at as u64 == n % 40 { n } else { FOLD }))),
        ];
        for shift in (0..=48).step_by(4) {
            attacks.push(("the first word in steps", words(|n| [n << shift])));
            attacks.push(("the second word in steps", words(|n| [0, n << shift])));
        }
        for (what, keys) in &attacks {
            for seed in [Seed::of(0), Seed::of(1), Seed::random()] {
                let (looks, fullest) = crowding(keys, &seed);
                assert!(looks < 2.5, "{what}: {looks} slots were looked at for each key, with {seed:?}");
                let average = keys.len() / 64;
                assert!(fullest < 2 * average + 40, "{what}: {fullest} keys in one partition, with {seed:?}");
                let mut hashes: Vec<u64> = keys.iter().map(|key| key::hash::<Bytes>(key, &seed)).collect();
                hashes.sort_unstable();
                hashes.dedup();
                assert_eq!(hashes.len(), keys.len(), "{what}: keys have one hash, with {seed:?}");
            }
        }
    }

    #[test]
    fn a_seed_is_restored_from_its_number_and_two_random_seeds_differ() {
        let seed = Seed::random();
        let hashes = |seed: &Seed| {
            [&b"rye"[..], b"a key that is too long to be a short one"].map(|key| key::hash::<Bytes>(key, seed))
        };
        assert_eq!(hashes(&Seed::of(seed.number())), hashes(&seed));
        let other = Seed::random();
        assert_ne!(other.number(), seed.number());
        assert!(hashes(&other).iter().zip(hashes(&seed)).all(|(one, another)| *one != another));
    }
}
