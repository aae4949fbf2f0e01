//! Compressed files and their recognition.
//!
//! The first bytes of a file decide its format. A file whose name claims a compression that its bytes deny is an error,
//! not text. So is one whose decoder was left out of the program by the features of this crate.

use std::path::Path;

/// A compression format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Compression {
    /// RFC 1952, with one or many members; includes bgzip.
    Gzip,
    /// RFC 8878, with one or many frames.
    Zstd,
    /// bzip2, with one or many streams.
    Bzip2,
    /// xz, with one or many streams.
    Xz,
    /// lz4, with one or many frames; not the format that `lz4 -l` writes.
    Lz4,
    /// A zip archive with one file in it.
    Zip,
}

/// The names of a format, and the bytes with which its files begin.
struct Facts {
    name: &'static str,
    file: &'static str,
    tool: &'static str,
    magic: &'static [u8],
}

/// The number of bytes at the start of a file that suffice to recognise a compression.
pub(crate) const MAGIC_BYTES: usize = 10;

impl Compression {
    /// Returns the compression of a file that begins with these bytes; ten are enough.
    pub fn of_bytes(start: &[u8]) -> Option<Compression> {
        match start {
            // The three reserved bits of the flags are zero.
            [0x1f, 0x8b, 8, flags, ..] if flags & 0xe0 == 0 => Some(Compression::Gzip),
            // A frame, or a skippable frame as pzstd writes first.
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Some(Compression::Zstd),
            // A block, or the end of a stream without blocks.
            [b'B', b'Z', b'h', b'1'..=b'9', 0x31, 0x41, 0x59, 0x26, 0x53, 0x59, ..]
            | [b'B', b'Z', b'h', b'1'..=b'9', 0x17, 0x72, 0x45, 0x38, 0x50, 0x90, ..] => Some(Compression::Bzip2),
            [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Some(Compression::Xz),
            // Version 1, and a reserved bit that is zero.
            [0x04, 0x22, 0x4d, 0x18, flags, ..] if flags & 0xc2 == 0x40 => Some(Compression::Lz4),
            // A header of a file, whose version is below 100; or an archive without a file.
            [b'P', b'K', 3, 4, 0..100, 0, ..] | [b'P', b'K', 5, 6, 0, 0, 0, 0, ..] => Some(Compression::Zip),
            _ => None,
        }
    }

    /// Returns the compression that the name of a file claims.
    pub fn of_name(name: &Path) -> Option<Compression> {
        let extension = name.extension()?.to_str()?.to_ascii_lowercase();
        match &extension[..] {
            "gz" | "bgz" => Some(Compression::Gzip),
            "zst" => Some(Compression::Zstd),
            "bz2" => Some(Compression::Bzip2),
            "xz" => Some(Compression::Xz),
            "lz4" => Some(Compression::Lz4),
            "zip" => Some(Compression::Zip),
            _ => None,
        }
    }

    /// Returns the name of the format.
    pub fn name(self) -> &'static str {
        self.facts().name
    }

