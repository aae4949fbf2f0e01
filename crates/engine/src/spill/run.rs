//! A run: sorted pairs on disk, in blocks whose checksums are verified before any of their pairs is used.
//!
//! ```text
//!  block:  | magic, 4 | bytes of pairs, 4 | bytes stored, 4 | checksum, 4 | pairs, packed or as they are |
//! ```
//!
//! The checksum is the CRC-32 of the bytes before it and after it. The pairs have the same format as in a page
//! (`entry`). A block holds whole pairs; a pair larger than a block has its own block.
//!
//! Blocks are compressed with LZ4 if that saves at least an eighth, and more time than it takes. Both are measured: the
//! page cache takes a run faster than it can be compressed, but a disk takes it slower ([`pays`]). After a block that
//! does not pay, the next ones are written uncompressed for a while, so that incompressible data costs little.

use std::rc::Rc;

use gristmill_os::clock::monotonic_ns;

use crate::data::datum::{Datum, Key};
use crate::data::entry;
use crate::failure::Failure;
use crate::spill::spill_file::{FileRange, Spill};

const MAGIC: u32 = u32::from_le_bytes(*b"grun");
pub(crate) const HEADER_BYTES: usize = 16;
/// The number of blocks left uncompressed after one that did not pay.
const UNTRIED: u32 = 15;
/// Larger blocks, of one pair each, are not compressed: that would need as much memory again, both here and when they
/// are read.
const PACKED_BYTES_MAX: usize = 4 << 20;
/// The largest ratio by which LZ4 compresses.
const PACKED_MAX: usize = 255;

/// A finished run.
pub(crate) struct Run {
    extent: FileRange,
    /// The stored size of each block, so that one read fetches it whole.
    blocks: Vec<u32>,
}

impl Run {
    /// Finds the blocks of a run that another process wrote at `extent`.
    pub fn find(spill: &Spill, extent: FileRange) -> Result<Run, Failure> {
        let (mut blocks, mut at) = (Vec::new(), 0);
        while at < extent.bytes {
            let mut header = [0; HEADER_BYTES];
            spill.read(extent.folder, extent.start + at, &mut header)?;
            let bytes =
                HEADER_BYTES as u64 + u64::from(u32::from_le_bytes([header[8], header[9], header[10], header[11]]));
            // The checksum is verified when the block is read; here the header need only lead to the next block.
            if header[..4] != MAGIC.to_le_bytes() || bytes > extent.bytes - at {
                return Err(spill.damaged(extent.folder, extent.start + at));
            }
            blocks.push(bytes as u32);
            at += bytes;
        }
        Ok(Run { extent, blocks })
    }

    /// Returns the size in the file.
    pub fn bytes(&self) -> u64 {
        self.extent.bytes
    }

    /// Returns the size of its largest block, which must fit in memory while it is read.
    pub fn block_bytes_max(&self) -> usize {
        self.blocks.iter().max().map_or(0, |bytes| *bytes as usize)
    }
}

/// Writes a run.
pub(crate) struct RunWriter<'s> {
    spill: &'s Spill,
    extent: FileRange,
    blocks: Vec<u32>,
    block_bytes: usize,
    /// Room for a header, and the pairs of the current block.
    open: Vec<u8>,
    packed: Vec<u8>,
    /// The number of blocks until compression is tried again.
    untried: u32,
}

