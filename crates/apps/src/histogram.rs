//! Histogram: counts each of the 256 values in each colour channel of some images.
//!
//! 24-bit BMP is counted directly from the file's bytes. A PNG or JPEG file is decoded by one task (`pictures`).

use std::collections::HashMap;
use std::io::{self, Read};
use std::path::PathBuf;

use gristmill::files::{Source, Verdict};
use gristmill::{Chunk, Emit, Input, Job, MapReduce, Outcome, ProgramError, Records, Summary};

use crate::error::Error;
use crate::file_format::extension;
#[cfg(feature = "images")]
use crate::pictures;

/// The channels in the order in which they are reported, which is BMP's.
pub const CHANNELS: [&str; 3] = ["blue", "green", "red"];

/// The count of each value in each channel, channels as in [`CHANNELS`].
pub type Counts = [[u64; 256]; 3];

/// The pixels of a 24-bit BMP: rows of `width` pixels of three bytes, each padded to `stride` bytes, from byte `start`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Pixels {
    start: u64,
    end: u64,
    row: u64,
    stride: u64,
}

/// The kind of image in a file.
#[derive(Clone, Copy, Debug)]
enum Image {
    Bmp(Pixels),
    /// PNG or JPEG.
    Encoded,
}

/// Counts the colours of images.
pub struct Histogram {
    images: HashMap<PathBuf, Image>,
}

impl Histogram {
    /// Counts the colours of all images of `input` together; `run` runs the job. Files found in a directory are
    /// skipped if they are not images of a supported kind.
    ///
    /// # Errors
    /// A named file that is not an image of a supported kind, a damaged image, or an error of `run`.
    pub fn count<E: From<Error>>(
        mut input: Input,
        run: impl FnOnce(Job<'_, Histogram>) -> Result<Outcome<Histogram>, E>,
    ) -> Result<(Counts, Summary), E> {
        let mut images = HashMap::new();
        let sifted = input.sift(|source| match look(source) {
            Ok(image) => {
                images.insert(source.path.clone(), image);
                Verdict::Fit
            }
            Err(verdict) => verdict,
        });
        sifted.map_err(Error::from)?;
        let checked = input.check(|source| match images[&source.path] {
            Image::Bmp(_) => Verdict::Fit,
            Image::Encoded => visit(source, |_| {}).err().unwrap_or(Verdict::Fit),
        });
        checked.map_err(Error::from)?;
        let histogram = Histogram { images };
        let (pairs, summary) = run(Job::new(&histogram, input).records(Records::Fixed(1)))?;
        let mut counts = [[0; 256]; 3];
        for (key, count) in pairs.iter() {
            counts[usize::from(key / 256)][usize::from(key % 256)] = count;
        }
        Ok((counts, summary))
    }
}

/// Determines the kind of image in a file, and checks its header.
fn look(source: &Source) -> Result<Image, Verdict> {
    let mut start = Vec::new();
    let mut file = source.open()?;
    file.by_ref().take(BMP_HEADER_BYTES as u64).read_to_end(&mut start)?;
    if start.starts_with(b"\x89PNG\r\n\x1a\n") || start.starts_with(b"\xff\xd8\xff") {
        if cfg!(feature = "images") {
            return Ok(Image::Encoded);
        }
        return Err(Verdict::OtherKind(
            "is PNG or JPEG, and this program was built without the feature `images`".into(),
        ));
    }
    if !start.starts_with(b"BM") {
        let shown: Vec<_> = start.iter().take(4).map(|byte| format!("{byte:02x}")).collect();
        let what = match start.is_empty() {
            true => "is empty, and no image".into(),
            false => format!("is no BMP, PNG or JPEG image: it begins with the bytes {}", shown.join(" ")),
        };
        // A file named as an image that is not one is broken.
        return Err(match extension(&source.name).as_deref() {
            Some("bmp" | "png" | "jpg" | "jpeg") => Verdict::Bad(what),
            _ => Verdict::OtherKind(what),
        });
    }
    let bytes = match source.compression() {
        None => source.bytes,
        // The length of a compressed file is only known by reading it.
        Some(_) => start.len() as u64 + io::copy(&mut file, &mut io::sink())?,
    };
    pixels(&start, bytes).map(Image::Bmp)
}

/// File header (14 bytes) and the part of the information header (40 bytes) that all later versions share.
const BMP_HEADER_BYTES: usize = 54;

/// Reads the header of a BMP file of `file_bytes` bytes.
fn pixels(header: &[u8], file_bytes: u64) -> Result<Pixels, Verdict> {
    if header.len() < BMP_HEADER_BYTES {
        return Err(Verdict::Bad(format!(
            "is truncated: it ends after {file_bytes} bytes, within the BMP header of {BMP_HEADER_BYTES}"
        )));
    }
    let word = |at: usize| u32::from_le_bytes(header[at..at + 4].try_into().expect("four bytes"));
    let half = |at: usize| u16::from_le_bytes(header[at..at + 2].try_into().expect("two bytes"));
    let (start, info_bytes) = (u64::from(word(10)), word(14));
    if info_bytes < 40 {
        return Err(Verdict::OtherKind(format!(
            "is a BMP with a header of {info_bytes} bytes; Windows BMP (40 bytes or more) is understood"
        )));
    }
    // A negative height means that rows run from top to bottom.
    let (width, height) = (word(18) as i32, (word(22) as i32).unsigned_abs());
    let (depth, compression) = (half(28), word(30));
    if depth != 24 {
        return Err(Verdict::OtherKind(format!("is a BMP of {depth} bits per pixel; 24 are needed")));
    }
    if compression != 0 {
        return Err(Verdict::OtherKind(format!(
            "is a compressed BMP (method {compression}); only uncompressed pixels are understood"
        )));
    }
    if width <= 0 || height == 0 {
        return Err(Verdict::Bad(format!("is damaged: its BMP header says {width} x {height} pixels")));
    }
    // Both headers precede the pixels.
    if start < 14 + u64::from(info_bytes) {
        return Err(Verdict::Bad(format!(
            "is damaged: its pixels begin at byte {start}, within its headers of {} bytes",
            14 + u64::from(info_bytes)
        )));
    }
    let row = 3 * width as u64;
    let stride = row.next_multiple_of(4);
    let end = start + stride * u64::from(height);
    if file_bytes < end {
        return Err(Verdict::Bad(format!(
            "is truncated: {width} x {height} pixels end at byte {end}, and the file at byte {file_bytes}"
        )));
    }
    // Rows without padding are counted as one long row.
    let (row, stride) = if row == stride { (end - start, end - start) } else { (row, stride) };
    Ok(Pixels { start, end, row, stride })
}

impl MapReduce for Histogram {
    /// Channel * 256 + value.
    type Key = u16;
    type Value = u64;
    const UNPACKS: bool = true;

