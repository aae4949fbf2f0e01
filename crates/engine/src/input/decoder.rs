//! Decoding of a stretch of a compressed file as it is read.
//!
//! Only one window of the format is in memory at a time. The file determines the size of the window; the caller limits
//! it.

use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

#[cfg(feature = "bzip2")]
use bzip2::bufread::BzDecoder;
#[cfg(feature = "gzip")]
use flate2::bufread::GzDecoder;
#[cfg(feature = "xz")]
use liblzma::bufread::XzDecoder;
use lz4_flex::frame::FrameDecoder;

use crate::input::compression::{Compression, MAGIC_BYTES};
use crate::input::zip::{Entry, Unzip};
use crate::memory::{Memory, shown};

/// The number of compressed bytes read at a time.
const STORED_BYTES: usize = 64 << 10;
/// The memory limit for decoding an xz file. A file packed with `xz -9` takes 65 MiB.
const XZ_BYTES_MAX: u64 = 256 << 20;
/// The limit for the window of a zstd file: the default of the library and of `zstd -d`.
const ZSTD_WINDOW_BYTES_MAX: u64 = 128 << 20;
/// The memory of zstd's decoder besides its window: tables, and a block before and after.
const ZSTD_BYTES: u64 = 1 << 20;
/// The memory of bzip2's decoder for each 100 kB of a block, which has at most nine of these.
const BZIP2_BYTES: u64 = 400_000;
/// The largest block of lz4.
const LZ4_BLOCK_BYTES_MAX: u64 = 4 << 20;

/// Returns the most memory that decoding a file of this kind takes; 0 if it takes next to none.
pub(crate) fn decoder_bytes_max(compression: Compression) -> usize {
    let bytes = match compression {
        Compression::Gzip | Compression::Zip => 0,
        Compression::Bzip2 => 10 * BZIP2_BYTES,
        Compression::Zstd => ZSTD_WINDOW_BYTES_MAX + ZSTD_BYTES,
        Compression::Xz => XZ_BYTES_MAX,
        Compression::Lz4 => lz4_bytes(LZ4_BLOCK_BYTES_MAX),
    };
    bytes as usize
}

/// Returns the memory of lz4's decoder: a packed block, and two blocks and a window that are unpacked.
fn lz4_bytes(block_bytes: u64) -> u64 {
    3 * block_bytes + (64 << 10)
}

/// Decodes a stretch that consists of whole members (gzip's term; the other formats call them frames or streams).
pub(crate) struct Decoder {
    /// `None` for a stream that is not compressed.
    compression: Option<Compression>,
    /// The memory limit.
    memory: Memory,
    /// `None` at the end of the stretch.
    member: Option<Box<dyn Member>>,
}

/// The decoder of one member, or of all that remain if the library continues with the next member by itself.
trait Member: Read {
    fn stored(&self) -> &BufReader<Stored>;
    fn into_stored(self: Box<Self>) -> BufReader<Stored>;
}

/// The stored bytes of a stream that is not compressed.
impl Member for BufReader<Stored> {
    fn stored(&self) -> &BufReader<Stored> {
        self
    }

    fn into_stored(self: Box<Self>) -> BufReader<Stored> {
        *self
    }
}

#[cfg(feature = "gzip")]
impl Member for GzDecoder<BufReader<Stored>> {
    fn stored(&self) -> &BufReader<Stored> {
        self.get_ref()
    }

    fn into_stored(self: Box<Self>) -> BufReader<Stored> {
        self.into_inner()
    }
}

#[cfg(feature = "zstd")]
impl Member for zstd::stream::read::Decoder<'static, BufReader<Stored>> {
    fn stored(&self) -> &BufReader<Stored> {
        self.get_ref()
    }

    fn into_stored(self: Box<Self>) -> BufReader<Stored> {
        self.finish()
    }
}

#[cfg(feature = "bzip2")]
impl Member for BzDecoder<BufReader<Stored>> {
    fn stored(&self) -> &BufReader<Stored> {
        self.get_ref()
    }

    fn into_stored(self: Box<Self>) -> BufReader<Stored> {
        self.into_inner()
    }
}

#[cfg(feature = "xz")]
impl Member for XzDecoder<BufReader<Stored>> {
    fn stored(&self) -> &BufReader<Stored> {
        self.get_ref()
    }

