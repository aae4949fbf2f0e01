//! From files to tasks, and from a task to chunks of whole records.
//!
//! A task is a run of parts; a part is a byte range of one source. Ranges are cut without looking at the
//! bytes; a record belongs to the part in which its first byte lies, so the reader of a part skips the
//! record that began before it and finishes the one that ends after it. Every record is therefore read by
//! exactly one task, wherever the cuts fall.

use std::fmt::Display;
use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use gristmill_os::clock::monotonic_ns;

use crate::shared::Failure;

/// Where one record ends and the next begins.
#[derive(Clone, Copy, Debug)]
pub enum Records {
    /// Lines that end with `\n`; the last may lack it.
    Lines,
    /// Runs of bytes between separators, for which the function returns true.
    Separated(fn(u8) -> bool),
    /// Records of this many bytes.
    Fixed(usize),
    /// Each file is one record.
    WholeFile,
}

/// One file of the input.
#[derive(Clone, Debug)]
pub struct Source {
    /// What messages call it.
    pub name: PathBuf,
    /// What to open.
    pub path: PathBuf,
    /// Its size in bytes when the job was planned.
    pub bytes: u64,
}

/// A byte range of one source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    pub source: usize,
    pub range: Range<u64>,
}

/// The input, cut into tasks.
pub(crate) struct Tasks {
    pub sources: Vec<Source>,
    parts: Vec<Part>,
    /// For each task, its parts.
    tasks: Vec<Range<usize>>,
    pub records: Records,
    pub record_bytes_max: usize,
}

impl Tasks {
    /// Cuts `sources` into tasks of about `split_bytes`: large files are cut, small ones are grouped.
    pub fn cut(sources: Vec<Source>, records: Records, split_bytes: u64, record_bytes_max: usize) -> Tasks {
        let step = match records {
            Records::Fixed(width) => split_bytes.next_multiple_of(width as u64),
            Records::WholeFile => u64::MAX,
            Records::Lines | Records::Separated(_) => split_bytes,
        };
        let (mut parts, mut tasks) = (Vec::new(), Vec::new());
        let (mut first, mut gathered) = (0, 0);
        for (source, Source { bytes, .. }) in sources.iter().enumerate() {
            let mut start = 0;
            while start < *bytes {
                let end = bytes.min(&start.saturating_add(step)).to_owned();
                parts.push(Part { source, range: start..end });
                gathered += end - start;
                start = end;
                if gathered >= split_bytes {
                    tasks.push(first..parts.len());
                    (first, gathered) = (parts.len(), 0);
                }
            }
        }
        if first < parts.len() {
            tasks.push(first..parts.len());
        }
        Tasks { sources, parts, tasks, records, record_bytes_max }
    }

    pub fn len(&self) -> usize {
        self.tasks.len()
    }

    pub fn parts(&self, task: usize) -> &[Part] {
        &self.parts[self.tasks[task].clone()]
    }

    /// Bytes of input in this task.
    pub fn bytes(&self, task: usize) -> u64 {
        self.parts(task).iter().map(|part| part.range.end - part.range.start).sum()
    }

    /// The line, from 1, in which this byte of a source stands, if records are lines and the source can still be read.
    pub fn line(&self, source: usize, offset: u64) -> Option<u64> {
        let Records::Lines = self.records else { return None };
        let mut before = File::open(&self.sources[source].path).ok()?.take(offset);
        let (mut buffer, mut line) = (vec![0; 64 << 10], 1);
        loop {
            match before.read(&mut buffer).ok()? {
                0 => return Some(line),
                read => line += memchr::memchr_iter(b'\n', &buffer[..read]).count() as u64,
            }
        }
    }

