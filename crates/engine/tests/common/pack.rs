//! Compressed files for tests, in every format that is read, including those that no common tool writes.

#![allow(dead_code)] // Each test program uses its part.

use std::io::Write;

/// A format with its number of members, frames or streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packing {
    Plain,
    Gzip,
    Bgzip,
    Zstd,
    /// With a table of its frames.
    SeekableZstd,
    Bzip2,
    Xz,
    Lz4,
}

pub const COMPRESSED: [Packing; 7] =
    [Packing::Gzip, Packing::Bgzip, Packing::Zstd, Packing::SeekableZstd, Packing::Bzip2, Packing::Xz, Packing::Lz4];

impl Packing {
    pub fn extension(self) -> &'static str {
        match self {
            Packing::Plain => "txt",
            Packing::Gzip | Packing::Bgzip => "gz",
            Packing::Zstd | Packing::SeekableZstd => "zst",
            Packing::Bzip2 => "bz2",
            Packing::Xz => "xz",
            Packing::Lz4 => "lz4",
        }
    }

    /// Packs `content` in this format, with a member for every `member_bytes` bytes.
    pub fn pack(self, content: &[u8], member_bytes: usize) -> Vec<u8> {
        let pieces = pieces(content, member_bytes);
        let members: Vec<Vec<u8>> = pieces.iter().map(|piece| self.member(piece)).collect();
        let mut file = members.concat();
        match self {
            Packing::Bgzip => file.extend(self.member(b"")),
            Packing::SeekableZstd => {
                let entries = members.iter().zip(&pieces);
                let sizes = entries.flat_map(|(member, piece)| [member.len() as u32, piece.len() as u32]);
                let table: Vec<u8> = sizes.flat_map(u32::to_le_bytes).collect();
                file.extend(0x184d_2a5e_u32.to_le_bytes());
                file.extend((table.len() as u32 + 9).to_le_bytes());
                file.extend(table);
                file.extend((members.len() as u32).to_le_bytes());
                file.push(0);
                file.extend(0x8f92_eab1_u32.to_le_bytes());
            }
            _ => {}
        }
        file
    }

    /// Returns the ends of the members of such a file.
    pub fn member_ends(self, content: &[u8], member_bytes: usize) -> Vec<usize> {
        let mut end = 0;
        let mut ends = Vec::new();
        for piece in pieces(content, member_bytes) {
            end += self.member(piece).len();
            ends.push(end);
        }
        ends
    }

    fn member(self, content: &[u8]) -> Vec<u8> {
        let written = || -> std::io::Result<Vec<u8>> {
            match self {
                Packing::Plain => Ok(content.to_vec()),
                Packing::Gzip => {
                    let mut to = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
                    to.write_all(content)?;
                    to.finish()
                }
                Packing::Bgzip => {
                    let extra = vec![b'B', b'C', 2, 0, 0, 0];
                    let mut to = flate2::GzBuilder::new().extra(extra).write(Vec::new(), flate2::Compression::fast());
                    to.write_all(content)?;
                    let mut member = to.finish()?;
                    let last = u16::try_from(member.len() - 1).expect("members of bgzip are small");
                    member[16..18].copy_from_slice(&last.to_le_bytes());
                    Ok(member)
                }
                Packing::Zstd | Packing::SeekableZstd => {
                    let mut to = zstd::Encoder::new(Vec::new(), 1)?;
                    // The tool does so, but not the library.
                    to.include_checksum(true)?;
                    to.write_all(content)?;
                    to.finish()
                }
                Packing::Bzip2 => {
                    let mut to = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
                    to.write_all(content)?;
                    to.finish()
                }
                Packing::Xz => {
                    let mut to = liblzma::write::XzEncoder::new(Vec::new(), 0);
                    to.write_all(content)?;
                    to.finish()
                }
                Packing::Lz4 => {
                    // The tool adds a checksum, but not the library.
                    let settings = lz4_flex::frame::FrameInfo::new().content_checksum(true);
                    let mut to = lz4_flex::frame::FrameEncoder::with_frame_info(settings, Vec::new());
                    to.write_all(content)?;
                    Ok(to.finish()?)
                }
            }
        };
        written().expect("a Vec takes all")
    }
}

fn pieces(content: &[u8], member_bytes: usize) -> Vec<&[u8]> {
    if content.is_empty() { vec![content] } else { content.chunks(member_bytes).collect() }
}