impl<'s> RunWriter<'s> {
    /// Begins a run whose blocks have about `block_bytes`. Until it is finished, nothing else may be written to its
    /// folder.
    pub fn new(spill: &'s Spill, block_bytes: usize) -> RunWriter<'s> {
        RunWriter::in_folder(spill, spill.next_folder(), block_bytes)
    }

    /// Begins a run in this folder.
    pub fn in_folder(spill: &'s Spill, folder: usize, block_bytes: usize) -> RunWriter<'s> {
        let extent = FileRange { folder, start: 0, bytes: 0 };
        let open = vec![0; HEADER_BYTES];
        RunWriter { spill, extent, blocks: Vec::new(), block_bytes, open, packed: Vec::new(), untried: 0 }
    }

    /// Appends a pair.
    pub fn push<K: Key, V: Datum>(&mut self, key: K::Ref<'_>, value: V::Ref<'_>) -> Result<(), Failure> {
        let bytes = entry::width::<K, V>(key, value);
        if self.open.len() + bytes > self.block_bytes && self.open.len() > HEADER_BYTES {
            self.write()?;
        }
        entry::append::<K, V>(0, key, value, &mut self.open);
        Ok(())
    }

    /// Appends a pair in the page format.
    #[inline(always)]
    pub fn push_entry(&mut self, entry: &[u8]) -> Result<(), Failure> {
        if self.open.len() + entry.len() > self.block_bytes && self.open.len() > HEADER_BYTES {
            self.write()?;
        }
        self.open.extend_from_slice(entry);
        Ok(())
    }

    /// Ends the run.
    pub fn finish(mut self) -> Result<Run, Failure> {
        if self.open.len() > HEADER_BYTES {
            self.write()?;
        }
        Ok(Run { extent: self.extent, blocks: self.blocks })
    }

    fn write(&mut self) -> Result<(), Failure> {
        let bytes = self.open.len() - HEADER_BYTES;
        let packed_bytes = self.pack();
        let block = match packed_bytes {
            Some(packed_bytes) => &mut self.packed[..HEADER_BYTES + packed_bytes],
            None => &mut self.open[..],
        };
        let stored = packed_bytes.unwrap_or(bytes);
        for (at, word) in [MAGIC, bytes as u32, stored as u32].iter().enumerate() {
            block[at * 4..][..4].copy_from_slice(&word.to_le_bytes());
        }
        let checksum = checksum(block);
        block[12..16].copy_from_slice(&checksum.to_le_bytes());
        let extent = self.spill.append(self.extent.folder, block)?;
        if self.open.capacity() > 2 * (HEADER_BYTES + self.block_bytes) {
            // A single long pair has filled the buffer; give its memory back.
            self.open = vec![0; HEADER_BYTES];
        }
        if self.blocks.is_empty() {
            self.extent.start = extent.start;
        }
        self.extent.bytes += extent.bytes;
        assert_eq!(self.extent.start + self.extent.bytes, extent.start + extent.bytes, "a run is written in one go");
        self.blocks.push(extent.bytes as u32);
        self.open.truncate(HEADER_BYTES);
        Ok(())
    }

    /// Compresses the current block; returns its compressed size if that pays.
    fn pack(&mut self) -> Option<usize> {
        if self.untried > 0 {
            self.untried -= 1;
            return None;
        }
        let pairs = &self.open[HEADER_BYTES..];
        if pairs.len() > PACKED_BYTES_MAX {
            return None;
        }
        let room = HEADER_BYTES + lz4_flex::block::get_maximum_output_size(pairs.len());
        if self.packed.len() < room {
            self.packed.resize(room, 0);
        }
        let began_ns = monotonic_ns();
        let packed = lz4_flex::block::compress_into(pairs, &mut self.packed[HEADER_BYTES..])
            .expect("there is room for what cannot be packed");
        let pack_ns = monotonic_ns() - began_ns;
        let pays = pays(pairs.len(), packed, pack_ns, self.spill.write_ns_per_byte());
        self.untried = if pays { 0 } else { UNTRIED };
        pays.then_some(packed)
    }
}

/// Returns whether compressing blocks like this one pays, which took `pack_ns`. A byte that is not written need not be
/// read either; decompressing takes about a quarter of the time.
fn pays(bytes: usize, packed_bytes: usize, pack_ns: u64, write_ns_per_byte: f64) -> bool {
    let saved_bytes = bytes.saturating_sub(packed_bytes);
    saved_bytes >= bytes / 8 && 2.0 * saved_bytes as f64 * write_ns_per_byte > 1.25 * pack_ns as f64
}

pub(crate) fn checksum(block: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&block[..12]);
    hasher.update(&block[HEADER_BYTES..]);
    hasher.finalize()
}

/// Reads a run pair by pair and gives its room in the file back.
pub(crate) struct RunReader<K, V> {
    spill: Rc<Spill>,
    run: Run,
    /// The next block to be read.
    next: usize,
    /// The offset of that block in the file.
    next_at: u64,
    /// A buffer for stored blocks, of which only the front may be in use.
    stored: Vec<u8>,
    /// The current block, if it was compressed.
    unpacked: Vec<u8>,
    is_packed: bool,
    /// The end of the block's pairs.
    pairs_end: usize,
    /// The beginning and the end of the current pair.
    at: usize,
    end: usize,
    kind: std::marker::PhantomData<(K, V)>,
}

impl<K: Key, V: Datum> RunReader<K, V> {
    /// Makes a reader at the first pair, if there is one.
    pub fn new(spill: Rc<Spill>, run: Run) -> Result<RunReader<K, V>, Failure> {
        let next_at = run.extent.start;
        let (stored, unpacked) = (Vec::new(), Vec::new());
        let kind = std::marker::PhantomData;
        let mut reader = RunReader {
            spill,
            run,
            next: 0,
            next_at,
            stored,
            unpacked,
            is_packed: false,
            pairs_end: 0,
            at: 0,
            end: 0,
            kind,
        };
        reader.advance()?;
        Ok(reader)
    }

