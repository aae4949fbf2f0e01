//! A queue: which job begins next, which is tried again or skipped, when it halts and when it is over.
//!
//! ```text
//!             all before it succeeded       success, or a failure
//!             (or ended: `after_any`),      without an attempt left
//!             a slot and memory are free
//!  Waiting -------------------------> Running ------------------> Ended
//!   |  ^                                 |
//!   |  +---------------------------------+ a failure with an attempt left, after its delay;
//!   |                                      or it was ended on request
//!   +--> Skipped: a job before it failed
//! ```
//!
//! When the queue halts, jobs that wait are left: they stay in `Waiting` and do not begin. For a job that runs
//! whatever the outcome of others (`after_any`), one that has ended, was skipped or was left is the same: it still
//! begins.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::mem::replace;
use std::time::Duration;

use crate::queue::halt::Halt;
use crate::queue::job::BatchJob;
use crate::queue::outcome::Outcome;
use crate::queue::state::{Counts, Rules, State};

/// The states of all jobs.
#[derive(Clone, Debug)]
pub struct Queue {
    jobs: Vec<Need>,
    rules: Rules,
    states: Vec<State>,
    attempts: Vec<u32>,
    /// The number of jobs that each waits for.
    blockers: Vec<usize>,
    /// The jobs that may begin, by rank.
    ready: BTreeSet<Rank>,
    /// The jobs that are tried again, by the moment when they may begin.
    delayed: BTreeSet<(Duration, usize)>,
    /// The time since the queue began.
    now: Duration,
    /// Jobs that had ended before, and that nothing runs for again.
    returned: Vec<(usize, Outcome)>,
    counts: Counts,
    memory_used_bytes: u64,
    /// The ends that were counted for [`Halt`].
    halting_ends: u32,
    is_halted: bool,
    is_stopped: bool,
    /// No further job is added.
    is_closed: bool,
}

/// The order in which jobs begin: by priority, and then by place.
type Rank = (Reverse<i32>, usize);

/// The needs of a job that the queue must know.
#[derive(Clone, Debug)]
struct Need {
    /// The jobs that wait for its success.
    dependents: Vec<usize>,
    /// The jobs that wait for its end.
    dependents_any: Vec<usize>,
    /// The jobs whose end it waits for.
    after_any: Vec<usize>,
    /// How many of those may still begin or run.
    unsettled: usize,
    /// It has ended, was skipped, or was left when the queue halted.
    is_settled: bool,
    /// How it had ended before this queue was made, if `after_any` does not tell yet whether that holds.
    past: Option<Outcome>,
    retries: u32,
    retry_delay: Duration,
    memory_bytes: u64,
    priority: i32,
}

impl Need {
    fn of(job: &BatchJob) -> Need {
        Need {
            dependents: Vec::new(),
            dependents_any: Vec::new(),
            after_any: job.after_any.clone(),
            unsettled: job.after_any.len(),
            is_settled: false,
            past: None,
            retries: job.retries.unwrap_or(0),
            retry_delay: job.retry_delay.unwrap_or_default(),
            memory_bytes: job.memory_bytes,
            priority: job.priority,
        }
    }
}

impl Queue {
    /// Makes a queue without jobs, to which [`Queue::add`] adds them until [`Queue::close`].
    ///
    /// ```
    /// use gristmill_batch::queue::{Halt, Queue, Rules, Shell};
    ///
    /// let mut queue = Queue::open(Rules { slots: 2, memory_bytes: 0, halt: Halt::SOON });
    /// queue.add(&[Shell::default().job("make".into())]);
    /// assert_eq!((queue.begin(), queue.begin(), queue.is_over()), (Some(0), None, false));
    /// ```
    pub fn open(rules: Rules) -> Queue {
        Queue {
            rules: Rules { slots: rules.slots.max(1), ..rules },
            states: Vec::new(),
            attempts: Vec::new(),
            ready: BTreeSet::new(),
            delayed: BTreeSet::new(),
            now: Duration::ZERO,
            returned: Vec::new(),
            counts: Counts::default(),
            memory_used_bytes: 0,
            halting_ends: 0,
            is_halted: false,
            is_stopped: false,
            is_closed: false,
            blockers: Vec::new(),
            jobs: Vec::new(),
        }
    }

