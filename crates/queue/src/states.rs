//! The states of all jobs: which begins next, which is tried again, which is skipped.
//!
//! ```text
//!             all before it succeeded,      success, or a failure
//!             a slot and memory are free    without an attempt left
//!  Waiting -------------------------> Running ------------------> Ended
//!   |  ^                                 |
//!   |  +---------------------------------+ a failure with an attempt left
//!   |
//!   +--> Skipped: a job before it failed
//! ```

use std::collections::BTreeSet;

use crate::job::Job;
use crate::outcome::Outcome;

/// The state of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// It has not begun, or will be tried again.
    Waiting,
    /// It runs.
    Running,
    /// It has ended and is not tried again.
    Ended(Outcome),
    /// It does not run, because the job at this place failed.
    Skipped(usize),
}

/// What may run at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// The number of jobs at the same time.
    pub slots: usize,
    /// The memory of all jobs at the same time.
    pub memory_bytes: u64,
    /// Begin further jobs after one has failed.
    pub keep_going: bool,
}

/// The number of jobs in each state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Jobs that wait.
    pub waiting: usize,
    /// Jobs that run.
    pub running: usize,
    /// Jobs that succeeded.
    pub succeeded: usize,
    /// Jobs that failed.
    pub failed: usize,
    /// Jobs that were skipped.
    pub skipped: usize,
    /// Those that had succeeded or failed before this queue, and did not run in it. They are counted above, too.
    pub ended_before: usize,
}

/// The states of all jobs.
#[derive(Clone, Debug)]
pub struct Queue {
    jobs: Vec<Need>,
    rules: Rules,
    states: Vec<State>,
    attempts: Vec<u32>,
    /// The number of jobs before each that have not succeeded.
    blockers: Vec<usize>,
    /// The jobs that may begin, by place.
    ready: BTreeSet<usize>,
    counts: Counts,
    memory_used_bytes: u64,
    is_stopped: bool,
    /// No further job is added.
    is_closed: bool,
}

/// What the queue must know of a job.
#[derive(Clone, Debug)]
struct Need {
    /// The jobs that wait for it.
    dependents: Vec<usize>,
    retries: u32,
    memory_bytes: u64,
}

impl Queue {
    /// Makes a queue of a whole list, in which every job waits.
    pub fn new(jobs: &[Job], rules: Rules) -> Queue {
        let mut queue = Queue::open(rules);
        queue.add(jobs);
        queue.close();
        queue
    }

    /// Makes a queue without jobs, to which [`Queue::add`] adds them until [`Queue::close`].
    ///
    /// ```
    /// use gristmill_queue::{Job, Queue, Rules};
    ///
    /// let mut queue = Queue::open(Rules { slots: 2, memory_bytes: 0, keep_going: false });
    /// queue.add(&[Job::shell("make")]);
    /// assert_eq!((queue.begin(), queue.begin(), queue.is_over()), (Some(0), None, false));
    /// ```
    pub fn open(rules: Rules) -> Queue {
        Queue {
            rules: Rules { slots: rules.slots.max(1), ..rules },
            states: Vec::new(),
            attempts: Vec::new(),
            ready: BTreeSet::new(),
            counts: Counts::default(),
            memory_used_bytes: 0,
            is_stopped: false,
            is_closed: false,
            blockers: Vec::new(),
            jobs: Vec::new(),
        }
    }

