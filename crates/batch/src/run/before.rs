//! The jobs that had ended before this queue.

use crate::list::List;
use crate::queue::{Past, Queue, Rules};

/// The jobs that had ended before this queue.
#[derive(Default)]
pub struct Before {
    pub past: Past,
    /// Jobs that failed run again.
    pub retries_failed: bool,
}

impl Before {
    /// Adds jobs to a queue, in which those have ended that ended before.
    pub fn add(&self, list: &List, from: usize, queue: &mut Queue) {
        queue.add(&list.jobs()[from..]);
        for job in from..list.jobs().len() {
            match self.past.ended.get(list.key(job)) {
                Some(outcome) if outcome.is_success() || !self.retries_failed => queue.restore(job, outcome.clone()),
                _ => {}
            }
        }
        if list.file().is_none() {
            queue.close();
        }
    }

    /// Makes the queue of a list.
    pub fn queue(&self, list: &List, rules: Rules) -> Queue {
        let mut queue = Queue::open(rules);
        self.add(list, 0, &mut queue);
        queue
    }
}
