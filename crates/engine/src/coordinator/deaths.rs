//! Repairs after the death of a worker: its tasks are retried, its partitions are remade in the next round (see
//! `rounds`), or a record is set aside.
//!
//! ```text
//!  died in map, of a task        the task is tried again, 1 + retries times in all; then the error names the record,
//!                                or the record is set aside and the count of tries begins anew
//!  died in reduce, by itself     the partitions are made again, 1 + retries times in all
//!  died for lack of memory       while others mapped: from now on, half as many map at the same time; otherwise as above, but
//!                                no record is set aside
//!  killed from outside           made good for as long as there are spare slots, unless it was in a task
//! ```

use gristmill_os::clock::monotonic_ns;
use gristmill_os::process::OomKills;

use crate::control::place::Place;
use crate::coordinator::clock::{Overdue, Rest};
use crate::coordinator::state::Coordinator;
use crate::coordinator::worker_handle::{Body, End, WorkerHandle};
use crate::error::{Asked, Error, Result};
use crate::failure::Failure;
use crate::output::timeline::Event;
use crate::worker::setup::{Role, Setup};

/// Looks for workers that have ended, and for a failure. The ends come first: a worker that fails ends soon after. Once
/// its end has been seen, its failure can be read, and the worker is not blamed.
pub(super) fn look<W, E>(
    workers: &mut W,
    ended: impl FnOnce(&mut W) -> Result<E>,
    failure: impl FnOnce(&W) -> Option<(usize, Failure)>,
) -> Result<(E, Option<(usize, Failure)>)> {
    let end = ended(workers)?;
    Ok((end, failure(workers)))
}

/// A worker that has died, and what killed it.
struct Dead {
    role: Role,
    reducer: Option<usize>,
    /// Whether no part of the job may be to blame.
    from_outside: bool,
    for_memory: bool,
    /// The task to blame.
    task: Option<usize>,
    /// The chunk that the task was mapping, or the record.
    at: Option<(Place, bool)>,
    in_reduce: bool,
    /// The worker and what it was doing, as the beginning of a sentence.
    died: String,
    cause: String,
}

impl Dead {
    fn sentence(&self) -> String {
        format!("{}: {}", self.died, self.cause)
    }
}

/// The repairs after a death, in words.
struct Sequel {
    /// The number of attempts, if they are counted.
    attempt: String,
    again: String,
}

impl Coordinator<'_, '_, '_, '_> {
    /// Records a death and repairs what it broke.
    pub(super) fn bury(&mut self, at: usize, end: End, has_ended: &dyn Fn(usize) -> bool) -> Result<()> {
        // What it has reported still counts.
        self.hear()?;
        let dead = self.examine(at, &end)?;
        let Setup { shared, tasks, outputs, .. } = *self.setup;
        let slot = dead.role.slot;
        let was_complete = dead.reducer.is_some_and(has_ended);
        // 1. Senders stop sending to it, and take back the pages that it held.
        shared.pages.declare_dead(slot, &end.proof);
        outputs.let_out(slot, &end.proof);
        if let Some(stream) = tasks.sources.iter().find(|source| source.is_stream())
            && !was_complete
        {
            return Err(Error::ReadOnce { path: stream.name.clone(), last: dead.sentence() });
        }
        // 2. Decide whether its task may be retried, and how, before another worker can claim the task.
        let sequel = self.retry(&dead)?;
        self.announce(&dead, &sequel)?;
        // 3. Discard its open epoch.
        shared.put_back(slot);
        shared.give_permit(slot);
        // 4. Replace it, unless its work was complete.
        if !was_complete {
            self.replace(&dead)?;
        }
        shared.ring_all_after_death();
        Ok(())
    }

