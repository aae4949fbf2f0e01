//! File formats, told by a file's name or its first bytes.

use std::fmt;
use std::io::Read;
use std::path::Path;

use gristmill::files::{Compression, Source};

use crate::error::{Error, Result, open_to_look};

/// The number of bytes that are examined.
const START_BYTES: u64 = 8 << 10;

/// The byte order mark at the start of some UTF-8 files. It belongs to no field.
pub(crate) const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// The format of a file's content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileFormat {
    /// The file is empty.
    Empty,
    /// Text with rows of fields.
    Csv,
    /// Text with one object per line.
    JsonLines,
    /// Text that is one JSON array, which cannot be read line by line.
    JsonArray,
    /// Text in UTF-16, which must be converted first.
    Utf16,
    /// Not text, because of this byte.
    Binary(Control),
}

/// A control character, which text does not contain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Control {
    /// Its offset in the content.
    pub offset: usize,
    /// The byte itself.
    pub byte: u8,
}

impl fmt::Display for Control {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Control { offset, byte } = self;
        let name = match byte {
            0 => ", a NUL",
            0x1a => ", the Ctrl-Z that ends files of DOS",
            _ => "",
        };
        write!(to, "byte {offset} of it is {byte:02x}{name}")
    }
}

/// The format that was found, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// The format.
    pub kind: FileFormat,
    /// True if the file's name gave the format.
    pub by_name: bool,
}

impl FileFormat {
    /// Determines the format from the name and the first bytes of the content. Content that is not text is `Binary`
    /// even if its name says otherwise.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn of(source: &Source) -> Result<Found> {
        let failed = |error| Error::read(&source.name, error);
        let mut start = Vec::new();
        open_to_look(source)?.take(START_BYTES).read_to_end(&mut start).map_err(failed)?;
        let extension = extension(&source.name);
        let named = match extension.as_deref() {
            Some("csv" | "tsv" | "tab") => Some(FileFormat::Csv),
            Some("jsonl" | "ndjson") => Some(FileFormat::JsonLines),
            _ => None,
        };
        let seen = of_bytes(&start);
        Ok(match (seen, named) {
            (FileFormat::Empty | FileFormat::Csv | FileFormat::JsonLines | FileFormat::JsonArray, Some(kind)) => {
                Found { kind, by_name: true }
            }
            // A CSV row may begin with a bracket, too.
            (FileFormat::JsonArray, None) if extension.as_deref() != Some("json") && !is_of_objects(&start) => {
                Found { kind: FileFormat::Csv, by_name: false }
            }
            (kind, _) => Found { kind, by_name: false },
        })
    }
}

/// Returns text without the mark of UTF-8 before it.
pub(crate) fn without_mark(text: &[u8]) -> &[u8] {
    text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text)
}

fn of_bytes(start: &[u8]) -> FileFormat {
    if matches!(start, [0xff, 0xfe, ..] | [0xfe, 0xff, ..]) {
        return FileFormat::Utf16;
    }
    // Text has no control characters except white space and escape.
    if let Some(offset) = start.iter().position(|byte| matches!(byte, 0..=7 | 14..=26 | 28..=31 | 127)) {
        return FileFormat::Binary(Control { offset, byte: start[offset] });
    }
    let text = without_mark(start);
    match text.trim_ascii_start().first() {
        None if start.is_empty() => FileFormat::Empty,
        Some(b'{') => FileFormat::JsonLines,
        Some(b'[') => FileFormat::JsonArray,
        _ => FileFormat::Csv,
    }
}

/// Returns true if an array of JSON begins with an object.
fn is_of_objects(array: &[u8]) -> bool {
    let inside = without_mark(array).trim_ascii_start().strip_prefix(b"[");
    inside.is_some_and(|inside| inside.trim_ascii_start().starts_with(b"{"))
}

/// Returns the extension of a file's name in lower case, without a suffix for compression.
pub(crate) fn extension(name: &Path) -> Option<String> {
    let name = if Compression::of_name(name).is_some() { name.with_extension("") } else { name.to_owned() };
    name.extension().map(|extension| extension.to_ascii_lowercase().to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_format_is_found_from_the_first_bytes() {
        for (start, expected) in [
            (&b""[..], FileFormat::Empty),
            (b"\n\n", FileFormat::Csv),
            (b"a,b\r\n1,2\n", FileFormat::Csv),
            (b"caf\xe9,1\n", FileFormat::Csv),
            (b"\xef\xbb\xbf\n {\"k\":1}\n", FileFormat::JsonLines),
            (b"[{\"k\":1}]", FileFormat::JsonArray),
            (b"\xff\xfea\0,\0", FileFormat::Utf16),
            (b"\x07\0\0\0\x01\0\0\0", FileFormat::Binary(Control { offset: 0, byte: 7 })),
            (b"a,b\n1,2\n\x1a", FileFormat::Binary(Control { offset: 8, byte: 0x1a })),
        ] {
            assert_eq!(of_bytes(start), expected, "{start:?}");
        }
    }
}
