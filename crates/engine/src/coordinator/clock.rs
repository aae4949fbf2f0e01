//! The clock of a job with a task timeout. It measures how long a worker has made no progress.
//!
//! The coordinator itself may be late, because it was suspended with its workers (Ctrl-Z), or because the receiver of
//! the result is slow. Time in which it did not look counts against no worker.

use std::time::Duration;

/// The longest sleep of the coordinator if somebody waits for progress, a timeout or a deadline.
pub(super) const TICK: Duration = Duration::from_millis(100);
/// The coordinator looks at least once per tick. A longer gap means that something kept it from looking.
const LATE_NS: u64 = 2 * TICK.as_nanos() as u64;

/// Time, minus the gaps in which the coordinator could not look.
pub(super) struct Clock {
    looked_ns: u64,
    /// The time at which idle workers were last judged.
    pub judged_ns: u64,
    /// The gaps: the end of each, and its length.
    late: Vec<(u64, u64)>,
}

impl Clock {
    pub fn new(now_ns: u64) -> Clock {
        Clock { looked_ns: now_ns, judged_ns: now_ns, late: Vec::new() }
    }

    /// Notes that the coordinator looks now. Nobody will ask for times before `oldest_ns`.
    pub fn look(&mut self, now_ns: u64, oldest_ns: impl FnOnce() -> u64) {
        let gap_ns = now_ns.saturating_sub(self.looked_ns);
        self.looked_ns = now_ns;
        if gap_ns > LATE_NS {
            let oldest_ns = oldest_ns();
            self.late.retain(|(end_ns, _)| *end_ns > oldest_ns);
            self.late.push((now_ns, gap_ns - TICK.as_nanos() as u64));
        }
    }

    /// Returns the time that has passed since `since_ns`, without the gaps.
    pub fn passed_ns(&self, since_ns: u64) -> u64 {
        let late = self.late.iter().map(|(end_ns, late_ns)| end_ns.saturating_sub(since_ns).min(*late_ns));
        self.looked_ns.saturating_sub(since_ns).saturating_sub(late.sum())
    }
}

/// How long a worker has made no progress.
#[derive(Clone, Copy, Default)]
pub(super) struct Rest {
    /// The processor time that it had used when it last made progress.
    pub cpu_ns: u64,
    /// The time of its last progress, or of the ring that followed.
    pub since_ns: u64,
    pub was_rung: bool,
}

/// The answer to a worker's silence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    Nothing,
    Ring,
    End,
}

impl Rest {
    /// Judges a worker that has used `cpu_ns` so far.
    pub fn judge(&mut self, clock: &Clock, limit_ns: u64, cpu_ns: u64, is_busy: bool) -> Answer {
        if is_busy || cpu_ns != self.cpu_ns {
            *self = Rest { cpu_ns, since_ns: clock.looked_ns, was_rung: false };
            return Answer::Nothing;
        }
        if clock.passed_ns(self.since_ns) < limit_ns / 2 {
            return Answer::Nothing;
        }
        if self.was_rung {
            return Answer::End;
        }
        (self.since_ns, self.was_rung) = (clock.looked_ns, true);
        Answer::Ring
    }
}

/// The longest sleep of the coordinator if nobody waits for progress, a timeout or a deadline.
pub(super) const LONG_SLEEP: Duration = Duration::from_secs(30);
/// How long a job stands still, and how often that is seen, before it is given up.
const STANDSTILL_NS: u64 = 3_000_000_000;
const STANDSTILL_LOOKS: u32 = 16;

/// Observations of a job that may stand still.
#[derive(Clone, Copy, Default)]
pub(super) struct Standstill {
    /// The number of looks in a row at which all workers slept, and the time of the first of them.
    looks: u32,
    since_ns: u64,
    /// The time of the last look, and the number of events then.
    looked_ns: u64,
    events: u64,
    /// The time at which something happened last, or all workers were woken.
    stirred_ns: u64,
}

/// The answer to a job that may stand still.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stillness {
    None,
    /// Wake all workers: they sleep, or their doorbells may be wrong.
    Wake,
    /// End the job: it will never go on.
    End,
}

impl Standstill {
    /// Returns whether the next look is due.
    pub fn is_due(&self, now_ns: u64) -> bool {
        now_ns.saturating_sub(self.looked_ns) >= TICK.as_nanos() as u64
    }

    /// Returns whether all workers slept at the last look.
    pub fn is_suspected(&self) -> bool {
        self.looks > 0
    }

