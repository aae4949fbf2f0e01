//! PNG, decoded row by row: only a few rows are in memory.
//!
//! ```text
//!  signature | length, name, data, CRC of name and data | ... | 0, IEND, CRC
//! ```

use std::io::{self, BufRead, Read, Seek, SeekFrom};

use gristmill::files::{Memory, Verdict};
use png::{BitDepth, ColorType, Decoder, Limits, Transformations};

use super::filling::read_up_to;

pub const SIGNATURE: &[u8; 8] = b"\x89PNG\r\n\x1a\n";

pub fn visit(content: impl Read, memory: Memory, mut visit: impl FnMut(&[u8])) -> Result<(), Verdict> {
    let mut chunks = Chunks::new(content);
    let mut decoder = Decoder::new_with_limits(&mut chunks, Limits { bytes: usize::MAX });
    decoder.set_transformations(Transformations::EXPAND);
    let damaged = |error: png::DecodingError| match error {
        // An error of `Chunks` or of the file's reader.
        png::DecodingError::IoError(error) if error.kind() != io::ErrorKind::UnexpectedEof => error.into(),
        error => Verdict::Bad(format!("its PNG data is damaged ({error})")),
    };
    // 1. Check that its rows fit in memory: the decoder holds some of them, and one converted row.
    let header = decoder.read_header_info().map_err(damaged)?;
    let (width, height) = header.size();
    let row_bytes = header.raw_row_length() as u64;
    let need_bytes = row_bytes.saturating_mul(8).saturating_add(u64::from(width) * 12);
    memory
        .allow(need_bytes)
        .map_err(|why| Verdict::TooLarge(format!("to decode its {width} x {height} pixels row by row {why}")))?;
    // 2. The rows. An interlaced picture comes in seven passes, each pixel in one of them.
    let mut reader = decoder.read_info().map_err(damaged)?;
    let (colours, depth) = reader.output_color_type();
    let samples = match colours {
        ColorType::Grayscale => 1,
        ColorType::GrayscaleAlpha => 2,
        ColorType::Rgb => 3,
        ColorType::Rgba => 4,
        ColorType::Indexed => return Err(Verdict::Bad("its PNG data is damaged (it has no palette)".into())),
    };
    let bytes = if depth == BitDepth::Sixteen { 2 } else { 1 };
    let mut pixels = Vec::new();
    while let Some(row) = reader.next_row().map_err(damaged)? {
        if (samples, bytes) == (3, 1) {
            visit(row.data());
            continue;
        }
        pixels.clear();
        for pixel in row.data().chunks_exact(samples * bytes) {
            // The nearest of 256 values.
            let sample = |at: usize| match bytes {
                1 => pixel[at],
                _ => ((u32::from(u16::from_be_bytes([pixel[2 * at], pixel[2 * at + 1]])) + 128) / 257) as u8,
            };
            pixels.extend(if samples < 3 { [sample(0); 3] } else { [0, 1, 2].map(sample) });
        }
        visit(&pixels);
    }
    // 3. The rest, to the last chunk.
    drop(reader);
    loop {
        let bytes = chunks.fill_buf()?.len();
        if bytes == 0 {
            return Ok(());
        }
        chunks.consume(bytes);
    }
}

/// The chunks that pixels are made of, as in the file; all others are skipped. All checksums are compared.
struct Chunks<R> {
    file: R,
    /// The number of bytes read from the file.
    at: u64,
    /// The bytes that are handed out next.
    piece: Vec<u8>,
    handed_out: usize,
    chunk: PngChunk,
    /// The last chunk has been seen.
    ended: bool,
}

/// The current chunk.
#[derive(Default)]
struct PngChunk {
    name: [u8; 4],
    /// Its offset in the file.
    start: u64,
    /// The number of bytes of its data that are still to come.
    left: u64,
    checksum: crc32fast::Hasher,
    is_wanted: bool,
}

