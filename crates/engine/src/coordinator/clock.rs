//! The clock of a job with a task timeout: time in which the coordinator looked, and for how long a worker has stood still.
//!
//! *The coordinator may be late itself*: suspended with its workers (Ctrl-Z), or held up by whoever takes the result. Time in which
//! it did not look counts for nobody.

use std::time::Duration;

/// How long the coordinator sleeps at most when progress or a timeout is wanted.
pub(super) const TICK: Duration = Duration::from_millis(100);
/// The coordinator looks every tick. Longer than this, and it was kept from it.
const LATE_NS: u64 = 2 * TICK.as_nanos() as u64;

/// Time, without that in which the coordinator could not look.
pub(super) struct Clock {
    looked_ns: u64,
    /// When rests were judged last.
    pub judged_ns: u64,
    /// Stretches in which nobody looked: where each ends, and how long it was.
    late: Vec<(u64, u64)>,
}

impl Clock {
    pub fn new(now_ns: u64) -> Clock {
        Clock { looked_ns: now_ns, judged_ns: now_ns, late: Vec::new() }
    }

    /// The coordinator looks now; nobody will ask for times before `oldest_ns`.
    pub fn look(&mut self, now_ns: u64, oldest_ns: impl FnOnce() -> u64) {
        let gap_ns = now_ns.saturating_sub(self.looked_ns);
        self.looked_ns = now_ns;
        if gap_ns > LATE_NS {
            let oldest_ns = oldest_ns();
            self.late.retain(|(end_ns, _)| *end_ns > oldest_ns);
            self.late.push((now_ns, gap_ns - TICK.as_nanos() as u64));
        }
    }

    /// How long ago `since_ns` was.
    pub fn passed_ns(&self, since_ns: u64) -> u64 {
        let late = self.late.iter().map(|(end_ns, late_ns)| end_ns.saturating_sub(since_ns).min(*late_ns));
        self.looked_ns.saturating_sub(since_ns).saturating_sub(late.sum())
    }
}

/// How long a worker has stood still.
#[derive(Clone, Copy, Default)]
pub(super) struct Rest {
    /// Processor time that it had used when it was last seen to move.
    pub cpu_ns: u64,
    /// Since when it has not moved, or was rung.
    pub since_ns: u64,
    pub was_rung: bool,
}

/// What is to be done about a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Nothing,
    Ring,
    End,
}

impl Rest {
    /// Judges a worker that has used `cpu_ns` by now.
    pub fn judge(&mut self, clock: &Clock, limit_ns: u64, cpu_ns: u64, is_busy: bool) -> Verdict {
        if is_busy || cpu_ns != self.cpu_ns {
            *self = Rest { cpu_ns, since_ns: clock.looked_ns, was_rung: false };
            return Verdict::Nothing;
        }
        if clock.passed_ns(self.since_ns) < limit_ns / 2 {
            return Verdict::Nothing;
        }
        if self.was_rung {
            return Verdict::End;
        }
        (self.since_ns, self.was_rung) = (clock.looked_ns, true);
        Verdict::Ring
    }
}

/// Why a worker was ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Overdue {
    /// Its task, or its record, took too long.
    Task,
    /// Somebody had stopped it.
    Stopped,
    /// It did nothing, and was not stopped.
    Still,
}

impl Overdue {
    /// As a cause of death.
    pub fn sentence(self, limit: Duration) -> String {
        match self {
            Overdue::Task => format!("it ran longer than the task timeout of {limit:?}"),
            Overdue::Stopped => {
                format!("it was stopped (by SIGSTOP or a debugger) for longer than the task timeout of {limit:?}")
            }
            Overdue::Still => format!("it did nothing for longer than the task timeout of {limit:?}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    /// A clock that has looked every tick but for this stretch.
    fn clock_at(end_ns: u64, suspended: std::ops::Range<u64>) -> Clock {
        let mut clock = Clock::new(0);
        let looks = (0..=end_ns).step_by(TICK.as_nanos() as usize);
        looks.filter(|now| !suspended.contains(now)).for_each(|now| clock.look(now, || 0));
        clock
    }

    #[test]
    fn time_in_which_nobody_looked_counts_for_nobody() {
        // A job was suspended for an hour (Ctrl-Z); when it went on, every task had taken too long.
        let clock = clock_at(3605 * SECOND, 2 * SECOND..3602 * SECOND);
        for (since, passed) in [(0, 5), (1, 4), (2, 3), (3602, 3), (3604, 1)] {
            let off = clock.passed_ns(since * SECOND).abs_diff(passed * SECOND);
            assert!(off <= LATE_NS, "{passed} s had passed since {since} s, give or take {off} ns");
        }
        // In the middle of the stretch, as a worker that was suspended later or woke earlier than the coordinator.
        assert!(clock.passed_ns(1800 * SECOND) <= 3 * SECOND + LATE_NS);
    }

    #[test]
    fn stretches_that_nobody_asks_for_are_forgotten() {
        let mut clock = Clock::new(0);
        (1..1000).for_each(|look| clock.look(look * SECOND, || look.saturating_sub(2) * SECOND));
        assert!(clock.late.len() <= 3, "{} stretches", clock.late.len());
    }

    #[test]
    fn what_stands_still_is_rung_and_then_ended() {
        let mut clock = Clock::new(0);
        let mut rest = Rest::default();
        let mut verdicts = Vec::new();
        for look in 1..=12 {
            clock.look(look * SECOND / 10, || 0);
            verdicts.push(rest.judge(&clock, SECOND, 5, false));
        }
        assert_eq!(verdicts.iter().position(|verdict| *verdict == Verdict::Ring), Some(5));
        assert_eq!(verdicts.iter().position(|verdict| *verdict == Verdict::End), Some(10));
        // It answers the ring, or waits for a disk.
        for (cpu_ns, is_busy) in [(6, false), (6, true)] {
            assert_eq!(rest.judge(&clock, SECOND, cpu_ns, is_busy), Verdict::Nothing);
            assert!(!rest.was_rung);
        }
    }
}