    /// Adds jobs, which wait. Their dependencies count from the first job of the queue.
    pub fn add(&mut self, jobs: &[Job]) {
        let first = self.jobs.len();
        for (at, job) in (first..).zip(jobs) {
            if job.after.is_empty() {
                self.ready.insert(at);
            }
            self.blockers.push(job.after.len());
            let (retries, memory_bytes) = (job.retries.unwrap_or(0), job.memory_bytes);
            self.jobs.push(Need { dependents: Vec::new(), retries, memory_bytes });
        }
        for (at, job) in (first..).zip(jobs) {
            job.after.iter().for_each(|before| self.jobs[*before].dependents.push(at));
        }
        self.states.resize(self.jobs.len(), State::Waiting);
        self.attempts.resize(self.jobs.len(), 0);
        self.counts.waiting += jobs.len();
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
    pub fn restore(&mut self, job: usize, outcome: Outcome) {
        if self.states[job] == State::Waiting {
            let was_stopped = self.is_stopped;
            self.finish(job, outcome);
            self.counts.ended_before += 1;
            // An earlier failure does not keep this queue from going on.
            self.is_stopped = was_stopped;
        }
    }

    /// Returns the job that begins now, if any may; it then runs.
    ///
    /// Jobs begin in the order of the list. If the memory of the next one is not free, those behind it wait too, so that
    /// it does begin some time. A job that needs more than there is begins when no other runs.
    pub fn begin(&mut self) -> Option<usize> {
        if self.is_stopped || self.counts.running >= self.rules.slots {
            return None;
        }
        let job = *self.ready.first()?;
        let memory = self.memory_used_bytes.saturating_add(self.jobs[job].memory_bytes);
        if memory > self.rules.memory_bytes && self.counts.running > 0 {
            return None;
        }
        self.ready.remove(&job);
        self.memory_used_bytes = memory;
        self.states[job] = State::Running;
        self.attempts[job] += 1;
        self.counts.waiting -= 1;
        self.counts.running += 1;
        Some(job)
    }

    /// Records how a running job ended. Returns true if it will be tried again.
    pub fn end(&mut self, job: usize, outcome: Outcome) -> bool {
        assert_eq!(self.states[job], State::Running, "only a job that runs can end");
        self.release(job);
        if !outcome.is_success() && outcome.is_end() && self.attempts[job] <= self.jobs[job].retries {
            self.ready.insert(job);
            return true;
        }
        self.finish(job, outcome);
        false
    }

    /// Records that a running job was ended on request, so that it has no outcome.
    pub fn interrupt(&mut self, job: usize) {
        assert_eq!(self.states[job], State::Running, "only a job that runs can be interrupted");
        self.release(job);
        self.ready.insert(job);
        self.is_stopped = true;
    }

    /// Begins no further job.
    pub fn stop(&mut self) {
        self.is_stopped = true;
    }

    /// Returns true if no job runs and none will begin.
    pub fn is_over(&self) -> bool {
        self.counts.running == 0 && (self.is_stopped || self.is_closed && self.ready.is_empty())
    }

    /// Returns true if no further job begins.
    pub fn is_stopped(&self) -> bool {
        self.is_stopped
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

    /// Ends a waiting job for good.
    fn finish(&mut self, job: usize, outcome: Outcome) {
        self.ready.remove(&job);
        self.counts.waiting -= 1;
        let success = outcome.is_success();
        self.states[job] = State::Ended(outcome);
        if success {
            self.counts.succeeded += 1;
            for at in self.jobs[job].dependents.clone() {
                self.blockers[at] -= 1;
                if self.blockers[at] == 0 && self.states[at] == State::Waiting {
                    self.ready.insert(at);
                }
            }
        } else {
            self.counts.failed += 1;
            self.skip_dependents(job);
            self.is_stopped |= !self.rules.keep_going;
        }
    }

    fn skip_dependents(&mut self, failed: usize) {
        let mut open = vec![failed];
        while let Some(job) = open.pop() {
            for at in self.jobs[job].dependents.clone() {
                if self.states[at] == State::Waiting {
                    self.states[at] = State::Skipped(failed);
                    self.ready.remove(&at);
                    self.counts.waiting -= 1;
                    self.counts.skipped += 1;
                    open.push(at);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const RULES: Rules = Rules { slots: 2, memory_bytes: 100, keep_going: true };

    /// Makes jobs from what each waits for, its retries and its memory.
    fn jobs(needs: &[(&[usize], u32, u64)]) -> Vec<Job> {
        let job = |(after, retries, memory): &(&[usize], u32, u64)| Job {
            after: after.to_vec(),
            retries: Some(*retries),
            memory_bytes: *memory,
            ..Job::shell("true")
        };
        needs.iter().map(job).collect()
    }

    /// A job that waits for nothing.
    const PLAIN: (&[usize], u32, u64) = (&[], 0, 0);
    const GOOD: Outcome = Outcome::Exited(0);
    const BAD: Outcome = Outcome::Exited(1);

    #[test]
    fn as_many_jobs_run_as_there_are_slots_in_the_order_of_the_list() {
        let mut queue = Queue::new(&jobs(&[PLAIN; 4]), RULES);
        assert_eq!([queue.begin(), queue.begin(), queue.begin()], [Some(0), Some(1), None]);
        assert!(!queue.end(1, GOOD));
        assert_eq!([queue.begin(), queue.begin()], [Some(2), None]);
    }

    #[test]
    fn a_job_begins_when_all_before_it_have_succeeded() {
        let mut queue = Queue::new(&jobs(&[(&[1, 2], 0, 0), (&[], 0, 0), (&[], 0, 0)]), RULES);
        assert_eq!([queue.begin(), queue.begin()], [Some(1), Some(2)]);
        queue.end(1, GOOD);
        assert_eq!(queue.begin(), None);
        queue.end(2, GOOD);
        assert_eq!(queue.begin(), Some(0));
    }

    #[test]
    fn jobs_behind_a_failed_one_are_skipped_and_others_run() {
        let mut queue = Queue::new(&jobs(&[(&[], 0, 0), (&[0], 0, 0), (&[1], 0, 0), (&[], 0, 0)]), RULES);
        assert_eq!([queue.begin(), queue.begin()], [Some(0), Some(3)]);
        queue.end(0, BAD);
        queue.end(3, GOOD);
        assert_eq!(queue.states()[1..3], [State::Skipped(0), State::Skipped(0)]);
        assert!(queue.is_over());
        assert_eq!(queue.counts(), Counts { succeeded: 1, failed: 1, skipped: 2, ..Counts::default() });
    }

    #[test]
    fn without_keep_going_nothing_begins_after_a_failure() {
        let mut queue = Queue::new(&jobs(&[PLAIN; 3]), Rules { keep_going: false, ..RULES });
        assert_eq!([queue.begin(), queue.begin()], [Some(0), Some(1)]);
        queue.end(0, BAD);
        assert_eq!((queue.begin(), queue.is_over()), (None, false));
        queue.end(1, GOOD);
        assert!(queue.is_over());
        assert_eq!(queue.counts().waiting, 1);
    }

    #[test]
    fn a_failed_job_is_tried_as_often_as_it_may() {
        let mut queue = Queue::new(&jobs(&[(&[], 2, 0)]), RULES);
        for again in [true, true, false] {
            assert_eq!(queue.begin(), Some(0));
            assert_eq!(queue.end(0, BAD), again);
        }
        assert_eq!((queue.attempts(0), queue.is_over()), (3, true));
    }

    #[test]
    fn a_failure_with_an_attempt_left_is_not_final_although_the_queue_was_stopped() {
        let mut queue = Queue::new(&jobs(&[(&[], 1, 0)]), RULES);
        queue.begin();
        queue.stop();
        assert!(queue.end(0, BAD));
        assert_eq!((queue.is_over(), queue.counts().waiting), (true, 1));
    }

    #[test]
    fn jobs_wait_for_memory_and_one_that_needs_too_much_runs_alone() {
        let mut queue = Queue::new(&jobs(&[(&[], 0, 60), (&[], 0, 60), (&[], 0, 1), (&[], 0, 900)]), RULES);
        assert_eq!([queue.begin(), queue.begin()], [Some(0), None]);
        queue.end(0, GOOD);
        assert_eq!([queue.begin(), queue.begin()], [Some(1), Some(2)]);
        queue.end(2, GOOD);
        assert_eq!(queue.begin(), None);
        queue.end(1, GOOD);
        assert_eq!([queue.begin(), queue.begin()], [Some(3), None]);
    }

    #[test]
    fn an_interrupted_job_has_no_outcome_and_nothing_begins_after_it() {
        let mut queue = Queue::new(&jobs(&[PLAIN; 2]), RULES);
        queue.begin();
        queue.interrupt(0);
        assert_eq!((queue.begin(), queue.is_over(), queue.states()[0].clone()), (None, true, State::Waiting));
    }

    /// A list was read to its end before its first job began, so `tail -f list | gristmill batch` never began.
    #[test]
    fn jobs_begin_as_they_are_added_and_the_queue_is_over_when_it_is_closed() {
        let mut queue = Queue::open(Rules { slots: 1, ..RULES });
        assert_eq!((queue.begin(), queue.is_over()), (None, false));
        let two = jobs(&[PLAIN; 2]);
        queue.add(&two[..1]);
        assert_eq!(queue.begin(), Some(0));
        queue.add(&two[1..]);
        assert!(!queue.end(0, GOOD));
        assert_eq!(queue.begin(), Some(1));
        queue.close();
        assert!(!queue.is_over());
        queue.end(1, BAD);
        assert_eq!((queue.is_over(), queue.counts().failed), (true, 1));
    }

    proptest! {
        /// Jobs with random dependencies on earlier ones, each with a random outcome of each attempt.
        #[test]
        fn every_job_ends_once_and_only_after_those_before_it(
            needs in prop::collection::vec((prop::collection::vec(any::<prop::sample::Index>(), 0..3), 0..3_u32, 0..80_u64), 1..40),
            outcomes in prop::collection::vec(any::<bool>(), 1..64),
            slots in 1..5_usize,
        ) {
            let jobs: Vec<Job> = needs.iter().enumerate().map(|(at, (after, retries, memory))| {
                let after = if at == 0 { vec![] } else { after.iter().map(|index| index.index(at)).collect() };
                Job { after, retries: Some(*retries), memory_bytes: *memory, ..Job::shell("true") }
            }).collect();
            let mut queue = Queue::new(&jobs, Rules { slots, ..RULES });
            let (mut running, mut drawn) = (Vec::new(), 0);
            while !queue.is_over() {
                while let Some(job) = queue.begin() {
                    for before in &jobs[job].after {
                        prop_assert_eq!(&queue.states()[*before], &State::Ended(GOOD));
                    }
                    running.push(job);
                }
                prop_assert!(running.len() <= slots);
                let memory: u64 = running.iter().map(|job| jobs[*job].memory_bytes).sum();
                prop_assert!(memory <= RULES.memory_bytes || running.len() == 1);
                // A queue that is not over always has a job that runs: nothing is forgotten.
                prop_assert!(!running.is_empty());
                let job = running.remove(drawn % running.len());
                let outcome = if outcomes[drawn % outcomes.len()] { GOOD } else { BAD };
                drawn += 1;
                queue.end(job, outcome);
            }
            for (at, state) in queue.states().iter().enumerate() {
                match state {
                    State::Ended(_) => prop_assert!(queue.attempts(at) >= 1 && queue.attempts(at) <= jobs[at].retries.unwrap_or(0) + 1),
                    State::Skipped(_) => prop_assert_eq!(queue.attempts(at), 0),
                    other => prop_assert!(false, "{:?}", other),
                }
            }
        }
    }
}