    /// Takes the body of the worker of `hands[at]`, and finds out what killed it.
    fn examine(&mut self, at: usize, end: &End) -> Result<Dead> {
        let Setup { plan, shared, .. } = *self.setup;
        let WorkerHandle { role, reducer, overdue, .. } = self.hands[at];
        let body = std::mem::replace(&mut self.hands[at].body, Body::Gone);
        if let Body::Process(child) = &body {
            self.waits.remove(&child.pidfd()).asked("waiting for worker processes")?;
        }
        let who = match &body {
            Body::Process(child) => format!("worker {} (pid {})", role.slot, child.pid()),
            Body::Thread(_) | Body::NotStarted | Body::Gone => format!("worker {}", role.slot),
        };
        let cause = shared.message(role.slot).unwrap_or_else(|| match overdue {
            Some(overdue) => overdue.sentence(plan.task_timeout.unwrap_or_default()),
            None => end.cause.clone(),
        });
        let from_outside = overdue.map_or(end.from_outside, |overdue| overdue == Overdue::Stopped);
        let task = self.task_to_blame(role, from_outside);
        let at = shared.place(role.slot).filter(|(place, _)| task.is_some() && self.is_in_input(*place));
        let finishes = role.reduces.is_some() && shared.is_mapped(shared.round());
        let in_reduce = task.is_none() && (shared.is_reducing(role.slot) || !role.maps || finishes);
        let place = match (task, at) {
            (Some(task), Some((place, true))) if self.is_worth_a_line(task, place) => {
                format!("in map on {}", self.name_of(place))
            }
            (_, Some((place, _))) => format!("in map on {}", self.bytes_of(place)),
            (Some(task), None) => format!("in map on {}", self.place(task)),
            (None, None) if in_reduce => "in reduce".to_owned(),
            (None, None) => "in map, between two tasks".to_owned(),
        };
        let died = format!("{who} died {place}");
        Ok(Dead { role, reducer, from_outside, for_memory: end.for_memory, task, at, in_reduce, died, cause })
    }

    /// Decides whether the work of a dead worker may be done again, and how.
    fn retry(&mut self, dead: &Dead) -> Result<Sequel> {
        let Setup { plan, shared, .. } = *self.setup;
        let retries = plan.retries;
        let mut attempt = String::new();
        let mut again = "Its work is done again".to_owned();
        let at_once = self.map_at_once;
        let had_company = dead.for_memory && self.had_company(dead.role.slot);
        if let Some(task) = dead.task {
            if !had_company {
                self.attempts[task] += 1;
                attempt = format!(" (attempt {} of {})", self.attempts[task], retries + 1);
            }
            match dead.for_memory {
                true if self.attempts[task] > retries => {
                    return Err(Error::MemoryRefused { last: dead.sentence(), attempts: self.attempts[task] });
                }
                true => shared.set_careful(task),
                false => self.try_again(task, dead)?,
            }
            if let Some((place, _)) = dead.at {
                shared.suspect(dead.role.slot, task);
                again = format!("Its task is mapped again, and record by record on {}", self.bytes_of(place));
            }
        }
        if let Some(reducer) = dead.reducer.filter(|_| dead.in_reduce && !dead.from_outside) {
            self.reduce_attempts[reducer] += 1;
            let attempts = self.reduce_attempts[reducer];
            attempt = format!(" (attempt {attempts} of {})", retries + 1);
            if attempts > retries {
                return Err(Error::ReduceFailed { last: dead.sentence(), attempts });
            }
        }
        if self.map_at_once < at_once {
            again += &match self.map_at_once {
                1 => ". From now on, one worker maps at a time".to_owned(),
                several => format!(". From now on, at most {several} workers map at a time"),
            };
        }
        Ok(Sequel { attempt, again })
    }

    /// Tells the caller of a death, and counts it.
    fn announce(&mut self, dead: &Dead, Sequel { attempt, again }: &Sequel) -> Result<()> {
        let death = format!("{}{attempt}: {}", dead.died, dead.cause);
        let news = format!("{death}. {again}");
        self.kept.tell(&news);
        self.kept.mark(self.setup.start_ns, Event::Death { worker: dead.role.slot, how: news });
        self.kept.deaths.push(death);
        let limit = self.setup.plan.max_failures;
        match limit.filter(|limit| self.kept.deaths.len() > *limit as usize) {
            Some(limit) => Err(Error::TooManyFailures { limit, last: dead.sentence() }),
            None => Ok(()),
        }
    }

    /// Starts a worker in a new slot, which takes over the role and the partitions of a dead one.
    fn replace(&mut self, dead: &Dead) -> Result<()> {
        let Setup { plan, shared, .. } = *self.setup;
        let Dead { role, reducer, .. } = *dead;
        let slot = self.hands.len() + 1;
        if slot >= shared.slots {
            let (deaths, limit) = (self.kept.deaths.len(), plan.spare_slots);
            return Err(Error::TooManyDeaths { deaths, limit, last: dead.sentence() });
        }
        let since = shared.round() + 1;
        if let Some(reducer) = reducer {
            self.reducer_lost_in = Some(shared.round());
            self.reducers[reducer] = slot;
            for partition in (0..plan.partitions).filter(|partition| shared.owner(*partition) == role.slot) {
                // What it has put on the shelf stays valid.
                let kept = self.setup.mode.iterates() && shared.is_kept(partition, shared.step());
                shared.assign(partition, slot, if kept { shared.since(partition) } else { since });
            }
        }
        shared.set_slots_born(slot + 1);
        let role = Role { slot, reduces: reducer.map(|_| since), ..role };
        self.hands.push(WorkerHandle { role, body: Body::NotStarted, reducer, rest: Rest::default(), overdue: None });
        self.start(slot - 1, OomKills::until_now())
    }

