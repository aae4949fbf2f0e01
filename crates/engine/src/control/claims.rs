//! The claims of tasks. A worker claims a task by one compare-and-swap on its word.

use std::sync::atomic::Ordering;

use crate::control::words::{COORDINATOR, Common, JobWord, Shared};
use crate::error::{Result, overwritten};

/// A claim of a task: the worker, its epoch, and the round of the job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Claim {
    pub round: u32,
    /// `None` while the task is unclaimed.
    pub taken: Option<(usize, u64)>,
}

const NOBODY: u64 = 0xfff;

/// The most rounds of a job, all steps together, because a claim has room for that many.
pub(crate) const ROUNDS_MAX: u32 = 1 << 20;

impl Claim {
    fn free(round: u32) -> u64 {
        u64::from(round) << 44 | NOBODY << 32
    }

    fn taken(round: u32, slot: usize, epoch: u64) -> u64 {
        assert!(epoch < 1 << 32 && (slot as u64) < NOBODY, "epochs and slots fit a claim");
        u64::from(round) << 44 | (slot as u64) << 32 | epoch
    }

    fn decode(word: u64) -> Claim {
        let slot = word >> 32 & 0xfff;
        let taken = (slot != NOBODY).then_some((slot as usize, word & 0xffff_ffff));
        Claim { round: (word >> 44) as u32, taken }
    }
}

/// The counter of drawn tasks, with the round in its upper and the task in its lower half.
fn next_word(round: u32, task: usize) -> u64 {
    u64::from(round) << 32 | task as u64
}

impl Shared<'_> {
    /// Opens a round of `tasks` tasks, all of them free.
    pub fn open_round(&self, round: u32, tasks: usize) {
        assert!(round < ROUNDS_MAX && tasks <= self.task_words.len(), "the words have room for {tasks} tasks");
        self.job(JobWord::Tasks).store(tasks as u64, Ordering::Release);
        for task in 0..tasks {
            self.task_word(task).store(Claim::free(round), Ordering::Relaxed);
        }
        self.job(JobWord::PutBack).store(0, Ordering::Relaxed);
        // PAIRS WITH the load in `claim_new`: a worker that draws from this round finds its tasks free.
        self.common(Common::NextTask).store(next_word(round, 0), Ordering::Release);
        // PAIRS WITH the load in `round`.
        self.job(JobWord::Round).store(u64::from(round), Ordering::Release);
    }

    /// Claims the next task of `round` that was never drawn.
    ///
    /// The counter includes its round, so a worker that has not noticed the new round draws nothing. Otherwise it would
    /// draw numbers that it cannot claim, and nobody would draw them again.
    pub fn claim_new(&self, round: u32, slot: usize, epoch: u64, drawn: impl Fn()) -> Option<usize> {
        loop {
            let next = self.common(Common::NextTask).load(Ordering::Acquire);
            let task = self.drawable(next, round)?;
            let draw =
                self.common(Common::NextTask).compare_exchange(next, next + 1, Ordering::Relaxed, Ordering::Relaxed);
            if draw.is_ok() {
                drawn();
                if self.claim(task, round, slot, epoch) {
                    return Some(task);
                }
            }
        }
    }

    /// Claims a task of `round` that a dead worker had drawn.
    pub fn claim_put_back(&self, round: u32, slot: usize, epoch: u64) -> Option<usize> {
        if self.job(JobWord::PutBack).load(Ordering::Acquire) == 0 {
            return None;
        }
        (0..self.tasks()).find(|task| self.claim(*task, round, slot, epoch))
    }

    fn claim(&self, task: usize, round: u32, slot: usize, epoch: u64) -> bool {
        let (free, taken) = (Claim::free(round), Claim::taken(round, slot, epoch));
        self.task_word(task).compare_exchange(free, taken, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// Returns the task that the counter value `next` offers to a worker in `round`.
    fn drawable(&self, next: u64, round: u32) -> Option<usize> {
        let task = (next & 0xffff_ffff) as usize;
        (next >= next_word(round, 0) && next < next_word(round, self.tasks())).then_some(task)
    }

    /// Returns whether [`Shared::claim_new`] would find a task.
    pub fn has_new_task(&self, round: u32) -> bool {
        self.drawable(self.common(Common::NextTask).load(Ordering::Relaxed), round).is_some()
    }

    /// Returns whether [`Shared::claim_put_back`] may find a task. Tasks that were never drawn count too.
    pub fn has_returned_task(&self, round: u32) -> bool {
        self.job(JobWord::PutBack).load(Ordering::Acquire) != 0
            && (0..self.tasks()).any(|task| self.claim_of(task) == Claim { round, taken: None })
    }

    /// Returns whether one of the two claims may find a task.
    pub fn has_free_task(&self, round: u32) -> bool {
        self.has_new_task(round) || self.has_returned_task(round)
    }

    pub fn claim_of(&self, task: usize) -> Claim {
        Claim::decode(self.task_word(task).load(Ordering::Acquire))
    }

    /// Returns whether the claim of a task of `round` belongs to a committed epoch.
    ///
    /// # Errors
    /// No worker claims a task like that.
    pub fn is_done(&self, task: usize, round: u32) -> Result<bool> {
        let claim = self.claim_of(task);
        let wrong = |what: &str| Err(overwritten(None, &format!("the claim of task {task} {what}")));
        let Some((slot, epoch)) = claim.taken.filter(|_| claim.round == round) else {
            return if claim.round == round { Ok(false) } else { wrong("names another round") };
        };
        if slot == COORDINATOR || slot >= self.slots_born() || epoch == 0 {
            return wrong("names no worker");
        }
        // Read after the claim: a worker claims tasks for the epoch after the one that it committed last.
        let committed = self.commit(slot).committed();
        if epoch - 1 > committed { wrong("names an epoch that has not begun") } else { Ok(epoch <= committed) }
    }

    /// Checks the counters that all workers change, in a round of a job in which at most this many map at once.
    ///
    /// # Errors
    /// One has a value that no worker gives it.
    pub fn check_counters(&self, round: u32, map_at_once: usize) -> Result<()> {
        let next = self.common(Common::NextTask).load(Ordering::Acquire);
        if !(next_word(round, 0)..=next_word(round, self.tasks())).contains(&next) {
            return Err(overwritten(None, "the number of the next task is that of no task"));
        }
        // Each death may give one permit back twice.
        let permits = self.common(Common::Permits).load(Ordering::Acquire).cast_signed();
        let most = (map_at_once + self.slots) as i64;
        if !(-most..=most).contains(&permits) {
            return Err(overwritten(None, "the number of workers that may still map is impossible"));
        }
        Ok(())
    }

    /// Frees every task that the dead worker of `slot` had claimed but not committed.
    pub fn put_back(&self, slot: usize) {
        for task in self.open_tasks(slot) {
            self.task_word(task).store(Claim::free(self.claim_of(task).round), Ordering::Release);
        }
        // Do this even if it had claimed nothing: it may have drawn a task and died before the claim.
        self.job(JobWord::PutBack).store(1, Ordering::Release);
    }

    /// Returns the tasks in the open epoch of the dead worker of `slot`.
    pub fn open_tasks(&self, slot: usize) -> impl Iterator<Item = usize> {
        let committed = self.commit(slot).committed();
        let is_open =
            move |claim: Claim| matches!(claim.taken, Some((taker, epoch)) if taker == slot && epoch > committed);
        (0..self.tasks()).filter(move |task| is_open(self.claim_of(*task)))
    }
}
