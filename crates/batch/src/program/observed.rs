//! The counts and samples of a program.

use std::io;
use std::rc::Rc;

use gristmill_counters::traffic::{Monitored, Traffic};
use gristmill_os::perf::{Counter, Event, Space};
use gristmill_os::samples::{Followed, Sampler};
use rustix::process::Pid;

use super::heartbeat::Heartbeat;

/// The observations of each program from its start on: none, unless somebody chooses programs by it.
#[derive(Default)]
pub struct Observed {
    /// Events that are counted.
    pub events: &'static [Event],
    /// Counts the memory traffic.
    pub traffic: Option<Rc<Traffic>>,
    /// Samples the instructions.
    pub sampler: Option<Rc<Sampler>>,
    /// Somebody listens to what programs tell of their stages.
    pub stages: bool,
}

impl Observed {
    pub fn is_any(&self) -> bool {
        !self.events.is_empty() || self.traffic.is_some() || self.sampler.is_some()
    }

    /// Begins to observe a process, and all that it starts. What cannot be observed is left out.
    pub fn attach(&self, pid: Pid) -> Observers {
        let counter = |event: &Event| Counter::of(pid, *event, Space::User);
        Observers {
            counters: self.events.iter().map(counter).collect::<io::Result<_>>().unwrap_or_default(),
            traffic: self.traffic.as_ref().and_then(|traffic| traffic.of(pid).ok()),
            followed: self.sampler.as_ref().and_then(|sampler| sampler.follow(pid).ok()),
            heartbeat: None,
        }
    }
}

/// The observers of a program.
#[derive(Debug, Default)]
pub struct Observers {
    /// A counter for each event; empty if they are not counted, or may not be.
    pub counters: Vec<Counter>,
    pub traffic: Option<Monitored>,
    /// Its sampled instructions.
    pub followed: Option<Followed>,
    /// Gives the stages that it tells.
    pub heartbeat: Option<Heartbeat>,
}
