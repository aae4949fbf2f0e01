//! The journal: a line for each start and each end, with a checksum.
//!
//! ```text
//!  1f0a63bb {"end":"82ab...e1.1","outcome":"exit 0","at_ms":1700000000000}
//!  CRC-32    of the rest of the line
//! ```
//!
//! Ends are synced to the disk within a moment, and before a job that waits for them begins. Starts are not: a start
//! that is lost costs nothing, because a job without an end runs again.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::queue::outcome::Outcome;

/// The version of the format. In the first one, the key of a job did not tell where it had run.
const VERSION: u64 = 2;

/// A line of the journal. Times are in milliseconds since 1970.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// The first line.
    Version(u64),
    /// A job has begun.
    Start {
        /// The key of the job.
        key: String,
        /// The number of this attempt, from 1.
        attempt: u32,
        /// The time.
        at_ms: u64,
    },
    /// A job has ended and is not tried again.
    End {
        /// The key of the job.
        key: String,
        /// How it ended.
        outcome: Outcome,
        /// The time.
        at_ms: u64,
    },
}

impl Entry {
    /// The first line of a journal.
    pub fn first() -> Entry {
        Entry::Version(VERSION)
    }

    fn json(&self) -> Value {
        match self {
            Entry::Version(version) => json!({ "journal": version }),
            Entry::Start { key, attempt, at_ms } => json!({ "start": key, "attempt": attempt, "at_ms": at_ms }),
            Entry::End { key, outcome, at_ms } => {
                json!({ "end": key, "outcome": outcome.to_string(), "at_ms": at_ms })
            }
        }
    }

    fn parse(value: &Value) -> Option<Entry> {
        if let Some(version) = value.get("journal") {
            return version.as_u64().map(Entry::Version);
        }
        let at_ms = value.get("at_ms")?.as_u64()?;
        if let Some(key) = value.get("start") {
            let attempt = u32::try_from(value.get("attempt")?.as_u64()?).ok()?;
            return Some(Entry::Start { key: key.as_str()?.to_owned(), attempt, at_ms });
        }
        let outcome = Outcome::parse(value.get("outcome")?.as_str()?)?;
        Some(Entry::End { key: value.get("end")?.as_str()?.to_owned(), outcome, at_ms })
    }
}

/// Returns the line of an entry, with its end.
pub fn line(entry: &Entry) -> String {
    let text = entry.json().to_string();
    format!("{:08x} {text}\n", crc32fast::hash(text.as_bytes()))
}

/// Reads a line without its end; `None` if it is damaged.
fn read(line: &[u8]) -> Option<Entry> {
    let (checksum, text) = (line.get(..8)?, line.get(9..)?);
    let checksum = u32::from_str_radix(std::str::from_utf8(checksum).ok()?, 16).ok()?;
    if line[8] != b' ' || checksum != crc32fast::hash(text) {
        return None;
    }
    Entry::parse(&serde_json::from_slice(text).ok()?)
}

/// The content of a journal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Past {
    /// The jobs that have ended, by key.
    pub ended: BTreeMap<String, Outcome>,
    /// The jobs that began and did not end: they were cut off.
    pub cut_off: BTreeMap<String, u32>,
    /// The bytes that are whole. What follows was torn when the machine or the scheduler stopped; cut it off before
    /// the next line.
    pub whole_bytes: usize,
}

/// A journal that cannot be continued.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JournalError {
    /// It does not begin as a journal.
    #[error("it is not a journal")]
    NoJournal,
    /// A later version wrote it.
    #[error("a newer gristmill wrote it (format {0})")]
    Newer(u64),
    /// An earlier version wrote it, with keys that do not tell where a job had run.
    #[error(
        "an earlier gristmill wrote it (format {0}), which did not note in which folder jobs ran, so what has ended \
         here cannot be told; finish it with that version, or begin another journal, with which all jobs run"
    )]
    Older(u64),
    /// A line is damaged, and whole ones follow: this was no torn end.
    #[error("line {line} is damaged, and whole lines follow")]
    Damaged {
        /// Its number, from 1.
        line: usize,
    },
}

