//! From a task to chunks: reads its part of the input as pieces of whole records, into one reused buffer.

use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;
use std::os::unix::fs::FileExt;

use gristmill_os::clock::monotonic_ns;
use rustix::fs::Advice;

use crate::failure::Failure;
use crate::input::chunk::Chunk;
use crate::input::packing::Content;
use crate::input::quotes::{MARK, State};
use crate::input::records::{Records, Scan};
use crate::input::seek_points::UNKNOWN_BYTES;
use crate::input::tasks::{TaskPart, Tasks};

/// The number of bytes read at a time to find the end of one record.
const GLANCE_BYTES: usize = 64 << 10;

/// A buffer that has grown beyond this many chunks is freed when its record has been mapped.
const LONG_CHUNKS: usize = 16;

/// Reads parts into a reused buffer.
pub(crate) struct Reader {
    buffer: Vec<u8>,
    chunk_bytes: usize,
    /// The source that was read last.
    open: Option<(usize, Open)>,
    /// Nanoseconds spent reading since the field was last set to zero.
    pub read_ns: u64,
    /// The state that chunks give to map functions.
    pub state: Vec<u8>,
}

enum Open {
    Plain(File),
    Packed(Box<Content>),
}

impl Reader {
    pub fn new(chunk_bytes: usize) -> Reader {
        Reader { buffer: Vec::new(), chunk_bytes, open: None, read_ns: 0, state: Vec::new() }
    }

