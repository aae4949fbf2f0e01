//! Zip archives with one file in them.
//!
//! ```text
//!  header, name, extra | data | other files ... | directory: an entry for each | end: entries, bytes and offset of the directory, comment
//! ```
//!
//! Only the directory says what belongs to an archive, so it is read from its end, and never from a pipe that is read
//! once. An archive of several files is refused: which of them are meant, and where records of one end, only the user
//! knows. Numbers that do not fit stand elsewhere, in wider fields (zip64).

use std::fs::File;
use std::io::{self, BufRead, Read};

#[cfg(feature = "gzip")]
use flate2::bufread::DeflateDecoder;

use crate::input::compression::Compression;
use crate::input::seek_points::read_up_to;

/// The only file of an archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// The offset of its data in the archive.
    pub start: u64,
    /// The end of its data.
    pub end: u64,
    is_deflated: bool,
    content_bytes: u64,
    checksum: u32,
}

const END_BYTES: usize = 22;
const END: &[u8] = b"PK\x05\x06";
/// The longest comment behind the end.
const COMMENT_BYTES_MAX: u64 = u16::MAX as u64;
/// The wider fields, and where they are.
const WIDE_END_BYTES: u64 = 56;
const LOCATOR_BYTES: u64 = 20;
const LOCATOR: &[u8] = b"PK\x06\x07";
/// An entry of the directory, without its name and what follows it.
const ENTRY_BYTES: usize = 46;
const ENTRY: &[u8] = b"PK\x01\x02";
const HEADER_BYTES: u64 = 30;
/// An archive of one file has few other entries, all of them folders.
const DIRECTORY_BYTES_MAX: u64 = 1 << 20;
/// A number of four bytes that stands elsewhere.
const ELSEWHERE: u64 = u32::MAX as u64;

/// Returns a number of `N` bytes.
fn number<const N: usize>(bytes: &[u8], at: usize) -> io::Result<u64> {
    let digits = bytes.get(at..at + N).ok_or_else(damaged)?;
    Ok(digits.iter().rev().fold(0, |number, digit| number << 8 | u64::from(*digit)))
}

fn refused(why: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why.into())
}

fn damaged() -> io::Error {
    refused("it is a zip archive that is truncated or damaged")
}

/// Reads a piece of an archive of `bytes` bytes, which may end before it.
fn piece(file: &File, bytes: u64, at: u64, wanted: u64) -> io::Result<Vec<u8>> {
    let mut piece = vec![0; wanted.min(bytes.saturating_sub(at)) as usize];
    let found = read_up_to(file, &mut piece, at)?;
    piece.truncate(found);
    Ok(piece)
}

/// Finds the only file of an archive of `bytes` bytes.
///
/// # Errors
/// Those of the system; the archive is damaged, has several files or none, or packs them in a way that is not read.
pub(crate) fn only_entry(file: &File, bytes: u64) -> io::Result<Entry> {
    let (entries, directory) = directory(file, bytes)?;
    let several = || {
        refused(format!(
            "it is a zip archive of {entries} files, and only those of one file are read: let unzip -p unpack what you want of it \
             into a pipe"
        ))
    };
    let directory = directory.ok_or_else(several)?;
    let (mut rest, mut only) = (&directory[..], None);
    for _ in 0..entries {
        let (name, extra, comment) = (number::<2>(rest, 28)?, number::<2>(rest, 30)?, number::<2>(rest, 32)?);
        let names_at = ENTRY_BYTES + name as usize;
        let (entry, after) = rest
            .split_at_checked(names_at + extra as usize + comment as usize)
            .filter(|(entry, _)| entry.starts_with(ENTRY))
            .ok_or_else(damaged)?;
        rest = after;
        let is_folder = entry[..names_at].ends_with(b"/");
        if !is_folder && only.replace((entry, &entry[names_at..][..extra as usize])).is_some() {
            return Err(several());
        }
    }
    if !rest.is_empty() {
        return Err(refused(format!(
            "it is a zip archive that is damaged: it says that it has {entries} files, and its directory has more"
        )));
    }
    let (entry, extra) = only.ok_or_else(|| refused("it is a zip archive without a file in it"))?;
    let method = number::<2>(entry, 10)?;
    if number::<2>(entry, 8)? & 1 == 1 {
        return Err(refused("it is a zip archive with a password: let unzip -p ask for it, and unpack it into a pipe"));
    } else if method != 0 && method != 8 {
        return Err(refused(format!(
            "it is a zip archive packed by method {method}, and only 0 (stored) and 8 (deflate) are read: let 7z x -so unpack it into \
             a pipe"
        )));
    }
    if let Some(why) = Compression::Zip.lacking().filter(|_| method == 8) {
        return Err(refused(why));
    }
    let [content_bytes, packed_bytes, header_at] = sizes(entry, extra)?;
    let header = piece(file, bytes, header_at, HEADER_BYTES)?;
    let names = number::<2>(&header, 26)? + number::<2>(&header, 28)?;
    let start = header_at.checked_add(HEADER_BYTES + names).ok_or_else(damaged)?;
    let end = start.checked_add(packed_bytes).filter(|end| *end <= bytes).ok_or_else(damaged)?;
    Ok(Entry { start, end, is_deflated: method == 8, content_bytes, checksum: number::<4>(entry, 16)? as u32 })
}

