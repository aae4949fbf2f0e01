//! What a death costs, and who pays: tasks are tried again, partitions are made again, records are set aside.
//!
//! ```text
//!  died in map, of a task        the task is tried again, 1 + retries times in all; then the error names the record,
//!                                or the record is set aside and the count of tries begins anew
//!  died in reduce, by itself     the partitions are made again, 1 + retries times in all
//!  killed from outside           made good for as long as there are spare slots, unless it was in a task
//! ```

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;

use super::overdue::Overdue;
use super::{Body, Coordinator, Hand};
use crate::error::{Error, Result};
use crate::map_reduce::MapReduce;
use crate::output::BadRecord;
use crate::shared::{Failure, Place};
use crate::worker::{Role, Work};

/// How a worker ended.
pub(super) struct End {
    pub cause: String,
    /// By a signal that neither it nor this process sent, and not for lack of memory: it may be nobody's fault.
    pub from_outside: bool,
}

/// Looks at a worker: how it ended, and what it failed of. The end is looked at first, because a worker that fails ends soon after:
/// once the end is seen, the failure is there to be read, and not the worker is to blame.
pub(super) fn look<E>(
    ended: impl FnOnce() -> Result<Option<E>>,
    failure: impl FnOnce() -> Option<Failure>,
) -> Result<(Option<E>, Option<Failure>)> {
    let end = ended()?;
    Ok((end, failure()))
}

impl<J: MapReduce> Coordinator<'_, '_, '_, '_, J> {
    /// Takes note of a death and makes good for it.
    pub(super) fn bury(&mut self, at: usize, end: End, has_ended: &impl Fn(usize) -> bool) -> Result<()> {
        let Work { plan, shared, settings, .. } = *self.work;
        let Hand { role, reducer, overdue, .. } = self.hands[at];
        let body = std::mem::replace(&mut self.hands[at].body, Body::Gone);
        let who = match &body {
            Body::Process(child) => format!("worker {} (pid {})", role.slot, child.pid()),
            Body::Thread(_) | Body::Gone => format!("worker {}", role.slot),
        };
        let cause = match shared.message(role.slot) {
            Some(message) => message,
            None => match overdue {
                Some(overdue) => overdue.sentence(settings.task_timeout.unwrap_or_default()),
                None => end.cause,
            },
        };
        let from_outside = overdue.map_or(end.from_outside, |overdue| overdue == Overdue::Stopped);
        let task = self.task_to_blame(role, from_outside);
        let record = shared.record(role.slot).filter(|_| task.is_some());
        let finishes = role.reduces.is_some() && shared.is_mapped(shared.round());
        let in_reduce = task.is_none() && (shared.is_reducing(role.slot) || !role.maps || finishes);
        let place = match (task, record) {
            (_, Some(place)) => format!("in map on {}", self.name_of(place)),
            (Some(task), None) => format!("in map on {}", self.place(task)),
            (None, None) if in_reduce => "in reduce".to_owned(),
            (None, None) => "in map, between two tasks".to_owned(),
        };
        // 1. Nobody sends to it any more, and senders take back what it held.
        shared.pages.declare_dead(role.slot);
        if let Some(stream) = self.work.tasks.sources.iter().find(|source| source.is_stream())
            && !reducer.is_some_and(has_ended)
        {
            return Err(Error::ReadOnce { path: stream.name.clone(), last: format!("{who} died {place}: {cause}") });
        }
        // 2. How often that may happen. Before the task can be claimed again it is known how.
        let last = format!("{who} died {place}: {cause}");
        let mut attempt = String::new();
        if let Some(task) = task {
            self.attempts[task] += 1;
            attempt = format!(" (attempt {} of {})", self.attempts[task], settings.retries + 1);
            self.try_again(task, record, &cause, &last)?;
        }
        if let Some(reducer) = reducer.filter(|_| in_reduce && !from_outside) {
            self.reduce_attempts[reducer] += 1;
            let attempts = self.reduce_attempts[reducer];
            attempt = format!(" (attempt {attempts} of {})", settings.retries + 1);
            if attempts > settings.retries {
                return Err(Error::ReduceFailed { last, attempts });
            }
        }
        let death = format!("{who} died {place}{attempt}: {cause}");
        self.kept.tell(&format!("{death}. Its work is done again"));
        self.kept.deaths.push(death);
        if let Some(limit) = settings.max_failures.filter(|limit| self.kept.deaths.len() > *limit as usize) {
            return Err(Error::TooManyFailures { limit, last });
        }
        // 3. Its open epoch never was.
        shared.put_back(role.slot);
        shared.give_permit(role.slot);
        // 4. Somebody takes its place, unless it had done all that it was there for.
        if reducer.is_some_and(has_ended) {
            shared.ring_all_after_death();
            return Ok(());
        }
        let slot = self.hands.len() + 1;
        if slot >= shared.slots() {
            return Err(Error::TooManyDeaths { deaths: self.kept.deaths.len(), limit: plan.spare_slots, last });
        }
        let since = shared.round() + 1;
        if let Some(reducer) = reducer {
            self.reducers[reducer] = slot;
            for partition in (0..plan.partitions).filter(|partition| shared.owner(*partition) == role.slot) {
                // What it has left on the shelf outlives it.
                let kept = self.work.iterates && shared.is_kept(partition, shared.step());
                shared.assign(partition, slot, if kept { shared.since(partition) } else { since });
            }
        }
        shared.set_slots_born(slot + 1);
        self.start(Role { slot, reduces: reducer.map(|_| since), ..role }, reducer)?;
        shared.ring_all_after_death();
        Ok(())
    }

