//! Places at which a compressed file can be cut, because its content can be decoded from there on.
//!
//! Two formats have such places. bgzip writes gzip members of at most 64 KiB and stores the length of each in its
//! header, so a walk from header to header finds them all. The seekable format of zstd ends with a table of its frames.
//! In other files only decoding would find such places, so they are not cut.
//!
//! ```text
//!  bgzip  | header, BC: bytes - 1 | deflate | CRC, content bytes | header ...
//!  zstd   | frame | frame | ... | skippable frame: { bytes, content bytes, checksum? } ..., frames, flags, magic |
//! ```
//!
//! A file may claim any number of cuts. The more it has, the greater the distance that is kept between two of them; the
//! others are dropped.
//!
//! These claims are not verified here: a reader that decodes a stretch compares the length of its content.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use crate::input::compression::Compression;

/// The content size of a file that is not known before it is decoded.
pub(crate) const UNKNOWN_BYTES: u64 = u64::MAX;

/// The least content between two cuts: each costs a decoder. Tests cut small files.
const CONTENT_BYTES_MIN: u64 = if cfg!(test) { 16 } else { 256 << 10 };

/// The largest number of cuts in a file: a job has no more tasks.
const CUTS_MAX: usize = if cfg!(test) { 64 } else { 1 << 16 };

/// A cut between two members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cut {
    /// The number of bytes of the file before it.
    pub stored: u64,
    /// The number of bytes of the content before it.
    pub content: u64,
}

/// Returns the cuts of a file of `bytes` bytes, including its beginning and its end; `None` if it cannot be cut.
///
/// # Errors
/// Those of reading the file.
pub(crate) fn find(file: &File, compression: Compression, bytes: u64) -> io::Result<Option<Vec<Cut>>> {
    match compression {
        Compression::Gzip => bgzip(file, bytes),
        Compression::Zstd => seekable(file, bytes),
        Compression::Bzip2 | Compression::Xz | Compression::Lz4 | Compression::Zip => Ok(None),
    }
}

/// Gathers cuts, with a minimum distance between them.
struct Cuts {
    found: Vec<Cut>,
    /// The end of the members seen so far.
    end: Cut,
    /// The least content between two cuts.
    content_bytes_min: u64,
}

impl Cuts {
    fn new() -> Cuts {
        let start = Cut { stored: 0, content: 0 };
        Cuts { found: vec![start], end: start, content_bytes_min: CONTENT_BYTES_MIN }
    }

    /// Adds a member; returns `None` if the sizes overflow, as in no real file.
    fn push(&mut self, stored_bytes: u64, content_bytes: u64) -> Option<()> {
        self.end.stored = self.end.stored.checked_add(stored_bytes)?;
        self.end.content = self.end.content.checked_add(content_bytes).filter(|bytes| *bytes < UNKNOWN_BYTES)?;
        if self.found.last().is_some_and(|last| self.end.content - last.content >= self.content_bytes_min) {
            self.found.push(self.end);
        }
        if self.found.len() > CUTS_MAX {
            self.thin();
        }
        Some(())
    }

    /// Drops at least half of the cuts.
    fn thin(&mut self) {
        while self.found.len() > CUTS_MAX / 2 {
            self.content_bytes_min = self.content_bytes_min.saturating_mul(2);
            let (mut last, min) = (self.found[0], self.content_bytes_min);
            self.found.retain(|cut| {
                let keep = cut.stored == 0 || cut.content - last.content >= min;
                last = if keep { *cut } else { last };
                keep
            });
        }
    }

    /// Returns the cuts, the last of them at the end of the file. Returns `None` for a file that claims to have no
    /// content: it would not be read, so a false claim would go unnoticed.
    fn finish(mut self, bytes: u64) -> Option<Vec<Cut>> {
        let end = Cut { stored: bytes, ..self.end };
        match self.found.last_mut() {
            _ if end.content == 0 => return None,
            Some(last) if last.content == end.content => *last = end,
            _ => self.found.push(end),
        }
        Some(self.found)
    }
}

/// The size of a bgzip member's header up to the end of its extra field, if that has no other entries.
const BGZIP_HEADER_BYTES: usize = 18;
const BGZIP_CONTENT_BYTES_MAX: u32 = 64 << 10;

fn bgzip(file: &File, bytes: u64) -> io::Result<Option<Vec<Cut>>> {
    let mut cuts = Cuts::new();
    let mut header = [0; BGZIP_HEADER_BYTES];
    let mut ahead = read_up_to(file, &mut header, 0)?;
    while cuts.end.stored < bytes {
        let [0x1f, 0x8b, 8, 4, _, _, _, _, _, _, 6, 0, b'B', b'C', 2, 0, low, high] = header[..] else {
            return Ok(None);
        };
        let member_bytes = u64::from(u16::from_le_bytes([low, high])) + 1;
        let next = cuts.end.stored + member_bytes;
        if ahead < BGZIP_HEADER_BYTES || member_bytes < BGZIP_HEADER_BYTES as u64 + 8 || next > bytes {
            return Ok(None);
        }
        // The last bytes of this member and the header of the next.
        let mut seam = [0; 4 + BGZIP_HEADER_BYTES];
        ahead = read_up_to(file, &mut seam, next - 4)?.saturating_sub(4);
        let ([a, b, c, d], after) = seam.split_first_chunk().expect("four bytes and a header");
        let content_bytes = u32::from_le_bytes([*a, *b, *c, *d]);
        if content_bytes > BGZIP_CONTENT_BYTES_MAX {
            return Ok(None);
        }
        header.copy_from_slice(after);
        if cuts.push(member_bytes, u64::from(content_bytes)).is_none() {
            return Ok(None);
        }
    }
    Ok(cuts.finish(bytes))
}

