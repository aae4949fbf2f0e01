//! Pixels of PNG and JPEG files, from complete files only.
//!
//! Decoders show as much as they can of a damaged picture, because a viewer wants that. A count wants all pixels or
//! an error. So a file's frame is walked from its first marker or chunk to its last: a truncated file lacks the last
//! one, or lacks pixels before it. PNG checksums are compared on the way, and decoders are strict.
//!
//! Data after the last marker or chunk (previews, videos, a second picture) is not read.

mod filling;
mod jpeg;
mod png;

use std::io::Read;

use self::filling::read_up_to;
use gristmill::files::{Memory, Verdict};

/// Calls `visit` with the pixels of a PNG or JPEG file, three bytes each: red, green, blue. They come in pieces, each
/// pixel once, in no particular order.
///
/// # Errors
/// The file is damaged or truncated, or needs more memory to decode than is allowed. Some pixels may have been
/// visited.
pub fn visit(mut content: impl Read, memory: Memory, visit: impl FnMut(&[u8])) -> Result<(), Verdict> {
    let mut start = [0; png::SIGNATURE.len()];
    let found = read_up_to(&mut content, &mut start)?;
    let content = start[..found].chain(content);
    if start[..found] == *png::SIGNATURE {
        png::visit(content, memory, visit)
    } else {
        jpeg::visit(content, memory, visit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use image::{DynamicImage, ExtendedColorType, ImageEncoder, ImageFormat, RgbImage};

    const PLENTY: Memory = Memory::of(64 << 20);

    fn decode(file: &[u8]) -> Result<Vec<u8>, String> {
        let mut pixels = Vec::new();
        let visited = visit(file, PLENTY, |piece| pixels.extend_from_slice(piece));
        match visited {
            Ok(()) => Ok(pixels),
            Err(Verdict::Bad(why)) => Err(why),
            Err(verdict) => panic!("{verdict:?}"),
        }
    }

    fn image() -> RgbImage {
        RgbImage::from_fn(61, 47, |x, y| image::Rgb([(x * 4) as u8, (y * 5) as u8, (x * y) as u8]))
    }

    /// Makes pictures with the encoders of the `image` crate, and JPEG with many scans and restarts, as libjpeg
    /// writes.
    fn pictures() -> Vec<(&'static str, Vec<u8>)> {
        let (mut png, mut jpeg, mut grey) = (Vec::new(), Vec::new(), Vec::new());
        let colours = ExtendedColorType::Rgb8;
        image::codecs::png::PngEncoder::new(&mut png).write_image(&image(), 61, 47, colours).expect("encoded");
        image::codecs::jpeg::JpegEncoder::new(&mut jpeg).write_image(&image(), 61, 47, colours).expect("encoded");
        let only_grey = DynamicImage::from(image()).into_luma8();
        image::codecs::jpeg::JpegEncoder::new(&mut grey).encode_image(&only_grey).expect("encoded");
        let files = [("png", png), ("jpeg", jpeg), ("grey jpeg", grey)];
        let made = [
            ("progressive jpeg", &include_bytes!("../tests/golden/progressive.jpg")[..]),
            ("jpeg with restarts", include_bytes!("../tests/golden/restarts.jpg")),
        ];
        files.into_iter().chain(made.map(|(name, file)| (name, file.to_vec()))).collect()
    }

    /// A truncated JPEG used to be counted as whole, with its missing pixels as grey.
    #[test]
    fn a_picture_that_is_cut_off_anywhere_is_an_error() {
        for (name, whole) in pictures() {
            let pixels = decode(&whole).unwrap_or_else(|why| panic!("{name}: {why}"));
            let theirs = image::load_from_memory(&whole).expect("it is whole").into_rgb8();
            assert!(pixels == *theirs.as_raw(), "{name} has other pixels");
            // Some programs append data after the end.
            assert!(decode(&[&whole[..], b"behind"].concat()).expect("it is whole") == pixels, "{name}");
            for end in 8..whole.len() {
                assert!(decode(&whole[..end]).is_err(), "{name} cut at {end} of {}", whole.len());
            }
        }
    }

    /// A truncated JPEG with an end marker appended, as some programs do, used to be counted as whole.
    #[test]
    fn a_truncated_jpeg_with_a_new_end_marker_is_an_error() {
        for (name, whole) in pictures().into_iter().filter(|(name, _)| name.contains("jpeg")) {
            let pixels = decode(&whole).expect("it is whole");
            let first_scan = whole.windows(2).position(|two| two == [0xff, 0xda]).expect("there is one") + 10;
            for end in first_scan..whole.len() - 2 {
                match decode(&[&whole[..end], &[0xff, 0xd9]].concat()) {
                    Err(_) => {}
                    // The last byte may hold only padding.
                    Ok(found) => {
                        assert!(end + 3 >= whole.len() && found == pixels, "{name} cut at {end}: taken for whole")
                    }
                }
            }
        }
    }

    #[test]
    fn a_flipped_bit_of_a_png_is_an_error() {
        let (_, whole) = &pictures()[0];
        for at in png::SIGNATURE.len()..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 0x10;
            assert!(decode(&damaged).is_err(), "at byte {at}");
        }
    }

    #[test]
    fn every_kind_of_png_decodes_to_the_right_pixels() {
        let image = DynamicImage::from(image());
        let grey = [image.to_luma8().into(), image.to_luma16().into(), image.to_luma_alpha8().into()];
        let colours = [image.to_rgba8().into(), image.to_rgb16().into(), image.to_rgba16().into()];
        for image in grey.into_iter().chain(colours) {
            let image: DynamicImage = image;
            let mut file = std::io::Cursor::new(Vec::new());
            image.write_to(&mut file, ImageFormat::Png).expect("encoded");
            assert!(decode(file.get_ref()).expect("it is whole") == *image.to_rgb8().as_raw(), "{:?}", image.color());
        }
    }

    /// A palette of four bytes once made the decoder panic, and the worker that counted the picture died.
    #[test]
    fn a_palette_with_a_part_of_a_colour_is_an_error() {
        let chunk = |name: &[u8], data: &[u8]| {
            let bytes = [name, data].concat();
            [&(data.len() as u32).to_be_bytes()[..], &bytes, &crc32fast::hash(&bytes).to_be_bytes()].concat()
        };
        let header = chunk(b"IHDR", &[0, 0, 0, 4, 0, 0, 0, 4, 8, 3, 0, 0, 0]);
        // The pixels are four rows of zeros, in one stored zlib block of 20 bytes.
        let rows = [&[0x78, 1, 1, 20, 0, 0xeb, 0xff][..], &[0; 20], &[0, 20, 0, 1]].concat();
        for palette in [0, 1, 2, 4, 5, 769] {
            let palette = chunk(b"PLTE", &vec![7; palette]);
            let file = [png::SIGNATURE, &header[..], &palette, &chunk(b"IDAT", &rows), &chunk(b"IEND", b"")].concat();
            let why = decode(&file).expect_err("part of a colour");
            assert!(why.contains("is damaged"), "{why}");
        }
        let palette = chunk(b"PLTE", &[7; 3]);
        let file = [png::SIGNATURE, &header[..], &palette, &chunk(b"IDAT", &rows), &chunk(b"IEND", b"")].concat();
        assert_eq!(decode(&file), Ok(vec![7; 48]));
    }

    /// A file of a kilobyte whose header said 65535 x 65535 pixels used to take 13 GB.
    #[test]
    fn a_header_that_claims_more_than_the_data_is_refused_before_memory_is_taken() {
        for (name, mut file) in pictures().into_iter().filter(|(name, _)| name.contains("jpeg")) {
            let frame = file.windows(2).position(|two| two[0] == 0xff && matches!(two[1], 0xc0..=0xc2)).expect("one");
            file[frame + 5..frame + 9].fill(0xff);
            let why = decode(&file).expect_err(name);
            assert!(why.contains("65535 x 65535 pixels take at least"), "{name}: {why}");
        }
    }

    #[test]
    fn a_picture_that_needs_too_much_memory_is_refused_with_the_amount() {
        for (name, file) in pictures() {
            let verdict = visit(&file[..], Memory::of(600), |_| {}).expect_err(name);
            let Verdict::TooLarge(why) = verdict else { panic!("{name} was called bad: {verdict:?}") };
            assert!(why.contains("Job::memory"), "{name}: {why}");
        }
    }
}
