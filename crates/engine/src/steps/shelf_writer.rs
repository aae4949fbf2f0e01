//! The writer of the shelf: partitions that one step keeps for the next.
//!
//! ```text
//!  a partition:  last piece --> piece before --> ... --> first piece
//!  a piece:      | extent, 4 | start, 4 | bytes, 4 of the piece before (0: there is none) | pairs, 4 | pairs ... |
//! ```
//!
//! Its owner writes a partition from the first pair to the last and then publishes it with one store
//! ([`publish`](crate::control::words::Shared::publish)). Until then the partition is invisible to others; if the owner
//! dies, it is made again.

use gristmill_os::room::NoRoom;
use gristmill_page::{Extent, NoExtent, Overwritten, Piece, Reader, Shelver};
use rustix::io::Errno;

use crate::control::steps::KeptPartition;
use crate::data::datum::{Datum, Key};
use crate::data::entry;
use crate::data::key;
use crate::data::seed::Seed;
use crate::failure::{Doing, Failure};

/// The size of the header of a piece.
const HEADER_BYTES: usize = 16;

/// Returns the size of the largest pair that fits in an extent.
pub(crate) const fn pair_bytes_max(extent_bytes: usize) -> usize {
    extent_bytes - HEADER_BYTES
}

/// Writes partitions; keeps the open extent of a worker from step to step.
pub(crate) struct ShelfWriter<'r> {
    shelver: Shelver<'r>,
    extent: Option<Extent<'r>>,
    seed: &'r Seed,
    /// The folder of the file that extents may lie in.
    folder: usize,
}

/// Writes one partition.
pub(crate) struct PartitionWriter<'k, 'r> {
    shelf_writer: &'k mut ShelfWriter<'r>,
    generation: u32,
    /// The bytes that its worker has spilled, for an error.
    spilled_bytes: u64,
    kept: KeptPartition,
    /// The bytes of the open piece, including its header; 0 if no piece is open.
    used: usize,
    /// The pairs of the open piece.
    pairs: u32,
}

impl<'r> ShelfWriter<'r> {
    pub fn new(shelver: Shelver<'r>, seed: &'r Seed, folder: usize) -> ShelfWriter<'r> {
        ShelfWriter { shelver, extent: None, seed, folder }
    }

    /// Begins a partition, whose worker has spilled this many bytes.
    pub fn begin(&mut self, generation: u32, spilled_bytes: u64) -> PartitionWriter<'_, 'r> {
        let kept = KeptPartition::default();
        PartitionWriter { shelf_writer: self, generation, spilled_bytes, kept, used: 0, pairs: 0 }
    }

    /// Ends a generation: the next one begins with a new extent, because extents are freed by generation.
    pub fn end_generation(&mut self) {
        self.extent = None;
    }
}

impl PartitionWriter<'_, '_> {
    /// Appends a pair.
    #[inline]
    pub fn append<K: Key, V: Datum>(&mut self, key: K::Ref<'_>, value: V::Ref<'_>) -> Result<(), Failure> {
        let bytes = entry::width::<K, V>(key, value);
        // The hashes of numbers are computed again by the reader.
        let hash = if K::WIDTH.is_some() { 0 } else { entry::short_hash(key::hash::<K>(key, self.shelf_writer.seed)) };
        loop {
            if self.used > 0
                && let Some(room) = self.shelf_writer.extent.as_mut().and_then(|extent| {
                    let start = self.used;
                    extent.room().get_mut(start..start + bytes)
                })
            {
                entry::write::<K, V>(hash, key, value, room);
                self.used += bytes;
                self.pairs += 1;
                self.kept.bytes += bytes as u64;
                return Ok(());
            }
            self.open_piece(HEADER_BYTES + bytes)?;
        }
    }

    /// Seals the open piece and opens another one with room for `wanted` bytes.
    #[cold]
    fn open_piece(&mut self, wanted: usize) -> Result<(), Failure> {
        self.seal();
        let has_room = self.shelf_writer.extent.as_mut().is_some_and(|extent| extent.room().len() >= wanted);
        if !has_room {
            let no_room = |doing, errno| {
                let (folder, bytes) = (self.shelf_writer.folder, self.spilled_bytes);
                Failure::Spill { folder, doing, errno, bytes }
            };
            let taken = self.shelf_writer.shelver.take(self.generation);
            let mut extent = taken.map_err(|why| match why {
                NoExtent::Full => Failure::ShelfFull,
                NoExtent::Disk(NoRoom::Kept) => no_room(Doing::KeepFree, 0),
                NoExtent::Disk(NoRoom::System(error)) => {
                    no_room(Doing::Write, error.raw_os_error().unwrap_or(Errno::IO.raw_os_error()))
                }
            })?;
            if extent.room().len() < wanted {
                return Err(Failure::PairTooLarge { bytes: wanted - HEADER_BYTES });
            }
            self.shelf_writer.extent = Some(extent);
        }
        self.used = HEADER_BYTES;
        Ok(())
    }

