//! The input, cut into tasks.
//!
//! A task is a series of parts; a part is a range of the content of one source. Ranges are cut without looking at the
//! bytes. A record belongs to the part that contains its first byte, so the reader of a part skips the record that
//! began before the part, and finishes the record that ends after it. Thus every record is read by exactly one task,
//! wherever the cuts fall.

use std::ops::Range;
use std::sync::Arc;

use crate::input::quotes::{MARK, State};
use crate::input::records::Records;
use crate::input::seek_points::UNKNOWN_BYTES;
use crate::input::source::Source;

/// A range of the content of one source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    pub source: usize,
    pub range: Range<u64>,
    /// The number of stored bytes that it stands for.
    pub stored_bytes: u64,
    /// For CSV, the state before its first byte.
    pub state: State,
}

/// The input, cut into tasks.
pub(crate) struct Tasks {
    pub sources: Arc<[Source]>,
    parts: Vec<Part>,
    /// The parts of each task.
    tasks: Vec<Range<usize>>,
    /// The format of the records of sources that have none of their own.
    records: Records,
    pub record_bytes_max: usize,
}

impl Tasks {
    /// Cuts `sources` into tasks of about `split_bytes`: large files are cut, small ones are grouped. The parts of CSV
    /// do not have their state yet ([`quote_scan`](crate::survey::quote_scan)).
    pub fn cut(sources: Arc<[Source]>, records: Records, split_bytes: u64, record_bytes_max: usize) -> Tasks {
        let (mut parts, mut tasks) = (Vec::<Part>::new(), Vec::new());
        let (mut first, mut gathered) = (0, 0);
        for (source, file) in sources.iter().enumerate() {
            let (mut start, mut stored) = (0, 0);
            for (end, stored_end) in ends(file, file.records_or(records), split_bytes) {
                let stored_bytes = stored_end - stored;
                parts.push(Part { source, range: start..end, stored_bytes, state: State::default() });
                gathered += stored_end - stored;
                (start, stored) = (end, stored_end);
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

    /// Returns the format of the records of a source.
    pub fn records_of(&self, source: usize) -> Records {
        self.sources[source].records_or(self.records)
    }

    pub fn len(&self) -> usize {
        self.tasks.len()
    }

    pub fn parts(&self, task: usize) -> &[Part] {
        &self.parts[self.tasks[task].clone()]
    }

    /// Returns the parts of all tasks, in the order of the input.
    pub fn all_parts(&self) -> &[Part] {
        &self.parts
    }

    pub fn all_parts_mut(&mut self) -> &mut [Part] {
        &mut self.parts
    }

    /// Returns the number of stored bytes that this task reads.
    pub fn bytes(&self, task: usize) -> u64 {
        self.parts(task).iter().map(|part| part.stored_bytes).sum()
    }

    /// Returns the line, from 1, of this byte of the content, if records are lines and the source can still be read.
    pub fn line(&self, source: usize, offset: u64) -> Option<u64> {
        if !self.records_of(source).are_lines() {
            return None;
        }
        self.sources[source].line(offset)
    }

    /// Returns the place of this task's input, for a message.
    pub fn place(&self, task: usize) -> String {
        let parts = self.parts(task);
        let name = |part: &Part| self.sources[part.source].name.display().to_string();
        match parts {
            [part] if part.range.end == UNKNOWN_BYTES => name(part),
            [part] => {
                let packed = self.sources[part.source].compression().is_some();
                let of = if packed { " of its content" } else { "" };
                format!("{} bytes {}..{}{of}", name(part), part.range.start, part.range.end)
            }
            [first, .., last] => format!("{} to {} ({} files)", name(first), name(last), parts.len()),
            [] => "an empty task".to_owned(),
        }
    }
}

/// Returns the ends of a source's parts: offsets in its content, and (approximately) in the file.
fn ends(file: &Source, records: Records, split_bytes: u64) -> Vec<(u64, u64)> {
    let content_bytes = file.content_bytes();
    let whole = || vec![(content_bytes, file.bytes)];
    match (file.cuts(), records) {
        _ if content_bytes == 0 => Vec::new(),
        // The size of its content is not known.
        _ if file.is_stream() => vec![(content_bytes, 0)],
        (_, Records::WholeFile) => whole(),
        (None, _) => {
            let step = match records {
                Records::Fixed(width) => split_bytes.next_multiple_of(width as u64),
                // A byte order mark is recognised only if it is read in one piece.
                Records::Csv(_) => split_bytes.max(MARK.len() as u64),
                _ => split_bytes,
            };
            let count = content_bytes.div_ceil(step);
            (1..=count).map(|number| content_bytes.min(number.saturating_mul(step))).map(|end| (end, end)).collect()
        }
        // The state at a cut would only be known after decompressing everything before it.
        (Some(_), Records::Csv(_)) => whole(),
        (Some(cuts), _) => {
            let mut ends = Vec::new();
            let mut last = 0;
            for cut in &cuts[1..cuts.len() - 1] {
                // The byte before a part shows whether a record begins with the part. The cut is shifted by one, so
                // that this byte is the first that can be decoded, not the last of a stretch to be decoded for it
                // alone.
                let end = match records {
                    Records::Fixed(width) => cut.content.next_multiple_of(width as u64),
                    Records::Prefixed => cut.content,
                    _ => cut.content + 1,
                };
                if end - last >= split_bytes && end < content_bytes {
                    ends.push((end, cut.stored));
                    last = end;
                }
            }
            ends.push((content_bytes, file.bytes));
            ends
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    #[test]
    fn many_small_files_are_one_task_and_a_large_file_is_many() {
        let source = |bytes| Source::plain(PathBuf::from("x"), PathBuf::from("x"), bytes);
        let cut = |sources: Vec<Source>| Tasks::cut(sources.into(), Records::Lines, 100, 1);
        let small = cut(vec![source(10), source(0), source(10)]);
        assert_eq!((small.len(), small.parts(0).len()), (1, 2));
        assert_eq!(cut(vec![source(1000)]).len(), 10);
    }
}