    /// Where this task's input lies, as a message says it.
    pub fn place(&self, task: usize) -> String {
        let parts = self.parts(task);
        let name = |part: &Part| self.sources[part.source].name.display().to_string();
        match parts {
            [part] => format!("{} bytes {}..{}", name(part), part.range.start, part.range.end),
            [first, .., last] => format!("{} to {} ({} files)", name(first), name(last), parts.len()),
            [] => "an empty task".to_owned(),
        }
    }
}

/// A piece of the input, cut at record boundaries, as the map function sees it.
pub struct Split<'a> {
    pub(crate) bytes: &'a mut [u8],
    pub(crate) source: &'a Source,
    pub(crate) offset: u64,
    pub(crate) state: &'a [u8],
    /// What was said first against it: about which byte of the file, and what.
    pub(crate) rejected: Option<(u64, String)>,
}

impl Split<'_> {
    /// Whole records, separators included.
    #[inline(always)]
    pub fn bytes(&self) -> &[u8] {
        self.bytes
    }

    /// The lines, without their ends.
    pub fn lines(&self) -> impl Iterator<Item = &[u8]> {
        let bytes = self.bytes.strip_suffix(b"\n").unwrap_or(self.bytes);
        let lines = bytes.split(|byte| *byte == b'\n');
        lines.take(if self.bytes.is_empty() { 0 } else { usize::MAX })
    }

    /// The same bytes to write: they are the worker's own copy, so change them in place if that helps.
    #[inline(always)]
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        self.bytes
    }

    /// The file that the bytes come from.
    pub fn source(&self) -> &Source {
        self.source
    }

    /// Where in the file they begin, in bytes.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// The state of this step, as the caller of [`Job::iterate`](crate::Job::iterate) has set it; empty in other jobs.
    pub fn state(&self) -> &[u8] {
        self.state
    }

    /// Ends the job, because the input is wrong and will not be right when it is read again. The error names the file,
    /// the line (of records that are lines) in which byte `at` of this split stands, and says `why`.
    pub fn reject(&mut self, at: usize, why: impl Display) {
        self.rejected.get_or_insert_with(|| (self.offset + at as u64, why.to_string()));
    }
}

/// Reads parts into one buffer that is used again and again.
pub(crate) struct Reader {
    buffer: Vec<u8>,
    chunk_bytes: usize,
    open: Option<(usize, File)>,
    /// Time spent reading since it was last set to zero, nanoseconds.
    pub read_ns: u64,
    /// The state that splits show.
    pub state: Vec<u8>,
}

impl Reader {
    pub fn new(chunk_bytes: usize) -> Reader {
        Reader { buffer: Vec::new(), chunk_bytes, open: None, read_ns: 0, state: Vec::new() }
    }

