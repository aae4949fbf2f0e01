//! Formats that are not read, recognised so that nobody counts their bytes as text.
//!
//! Each begins with bytes that no text has, most with control characters. A file of a format without such a beginning is known by
//! its name, if its bytes are not text either.

use std::path::Path;

use crate::input::compression::Compression;

/// The number of bytes at the start of a file that suffice to recognise everything: the first header of a tar archive.
pub(crate) const START_BYTES: usize = 512;

/// A format that is not read.
struct Format {
    /// The name, with its article.
    name: &'static str,
    begins: fn(&[u8]) -> bool,
    /// The command that writes the content to standard output.
    tool: &'static str,
}

const FORMATS: [Format; 11] = [
    Format { name: "a 7z archive", begins: |start| start.starts_with(b"7z\xbc\xaf\x27\x1c"), tool: "7z x -so" },
    Format { name: "a tar archive", begins: is_tar, tool: "tar -xOf" },
    Format { name: "a file of compress", begins: |start| start.starts_with(b"\x1f\x9d"), tool: "gzip -dc" },
    Format { name: "an lzma file", begins: is_lzma, tool: "xz --format=lzma -dc" },
    Format {
        name: "an lz4 file of the old format",
        begins: |start| start.starts_with(b"\x02\x21\x4c\x18"),
        tool: "lz4 -dc",
    },
    Format { name: "an lzip file", begins: |start| start.starts_with(b"LZIP\x01"), tool: "lzip -dc" },
    Format { name: "an lzop file", begins: |start| start.starts_with(b"\x89LZO\0\r\n\x1a\n"), tool: "lzop -dc" },
    Format { name: "a snappy file", begins: |start| start.starts_with(b"\xff\x06\0\0sNaPpY"), tool: "snzip -dc" },
    Format { name: "a RAR archive", begins: |start| start.starts_with(b"Rar!\x1a\x07"), tool: "unrar p -inul" },
    Format { name: "a cabinet archive", begins: |start| start.starts_with(b"MSCF\0\0\0\0"), tool: "cabextract -p" },
    Format { name: "a xar archive", begins: |start| start.starts_with(b"xar!\0\x1c"), tool: "bsdtar -xOf" },
];

fn is_tar(start: &[u8]) -> bool {
    start.get(257..265).is_some_and(|magic| magic == b"ustar\x0000" || magic == b"ustar  \0")
}

/// The settings as `xz` writes them, a dictionary of a power of two or one and a half of it, and a size that is unknown or below
/// 256 GiB.
fn is_lzma(start: &[u8]) -> bool {
    let Some(([0x5d, dictionary @ ..], size)) = start.split_first_chunk::<5>() else { return false };
    let dictionary = u32::from_le_bytes(*dictionary);
    let size = size.first_chunk().map(|size| u64::from_le_bytes(*size));
    dictionary >= 4096 && dictionary.count_ones() <= 2 && size.is_some_and(|size| size == u64::MAX || size < 1 << 38)
}

/// brotli has no mark: its name must say it, and the bytes must not be text.
fn is_brotli(name: &Path, start: &[u8]) -> bool {
    let is_control = |byte: &u8| matches!(byte, 0..=7 | 14..=26 | 28..=31 | 127);
    let is_named = name.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("br"));
    is_named && (start.iter().any(is_control) || str::from_utf8(start).is_err_and(|error| error.error_len().is_some()))
}

/// Refuses a file that begins with `start`, which is its content after decompression by `outer`, if it is of a format that is
/// not read.
///
/// # Errors
/// Says what it is, and which command unpacks it.
pub(crate) fn refuse(name: &Path, outer: Option<Compression>, start: &[u8]) -> Result<(), String> {
    let found = FORMATS.iter().find(|format| (format.begins)(start)).map(|format| (format.name, format.tool));
    let again = Compression::of_bytes(start).map(|inner| (inner.file(), inner.tool()));
    let found = match outer {
        None => found.or_else(|| is_brotli(name, start).then_some(("a brotli file", "brotli -dc"))),
        Some(_) => found.or(again),
    };
    match (found, outer) {
        (None, _) => Ok(()),
        (Some((what, tool)), None) => Err(format!("it is {what}, which is not read: let {tool} unpack it into a pipe")),
        // tar unpacks both layers.
        (Some((what, tool)), Some(_)) if tool.starts_with("tar") => {
            Err(format!("what it has packed is {what}, which is not read: let {tool} unpack it into a pipe"))
        }
        (Some((what, tool)), Some(outer)) => Err(format!(
            "what it has packed is {what}, and only one layer is unpacked: let {} and then {tool} unpack it into a pipe",
            outer.tool()
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Archives were counted as text, `word-count a.7z` with status 0.
    #[test]
    fn formats_that_are_not_read_are_told_from_text_that_begins_like_them() {
        let mut tar = [0; START_BYTES];
        tar[..5].copy_from_slice(b"a.txt");
        tar[257..265].copy_from_slice(b"ustar\x0000");
        for (name, start, tool) in [
            ("a", &b"7z\xbc\xaf\x27\x1c\0\x04"[..], "7z x -so"),
            ("a", &tar, "tar -xOf"),
            ("a", b"\x1f\x9d\x90", "gzip -dc"),
            ("a", b"\x5d\0\0\x80\0\xff\xff\xff\xff\xff\xff\xff\xff", "xz --format=lzma -dc"),
            ("a", b"LZIP\x01\x14", "lzip -dc"),
            ("a", b"Rar!\x1a\x07\x01\0", "unrar p"),
            ("a.br", b"\x8b\x02\x80abc\x03", "brotli -dc"),
        ] {
            let refused = refuse(Path::new(name), None, start).expect_err(tool);
            assert!(refused.contains(tool), "{refused}");
            assert!(refuse(Path::new(name), Some(Compression::Gzip), start).is_err() || name == "a.br", "{tool}");
        }
        let twice = refuse(Path::new("a.gz"), Some(Compression::Gzip), b"\x1f\x8b\x08\0\0\0").expect_err("twice");
        assert!(twice.contains("a gzip file") && twice.contains("let gzip -dc and then gzip -dc"), "{twice}");
        for text in [
            &b""[..],
            b"7zip is an archiver\n",
            b"PK of a table\n",
            b"PK",
            b"]\n",
            b"LZIP\n",
            b"Rar!\n",
            b"MSCF\n",
            b"xar!\n",
        ] {
            assert_eq!(refuse(Path::new("a.br"), None, text), Ok(()), "{text:?}");
        }
    }
}
