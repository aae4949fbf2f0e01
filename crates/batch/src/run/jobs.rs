//! The jobs of a running queue: those that have arrived, and their states ([`Queue`] says which begins next).

use std::io;
use std::ops::Range;
use std::time::{Duration, Instant};

use gristmill::Error;
use gristmill_os::wake::Watch;

use super::before::Before;
use crate::journal_file::now_ms;
use crate::list::List;
use crate::program::ready::Ready;
use crate::queue::{BatchJob, Entry, Outcome, Queue};

/// The jobs that wait from which on no more of the list is read: `yes | gristmill batch` never ends.
const WAITING_MAX: usize = 100_000;

/// The list, and the states of its jobs.
pub struct Jobs {
    list: List,
    before: Before,
    pub queue: Queue,
    began: Instant,
    /// The list is among what is waited for.
    is_awaited: bool,
}

impl Jobs {
    pub fn new(list: List, before: Before, queue: Queue) -> Jobs {
        Jobs { list, before, queue, began: Instant::now(), is_awaited: false }
    }

    /// The jobs so far.
    pub fn all(&self) -> &[BatchJob] {
        self.list.jobs()
    }

    /// A job and its key in the journal.
    pub fn keyed(&self, job: usize) -> (&BatchJob, &str) {
        (&self.list.jobs()[job], self.list.key(job))
    }

    /// Tells the queue the time: a job may be tried again now.
    pub fn set_now(&mut self) {
        self.queue.set_now(self.began.elapsed());
    }

    /// When a job is tried again, if no other has begun until then.
    pub fn retry_at(&self) -> Option<Instant> {
        self.queue.next_retry().and_then(|at| self.began.checked_add(at))
    }

    /// The time until a job is tried again.
    pub fn retry_in(&self) -> Option<Duration> {
        self.queue.next_retry().map(|at| at.saturating_sub(self.began.elapsed()))
    }

    /// Returns true if jobs wait, or may arrive.
    pub fn are_unfinished(&self) -> bool {
        self.queue.counts().waiting > 0 || !self.queue.is_closed()
    }

    /// Waits for more of the list, unless enough jobs wait or none will begin.
    pub fn watch(&mut self, watch: &Watch) -> io::Result<()> {
        let wants_more = !self.queue.is_stopped() && self.queue.counts().waiting < WAITING_MAX;
        if let Some(file) = self.list.file()
            && wants_more != self.is_awaited
        {
            if wants_more {
                watch.add(file, Ready::List.number())?
            } else {
                watch.remove(file)?
            }
            self.is_awaited = wants_more;
        }
        Ok(())
    }

    /// Takes in the jobs that have arrived, and returns their places.
    pub fn take_in(&mut self, watch: &Watch) -> io::Result<Result<Range<usize>, Error>> {
        // The list closes its file at its end.
        if let Some(file) = self.list.file() {
            watch.remove(file)?;
            self.is_awaited = false;
        }
        Ok(self.list.take_in().inspect(|new| self.before.add(&self.list, new.start, &mut self.queue)))
    }

    /// The line of the journal for a job that begins.
    pub fn start_of(&self, job: usize) -> Entry {
        let attempt = self.queue.attempts(job);
        Entry::Start { key: self.list.key(job).to_owned(), attempt, at_ms: now_ms() }
    }

    /// The line of the journal for a job that has ended.
    pub fn end_of(&self, job: usize, outcome: Outcome) -> Entry {
        Entry::End { key: self.list.key(job).to_owned(), outcome, at_ms: now_ms() }
    }
}
