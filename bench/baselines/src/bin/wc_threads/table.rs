//! An open-addressing table from words to counts. Keys of up to 16 bytes are stored in the slot. Longer ones are
//! stored by the caller, and the slot has their address.

use crate::memory::Zeroed;

/// The maximum length of keys that are stored and compared as two words.
pub const SHORT: usize = 16;

/// ```text
///  0        8        16     20     24       32
///  | key 0  | key 1  | hash | len  | count  |      len <= 16: the key, padded with zeros
///  | bytes  | hash   | hash | len  | count  |      len > 16: address of the bytes, their whole hash
/// ```
/// A slot with len 0 is empty.
#[derive(Clone, Copy)]
#[repr(C, align(32))]
pub struct Slot {
    pub key: [u64; 2],
    pub hash: u32,
    pub len: u32,
    pub count: u64,
}

impl Slot {
    /// The key's bytes.
    pub fn bytes(&self) -> &[u8] {
        let start = if self.len as usize <= SHORT { self.key.as_ptr().cast() } else { self.key[0] as *const u8 };
        // SAFETY: short keys are in the slot; for long ones `key[0]` is the address of `len` bytes that outlive the
        // table.
        unsafe { std::slice::from_raw_parts(start, self.len as usize) }
    }
}

pub struct Table {
    slots: *mut Slot,
    _memory: Zeroed,
    bits: u32,
    /// The hash bits above the index, which all keys of a table share.
    skip: u32,
    used: usize,
}

impl Table {
    /// Makes a table of 2^bits slots, indexed by the hash bits below the highest `skip`.
    pub fn new(bits: u32, skip: u32) -> Self {
        let memory = Zeroed::new(size_of::<Slot>() << bits);
        Self { slots: memory.start().cast(), _memory: memory, bits, skip, used: 0 }
    }

    /// The number of keys.
    pub fn len(&self) -> usize {
        self.used
    }

    /// Returns true if `more` keys fit below the load (5/8) at which probe sequences become long.
    #[inline(always)]
    pub fn has_room(&self, more: usize) -> bool {
        self.used + more <= (5 << self.bits) / 8
    }

    #[inline(always)]
    fn home(&self, hash: u32) -> usize {
        ((hash << self.skip) >> (32 - self.bits)) as usize
    }

    /// Prefetches the key's slot.
    #[inline(always)]
    pub fn prefetch(&self, hash: u32) {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: a prefetch reads nothing, and the address is inside the table anyway.
        unsafe {
            use std::arch::x86_64::*;
            _mm_prefetch::<_MM_HINT_T0>(self.slots.add(self.home(hash)).cast());
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = hash;
    }

    /// Adds to the count of a key of at most 16 bytes. There must be room.
    #[inline(always)]
    pub fn add_short(&mut self, key: [u64; 2], hash: u32, len: u32, count: u64) {
        let mask = (1usize << self.bits) - 1;
        let mut index = self.home(hash);
        loop {
            // SAFETY: the index is masked to the table, and no other reference exists.
            let slot = unsafe { &mut *self.slots.add(index) };
            if (slot.key[0] ^ key[0]) | (slot.key[1] ^ key[1]) | u64::from(slot.len ^ len) == 0 {
                slot.count += count;
                return;
            }
            if slot.len == 0 {
                *slot = Slot { key, hash, len, count };
                self.used += 1;
                return;
            }
            index = (index + 1) & mask;
        }
    }

    /// Adds to the count of a longer key. `keep` moves the bytes of a new key to stable memory.
    #[inline(always)]
    pub fn add_long(
        &mut self,
        bytes: &[u8],
        whole_hash: u64,
        hash: u32,
        count: u64,
        keep: impl FnOnce(&[u8]) -> *const u8,
    ) {
        let mask = (1usize << self.bits) - 1;
        let len = bytes.len() as u32;
        let mut index = self.home(hash);
        loop {
            // SAFETY: the index is masked to the table, and no other reference exists.
            let slot = unsafe { &mut *self.slots.add(index) };
            if slot.len == len && slot.key[1] == whole_hash && slot.bytes() == bytes {
                slot.count += count;
                return;
            }
            if slot.len == 0 {
                *slot = Slot { key: [keep(bytes) as u64, whole_hash], hash, len, count };
                self.used += 1;
                return;
            }
            index = (index + 1) & mask;
        }
    }

    /// Returns the keys in the order of their highest hash bits (except those displaced by probing).
    pub fn iter(&self) -> impl Iterator<Item = &Slot> {
        // SAFETY: the slots were zeroed when mapped, and zero is a valid slot.
        unsafe { std::slice::from_raw_parts(self.slots, 1 << self.bits) }.iter().filter(|slot| slot.len != 0)
    }

    /// Empties the table.
    pub fn clear(&mut self) {
        // SAFETY: this is exactly the whole table.
        unsafe { self.slots.write_bytes(0, 1 << self.bits) };
        self.used = 0;
    }

    /// Doubles the number of slots.
    pub fn grow(&mut self) {
        let mut larger = Self::new(self.bits + 1, self.skip);
        let mask = (1usize << larger.bits) - 1;
        for slot in self.iter() {
            let mut index = larger.home(slot.hash);
            // SAFETY: the index is masked to the new table, which has room for all keys of the old one.
            unsafe {
                while (*larger.slots.add(index)).len != 0 {
                    index = (index + 1) & mask;
                }
                *larger.slots.add(index) = *slot;
            }
        }
        larger.used = self.used;
        *self = larger;
    }
}
