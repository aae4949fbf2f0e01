//! Sources of knowledge about running programs: counts of instructions and memory requests, or readings of memory.

use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use gristmill_os::perf::{Counter, Event, Space};
use gristmill_schedule::{Counts, ProgramId, Reading};
use rustix::process::Pid;

/// A source of counts. A recorded one stands in for the processor's in tests.
pub trait Source {
    /// Counts a program from now on.
    fn begin(&mut self, id: ProgramId, pid: Pid);

    /// Returns the counts since the program began; `None` if it is not counted.
    fn counts(&self, id: ProgramId) -> Option<Counts>;

    /// Counts it no longer.
    fn end(&mut self, id: ProgramId);

    /// Returns the moments of the next quantum at which memory is read, in order. A source that counts needs no readings.
    fn moments(&mut self, _quantum: Duration) -> Vec<Duration> {
        Vec::new()
    }

    /// Reads memory beside the programs that run now.
    fn read(&mut self) -> Option<Reading> {
        None
    }
}

/// The processor's counters: instructions, and misses of the last cache, each of which is a request.
#[derive(Default)]
pub struct Counters(BTreeMap<ProgramId, [Counter; 2]>);

impl Counters {
    /// Returns the counters, or the reason why there are none.
    pub fn here() -> io::Result<Counters> {
        [Event::Instructions, Event::CacheMisses]
            .map(|event| Counter::start(event, Space::User).map(drop))
            .into_iter()
            .collect::<io::Result<()>>()?;
        Ok(Counters::default())
    }
}

impl Source for Counters {
    fn begin(&mut self, id: ProgramId, pid: Pid) {
        let counter = |event| Counter::of(pid, event, Space::User);
        // A program that ends at once is not counted.
        if let (Ok(instructions), Ok(requests)) = (counter(Event::Instructions), counter(Event::CacheMisses)) {
            self.0.insert(id, [instructions, requests]);
        }
    }

    fn counts(&self, id: ProgramId) -> Option<Counts> {
        let [instructions, requests] = self.0.get(&id)?;
        Some(Counts { instructions: instructions.count().ok()? as f64, requests: requests.count().ok()? as f64 })
    }

    fn end(&mut self, id: ProgramId) {
        self.0.remove(&id);
    }
}
