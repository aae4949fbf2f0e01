//! A list of pairs that combines pairs with the same key.
//!
//! ```text
//!  list:  | combined: pairs with different keys, in blocks ... |   | waiting: pairs, in blocks ... |
//! ```
//!
//! Pairs wait until they take twice the memory of the combined ones, and at least enough to be worth combining. Then
//! they are combined block by block: a pair with a new key is added, and the value of any other pair is combined into
//! the pair that has its key. The block is then free for reuse. The slots by which pairs are found are scratch memory,
//! rebuilt each time and shared by all lists of a worker. So a list takes little more memory than its pairs, and slots
//! and pairs stay in the cache while they are in use. On average every pair is looked at one and a half times at most,
//! because a list has tripled before it is combined again.
//!
//! Values of variable width cannot be combined in place, so then all pairs of a list are written anew.
//!
//! If half of the keys are new, no processor can predict which. So a batch of pairs is divided into known and new keys
//! without branches, and then each kind is processed by its own loop.

use std::hint::select_unpredictable;
use std::marker::PhantomData;

use gristmill_os::memory::{BLOCK_BYTES, Block, Blocks};
use gristmill_page::prefetch;

use crate::data::datum::{Datum, Key, Owned};
use crate::data::entry::{self, Entry};
use crate::data::key;
use crate::data::seed::Seed;

/// The number of pairs processed together, so that the slots of all of them are fetched from memory at once.
const BATCH: usize = 32;
/// The size of combined pairs up to which they are in the cache anyway, and prefetching would cost time.
const NEAR_BYTES: usize = 256 << 10;
/// The number of bits for the offset in a block. The place of a pair has 32 bits: the number of a block, and the offset
/// in it. Only a pair larger than a normal block has a larger one, and starts it.
const AT_BITS: u32 = BLOCK_BYTES.trailing_zeros();
/// The largest number of blocks of a list; one less than places can address, because slots hold places + 1.
const BLOCKS_MAX: usize = (1 << (32 - AT_BITS)) - 1;

/// The hash table of a list's pairs, while the list is combined.
///
/// ```text
///  slot:  | hash, 4 | place + 1, 4 |   open addressing, linear probing, 0 is empty
/// ```
pub(super) struct Slots {
    seed: Seed,
    words: Vec<u64>,
    /// The shift that turns a hash into the slot where its search begins.
    shift: u32,
}

impl Slots {
    fn new(seed: &Seed) -> Slots {
        Slots { seed: seed.clone(), words: Vec::new(), shift: 0 }
    }

    /// Makes empty slots for `keys` keys and one more batch.
    fn clear(&mut self, keys: usize) {
        // A quarter to an eighth of the slots are in use; measured as the best between a half and a sixteenth.
        let wanted = ((keys + BATCH) * 4).next_power_of_two();
        self.words.clear();
        self.words.resize(wanted, 0);
        self.shift = 32 - wanted.trailing_zeros();
    }

    /// Returns whether `keys` keys and one more batch can be found without much probing.
    fn have_room(&self, keys: usize) -> bool {
        (keys + BATCH) * 2 <= self.words.len()
    }

    /// Returns the slot where the search for a hash begins. The hashes of one list share the bits by which it was
    /// chosen; the multiplication spreads them.
    #[inline(always)]
    fn home(&self, hash: u32) -> usize {
        (u64::from(hash.wrapping_mul(0x9e37_79b1)) >> self.shift) as usize
    }

    /// Returns the slot after this one.
    #[inline(always)]
    fn next(&self, slot: usize) -> usize {
        (slot + 1) & (self.words.len() - 1)
    }

    /// Returns whether one of the two most likely slots holds this hash, and the pair's place; 0 if not.
    #[inline(always)]
    fn look(&self, hash: u32) -> (bool, u32) {
        let first = self.home(hash);
        let (first, second) = (self.words[first], self.words[self.next(first)]);
        let slot = select_unpredictable((first >> 32) as u32 == hash, first, second);
        // An empty slot looks like one of hash 0.
        let place_and_1 = select_unpredictable((slot >> 32) as u32 == hash, slot as u32, 0);
        (place_and_1 > 0, place_and_1.saturating_sub(1))
    }

    #[inline(always)]
    fn set(&mut self, slot: usize, hash: u32, place: usize) {
        self.words[slot] = u64::from(hash) << 32 | (place as u64 + 1);
    }

    /// Indexes pairs with different keys, with room for `keys` keys.
    fn index<K: Key, V: Datum>(&mut self, pairs: &[Block], keys: usize) {
        self.clear(keys);
        for (place, pair) in pairs_of::<K, V>(pairs) {
            let hash = pair.hash(&self.seed);
            let mut slot = self.home(hash);
            while self.words[slot] != 0 {
                slot = self.next(slot);
            }
            self.set(slot, hash, place);
        }
    }
}

