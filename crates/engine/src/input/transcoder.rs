//! Decoding of text to UTF-8 as it is read.
//!
//! Bytes that are no character of the encoding are an error that names their place; nothing is replaced in silence.

use std::io::{self, Read};

use encoding_rs::{DecoderResult, Encoding};

/// The number of bytes decoded at a time.
const RAW_BYTES: usize = 64 << 10;
/// Room for their UTF-8. A byte becomes three at most, and what does not fit is decoded next time.
const TEXT_BYTES: usize = 3 * RAW_BYTES + 16;

/// Decodes text, without the mark before it.
pub(crate) struct Transcoder {
    name: &'static str,
    decoder: encoding_rs::Decoder,
    /// Bytes of the file, of which those from `raw_at` on are not decoded.
    raw: Vec<u8>,
    raw_at: usize,
    /// The offset in the file of the byte at `raw_at`.
    place: u64,
    /// UTF-8, of which what is before `text_at` has been read.
    text: Vec<u8>,
    text_at: usize,
    is_over: bool,
}

impl Transcoder {
    /// Makes a decoder of a file that begins with `start`, which has been read.
    pub fn new(encoding: &'static Encoding, start: Vec<u8>) -> Transcoder {
        Transcoder {
            name: encoding.name(),
            decoder: encoding.new_decoder_with_bom_removal(),
            raw: start,
            raw_at: 0,
            place: 0,
            text: Vec::new(),
            text_at: 0,
            is_over: false,
        }
    }

    /// Reads text; `from` gives what follows the start of the file.
    ///
    /// # Errors
    /// Those of `from`; bytes that are not text in this encoding.
    pub fn read(&mut self, from: &mut impl Read, to: &mut [u8]) -> io::Result<usize> {
        while self.text_at == self.text.len() && !self.is_over {
            let mut is_last = false;
            if self.raw_at == self.raw.len() {
                self.raw.resize(RAW_BYTES, 0);
                // A failure must not make these zeros text.
                self.raw_at = RAW_BYTES;
                let read = from.read(&mut self.raw)?;
                self.raw.truncate(read);
                self.raw_at = 0;
                is_last = read == 0;
            }
            self.decode(is_last)?;
        }
        let read = to.len().min(self.text.len() - self.text_at);
        to[..read].copy_from_slice(&self.text[self.text_at..][..read]);
        self.text_at += read;
        Ok(read)
    }

    fn decode(&mut self, is_last: bool) -> io::Result<()> {
        self.text.resize(TEXT_BYTES, 0);
        let (result, read, written) =
            self.decoder.decode_to_utf8_without_replacement(&self.raw[self.raw_at..], &mut self.text, is_last);
        self.text.truncate(written);
        self.text_at = 0;
        self.raw_at += read;
        self.place += read as u64;
        match result {
            DecoderResult::InputEmpty => self.is_over = is_last,
            DecoderResult::OutputFull => {}
            DecoderResult::Malformed(bytes, after) => {
                let at = self.place.saturating_sub(u64::from(bytes) + u64::from(after));
                let what = format!(
                    "it is not all text in {}: byte {at} of it begins no whole character. Name the encoding that it has with \
                     Input::encoding, or repair it, as iconv -c does",
                    self.name
                );
                return Err(io::Error::new(io::ErrorKind::InvalidData, what));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Gives its bytes in pieces of some size.
    struct Pieces<'b>(&'b [u8], usize);

    impl Read for Pieces<'_> {
        fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
            let read = self.1.min(to.len()).min(self.0.len());
            to[..read].copy_from_slice(&self.0[..read]);
            self.0 = &self.0[read..];
            Ok(read)
        }
    }

    fn text_of(encoding: &'static Encoding, bytes: &[u8], start: usize, piece: usize) -> io::Result<Vec<u8>> {
        let (start, rest) = bytes.split_at(start.min(bytes.len()));
        let (mut transcoder, mut from) = (Transcoder::new(encoding, start.to_vec()), Pieces(rest, piece));
        let (mut text, mut some) = (Vec::new(), vec![0; piece]);
        loop {
            match transcoder.read(&mut from, &mut some)? {
                0 => return Ok(text),
                read => text.extend_from_slice(&some[..read]),
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn text_is_the_same_however_it_is_cut(text in "[a\u{e9}\u{20ac}\u{1f438}\n]{0,80}", start in 0usize..20, piece in 1usize..9) {
            for (encoding, mark) in [(encoding_rs::UTF_16LE, "\u{feff}"), (encoding_rs::UTF_16BE, "")] {
                let units = mark.encode_utf16().chain(text.encode_utf16());
                let bytes: Vec<u8> = match encoding == encoding_rs::UTF_16LE {
                    true => units.flat_map(u16::to_le_bytes).collect(),
                    false => units.flat_map(u16::to_be_bytes).collect(),
                };
                let found = text_of(encoding, &bytes, start, piece).expect("text");
                prop_assert_eq!(String::from_utf8(found).expect("UTF-8"), text.clone());
            }
        }
    }

    #[test]
    fn bytes_that_are_no_character_are_named_with_their_place() {
        // Half of a surrogate pair, and an odd number of bytes.
        for (bytes, at) in [(&b"a\0\x3d\xd8b\0"[..], 2), (b"a\0b\0c", 4), (b"\xff\xfe\x00\xdca\0", 2)] {
            for piece in 1..7 {
                let error = text_of(encoding_rs::UTF_16LE, bytes, 0, piece).expect_err("no text").to_string();
                assert!(error.contains(&format!("not all text in UTF-16LE: byte {at} of it")), "{error}");
            }
        }
        let error = text_of(encoding_rs::SHIFT_JIS, b"ab\x81", 3, 1).expect_err("no text").to_string();
        assert!(error.contains("Shift_JIS: byte 2 of it"), "{error}");
        assert_eq!(text_of(encoding_rs::WINDOWS_1252, b"caf\xe9 \x80", 3, 1).expect("text"), "café €".as_bytes());
    }
}