/// The footer: number of frames, flags, magic.
const FOOTER_BYTES: usize = 9;
const SKIPPABLE_HEADER_BYTES: usize = 8;
/// The number of table entries read at once.
const ENTRIES_AT_ONCE: usize = 4096;

fn seekable(file: &File, bytes: u64) -> io::Result<Option<Vec<Cut>>> {
    // 1. The footer.
    let word = |bytes: &[u8], at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
    let Some(footer_at) = bytes.checked_sub(FOOTER_BYTES as u64) else { return Ok(None) };
    let mut footer = [0; FOOTER_BYTES];
    if read_up_to(file, &mut footer, footer_at)? < FOOTER_BYTES || word(&footer, 5) != 0x8f92_eab1 {
        return Ok(None);
    }
    let (frames, flags) = (word(&footer, 0) as usize, footer[4]);
    let entry_bytes = if flags & 0x80 == 0 { 8 } else { 12 };
    let table_bytes = SKIPPABLE_HEADER_BYTES + frames * entry_bytes + FOOTER_BYTES;
    let Some(table_at) = bytes.checked_sub(table_bytes as u64) else { return Ok(None) };
    // 2. The table, which must end where the footer begins. It may be long, so it is read piece by piece.
    let mut header = [0; SKIPPABLE_HEADER_BYTES];
    let read = read_up_to(file, &mut header, table_at)?;
    let skipped = table_bytes - SKIPPABLE_HEADER_BYTES;
    if read < header.len() || word(&header, 0) != 0x184d_2a5e || word(&header, 4) as usize != skipped {
        return Ok(None);
    }
    let (mut cuts, mut piece) = (Cuts::new(), vec![0; ENTRIES_AT_ONCE.min(frames) * entry_bytes]);
    let mut at = table_at + SKIPPABLE_HEADER_BYTES as u64;
    while at < footer_at {
        let wanted = piece.len().min((footer_at - at) as usize);
        if read_up_to(file, &mut piece[..wanted], at)? < wanted {
            return Ok(None);
        }
        for entry in piece[..wanted].chunks(entry_bytes) {
            let [stored, content] = [0, 4].map(|at| u64::from(word(entry, at)));
            if stored == 0 && content > 0 || cuts.push(stored, content).is_none() || cuts.end.stored > table_at {
                return Ok(None);
            }
        }
        at += wanted as u64;
    }
    // 3. The frames must fill the file up to the table, which belongs to the last stretch.
    Ok((cuts.end.stored == table_at).then(|| cuts.finish(bytes)).flatten())
}

/// Reads from `at` on until `to` is full or the file ends; returns the number of bytes read.
pub(crate) fn read_up_to(file: &File, to: &mut [u8], at: u64) -> io::Result<usize> {
    let mut done = 0;
    read_on(file, to, at, &mut done)?;
    Ok(done)
}

/// Does the same; `done` is the number of bytes read, if it fails, too.
pub(crate) fn read_on(file: &File, to: &mut [u8], at: u64, done: &mut usize) -> io::Result<()> {
    while *done < to.len() {
        match file.read_at(&mut to[*done..], at + *done as u64) {
            Ok(0) => break,
            Ok(read) => *done += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A table of 500 MB that mostly repeated one entry once took twice as much memory.
    #[test]
    fn few_cuts_are_kept_however_many_a_file_claims() {
        let mut cuts = Cuts::new();
        for member in 1..10_000 {
            cuts.push(20, CONTENT_BYTES_MIN).expect("nothing overflows");
            assert!(cuts.found.len() <= CUTS_MAX, "{} of {member}", cuts.found.len());
        }
        let found = cuts.finish(200_000).expect("content");
        assert!(found.len() > CUTS_MAX / 4 && found.is_sorted_by_key(|cut| cut.content), "{found:?}");
        assert!(found.iter().all(|cut| cut.stored == 200_000 || cut.content == cut.stored / 20 * CONTENT_BYTES_MIN));
        assert!(Cuts::new().push(u64::MAX, u64::MAX).is_none());
    }

    /// A bgzip file whose damaged blocks claimed to be empty was once silently read as an empty file.
    #[test]
    fn a_file_that_claims_to_be_empty_is_still_decoded() {
        let mut cuts = Cuts::new();
        cuts.push(178, 0).expect("nothing overflows");
        assert!(cuts.finish(178).is_none());
    }
}