    /// Returns the current pair; `None` after the last.
    #[inline(always)]
    pub fn pair(&self) -> Option<(K::Ref<'_>, V::Ref<'_>)> {
        if self.at == self.end {
            return None;
        }
        let pair = entry::read::<K, V>(&self.block()[self.at..self.end]);
        Some((pair.key, pair.value))
    }

    /// Advances to the next pair.
    #[inline(always)]
    pub fn advance(&mut self) -> Result<(), Failure> {
        self.at = self.end;
        if self.at == self.pairs_end {
            self.read_block()?;
            if self.at == self.pairs_end {
                return Ok(());
            }
        }
        self.end = self.at + entry::read::<K, V>(&self.block()[self.at..self.pairs_end]).bytes;
        Ok(())
    }

    /// Returns the current pair and the rest of its block, and advances to the next block.
    pub fn take_block(&mut self) -> Result<Option<Vec<u8>>, Failure> {
        if self.at == self.end {
            return Ok(None);
        }
        let block = self.block()[self.at..self.pairs_end].to_vec();
        self.end = self.pairs_end;
        self.advance()?;
        Ok(Some(block))
    }

    #[inline(always)]
    fn block(&self) -> &[u8] {
        if self.is_packed { &self.unpacked } else { &self.stored }
    }