    /// Adds jobs, which wait. Their dependencies count from the first job of the queue.
    pub fn add(&mut self, jobs: &[BatchJob]) {
        let first = self.jobs.len();
        self.jobs.extend(jobs.iter().map(Need::of));
        self.states.resize(self.jobs.len(), State::Waiting);
        self.attempts.resize(self.jobs.len(), 0);
        self.counts.waiting += jobs.len();
        for (at, job) in (first..).zip(jobs) {
            job.after.iter().for_each(|before| self.jobs[*before].dependents.push(at));
            job.after_any.iter().for_each(|before| self.jobs[*before].dependents_any.push(at));
            self.blockers.push(job.after.len() + job.after_any.len());
            if self.blockers[at] == 0 {
                self.ready.insert(self.rank(at));
            }
        }
        if self.is_halted {
            self.leave_all(first);
        }
    }

    /// Adds no further job.
    pub fn close(&mut self) {
        self.is_closed = true;
    }

    /// Returns true if no further job is added.
    pub fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// Records that a job had ended before this queue was made. Call it before it begins.
    ///
    /// One that waits for others whatever their outcome runs again, after them, if one of them does.
    pub fn restore(&mut self, job: usize, outcome: Outcome) {
        if self.states[job] == State::Waiting {
            if self.jobs[job].unsettled > 0 {
                self.jobs[job].past = Some(outcome);
            } else {
                self.returned.push((job, outcome));
            }
            self.take_back();
        }
    }

    /// Tells the time since the queue began: jobs whose delay is over may begin.
    pub fn set_now(&mut self, now: Duration) {
        self.now = now;
        while let Some((_, job)) = self.delayed.first().filter(|(at, _)| *at <= now).copied() {
            self.delayed.pop_first();
            self.ready.insert(self.rank(job));
        }
    }

    /// The moment when the next job may be tried again, as [`Queue::set_now`] takes it.
    pub fn next_retry(&self) -> Option<Duration> {
        self.delayed.first().filter(|_| !self.is_stopped).map(|(at, _)| *at)
    }

    /// Returns the job that [`Queue::begin`] would begin.
    pub fn next_job(&self) -> Option<usize> {
        if self.is_stopped || self.counts.running >= self.rules.slots {
            return None;
        }
        let (_, job) = *self.ready.first()?;
        let has_memory = self.memory_with(job) <= self.rules.memory_bytes;
        (has_memory || self.counts.running == 0).then_some(job)
    }

    /// Returns the job that begins now, if any may; it then runs.
    ///
    /// Those with the highest priority begin first, and equal ones in the order of the list. If the memory of the next
    /// one is not free, those behind it wait too, so that it does begin some time. A job that needs more than there is
    /// begins when no other runs.
    pub fn begin(&mut self) -> Option<usize> {
        let job = self.next_job()?;
        self.ready.remove(&self.rank(job));
        self.memory_used_bytes = self.memory_with(job);
        self.states[job] = State::Running;
        self.attempts[job] += 1;
        self.counts.waiting -= 1;
        self.counts.running += 1;
        Some(job)
    }

    /// Records how a running job ended. Returns true if it had an attempt left.
    pub fn end(&mut self, job: usize, outcome: Outcome) -> bool {
        assert_eq!(self.states[job], State::Running, "only a job that runs can end");
        self.release(job);
        let is_success = outcome.is_success();
        let is_tried_again = !is_success && outcome.is_end() && self.attempts[job] <= self.jobs[job].retries;
        if !is_tried_again {
            self.finish(job, outcome);
            self.count(is_success);
        } else if self.is_halted && !self.runs_anyway(job) {
            self.leave(job);
        } else if self.jobs[job].retry_delay.is_zero() {
            self.ready.insert(self.rank(job));
        } else {
            self.delayed.insert((self.now.saturating_add(self.jobs[job].retry_delay), job));
        }
        self.take_back();
        is_tried_again
    }

    /// Records that a running job was ended on request, so that it has no outcome. Unless the queue has halted,
    /// nothing begins after it.
    pub fn interrupt(&mut self, job: usize) {
        assert_eq!(self.states[job], State::Running, "only a job that runs can be interrupted");
        self.release(job);
        if self.is_halted {
            self.leave(job);
            self.take_back();
        } else {
            self.ready.insert(self.rank(job));
            self.is_stopped = true;
        }
    }

    /// Begins no further job.
    pub fn stop(&mut self) {
        self.is_stopped = true;
    }

    /// Returns true if no job runs and none will begin.
    pub fn is_over(&self) -> bool {
        let is_last = self.is_closed || self.is_halted;
        self.counts.running == 0 && (self.is_stopped || is_last && self.ready.is_empty() && self.delayed.is_empty())
    }

    /// Returns true if no further job begins, but one that runs whatever the outcome of others.
    pub fn is_stopped(&self) -> bool {
        self.is_stopped || self.is_halted
    }

    /// The rule by which the queue has halted, if it has.
    pub fn halted(&self) -> Option<Halt> {
        self.is_halted.then_some(self.rules.halt)
    }