    /// Returns whether a place that a worker has left can be one of the input.
    fn is_in_input(&self, place: Place) -> bool {
        place.source < self.setup.tasks.sources.len() && place.offset.checked_add(place.bytes).is_some()
    }

    /// Returns whether the worker in `slot`, which died for lack of memory, mapped while others did. Then half as many
    /// may map at the same time from now on.
    fn had_company(&mut self, slot: usize) -> bool {
        let shared = self.setup.shared;
        let Some((_, start_ns)) = shared.task(slot) else { return false };
        // If several workers die together, the last one finds nobody else at work.
        let maps = |hand: &WorkerHandle<'_>| !matches!(hand.body, Body::Gone) && shared.task(hand.role.slot).is_some();
        if start_ns > self.had_company_ns && !self.hands.iter().any(maps) {
            return false;
        }
        let fewer = (self.map_at_once / 2).max(1);
        shared.withdraw_permits(self.map_at_once - fewer);
        (self.map_at_once, self.had_company_ns) = (fewer, monotonic_ns());
        true
    }

    /// Returns the task that killed a worker. That is the task it was mapping, unless it was combining arrived pairs at
    /// that moment; or the only task of its open epoch, if user code failed during the commit.
    fn task_to_blame(&self, role: Role, from_outside: bool) -> Option<usize> {
        let shared = self.setup.shared;
        if shared.is_reducing(role.slot) {
            return None;
        }
        let mut open = shared.open_tasks(role.slot).filter(|_| !from_outside);
        shared.task(role.slot).map(|(task, _)| task).or_else(|| open.next().filter(|_| open.next().is_none()))
    }

    /// Finding a line number means reading all lines before it. For a compressed file, which must be decoded for that,
    /// this is done only for the error that ends the job.
    fn is_worth_a_line(&self, task: usize, place: Place) -> bool {
        let Setup { tasks, plan, .. } = *self.setup;
        let ends = self.attempts[task] >= plan.retries && plan.skip_bad_records == 0;
        !tasks.sources[place.source].is_decoded() || ends
    }

    /// Decides whether and how to retry a task that has killed a worker.
    fn try_again(&mut self, task: usize, dead: &Dead) -> Result<()> {
        let Setup { shared, tasks, plan, .. } = *self.setup;
        let attempts = self.attempts[task];
        let is_over = attempts > plan.retries;
        let before = dead.at.and_then(|(place, _)| self.suspects.insert(task, place));
        match dead.at {
            Some((place, true)) if plan.skip_bad_records > 0 => {
                // Two deaths at the same record are no accident. Neither is the worker's own failure at a record in a
                // chunk that was fatal before.
                let again = before.is_some_and(|before| before == place || !dead.from_outside && before.meets(place));
                if is_over || again {
                    self.set_aside(vec![(place, dead.cause.clone())])?;
                    self.suspects.remove(&task);
                    self.attempts[task] = 0;
                }
            }
            Some((Place { source, offset, .. }, true)) if is_over => {
                let path = tasks.sources[source].name.clone();
                let line = tasks.line(source, offset);
                return Err(Error::RecordFailed { path, offset, line, last: dead.sentence(), attempts });
            }
            _ if is_over => return Err(Error::TaskFailed { last: dead.sentence(), attempts }),
            _ => {}
        }
        shared.set_careful(task);
        Ok(())
    }

    /// Returns the place of a task's input, for messages.
    pub(super) fn place(&self, task: usize) -> String {
        let Setup { shared, tasks, .. } = *self.setup;
        match shared.piece(task) {
            Some(piece) => format!("{} bytes of the pairs of step {}", piece.bytes, shared.step() - 1),
            None => tasks.place(shared.input_task(task)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_that_fails_and_ends_while_it_is_looked_at_has_failed() {
        // One of 18,286 jobs reported a dead worker instead of the line of the input that was wrong.
        let fails_now = |failed: &mut bool| {
            *failed = true;
            Ok("exit status 0")
        };
        let failure = |failed: &bool| failed.then_some((1, Failure::ShelfFull));
        let (end, failure) = look(&mut false, fails_now, failure).expect("looked at");
        assert_eq!((end, failure), ("exit status 0", Some((1, Failure::ShelfFull))));
    }
}
