//! Pairs of which those with one key are combined.
//!
//! ```text
//!  list:  | combined: pairs with different keys, in blocks ... |   | waiting: pairs, in blocks ... |
//! ```
//!
//! Pairs wait until there are twice as many as combined ones, at least a batch that is worth it. Then they are combined one block
//! after the other: a pair whose key is new is added, the value of any other is combined into the pair that is there; and the
//! block is free for whoever needs one next. The slots by which pairs are found are scratch memory, made anew each time and shared
//! by all lists of a worker. So a list takes little more memory than its pairs, and slots and pairs stay in the cache while they
//! are worked on. Every pair is looked at one and a half times on average at most, because a list has tripled before it is combined
//! again.
//!
//! Values of variable width do not stay where they lie when they are combined, so there all pairs of a list are written anew.
//!
//! Where half of the keys are new, no processor can guess which: pairs are told apart without a branch, a batch at a time, and
//! then each kind is worked off by a loop that knows what comes.

use std::hint::select_unpredictable;
use std::marker::PhantomData;

use gristmill_os::memory::{BLOCK_BYTES, Block, Blocks};
use gristmill_page::prefetch;

use crate::data::datum::{Combine, Datum, Key};
use crate::data::entry::{self, Entry};
use crate::data::key;
use crate::data::seed::Seed;

/// Pairs looked at together, so that the slots of all of them are on their way from memory at once.
const BATCH: usize = 32;
/// Combined pairs that are near anyway, bytes: to ask for each takes longer.
const NEAR_BYTES: usize = 256 << 10;
/// Places of pairs are 32-bit: the number of a block, and where in it. Only a pair that is larger has a larger block, and begins it.
const AT_BITS: u32 = BLOCK_BYTES.trailing_zeros();
/// Blocks of a list at most; one less, because slots hold places + 1.
const BLOCKS_MAX: usize = (1 << (32 - AT_BITS)) - 1;

/// Where the pairs of a list are found by their hash, while it is combined.
///
/// ```text
///  slot:  | hash, 4 | place + 1, 4 |   open addressing, linear probing, 0 is empty
/// ```
pub(super) struct Slots {
    seed: Seed,
    words: Vec<u64>,
    /// How far a hash is shifted to become the slot where the search begins.
    shift: u32,
}

impl Slots {
    fn new(seed: &Seed) -> Slots {
        Slots { seed: seed.clone(), words: Vec::new(), shift: 0 }
    }

    /// Empty slots for so many keys and a batch more.
    fn clear(&mut self, keys: usize) {
        // A quarter to an eighth of them in use: measured best of a half to a sixteenth.
        let wanted = ((keys + BATCH) * 4).next_power_of_two();
        self.words.clear();
        self.words.resize(wanted, 0);
        self.shift = 32 - wanted.trailing_zeros();
    }

    /// True when so many keys and a batch more can be found without much probing.
    fn have_room(&self, keys: usize) -> bool {
        (keys + BATCH) * 2 <= self.words.len()
    }

    /// Where the search for a hash begins. Hashes of one list have bits in common, by which it was chosen: the product does
    /// not.
    #[inline(always)]
    fn home(&self, hash: u32) -> usize {
        (u64::from(hash.wrapping_mul(0x9e37_79b1)) >> self.shift) as usize
    }

    /// The slot behind this one.
    #[inline(always)]
    fn next(&self, slot: usize) -> usize {
        (slot + 1) & (self.words.len() - 1)
    }

    /// Whether one of the two slots where a pair with this hash most likely is has it, and where it lies; 0 if not.
    #[inline(always)]
    fn look(&self, hash: u32) -> (bool, u32) {
        let first = self.home(hash);
        let (first, second) = (self.words[first], self.words[self.next(first)]);
        let slot = select_unpredictable((first >> 32) as u32 == hash, first, second);
        // An empty slot looks as one of hash 0.
        let place_and_1 = select_unpredictable((slot >> 32) as u32 == hash, slot as u32, 0);
        (place_and_1 > 0, place_and_1.saturating_sub(1))
    }

