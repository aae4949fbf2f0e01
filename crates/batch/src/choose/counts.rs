//! Sources of knowledge about running programs: counts of instructions and memory requests, or readings of memory.

use std::collections::BTreeMap;
use std::io;
use std::rc::Rc;
use std::time::Duration;

use gristmill_counters::traffic::{Monitored, Traffic};
use gristmill_os::perf::{Counter, Event, Space};
use gristmill_schedule::{Counts, ProgramId, Reading};

/// A source of counts. A recorded one stands in for the processor's in tests.
pub trait CountSource {
    /// The events that are counted of each program.
    fn events(&self) -> &'static [Event];

    /// The control group in which the traffic of each program is counted, if it is.
    fn traffic(&self) -> Option<Rc<Traffic>> {
        None
    }

    /// Takes over the counters of a program that has begun, one for each event, and its traffic. Either may be missing
    /// if it could not be counted.
    fn begin(&mut self, id: ProgramId, counters: Vec<Counter>, traffic: Option<Monitored>);

    /// Returns the counts since the program began; `None` if it is not counted.
    fn counts(&self, id: ProgramId) -> Option<Counts>;

    /// Returns the microseconds of processor time since the program began; `None` if they are not counted.
    fn processor_us(&self, _: ProgramId) -> Option<u64> {
        None
    }

    /// Returns the requests of all programs, foreign ones too, since some moment; `None` if they are not counted.
    fn all_requests(&self) -> Option<f64> {
        None
    }

    /// Counts it no longer.
    fn end(&mut self, id: ProgramId);

    /// Returns the moments of the next quantum at which memory is read, in order. A source that counts needs no
    /// readings.
    fn moments(&mut self, _quantum: Duration) -> Vec<Duration> {
        Vec::new()
    }

    /// Reads memory beside the programs that run now.
    fn read(&mut self) -> Option<Reading> {
        None
    }
}

/// The bytes of a request: a line of the cache.
pub const REQUEST_BYTES: f64 = 64.0;

/// The processor's counters: instructions, and requests. Where `resctrl` counts the memory traffic of programs,
/// requests are the cache lines that were moved. Elsewhere they are misses of the last-level cache, which do not count
/// prefetches and write-backs.
pub struct Counters {
    traffic: Option<Rc<Traffic>>,
    programs: BTreeMap<ProgramId, (Counter, Requests)>,
}

/// The counters of the requests of a program.
enum Requests {
    Traffic(Monitored),
    Misses(Counter),
}

impl Requests {
    fn count(&self) -> io::Result<f64> {
        match self {
            Requests::Traffic(traffic) => Ok(traffic.bytes()? as f64 / REQUEST_BYTES),
            Requests::Misses(misses) => Ok(misses.count()? as f64),
        }
    }
}

impl Counters {
    /// Returns the counters, or the reason why there are none.
    pub fn here() -> io::Result<Counters> {
        let counters = Counters { traffic: Traffic::here().ok().map(Rc::new), programs: BTreeMap::new() };
        counters.events().iter().try_for_each(|event| Counter::start(*event, Space::User).map(drop))?;
        Ok(counters)
    }

    /// Names what is counted as a request, in a few words.
    pub fn of_what(&self) -> &'static str {
        if self.traffic.is_some() { "memory traffic (resctrl)" } else { "cache misses" }
    }
}

impl CountSource for Counters {
    fn events(&self) -> &'static [Event] {
        match self.traffic {
            Some(_) => &[Event::Instructions],
            None => &[Event::Instructions, Event::CacheMisses],
        }
    }

    fn traffic(&self) -> Option<Rc<Traffic>> {
        self.traffic.clone()
    }

    fn begin(&mut self, id: ProgramId, counters: Vec<Counter>, traffic: Option<Monitored>) {
        let mut counters = counters.into_iter();
        let (instructions, misses) = (counters.next(), counters.next());
        // A program that ends at once is not counted.
        if let (Some(instructions), Some(requests)) =
            (instructions, traffic.map(Requests::Traffic).or(misses.map(Requests::Misses)))
        {
            self.programs.insert(id, (instructions, requests));
        }
    }

    fn counts(&self, id: ProgramId) -> Option<Counts> {
        let (instructions, requests) = self.programs.get(&id)?;
        Some(Counts { instructions: instructions.count().ok()? as f64, requests: requests.count().ok()? })
    }

    fn all_requests(&self) -> Option<f64> {
        Some(self.traffic.as_ref()?.bytes().ok()? as f64 / REQUEST_BYTES)
    }

    fn end(&mut self, id: ProgramId) {
        self.programs.remove(&id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::process::getpid;
    use std::fs;
    use std::path::Path;

    /// Sets the count of a group, as a processor of one part would.
    fn count(group: &Path, bytes: u64) {
        let part = group.join("mon_data/mon_L3_00");
        fs::create_dir_all(&part).expect("a folder");
        fs::write(part.join("mbm_total_bytes"), format!("{bytes}\n")).expect("written");
    }

    /// A clock stands in for the counter of instructions, which many machines lack.
    fn clock() -> Counter {
        Counter::start(Event::TaskClock, Space::User).expect("a clock")
    }

    #[test]
    fn requests_are_cache_lines_of_traffic_where_that_is_counted() {
        let mount = tempfile::tempdir().expect("a folder");
        count(mount.path(), 6400);
        fs::create_dir(mount.path().join("mon_groups")).expect("a folder");
        let traffic = Rc::new(Traffic::under(mount.path(), "").expect("recorded"));
        let mut counters = Counters { traffic: Some(traffic.clone()), programs: BTreeMap::new() };
        assert_eq!(counters.events(), [Event::Instructions]);
        counters.begin(ProgramId(1), vec![clock()], traffic.of(getpid()).ok());
        let groups: Vec<_> = fs::read_dir(mount.path().join("mon_groups")).expect("there").collect();
        let [Ok(group)] = &groups[..] else { panic!("one group: {groups:?}") };
        count(&group.path(), 640);
        assert_eq!(counters.counts(ProgramId(1)).map(|counts| counts.requests), Some(10.0));
        assert_eq!(counters.all_requests(), Some(100.0));
        // The processor had no group left for this one.
        counters.begin(ProgramId(2), vec![clock()], None);
        assert_eq!(counters.counts(ProgramId(2)), None);
        counters.end(ProgramId(1));
        assert_eq!(counters.counts(ProgramId(1)), None);
    }

    #[test]
    fn requests_are_cache_misses_elsewhere() {
        let mut counters = Counters { traffic: None, programs: BTreeMap::new() };
        assert_eq!(counters.events().len(), 2);
        counters.begin(ProgramId(1), vec![clock(), clock()], None);
        assert!(counters.counts(ProgramId(1)).is_some());
        assert_eq!(counters.all_requests(), None);
        // It ended before it could be counted.
        counters.begin(ProgramId(2), vec![], None);
        assert_eq!(counters.counts(ProgramId(2)), None);
    }
}
