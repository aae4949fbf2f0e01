//! Looks at a run, again and again: what each of its threads does at that moment.

use std::time::{Duration, Instant};

use gristmill_counters::threads::{Glance, Sleep, Watcher};
use gristmill_diagnose::{Moment, Seen, Wait};

/// Looks at a run.
pub struct Look {
    watcher: Watcher,
    seen: Seen,
    workers: u64,
    last: Instant,
}

const PERIOD: Duration = Duration::from_millis(5);
/// The time between two looks, in times of what one takes.
const REST: u32 = 9;

impl Look {
    pub fn new(workers: u64) -> Look {
        Look { watcher: Watcher::new(std::process::id()), seen: Seen::default(), workers, last: Instant::now() }
    }

    /// What was seen, in the end.
    pub fn seen(mut self) -> Seen {
        (self.seen.on_processor, self.seen.waited) = self.watcher.times();
        self.seen
    }

    /// The command has begun.
    pub fn begin(&mut self) {
        self.last = Instant::now();
    }

    /// Looks once, and says when to look again.
    pub fn once(&mut self) -> Duration {
        let began = Instant::now();
        let glance = self.watcher.look();
        self.seen.add(&moment(&glance), (began - self.last).as_secs_f64(), self.workers);
        self.last = began;
        PERIOD.max(began.elapsed() * REST)
    }
}

fn moment(glance: &Glance) -> Moment {
    let wait = |sleep: &Sleep| match sleep {
        // It is no worker while it waits for those that it has started.
        Sleep::Child => None,
        Sleep::Futex => Some(Wait::Lock),
        Sleep::AddressSpace => Some(Wait::AddressSpace),
        Sleep::Pipe => Some(Wait::Pipe),
        Sleep::Disk => Some(Wait::Disk),
        Sleep::Clock => Some(Wait::Clock),
        Sleep::Events => Some(Wait::Events),
        Sleep::Other => Some(Wait::Other),
    };
    Moment { runnable: glance.runnable, asleep: glance.asleep.iter().filter_map(wait).collect() }
}
