//! The pixels of PNG and JPEG files that are whole.
//!
//! Decoders show what they can of a damaged picture, because a viewer wants that; a count wants all pixels or an error. So
//! the frame of a file is walked from its first marker or chunk to its last: a file that was cut off anywhere lacks that,
//! or lacks pixels before it. PNG's checksums are compared on the way, and decoders are told to be strict.
//!
//! What follows the last marker or chunk belongs to somebody else (previews, videos, a second picture) and is not read.

mod filling;
mod jpeg;
mod png;

use std::io::Read;

use self::filling::read_up_to;
use gristmill::{Memory, Verdict};

/// Calls `visit` with the pixels of a PNG or JPEG file, three bytes each: red, green, blue. They come in pieces, each pixel
/// once, in no certain order.
///
/// # Errors
/// The file is damaged, is cut off, or takes more memory to decode than it may; some pixels may have been visited.
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

    /// Pictures as the encoders of the `image` crate write them, and JPEG in many scans and with restarts, as libjpeg does.
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

    /// A JPEG that was cut off was counted as if it were whole: what was missing counted as grey.
    #[test]
    fn a_picture_that_is_cut_off_anywhere_is_an_error() {
        for (name, whole) in pictures() {
            let pixels = decode(&whole).unwrap_or_else(|why| panic!("{name}: {why}"));
            let theirs = image::load_from_memory(&whole).expect("it is whole").into_rgb8();
            assert!(pixels == *theirs.as_raw(), "{name} has other pixels");
            // Other programs leave things behind the end.
            assert!(decode(&[&whole[..], b"behind"].concat()).expect("it is whole") == pixels, "{name}");
            for end in 8..whole.len() {
                assert!(decode(&whole[..end]).is_err(), "{name} cut at {end} of {}", whole.len());
            }
        }
    }

    /// A JPEG that was cut off and got a marker of its end, as some programs put it there, was counted as if it were whole.
    #[test]
    fn a_jpeg_that_is_cut_off_and_closed_again_is_an_error() {
        for (name, whole) in pictures().into_iter().filter(|(name, _)| name.contains("jpeg")) {
            let pixels = decode(&whole).expect("it is whole");
            let first_scan = whole.windows(2).position(|two| two == [0xff, 0xda]).expect("there is one") + 10;
            for end in first_scan..whole.len() - 2 {
                match decode(&[&whole[..end], &[0xff, 0xd9]].concat()) {
                    Err(_) => {}
                    // The last byte may hold nothing but padding.
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
    fn png_of_every_kind_has_the_pixels_that_others_find() {
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

    /// A file of a kilobyte whose header said 65535 x 65535 pixels took 13 GB.
    #[test]
    fn a_header_that_says_more_than_the_data_holds_is_refused_before_memory_is_taken() {
        for (name, mut file) in pictures().into_iter().filter(|(name, _)| name.contains("jpeg")) {
            let frame = file.windows(2).position(|two| two[0] == 0xff && matches!(two[1], 0xc0..=0xc2)).expect("one");
            file[frame + 5..frame + 9].fill(0xff);
            let why = decode(&file).expect_err(name);
            assert!(why.contains("65535 x 65535 pixels take at least"), "{name}: {why}");
        }
    }

    #[test]
    fn a_picture_that_takes_too_much_memory_is_refused_with_what_it_takes() {
        for (name, file) in pictures() {
            let verdict = visit(&file[..], Memory::of(600), |_| {}).expect_err(name);
            let Verdict::TooLarge(why) = verdict else { panic!("{name} was called bad: {verdict:?}") };
            assert!(why.contains("Job::memory"), "{name}: {why}");
        }
    }
}