    /// Calls `visit` with the records of `part`, about `chunk_bytes` at a time.
    pub fn for_each_chunk(
        &mut self,
        tasks: &Tasks,
        part: &Part,
        mut visit: impl FnMut(&mut Split<'_>),
    ) -> Result<(), Failure> {
        let source = &tasks.sources[part.source];
        let ends_record = |records: Records, bytes: &[u8]| -> Option<usize> {
            match records {
                Records::Lines => memchr::memrchr(b'\n', bytes).map(|at| at + 1),
                Records::Separated(separates) => bytes.iter().rposition(|byte| separates(*byte)).map(|at| at + 1),
                Records::Fixed(_) | Records::WholeFile => None,
            }
        };
        let first_end = |records: Records, bytes: &[u8]| -> Option<usize> {
            match records {
                Records::Lines => memchr::memchr(b'\n', bytes).map(|at| at + 1),
                Records::Separated(separates) => bytes.iter().position(|byte| separates(*byte)).map(|at| at + 1),
                Records::Fixed(_) | Records::WholeFile => None,
            }
        };
        let Range { start, end } = part.range;
        let fixed = match tasks.records {
            Records::Fixed(width) => Some(width),
            Records::WholeFile => Some(usize::try_from(source.bytes).unwrap_or(usize::MAX)),
            Records::Lines | Records::Separated(_) => None,
        };
        let chunk_bytes = match fixed {
            Some(width) => self.chunk_bytes.max(width).next_multiple_of(width.max(1)).min((end - start) as usize),
            None => self.chunk_bytes,
        };

        // 1. Skip the record that began before this part: look from the byte before it.
        let mut at = start;
        if start > 0 && fixed.is_none() {
            let mut from = start - 1;
            loop {
                if from >= end {
                    return Ok(()); // No record begins here.
                }
                let wanted = ((end - from) as usize).min(64 << 10);
                self.fill(source, part.source, 0, from, wanted)?;
                match first_end(tasks.records, &self.buffer[..wanted]) {
                    Some(after) => {
                        at = from + after as u64;
                        break;
                    }
                    None => from += wanted as u64,
                }
            }
            if at >= end {
                return Ok(());
            }
        }

        // 2. Whole chunks inside the part; what follows the last separator is carried over.
        let mut carried = 0;
        while at < end {
            let wanted = chunk_bytes.min((end - at) as usize);
            self.fill(source, part.source, carried, at, wanted)?;
            at += wanted as u64;
            let filled = carried + wanted;
            let whole = match fixed {
                Some(_) => Some(filled),
                // What was carried over holds no separator.
                None => ends_record(tasks.records, &self.buffer[carried..filled]).map(|end| carried + end),
            };
            if let Some(whole) = whole {
                let offset = at - filled as u64;
                if carried > 0 {
                    // A record that took more than one read is finished here.
                    let rest = first_end(tasks.records, &self.buffer[carried..filled]).unwrap_or(filled - carried);
                    check_record(tasks, part.source, offset, carried + rest)?;
                }
                self.visit(&mut visit, source, part.source, whole, offset)?;
                self.buffer.copy_within(whole..filled, 0);
                carried = filled - whole;
            } else {
                carried = filled;
                check_record(tasks, part.source, at - carried as u64, carried)?;
            }
        }

        // 3. Finish the record that crosses the end of the part.
        while carried > 0 {
            let wanted = ((source.bytes - at) as usize).min(64 << 10);
            self.fill(source, part.source, carried, at, wanted)?;
            at += wanted as u64;
            let filled = carried + wanted;
            let whole = match first_end(tasks.records, &self.buffer[carried..filled]) {
                Some(end) => carried + end,
                None if at == source.bytes => filled,
                None => {
                    carried = filled;
                    check_record(tasks, part.source, at - carried as u64, carried)?;
                    continue;
                }
            };
            let offset = at - filled as u64;
            check_record(tasks, part.source, offset, whole)?;
            self.visit(&mut visit, source, part.source, whole, offset)?;
            break;
        }
        Ok(())
    }

    #[inline(always)]
    fn visit(
        &mut self,
        visit: &mut impl FnMut(&mut Split<'_>),
        source: &Source,
        index: usize,
        whole: usize,
        offset: u64,
    ) -> Result<(), Failure> {
        let mut split = Split { bytes: &mut self.buffer[..whole], source, offset, state: &self.state, rejected: None };
        visit(&mut split);
        match split.rejected {
            None => Ok(()),
            Some((offset, why)) => Err(Failure::Rejected { source: index, offset, why }),
        }
    }

    /// Reads `wanted` bytes at `offset` of the source behind the `carried` bytes of the buffer.
    fn fill(
        &mut self,
        source: &Source,
        index: usize,
        carried: usize,
        offset: u64,
        wanted: usize,
    ) -> Result<(), Failure> {
        let failed = |error: io::Error| Failure::Read { source: index, errno: error.raw_os_error().unwrap_or(0) };
        if self.buffer.len() < carried + wanted {
            self.buffer.resize(carried + wanted, 0);
        }
        if !matches!(&self.open, Some((open, _)) if *open == index) {
            let file = File::open(&source.path).map_err(failed)?;
            self.open = Some((index, file));
        }
        let (_, file) = self.open.as_ref().expect("opened above");
        let began_ns = monotonic_ns();
        let mut done = 0;
        while done < wanted {
            match file.read_at(&mut self.buffer[carried + done..carried + wanted], offset + done as u64) {
                Ok(0) => {
                    return Err(Failure::Truncated { source: index, found: offset + done as u64 });
                }
                Ok(read) => done += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(failed(error)),
            }
        }
        self.read_ns += monotonic_ns() - began_ns;
        Ok(())
    }
}

/// The record of `bytes` at `offset`, its separator included, must not be longer than the limit. Called for
/// records that take more than one read: shorter ones need no limit.
fn check_record(tasks: &Tasks, source: usize, offset: u64, bytes: usize) -> Result<(), Failure> {
    if bytes <= tasks.record_bytes_max.saturating_add(1) {
        return Ok(());
    }
    Err(Failure::RecordTooLong { source, offset })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::io::Write;

    fn records_read(content: &[u8], records: Records, split_bytes: u64, chunk_bytes: usize) -> Vec<Vec<u8>> {
        let mut file = tempfile::NamedTempFile::new().expect("a temporary file");
        file.write_all(content).expect("written");
        let source = Source { name: PathBuf::new(), path: file.path().to_owned(), bytes: content.len() as u64 };
        let tasks = Tasks::cut(vec![source], records, split_bytes, 1 << 20);
        let mut reader = Reader::new(chunk_bytes);
        let mut found = Vec::new();
        for task in 0..tasks.len() {
            for part in tasks.parts(task) {
                reader
                    .for_each_chunk(&tasks, part, |split| {
                        let start = split.offset() as usize;
                        assert_eq!(&content[start..start + split.bytes().len()], split.bytes());
                        match records {
                            Records::Lines => {
                                found.extend(split.bytes().split_inclusive(|b| *b == b'\n').map(<[u8]>::to_vec));
                            }
                            Records::Fixed(width) => found.extend(split.bytes().chunks(width).map(<[u8]>::to_vec)),
                            _ => found.push(split.bytes().to_vec()),
                        }
                    })
                    .expect("read");
            }
        }
        found
    }

    proptest! {
        #[test]
        fn wherever_the_cuts_fall_the_lines_are_the_sequential_ones(
            content in prop::collection::vec(prop::sample::select(b"ab\n".to_vec()), 0..200),
            split_bytes in 1u64..50,
            chunk_bytes in 1usize..50,
        ) {
            let expected: Vec<_> = content.split_inclusive(|b| *b == b'\n').map(<[u8]>::to_vec).collect();
            prop_assert_eq!(records_read(&content, Records::Lines, split_bytes, chunk_bytes), expected);
        }

        #[test]
        fn fixed_records_are_never_cut(
            records in 0usize..40, width in 1usize..9, split_bytes in 1u64..50, chunk_bytes in 1usize..50,
        ) {
            let content: Vec<u8> = (0..records * width).map(|n| n as u8).collect();
            let expected: Vec<_> = content.chunks(width).map(<[u8]>::to_vec).collect();
            prop_assert_eq!(records_read(&content, Records::Fixed(width), split_bytes, chunk_bytes), expected);
        }
    }

    #[test]
    fn many_small_files_are_one_task_and_a_large_file_is_many() {
        let source = |bytes| Source { name: PathBuf::from("x"), path: PathBuf::from("x"), bytes };
        let small = Tasks::cut(vec![source(10), source(0), source(10)], Records::Lines, 100, 1);
        assert_eq!((small.len(), small.parts(0).len()), (1, 2));
        let large = Tasks::cut(vec![source(1000)], Records::Lines, 100, 1);
        assert_eq!(large.len(), 10);
    }

    #[test]
    fn a_whole_file_is_one_record() {
        let content = vec![7; 5000];
        assert_eq!(records_read(&content, Records::WholeFile, 100, 64), vec![content]);
    }
}
