//! Finds where tokens start and end: 64 bytes at a time become bit masks, whose edges become offsets.

/// The block size. The buffer must be readable, and white, up to the end of the last whole block.
pub const BLOCK: usize = 64;

/// The state carried from one block to the next.
#[derive(Default)]
pub struct Carry {
    inside: u64,
}

/// Appends the offsets where tokens start and end, alternately; the last token may end in a later call. `edges` needs
/// spare room for `BLOCK` entries per block.
#[inline(always)]
pub fn find<const ALPHA: bool>(text: &[u8], at: usize, carry: &mut Carry, edges: &mut Vec<u32>) {
    debug_assert!(text.len().is_multiple_of(BLOCK));
    edges.reserve(text.len() + BLOCK);
    let mut count = edges.len();
    let out = edges.as_mut_ptr();
    for (index, block) in text.as_chunks::<BLOCK>().0.iter().enumerate() {
        let token = if ALPHA {
            let (letters, apostrophes) = alpha_masks(block);
            // A token starts with a letter, so apostrophes at the start of a run are dropped. Adding the first bit of
            // such a run to the run makes a carry that clears it.
            let class = letters | apostrophes;
            let leading = apostrophes & class & !(class << 1 | carry.inside);
            class & !(apostrophes & !apostrophes.wrapping_add(leading))
        } else {
            !space_mask(block)
        };
        let mut edge = token ^ (token << 1 | carry.inside);
        carry.inside = token >> 63;
        let base = (at + index * BLOCK) as u32;
        let ones = edge.count_ones() as usize;
        // Writes eight at a time without a check; the next block overwrites the surplus.
        let mut written = 0;
        while written < ones {
            for step in 0..8 {
                // SAFETY: at most 64 entries per block, rounded up to eights, fit the room reserved above.
                unsafe { *out.add(count + written + step) = base.wrapping_add(edge.trailing_zeros()) };
                edge &= edge.wrapping_sub(1);
            }
            written += 8;
        }
        count += ones;
    }
    // SAFETY: the entries up to `count` were written above.
    unsafe { edges.set_len(count) };
}

#[cfg(target_arch = "x86_64")]
mod masks {
    use std::arch::x86_64::*;

    #[inline(always)]
    fn rows(block: &[u8; 64]) -> [__m128i; 4] {
        // SAFETY: the four unaligned loads of 16 bytes lie within the 64.
        unsafe { std::array::from_fn(|row| _mm_loadu_si128(block.as_ptr().add(16 * row).cast())) }
    }

    #[inline(always)]
    fn mask(rows: [__m128i; 4]) -> u64 {
        // SAFETY: SSE2 is part of x86-64.
        let [a, b, c, d] = rows.map(|row| unsafe { _mm_movemask_epi8(row) } as u32 as u64);
        a | b << 16 | c << 32 | d << 48
    }

    #[inline(always)]
    pub fn alpha_masks(block: &[u8; 64]) -> (u64, u64) {
        let rows = rows(block);
        // SAFETY: SSE2 is part of x86-64.
        unsafe {
            // Letters: (byte | 0x20) - 'a' < 26, as a signed comparison after moving 0 to -128.
            let letters = rows.map(|row| {
                let lower = _mm_or_si128(row, _mm_set1_epi8(0x20));
                _mm_cmplt_epi8(_mm_add_epi8(lower, _mm_set1_epi8((0x80u8 - b'a') as i8)), _mm_set1_epi8(-128 + 26))
            });
            (mask(letters), mask(rows.map(|row| _mm_cmpeq_epi8(row, _mm_set1_epi8(b'\'' as i8)))))
        }
    }

    #[inline(always)]
    pub fn space_mask(block: &[u8; 64]) -> u64 {
        // SAFETY: SSE2 is part of x86-64.
        mask(rows(block).map(|row| unsafe {
            let control = _mm_sub_epi8(row, _mm_set1_epi8(9));
            let control = _mm_cmpeq_epi8(_mm_min_epu8(control, _mm_set1_epi8(4)), control);
            let vertical_tab = _mm_cmpeq_epi8(row, _mm_set1_epi8(11));
            _mm_or_si128(_mm_cmpeq_epi8(row, _mm_set1_epi8(b' ' as i8)), _mm_andnot_si128(vertical_tab, control))
        }))
    }
}

#[cfg(not(target_arch = "x86_64"))]
mod masks {
    fn mask(block: &[u8; 64], class: impl Fn(&u8) -> bool) -> u64 {
        block.iter().enumerate().fold(0, |mask, (bit, byte)| mask | u64::from(class(byte)) << bit)
    }

    pub fn alpha_masks(block: &[u8; 64]) -> (u64, u64) {
        (mask(block, u8::is_ascii_alphabetic), mask(block, |&byte| byte == b'\''))
    }

    pub fn space_mask(block: &[u8; 64]) -> u64 {
        mask(block, u8::is_ascii_whitespace)
    }
}

use masks::{alpha_masks, space_mask};
