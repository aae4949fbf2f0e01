//! Formats that are not read, recognised so that nobody counts their bytes as text.
//!
//! Each begins with bytes that no text has, most with control characters. A file of a format without such a beginning
//! is known by its name, if its bytes are not text either.

use std::path::Path;

use crate::input::compression::Compression;

/// The number of bytes at the start of a file from which everything is recognised. The first header of an archive
/// takes 512; the more there are, the likelier is a line end, which shows UTF-16.
pub(crate) const START_BYTES: usize = 4 << 10;

/// A format that is not read.
struct Format {
    /// The name, with its article.
    name: &'static str,
    begins: fn(&[u8]) -> bool,
    /// The command that writes the content to standard output.
    tool: &'static str,
}

const FORMATS: [Format; 13] = [
    Format { name: "a 7z archive", begins: |start| start.starts_with(b"7z\xbc\xaf\x27\x1c"), tool: "7z x -so" },
    Format { name: "a tar archive", begins: is_tar, tool: "tar -xOf" },
    Format { name: "a cpio archive", begins: is_cpio, tool: "cpio -i --to-stdout" },
    Format { name: "an ar archive", begins: is_ar, tool: "ar p" },
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

/// The header of the first file has a mark. That of the oldest format has none, but a sum of its bytes, in which the
/// sum itself is eight spaces.
fn is_tar(start: &[u8]) -> bool {
    let Some(header) = start.first_chunk::<512>().filter(|header| header[0] != 0) else { return false };
    let sum = header.iter().map(|byte| u64::from(*byte)).sum::<u64>() + 8 * u64::from(b' ')
        - header[148..156].iter().map(|byte| u64::from(*byte)).sum::<u64>();
    let is_summed = || digits(header[148..156].trim_ascii_start(), 8) == Some(sum) && header[100..108].ends_with(b"\0");
    matches!(&header[257..265], b"ustar\x0000" | b"ustar  \0") || is_summed()
}

/// Reads a number whose digits end with the bytes, a space or a NUL; `None` if there are others.
fn digits(bytes: &[u8], base: u32) -> Option<u64> {
    let end = bytes.iter().position(|byte| matches!(byte, b' ' | 0)).unwrap_or(bytes.len());
    u64::from_str_radix(str::from_utf8(&bytes[..end]).ok()?, base).ok()
}

/// The header of the first file tells the length of its name, which ends with NUL.
fn is_cpio(start: &[u8]) -> bool {
    let (header_bytes, name_bytes) = match start {
        [b'0', b'7', b'0', b'7', b'0', b'1' | b'2', ..] => (110, start.get(94..102).and_then(|name| digits(name, 16))),
        [b'0', b'7', b'0', b'7', b'0', b'7', ..] => (76, start.get(59..65).and_then(|name| digits(name, 8))),
        [0xc7, 0x71, ..] => (26, start.get(20..22).map(|name| u64::from(name[0]) | u64::from(name[1]) << 8)),
        _ => return false,
    };
    let name = name_bytes.and_then(|bytes| start.get(header_bytes..)?.get(..usize::try_from(bytes).ok()?));
    name.and_then(<[u8]>::split_last).is_some_and(|(last, name)| *last == 0 && !name.is_empty() && !name.contains(&0))
}

/// The header of the first file ends with a mark of its own.
fn is_ar(start: &[u8]) -> bool {
    start.starts_with(b"!<arch>\n") && start.get(66..68) == Some(b"`\n")
}

/// The settings as `xz` writes them, a dictionary of a power of two or one and a half of it, and a size that is
/// unknown or below 256 GiB.
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

/// Refuses a file that begins with `start`, which is its content after decompression by `outer`, if it is of a format
/// that is not read.
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
        // Python's tarfile would write a mark; Unix of the seventh edition had none.
        let mut old_tar = [0; START_BYTES];
        for (at, field) in [(0, &b"a.txt"[..]), (100, b"000644 \0"), (124, b"00000000005 "), (148, b"        ")] {
            old_tar[at..][..field.len()].copy_from_slice(field);
        }
        let sum: u32 = old_tar.iter().map(|byte| u32::from(*byte)).sum();
        old_tar[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        for (name, start, tool) in [
            ("a", &b"7z\xbc\xaf\x27\x1c\0\x04"[..], "7z x -so"),
            ("a", &tar, "tar -xOf"),
            ("a", &old_tar, "tar -xOf"),
            ("a", b"!<arch>\na.txt/          0           0     0     644     5         `\npond\n\n", "ar p"),
            ("a", &[&b"070701"[..], &[b'0'; 94], b"06", &[b'0'; 8], b"a.txt\0pond\n"].concat(), "cpio -i"),
            ("a", &[&b"070707"[..], &[b'0'; 53], b"000006", &[b'0'; 11], b"a.txt\0pond\n"].concat(), "cpio -i"),
            ("a", &[&b"\xc7\x71"[..], &[7; 18], b"\x06\0", &[7; 4], b"a.txt\0pond\n"].concat(), "cpio -i"),
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
            b"!<arch>\nis the mark of ar\n",
            b"070701,1\n070702,5\n",
            &[b'0'; 600],
        ] {
            assert_eq!(refuse(Path::new("a.br"), None, text), Ok(()), "{text:?}");
        }
        assert_eq!(refuse(Path::new("zeros"), None, &[0; START_BYTES]), Ok(()));
    }
}