    fn keys(&self) -> Option<usize> {
        Some(3 * 256)
    }

    fn combiner(&self) -> Option<impl Fn(u64, u64) -> u64> {
        Some(|a, b| a + b)
    }

    fn map(&self, chunk: &mut Chunk<'_>, out: &mut impl Emit<u16, u64>) -> Result<(), ProgramError> {
        let mut tables = Tables([[0; 256]; 3 * LANES]);
        match self.images[&chunk.source().path] {
            Image::Bmp(pixels) => tables.count_rows(pixels, chunk.offset(), chunk.bytes()),
            // The task that has the file's first byte decodes the whole file.
            Image::Encoded if chunk.offset() == 0 => {
                let (mut sums, mut counted) = ([0; 3 * 256], 0);
                let visited = visit(chunk.source(), |pixels| {
                    for part in pixels.chunks(COUNTED_MAX / 6 * 3) {
                        if counted + part.len() > COUNTED_MAX {
                            tables.empty_into(&mut sums);
                            counted = 0;
                        }
                        tables.count(part);
                        counted += part.len();
                    }
                });
                match visited {
                    Ok(()) => {
                        tables.empty_into(&mut sums);
                        // Decoded pixels are red, green, blue.
                        for (red, counts) in sums.chunks_exact(256).enumerate() {
                            emit((2 - red as u16) * 256, counts, out);
                        }
                    }
                    // A failed image contributes nothing.
                    Err(Verdict::TooLarge(why)) => return Err(chunk.too_large(0, why)),
                    Err(Verdict::Bad(why) | Verdict::OtherKind(why)) => return Err(chunk.reject(0, why)),
                    Err(Verdict::Fit) => unreachable!("a verdict that is an error"),
                }
                return Ok(());
            }
            Image::Encoded => {}
        }
        let mut sums = [0; 3 * 256];
        tables.empty_into(&mut sums);
        emit(0, &sums, out);
        Ok(())
    }
}

/// Emits counts of the keys from `first` on.
fn emit(first: u16, counts: &[u64], out: &mut impl Emit<u16, u64>) {
    (first..).zip(counts).filter(|(_, count)| **count > 0).for_each(|(key, count)| out.emit(key, *count));
}

/// Calls `visit` with the pixels of a PNG or JPEG file, three bytes each: red, green, blue.
#[cfg(feature = "images")]
fn visit(source: &Source, visit: impl FnMut(&[u8])) -> Result<(), Verdict> {
    let visited =
        source.open().map_err(Verdict::from).and_then(|content| pictures::visit(content, source.memory(), visit));
    visited.map_err(|verdict| verdict.map(|why| format!("cannot be decoded: {why}")))
}

#[cfg(not(feature = "images"))]
fn visit(_: &Source, _: impl FnMut(&[u8])) -> Result<(), Verdict> {
    unreachable!("refused when the job was made")
}

/// Eight tables per channel, used in turn, so that equal neighbours do not wait for each other's store.
struct Tables([[u32; 256]; 3 * LANES]);

const LANES: usize = 8;
/// The number of bytes that can be counted before a 32-bit counter overflows.
const COUNTED_MAX: usize = u32::MAX as usize;

impl Tables {
    /// Counts the bytes of a chunk that begins at byte `offset` of the file and is shorter than 4 GiB.
    fn count_rows(&mut self, pixels: Pixels, offset: u64, chunk: &[u8]) {
        let mut at = offset.max(pixels.start);
        let end = (offset + chunk.len() as u64).min(pixels.end);
        while at < end {
            let column = (at - pixels.start) % pixels.stride;
            let row_start = at - column;
            let from = at;
            let to = (row_start + pixels.row).min(end);
            if from < to {
                let bytes = &chunk[(from - offset) as usize..(to - offset) as usize];
                // The rest of a pixel that began in the previous chunk.
                let head = bytes.len().min(((3 - column % 3) % 3) as usize);
                let (head, pixels) = bytes.split_at(head);
                for (channel, byte) in (column as usize % 3..).zip(head) {
                    self.0[channel][usize::from(*byte)] += 1;
                }
                self.count(pixels);
            }
            at = row_start + pixels.stride;
        }
    }