    /// Judges a job by whether all workers sleep, and by the number of events so far.
    pub fn look(&mut self, now_ns: u64, all_sleep: bool, events: u64) -> Stillness {
        let is_quiet = self.events == events;
        let goes_on = all_sleep && self.looks > 0 && is_quiet;
        let (looks, since_ns) = if goes_on { (self.looks + 1, self.since_ns) } else { (u32::from(all_sleep), now_ns) };
        let stillness = match is_quiet && now_ns - self.stirred_ns >= STANDSTILL_NS {
            _ if looks >= STANDSTILL_LOOKS && now_ns - since_ns >= STANDSTILL_NS => Stillness::End,
            is_long if is_long || all_sleep => Stillness::Wake,
            _ => Stillness::None,
        };
        let stirred_ns = if is_quiet && stillness == Stillness::None { self.stirred_ns } else { now_ns };
        *self = Standstill { looks, since_ns, looked_ns: now_ns, events, stirred_ns };
        stillness
    }
}

/// Why the coordinator ended a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Overdue {
    /// Its task or its record took too long.
    Task,
    /// It was stopped by a signal or a debugger.
    Stopped,
    /// It did nothing, and was not stopped.
    Still,
}

impl Overdue {
    /// Returns the cause of death as a message shows it.
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

    /// Makes a clock that has looked every tick except in this gap.
    fn clock_at(end_ns: u64, suspended: std::ops::Range<u64>) -> Clock {
        let mut clock = Clock::new(0);
        let looks = (0..=end_ns).step_by(TICK.as_nanos() as usize);
        looks.filter(|now| !suspended.contains(now)).for_each(|now| clock.look(now, || 0));
        clock
    }

    #[test]
    fn time_in_which_nobody_looked_counts_for_nobody() {
        // A job was suspended for an hour (Ctrl-Z). When it continued, every task had exceeded its timeout.
        let clock = clock_at(3605 * SECOND, 2 * SECOND..3602 * SECOND);
        for (since, passed) in [(0, 5), (1, 4), (2, 3), (3602, 3), (3604, 1)] {
            let off = clock.passed_ns(since * SECOND).abs_diff(passed * SECOND);
            assert!(off <= LATE_NS, "{passed} s had passed since {since} s, give or take {off} ns");
        }
        // In the middle of the gap, for a worker that was suspended after the coordinator or continued before it.
        assert!(clock.passed_ns(1800 * SECOND) <= 3 * SECOND + LATE_NS);
    }

    #[test]
    fn a_job_stands_still_if_all_workers_sleep_again_and_again_and_nothing_happens() {
        // 7 of 52 stray writes left all workers and the coordinator asleep, for ever.
        let looks = |sleeps: &dyn Fn(u64) -> bool, events: &dyn Fn(u64) -> u64| {
            let mut standstill = Standstill::default();
            let mut look = |look: u64| standstill.look(look * SECOND / 10, sleeps(look), events(look));
            (1..100).map(&mut look).collect::<Vec<_>>()
        };
        let end = |looks: &[Stillness]| looks.iter().position(|stillness| *stillness == Stillness::End);
        let wakes = |looks: &[Stillness]| looks.iter().filter(|stillness| **stillness == Stillness::Wake).count();
        assert_eq!(end(&looks(&|_| true, &|_| 7)), Some(30));
        assert_eq!(end(&looks(&|look| look > 20, &|_| 7)), Some(50));
        assert_eq!(end(&looks(&|look| look % 20 > 0, &|_| 7)), None);
        assert_eq!(end(&looks(&|_| true, &|look| look / 20)), None);
        // One that sleeps may seem to be awake, because its doorbell was overwritten.
        assert_eq!(wakes(&looks(&|_| false, &|_| 7)), 3);
        assert_eq!(wakes(&looks(&|_| false, &|look| look / 20)), 0);
        // The whole job was suspended for an hour after the first look.
        let mut standstill = Standstill::default();
        let stands =
            |look: u64| standstill.look(look * SECOND / 10 + if look > 1 { 3600 * SECOND } else { 0 }, true, 7);
        assert_eq!((1..100).map(stands).position(|stillness| stillness == Stillness::End), Some(15));
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
        assert_eq!(verdicts.iter().position(|verdict| *verdict == Answer::Ring), Some(5));
        assert_eq!(verdicts.iter().position(|verdict| *verdict == Answer::End), Some(10));
        // It uses processor time after the ring, or waits for a disk.
        for (cpu_ns, is_busy) in [(6, false), (6, true)] {
            assert_eq!(rest.judge(&clock, SECOND, cpu_ns, is_busy), Answer::Nothing);
            assert!(!rest.was_rung);
        }
    }
}