    /// The task that a worker died of: the one it worked on, unless it was combining what had arrived meanwhile; or the only
    /// one of its open epoch, if its own code failed when that was to be committed.
    fn task_to_blame(&self, role: Role, from_outside: bool) -> Option<usize> {
        let shared = self.work.shared;
        if shared.is_reducing(role.slot) {
            return None;
        }
        let mut open = shared.open_tasks(role.slot).filter(|_| !from_outside);
        shared.task(role.slot).map(|(task, _)| task).or_else(|| open.next().filter(|_| open.next().is_none()))
    }

    /// Decides how a task is tried again, or that it is not.
    fn try_again(&mut self, task: usize, record: Option<Place>, cause: &str, last: &str) -> Result<()> {
        let Work { shared, settings, .. } = *self.work;
        let attempts = self.attempts[task];
        let is_over = attempts > settings.retries;
        if settings.skip_bad_records == 0 {
            match record {
                Some(Place { source, offset, .. }) if is_over => {
                    let path = self.work.tasks.sources[source].name.clone();
                    let line = self.work.tasks.line(source, offset);
                    return Err(Error::RecordFailed { path, offset, line, last: last.to_owned(), attempts });
                }
                _ if is_over => return Err(Error::TaskFailed { last: last.to_owned(), attempts }),
                _ => {}
            }
        } else if let Some(place) = record {
            // Twice at the same record is no accident.
            if is_over || self.suspects.insert(task, place) == Some(place) {
                self.set_aside(place, cause)?;
                self.suspects.remove(&task);
                self.attempts[task] = 0;
            }
        } else if is_over {
            return Err(Error::TaskFailed { last: last.to_owned(), attempts });
        }
        if settings.skip_bad_records > 0 || attempts == settings.retries {
            shared.set_careful(task);
        }
        Ok(())
    }

    /// Sets a record aside, unless that would be one too many.
    pub(super) fn set_aside(&mut self, place: Place, cause: &str) -> Result<()> {
        let Work { shared, settings, tasks, .. } = *self.work;
        // Another round has met it before.
        if shared.is_set_aside(place.source, place.offset..place.offset + 1) {
            return Ok(());
        }
        let limit = settings.skip_bad_records;
        if self.bad_records.len() >= limit as usize {
            return Err(Error::TooManyBadRecords { limit, what: format!("{}: {cause}", self.name_of(place)) });
        }
        let source = &tasks.sources[place.source];
        let failed = |error| Error::Input { path: source.name.clone(), source: error };
        let mut record = vec![0; place.bytes as usize];
        let read = match source.unpacked_from(place.offset).map_err(failed)? {
            Some(mut content) => content.read_exact(&mut record),
            None => File::open(&source.path).and_then(|file| file.read_exact_at(&mut record, place.offset)),
        };
        read.map_err(|error: io::Error| failed(error))?;
        record.truncate(tasks.records.without_end(&record).len());
        let line = tasks.line(place.source, place.offset);
        let bad = BadRecord { path: source.name.clone(), offset: place.offset, line, record, cause: cause.to_owned() };
        if let Some(stages) = &mut self.stages {
            stages.log().note_bad(place, cause)?;
        }
        self.bad_records.push((place, bad));
        shared.set_aside(place);
        Ok(())
    }

    /// A record, as a message names it.
    fn name_of(&self, Place { source, offset, bytes }: Place) -> String {
        let tasks = self.work.tasks;
        let line = tasks.line(source, offset).map(|line| format!(" line {line},")).unwrap_or_default();
        let packed = if tasks.sources[source].compression().is_some() { " of its content" } else { "" };
        format!("{}{line} bytes {offset}..{}{packed}", tasks.sources[source].name.display(), offset + bytes)
    }

    /// Where the input of a task lies, as a message says it.
    pub(super) fn place(&self, task: usize) -> String {
        let Work { shared, tasks, .. } = *self.work;
        match shared.piece(task) {
            Some(piece) => format!("{} bytes of the pairs of step {}", piece.bytes, shared.step() - 1),
            None => tasks.place(shared.input_task(task)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn a_worker_that_fails_and_ends_while_it_is_looked_at_has_failed() {
        // One of 18,286 jobs said that a worker had died, and not which line of the input was wrong.
        let failed = Cell::new(false);
        let fails_now = || {
            failed.set(true);
            Ok(Some("exit status 0"))
        };
        let (end, failure) = look(fails_now, || failed.get().then_some(Failure::ShelfFull)).expect("looked at");
        assert_eq!((end, failure), (Some("exit status 0"), Some(Failure::ShelfFull)));
    }
}
