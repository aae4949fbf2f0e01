//! The meter of a worker: its counters, and the phase that it is in.

use crate::control::counters::{Count, Counters, Phase};
use crate::control::track::Recorder;

/// Counters that also know the current phase, and its time for a timeline.
pub(crate) struct Meter<'p> {
    pub counters: Counters,
    phase: Phase,
    since_ns: u64,
    recorder: Option<Recorder<'p>>,
}

impl<'p> Meter<'p> {
    /// Starts in [`Phase::Start`], which began at `since_ns`.
    pub fn new(since_ns: u64, recorder: Option<Recorder<'p>>) -> Meter<'p> {
        Meter { counters: Counters::default(), phase: Phase::Start, since_ns, recorder }
    }

    /// Ends the current phase and enters another. Returns the one that ended.
    pub fn enter(&mut self, phase: Phase) -> Phase {
        let now_ns = gristmill_os::clock::monotonic_ns();
        self.counters.time_ns[self.phase as usize] += now_ns - self.since_ns;
        self.counters.calls[phase as usize] += 1;
        if let Some(recorder) = &mut self.recorder {
            recorder.pass(self.phase, self.since_ns, now_ns, phase);
        }
        self.since_ns = now_ns;
        std::mem::replace(&mut self.phase, phase)
    }

    /// Returns the time at which the current phase was entered, which is the last reading of the clock.
    pub fn read_ns(&self) -> u64 {
        self.since_ns
    }

    /// Moves `ns`, which were measured inside phase `from`, to phase `to`.
    pub fn move_time(&mut self, from: Phase, to: Phase, ns: u64) {
        self.enter(from);
        let moved = ns.min(self.counters.time_ns[from as usize]);
        self.counters.time_ns[from as usize] -= moved;
        self.counters.time_ns[to as usize] += moved;
        self.counters.calls[to as usize] += 1;
        if let Some(recorder) = &mut self.recorder {
            recorder.move_time(from, to, moved, self.since_ns);
        }
    }

    #[inline(always)]
    pub fn add(&mut self, count: Count, n: u64) {
        self.counters.add(count, n);
    }

    /// Notes that the worker ends.
    pub fn end(&self) {
        self.recorder.iter().for_each(Recorder::end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::counters::PHASES;

    #[test]
    fn phases_add_up_to_the_life_of_the_worker() {
        let start = gristmill_os::clock::monotonic_ns();
        let mut meter = Meter::new(start, None);
        for phase in [Phase::Map, Phase::Reduce, Phase::Map, Phase::Idle] {
            meter.enter(phase);
        }
        let end = meter.since_ns;
        let total: u64 = PHASES.iter().map(|phase| meter.counters.time_ns(*phase)).sum();
        assert_eq!(total, end - start);
        assert_eq!(meter.counters.calls(Phase::Map), 2);
    }
}
