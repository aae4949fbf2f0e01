//! The result file, compressed if its name asks for it.

use std::fs::File;
use std::io::{self, BufWriter, Write};

use bzip2::write::BzEncoder;
use flate2::write::GzEncoder;
use gristmill::files::Compression;
use liblzma::write::XzEncoder;
use lz4_flex::frame::{BlockSize, FrameEncoder, FrameInfo};

const BUFFER_BYTES: usize = 256 << 10;
/// The default level of `xz`.
const XZ_LEVEL: u32 = 6;

/// A file being written, compressed at the default level of the format's own tool.
pub enum Packer {
    Plain(BufWriter<File>),
    Gzip(GzEncoder<BufWriter<File>>),
    Zstd(zstd::Encoder<'static, BufWriter<File>>),
    Bzip2(BzEncoder<BufWriter<File>>),
    Xz(XzEncoder<BufWriter<File>>),
    Lz4(Box<FrameEncoder<BufWriter<File>>>),
}

impl Packer {
    pub fn new(file: File, compression: Option<Compression>) -> io::Result<Packer> {
        let to = BufWriter::with_capacity(BUFFER_BYTES, file);
        Ok(match compression {
            None => Packer::Plain(to),
            Some(Compression::Gzip) => Packer::Gzip(GzEncoder::new(to, flate2::Compression::default())),
            Some(Compression::Zstd) => {
                let mut encoder = zstd::Encoder::new(to, zstd::DEFAULT_COMPRESSION_LEVEL)?;
                encoder.include_checksum(true)?;
                Packer::Zstd(encoder)
            }
            Some(Compression::Bzip2) => Packer::Bzip2(BzEncoder::new(to, bzip2::Compression::best())),
            Some(Compression::Xz) => Packer::Xz(XzEncoder::new(to, XZ_LEVEL)),
            Some(Compression::Lz4) => {
                let settings = FrameInfo::new().block_size(BlockSize::Max4MB).content_checksum(true);
                Packer::Lz4(Box::new(FrameEncoder::with_frame_info(settings, to)))
            }
            Some(other) => {
                let files = match other {
                    Compression::Zip => "zip archives".to_owned(),
                    _ => format!("{} files", other.name()),
                };
                let why =
                    format!("{files} are read and not written: let its name end with .gz, .zst, .bz2, .xz or .lz4");
                return Err(io::Error::new(io::ErrorKind::Unsupported, why));
            }
        })
    }

    /// Ends the file if everything was `written`. After a failure nothing is retried.
    pub fn finish(self, written: io::Result<()>) -> io::Result<()> {
        let packed = match (self, &written) {
            (Packer::Plain(to), _) => Ok(to),
            (Packer::Gzip(encoder), Ok(())) => encoder.finish(),
            (Packer::Zstd(encoder), Ok(())) => encoder.finish(),
            (Packer::Bzip2(encoder), Ok(())) => encoder.finish(),
            (Packer::Xz(encoder), Ok(())) => encoder.finish(),
            (Packer::Lz4(encoder), Ok(())) => encoder.finish().map_err(io::Error::from),
            (_, Err(_)) => return written,
        };
        // Taken apart, because a dropped writer would write the rest.
        let (mut file, rest) = packed?.into_parts();
        written.and_then(|()| file.write_all(&rest.unwrap_or_default()))
    }
}

impl Write for Packer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Packer::Plain(to) => to.write(bytes),
            Packer::Gzip(to) => to.write(bytes),
            Packer::Zstd(to) => to.write(bytes),
            Packer::Bzip2(to) => to.write(bytes),
            Packer::Xz(to) => to.write(bytes),
            Packer::Lz4(to) => to.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Packer::Plain(to) => to.flush(),
            Packer::Gzip(to) => to.flush(),
            Packer::Zstd(to) => to.flush(),
            Packer::Bzip2(to) => to.flush(),
            Packer::Xz(to) => to.flush(),
            Packer::Lz4(to) => to.flush(),
        }
    }
}
