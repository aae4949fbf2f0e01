//! String match: counts the lines of some files that equal each line of a keys file.
//!
//! A one-bit test on a line's first eight bytes and its length rejects nearly every line; the rest are looked up.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io;
use std::path::Path;

use gristmill::files::Memory;
use gristmill::{Chunk, Emit, Encoding, Input, Job, MapReduce, Outcome, ProgramError, Records, Summary};
use gristmill_os::vectors::with_widest;
use wide::i8x16;

use crate::error::{Error, Result};
use crate::tokens::{BLOCK_BYTES, bits};

/// Each key with the number of lines that equal it.
pub type Counts<'k> = Vec<(&'k [u8], u64)>;

const SIEVE_BITS: usize = 1 << 16;

/// The memory for a key, not counting its bytes, which are stored twice.
const KEY_BYTES: u64 = 160;

/// The keys to look for. A carriage return at the end of a key or an input line is ignored; empty keys are skipped.
pub struct Keys {
    keys: Vec<Vec<u8>>,
    places: HashMap<Vec<u8>, u32>,
    sieve: Box<[u64; SIEVE_BITS / 64]>,
}

impl Keys {
    /// Reads keys from the lines of a file, which may be compressed, and in UTF-16 if it begins with its mark.
    /// Duplicate keys count once.
    ///
    /// # Errors
    /// The file cannot be read, has no keys, or needs more than `memory` allows.
    pub fn read(path: &Path, memory: Memory) -> Result<Keys> {
        Keys::read_from(path, Input::paths([path]).memory(memory.bytes() as usize))
    }

    /// Reads keys as [`Keys::read`] does, from an input that is this file and has the memory and the deadline of the
    /// job.
    ///
    /// # Errors
    /// As for [`Keys::read`], and the deadline.
    pub fn read_from(path: &Path, input: Input) -> Result<Keys> {
        let memory = input.program_memory();
        let failed = |error: io::Error| Error::file(path, format!("cannot read the keys: {error}"));
        if path.is_dir() {
            return Err(failed(io::ErrorKind::IsADirectory.into()));
        }
        let mut text = Vec::new();
        let of_the_keys = |error| match error {
            gristmill::Error::Input { source, .. } => failed(source),
            other => other.into(),
        };
        // A pipe is read directly: a copy of an endless one would fill the disk.
        let mut input = input.read_once(true).encoding(Encoding::default());
        for source in input.look().map_err(of_the_keys)? {
            text = source.open_text().and_then(|file| memory.share(8).read(file)).map_err(failed)?;
        }
        let lines = 1 + memchr::memchr_iter(b'\n', &text).count() as u64;
        let kept_bytes = lines * KEY_BYTES + 2 * text.len() as u64;
        let too_large = |too_large| Error::file(path, format!("to keep its {lines} keys {too_large}"));
        memory.share(2).allow(kept_bytes).map_err(too_large)?;
        let keys = Keys::new(text.split(|byte| *byte == b'\n'));
        if keys.keys.is_empty() {
            return Err(Error::file(path, "there is no key in it: a keys file has one key per line"));
        }
        Ok(keys)
    }

    /// Returns whether all keys are UTF-8. Others are in no line of text that is decoded ([`Input::encoding`]).
    pub fn are_utf8(&self) -> bool {
        self.keys.iter().all(|key| str::from_utf8(key).is_ok())
    }