/// Pairs in blocks; no pair spans two blocks.
struct PairBlocks<K, V> {
    blocks: Vec<Block>,
    count: usize,
    /// The size of the pairs and of the unused ends of full blocks.
    bytes: usize,
    kind: PhantomData<(K, V)>,
}

impl<K: Key, V: Datum> PairBlocks<K, V> {
    fn new() -> Self {
        PairBlocks { blocks: Vec::new(), count: 0, bytes: 0, kind: PhantomData }
    }

    /// Adds the first pair of `from`, which has `bytes` bytes; returns its place.
    #[inline(always)]
    fn push(&mut self, from: &[u8], bytes: usize, blocks: &Blocks) -> usize {
        if self.blocks.last().is_none_or(|last| last.room() < bytes) {
            self.open(bytes, blocks);
        }
        let number = self.blocks.len() - 1;
        let last = &mut self.blocks[number];
        let place = number << AT_BITS | last.bytes().len();
        match (K::WIDTH, V::WIDTH) {
            (Some(key_bytes), Some(value_bytes)) => last.append(&from[..key_bytes + value_bytes]),
            _ => last.append_first(from, bytes),
        }
        self.count += 1;
        self.bytes += bytes;
        place
    }

    #[cold]
    #[inline(never)]
    fn open(&mut self, bytes: usize, blocks: &Blocks) {
        assert!(self.blocks.len() < BLOCKS_MAX, "a list holds less than 4 GiB");
        self.bytes += self.blocks.last().map_or(0, Block::room);
        self.blocks.push(blocks.take(bytes));
    }

    /// Adds `count` pairs, which lie one after the other in `pairs`.
    fn append(&mut self, count: usize, mut pairs: &[u8], blocks: &Blocks) {
        self.count += count;
        self.bytes += pairs.len();
        while !pairs.is_empty() {
            let (now, later) = pairs.split_at(self.fitting(pairs));
            match self.blocks.last_mut() {
                Some(last) if !now.is_empty() => last.append(now),
                _ => self.open(entry::read::<K, V>(pairs).bytes, blocks),
            }
            pairs = later;
        }
    }

    /// Returns the size of the pairs that fit in the last block.
    fn fitting(&self, pairs: &[u8]) -> usize {
        let room = self.blocks.last().map_or(0, Block::room);
        if pairs.len() <= room {
            return pairs.len();
        }
        if let (Some(key_bytes), Some(value_bytes)) = (K::WIDTH, V::WIDTH) {
            let bytes = (key_bytes + value_bytes).max(1);
            return room / bytes * bytes;
        }
        let ends = entry::pairs::<K, V>(pairs).map(|(place, pair)| place + pair.bytes);
        ends.take_while(|end| *end <= room).last().unwrap_or(0)
    }

    /// Returns the bytes from the pair at `place` on.
    #[inline(always)]
    fn from(&self, place: usize) -> &[u8] {
        &self.blocks[place >> AT_BITS].bytes()[place % BLOCK_BYTES..]
    }

    /// Prefetches the pair at `place`.
    #[inline(always)]
    fn prefetch(&self, place: u32) {
        self.blocks[(place >> AT_BITS) as usize].prefetch(place as usize % BLOCK_BYTES);
    }
}

/// Iterates over all pairs in blocks, with their places.
fn pairs_of<K: Key, V: Datum>(blocks: &[Block]) -> impl Iterator<Item = (usize, Entry<'_, K, V>)> {
    let blocks = blocks.iter().enumerate();
    blocks.flat_map(|(number, block)| {
        entry::pairs::<K, V>(block.bytes()).map(move |(at, pair)| (number << AT_BITS | at, pair))
    })
}

/// Memory for combining, shared by all lists of a worker.
pub(crate) struct Scratch {
    slots: Slots,
    blocks: Blocks,
}

impl Scratch {
    /// Makes a scratch without memory. Pairs are found by hashes with this seed.
    pub fn new(seed: &Seed) -> Scratch {
        Scratch { slots: Slots::new(seed), blocks: Blocks::default() }
    }

    /// Returns the seed of the hashes.
    #[inline(always)]
    pub fn seed(&self) -> &Seed {
        &self.slots.seed
    }

    /// Frees the slots that are kept for reuse, but not the blocks.
    pub fn trim(&mut self) {
        self.slots.words = Vec::new();
    }
}

pub(super) struct List<K, V> {
    /// Pairs with different keys.
    combined: PairBlocks<K, V>,
    waiting: PairBlocks<K, V>,
    /// The number of new keys among 256 of the pairs that waited last time.
    new_in_256: usize,
}

