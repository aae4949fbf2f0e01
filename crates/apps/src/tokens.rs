//! Finds tokens 64 bytes at a time. One bit per byte says whether the byte belongs to a token; a change between
//! neighbouring bits is an edge, where a token begins or ends.
//!
//! Edges are first listed, then paired. Listing has one branch per block that depends on the text, and pairing has
//! none. This makes it several times faster than examining each byte.

use wide::i8x16;

pub(crate) const BLOCK_BYTES: usize = 64;
/// The amount of text whose edges are listed at a time, so that the list stays in the first-level cache.
const STRETCH_BYTES: usize = 64 * BLOCK_BYTES;

/// Calls `visit` with the bounds of every maximal run of bytes for which `belongs` sets a bit, some hundred at a
/// time.
///
/// `belongs` also receives whether the byte before the block belongs to a token (1) or not (0).
#[inline(always)]
pub(crate) fn for_tokens(
    text: &[u8],
    belongs: impl Fn(&[u8; BLOCK_BYTES], u64) -> u64,
    mut visit: impl FnMut(&[[u32; 2]]),
) {
    // Room for the start of a token that crosses the stretch's end, and for one block's surplus.
    let mut edges = [0_u32; 1 + STRETCH_BYTES + BLOCK_BYTES];
    let mut found = 0;
    let mut inside = 0;
    let stretches = text.len().div_ceil(STRETCH_BYTES);
    for (number, stretch) in text.chunks(STRETCH_BYTES).enumerate() {
        // 1. List.
        let (blocks, rest) = stretch.as_chunks::<BLOCK_BYTES>();
        let mut padded = [[b' '; BLOCK_BYTES]];
        padded[0][..rest.len()].copy_from_slice(rest);
        let last = &padded[..usize::from(!rest.is_empty())];
        let mut at = (number * STRETCH_BYTES) as u32;
        for blocks in [blocks, last] {
            for block in blocks {
                let bits = belongs(block, inside);
                let changes = bits ^ (bits << 1 | inside);
                inside = bits >> 63;
                found += list_ones(changes, at, &mut edges[found..]);
                at += BLOCK_BYTES as u32;
            }
        }
        if number + 1 == stretches && found % 2 == 1 {
            edges[found] = text.len() as u32;
            found += 1;
        }
        // 2. Pair.
        let (pairs, unfinished) = edges[..found].as_chunks::<2>();
        visit(pairs);
        found = unfinished.len();
        if let Some(start) = unfinished.first() {
            edges[0] = *start;
        }
    }
}

/// Writes `base` plus the position of each one bit to the front of `to`. Returns the number of ones.
#[inline(always)]
fn list_ones(mut bits: u64, base: u32, to: &mut [u32]) -> usize {
    let ones = bits.count_ones() as usize;
    let (to, _) = to.as_chunks_mut::<8>();
    // Writes eight at a time without a check; the next block overwrites the surplus.
    for eight in &mut to[..ones.div_ceil(8)] {
        for place in eight {
            // For zero the position does not matter, and handling it without a branch saves instructions.
            *place = base.wrapping_add((bits | 1 << 63).trailing_zeros());
            bits &= bits.wrapping_sub(1);
        }
    }
    ones
}

/// Words by Phoenix's rule: a letter, then letters and apostrophes. The text is in upper case already.
#[inline(always)]
pub(crate) fn upper_letters(block: &[u8; BLOCK_BYTES], inside: u64) -> u64 {
    let letters = bits(block, |bytes| in_range(bytes, b'A', b'Z'));
    let apostrophes = bits(block, |bytes| bytes.simd_eq(i8x16::splat(b'\'' as i8)));
    let both = letters | apostrophes;
    // Apostrophes without a letter before them belong to no word. Adding the first bit of such a run to the run makes
    // a carry that clears it.
    let leading = apostrophes & !(both << 1 | inside);
    both & !(apostrophes & !apostrophes.wrapping_add(leading))
}

/// Whether a byte is ASCII white space: tab, line feed, vertical tab, form feed, carriage return or space, as
/// `isspace` of C says. [`u8::is_ascii_whitespace`] leaves out the vertical tab.
pub(crate) fn is_space(byte: u8) -> bool {
    matches!(byte, b'\t'..=b'\r' | b' ')
}