    fn into_stored(self: Box<Self>) -> BufReader<Stored> {
        self.into_inner()
    }
}

impl Member for FrameDecoder<Whole> {
    fn stored(&self) -> &BufReader<Stored> {
        &self.get_ref().0
    }

    fn into_stored(self: Box<Self>) -> BufReader<Stored> {
        self.into_inner().0
    }
}

impl Member for Unzip<BufReader<Stored>> {
    fn stored(&self) -> &BufReader<Stored> {
        self.get_ref()
    }

    fn into_stored(self: Box<Self>) -> BufReader<Stored> {
        self.into_inner()
    }
}

/// The bytes of a frame of lz4, which has a mark at its end. The library takes the end of the file for the end of a
/// frame.
struct Whole(BufReader<Stored>);

impl Read for Whole {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        match self.0.read(to)? {
            0 if !to.is_empty() => Err(io::Error::new(io::ErrorKind::InvalidData, CutOff)),
            read => Ok(read),
        }
    }
}

/// A frame has no end.
#[derive(Debug)]
struct CutOff;

impl fmt::Display for CutOff {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("the file ends within a frame")
    }
}

impl std::error::Error for CutOff {}

/// The stored bytes of a range of a file, or of a stream.
pub(crate) struct Stored {
    file: Arc<File>,
    /// The bytes still to be read.
    range: Range<u64>,
    /// For a stream, bytes that were read ahead.
    head: Option<Vec<u8>>,
}

impl Stored {
    pub fn range(file: Arc<File>, range: Range<u64>) -> Stored {
        Stored { file, range, head: None }
    }

    /// Makes the bytes of a whole stream, whose first bytes have already been read.
    pub fn stream(file: Arc<File>, head: Vec<u8>) -> Stored {
        Stored { file, range: 0..u64::MAX, head: Some(head) }
    }
}

/// The longest header of a zstd frame: magic, descriptor, dictionary number, size.
const HEADER_BYTES: usize = 18;
const _: () = assert!(HEADER_BYTES >= MAGIC_BYTES);

/// Returns the offset in the file of the next byte.
fn offset(stored: &BufReader<Stored>) -> u64 {
    stored.get_ref().range.start - stored.buffer().len() as u64
}

/// Returns the error that something else follows the data of a format.
fn other_data(compression: Compression, at: u64) -> io::Error {
    let what = format!("what follows from byte {at} of the file on is no {} data", compression.name());
    io::Error::new(io::ErrorKind::InvalidData, what)
}

/// Returns whether the decoder of zstd found no frame where it looked for the next one.
fn is_no_frame(error: &io::Error) -> bool {
    // zstd's library has no better sign than the text of its error prefix_unknown.
    error.get_ref().is_some_and(|inner| inner.to_string() == "Unknown frame descriptor")
}

/// Returns the offset in the file of the next byte, and the bytes from there on: enough of them to recognise a
/// compression and to know how much memory it takes.
fn peek(stored: &mut BufReader<Stored>) -> io::Result<(u64, Vec<u8>)> {
    let at = offset(stored);
    let mut start = vec![0; HEADER_BYTES];
    if stored.get_ref().head.is_none() {
        let found = stored.get_ref().file.read_at(&mut start, at)?;
        start.truncate(found);
        return Ok((at, start));
    }
    start.clear();
    stored.by_ref().take(HEADER_BYTES as u64).read_to_end(&mut start)?;
    // The bytes of a stream can be read only once, so these, and those read ahead, are put back.
    let mut head = [&start, stored.buffer()].concat();
    stored.consume(stored.buffer().len());
    let stored = stored.get_mut();
    head.extend(stored.head.take().unwrap_or_default());
    stored.range.start = at;
    stored.head = Some(head);
    Ok((at, start))
}

/// Returns whether bytes begin a frame without content, which lz4 and zstd have in common (RFC 8878, section 3.1.2).
fn is_skippable(start: &[u8]) -> bool {
    matches!(start, [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..])
}

