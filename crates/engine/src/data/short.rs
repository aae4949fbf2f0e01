//! Short keys: at most 16 bytes, which are compared and hashed as two words.

use std::ops::Range;

/// The length up to which keys are compared and hashed as two words.
pub const SHORT_BYTES: usize = 16;

/// A short key: its bytes as little-endian words, padded with zeros.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Short {
    /// The bytes.
    pub words: [u64; 2],
    /// The length of the key in bytes.
    pub len: u32,
}

/// For each length, the bits that belong to a key of that length.
const MASKS: [[u64; 2]; SHORT_BYTES + 1] = {
    let mut masks = [[0; 2]; SHORT_BYTES + 1];
    let mut len = 0;
    while len <= SHORT_BYTES {
        let bits = if len == 16 { u128::MAX } else { (1 << (len * 8)) - 1 };
        masks[len] = [bits as u64, (bits >> 64) as u64];
        len += 1;
    }
    masks
};

impl Short {
    /// Returns the bytes of `text` in `range`. Fast when 16 bytes of text follow the start of the range.
    #[inline(always)]
    pub fn within(text: &[u8], range: Range<usize>) -> Option<Short> {
        let len = range.end - range.start;
        if len > SHORT_BYTES {
            return None;
        }
        Some(match text.get(range.start..range.start + SHORT_BYTES) {
            Some(sixteen) => {
                let mask = MASKS[len];
                Short { words: [word8(sixteen, 0) & mask[0], word8(sixteen, 8) & mask[1]], len: len as u32 }
            }
            None => Short::of(&text[range]),
        })
    }

    /// Returns the short key with these bytes, at most 16.
    #[inline(always)]
    pub(crate) fn of(key: &[u8]) -> Short {
        let n = key.len();
        let words = if n >= 8 {
            // Two overlapping words; the bytes that the second repeats are shifted out.
            let high = word8(key, n - 8).unbounded_shr(8 * (16 - n as u32));
            [word8(key, 0), high]
        } else if n >= 4 {
            [u64::from(word4(key, 0)) | u64::from(word4(key, n - 4)) << (8 * (n - 4)), 0]
        } else if n > 0 {
            let (first, middle, last) = (u64::from(key[0]), u64::from(key[n / 2]), u64::from(key[n - 1]));
            [first | middle << (8 * (n / 2)) | last << (8 * (n - 1)), 0]
        } else {
            [0, 0]
        };
        Short { words, len: n as u32 }
    }

    /// Returns the short key of the first `len` of 16 bytes, of which the others are zero.
    #[inline(always)]
    pub(crate) fn padded(bytes: &[u8; SHORT_BYTES], len: usize) -> Short {
        Short { words: [word8(bytes, 0), word8(bytes, 8)], len: len as u32 }
    }

    /// Returns the key's bytes, padded with zeros.
    #[inline(always)]
    pub fn bytes(self) -> [u8; SHORT_BYTES] {
        (u128::from(self.words[0]) | u128::from(self.words[1]) << 64).to_le_bytes()
    }
}

#[inline(always)]
pub(crate) fn word8(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

#[inline(always)]
pub(crate) fn word4(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}
