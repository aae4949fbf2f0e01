//! Finds tokens 64 bytes at a time: a bit per byte says whether it belongs to a token, and each change
//! from one bit to the next is where a token begins or ends.

use std::ops::Range;

/// Calls `visit` with the place of every maximal run of bytes for which `belongs` has a bit set.
#[inline(always)]
pub(crate) fn for_each_token(
    text: &[u8],
    belongs: impl Fn(&[u8; 64], u64) -> u64,
    mut visit: impl FnMut(Range<usize>),
) {
    let mut start = 0;
    let mut inside = 0u64; // 1 while the byte before the block belongs to a token
    let mut block = |at: usize, bytes: &[u8; 64]| {
        let bits = belongs(bytes, inside);
        let mut changes = bits ^ (bits << 1 | inside);
        let mut within = inside != 0;
        inside = bits >> 63;
        while changes != 0 {
            let place = at + changes.trailing_zeros() as usize;
            if within {
                visit(start..place);
            } else {
                start = place;
            }
            within = !within;
            changes &= changes - 1;
        }
    };
    let (blocks, rest) = text.as_chunks::<64>();
    for (number, bytes) in blocks.iter().enumerate() {
        block(number * 64, bytes);
    }
    if !rest.is_empty() {
        // Zero belongs to no alphabetic token, and the white-space rule below is told where the text ends.
        let mut padded = [b' '; 64];
        padded[..rest.len()].copy_from_slice(rest);
        block(blocks.len() * 64, &padded);
    }
    if inside != 0 {
        visit(start..text.len());
    }
}

/// Bits of words by the rule of Phoenix, in upper case already: a letter, then letters and apostrophes.
#[inline(always)]
pub(crate) fn upper_letters(bytes: &[u8; 64], inside: u64) -> u64 {
    let letters = bits(bytes, |byte| byte.wrapping_sub(b'A') < 26);
    let apostrophes = bits(bytes, |byte| byte == b'\'');
    let both = letters | apostrophes;
    // Apostrophes with no letter before them belong to no word. Adding the first bit of such a row to the row
    // makes a carry run through it, which clears it.
    let leading = apostrophes & !(both << 1 | inside);
    both & !(apostrophes & !apostrophes.wrapping_add(leading))
}

/// Bits of everything but ASCII white space.
#[inline(always)]
pub(crate) fn not_space(bytes: &[u8; 64], _inside: u64) -> u64 {
    !bits(bytes, |byte| byte == b' ' || byte.wrapping_sub(9) < 5 && byte != 11)
}

/// One bit per byte. The compiler turns the loop into comparisons of many bytes at once.
#[inline(always)]
fn bits(bytes: &[u8; 64], belongs: impl Fn(u8) -> bool) -> u64 {
    let mut marks = [0u8; 64];
    for (mark, byte) in marks.iter_mut().zip(bytes) {
        *mark = u8::from(belongs(*byte));
    }
    gather(&marks)
}

/// Gathers one bit of each byte: for eight bytes of 0 or 1, the multiplication moves bit `8 i` to bit `56 + i`.
#[inline(always)]
fn gather(marks: &[u8; 64]) -> u64 {
    marks.as_chunks::<8>().0.iter().enumerate().fold(0, |bits, (number, eight)| {
        let byte = u64::from_le_bytes(*eight).wrapping_mul(0x0102_0408_1020_4080) >> 56;
        bits | byte << (number * 8)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn tokens(text: &[u8], belongs: impl Fn(&[u8; 64], u64) -> u64) -> Vec<&[u8]> {
        let mut found = Vec::new();
        for_each_token(text, belongs, |token| found.push(&text[token]));
        found
    }

    proptest! {
        #[test]
        fn tokens_are_those_of_a_plain_split(text in prop::collection::vec(prop::sample::select(b"AZ'@[ \t\n\x0b\x0c\r\0\xff9".to_vec()), 0..300)) {
            let letters = text.split(|b| !b.is_ascii_uppercase() && *b != b'\'').map(|t| {
                &t[t.iter().position(|b| *b != b'\'').unwrap_or(t.len())..]
            });
            prop_assert_eq!(tokens(&text, upper_letters), letters.filter(|t| !t.is_empty()).collect::<Vec<_>>());
            let words: Vec<_> = text.split(u8::is_ascii_whitespace).filter(|t| !t.is_empty()).collect();
            prop_assert_eq!(tokens(&text, not_space), words);
        }
    }
}
