//! Encodings of text, and their recognition.
//!
//! Programs see UTF-8. A file that begins with the mark of UTF-16 is decoded, whatever its name says; a file without a
//! mark is taken as it is, unless the user names its encoding, or its first bytes are text only in UTF-16 or UTF-32
//! ([`crate::input::unmarked`]).

use std::fmt;
use std::str::FromStr;

use encoding_rs::{UTF_8, UTF_16BE, UTF_16LE};

use crate::input::unmarked::{Unmarked, unmarked};

/// The encoding of text files: a mark at the start of a file says it, and otherwise this setting
/// ([`Input::encoding`](crate::Input::encoding)).
///
/// By default a file without a mark is UTF-8, or any bytes: they are taken as they are, unless they look like UTF-16
/// or UTF-32. A named encoding is one of the [labels of the web](https://encoding.spec.whatwg.org/#names-and-labels),
/// such as `utf-16le`, `latin1` and `ascii` (which are windows-1252 there), `shift_jis` or `gb18030`. With `utf-8`,
/// bytes that are not UTF-8 are an error. With `bytes`, all bytes are taken as they are, marks included.
///
/// ```
/// use gristmill::Encoding;
///
/// let latin: Encoding = "ISO-8859-1".parse()?;
/// assert_eq!(latin.to_string(), "windows-1252");
/// assert_eq!("bytes".parse(), Ok(Encoding::BYTES));
/// assert!("klingon".parse::<Encoding>().is_err());
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Encoding(Rule);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Rule {
    /// A mark decides, and a file without one is taken as it is.
    #[default]
    ByMark,
    AsItIs,
    Named(&'static encoding_rs::Encoding),
}

impl FromStr for Encoding {
    type Err = String;

    /// Finds an encoding by its label.
    ///
    /// # Errors
    /// There is no such label.
    fn from_str(label: &str) -> Result<Encoding, String> {
        match encoding_rs::Encoding::for_label_no_replacement(label.as_bytes()) {
            Some(found) => Ok(Encoding(Rule::Named(found))),
            None if label.eq_ignore_ascii_case("bytes") => Ok(Encoding::BYTES),
            None if label.to_ascii_lowercase().starts_with("utf-32") => {
                Err("UTF-32 is not read: convert it first, as iconv -f UTF-32 -t UTF-8 does".to_owned())
            }
            None => Err("there is no encoding of this name; utf-8, utf-16le, utf-16be, latin1, windows-1251, shift_jis, euc-kr, \
                         gb18030 and the other labels of the web are known (encoding.spec.whatwg.org), and bytes, which decodes \
                         nothing"
                .to_owned()),
        }
    }
}

impl fmt::Display for Encoding {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(match self.0 {
            Rule::ByMark => "by mark",
            Rule::AsItIs => "bytes",
            Rule::Named(encoding) => encoding.name(),
        })
    }
}

impl Encoding {
    /// Takes all bytes as they are, a mark included.
    ///
    /// ```
    /// assert_eq!(gristmill::Encoding::BYTES.to_string(), "bytes");
    /// ```
    pub const BYTES: Encoding = Encoding(Rule::AsItIs);

    /// Returns the name of the encoding from which text is decoded, if one was named.
    ///
    /// ```
    /// use gristmill::Encoding;
    ///
    /// assert_eq!("latin1".parse::<Encoding>()?.name(), Some("windows-1252"));
    /// assert_eq!(Encoding::BYTES.name(), None);
    /// # Ok::<(), String>(())
    /// ```
    pub fn name(self) -> Option<&'static str> {
        match self.0 {
            Rule::Named(encoding) => Some(encoding.name()),
            Rule::ByMark | Rule::AsItIs => None,
        }
    }

    /// Returns the encoding from which a file that begins with `start` must be decoded; `None` if it is taken as it is.
    ///
    /// # Errors
    /// It is not text in an encoding that is read, or its encoding must be named.
    pub(crate) fn recognise(self, start: &[u8]) -> Result<Option<&'static encoding_rs::Encoding>, String> {
        match (start, self.0) {
            (_, Rule::AsItIs) => Ok(None),
            ([0xff, 0xfe, 0, 0, ..] | [0, 0, 0xfe, 0xff, ..], _) => Err(
                "it begins with the mark of UTF-32, which is not read: convert it first, as iconv -f UTF-32 -t UTF-8 does".to_owned(),
            ),
            ([0xff, 0xfe, ..], _) => Ok(Some(UTF_16LE)),
            ([0xfe, 0xff, ..], _) => Ok(Some(UTF_16BE)),
            ([0xef, 0xbb, 0xbf, ..], Rule::Named(_)) => Ok(Some(UTF_8)),
            ([0xef, 0xbb, 0xbf, ..], Rule::ByMark) => Ok(None),
            (_, Rule::Named(named)) => Ok(Some(named)),
            (_, Rule::ByMark) => match unmarked(start) {
                Some(Unmarked::Utf16(seems)) => Err(format!(
                    "it looks like text in UTF-16 without a mark. If it is, set Input::encoding to {seems}; if not, to bytes, and they \
                     are taken as they are"
                )),
                Some(Unmarked::Utf32(seems)) => Err(format!(
                    "it looks like text in UTF-32 without a mark, which is not read: convert it first, as iconv -f {seems} -t UTF-8 \
                     does; if it is none, set Input::encoding to bytes, and they are taken as they are"
                )),
                None => Ok(None),
            },
        }
    }

    /// Returns whether bytes are taken as they are, a mark included.
    pub(crate) fn is_bytes(self) -> bool {
        self == Encoding::BYTES
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
            (b"\xef\xbb\xbfa", Encoding::default(), Ok("as it is")),
            (b"\xef\xbb\xbfa", latin, Ok("UTF-8")),
            (b"caf\xe9", latin, Ok("windows-1252")),
            (b"caf\xe9", plain, Ok("UTF-8")),
            (b"a\0\n\0", Encoding::BYTES, Ok("as it is")),
            (b"\xff\xfea\0", Encoding::BYTES, Ok("as it is")),
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
