//! Pairs of which those with one key are combined in place.
//!
//! ```text
//!  list:  | pairs with different keys, combined ... | pairs that wait ... |
//! ```
//!
//! Pairs wait behind those that are combined until there are twice as many, at least a batch that is worth it. Then all are
//! combined at once: a pair whose key is new moves up, the value of any other is combined into the pair that is there.
//! The slots by which pairs are found are scratch memory, made anew each time and shared by all lists of a worker.
//! So a list takes little more memory than its pairs, and slots and pairs stay in the cache while they are worked on. Every
//! pair is looked at one and a half times on average at most, because a list has tripled before it is combined again.
//!
//! Where half of the keys are new, no processor can guess which: pairs are told apart without a branch, a batch at a time, and
//! then each kind is worked off by a loop that knows what comes.

use std::hint::select_unpredictable;
use std::marker::PhantomData;

use gristmill_os::memory::populate;
use gristmill_page::prefetch;

use crate::datum::{Combine, Datum, Key};
use crate::entry::{self, Entry};

/// Memory that the kernel is asked for at a time, bytes; a quarter of the list when that is more.
const POPULATED_BYTES_MIN: usize = 16 << 10;
/// Pairs looked at together, so that the slots of all of them are on their way from memory at once.
const BATCH: usize = 32;
/// Places of pairs are 32-bit.
pub(super) const LIST_BYTES_MAX: usize = u32::MAX as usize;
/// The place of a pair that was not found.
const NOWHERE: u32 = u32::MAX;
/// Pairs up to this size move up by one copy of this size.
const SHORT_PAIR: usize = 32;

/// Where the pairs of a list are found by their hash, while it is combined.
///
/// ```text
///  slot:  | hash, 4 | place + 1, 4 |   open addressing, linear probing, 0 is empty
/// ```
#[derive(Default)]
pub(super) struct Slots {
    words: Vec<u64>,
    /// How far a hash is shifted to become the slot where the search begins.
    shift: u32,
}

impl Slots {
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

    /// Where a pair with this hash lies, if one of the two slots where it most likely is says so; else [`NOWHERE`].
    #[inline(always)]
    fn look(&self, hash: u32) -> u32 {
        let first = self.home(hash);
        let (first, second) = (self.words[first], self.words[self.next(first)]);
        let slot = select_unpredictable((first >> 32) as u32 == hash, first, second);
        let found = (slot >> 32) as u32 == hash;
        select_unpredictable(found, slot as u32, 0).wrapping_sub(1)
    }

    #[inline(always)]
    fn set(&mut self, slot: usize, hash: u32, place: usize) {
        self.words[slot] = u64::from(hash) << 32 | (place as u64 + 1);
    }

    /// Makes pairs with different keys found, and nothing else, with room for so many keys.
    fn index<K: Key, V: Datum>(&mut self, pairs: &[u8], keys: usize) {
        self.clear(keys);
        for (place, pair) in entry::pairs::<K, V>(pairs) {
            let mut slot = self.home(pair.hash);
            while self.words[slot] != 0 {
                slot = self.next(slot);
            }
            self.set(slot, pair.hash, place);
        }
    }
}

pub(super) struct List<K, V> {
    bytes: Vec<u8>,
    /// Bytes of its memory that the kernel has given already.
    populated_bytes: usize,
    /// Bytes and pairs of the list that are combined.
    combined_bytes: usize,
    combined_pairs: usize,
    /// Pairs that wait.
    waiting_pairs: usize,
    /// Of the pairs that waited last time, how many in 256 had a new key.
    new_in_256: usize,
    kind: PhantomData<(K, V)>,
}

impl<K: Key, V: Datum> List<K, V> {
    /// Values of variable width are never combined; the plan sees to that.
    const VALUE_BYTES: usize = if let Some(bytes) = V::WIDTH { bytes } else { 0 };

    /// No pairs.
    pub fn new() -> Self {
        List {
            bytes: Vec::new(),
            populated_bytes: 0,
            combined_bytes: 0,
            combined_pairs: 0,
            waiting_pairs: 0,
            new_in_256: 128,
            kind: PhantomData,
        }
    }

    /// A list of pairs that have different keys.
    pub fn of_combined(pairs: usize, bytes: &[u8]) -> Self {
        let mut list = List::new();
        list.append(bytes);
        (list.combined_pairs, list.combined_bytes) = (pairs, bytes.len());
        list
    }

    /// Takes so many pairs that lie one behind the other, and combines what waits once it has more than so many bytes.
    pub fn take(&mut self, pairs: usize, bytes: &[u8], wait_bytes: usize, slots: &mut Slots, combine: Combine<V>) {
        let waiting_bytes = self.bytes.len() - self.combined_bytes + bytes.len();
        if waiting_bytes > wait_bytes.max(2 * self.combined_bytes) {
            self.combine(slots, combine);
        }
        assert!(self.bytes.len() + bytes.len() < LIST_BYTES_MAX, "a list holds less than 4 GiB");
        if self.bytes.capacity() == 0 {
            self.bytes.reserve_exact(wait_bytes);
        }
        self.append(bytes);
        self.waiting_pairs += pairs;
    }

    fn append(&mut self, bytes: &[u8]) {
        if self.bytes.len() + bytes.len() > self.populated_bytes {
            self.bytes.reserve(bytes.len());
            let listed = self.bytes.len();
            let spare = self.bytes.spare_capacity_mut();
            let more = spare.len().min(POPULATED_BYTES_MIN.max(listed / 4).max(bytes.len()));
            populate(&mut spare[..more]);
            self.populated_bytes = listed + more;
        }
        self.bytes.extend_from_slice(bytes);
    }