    fn seal(&mut self) {
        if self.used == 0 {
            return;
        }
        let extent = self.shelf_writer.extent.as_mut().expect("a piece is open in it");
        let before = self.kept.last.unwrap_or(Piece { extent: 0, start: 0, bytes: 0 });
        let header = [before.extent, before.start, before.bytes, self.pairs];
        for (to, word) in extent.room().as_chunks_mut::<4>().0.iter_mut().zip(header) {
            *to = word.to_le_bytes();
        }
        self.kept.last = Some(extent.seal(self.used));
        self.kept.pairs += u64::from(self.pairs);
        (self.used, self.pairs) = (0, 0);
    }

    /// Ends the partition.
    pub fn end(mut self) -> KeptPartition {
        self.seal();
        self.kept
    }
}

/// Returns the pairs of a piece in the page format.
pub(crate) fn pairs_of<'s>(shelf: &'s Reader<'_>, piece: Piece) -> &'s [u8] {
    &shelf.read(piece)[HEADER_BYTES..]
}

/// Iterates over the pieces of a partition, the last one first.
pub(crate) fn pieces<'s>(shelf: &'s Reader<'_>, kept: KeptPartition) -> impl Iterator<Item = Piece> + 's {
    std::iter::successors(kept.last, move |piece| before(shelf, *piece).unwrap_or_else(|error| panic!("{error}")))
}

/// Returns the piece of a partition that was written before this one.
///
/// # Errors
/// There is no such piece on the shelf.
pub(crate) fn before(shelf: &Reader<'_>, piece: Piece) -> Result<Option<Piece>, Overwritten> {
    let header = shelf.try_read(piece)?.as_chunks::<4>().0;
    if header.len() * 4 < HEADER_BYTES {
        return Err(Overwritten("a piece has no header"));
    }
    let [extent, start, bytes] = [0, 1, 2].map(|at: usize| u32::from_le_bytes(header[at]));
    Ok((bytes > 0).then_some(Piece { extent, start, bytes }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::datum::Bytes;
    use gristmill_page::{Pages, Shape};
    use proptest::prelude::*;

    fn pages(extents: usize) -> Pages {
        let shape =
            Shape { slots: 1, pages_per_arena: 1, page_bytes: 4096, extents, extent_bytes: 4096, ..Shape::default() };
        Pages::new(shape).expect("mapped")
    }

    proptest! {
        #[test]
        fn partitions_are_read_as_they_were_written(
            partitions in prop::collection::vec(prop::collection::vec((prop::collection::vec(any::<u8>(), 0..700), any::<u64>()), 0..40), 0..6),
        ) {
            let pages = pages(100);
            let _ends = pages.claim(0);
            let seed = Seed::of(1);
            let mut shelf_writer = ShelfWriter::new(Shelver::new(pages.shelf(), 0), &seed, 0);
            let kept: Vec<KeptPartition> = partitions.iter().map(|pairs| {
                let mut writer = shelf_writer.begin(1, 0);
                for (key, value) in pairs {
                    writer.append::<Bytes, u64>(key, *value).expect("there is room");
                }
                writer.end()
            }).collect();
            let reader = pages.shelf().reader(0);
            for (pairs, kept) in partitions.iter().zip(kept) {
                let mut pieces: Vec<Piece> = pieces(&reader, kept).collect();
                pieces.reverse();
                let bytes: Vec<u8> = pieces.iter().flat_map(|piece| pairs_of(&reader, *piece)).copied().collect();
                let (mut at, mut found) = (0, Vec::new());
                while at < bytes.len() {
                    let pair = entry::read::<Bytes, u64>(&bytes[at..]);
                    prop_assert_eq!(pair.hash(&seed), entry::short_hash(key::hash::<Bytes>(pair.key, &seed)));
                    found.push((pair.key.to_vec(), pair.value));
                    at += pair.bytes;
                }
                prop_assert_eq!(&found, pairs);
                prop_assert_eq!((kept.pairs, kept.bytes), (pairs.len() as u64, bytes.len() as u64));
            }
        }
    }

    #[test]
    fn pairs_that_do_not_fit_are_an_error() {
        let pages = pages(1);
        let _ends = pages.claim(0);
        let seed = Seed::of(1);
        let mut shelf_writer = ShelfWriter::new(Shelver::new(pages.shelf(), 0), &seed, 0);
        let mut writer = shelf_writer.begin(1, 0);
        let giant = vec![0; 5000];
        assert_eq!(
            writer.append::<Bytes, u64>(&giant, 0),
            Err(Failure::PairTooLarge { bytes: giant.len() + 4 + 5 + 8 })
        );
        let full = (0..).find_map(|number| writer.append::<u64, u64>(number, 0).err());
        assert_eq!(full, Some(Failure::ShelfFull));
    }
}
