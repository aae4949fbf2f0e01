//! Notices that a job stands still: every worker sleeps, and nothing that any of them could wait for will happen.
//!
//! The protocol has no such state. But a stray pointer may overwrite the word that a worker waits for: the number of
//! the next task, a permit, a mailbox, a doorbell.
//!
//! ```text
//!  look, once per tick:  all living workers sleep on their doorbells, and nothing was announced since the last look?
//!                        no:  forget the earlier looks
//!                        yes: wake them all, whatever their doorbells say. A worker that sleeps again has looked, and found nothing
//!  many such looks in a row, over some seconds:  the job stands still, for good
//!  nothing was announced for some seconds:       wake them all, too: the doorbell of one that sleeps may say that it is awake
//! ```
//!
//! A worker that maps, sorts, reads or calls a function of the program does not sleep on its doorbell, and one that is
//! stopped does not go back to sleep, so neither counts.

use crate::coordinator::clock::Stillness;
use crate::coordinator::state::Coordinator;
use crate::coordinator::worker_handle::{Body, WorkerHandle};
use crate::error::{Result, overwritten};
use crate::worker::setup::Setup;

impl Coordinator<'_, '_, '_, '_> {
    /// Looks whether the job stands still, if a tick has passed since the last look.
    ///
    /// # Errors
    /// It does.
    pub(super) fn notice_standstill(&mut self, now_ns: u64) -> Result<()> {
        if !self.standstill.is_due(now_ns) {
            return Ok(());
        }
        let Setup { shared, .. } = *self.setup;
        let lives = |hand: &&WorkerHandle<'_>| matches!(hand.body, Body::Process(_) | Body::Thread(Some(_)));
        let mut living = self.hands.iter().filter(lives);
        let all_sleep = living.all(|hand| shared.pages.doorbell(hand.role.slot).is_asleep());
        let events = shared.announced().wrapping_add(self.kept.deaths.len() as u64);
        match self.standstill.look(now_ns, all_sleep, events) {
            Stillness::None => Ok(()),
            Stillness::Wake => {
                shared.ring_all_after_death();
                Ok(())
            }
            Stillness::End => {
                let tasks = self.attempts.len();
                let what = match self.done {
                    done if done < tasks => format!("every worker sleeps, and task {done} of {tasks} is not done"),
                    _ => "every worker sleeps, all tasks are done, and the result is not there".to_owned(),
                };
                Err(overwritten(None, &what))
            }
        }
    }
}
