//! The layout of one key-value pair in a page.
//!
//! ```text
//!  variable-width key:  | hash, 4 | length, 1 or 5 | key ... | value ... |
//!  fixed-width key:     | key | value ... |
//!  variable value:      | length, 4 | bytes ... |
//!  length: one byte below 255, else 255 and four bytes
//! ```
//!
//! The hash is stored with a variable-width key because the reducer needs it before it looks at the key (to prefetch).
//! For numbers it is cheaper to compute it again.

use crate::data::datum::{Datum, Key};
use crate::data::key;
use crate::data::seed::Seed;

/// Returns the part of a 64-bit hash that is kept: its high bits choose the partition, its low bits the table slot.
#[inline(always)]
pub(crate) fn short_hash(hash: u64) -> u32 {
    (hash >> 32) as u32
}

/// The largest size of a pair. Lengths, places and blocks of runs, which have a header, are counted in 32 bits.
pub(crate) const PAIR_BYTES_MAX: usize = u32::MAX as usize - (64 << 10);

/// Refuses a pair that is too large. Called where a pair does not fit a buffer that most pairs fit.
///
/// # Panics
/// When `bytes` exceeds [`PAIR_BYTES_MAX`].
#[inline(always)]
pub(crate) fn check_width(bytes: usize) {
    if bytes > PAIR_BYTES_MAX {
        too_large(bytes);
    }
}

#[cold]
#[inline(never)]
fn too_large(bytes: usize) -> ! {
    panic!(
        "a pair of {bytes} bytes was made, and a pair has at most {PAIR_BYTES_MAX} (4 GiB): let the map function emit it in parts, or the combiner make less of it"
    )
}

/// Returns the number of bytes that this pair takes.
#[inline(always)]
pub(crate) fn width<K: Key, V: Datum>(key: K::Ref<'_>, value: V::Ref<'_>) -> usize {
    let key_width = match K::WIDTH {
        Some(width) => width,
        None => 4 + length_width(K::width(key)) + K::width(key),
    };
    let value_width = match V::WIDTH {
        Some(width) => width,
        None => 4 + V::width(value),
    };
    key_width + value_width
}

/// Writes the pair into `to`, whose length is the pair's [`width`].
#[inline(always)]
pub(crate) fn write<K: Key, V: Datum>(hash: u32, key: K::Ref<'_>, value: V::Ref<'_>, to: &mut [u8]) {
    let key_bytes = key::width::<K>(key);
    let mut at = 0;
    if K::WIDTH.is_none() {
        to[..4].copy_from_slice(&hash.to_le_bytes());
        at = 4 + write_length(key_bytes, &mut to[4..]);
    }
    K::write(key, &mut to[at..at + key_bytes]);
    at += key_bytes;
    if V::WIDTH.is_none() {
        to[at..at + 4].copy_from_slice(&(V::width(value) as u32).to_le_bytes());
        at += 4;
    }
    V::write(value, &mut to[at..]);
}

/// Appends the pair to `to`.
#[inline(always)]
pub(crate) fn append<K: Key, V: Datum>(hash: u32, key: K::Ref<'_>, value: V::Ref<'_>, to: &mut Vec<u8>) {
    let (at, bytes) = (to.len(), width::<K, V>(key, value));
    check_width(bytes);
    to.resize(at + bytes, 0);
    write::<K, V>(hash, key, value, &mut to[at..]);
}

/// A pair read from the front of some bytes.
pub(crate) struct Entry<'a, K: Key, V: Datum> {
    /// The stored hash; 0 if the key has a fixed width.
    lying_hash: u32,
    pub key: K::Ref<'a>,
    pub value: V::Ref<'a>,
    /// The number of bytes that the pair takes.
    pub bytes: usize,
}

impl<K: Key, V: Datum> Entry<'_, K, V> {
    /// Returns the hash of the key.
    #[inline(always)]
    pub fn hash(&self, seed: &Seed) -> u32 {
        if K::WIDTH.is_some() { short_hash(key::hash::<K>(self.key, seed)) } else { self.lying_hash }
    }
}

/// Reads the pair at the front of `from`.
#[inline(always)]
pub(crate) fn read<K: Key, V: Datum>(from: &[u8]) -> Entry<'_, K, V> {
    let (lying_hash, key, mut at) = match K::WIDTH {
        Some(width) => (0, K::read(&from[..width]), width),
        None => {
            let hash = u32::from_le_bytes(from[..4].try_into().expect("four bytes"));
            let (length, start) = read_length(from, 4);
            (hash, K::read(&from[start..start + length]), start + length)
        }
    };
    let value_bytes = match V::WIDTH {
        Some(width) => width,
        None => {
            let length = u32::from_le_bytes(from[at..at + 4].try_into().expect("four bytes"));
            at += 4;
            length as usize
        }
    };
    Entry { lying_hash, key, value: V::read(&from[at..at + value_bytes]), bytes: at + value_bytes }
}

/// Iterates over the pairs in `from`, each with its offset.
#[inline(always)]
pub(crate) fn pairs<K: Key, V: Datum>(from: &[u8]) -> impl Iterator<Item = (usize, Entry<'_, K, V>)> {
    let mut next = 0;
    std::iter::from_fn(move || {
        let place = next;
        let pair = (place < from.len()).then(|| read::<K, V>(&from[place..]))?;
        next = place + pair.bytes;
        Some((place, pair))
    })
}

/// Returns the number of bytes that a length takes.
#[inline(always)]
pub(crate) fn length_width(length: usize) -> usize {
    if length < 255 { 1 } else { 5 }
}

/// Writes a length at the front of `to` and returns the number of bytes written.
#[inline(always)]
pub(crate) fn write_length(length: usize, to: &mut [u8]) -> usize {
    if length < 255 {
        to[0] = length as u8;
        1
    } else {
        to[0] = 255;
        to[1..5].copy_from_slice(&(length as u32).to_le_bytes());
        5
    }
}

/// Reads the length at `at`; returns it and the offset of the bytes that it counts.
#[inline(always)]
pub(crate) fn read_length(from: &[u8], at: usize) -> (usize, usize) {
    match from[at] {
        255 => (u32::from_le_bytes(from[at + 1..at + 5].try_into().expect("four bytes")) as usize, at + 5),
        short => (short as usize, at + 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::datum::Bytes;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn pairs_are_read_as_written(key in prop::collection::vec(any::<u8>(), 0..600), value in prop::collection::vec(any::<u8>(), 0..20), hash: u32) {
            let mut bytes = vec![0; width::<Bytes, Bytes>(&key, &value)];
            write::<Bytes, Bytes>(hash, &key, &value, &mut bytes);
            let entry = read::<Bytes, Bytes>(&bytes);
            prop_assert_eq!((entry.hash(&Seed::of(1)), entry.key, entry.value, entry.bytes), (hash, &key[..], &value[..], bytes.len()));
        }

        #[test]
        fn numbers_take_exactly_their_width(key: u32, value: u64) {
            let mut bytes = vec![0; width::<u32, u64>(key, value)];
            prop_assert_eq!(bytes.len(), 12);
            write::<u32, u64>(0, key, value, &mut bytes);
            let entry = read::<u32, u64>(&bytes);
            let seed = Seed::of(1);
            prop_assert_eq!((entry.key, entry.value, entry.hash(&seed)), (key, value, short_hash(key::hash::<u32>(key, &seed))));
        }
    }
}