    /// Combines what waits.
    pub fn combine(&mut self, slots: &mut Slots, combine: Combine<V>) {
        if self.waiting_pairs == 0 {
            return;
        }
        let pairs_before = self.combined_pairs;
        // A guess of how many keys there will be: too few slots are made anew, too many do not stay in the cache.
        let mut keys = pairs_before + self.waiting_pairs * self.new_in_256 / 256;
        slots.index::<K, V>(&self.bytes[..self.combined_bytes], keys);
        let (mut at, mut end) = (self.combined_bytes, self.combined_bytes);
        // Places and hashes of a batch: of all of it, of pairs that seem to be there already with where, of the rest.
        let mut batch = [(0, 0); BATCH];
        let mut known = [(0, 0, 0); BATCH];
        let mut rest = [(0, 0); BATCH];
        while at < self.bytes.len() {
            if !slots.have_room(self.combined_pairs) {
                keys = 2 * keys.max(self.combined_pairs);
                slots.index::<K, V>(&self.bytes[..end], keys);
            }
            // 1. Find where the pairs begin, and ask for their slots.
            let mut count = 0;
            while count < BATCH && at < self.bytes.len() {
                let pair = entry::read::<K, V>(&self.bytes[at..]);
                prefetch(&slots.words[slots.home(pair.hash)]);
                batch[count] = (at as u32, pair.hash);
                count += 1;
                at += pair.bytes;
            }
            // 2. Tell those whose key seems to be there from the rest, and ask for it.
            let (mut known_count, mut rest_count) = (0, 0);
            for &(start, hash) in &batch[..count] {
                let place = slots.look(hash);
                prefetch(&self.bytes[(place as usize).min(end)]);
                known[known_count % BATCH] = (start, hash, place);
                known_count += usize::from(place != NOWHERE);
                rest[rest_count % BATCH] = (start, hash);
                rest_count += usize::from(place == NOWHERE);
            }
            // 3. Combine the ones. Another key with the same hash is one of the rest, which keep their order: no pair moves up
            // over one that is still wanted.
            let unknown = rest_count;
            for &(start, hash, place) in &known[..known_count] {
                if !self.merge_at(start as usize, place as usize, combine) {
                    rest[rest_count % BATCH] = (start, hash);
                    rest_count += 1;
                }
            }
            if rest_count > unknown {
                rest[..rest_count].sort_unstable();
            }
            // 4. Look further for the others.
            for &(start, hash) in &rest[..rest_count] {
                end = self.merge(slots, start as usize, hash, end, combine);
            }
        }
        self.bytes.truncate(end);
        self.combined_bytes = end;
        self.new_in_256 = (self.combined_pairs - pairs_before) * 256 / self.waiting_pairs;
        self.waiting_pairs = 0;
    }

    /// Combines the pair at `start` into the pair of its key, or moves it up to `end`, the end of the combined pairs;
    /// returns where they end now.
    #[inline(always)]
    fn merge(&mut self, slots: &mut Slots, start: usize, hash: u32, end: usize, combine: Combine<V>) -> usize {
        let mut at = slots.home(hash);
        loop {
            let slot = slots.words[at];
            if slot == 0 {
                let bytes = entry::read::<K, V>(&self.bytes[start..]).bytes;
                self.move_up(start, bytes, end);
                slots.set(at, hash, end);
                self.combined_pairs += 1;
                return end + bytes;
            }
            if (slot >> 32) as u32 == hash && self.merge_at(start, (slot as u32 - 1) as usize, combine) {
                return end;
            }
            at = slots.next(at);
        }
    }

    /// Combines the pair at `start` into the combined one at `place`, if that has its key.
    #[inline(always)]
    fn merge_at(&mut self, start: usize, place: usize, combine: Combine<V>) -> bool {
        // What is combined ends before this pair begins.
        let (before, from) = self.bytes.split_at_mut(start);
        let (pair, known) = (entry::read::<K, V>(from), entry::read::<K, V>(&before[place..]));
        let is_same = K::equal(pair.key, known.key);
        if is_same {
            let combined = combine(V::own(known.value), V::own(pair.value));
            let value = place + known.bytes - Self::VALUE_BYTES..place + known.bytes;
            V::write(V::lend(&combined), &mut before[value]);
        }
        is_same
    }

    #[inline(always)]
    fn move_up(&mut self, start: usize, bytes: usize, end: usize) {
        if bytes <= SHORT_PAIR && start - end >= SHORT_PAIR && start + SHORT_PAIR <= self.bytes.len() {
            // What is too much lands where nothing is needed any more.
            let pair: [u8; SHORT_PAIR] = self.bytes[start..start + SHORT_PAIR].try_into().expect("so many");
            self.bytes[end..end + SHORT_PAIR].copy_from_slice(&pair);
        } else if start != end {
            self.bytes.copy_within(start..start + bytes, end);
        }
    }

    /// Gives memory back that nothing waits for.
    pub fn trim(&mut self) {
        if self.bytes.len() < self.bytes.capacity() / 2 {
            self.bytes.shrink_to_fit();
            self.populated_bytes = self.populated_bytes.min(self.bytes.capacity());
        }
    }

    /// Forgets all pairs and keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        (self.combined_bytes, self.combined_pairs, self.waiting_pairs) = (0, 0, 0);
    }

    /// Number of pairs; of keys, when nothing waits.
    pub fn len(&self) -> usize {
        self.combined_pairs + self.waiting_pairs
    }

    /// All pairs, one behind the other.
    #[inline(always)]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Bytes of the pairs that are combined.
    pub fn combined_bytes(&self) -> usize {
        self.combined_bytes
    }

    /// All pairs with their places.
    pub fn pairs(&self) -> impl Iterator<Item = (usize, Entry<'_, K, V>)> {
        entry::pairs(&self.bytes)
    }
}