/// The number of bytes read at once.
const PIECE_BYTES: usize = 32 << 10;

/// The limit on header, palette and transparency, which take at most 768 bytes.
const SMALL_BYTES_MAX: u64 = 1024;

impl<R: Read> Chunks<R> {
    fn new(file: R) -> Chunks<R> {
        Chunks { file, at: 0, piece: Vec::new(), handed_out: 0, chunk: PngChunk::default(), ended: false }
    }

    /// Appends `bytes` bytes of the file to the piece.
    fn take(&mut self, bytes: usize) -> io::Result<usize> {
        let from = self.piece.len();
        self.piece.resize(from + bytes, 0);
        let found = read_up_to(&mut self.file, &mut self.piece[from..])?;
        self.at += found as u64;
        if found < bytes {
            let at = self.at;
            return Err(io::Error::other(format!(
                "the file is truncated: its PNG data ends at byte {at}, before its last chunk"
            )));
        }
        Ok(from)
    }

    /// Reads the next piece: the signature, the head of a chunk, some of its data, or its checksum.
    fn next(&mut self) -> io::Result<()> {
        self.piece.clear();
        self.handed_out = 0;
        if self.at == 0 {
            return self.take(SIGNATURE.len()).map(drop);
        }
        if self.chunk.start == 0 {
            // A chunk begins.
            let start = self.at;
            self.take(8)?;
            let left = u64::from(u32::from_be_bytes(self.piece[..4].try_into().expect("four bytes")));
            let name: [u8; 4] = self.piece[4..8].try_into().expect("four bytes");
            let mut checksum = crc32fast::Hasher::new();
            checksum.update(&name);
            let is_small = matches!(&name, b"IHDR" | b"PLTE" | b"tRNS" | b"IEND");
            // Three bytes for each colour of a palette: the decoder trusts that.
            if is_small && (left > SMALL_BYTES_MAX || &name == b"PLTE" && left % 3 != 0) {
                let name = name.escape_ascii();
                return Err(io::Error::other(format!(
                    "its PNG data is damaged: the chunk {name} at byte {start} has {left} bytes"
                )));
            }
            self.chunk = PngChunk { name, start, left, checksum, is_wanted: is_small || &name == b"IDAT" };
        } else if self.chunk.left > 0 {
            let bytes = self.chunk.left.min(PIECE_BYTES as u64);
            self.take(bytes as usize)?;
            self.chunk.checksum.update(&self.piece);
            self.chunk.left -= bytes;
        } else {
            self.take(4)?;
            let PngChunk { name, start, checksum, .. } = &self.chunk;
            // As in the decoder: a fuzzer would not get past a checksum.
            if self.piece != checksum.clone().finalize().to_be_bytes() && !cfg!(fuzzing) {
                let name = name.escape_ascii();
                return Err(io::Error::other(format!(
                    "its PNG data is damaged: the checksum of the chunk {name} at byte {start} is wrong"
                )));
            }
            self.ended = name == b"IEND";
            self.chunk.start = 0;
        }
        if !self.chunk.is_wanted {
            self.piece.clear();
        }
        Ok(())
    }
}

impl<R: Read> BufRead for Chunks<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        while self.handed_out == self.piece.len() && !self.ended {
            self.next()?;
        }
        Ok(&self.piece[self.handed_out..])
    }

    fn consume(&mut self, bytes: usize) {
        self.handed_out += bytes;
    }
}

impl<R: Read> Read for Chunks<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let from = self.fill_buf()?;
        let bytes = from.len().min(to.len());
        to[..bytes].copy_from_slice(&from[..bytes]);
        self.consume(bytes);
        Ok(bytes)
    }
}

/// The decoder requires `Seek` but never seeks.
impl<R> Seek for Chunks<R> {
    fn seek(&mut self, _: SeekFrom) -> io::Result<u64> {
        Err(io::ErrorKind::Unsupported.into())
    }
}
