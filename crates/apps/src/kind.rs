//! What a file holds: its name says it, or its first bytes do.

use std::io::Read;
use std::path::Path;

use gristmill::{Compression, Source};

use crate::error::{Error, Result, open_to_look};

/// Bytes that are looked at.
const START_BYTES: u64 = 8 << 10;

/// What a file holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Nothing.
    Empty,
    /// Text: rows of fields.
    Csv,
    /// Text: an object per line.
    JsonLines,
    /// Text: one array of JSON, which is not read line by line.
    JsonArray,
    /// Text in UTF-16, which has to be converted.
    Utf16,
    /// No text.
    Binary,
}

/// What a file was found to hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// What it holds.
    pub kind: Kind,
    /// Its name says so.
    pub by_name: bool,
}

impl Kind {
    /// Looks at the name and the first bytes of a file's content. A name that says what text it is does not make text of what is
    /// none.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn of(source: &Source) -> Result<Found> {
        let failed = |error| Error::read(&source.name, error);
        let mut start = Vec::new();
        open_to_look(source)?.take(START_BYTES).read_to_end(&mut start).map_err(failed)?;
        let extension = extension(&source.name);
        let named = match extension.as_deref() {
            Some("csv" | "tsv" | "tab") => Some(Kind::Csv),
            Some("jsonl" | "ndjson") => Some(Kind::JsonLines),
            _ => None,
        };
        let seen = of_bytes(&start);
        Ok(match (seen, named) {
            (Kind::Empty | Kind::Csv | Kind::JsonLines | Kind::JsonArray, Some(kind)) => Found { kind, by_name: true },
            // An array needs a name that says that it is JSON: a row may begin with a bracket.
            (Kind::JsonArray, None) if extension.as_deref() != Some("json") => {
                Found { kind: Kind::Csv, by_name: false }
            }
            (kind, _) => Found { kind, by_name: false },
        })
    }
}

fn of_bytes(start: &[u8]) -> Kind {
    if matches!(start, [0xff, 0xfe, ..] | [0xfe, 0xff, ..]) {
        return Kind::Utf16;
    }
    // Text has no control characters but white space and escape.
    if start.iter().any(|byte| matches!(byte, 0..=7 | 14..=26 | 28..=31 | 127)) {
        return Kind::Binary;
    }
    let text = start.strip_prefix(b"\xef\xbb\xbf").unwrap_or(start);
    match text.trim_ascii_start().first() {
        None if start.is_empty() => Kind::Empty,
        Some(b'{') => Kind::JsonLines,
        Some(b'[') => Kind::JsonArray,
        _ => Kind::Csv,
    }
}

/// The extension of a file's name, in small letters; what it says about compression is left out.
pub(crate) fn extension(name: &Path) -> Option<String> {
    let name = if Compression::of_name(name).is_some() { name.with_extension("") } else { name.to_owned() };
    name.extension().map(|extension| extension.to_ascii_lowercase().to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_bytes_say_what_a_file_holds() {
        for (start, expected) in [
            (&b""[..], Kind::Empty),
            (b"\n\n", Kind::Csv),
            (b"a,b\r\n1,2\n", Kind::Csv),
            (b"caf\xe9,1\n", Kind::Csv),
            (b"\xef\xbb\xbf\n {\"k\":1}\n", Kind::JsonLines),
            (b"[{\"k\":1}]", Kind::JsonArray),
            (b"\xff\xfea\0,\0", Kind::Utf16),
            (b"\x07\0\0\0\x01\0\0\0", Kind::Binary),
        ] {
            assert_eq!(of_bytes(start), expected, "{start:?}");
        }
    }
}
