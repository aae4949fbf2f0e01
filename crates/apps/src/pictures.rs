//! The pixels of PNG and JPEG files that are whole.
//!
//! Decoders show what they can of a damaged picture, because a viewer wants that; a count wants all pixels or an error. So
//! the frame of a file is walked first, from its first marker or chunk to its last: a file that was cut off anywhere
//! lacks that. PNG's checksums are compared on the way. Then the decoder is told to be strict.
//!
//! What follows the last marker or chunk belongs to somebody else (previews, videos, a second picture) and is not read.

use image::ImageFormat;
use zune_jpeg::JpegDecoder;
use zune_jpeg::zune_core::bytestream::ZCursor;
use zune_jpeg::zune_core::colorspace::ColorSpace;
use zune_jpeg::zune_core::options::DecoderOptions;

/// The pixels of a PNG or JPEG file, three bytes each: red, green, blue.
pub fn decode(file: &[u8]) -> Result<Vec<u8>, String> {
    if file.starts_with(PNG) {
        walk_png(file)?;
        let image = image::load_from_memory_with_format(file, ImageFormat::Png).map_err(|error| error.to_string())?;
        return Ok(image.into_rgb8().into_raw());
    }
    walk_jpeg(file)?;
    jpeg(file).map_err(|error| format!("its JPEG data is damaged ({error})"))
}

fn jpeg(file: &[u8]) -> Result<Vec<u8>, zune_jpeg::errors::DecodeErrors> {
    // What stands between the segments of a header is none of the pixels' business.
    let options = DecoderOptions::default().set_strict_mode(false).set_max_width(usize::MAX).set_max_height(usize::MAX);
    let mut decoder = JpegDecoder::new_with_options(ZCursor::new(file), options);
    decoder.decode_headers()?;
    let is_grey = decoder.input_colorspace() == Some(ColorSpace::Luma);
    let colours = if is_grey { ColorSpace::Luma } else { ColorSpace::RGB };
    // Headers are decoded once; pixels follow the options of now.
    decoder.set_options(options.set_strict_mode(true).jpeg_set_out_colorspace(colours));
    let pixels = decoder.decode()?;
    Ok(if is_grey { pixels.into_iter().flat_map(|grey| [grey; 3]).collect() } else { pixels })
}

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n";

/// Walks over the chunks of a PNG file, to the last, which is called IEND.
///
/// ```text
///  signature | length, name, data, CRC of name and data | ... | 0, IEND, CRC
/// ```
fn walk_png(file: &[u8]) -> Result<(), String> {
    let cut = |at: usize| format!("the file is truncated: its PNG data ends at byte {at}, before its last chunk");
    let mut at = PNG.len();
    loop {
        let (length, rest) = file[at..].split_first_chunk().ok_or_else(|| cut(file.len()))?;
        let bytes = 4 + u32::from_be_bytes(*length) as usize;
        let (chunk, rest) = rest.split_at_checked(bytes).ok_or_else(|| cut(file.len()))?;
        let (checksum, _) = rest.split_first_chunk().ok_or_else(|| cut(file.len()))?;
        if crc32fast::hash(chunk) != u32::from_be_bytes(*checksum) {
            let name = chunk[..4].escape_ascii();
            return Err(format!("its PNG data is damaged: the checksum of the chunk {name} at byte {at} is wrong"));
        }
        if chunk.starts_with(b"IEND") {
            return Ok(());
        }
        at += bytes + 8;
    }
}

/// Walks over the segments and the coded pixels of a JPEG file, to the marker of its end.
///
/// ```text
///  FF D8 | FF marker, length, data | ... | FF DA, length, data, coded pixels | ... | FF D9
/// ```
///
/// In coded pixels FF stands only before 0, or before a marker of restart (D0 to D7).
fn walk_jpeg(file: &[u8]) -> Result<(), String> {
    let cut =
        || format!("the file is truncated: its JPEG data ends at byte {}, before the marker of its end", file.len());
    let mut at = 2;
    loop {
        // 1. The next marker. Any number of FF may stand before it.
        let marker = loop {
            at += memchr::memchr(0xff, &file[at..]).ok_or_else(cut)?;
            at += file[at..].iter().position(|byte| *byte != 0xff).ok_or_else(cut)?;
            at += 1;
            match file[at - 1] {
                0 | 0x01 | 0xd0..=0xd8 => {}
                marker => break marker,
            }
        };
        if marker == 0xd9 {
            return Ok(());
        }
        // 2. What it says, behind its length. The search for the next one passes over coded pixels.
        let length = file.get(at..at + 2).ok_or_else(cut)?;
        at += usize::from(u16::from_be_bytes([length[0], length[1]])).max(2);
        if at > file.len() {
            return Err(cut());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use image::{ImageEncoder, RgbImage};

    /// Pictures as the encoders of the `image` crate write them, and progressive JPEG.
    fn pictures() -> Vec<(&'static str, Vec<u8>)> {
        let image = RgbImage::from_fn(61, 47, |x, y| image::Rgb([(x * 4) as u8, (y * 5) as u8, (x * y) as u8]));
        let (mut png, mut jpeg, mut grey) = (Vec::new(), Vec::new(), Vec::new());
        let colours = image::ExtendedColorType::Rgb8;
        image::codecs::png::PngEncoder::new(&mut png).write_image(&image, 61, 47, colours).expect("encoded");
        image::codecs::jpeg::JpegEncoder::new(&mut jpeg).write_image(&image, 61, 47, colours).expect("encoded");
        let only_grey = image::DynamicImage::from(image).into_luma8();
        image::codecs::jpeg::JpegEncoder::new(&mut grey).encode_image(&only_grey).expect("encoded");
        vec![("png", png), ("jpeg", jpeg), ("grey jpeg", grey)]
    }

    /// A JPEG that was cut off was counted as if it were whole: what was missing counted as grey.
    #[test]
    fn a_picture_that_is_cut_off_anywhere_is_an_error() {
        for (name, whole) in pictures() {
            let pixels = decode(&whole).expect("it is whole");
            assert_eq!(pixels.len(), 61 * 47 * 3, "{name}");
            let theirs = image::load_from_memory(&whole).expect("it is whole").into_rgb8().into_raw();
            assert!(pixels == theirs, "{name} has other pixels");
            // Other programs leave things behind the end.
            assert!(decode(&[&whole[..], b"behind"].concat()).expect("it is whole") == pixels, "{name}");
            for end in 8..whole.len() {
                assert!(decode(&whole[..end]).is_err(), "{name} cut at {end} of {}", whole.len());
            }
        }
    }

    #[test]
    fn a_flipped_bit_of_a_png_is_an_error() {
        let (_, whole) = &pictures()[0];
        for at in PNG.len()..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 0x10;
            assert!(decode(&damaged).is_err(), "at byte {at}");
        }
    }
}
