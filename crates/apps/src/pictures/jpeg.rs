//! JPEG: decoded whole, after checking that its data is complete and that its pixels fit in memory.
//!
//! ```text
//!  FF D8 | FF marker, length, data | ... | FF DA, length, data, coded pixels | ... | FF D9
//! ```
//!
//! In coded pixels, FF is followed only by 0 or by a restart marker (D0 to D7).
//!
//! Decoders silently take missing data before the end marker for zeros, even in strict mode. So the marker is moved,
//! and one bits are put before it: no JPEG code consists of ones only (T.81, annex C). A decoder that has not found
//! all pixels by then meets an invalid code and fails.

use std::io::Read;

use gristmill::files::{Memory, Verdict};
use zune_jpeg::JpegDecoder;
use zune_jpeg::errors::DecodeErrors;
use zune_jpeg::zune_core::bytestream::ZCursor;
use zune_jpeg::zune_core::colorspace::ColorSpace;
use zune_jpeg::zune_core::options::DecoderOptions;

/// One bits, stuffed as in coded pixels, and the end marker.
const END: &[u8] = b"\xff\x00\xff\x00\xff\x00\xff\x00\xff\x00\xff\x00\xff\x00\xff\x00\xff\xd9";

/// The number of pixels of a grey picture that are visited at once.
const GREY_PIXELS: usize = 4096;

pub fn visit(content: impl Read, memory: Memory, mut visit: impl FnMut(&[u8])) -> Result<(), Verdict> {
    let mut file = memory.read(content)?;
    let (frame, end) = walk(&mut file)?;
    let need_bytes = frame.need_bytes() + (file.len() + END.len()) as u64;
    memory
        .allow(need_bytes)
        .map_err(|why| Verdict::TooLarge(format!("to decode its {} x {} pixels {why}", frame.width, frame.height)))?;
    file.truncate(end);
    file.extend_from_slice(END);
    let (pixels, is_grey) = decode(&file).map_err(|error| format!("its JPEG data is damaged ({error})"))?;
    if is_grey {
        let mut shown = Vec::with_capacity(3 * GREY_PIXELS);
        for piece in pixels.chunks(GREY_PIXELS) {
            shown.clear();
            shown.extend(piece.iter().flat_map(|grey| [*grey; 3]));
            visit(&shown);
        }
    } else {
        visit(&pixels);
    }
    Ok(())
}

/// Decodes the pixels, to one byte each if all of them are grey.
fn decode(file: &[u8]) -> Result<(Vec<u8>, bool), DecodeErrors> {
    // Stray bytes between the header's segments do not affect the pixels.
    let options = DecoderOptions::default().set_strict_mode(false).set_max_width(usize::MAX).set_max_height(usize::MAX);
    let mut decoder = JpegDecoder::new_with_options(ZCursor::new(file), options);
    decoder.decode_headers()?;
    let is_grey = decoder.input_colorspace() == Some(ColorSpace::Luma);
    let colours = if is_grey { ColorSpace::Luma } else { ColorSpace::RGB };
    // Headers are decoded once; the pixels are decoded with the options set here.
    decoder.set_options(options.set_strict_mode(true).jpeg_set_out_colorspace(colours));
    Ok((decoder.decode()?, is_grey))
}

/// The components of a picture, and how much of each has been seen.
#[derive(Default)]
struct Frame {
    is_progressive: bool,
    width: u64,
    height: u64,
    components: Vec<Component>,
    scans: u64,
}

struct Component {
    name: u8,
    /// The sampling factors in each direction, relative to the other components.
    across: u64,
    down: u64,
    /// For each coefficient of a block, the number of its lowest bits that have not been sent; at first all of them.
    missing_bits: [u8; 64],
}

impl Frame {
    /// Parses a frame header after its length:
    /// `bits of a sample, height (2), width (2), components, { name, sampling, table } ...`
    fn read(marker: u8, segment: &[u8]) -> Option<Frame> {
        let [_, h1, h0, w1, w0, components, rest @ ..] = segment else { return None };
        let components = rest.chunks_exact(3).take(usize::from(*components)).map(|component| {
            let [across, down] = [component[1] >> 4, component[1] & 15];
            let is_valid = (1..=4).contains(&across) && (1..=4).contains(&down);
            is_valid.then_some(Component {
                name: component[0],
                across: across.into(),
                down: down.into(),
                missing_bits: [u8::MAX; 64],
            })
        });
        Some(Frame {
            is_progressive: matches!(marker, 0xc2 | 0xc6 | 0xca | 0xce),
            width: u16::from_be_bytes([*w1, *w0]).into(),
            height: u16::from_be_bytes([*h1, *h0]).into(),
            components: components.collect::<Option<_>>()?,
            scans: 0,
        })
    }