/// Skips frames without content; returns what [`peek`] does behind them.
fn skip_frames(stored: &mut BufReader<Stored>) -> io::Result<(u64, Vec<u8>)> {
    loop {
        let (at, start) = peek(stored)?;
        if stored.fill_buf()?.is_empty() || !is_skippable(&start) {
            return Ok((at, start));
        }
        let bytes = start[4..].first_chunk().map(|bytes| 8 + u64::from(u32::from_le_bytes(*bytes)));
        let skipped = bytes.map(|bytes| io::copy(&mut stored.by_ref().take(bytes), &mut io::sink())).transpose()?;
        if bytes.is_none() || skipped != bytes {
            let what = format!("the file is truncated: it ends within the frame to be skipped at byte {at}");
            return Err(io::Error::new(io::ErrorKind::InvalidData, what));
        }
    }
}

impl Decoder {
    /// Makes a decoder of the only file of a zip archive.
    pub fn of_entry(stored: Stored, entry: Entry, memory: Memory) -> Decoder {
        let unzip = Unzip::new(BufReader::with_capacity(STORED_BYTES, stored), entry);
        Decoder { compression: Some(Compression::Zip), memory, member: Some(Box::new(unzip)) }
    }

    /// Makes a decoder that stays within `memory`.
    pub fn new(stored: Stored, compression: Option<Compression>, memory: Memory) -> io::Result<Decoder> {
        let mut stored = BufReader::with_capacity(STORED_BYTES, stored);
        let start = if compression.is_some() { peek(&mut stored)?.1 } else { Vec::new() };
        let mut decoder = Decoder { compression, memory, member: None };
        decoder.member = match is_skippable(&start) {
            false => Some(member(compression, stored, &start, memory)?),
            true => {
                // Either format may begin with a frame to be skipped.
                let (_, start) = skip_frames(&mut stored)?;
                if Compression::of_bytes(&start) == Some(Compression::Lz4) {
                    decoder.compression = Some(Compression::Lz4);
                }
                decoder.next(stored)?
            }
        };
        Ok(decoder)
    }

    /// Returns the offset up to which the file has been read; `None` at the end of the stretch.
    pub fn reached(&self) -> Option<u64> {
        let stored = self.member.as_ref()?.stored();
        Some(stored.get_ref().range.start)
    }

    /// Returns the decoder of the member that begins here; `None` at the end of the stretch, which may be padded with
    /// zeros, unless the tool of the format does not accept them.
    fn next(&self, mut stored: BufReader<Stored>) -> io::Result<Option<Box<dyn Member>>> {
        let Some(compression) = self.compression else { return Ok(None) };
        let (at, start) = match compression {
            Compression::Lz4 | Compression::Zstd => skip_frames(&mut stored)?,
            _ => peek(&mut stored)?,
        };
        let other = || Err(other_data(compression, at));
        if stored.fill_buf()?.is_empty() {
            return Ok(None);
        } else if Compression::of_bytes(&start) == Some(compression) {
            return member(self.compression, stored, &start, self.memory).map(Some);
        } else if compression.is_cut_off(&start) {
            return Err(self.explain(io::ErrorKind::UnexpectedEof.into()));
        } else if matches!(compression, Compression::Lz4 | Compression::Zstd) {
            return other();
        }
        let (mut zeros, is_xz) = (0, compression == Compression::Xz);
        loop {
            let bytes = stored.fill_buf()?;
            let (is_end, padding) = (bytes.is_empty(), bytes.iter().take_while(|byte| **byte == 0).count());
            let is_padded = !is_end && padding == bytes.len();
            stored.consume(padding);
            zeros += padding;
            match is_xz {
                _ if is_padded => {}
                true if zeros % 4 != 0 => return other(),
                _ if is_end => return Ok(None),
                // Streams may be padded to multiples of four bytes, and another may follow.
                true if zeros > 0 => return self.next(stored),
                _ => return other(),
            }
        }
    }

    /// Gives the errors of the libraries one form. Errors of the system stay as they are.
    fn explain(&self, error: io::Error) -> io::Error {
        let Some(compression) = self.compression else { return error };
        let name = compression.name();
        let what = match error.kind() {
            _ if error.raw_os_error().is_some() => return error,
            io::ErrorKind::Interrupted => return error,
            _ if error.get_ref().is_some_and(|inner| inner.is::<CutOff>()) => {
                return self.explain(io::ErrorKind::UnexpectedEof.into());
            }
            io::ErrorKind::UnexpectedEof => format!("the file is truncated, its {name} data is not complete"),
            _ if error.get_ref().is_some_and(|inner| inner.is::<TooMuch>()) => return error,
            _ if is_refused(&error) => return refused(compression),
            _ if needs_too_much(&error) => {
                // The library does not say how much memory it needs.
                let limit_bytes = match compression {
                    Compression::Xz => self.memory.bytes().min(XZ_BYTES_MAX),
                    _ => 1 << zstd_window_log_max(self.memory),
                };
                return TooMuch { compression, need_bytes: None, limit_bytes }.into();
            }
            _ => format!("its {name} data is damaged ({error})"),
        };
        io::Error::new(io::ErrorKind::InvalidData, what)
    }
}