/// Everything but ASCII white space ([`is_space`]).
#[inline(always)]
pub(crate) fn not_space(block: &[u8; BLOCK_BYTES], _inside: u64) -> u64 {
    !bits(block, |bytes| in_range(bytes, b'\t', b'\r') | bytes.simd_eq(i8x16::splat(b' ' as i8)))
}

/// Everything but the ASCII characters at which `str.split()` of Python cuts text: 9 to 13, and 28 to 32.
#[inline(always)]
pub(crate) fn not_separator(block: &[u8; BLOCK_BYTES], _inside: u64) -> u64 {
    !bits(block, |bytes| in_range(bytes, b'\t', b'\r') | in_range(bytes, 0x1c, b' '))
}

/// Returns all ones where a byte lies in `first..=last`. Shifting the range to begin at the least signed number makes
/// one comparison enough.
#[inline(always)]
fn in_range(bytes: i8x16, first: u8, last: u8) -> i8x16 {
    (bytes - i8x16::splat((first ^ 0x80) as i8)).simd_lt(i8x16::splat(((last - first + 1) ^ 0x80) as i8))
}

/// Returns one bit per byte: the sign that `belongs` computes.
#[inline(always)]
pub(crate) fn bits(block: &[u8; BLOCK_BYTES], belongs: impl Fn(i8x16) -> i8x16) -> u64 {
    let (quarters, _) = block.as_chunks::<16>();
    quarters.iter().enumerate().fold(0, |bits, (number, quarter)| {
        let signs = belongs(i8x16::new(quarter.map(|byte| byte as i8))).to_bitmask();
        bits | u64::from(signs as u16) << (number * 16)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn tokens(text: &[u8], belongs: impl Fn(&[u8; BLOCK_BYTES], u64) -> u64) -> Vec<&[u8]> {
        let mut found = Vec::new();
        for_tokens(text, belongs, |places| {
            found.extend(places.iter().map(|[start, end]| &text[*start as usize..*end as usize]));
        });
        found
    }

    fn plain_words(text: &[u8]) -> Vec<&[u8]> {
        text.split(|byte| b" \t\n\x0b\x0c\r".contains(byte)).filter(|token| !token.is_empty()).collect()
    }

    proptest! {
        #[test]
        fn tokens_are_those_of_a_plain_split(
            text in prop::collection::vec(prop::sample::select(b"AZ'@[ \t\n\x0b\x0c\r\0\xff9".to_vec()), 0..300)
        ) {
            let letters = text.split(|b| !b.is_ascii_uppercase() && *b != b'\'').map(|token| {
                &token[token.iter().position(|b| *b != b'\'').unwrap_or(token.len())..]
            });
            let letters: Vec<_> = letters.filter(|token| !token.is_empty()).collect();
            prop_assert_eq!(tokens(&text, upper_letters), letters);
            prop_assert_eq!(tokens(&text, not_space), plain_words(&text));
        }
    }

    #[test]
    fn tokens_may_cross_stretches_and_blocks_may_be_full_of_edges() {
        let mut text = vec![b'x'; 3 * STRETCH_BYTES + 5];
        text.extend(b" a".repeat(STRETCH_BYTES));
        assert_eq!(tokens(&text, not_space), plain_words(&text));
        text.push(b' ');
        assert_eq!(tokens(&text, not_space), plain_words(&text));
    }

    #[test]
    fn bytes_are_classified_like_the_standard_library() {
        for byte in 0..=255 {
            let space = not_space(&[byte; BLOCK_BYTES], 0) == 0;
            // A vertical tab did not part words, though wc, C and Python say so.
            assert_eq!(space, byte.is_ascii_whitespace() || byte == 0x0b, "byte {byte}");
            assert_eq!(space, is_space(byte), "byte {byte}");
            let letter = upper_letters(&[byte; BLOCK_BYTES], 0) != 0;
            assert_eq!(letter, byte.is_ascii_uppercase(), "byte {byte}");
        }
    }
}