impl<K: Key, V: Datum> List<K, V> {
    /// Makes a list without pairs.
    pub fn new() -> Self {
        List { combined: PairBlocks::new(), waiting: PairBlocks::new(), new_in_256: 128 }
    }

    /// Adds `count` pairs, which lie one after the other in `pairs`.
    pub fn take(&mut self, count: usize, pairs: &[u8], scratch: &Scratch) {
        self.waiting.append(count, pairs, &scratch.blocks);
    }

    /// Adds the first pair of `from`, which has `bytes` bytes.
    #[inline(always)]
    pub fn take_one(&mut self, from: &[u8], bytes: usize, scratch: &Scratch) {
        self.waiting.push(from, bytes, &scratch.blocks);
    }

    /// Returns whether more than `wait_bytes` bytes wait, and enough to be worth combining.
    pub fn is_due(&self, wait_bytes: usize) -> bool {
        self.waiting.bytes > wait_bytes.max(2 * self.combined.bytes)
    }

    /// Distributes the combined pairs to `lists` lists.
    pub fn divide(self, lists: usize, list_of: impl Fn(u32) -> usize, scratch: &Scratch) -> Vec<Self> {
        let mut divided: Vec<Self> = (0..lists).map(|_| List::new()).collect();
        for block in self.combined.blocks {
            for (at, pair) in entry::pairs::<K, V>(block.bytes()) {
                divided[list_of(pair.hash(scratch.seed()))].combined.push(
                    &block.bytes()[at..],
                    pair.bytes,
                    &scratch.blocks,
                );
            }
        }
        divided
    }

    /// Combines the waiting pairs.
    pub fn combine(&mut self, scratch: &mut Scratch, combine: impl Fn(Owned<V>, Owned<V>) -> Owned<V> + Copy) {
        if self.waiting.count == 0 {
            return;
        }
        let Some(value_bytes) = V::WIDTH else { return self.combine_anew(scratch, combine) };
        let Scratch { slots, blocks } = scratch;
        let waiting = std::mem::replace(&mut self.waiting, PairBlocks::new());
        let combined_before = self.combined.count;
        // Estimate the number of keys: too few slots must be rebuilt, too many do not stay in the cache.
        let mut keys = combined_before + waiting.count * self.new_in_256 / 256;
        slots.index::<K, V>(&self.combined.blocks, keys);
        // Offsets and hashes of a batch: of all its pairs; of those whose key seems to be known, with its place; of the
        // others.
        let mut batch = [(0, 0); BATCH];
        let mut known = [(0, 0, 0); BATCH];
        let mut rest = [(0, 0); BATCH];
        for block in waiting.blocks {
            let pairs = block.bytes();
            let mut at = 0;
            while at < pairs.len() {
                if !slots.have_room(self.combined.count) {
                    keys = 2 * keys.max(self.combined.count);
                    slots.index::<K, V>(&self.combined.blocks, keys);
                }
                // 1. Find the pairs of the batch, and prefetch their slots.
                let mut count = 0;
                while count < BATCH && at < pairs.len() {
                    let pair = entry::read::<K, V>(&pairs[at..]);
                    let hash = pair.hash(&slots.seed);
                    prefetch(&slots.words[slots.home(hash)]);
                    batch[count] = (at as u32, hash);
                    count += 1;
                    at += pair.bytes;
                }
                // 2. Separate pairs whose key seems to be known from the others, and prefetch its pair.
                let is_far = self.combined.bytes > NEAR_BYTES;
                let (mut known_count, mut rest_count) = (0, 0);
                for &(start, hash) in &batch[..count] {
                    let (found, place) = slots.look(hash);
                    if is_far {
                        self.combined.prefetch(place);
                    }
                    known[known_count % BATCH] = (start, hash, place);
                    known_count += usize::from(found);
                    rest[rest_count % BATCH] = (start, hash);
                    rest_count += usize::from(!found);
                }
                // 3. Combine the pairs with known keys. If only the hash was the same, the pair joins the others.
                for &(start, hash, place) in &known[..known_count] {
                    if !self.merge_at(&pairs[start as usize..], place as usize, value_bytes, combine) {
                        rest[rest_count % BATCH] = (start, hash);
                        rest_count += 1;
                    }
                }
                // 4. Search on for the others.
                for &(start, hash) in &rest[..rest_count] {
                    self.merge(slots, &pairs[start as usize..], (hash, value_bytes), blocks, combine);
                }
            }
        }
        self.new_in_256 = (self.combined.count - combined_before) * 256 / waiting.count;
    }