/// Decoding a file takes more memory than is allowed.
#[derive(Debug)]
struct TooMuch {
    compression: Compression,
    /// `None` if it is not known.
    need_bytes: Option<u64>,
    limit_bytes: u64,
}

impl fmt::Display for TooMuch {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TooMuch { compression, need_bytes, limit_bytes } = *self;
        let (name, limit) = (compression.name(), shown(limit_bytes));
        let need = need_bytes.map_or_else(|| format!("more than {limit}"), shown);
        let (is_most, tool) = match compression {
            Compression::Xz => (limit_bytes == XZ_BYTES_MAX, compression.tool()),
            Compression::Zstd => (limit_bytes == ZSTD_WINDOW_BYTES_MAX, "zstd -dc --long=31"),
            _ => (false, compression.tool()),
        };
        write!(to, "to decode its {name} data takes {need} of memory, and a worker may take {limit} for it. ")?;
        if !is_most {
            write!(to, "Raise Job::memory, or take fewer workers; or ")?;
        }
        let [first, rest] = if is_most { ["L", "et"] } else { ["l", "et"] };
        write!(to, "{first}{rest} {tool} decode it into a pipe, or pack it with a smaller window")
    }
}

impl std::error::Error for TooMuch {}

impl From<TooMuch> for io::Error {
    fn from(error: TooMuch) -> io::Error {
        io::Error::new(io::ErrorKind::OutOfMemory, error)
    }
}

/// Returns the largest window that zstd may use, as the exponent of a power of two.
fn zstd_window_log_max(memory: Memory) -> u32 {
    let window_bytes = memory.bytes().saturating_sub(ZSTD_BYTES).clamp(1 << 10, ZSTD_WINDOW_BYTES_MAX);
    window_bytes.ilog2()
}

/// Returns the window size in the header of a zstd frame, if it is one (RFC 8878, section 3.1.1.1).
///
/// ```text
///  magic (4) | descriptor: .. | single segment (1 bit) | .. | window: exponent (5 bits), mantissa (3 bits) | ...
/// ```
///
/// A single segment has no window size; its whole content is the window.
#[cfg(feature = "zstd")]
fn zstd_window_bytes(header: &[u8]) -> Option<u64> {
    let (magic, rest) = header.split_first_chunk()?;
    if u32::from_le_bytes(*magic) != 0xfd2f_b528 {
        return None;
    }
    let [descriptor, next, ..] = *rest else { return None };
    if descriptor & 0x20 == 0 {
        let base = 1 << (10 + u64::from(next >> 3));
        return Some(base + base / 8 * u64::from(next & 7));
    }
    // After the dictionary number.
    let at = 1 + [0, 1, 2, 4][usize::from(descriptor & 3)];
    let bytes = [1, 2, 4, 8][usize::from(descriptor >> 6)];
    let size = rest.get(at..at + bytes)?.iter().rev().fold(0, |size, byte| size << 8 | u64::from(*byte));
    Some(if bytes == 2 { size + 256 } else { size })
}

/// Returns whether the decoder failed because of its memory limit.
fn needs_too_much(error: &io::Error) -> bool {
    let Some(inner) = error.get_ref() else { return false };
    #[cfg(feature = "xz")]
    if let Some(error) = inner.downcast_ref() {
        return matches!(error, liblzma::stream::Error::MemLimit);
    }
    // zstd's library has no better sign than the text of its error frameParameter_windowTooLarge.
    inner.to_string() == "Frame requires too much memory for decoding"
}

/// Returns the error for a decoder that stays within its limit but is refused memory by the system.
fn refused(compression: Compression) -> io::Error {
    let name = compression.name();
    let what = format!("the system refused the memory to decode its {name} data: raise its limit (ulimit -v)");
    io::Error::new(io::ErrorKind::OutOfMemory, what)
}