    /// Returns words for a file of this format.
    pub(crate) fn file(self) -> &'static str {
        self.facts().file
    }

    /// Returns the command that unpacks a file to standard output.
    pub(crate) fn tool(self) -> &'static str {
        self.facts().tool
    }

    fn facts(self) -> Facts {
        match self {
            Compression::Gzip => Facts { name: "gzip", file: "a gzip file", tool: "gzip -dc", magic: b"\x1f\x8b\x08" },
            Compression::Zstd => {
                Facts { name: "zstd", file: "a zstd file", tool: "zstd -dc", magic: b"\x28\xb5\x2f\xfd" }
            }
            Compression::Bzip2 => Facts { name: "bzip2", file: "a bzip2 file", tool: "bzip2 -dc", magic: b"BZh" },
            Compression::Xz => Facts { name: "xz", file: "an xz file", tool: "xz -dc", magic: b"\xfd7zXZ\0" },
            Compression::Lz4 => Facts { name: "lz4", file: "an lz4 file", tool: "lz4 -dc", magic: b"\x04\x22\x4d\x18" },
            Compression::Zip => Facts { name: "zip", file: "a zip archive", tool: "unzip -p", magic: b"PK\x03\x04" },
        }
    }

    /// Returns the feature of this crate with its decoder, if it is left out.
    fn lacking_feature(self) -> Option<&'static str> {
        match self {
            Compression::Gzip | Compression::Zip if !cfg!(feature = "gzip") => Some("gzip"),
            Compression::Zstd if !cfg!(feature = "zstd") => Some("zstd"),
            Compression::Bzip2 if !cfg!(feature = "bzip2") => Some("bzip2"),
            Compression::Xz if !cfg!(feature = "xz") => Some("xz"),
            _ => None,
        }
    }

    /// Returns why its files cannot be read, if its decoder is left out.
    pub(crate) fn lacking(self) -> Option<String> {
        let Facts { file, tool, .. } = self.facts();
        self.lacking_feature().map(|feature| {
            format!(
                "it is {file}, and this program was built without the feature {feature:?} of the crate gristmill: build it with the \
                 feature, or let {tool} unpack the file into a pipe"
            )
        })
    }

    /// Returns whether `start` is a whole file that could be cut off before this compression can be recognised.
    pub(crate) fn is_cut_off(self, start: &[u8]) -> bool {
        let magic = self.facts().magic;
        // A frame without content is cut off too.
        let may_skip = matches!(self, Compression::Zstd | Compression::Lz4);
        let is_skipped = matches!(start, [0x50..=0x5f, rest @ ..] if b"\x2a\x4d\x18".starts_with(rest));
        start.len() < MAGIC_BYTES && (magic.starts_with(start) || start.starts_with(magic) || may_skip && is_skipped)
    }

    /// Recognises the compression of the file `name`, which begins with `start` (and ends with it, if it is shorter
    /// than [`MAGIC_BYTES`]). Returns `None` for a file that is not compressed, and an error if the name claims a
    /// compression that the bytes deny, or its decoder is left out.
    pub(crate) fn recognise(name: &Path, start: &[u8]) -> Result<Option<Compression>, String> {
        let found = Compression::of_bytes(start);
        // An archive says further on whether its file is packed, and a frame without content is followed by another.
        let is_packed = !matches!(start, [b'P', b'K', ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..]);
        if let Some(why) = found.filter(|_| is_packed).and_then(Compression::lacking) {
            return Err(why);
        }
        let Some(claimed) = Compression::of_name(name).filter(|_| found.is_none()) else { return Ok(found) };
        Err(match start {
            [] => format!("it is empty, and {} never is", claimed.file()),
            _ if claimed.is_cut_off(start) => format!("it is truncated: it ends after {} bytes", start.len()),
            _ => {
                let shown: Vec<_> = start.iter().take(4).map(|byte| format!("{byte:02x}")).collect();
                format!(
                    "it is not {}, although its name says so: it begins with the bytes {}",
                    claimed.file(),
                    shown.join(" ")
                )
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_whose_decoder_is_left_out_names_the_feature_and_the_tool() {
        let files: [(&[u8], bool, &str, &str); 4] = [
            (b"\x1f\x8b\x08\x00", cfg!(feature = "gzip"), "\"gzip\"", "gzip -dc"),
            (b"\x28\xb5\x2f\xfd", cfg!(feature = "zstd"), "\"zstd\"", "zstd -dc"),
            (b"BZh9\x31\x41\x59\x26\x53\x59", cfg!(feature = "bzip2"), "\"bzip2\"", "bzip2 -dc"),
            (b"\xfd7zXZ\0", cfg!(feature = "xz"), "\"xz\"", "xz -dc"),
        ];
        for (start, is_built, feature, tool) in files {
            match Compression::recognise(Path::new("a"), start) {
                Ok(found) => assert!(is_built && found.is_some(), "{feature}"),
                Err(why) => assert!(!is_built && why.contains(feature) && why.contains(tool), "{why}"),
            }
        }
    }

    #[test]
    fn a_name_that_contradicts_the_content_is_an_error() {
        let recognise = |name: &str, start: &[u8]| Compression::recognise(Path::new(name), start);
        assert_eq!(recognise("a.txt", b"text"), Ok(None));
        assert_eq!(recognise("a.txt", b""), Ok(None));
        assert_eq!(recognise("a.txt", b"\x1f\x8b\x08\x00"), Ok(Some(Compression::Gzip)));
        assert_eq!(recognise("a.gz", b"\x28\xb5\x2f\xfd"), Ok(Some(Compression::Zstd)));
        for (name, start, expected) in [
            ("a.gz", &b""[..], "it is empty, and a gzip file never is"),
            ("a.XZ", b"\xfd7z", "it is truncated: it ends after 3 bytes"),
            ("a.bz2", b"BZh9\x31\x41", "it is truncated: it ends after 6 bytes"),
            (
                "a.zst",
                b"once upon a",
                "it is not a zstd file, although its name says so: it begins with the bytes 6f 6e 63 65",
            ),
        ] {
            assert_eq!(recognise(name, start), Err(expected.to_owned()));
        }
    }
}