    /// Returns true for a job that runs whatever the outcome of others, even if the queue has halted.
    pub fn runs_anyway(&self, job: usize) -> bool {
        !self.jobs[job].after_any.is_empty()
    }

    /// The state of each job.
    pub fn states(&self) -> &[State] {
        &self.states
    }

    /// The number of times that a job has begun.
    pub fn attempts(&self, job: usize) -> u32 {
        self.attempts[job]
    }

    /// The number of jobs in each state.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Takes a job from the running ones to the waiting ones.
    fn release(&mut self, job: usize) {
        self.memory_used_bytes -= self.jobs[job].memory_bytes.min(self.memory_used_bytes);
        self.states[job] = State::Waiting;
        self.counts.running -= 1;
        self.counts.waiting += 1;
    }

    fn rank(&self, job: usize) -> Rank {
        (Reverse(self.jobs[job].priority), job)
    }

    /// The memory that is used if this job begins.
    fn memory_with(&self, job: usize) -> u64 {
        self.memory_used_bytes.saturating_add(self.jobs[job].memory_bytes)
    }

    /// Ends a waiting job for good.
    fn finish(&mut self, job: usize, outcome: Outcome) {
        self.ready.remove(&self.rank(job));
        self.counts.waiting -= 1;
        let success = outcome.is_success();
        self.states[job] = State::Ended(outcome);
        if success {
            self.counts.succeeded += 1;
            self.jobs[job].dependents.clone().into_iter().for_each(|at| self.unblock(at));
        } else {
            self.counts.failed += 1;
            self.skip_dependents(job);
        }
        self.settle(job);
    }

    fn skip_dependents(&mut self, failed: usize) {
        let mut open = vec![failed];
        while let Some(job) = open.pop() {
            for at in self.jobs[job].dependents.clone() {
                if self.states[at] == State::Waiting {
                    self.states[at] = State::Skipped(failed);
                    self.ready.remove(&self.rank(at));
                    self.counts.waiting -= 1;
                    self.counts.skipped += 1;
                    self.settle(at);
                    open.push(at);
                }
            }
        }
    }

    /// Counts an end, and halts if it was the last one that the rule asks for.
    fn count(&mut self, is_success: bool) {
        let Halt { ends: Some(ends), is_of_success, .. } = self.rules.halt else { return };
        self.halting_ends += u32::from(is_success == is_of_success);
        if self.halting_ends >= ends && !replace(&mut self.is_halted, true) {
            self.leave_all(0);
            // Those that were left do not begin.
            self.delayed.retain(|(_, job)| !self.jobs[*job].is_settled);
        }
    }

    /// Leaves the jobs from this place on that wait, but none that runs whatever the outcome of others.
    fn leave_all(&mut self, first: usize) {
        for job in first..self.jobs.len() {
            if self.states[job] == State::Waiting && !self.runs_anyway(job) {
                self.leave(job);
            }
        }
    }

    /// Leaves a waiting job, and those that wait for its success.
    fn leave(&mut self, job: usize) {
        let mut open = vec![job];
        while let Some(job) = open.pop() {
            if self.states[job] == State::Waiting && !self.jobs[job].is_settled {
                self.ready.remove(&self.rank(job));
                open.extend(&self.jobs[job].dependents);
                self.settle(job);
            }
        }
    }

    /// Records that nobody need wait for the end of this job any more.
    fn settle(&mut self, job: usize) {
        if replace(&mut self.jobs[job].is_settled, true) {
            return;
        }
        for at in self.jobs[job].dependents_any.clone() {
            self.jobs[at].unsettled -= 1;
            if self.jobs[at].unsettled == 0
                && let Some(outcome) = self.jobs[at].past.take()
                && self.jobs[at].after_any.iter().all(|before| self.attempts[*before] == 0)
            {
                self.returned.push((at, outcome));
            }
            self.unblock(at);
        }
    }

    /// Takes one from the number of jobs that a job waits for.
    fn unblock(&mut self, at: usize) {
        self.blockers[at] -= 1;
        if self.blockers[at] == 0 && self.states[at] == State::Waiting && !self.jobs[at].is_settled {
            self.ready.insert(self.rank(at));
        }
    }

    /// Ends the jobs that had ended before, one by one: each may free others.
    fn take_back(&mut self) {
        while let Some((job, outcome)) = self.returned.pop() {
            if self.states[job] == State::Waiting {
                self.finish(job, outcome);
                self.counts.ended_before += 1;
            }
        }
    }
}

#[cfg(test)]
mod model;
#[cfg(test)]
mod tests;