/// Returns whether the system refused memory to the decoder.
fn is_refused(error: &io::Error) -> bool {
    let Some(inner) = error.get_ref() else { return error.kind() == io::ErrorKind::OutOfMemory };
    #[cfg(feature = "xz")]
    if let Some(error) = inner.downcast_ref() {
        return matches!(error, liblzma::stream::Error::Mem);
    }
    // zstd's library has no better sign than the text of its error memory_allocation.
    inner.to_string() == "Allocation error : not enough memory"
}

impl Read for Decoder {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        while let Some(member) = &mut self.member {
            let read = match member.read(to) {
                Ok(read) => read,
                Err(error) if self.compression == Some(Compression::Zstd) && is_no_frame(&error) => {
                    return Err(other_data(Compression::Zstd, offset(member.stored())));
                }
                Err(error) => return Err(self.explain(error)),
            };
            if read > 0 || to.is_empty() {
                return Ok(read);
            }
            self.member = match self.member.take().map(|member| member.into_stored()) {
                Some(stored) => self.next(stored)?,
                None => None,
            };
        }
        Ok(0)
    }
}

/// Makes the decoder of a member that begins with `start`.
fn member(
    compression: Option<Compression>,
    stored: BufReader<Stored>,
    start: &[u8],
    memory: Memory,
) -> io::Result<Box<dyn Member>> {
    let Some(compression) = compression else { return Ok(Box::new(stored)) };
    let allow = |need_bytes: u64, limit_bytes: u64| match need_bytes <= limit_bytes {
        true => Ok(()),
        false => Err(TooMuch { compression, need_bytes: Some(need_bytes), limit_bytes }),
    };
    Ok(match compression {
        #[cfg(feature = "gzip")]
        Compression::Gzip => Box::new(GzDecoder::new(stored)),
        #[cfg(feature = "zstd")]
        Compression::Zstd => {
            let log_max = zstd_window_log_max(memory);
            // From the second frame on the library checks the window by itself, and reports only the limit.
            allow(zstd_window_bytes(start).unwrap_or(0), 1 << log_max)?;
            let mut decoder = zstd::stream::read::Decoder::with_buffer(stored)?;
            decoder.window_log_max(log_max)?;
            Box::new(decoder)
        }
        #[cfg(feature = "bzip2")]
        Compression::Bzip2 => {
            // `BZh9` means blocks of 900 kB.
            let hundreds = start.get(3).map_or(0, |level| level.saturating_sub(b'0'));
            allow(u64::from(hundreds + 1) * BZIP2_BYTES, memory.bytes())?;
            Box::new(BzDecoder::new(stored))
        }
        Compression::Lz4 => {
            // Its fifth byte has flags, and its sixth the size of a block: 64 KiB, and four times as much for each
            // more.
            let size = start.get(5).map_or(7, |block| u32::from(block >> 4 & 7)).max(4);
            allow(lz4_bytes((64 << 10) << (2 * (size - 4))), memory.bytes())?;
            Box::new(FrameDecoder::new(Whole(stored)))
        }
        #[cfg(feature = "xz")]
        Compression::Xz => {
            let limit = memory.bytes().min(XZ_BYTES_MAX);
            let stream = liblzma::stream::Stream::new_stream_decoder(limit, 0);
            let stream = stream.map_err(|_| refused(compression))?;
            Box::new(XzDecoder::new_stream(stored, stream))
        }
        Compression::Zip => unreachable!("an archive has one file, which Decoder::of_entry reads"),
        #[allow(unreachable_patterns, reason = "with all features there is none")]
        _ => {
            let why = compression.lacking().expect("its decoder is left out");
            return Err(io::Error::new(io::ErrorKind::InvalidData, why));
        }
    })
}

impl Read for Stored {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let wanted = (to.len() as u64).min(self.range.end - self.range.start) as usize;
        let read = match &mut self.head {
            None => self.file.read_at(&mut to[..wanted], self.range.start)?,
            Some(head) if head.is_empty() => (&*self.file).read(&mut to[..wanted])?,
            Some(head) => {
                let read = wanted.min(head.len());
                to[..read].copy_from_slice(&head[..read]);
                head.drain(..read);
                read
            }
        };
        self.range.start += read as u64;
        Ok(read)
    }
}
