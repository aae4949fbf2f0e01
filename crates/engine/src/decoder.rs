//! The content of a stretch of a compressed file, decoded as it is read: a window of the format's, and no more, is
//! ever in memory.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use bzip2::bufread::BzDecoder;
use flate2::bufread::GzDecoder;
use liblzma::bufread::XzDecoder;

use crate::compression::{Compression, MAGIC_BYTES};

/// Compressed bytes that are read at a time.
const STORED_BYTES: usize = 64 << 10;
/// Memory that decoding an xz file may take: what `xz -9` packs takes 65 MiB.
const XZ_BYTES_MAX: u64 = 256 << 20;
/// The window that decoding a zstd file may need: the library's own limit, and that of `zstd -d`.
const ZSTD_BYTES_MAX: u64 = 128 << 20;

/// Decodes a stretch that consists of whole members (as gzip calls them; frames, or streams, of the others).
pub(crate) struct Decoder {
    /// `None` for a stream that is read as it is.
    compression: Option<Compression>,
    /// `None` at the end of the stretch.
    member: Option<Member>,
}

/// The decoder of one member, or of all that are left, where the library goes on to the next by itself.
enum Member {
    Plain(BufReader<Stored>),
    Gzip(GzDecoder<BufReader<Stored>>),
    Zstd(zstd::stream::read::Decoder<'static, BufReader<Stored>>),
    Bzip2(BzDecoder<BufReader<Stored>>),
    Xz(XzDecoder<BufReader<Stored>>),
}

/// The bytes of a file in a range, or of a stream.
pub(crate) struct Stored {
    file: Arc<File>,
    /// What is still to be read.
    range: Range<u64>,
    /// Of a stream: bytes that were read before their time.
    head: Option<Vec<u8>>,
}

impl Stored {
    pub fn range(file: Arc<File>, range: Range<u64>) -> Stored {
        Stored { file, range, head: None }
    }

    /// All of a stream, of which the first bytes have been read already.
    pub fn stream(file: Arc<File>, head: Vec<u8>) -> Stored {
        Stored { file, range: 0..u64::MAX, head: Some(head) }
    }
}

/// Where in the file the next byte lies that is to be read, and what begins there: enough to recognise a compression.
fn peek(stored: &mut BufReader<Stored>) -> io::Result<(u64, Vec<u8>)> {
    let at = stored.get_ref().range.start - stored.buffer().len() as u64;
    let mut start = vec![0; MAGIC_BYTES];
    if stored.get_ref().head.is_none() {
        let found = stored.get_ref().file.read_at(&mut start, at)?;
        start.truncate(found);
        return Ok((at, start));
    }
    start.clear();
    stored.by_ref().take(MAGIC_BYTES as u64).read_to_end(&mut start)?;
    // A stream gives bytes once: these, and what was read ahead, are put back.
    let mut head = [&start, stored.buffer()].concat();
    stored.consume(stored.buffer().len());
    let stored = stored.get_mut();
    head.extend(stored.head.take().unwrap_or_default());
    stored.range.start = at;
    stored.head = Some(head);
    Ok((at, start))
}

impl Decoder {
    /// Decodes what is stored.
    pub fn new(stored: Stored, compression: Option<Compression>) -> io::Result<Decoder> {
        let stored = BufReader::with_capacity(STORED_BYTES, stored);
        Ok(Decoder { compression, member: Some(Member::new(compression, stored)?) })
    }

    /// The decoder of the member that begins here; `None` where the stretch ends, padded with zeros or not.
    fn next(&self, mut stored: BufReader<Stored>) -> io::Result<Option<Member>> {
        let Some(compression) = self.compression else { return Ok(None) };
        let (at, start) = peek(&mut stored)?;
        let start = &start[..];
        let goes_on = Compression::of_bytes(start) == Some(compression);
        loop {
            let bytes = stored.fill_buf()?;
            if bytes.is_empty() {
                return Ok(None);
            } else if goes_on {
                return Member::new(self.compression, stored).map(Some);
            } else if compression.is_cut_off(start) {
                return Err(self.explain(io::ErrorKind::UnexpectedEof.into()));
            } else if bytes.iter().any(|byte| *byte != 0) {
                let name = compression.name();
                let what = format!("what follows from byte {at} of the file on is no {name} data");
                return Err(io::Error::new(io::ErrorKind::InvalidData, what));
            }
            let zeros = bytes.len();
            stored.consume(zeros);
        }
    }