impl Past {
    /// Reads a journal. An empty one has no past.
    ///
    /// # Errors
    ///
    /// See [`JournalError`].
    pub fn read(bytes: &[u8]) -> Result<Past, JournalError> {
        let mut past = Past::default();
        let (mut torn, mut at) = (None, 0);
        for (number, line) in bytes.split_inclusive(|byte| *byte == b'\n').enumerate() {
            at += line.len();
            // A line without an end was not written to its end.
            let entry = line.strip_suffix(b"\n").and_then(read);
            match (entry, torn) {
                (Some(_), Some(line)) => return Err(JournalError::Damaged { line }),
                (Some(Entry::Version(version)), _) if version > VERSION => return Err(JournalError::Newer(version)),
                (Some(Entry::Version(version)), _) if version < VERSION => return Err(JournalError::Older(version)),
                (Some(entry), None) => {
                    if number == 0 && !matches!(entry, Entry::Version(_)) {
                        return Err(JournalError::NoJournal);
                    }
                    past.take_in(entry);
                    past.whole_bytes = at;
                }
                // The first line may be torn too, but then it is one that we began.
                (None, None) if number == 0 && !super::journal::line(&Entry::first()).as_bytes().starts_with(line) => {
                    return Err(JournalError::NoJournal);
                }
                (None, None) => torn = Some(number + 1),
                (None, Some(_)) => {}
            }
        }
        Ok(past)
    }

    fn take_in(&mut self, entry: Entry) {
        match entry {
            Entry::Version(_) => {}
            Entry::Start { key, attempt, .. } => {
                // It runs again: it had failed, and that is over.
                self.ended.remove(&key);
                self.cut_off.insert(key, attempt);
            }
            Entry::End { key, outcome, .. } => {
                self.cut_off.remove(&key);
                self.ended.insert(key, outcome);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn start(key: &str) -> Entry {
        Entry::Start { key: key.into(), attempt: 1, at_ms: 5 }
    }

    fn end(key: &str, status: i32) -> Entry {
        Entry::End { key: key.into(), outcome: Outcome::Exited(status), at_ms: 7 }
    }

    fn text(entries: &[Entry]) -> Vec<u8> {
        entries.iter().map(line).collect::<String>().into_bytes()
    }

    #[test]
    fn ended_jobs_and_those_that_were_cut_off_are_told_apart() {
        let bytes = text(&[Entry::first(), start("a"), start("b"), end("a", 3), start("c"), end("c", 0)]);
        let past = Past::read(&bytes).expect("it is whole");
        assert_eq!(past.ended, BTreeMap::from([("a".into(), Outcome::Exited(3)), ("c".into(), Outcome::Exited(0))]));
        assert_eq!(past.cut_off, BTreeMap::from([("b".into(), 1)]));
        assert_eq!(past.whole_bytes, bytes.len());
    }

    #[test]
    fn a_failed_job_that_began_again_and_was_cut_off_has_no_end() {
        let past = Past::read(&text(&[Entry::first(), start("a"), end("a", 3), start("a")])).expect("it is whole");
        assert_eq!((past.ended, past.cut_off), (BTreeMap::new(), BTreeMap::from([("a".into(), 1)])));
    }

    #[test]
    fn a_damaged_line_before_whole_ones_is_an_error_that_names_it() {
        let mut bytes = text(&[Entry::first(), start("a"), end("a", 0)]);
        let second = line(&Entry::first()).len() + 20;
        bytes[second] ^= 1;
        assert_eq!(Past::read(&bytes), Err(JournalError::Damaged { line: 2 }));
    }

    #[test]
    fn other_files_and_journals_of_other_versions_are_refused() {
        assert_eq!(Past::read(b"dear diary\n"), Err(JournalError::NoJournal));
        assert_eq!(Past::read(&text(&[start("a")])), Err(JournalError::NoJournal));
        assert_eq!(Past::read(&text(&[Entry::Version(9)])), Err(JournalError::Newer(9)));
        assert_eq!(Past::read(&text(&[Entry::Version(1), start("a")])), Err(JournalError::Older(1)));
        assert_eq!(Past::read(b""), Ok(Past::default()));
    }

    proptest! {
        /// The journal is cut at a random byte, as by a crash, and continued.
        #[test]
        fn a_torn_end_loses_only_the_torn_line(cut in 0..2000_usize, count in 1..20_usize) {
            let entries: Vec<Entry> = std::iter::once(Entry::first())
                .chain((0..count).flat_map(|at| [start(&format!("k{at}")), end(&format!("k{at}"), 0)]))
                .collect();
            let whole = text(&entries);
            let cut = cut.min(whole.len());
            let past = Past::read(&whole[..cut]).expect("a torn end is no error");
            // Whole lines, counted.
            let lines = whole[..cut].iter().filter(|byte| **byte == b'\n').count();
            prop_assert_eq!(past.whole_bytes, text(&entries[..lines]).len());
            prop_assert_eq!(past.ended.len(), lines.saturating_sub(1) / 2);
            let mut continued = whole[..past.whole_bytes].to_vec();
            continued.extend(text(&entries[lines..]));
            prop_assert_eq!(Past::read(&continued).expect("it is whole").ended.len(), count);
        }
    }
}