    #[inline(always)]
    fn set(&mut self, slot: usize, hash: u32, place: usize) {
        self.words[slot] = u64::from(hash) << 32 | (place as u64 + 1);
    }

    /// Makes pairs with different keys found, and nothing else, with room for so many keys.
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

/// Pairs in blocks, each whole in one of them.
struct Pairs<K, V> {
    blocks: Vec<Block>,
    count: usize,
    /// Bytes of the pairs, and of room that was too little for the next one.
    bytes: usize,
    kind: PhantomData<(K, V)>,
}

impl<K: Key, V: Datum> Pairs<K, V> {
    fn new() -> Self {
        Pairs { blocks: Vec::new(), count: 0, bytes: 0, kind: PhantomData }
    }

    /// Adds the first pair of `from`, which has so many bytes; returns its place.
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

    /// Adds so many pairs that lie one behind the other.
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

    /// Bytes of the pairs that the last block has room for.
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

    /// The bytes that begin with the pair at a place.
    #[inline(always)]
    fn from(&self, place: usize) -> &[u8] {
        &self.blocks[place >> AT_BITS].bytes()[place % BLOCK_BYTES..]
    }

    /// Asks for the pair at a place to be brought near.
    #[inline(always)]
    fn prefetch(&self, place: u32) {
        self.blocks[(place >> AT_BITS) as usize].prefetch(place as usize % BLOCK_BYTES);
    }
}

/// All pairs in blocks, with their places.
fn pairs_of<K: Key, V: Datum>(blocks: &[Block]) -> impl Iterator<Item = (usize, Entry<'_, K, V>)> {
    let blocks = blocks.iter().enumerate();
    blocks.flat_map(|(number, block)| {
        entry::pairs::<K, V>(block.bytes()).map(move |(at, pair)| (number << AT_BITS | at, pair))
    })
}

/// The memory to combine in, shared by all lists of a worker.
pub(crate) struct Scratch {
    slots: Slots,
    blocks: Blocks,
}

impl Scratch {
    /// No memory yet. Pairs are found by hashes with this seed.
    pub fn new(seed: &Seed) -> Scratch {
        Scratch { slots: Slots::new(seed), blocks: Blocks::default() }
    }

    /// What the hashes begin with.
    #[inline(always)]
    pub fn seed(&self) -> &Seed {
        &self.slots.seed
    }

    /// Gives back what is kept to be used again, but not blocks.
    pub fn trim(&mut self) {
        self.slots.words = Vec::new();
    }
}

pub(super) struct List<K, V> {
    /// Pairs with different keys.
    combined: Pairs<K, V>,
    waiting: Pairs<K, V>,
    /// Of the pairs that waited last time, how many in 256 had a new key.
    new_in_256: usize,
}

impl<K: Key, V: Datum> List<K, V> {
    /// No pairs.
    pub fn new() -> Self {
        List { combined: Pairs::new(), waiting: Pairs::new(), new_in_256: 128 }
    }

    /// Takes so many pairs that lie one behind the other.
    pub fn take(&mut self, count: usize, pairs: &[u8], scratch: &Scratch) {
        self.waiting.append(count, pairs, &scratch.blocks);
    }

    /// Takes one pair, the first of `from`, which has so many bytes.
    #[inline(always)]
    pub fn take_one(&mut self, from: &[u8], bytes: usize, scratch: &Scratch) {
        self.waiting.push(from, bytes, &scratch.blocks);
    }

    /// True when more than so many bytes wait, and enough to be combined.
    pub fn is_due(&self, wait_bytes: usize) -> bool {
        self.waiting.bytes > wait_bytes.max(2 * self.combined.bytes)
    }

    /// Divides pairs that are combined among lists.
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