    /// Records a scan, whose header is `components, { name, tables } ..., first and last coefficient, bits`. Returns
    /// the minimum number of bits of its coded pixels.
    fn add(&mut self, segment: &[u8]) -> Option<u64> {
        let (count, rest) = segment.split_first()?;
        let (names, rest) = rest.split_at_checked(2 * usize::from(*count))?;
        let [first, last, bits, ..] = *rest else { return None };
        self.scans += 1;
        let range = if self.is_progressive { usize::from(first)..=usize::from(last) } else { 0..=63 };
        let missing = if self.is_progressive { bits & 15 } else { 0 };
        let (most_across, most_down) = self.most();
        let (mut blocks, mut alone) = (0, 0);
        for name in names.chunks_exact(2) {
            let component = self.components.iter_mut().find(|component| component.name == name[0])?;
            component.missing_bits.get_mut(range.clone())?.fill(missing);
            let Component { across, down, .. } = *component;
            blocks += across * down;
            alone = (self.width * across).div_ceil(8 * most_across) * (self.height * down).div_ceil(8 * most_down);
        }
        let all = self.width.div_ceil(8 * most_across) * self.height.div_ceil(8 * most_down) * blocks;
        // Each block has a code of at least one bit for its mean, and one that ends the other coefficients. In a scan
        // with only the latter, one code may end many blocks.
        let bits_of_a_block = match (self.is_progressive, first) {
            (false, _) => 2,
            (true, 0) => 1,
            (true, _) => 0,
        };
        Some(bits_of_a_block * if *count == 1 { alone } else { all })
    }

    /// Returns the sampling factors of the finest component, across and down.
    fn most(&self) -> (u64, u64) {
        let most = |of: fn(&Component) -> u64| self.components.iter().map(of).max().unwrap_or(1);
        (most(|component| component.across), most(|component| component.down))
    }

    /// Returns true if every coefficient of every component has been sent, to its last bit.
    fn is_complete(&self) -> bool {
        self.components.iter().all(|component| component.missing_bits == [0; 64])
    }

    /// Returns the memory for decoding, without the file.
    fn need_bytes(&self) -> u64 {
        let components = self.components.len() as u64;
        let (across, down) = self.most();
        let padded = self.width.next_multiple_of(8 * across) * self.height.next_multiple_of(8 * down) * components;
        // The pixels; the coefficients, 16 bits each, if they come in several scans; some rows of blocks.
        let coefficients = if self.is_progressive || self.scans > 1 { 2 * padded } else { 0 };
        3 * self.width * self.height + coefficients + 1024 * components.max(1) * self.width
    }
}

/// Walks over the segments and the coded pixels of a file, up to the end marker. Returns the frame and the position
/// of that marker. Segments that do not affect the pixels become comments, which the decoder ignores.
fn walk(file: &mut [u8]) -> Result<(Frame, usize), String> {
    let length = file.len();
    let cut = || format!("the file is truncated: its JPEG data ends at byte {length}, before the marker of its end");
    let damaged = |at: usize| format!("its JPEG data is damaged: the header at byte {at} cannot be understood");
    let mut frame = Frame::default();
    // The start of a scan's coded pixels, and the minimum number of their bits.
    let mut scan: Option<(usize, u64)> = None;
    let mut at = 2;
    loop {
        // 1. The next marker. Any number of FF may precede it. The search skips coded pixels.
        let marker = loop {
            at += memchr::memchr(0xff, file.get(at..).unwrap_or_default()).ok_or_else(cut)?;
            at += file[at..].iter().position(|byte| *byte != 0xff).ok_or_else(cut)?;
            at += 1;
            match file[at - 1] {
                0 | 0x01 | 0xd0..=0xd8 => {}
                marker => break marker,
            }
        };
        // 2. Check that all pixels of the previous scan can be there.
        if let Some((from, bits)) = scan.take() {
            let found = (at - 2).saturating_sub(from) as u64;
            if found.saturating_mul(8) < bits {
                let (Frame { width, height, .. }, bytes) = (&frame, bits.div_ceil(8));
                return Err(format!(
                    "the file is truncated: its {width} x {height} pixels take at least {bytes} bytes, and {found} of them \
                     are there"
                ));
            }
        }
        if marker == 0xd9 {
            if !frame.is_complete() {
                return Err(format!(
                    "the file is truncated: the marker of its end, at byte {}, comes before the last bits of its pixels",
                    at - 2
                ));
            }
            return Ok((frame, at - 2));
        }
        // 3. Its segment, after the length.
        let bytes = file.get(at..at + 2).ok_or_else(cut)?;
        let bytes = usize::from(u16::from_be_bytes([bytes[0], bytes[1]])).max(2);
        let segment = file.get(at + 2..at + bytes).ok_or_else(cut)?;
        match marker {
            // Frames of all kinds; the other three markers define tables.
            0xc0..=0xcf if !matches!(marker, 0xc4 | 0xc8 | 0xcc) => {
                frame = Frame::read(marker, segment).ok_or_else(|| damaged(at - 2))?;
            }
            0xda => {
                let bits = frame.add(segment).ok_or_else(|| damaged(at - 2))?;
                scan = Some((at + bytes, bits));
            }
            // The JFIF and Adobe segments tell how the colours are coded.
            0xe1..=0xed | 0xef => file[at - 1] = 0xfe,
            _ => {}
        }
        at += bytes;
    }
}