    /// Combines the first pair of `from` into the pair with its key, or adds it.
    #[inline(always)]
    fn merge(
        &mut self,
        slots: &mut Slots,
        from: &[u8],
        (hash, value_bytes): (u32, usize),
        blocks: &Blocks,
        combine: impl Fn(Owned<V>, Owned<V>) -> Owned<V> + Copy,
    ) {
        let mut at = slots.home(hash);
        loop {
            let slot = slots.words[at];
            if slot == 0 {
                let place = self.combined.push(from, entry::read::<K, V>(from).bytes, blocks);
                return slots.set(at, hash, place);
            }
            if (slot >> 32) as u32 == hash && self.merge_at(from, (slot as u32 - 1) as usize, value_bytes, combine) {
                return;
            }
            at = slots.next(at);
        }
    }

    /// Combines the first pair of `from` into the combined one at `place`, if they have the same key. All values have
    /// `value_bytes`.
    #[inline(always)]
    fn merge_at(
        &mut self,
        from: &[u8],
        place: usize,
        value_bytes: usize,
        combine: impl Fn(Owned<V>, Owned<V>) -> Owned<V> + Copy,
    ) -> bool {
        let known_bytes = &mut self.combined.blocks[place >> AT_BITS].bytes_mut()[place % BLOCK_BYTES..];
        let (pair, known) = (entry::read::<K, V>(from), entry::read::<K, V>(known_bytes));
        let is_same = key::equal::<K>(pair.key, known.key);
        if is_same {
            let combined = combine(V::own(known.value), V::own(pair.value));
            let end = known.bytes;
            V::write(V::lend(&combined), &mut known_bytes[end - value_bytes..end]);
        }
        is_same
    }

    /// Combines the waiting pairs, for values without a fixed width.
    fn combine_anew(&mut self, scratch: &mut Scratch, combine: impl Fn(Owned<V>, Owned<V>) -> Owned<V> + Copy) {
        let Scratch { slots, blocks } = scratch;
        let kinds = [&mut self.combined, &mut self.waiting].map(|pairs| std::mem::replace(pairs, PairBlocks::new()));
        // 1. Find the first pair of each key, and combine its value with those of the later ones.
        let mut keys: Vec<(Entry<'_, K, V>, Option<V::Owned>)> = Vec::new();
        slots.clear(kinds.iter().map(|pairs| pairs.count).sum());
        for (_, pair) in kinds.iter().flat_map(|pairs| pairs_of::<K, V>(&pairs.blocks)) {
            let hash = pair.hash(&slots.seed);
            let mut slot = slots.home(hash);
            loop {
                let word = slots.words[slot];
                if word == 0 {
                    slots.set(slot, hash, keys.len());
                    keys.push((pair, None));
                    break;
                }
                if (word >> 32) as u32 == hash {
                    let (first, combined) = &mut keys[(word as u32 - 1) as usize];
                    if key::equal::<K>(first.key, pair.key) {
                        let before = combined.take().unwrap_or_else(|| V::own(first.value));
                        *combined = Some(combine(before, V::own(pair.value)));
                        break;
                    }
                }
                slot = slots.next(slot);
            }
        }
        // 2. Write one pair for each key.
        let mut bytes = Vec::new();
        for (first, combined) in keys {
            bytes.clear();
            match &combined {
                Some(value) => entry::append::<K, V>(first.hash(&slots.seed), first.key, V::lend(value), &mut bytes),
                None => entry::append::<K, V>(first.hash(&slots.seed), first.key, first.value, &mut bytes),
            }
            self.combined.push(&bytes, bytes.len(), blocks);
        }
    }

    /// Removes all pairs.
    pub fn clear(&mut self) {
        (self.combined, self.waiting) = (PairBlocks::new(), PairBlocks::new());
    }

    /// Returns the number of pairs; of keys, if no pairs wait.
    pub fn len(&self) -> usize {
        self.combined.count + self.waiting.count
    }

    /// Returns the size of all pairs, without the free room in the last block of either kind.
    pub fn bytes(&self) -> usize {
        self.combined.bytes + self.waiting.bytes
    }

    /// Returns the size of the combined pairs.
    pub fn combined_bytes(&self) -> usize {
        self.combined.bytes
    }

    /// Returns whether the list nears the limit of what places can address.
    pub fn is_crowded(&self) -> bool {
        self.combined.blocks.len() + self.waiting.blocks.len() > BLOCKS_MAX / 2
    }

    /// Iterates over all pairs with their places. No pairs may wait.
    pub fn pairs(&self) -> impl Iterator<Item = (usize, Entry<'_, K, V>)> {
        debug_assert_eq!(self.waiting.count, 0, "pairs that wait are not seen");
        pairs_of(&self.combined.blocks)
    }

    /// Returns the bytes from the pair at `place` on.
    #[inline(always)]
    pub fn from(&self, place: usize) -> &[u8] {
        self.combined.from(place)
    }
}