/// Returns the number of entries, and the directory; `None` if it is too long for an archive of one file.
fn directory(file: &File, bytes: u64) -> io::Result<(u64, Option<Vec<u8>>)> {
    let tail_at = bytes.saturating_sub(END_BYTES as u64 + COMMENT_BYTES_MAX);
    let tail = piece(file, bytes, tail_at, bytes)?;
    // What follows the end is a comment of the length that it says.
    let is_end = |at: &usize| {
        tail[*at..].starts_with(END)
            && number::<2>(&tail, at + 20).is_ok_and(|comment| at + END_BYTES + comment as usize == tail.len())
    };
    let end_at = (0..tail.len()).rev().find(is_end).ok_or_else(damaged)?;
    let end = &tail[end_at..];
    let [mut entries, mut length, mut at] = [number::<2>(end, 10)?, number::<4>(end, 12)?, number::<4>(end, 16)?];
    let mut ends_at = tail_at + end_at as u64;
    let locator = piece(file, bytes, ends_at.saturating_sub(LOCATOR_BYTES), LOCATOR_BYTES)?;
    if locator.starts_with(LOCATOR) {
        ends_at = number::<8>(&locator, 8)?;
        let wide = piece(file, bytes, ends_at, WIDE_END_BYTES)?;
        [entries, length, at] = [number::<8>(&wide, 32)?, number::<8>(&wide, 40)?, number::<8>(&wide, 48)?];
    }
    // The end of the second of two archives, one behind the other, counts from where that begins.
    if at.checked_add(length) != Some(ends_at) {
        return Err(refused(
            "it is a zip archive whose directory is not where its end says: it is damaged, or several archives follow each other. Let \
             unzip -p unpack each of them into a pipe",
        ));
    }
    if length > DIRECTORY_BYTES_MAX {
        return Ok((entries, None));
    }
    Ok((entries, Some(piece(file, bytes, at, length)?)))
}

/// Returns the bytes of the content, of the data, and before the header of a file. Those that do not fit stand in this
/// order in a field of `extra`.
fn sizes(entry: &[u8], mut extra: &[u8]) -> io::Result<[u64; 3]> {
    let mut sizes = [number::<4>(entry, 24)?, number::<4>(entry, 20)?, number::<4>(entry, 42)?];
    while extra.len() >= 4 && sizes.contains(&ELSEWHERE) {
        let (kind, length) = (number::<2>(extra, 0)?, number::<2>(extra, 2)? as usize);
        let field = extra.get(4..4 + length).ok_or_else(damaged)?;
        if kind == 1 {
            let wide = sizes.iter_mut().filter(|size| **size == ELSEWHERE).enumerate();
            for (place, size) in wide {
                *size = number::<8>(field, 8 * place)?;
            }
            break;
        }
        extra = &extra[4 + length..];
    }
    Ok(sizes)
}

/// Reads the content of the only file, and compares its length and checksum.
pub(crate) struct Unzip<R> {
    data: Data<R>,
    entry: Entry,
    content_bytes: u64,
    checksum: crc32fast::Hasher,
}

enum Data<R> {
    Stored(R),
    #[cfg(feature = "gzip")]
    Deflated(DeflateDecoder<R>),
}

impl<R: BufRead> Unzip<R> {
    pub fn new(stored: R, entry: Entry) -> Unzip<R> {
        let data = match entry.is_deflated {
            #[cfg(feature = "gzip")]
            true => Data::Deflated(DeflateDecoder::new(stored)),
            _ => Data::Stored(stored),
        };
        Unzip { data, entry, content_bytes: 0, checksum: crc32fast::Hasher::new() }
    }

    pub fn get_ref(&self) -> &R {
        match &self.data {
            Data::Stored(stored) => stored,
            #[cfg(feature = "gzip")]
            Data::Deflated(decoder) => decoder.get_ref(),
        }
    }

    pub fn into_inner(self) -> R {
        match self.data {
            Data::Stored(stored) => stored,
            #[cfg(feature = "gzip")]
            Data::Deflated(decoder) => decoder.into_inner(),
        }
    }
}

impl<R: BufRead> Read for Unzip<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let read = match &mut self.data {
            Data::Stored(stored) => stored.read(to)?,
            #[cfg(feature = "gzip")]
            Data::Deflated(decoder) => decoder.read(to)?,
        };
        self.checksum.update(&to[..read]);
        self.content_bytes += read as u64;
        let is_right = || {
            self.content_bytes == self.entry.content_bytes && self.checksum.clone().finalize() == self.entry.checksum
        };
        if read == 0 && !to.is_empty() && !is_right() {
            return Err(refused("its length or checksum is not that of the directory"));
        }
        Ok(read)
    }
}