    /// Makes keys from lines.
    pub fn new<'k>(lines: impl IntoIterator<Item = &'k [u8]>) -> Keys {
        let mut keys = Keys { keys: Vec::new(), places: HashMap::new(), sieve: Box::new([0; SIEVE_BITS / 64]) };
        for line in lines {
            let key = line.strip_suffix(b"\r").unwrap_or(line);
            if key.is_empty() {
                continue;
            }
            if let Entry::Vacant(place) = keys.places.entry(key.to_vec()) {
                place.insert(keys.keys.len() as u32);
                keys.keys.push(key.to_vec());
                // A line may end with a carriage return, which makes it one byte longer.
                for end in [&b""[..], b"\r"] {
                    let line = [key, end].concat();
                    let bit = sieve_bit(first_eight(&line, 0), line.len());
                    keys.sieve[bit / 64] |= 1 << (bit % 64);
                }
            }
        }
        keys
    }

    /// Counts the lines of `input` that equal each key, in the order of the keys; `run` runs the job.
    ///
    /// # Errors
    /// An error of `run`.
    pub fn count<E>(
        &self,
        input: Input,
        run: impl FnOnce(Job<'_, Keys>) -> std::result::Result<Outcome<Keys>, E>,
    ) -> std::result::Result<(Counts<'_>, Summary), E> {
        let kept_bytes = self.keys.iter().map(|key| KEY_BYTES as usize + 2 * key.len()).sum();
        let (found, summary) = run(Job::new(self, input).holds(kept_bytes, 0).records(Records::Lines))?;
        let mut counts: Vec<_> = self.keys.iter().map(|key| (&key[..], 0)).collect();
        found.iter().for_each(|(place, count)| counts[place as usize].1 = count);
        Ok((counts, summary))
    }

    #[inline(always)]
    fn search(&self, text: &[u8], out: &mut impl Emit<u32, u64>) {
        let newline = i8x16::splat(b'\n' as i8);
        let mut start = 0;
        let mut line_ends_at = |end: usize| {
            let bit = sieve_bit(first_eight(text, start), end - start);
            if self.sieve[bit / 64] >> (bit % 64) & 1 == 1 {
                self.look_up(&text[start..end], out);
            }
            start = end + 1;
        };
        let (blocks, rest) = text.as_chunks::<BLOCK_BYTES>();
        for (number, block) in blocks.iter().enumerate() {
            let mut ends = bits(block, |bytes| bytes.simd_eq(newline));
            while ends != 0 {
                line_ends_at(number * BLOCK_BYTES + ends.trailing_zeros() as usize);
                ends &= ends - 1;
            }
        }
        let done = text.len() - rest.len();
        memchr::memchr_iter(b'\n', rest).for_each(|at| line_ends_at(done + at));
        if text.last().is_some_and(|last| *last != b'\n') {
            line_ends_at(text.len());
        }
    }

    #[cold]
    fn look_up(&self, line: &[u8], out: &mut impl Emit<u32, u64>) {
        if let Some(place) = self.places.get(line.strip_suffix(b"\r").unwrap_or(line)) {
            out.emit(*place, 1);
        }
    }
}

impl MapReduce for Keys {
    type Key = u32;
    type Value = u64;

    fn keys(&self) -> Option<usize> {
        Some(self.keys.len())
    }

    fn combiner(&self) -> Option<impl Fn(u64, u64) -> u64> {
        Some(|a, b| a + b)
    }

    fn map(&self, chunk: &mut Chunk<'_>, out: &mut impl Emit<u32, u64>) -> Result<(), ProgramError> {
        with_widest(|| self.search(chunk.bytes(), out));
        Ok(())
    }
}

/// Returns the bit for a line with these first eight bytes and this length. Bytes after the line's end are ignored.
#[inline(always)]
fn sieve_bit(first: [u8; 8], len: usize) -> usize {
    let mask = if len >= 8 { u64::MAX } else { (1 << (8 * len)) - 1 };
    // Any odd number without a pattern works; these are digits of the golden ratio.
    let mixed = ((u64::from_le_bytes(first) & mask) ^ (len as u64) << 59).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> (64 - SIEVE_BITS.ilog2())) as usize
}

/// Returns eight bytes of `text` from `start`, padded with zeros.
#[inline(always)]
fn first_eight(text: &[u8], start: usize) -> [u8; 8] {
    match text[start..].first_chunk() {
        Some(eight) => *eight,
        None => std::array::from_fn(|at| text.get(start + at).copied().unwrap_or(0)),
    }
}
