//! The lines of the journal, and the moment when they must be on the disk.

use std::io;
use std::time::{Duration, Instant};

use gristmill_report::messages::printable;

use crate::journal_file::Journal;
use crate::queue::Entry;

/// The time between two syncs, unless a job waits for one.
const SYNC: Duration = Duration::from_millis(50);

/// The journal of a running queue.
pub struct Kept<'a> {
    /// `None` without a journal, or after a problem with it.
    journal: Option<&'a Journal>,
    /// When the first end was written that may not be on the disk.
    unsynced_since: Option<Instant>,
}

impl<'a> Kept<'a> {
    pub fn new(journal: Option<&'a Journal>) -> Kept<'a> {
        Kept { journal, unsynced_since: None }
    }

    /// Returns true if there is a journal that can be written.
    pub fn is_there(&self) -> bool {
        self.journal.is_some()
    }

    /// Writes lines.
    ///
    /// # Errors
    /// A sentence, once: nothing is written after it.
    pub fn write(&mut self, entries: &[Entry]) -> Result<(), String> {
        let Some(journal) = self.journal.filter(|_| !entries.is_empty()) else { return Ok(()) };
        journal.append(entries).map_err(|error| self.give_up(journal, &error))?;
        if entries.iter().any(|entry| matches!(entry, Entry::End { .. })) {
            self.unsynced_since.get_or_insert_with(Instant::now);
        }
        Ok(())
    }

    /// Waits until all ends that were written are on the disk.
    ///
    /// # Errors
    /// As [`Kept::write`].
    pub fn sync(&mut self) -> Result<(), String> {
        match self.journal.filter(|_| self.unsynced_since.take().is_some()) {
            Some(journal) => journal.sync().map_err(|error| self.give_up(journal, &error)),
            None => Ok(()),
        }
    }

    /// When to sync.
    pub fn sync_at(&self) -> Option<Instant> {
        self.unsynced_since.map(|since| since + SYNC)
    }

    fn give_up(&mut self, journal: &Journal, error: &io::Error) -> String {
        self.journal = None;
        let path = printable(&journal.path().display().to_string());
        format!(
            "the journal {path} cannot be written: {error}. No further program begins; what ends from now on will run again"
        )
    }
}