    /// Says in one way what the libraries say in four. What the system says stays as it is.
    fn explain(&self, error: io::Error) -> io::Error {
        let Some(compression) = self.compression else { return error };
        let name = compression.name();
        let what = match error.kind() {
            _ if error.raw_os_error().is_some() => return error,
            io::ErrorKind::Interrupted => return error,
            io::ErrorKind::UnexpectedEof => format!("the file is truncated, its {name} data is not complete"),
            _ if needs_too_much(&error) => {
                let (bytes_max, tool) = match compression {
                    Compression::Xz => (XZ_BYTES_MAX, "xz -dc"),
                    _ => (ZSTD_BYTES_MAX, "zstd -dc --long=31"),
                };
                format!(
                    "to decode its {name} data takes more memory than the {} MiB that a worker may take for it. Let {tool} \
                     decode it into a pipe, or pack it with a smaller window",
                    bytes_max >> 20
                )
            }
            _ => format!("its {name} data is damaged ({error})"),
        };
        io::Error::new(io::ErrorKind::InvalidData, what)
    }
}

/// Whether the decoder refused because of its limit of memory.
fn needs_too_much(error: &io::Error) -> bool {
    let Some(inner) = error.get_ref() else { return false };
    match inner.downcast_ref::<liblzma::stream::Error>() {
        Some(error) => matches!(error, liblzma::stream::Error::MemLimit),
        // The only sign that zstd's library gives: the name of its error frameParameter_windowTooLarge.
        None => inner.to_string() == "Frame requires too much memory for decoding",
    }
}

impl Read for Decoder {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        while let Some(member) = &mut self.member {
            let read = match member {
                Member::Plain(stored) => stored.read(to),
                Member::Gzip(decoder) => decoder.read(to),
                Member::Zstd(decoder) => decoder.read(to),
                Member::Bzip2(decoder) => decoder.read(to),
                Member::Xz(decoder) => decoder.read(to),
            };
            let read = match read {
                Ok(read) => read,
                Err(error) => return Err(self.explain(error)),
            };
            if read > 0 || to.is_empty() {
                return Ok(read);
            }
            self.member = match self.member.take().map(Member::into_stored) {
                Some(stored) => self.next(stored)?,
                None => None,
            };
        }
        Ok(0)
    }
}

impl Member {
    fn new(compression: Option<Compression>, stored: BufReader<Stored>) -> io::Result<Member> {
        let Some(compression) = compression else { return Ok(Member::Plain(stored)) };
        Ok(match compression {
            Compression::Gzip => Member::Gzip(GzDecoder::new(stored)),
            Compression::Zstd => Member::Zstd(zstd::stream::read::Decoder::with_buffer(stored)?),
            Compression::Bzip2 => Member::Bzip2(BzDecoder::new(stored)),
            Compression::Xz => {
                let stream = liblzma::stream::Stream::new_stream_decoder(XZ_BYTES_MAX, liblzma::stream::CONCATENATED)?;
                Member::Xz(XzDecoder::new_stream(stored, stream))
            }
        })
    }

    fn into_stored(self) -> BufReader<Stored> {
        match self {
            Member::Plain(stored) => stored,
            Member::Gzip(decoder) => decoder.into_inner(),
            Member::Zstd(decoder) => decoder.finish(),
            Member::Bzip2(decoder) => decoder.into_inner(),
            Member::Xz(decoder) => decoder.into_inner(),
        }
    }
}

impl Read for Stored {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let wanted = (to.len() as u64).min(self.range.end - self.range.start) as usize;
        let read = match &mut self.head {
            None => self.file.read_at(&mut to[..wanted], self.range.start)?,
            Some(head) if head.is_empty() => (&*self.file).read(&mut to[..wanted])?,
            Some(head) => {
                let read = wanted.min(head.len());
                to[..read].copy_from_slice(&head[..read]);
                head.drain(..read);
                read
            }
        };
        self.range.start += read as u64;
        Ok(read)
    }
}