    /// Combines what waits.
    pub fn combine(&mut self, scratch: &mut Scratch, combine: Combine<V>) {
        if self.waiting.count == 0 {
            return;
        }
        let Some(value_bytes) = V::WIDTH else { return self.combine_anew(scratch, combine) };
        let Scratch { slots, blocks } = scratch;
        let waiting = std::mem::replace(&mut self.waiting, Pairs::new());
        let combined_before = self.combined.count;
        // A guess of how many keys there will be: too few slots are made anew, too many do not stay in the cache.
        let mut keys = combined_before + waiting.count * self.new_in_256 / 256;
        slots.index::<K, V>(&self.combined.blocks, keys);
        // Places and hashes of a batch: of all of it, of pairs that seem to be there already with where, of the rest.
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
                // 1. Find where the pairs begin, and ask for their slots.
                let mut count = 0;
                while count < BATCH && at < pairs.len() {
                    let pair = entry::read::<K, V>(&pairs[at..]);
                    let hash = pair.hash(&slots.seed);
                    prefetch(&slots.words[slots.home(hash)]);
                    batch[count] = (at as u32, hash);
                    count += 1;
                    at += pair.bytes;
                }
                // 2. Tell those whose key seems to be there from the rest, and ask for it.
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
                // 3. Combine the ones. Another key with the same hash is one of the rest.
                for &(start, hash, place) in &known[..known_count] {
                    if !self.merge_at(&pairs[start as usize..], place as usize, value_bytes, combine) {
                        rest[rest_count % BATCH] = (start, hash);
                        rest_count += 1;
                    }
                }
                // 4. Look further for the others.
                for &(start, hash) in &rest[..rest_count] {
                    self.merge(slots, &pairs[start as usize..], (hash, value_bytes), blocks, combine);
                }
            }
        }
        self.new_in_256 = (self.combined.count - combined_before) * 256 / waiting.count;
    }

    /// Combines the first pair of `from` into the pair of its key, or adds it.
    #[inline(always)]
    fn merge(
        &mut self,
        slots: &mut Slots,
        from: &[u8],
        (hash, value_bytes): (u32, usize),
        blocks: &Blocks,
        combine: Combine<V>,
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

    /// Combines the first pair of `from` into the combined one at `place`, if that has its key; all values have `value_bytes`.
    #[inline(always)]
    fn merge_at(&mut self, from: &[u8], place: usize, value_bytes: usize, combine: Combine<V>) -> bool {
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

    /// Combines what waits, where values have no fixed width.
    fn combine_anew(&mut self, scratch: &mut Scratch, combine: Combine<V>) {
        let Scratch { slots, blocks } = scratch;
        let kinds = [&mut self.combined, &mut self.waiting].map(|pairs| std::mem::replace(pairs, Pairs::new()));
        // 1. The first pair of each key, with what all are combined to once there is a second one.
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
        // 2. One pair for each.
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

    /// Forgets all pairs.
    pub fn clear(&mut self) {
        (self.combined, self.waiting) = (Pairs::new(), Pairs::new());
    }

    /// Number of pairs; of keys, when nothing waits.
    pub fn len(&self) -> usize {
        self.combined.count + self.waiting.count
    }

    /// Bytes of all pairs. What the last block of either kind has room for is not counted.
    pub fn bytes(&self) -> usize {
        self.combined.bytes + self.waiting.bytes
    }

    /// Bytes of the pairs that are combined.
    pub fn combined_bytes(&self) -> usize {
        self.combined.bytes
    }

    /// True when it comes near to what a place can say.
    pub fn is_crowded(&self) -> bool {
        self.combined.blocks.len() + self.waiting.blocks.len() > BLOCKS_MAX / 2
    }

    /// All pairs with their places, when nothing waits.
    pub fn pairs(&self) -> impl Iterator<Item = (usize, Entry<'_, K, V>)> {
        debug_assert_eq!(self.waiting.count, 0, "pairs that wait are not seen");
        pairs_of(&self.combined.blocks)
    }

    /// The bytes that begin with the pair at a place.
    #[inline(always)]
    pub fn from(&self, place: usize) -> &[u8] {
        self.combined.from(place)
    }
}