    #[cold]
    fn read_block(&mut self) -> Result<(), Failure> {
        (self.at, self.end, self.pairs_end) = (0, 0, 0);
        let Some(bytes) = self.run.blocks.get(self.next).map(|bytes| *bytes as usize) else { return Ok(()) };
        let folder = self.run.extent.folder;
        // The buffer is zeroed only once, and overwritten from then on.
        if self.stored.len() < bytes {
            self.stored.resize(bytes, 0);
        }
        let block = &mut self.stored[..bytes];
        self.spill.read(folder, self.next_at, block)?;
        let stored = check(block).ok_or_else(|| self.spill.damaged(folder, self.next_at))?;
        self.is_packed = stored.is_packed;
        if stored.is_packed {
            self.unpacked.resize(stored.pairs_bytes, 0);
            let unpacked = lz4_flex::block::decompress_into(&block[HEADER_BYTES..], &mut self.unpacked);
            if unpacked.ok() != Some(stored.pairs_bytes) {
                return Err(self.spill.damaged(folder, self.next_at));
            }
            self.pairs_end = stored.pairs_bytes;
        } else {
            // Uncompressed pairs are read in place.
            (self.at, self.end, self.pairs_end) = (HEADER_BYTES, HEADER_BYTES, bytes);
        }
        self.spill.free(FileRange { folder, start: self.next_at, bytes: bytes as u64 });
        self.next += 1;
        self.next_at += bytes as u64;
        Ok(())
    }
}

/// The header of a block.
pub(crate) struct Stored {
    pub pairs_bytes: usize,
    pub is_packed: bool,
}

/// Returns the header of `block`, if the block is intact.
pub(crate) fn check(block: &[u8]) -> Option<Stored> {
    let word = |at: usize| Some(u32::from_le_bytes(block.get(at..at + 4)?.try_into().ok()?));
    let (pairs_bytes, stored) = (word(4)? as usize, word(8)? as usize);
    let intact = word(0)? == MAGIC
        && block.len() == HEADER_BYTES + stored
        && word(12)? == checksum(block)
        && stored <= pairs_bytes
        && pairs_bytes <= stored.saturating_mul(PACKED_MAX);
    intact.then_some(Stored { pairs_bytes, is_packed: stored < pairs_bytes })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::datum::Bytes;
    use crate::failure::Doing;
    use gristmill_os::room::TemporaryFolder;
    use proptest::prelude::*;

    type Pairs = Vec<(Vec<u8>, u64)>;

    fn written(spill: &Spill, pairs: &Pairs, block_bytes: usize) -> Run {
        let mut writer = RunWriter::new(spill, block_bytes);
        for (key, value) in pairs {
            writer.push::<Bytes, u64>(key, *value).expect("written");
        }
        writer.finish().expect("written")
    }

    fn spill() -> (tempfile::TempDir, Rc<Spill>) {
        let dir = tempfile::tempdir().expect("a folder");
        let spill = Rc::new(Spill::new(&[TemporaryFolder::new(dir.path(), Some(0))]));
        (dir, spill)
    }

    fn read(spill: &Rc<Spill>, run: Run) -> Result<Pairs, Failure> {
        let mut reader = RunReader::<Bytes, u64>::new(spill.clone(), run)?;
        let mut pairs = Vec::new();
        while let Some((key, value)) = reader.pair() {
            pairs.push((key.to_vec(), value));
            reader.advance()?;
        }
        Ok(pairs)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn runs_are_read_as_they_were_written(
            first in prop::collection::vec((prop::collection::vec(0u8..4, 0..300), any::<u64>()), 0..200),
            second in prop::collection::vec((prop::collection::vec(any::<u8>(), 0..3000), any::<u64>()), 0..20),
            block_bytes in 1usize..5000,
        ) {
            let (_dir, spill) = spill();
            let runs = [written(&spill, &first, block_bytes), written(&spill, &second, block_bytes)];
            let [one, two] = runs.map(|run| read(&spill, run).expect("read"));
            prop_assert_eq!(one, first);
            prop_assert_eq!(two, second);
        }
    }

    #[test]
    fn a_flipped_bit_is_detected_before_any_pair_of_its_block_is_read() {
        let pairs: Pairs = (0..40u64).map(|n| (format!("key {n}").into_bytes(), n)).collect();
        for block_bytes in [100, 4096] {
            let (_dir, spill) = spill();
            let whole = written(&spill, &pairs, block_bytes).extent.bytes;
            for bit in 0..whole * 8 {
                let spill = Rc::new(Spill::new(&[TemporaryFolder::new(_dir.path(), Some(0))]));
                let run = written(&spill, &pairs, block_bytes);
                let mut byte = [0];
                spill.read(0, bit / 8, &mut byte).expect("read");
                spill.overwrite(bit / 8, byte[0] ^ 1 << (bit % 8));
                match read(&spill, run) {
                    Err(Failure::Spill { doing: Doing::Check, .. }) => {}
                    other => panic!("bit {bit} was flipped, and the answer was {other:?}"),
                }
            }
        }
    }

    #[test]
    fn compression_pays_if_it_saves_more_time_than_it_takes() {
        // The page cache takes a byte in half a nanosecond, a disk in five; compressing a byte takes one.
        assert!(!pays(1000, 500, 1000, 0.5));
        assert!(pays(1000, 500, 1000, 5.0));
        assert!(!pays(1000, 950, 1000, 50.0), "an eighth at least");
        assert!(!pays(1000, 1010, 1000, 50.0));
    }

    #[test]
    fn compressible_blocks_are_compressed_and_noise_is_not() {
        let (_dir, spill) = spill();
        // A disk so slow that any compression pays.
        spill.expect_ns_per_byte(1e12);
        let text: Pairs = (0..2000).map(|n| (b"always the same words".to_vec(), n)).collect();
        let mut state = 1u64;
        let noise: Pairs = (0..2000)
            .map(|_| {
                state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
                (state.to_be_bytes().to_vec(), state.rotate_left(32))
            })
            .collect();
        let bytes = |pairs: &Pairs| {
            pairs.iter().map(|(key, value)| entry::width::<Bytes, u64>(key, *value) as u64).sum::<u64>()
        };
        assert!(written(&spill, &text, 4096).extent.bytes < bytes(&text) / 2);
        let run = written(&spill, &noise, 4096);
        assert_eq!(run.extent.bytes, bytes(&noise) + run.blocks.len() as u64 * HEADER_BYTES as u64);
    }
}
