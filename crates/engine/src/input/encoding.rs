//! Encodings of text, and their recognition.
//!
//! Programs see UTF-8. A file that begins with the mark of UTF-16 is decoded, whatever its name says; a file without a mark is
//! taken as it is, unless the user names its encoding.

use std::fmt;
use std::str::FromStr;

use encoding_rs::{UTF_8, UTF_16BE, UTF_16LE};

/// The encoding of text files: a mark at the start of a file says it, and otherwise this setting
/// ([`Input::encoding`](crate::Input::encoding)).
///
/// By default a file without a mark is UTF-8, or any bytes: they are taken as they are. A named encoding is one of the
/// [labels of the web](https://encoding.spec.whatwg.org/#names-and-labels), such as `utf-16le`, `latin1` (which is windows-1252
/// there), `shift_jis` or `gb18030`. With `utf-8`, a file is taken as it is even if it looks like UTF-16 without a mark.
///
/// ```
/// use gristmill::Encoding;
///
/// let latin: Encoding = "ISO-8859-1".parse()?;
/// assert_eq!(latin.to_string(), "windows-1252");
/// assert!("klingon".parse::<Encoding>().is_err());
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Encoding(Option<&'static encoding_rs::Encoding>);

impl FromStr for Encoding {
    type Err = String;

    /// Finds an encoding by its label.
    ///
    /// # Errors
    /// There is no such label.
    fn from_str(label: &str) -> Result<Encoding, String> {
        match encoding_rs::Encoding::for_label_no_replacement(label.as_bytes()) {
            Some(found) => Ok(Encoding(Some(found))),
            None if label.to_ascii_lowercase().starts_with("utf-32") => {
                Err("UTF-32 is not read: convert it first, as iconv -f UTF-32 -t UTF-8 does".to_owned())
            }
            None => Err("there is no encoding of this name; utf-8, utf-16le, utf-16be, latin1, windows-1251, shift_jis, euc-kr, \
                         gb18030 and the other labels of the web are known (encoding.spec.whatwg.org)"
                .to_owned()),
        }
    }
}

impl fmt::Display for Encoding {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(self.0.map_or("by mark", encoding_rs::Encoding::name))
    }
}

impl Encoding {
    /// Returns the encoding from which a file that begins with `start` must be decoded; `None` if it is taken as it is.
    ///
    /// # Errors
    /// It is not text in an encoding that is read, or its encoding must be named.
    pub(crate) fn recognise(self, start: &[u8]) -> Result<Option<&'static encoding_rs::Encoding>, String> {
        match (start, self.0) {
            ([0xff, 0xfe, 0, 0, ..] | [0, 0, 0xfe, 0xff, ..], _) => Err(
                "it begins with the mark of UTF-32, which is not read: convert it first, as iconv -f UTF-32 -t UTF-8 does".to_owned(),
            ),
            ([0xff, 0xfe, ..], _) => Ok(Some(UTF_16LE)),
            ([0xfe, 0xff, ..], _) => Ok(Some(UTF_16BE)),
            ([0xef, 0xbb, 0xbf, ..], _) => Ok(None),
            (_, Some(named)) => Ok(Some(named).filter(|named| *named != UTF_8)),
            (_, None) => match unmarked_utf_16(start) {
                Some(seems) => Err(format!(
                    "it looks like text in UTF-16 without a mark: every second byte is NUL. If it is, set Input::encoding to {seems}; if \
                     not, to utf-8, and its bytes are taken as they are"
                )),
                None => Ok(None),
            },
        }
    }
}

/// Returns the label of UTF-16 if bytes are text of Western Europe in it: every second byte of theirs is NUL, and no other.
fn unmarked_utf_16(start: &[u8]) -> Option<&'static str> {
    let (pairs, _) = start.as_chunks::<2>();
    let nuls = |place: usize| pairs.iter().filter(|pair| pair[place] == 0).count();
    match [nuls(0), nuls(1)] {
        _ if pairs.len() < 2 => None,
        // A few may be quotation marks or dashes, which have another first byte.
        [0, second] if second >= pairs.len() - pairs.len() / 8 => Some("utf-16le"),
        [first, 0] if first >= pairs.len() - pairs.len() / 8 => Some("utf-16be"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_says_more_than_a_name_and_nothing_is_guessed() {
        // UTF-16 was counted as bytes, so that no word of it was found.
        let latin: Encoding = "latin1".parse().expect("a label");
        let plain: Encoding = "utf-8".parse().expect("a label");
        for (start, encoding, expected) in [
            (&b""[..], Encoding::default(), Ok("as it is")),
            (b"text", Encoding::default(), Ok("as it is")),
            (b"\xff\xfea\0", latin, Ok("UTF-16LE")),
            (b"\xfe\xff\0a", Encoding::default(), Ok("UTF-16BE")),
            (b"\xef\xbb\xbfa", latin, Ok("as it is")),
            (b"caf\xe9", latin, Ok("windows-1252")),
            (b"a\0\n\0", plain, Ok("as it is")),
            (b"a\0\n\0", Encoding::default(), Err("utf-16le")),
            (b"\0a\0\n", Encoding::default(), Err("utf-16be")),
            (b"a\0b\xffc\0", Encoding::default(), Ok("as it is")),
            (b"\x41\0\0\0\x02\0\0\0", Encoding::default(), Ok("as it is")),
            (b"\xff\xfe\0\0a\0\0\0", Encoding::default(), Err("iconv -f UTF-32")),
        ] {
            let found = encoding.recognise(start).map(|found| found.map_or("as it is", encoding_rs::Encoding::name));
            match (found, expected) {
                (Ok(found), Ok(expected)) => assert_eq!(found, expected, "{start:?}"),
                (Err(why), Err(expected)) => assert!(why.contains(expected), "{why}"),
                (found, _) => panic!("{start:?}: {found:?}"),
            }
        }
    }
}