    /// Counts whole pixels; the last may be cut off.
    fn count(&mut self, pixels: &[u8]) {
        let (turns, rest) = pixels.as_chunks::<{ 3 * LANES }>();
        for turn in turns {
            // Loading three words of eight bytes is cheaper than loading 24 bytes.
            for (word, bytes) in turn.as_chunks::<8>().0.iter().enumerate() {
                let mut bytes = u64::from_le_bytes(*bytes);
                for byte in 0..8 {
                    self.0[8 * word + byte][usize::from(bytes as u8)] += 1;
                    bytes >>= 8;
                }
            }
        }
        for (table, byte) in self.0.iter_mut().zip(rest) {
            table[usize::from(*byte)] += 1;
        }
    }

    /// Adds the counts to `sums`, channel by channel, and resets them.
    fn empty_into(&mut self, sums: &mut [u64; 3 * 256]) {
        for turn in self.0.as_chunks_mut::<3>().0 {
            for (sum, count) in sums.iter_mut().zip(turn.as_flattened_mut()) {
                *sum += u64::from(std::mem::take(count));
            }
        }
    }
}

/// Checks that a BMP header's pixels lie within the file.
#[cfg(fuzzing)]
pub(crate) fn fuzz(bytes: &[u8]) {
    let header = &bytes[..bytes.len().min(BMP_HEADER_BYTES)];
    let Ok(found) = pixels(header, bytes.len() as u64) else { return };
    assert!(found.row <= found.stride && found.end <= bytes.len() as u64, "{found:?}");
    Tables([[0; 256]; 3 * LANES]).count_rows(found, 0, bytes);
}

#[cfg(test)]
mod fuzz {
    use super::*;
    use crate::nearly::{fuzz, mutate};

    #[test]
    fn any_header_is_refused_or_locates_the_pixels() {
        let mut header = vec![0; BMP_HEADER_BYTES];
        header[..2].copy_from_slice(b"BM");
        for (at, word) in [(10, 54u32), (14, 40), (18, 3), (22, 2), (26, 1), (28, 24)] {
            header[at..at + 4].copy_from_slice(&word.to_le_bytes());
        }
        fuzz(|random| {
            let mut file = header.clone();
            file.extend((0..24).map(|_| random.u8(..)));
            mutate(random, &mut file);
            let Ok(found) = pixels(&file[..file.len().min(BMP_HEADER_BYTES)], file.len() as u64) else { return };
            assert!(found.row <= found.stride && found.end <= file.len() as u64, "{found:?}");
            // Counting in one piece and in two gives the same counts, and reads only bytes within the file.
            let counted = |cut: usize| {
                let mut tables = Tables([[0; 256]; 3 * LANES]);
                tables.count_rows(found, 0, &file[..cut]);
                tables.count_rows(found, cut as u64, &file[cut..]);
                let mut counts = [[0u64; 256]; 3];
                for (table, counted) in tables.0.iter().enumerate() {
                    counts[table % 3].iter_mut().zip(counted).for_each(|(sum, count)| *sum += u64::from(*count));
                }
                counts
            };
            assert_eq!(counted(random.usize(..=file.len())), counted(file.len()));
        });
    }
}