    /// Calls `visit` with the records of `part`, about `chunk_bytes` at a time, until it fails. It is called through a
    /// pointer, so that all of this is compiled once and not for each program and each buffer.
    pub fn for_each_chunk<E: From<Failure>>(
        &mut self,
        tasks: &Tasks,
        part: &TaskPart,
        visit: &mut dyn FnMut(&mut Chunk<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        self.visit_chunks(tasks, part, visit)?;
        // A compressed file declares the size of its content. Read on to verify its last checksum, and to find content
        // that it has not declared.
        let (source, end) = (&tasks.sources[part.source], part.range.end);
        if !source.is_plain() && end == source.content_bytes() && end != UNKNOWN_BYTES {
            self.fill(tasks, part.source, 0, end, 1)?;
        }
        Ok(())
    }

    fn visit_chunks<E: From<Failure>>(
        &mut self,
        tasks: &Tasks,
        part: &TaskPart,
        visit: &mut dyn FnMut(&mut Chunk<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let Range { start, end } = part.range;
        let records = tasks.records_of(part.source);
        let chunk_bytes = match records {
            Records::Fixed(width) => self.chunk_bytes.next_multiple_of(width),
            // A byte order mark is recognised only if it is read in one piece.
            _ => self.chunk_bytes.max(MARK.len()),
        };
        // The part begins with a record, or inside one: the byte before the part decides, or the state of CSV.
        let (mut at, mut skipping) = match records {
            Records::Fixed(_) | Records::WholeFile | Records::Prefixed => (start, false),
            Records::Csv(_) => (start, part.state != State::Record),
            _ => (start.saturating_sub(1), start > 0),
        };
        let mut scan = Scan::new(records, at, part.state);
        // The buffer holds the `filled` bytes of the content that begin at `at`.
        let mut filled = 0;
        loop {
            // 1. Read on: inside the part, and beyond its end only to finish a record.
            let inside = end.saturating_sub(at + filled as u64);
            if inside == 0 && filled == 0 {
                return Ok(());
            }
            let glance = skipping || inside == 0;
            let wanted = if glance { GLANCE_BYTES } else { chunk_bytes };
            let wanted = if inside == 0 { wanted } else { wanted.min(inside as usize) };
            let (read, ended) = self.fill(tasks, part.source, filled, at + filled as u64, wanted)?;
            let mut searched = filled;
            filled += read;
            // 2. Skip the record that began before this part.
            if skipping {
                let first = scan.first_end(&self.buffer[..filled]);
                skipping = first.is_none();
                let skipped = first.unwrap_or(filled);
                self.buffer.copy_within(skipped..filled, 0);
                (at, filled, searched) = (at + skipped as u64, filled - skipped, 0);
                if at >= end || skipping && ended {
                    return Ok(());
                } else if skipping {
                    continue;
                }
            }
            // 3. Find the whole records: up to the last record end inside the part, the first one after it, or the end
            //    of the content.
            let before = scan;
            let whole = match inside {
                0 => scan.first_end(&self.buffer[searched..filled]).map(|end| searched + end),
                _ if ended => Some(filled),
                _ => scan.last_end(&self.buffer[..filled], searched),
            };
            let whole = whole.or(ended.then_some(filled));
            check_record(tasks, part.source, at, &self.buffer[..filled], searched, before)?;
            if ended && whole == Some(filled) {
                check_end(records, part.source, at, &self.buffer[..filled], searched, before)?;
            }
            if let Some(whole) = whole {
                if let Records::Fixed(width) = records
                    && !whole.is_multiple_of(width)
                {
                    return Err(Failure::RecordCut {
                        source: part.source,
                        offset: at + (whole / width * width) as u64,
                    }
                    .into());
                }
                self.visit(visit, tasks, part.source, whole, at)?;
                let is_over = inside == 0 || ended;
                if !is_over {
                    self.buffer.copy_within(whole..filled, 0);
                    (at, filled) = (at + whole as u64, filled - whole);
                }
                if whole > LONG_CHUNKS * chunk_bytes {
                    // One long record has filled the buffer; give its memory back.
                    self.buffer.truncate(if is_over { 0 } else { filled });
                    self.buffer.shrink_to_fit();
                }
                if is_over {
                    return Ok(());
                }
            }
        }
    }

    fn visit<E>(
        &mut self,
        visit: &mut dyn FnMut(&mut Chunk<'_>) -> Result<(), E>,
        tasks: &Tasks,
        index: usize,
        whole: usize,
        offset: u64,
    ) -> Result<(), E> {
        let reached = match &self.open {
            Some((_, Open::Packed(content))) => content.reached(),
            _ => offset + whole as u64,
        };
        let source = &tasks.sources[index];
        let begins = offset == 0 && !matches!(tasks.records_of(index), Records::Fixed(_));
        let mark = if begins { source.mark_bytes(&self.buffer[..whole]) } else { 0 };
        if mark == whole {
            return Ok(());
        }
        let (bytes, offset) = (&mut self.buffer[mark..whole], offset + mark as u64);
        let (state, records) = (&self.state[..], tasks.records_of(index));
        visit(&mut Chunk { bytes, source, index, task: 0, offset, reached, records, state, is_written: false })
    }

    /// Reads up to `wanted` bytes of the content at `position` into the buffer, after its first `filled` bytes. Returns
    /// the number of bytes read, which is smaller only at the end of the content, and whether the content is known to
    /// end there.
    fn fill(
        &mut self,
        tasks: &Tasks,
        index: usize,
        filled: usize,
        position: u64,
        wanted: usize,
    ) -> Result<(usize, bool), Failure> {
        let source = &tasks.sources[index];
        let plain = source.is_plain();
        let wanted = if plain { wanted.min((source.bytes - position) as usize) } else { wanted };
        if self.buffer.len() < filled + wanted {
            self.buffer.resize(filled + wanted, 0);
        }
        let to = &mut self.buffer[filled..filled + wanted];
        let began_ns = monotonic_ns();
        let is_at_hand = match &self.open {
            Some((open, Open::Plain(_))) => *open == index,
            Some((open, Open::Packed(content))) => *open == index && content.at == position,
            None => false,
        };
        if !is_at_hand {
            // Close the old file before opening the next, so that a reader needs one file descriptor.
            self.open = None;
            let opened = source.unpacked_from(position).and_then(|content| match content {
                Some(content) => Ok(Open::Packed(Box::new(content))),
                None => source.open_file().map(|file| {
                    // A file that is read in one piece needs no readahead.
                    if source.bytes > self.chunk_bytes as u64 {
                        advise(&file);
                    }
                    Open::Plain(file)
                }),
            });
            self.open = Some((index, opened.map_err(|error| failure(index, position, &error))?));
        }
        let mut done = 0;
        while done < wanted {
            let at = position + done as u64;
            let read = match &mut self.open {
                Some((_, Open::Plain(file))) => file.read_at(&mut to[done..], at),
                Some((_, Open::Packed(content))) => content.read(&mut to[done..]),
                None => unreachable!("opened above"),
            };
            match read {
                Ok(0) if plain => return Err(Failure::Truncated { source: index, found: self.end_before(at) }),
                Ok(0) => break,
                Ok(read) => done += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(failure(index, at, &error)),
            }
        }
        self.read_ns += monotonic_ns() - began_ns;
        Ok((done, if plain { position + done as u64 == source.bytes } else { done < wanted }))
    }

    /// Returns the end of the open file, which has no byte at `at` and may end long before it.
    fn end_before(&self, at: u64) -> u64 {
        match &self.open {
            Some((_, Open::Plain(file))) => file.metadata().map_or(at, |facts| facts.len().min(at)),
            _ => at,
        }
    }
}

/// Makes the kernel read twice as far ahead, so that a reader waits less for the disk.
pub(crate) fn advise(file: &File) {
    let _ = rustix::fs::fadvise(file, 0, None, Advice::Sequential);
}

/// Returns the failure to read byte `offset` of the content.
fn failure(source: usize, offset: u64, error: &io::Error) -> Failure {
    match error.raw_os_error() {
        Some(errno) => Failure::Read { source, offset, errno },
        None => Failure::Compressed { source, offset, why: error.to_string() },
    }
}

/// Checks the length of a record that took more than one read, without its end mark; shorter records cannot exceed the
/// limit. `buffer` begins with the record, at `offset`; `scan` has seen the bytes before `searched`.
fn check_record(
    tasks: &Tasks,
    source: usize,
    offset: u64,
    buffer: &[u8],
    searched: usize,
    mut scan: Scan,
) -> Result<(), Failure> {
    let limit = tasks.record_bytes_max.saturating_add(1);
    let records = tasks.records_of(source);
    if searched == 0 || buffer.len() <= limit || matches!(records, Records::Fixed(_)) {
        return Ok(());
    }
    // The length of such a record stands before it.
    let searched = if matches!(records, Records::Prefixed) { 0 } else { searched };
    let before = scan;
    if scan.first_end(&buffer[searched..]).is_some_and(|end| searched + end <= limit) {
        return Ok(());
    }
    let begins = Scan::new(records, offset, State::Record);
    // If the quote is closed farther on, the record is merely long.
    match before.open_quote(buffer, searched, begins).filter(|at| *at <= limit) {
        Some(at) => Err(Failure::QuoteOpen { source, offset: offset + at as u64, is_cut: true }),
        None => Err(Failure::RecordTooLong { source, offset }),
    }
}

/// Checks that no quote is open at the end of the content. The arguments are those of [`check_record`].
fn check_end(
    records: Records,
    source: usize,
    offset: u64,
    buffer: &[u8],
    searched: usize,
    before: Scan,
) -> Result<(), Failure> {
    match before.open_quote(buffer, searched, Scan::new(records, offset, State::Record)) {
        Some(at) => Err(Failure::QuoteOpen { source, offset: offset + at as u64, is_cut: false }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod fuzz;
#[cfg(test)]
mod tests;
