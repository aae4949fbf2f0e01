//! The coordinator's handle of a worker: its process or thread, its role, and how it ended.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use gristmill_os::ended::{Ended, WorkerThread};
use gristmill_os::process::Child;

use crate::coordinator::clock::{Overdue, Rest};
use crate::error::{Asked, Result};
use crate::worker::setup::Role;

/// How a worker ended.
pub(super) struct End {
    pub cause: String,
    /// By a signal that neither it nor this process sent, and not for lack of memory. Perhaps no part of the job is to
    /// blame.
    pub from_outside: bool,
    /// For lack of memory, which is not the fault of a record.
    pub for_memory: bool,
    /// Shows that it has ended.
    pub proof: Ended,
}

/// A worker, as the coordinator sees it.
pub(super) struct WorkerHandle<'scope> {
    pub role: Role,
    pub body: Body<'scope>,
    /// Its index among the reducers, which its replacement keeps.
    pub reducer: Option<usize>,
    pub rest: Rest,
    /// Why it was ended, if it took too long.
    pub overdue: Option<Overdue>,
}

pub(super) enum Body<'scope> {
    Process(Child),
    Thread(Option<(WorkerThread<'scope>, Arc<AtomicBool>)>),
    /// It is started when it is sent its first page.
    NotStarted,
    Gone,
}

impl WorkerHandle<'_> {
    /// Returns how the worker ended, if it has. Before the job is over every end is a death.
    pub fn ended(&mut self) -> Result<Option<End>> {
        match &mut self.body {
            Body::Process(child) => {
                let death = child.try_wait().asked("waiting for a worker")?;
                let proved = death.zip(child.ended());
                Ok(proved.map(|(death, proof)| End {
                    cause: death.to_string(),
                    from_outside: death.is_from_outside(),
                    for_memory: death.is_for_memory(),
                    proof,
                }))
            }
            Body::Thread(thread) if thread.as_ref().is_some_and(|(_, ended)| ended.load(Ordering::Acquire)) => {
                let proof = thread.take().map(|(thread, _)| thread.join());
                let cause = "its thread ended".to_owned();
                Ok(proof.map(|proof| End { cause, from_outside: false, for_memory: false, proof }))
            }
            Body::Thread(_) | Body::NotStarted | Body::Gone => Ok(None),
        }
    }
}
