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
pub(crate) struct TaskPart {
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
    parts: Vec<TaskPart>,
    /// The parts of each task.
    tasks: Vec<Range<usize>>,
    /// The format of the records of sources that have none of their own.
    records: Records,
    pub record_bytes_max: usize,
}

impl Tasks {
    /// Cuts `sources` into tasks: large files are cut, small ones are grouped. The parts of CSV do not have their state
    /// yet ([`quote_scan`](crate::survey::quote_scan)).
    pub fn cut(sources: Arc<[Source]>, records: Records, splits: Splits, record_bytes_max: usize) -> Tasks {
        let (mut parts, mut tasks) = (Vec::<TaskPart>::new(), Vec::new());
        let (mut first, mut gathered, mut before) = (0, 0, 0);
        for (source, file) in sources.iter().enumerate() {
            let (mut start, mut stored) = (0, 0);
            for (end, stored_end) in ends(file, file.records_or(records), splits, before + gathered) {
                let stored_bytes = stored_end - stored;
                parts.push(TaskPart { source, range: start..end, stored_bytes, state: State::default() });
                gathered += stored_end - stored;
                (start, stored) = (end, stored_end);
                if gathered >= splits.bytes_after(before, file.records_or(records)) {
                    tasks.push(first..parts.len());
                    before += gathered;
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

    pub fn parts(&self, task: usize) -> &[TaskPart] {
        &self.parts[self.tasks[task].clone()]
    }

    /// Returns the parts of all tasks, in the order of the input.
    pub fn all_parts(&self) -> &[TaskPart] {
        &self.parts
    }

    pub fn all_parts_mut(&mut self) -> &mut [TaskPart] {
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
        self.sources[source].line(offset, self.records_of(source))
    }

    /// Returns the place of this task's input, for a message.
    pub fn place(&self, task: usize) -> String {
        let parts = self.parts(task);
        let name = |part: &TaskPart| self.sources[part.source].name.display().to_string();
        match parts {
            [part] if part.range.end == UNKNOWN_BYTES => name(part),
            [part] => {
                let packed = self.sources[part.source].is_decoded();
                let of = if packed { " of its content" } else { "" };
                format!("{} bytes {}..{}{of}", name(part), part.range.start, part.range.end)
            }
            [first, .., last] => format!("{} to {} ({} files)", name(first), name(last), parts.len()),
            [] => "an empty task".to_owned(),
        }
    }
}

/// The sizes of tasks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Splits {
    /// The size of most tasks.
    bytes: u64,
    /// A task is at most this part of the input before it; 0 if all are of one size.
    parts_before: u64,
}

/// The size of the first of growing splits: a line or two of text, or one record of fixed width.
pub(crate) const FIRST_SPLIT_BYTES: u64 = 128;
/// How many times as long as the tasks of all workers the input before them is, while splits grow.
const GROWTH: u64 = 64;

impl Splits {
    /// Splits of one size.
    pub fn of(bytes: u64) -> Splits {
        Splits { bytes, parts_before: 0 }
    }

    /// Splits that are small at first. Somebody who wants the first records of a result waits for few others: the
    /// tasks that workers have begun beyond these are a [`GROWTH`]th of them.
    pub fn growing(bytes: u64, workers: usize) -> Splits {
        Splits { bytes, parts_before: GROWTH * workers as u64 }
    }

    /// Returns the size of a split with this much input before it.
    fn bytes_after(self, before: u64, records: Records) -> u64 {
        let first_bytes = match records {
            Records::Fixed(width) => width as u64,
            _ => FIRST_SPLIT_BYTES,
        };
        let Some(part) = before.checked_div(self.parts_before) else { return self.bytes };
        part.max(first_bytes).min(self.bytes)
    }
}

/// Returns the ends of a source's parts: offsets in its content, and (approximately) in the file. `before` is the size
/// of the input before it.
fn ends(file: &Source, records: Records, splits: Splits, before: u64) -> Vec<(u64, u64)> {
    let content_bytes = file.content_bytes();
    let whole = || vec![(content_bytes, file.bytes)];
    match (file.cuts(), records) {
        _ if content_bytes == 0 => Vec::new(),
        // The size of its content is not known.
        _ if file.is_stream() => vec![(content_bytes, 0)],
        (_, Records::WholeFile) => whole(),
        (None, _) => {
            let step_after = |before| match (records, splits.bytes_after(before, records)) {
                (Records::Fixed(width), bytes) => bytes.next_multiple_of(width as u64),
                // A byte order mark is recognised only if it is read in one piece.
                (_, bytes) => bytes.max(MARK.len() as u64),
            };
            let mut ends = Vec::new();
            let mut end = 0;
            while end < content_bytes {
                end = content_bytes.min(end.saturating_add(step_after(before + end)));
                ends.push((end, end));
            }
            ends
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
                if end - last >= splits.bytes_after(before + last, records) && end < content_bytes {
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
        let cut = |sources: Vec<Source>| Tasks::cut(sources.into(), Records::Lines, Splits::of(100), 1);
        let small = cut(vec![source(10), source(0), source(10)]);
        assert_eq!((small.len(), small.parts(0).len()), (1, 2));
        assert_eq!(cut(vec![source(1000)]).len(), 10);
    }

    #[test]
    fn growing_splits_are_small_at_first_and_cover_everything() {
        // The first record of a result came when a fortieth of the input had been mapped.
        let source = |bytes| Source::plain(PathBuf::from("x"), PathBuf::from("x"), bytes);
        let sources = vec![source(1 << 20), source(77), source(3 << 20)];
        let tasks = Tasks::cut(sources.into(), Records::Lines, Splits::growing(1 << 16, 2), 1);
        let sizes: Vec<u64> = (0..tasks.len()).map(|task| tasks.bytes(task)).collect();
        assert_eq!((sizes[0], sizes.iter().sum::<u64>()), (FIRST_SPLIT_BYTES, (4 << 20) + 77));
        let mut before = 0;
        for size in sizes {
            // The end of a file goes with the next one.
            assert!(size <= 2 * (before / 128).max(FIRST_SPLIT_BYTES) && size <= 1 << 16, "{size} after {before}");
            before += size;
        }
        assert!(tasks.len() < 2000, "{} tasks", tasks.len());
    }
}
