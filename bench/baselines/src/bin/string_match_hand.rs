//! String match by hand: counts the lines of a words file that equal each line of a keys file. Prints `key\tcount`.

use baselines::{arguments, blocks, fail, with_simd};
use hashbrown::HashMap;

/// The keys. A one-bit test on the first eight bytes and the length rejects most words; the rest are looked up.
struct Keys {
    sieve: Box<[u64; SIEVE_BITS / 64]>,
    places: HashMap<Vec<u8>, usize>,
}

const SIEVE_BITS: usize = 1 << 16;

/// Returns the bit of a word. `start` holds at least its first eight bytes.
#[inline(always)]
fn sieve_bit(start: [u8; 8], len: usize) -> usize {
    let mask = if len >= 8 { u64::MAX } else { (1 << (8 * len)) - 1 };
    let mixed = ((u64::from_le_bytes(start) & mask) ^ (len as u64) << 59).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> (64 - SIEVE_BITS.ilog2())) as usize
}

struct Found<'a> {
    keys: &'a Keys,
    counts: Vec<u64>,
}

with_simd!(
    fn search(found: &mut Found<'_>, text: &[u8]) {
        search_inlined
    }
);

#[inline(always)]
fn search_inlined(found: &mut Found<'_>, text: &[u8]) {
    let mut start = 0;
    let (blocks, rest) = text.as_chunks::<64>();
    for (index, block) in blocks.iter().enumerate() {
        let mut ends = line_ends(block);
        while ends != 0 {
            let end = 64 * index + ends.trailing_zeros() as usize;
            test(found, text, start, end);
            start = end + 1;
            ends &= ends - 1;
        }
    }
    let done = text.len() - rest.len();
    for (index, _) in rest.iter().enumerate().filter(|(_, byte)| **byte == b'\n') {
        test(found, text, start, done + index);
        start = done + index + 1;
    }
}

/// Returns one bit per line end.
#[inline(always)]
fn line_ends(block: &[u8; 64]) -> u64 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: SSE2 is part of x86-64, and the four loads of 16 bytes lie within the 64.
    unsafe {
        use std::arch::x86_64::*;
        let row = |at: usize| {
            let bytes = _mm_loadu_si128(block.as_ptr().add(at).cast());
            u64::from(_mm_movemask_epi8(_mm_cmpeq_epi8(bytes, _mm_set1_epi8(b'\n' as i8))) as u32) << at
        };
        row(0) | row(16) | row(32) | row(48)
    }
    #[cfg(not(target_arch = "x86_64"))]
    block.iter().enumerate().fold(0, |mask, (bit, &byte)| mask | u64::from(byte == b'\n') << bit)
}

#[inline(always)]
fn test(found: &mut Found<'_>, text: &[u8], start: usize, end: usize) {
    let first = text[start..].first_chunk::<8>().copied().unwrap_or_else(|| padded(&text[start..]));
    let bit = sieve_bit(first, end - start);
    if found.keys.sieve[bit / 64] >> (bit % 64) & 1 == 1 {
        let word = text[start..end].strip_suffix(b"\r").unwrap_or(&text[start..end]);
        if let Some(&place) = found.keys.places.get(word) {
            found.counts[place] += 1;
        }
    }
}

#[cold]
fn padded(bytes: &[u8]) -> [u8; 8] {
    std::array::from_fn(|at| bytes.get(at).copied().unwrap_or(0))
}

fn main() -> std::io::Result<()> {
    let ([keys_path, words_path], [threads]) =
        arguments("string_match_hand KEYS WORDS [--threads N]", [("--threads", "2")]);
    let threads = threads.parse().unwrap_or_else(|_| fail("--threads needs a number"));
    let text = std::fs::read(&keys_path)?;
    let lines = || {
        text.split(|&byte| byte == b'\n')
            .map(|key| key.strip_suffix(b"\r").unwrap_or(key))
            .filter(|key| !key.is_empty())
    };
    let mut keys = Keys { sieve: Box::new([0; SIEVE_BITS / 64]), places: HashMap::new() };
    for key in lines() {
        let place = keys.places.len();
        keys.places.entry_ref(key).or_insert(place);
        // A line may end with a carriage return, which makes it one byte longer.
        for end in [&b""[..], b"\r"] {
            let line = [key, end].concat();
            let bit = sieve_bit(padded(&line), line.len());
            keys.sieve[bit / 64] |= 1 << (bit % 64);
        }
    }
    let new = || Found { keys: &keys, counts: vec![0; keys.places.len()] };
    let all = blocks::each_of_lines(&words_path, 256 << 10, threads, new, search)?;
    for key in lines() {
        let place = keys.places[key];
        println!("{}\t{}", String::from_utf8_lossy(key), all.iter().map(|found| found.counts[place]).sum::<u64>());
    }
    Ok(())
}
