//! Sources of knowledge about running programs: counts of instructions and memory requests, or readings of memory.

use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use gristmill_os::perf::{Counter, Event, Space};
use gristmill_schedule::{Counts, ProgramId, Reading};

/// A source of counts. A recorded one stands in for the processor's in tests.
pub trait Source {
    /// The events that are counted of each program.
    const EVENTS: &'static [Event];

    /// Takes over the counters of a program that has begun, one for each event; none if it could not be counted.
    fn begin(&mut self, id: ProgramId, counters: Vec<Counter>);

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
        Counters::EVENTS.iter().try_for_each(|event| Counter::start(*event, Space::User).map(drop))?;
        Ok(Counters::default())
    }
}

impl Source for Counters {
    const EVENTS: &'static [Event] = &[Event::Instructions, Event::CacheMisses];

    fn begin(&mut self, id: ProgramId, counters: Vec<Counter>) {
        // A program that ends at once is not counted.
        if let Ok(counters) = counters.try_into() {
            self.0.insert(id, counters);
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
