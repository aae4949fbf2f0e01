//! Where the time of the workers went: `k` workers for `T` seconds are `k T` thread-seconds, and each of them is accounted for.
//!
//! User and system time are counted by the kernel. The rest is divided by what samples of the program's threads saw: a worker
//! that is not there, or has ended, or waits for a process that it has started, is absent.

use std::fmt;

/// What a thread waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Wait {
    /// A lock, a barrier, a condition: whatever sleeps on a futex.
    Lock,
    /// The lock of the address space, which page faults and maps take.
    AddressSpace,
    /// A pipe or a socket.
    Pipe,
    /// A disk or a file system.
    Disk,
    /// The clock.
    Clock,
    /// Several things at once (poll, epoll, select).
    Events,
    /// Something else.
    Other,
}

impl Wait {
    /// Every one, in the order of `Seen::blocked`.
    pub const ALL: [Wait; 7] =
        [Wait::Lock, Wait::AddressSpace, Wait::Pipe, Wait::Disk, Wait::Clock, Wait::Events, Wait::Other];

    fn place(self) -> usize {
        Wait::ALL.iter().position(|wait| *wait == self).expect("all are listed")
    }
}

impl fmt::Display for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Wait::Lock => "a lock or barrier (futex)",
            Wait::AddressSpace => "the lock of the address space",
            Wait::Pipe => "a pipe or socket",
            Wait::Disk => "a disk or file system",
            Wait::Clock => "the clock (sleep)",
            Wait::Events => "events (poll)",
            Wait::Other => "something else",
        })
    }
}

/// Threads at one moment, without those that wait for a process that they have started.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Moment {
    /// On a processor, or waiting for one.
    pub runnable: u64,
    /// Asleep, and why: one entry each.
    pub asleep: Vec<Wait>,
}

/// What samples of a run saw.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Seen {
    /// Seconds during which a worker slept, for each of [`Wait::ALL`].
    blocked: [f64; 7],
    /// Seconds during which a worker was not there.
    absent: f64,
    /// Seconds that threads could run.
    runnable: f64,
    /// Seconds on processors of the threads that were seen.
    pub on_processor: f64,
    /// Seconds for which they waited for a processor; 0 with the one above where the kernel does not count it.
    pub waited: f64,
}

impl Seen {
    /// Adds what was seen at a moment that stands for `seconds`, of a program with so many workers.
    pub fn add(&mut self, moment: &Moment, seconds: f64, workers: u64) {
        let free = workers.saturating_sub(moment.runnable);
        let asleep = (moment.asleep.len() as u64).min(free);
        self.runnable += seconds * moment.runnable as f64;
        self.absent += seconds * (free - asleep) as f64;
        // Where more threads sleep than workers are missing, nobody knows which of them are the workers.
        let each = asleep as f64 / moment.asleep.len().max(1) as f64;
        for wait in &moment.asleep {
            self.blocked[wait.place()] += seconds * each;
        }
    }
}

/// What the kernel counted for a run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Counted {
    /// How many workers.
    pub workers: u64,
    /// From start to end.
    pub seconds: f64,
    /// Processor time outside of the kernel.
    pub user: f64,
    /// Processor time in the kernel.
    pub system: f64,
    /// Page faults without a disk.
    pub faults: u64,
    /// How often a thread gave its processor up because it had to wait.
    pub waits: u64,
}

/// The thread-seconds of a run. The parts sum to `workers * seconds`, or to the processor time if that is more.
#[derive(Clone, Debug, PartialEq)]
pub struct Account {
    /// What was counted.
    pub counted: Counted,
    /// Ready to run, without a processor.
    pub waiting: f64,
    /// Asleep, for each of [`Wait::ALL`].
    pub blocked: [f64; 7],
    /// Not started, or ended, or waiting for a process of its own.
    pub absent: f64,
}

/// Samples have seen threads to their ends if they saw this share of the processor time.
const SEEN_MIN: f64 = 0.9;

impl Account {
    /// Divides the time.
    pub fn of(counted: Counted, seen: &Seen) -> Account {
        let used = counted.user + counted.system;
        let rest = (counted.workers as f64 * counted.seconds - used).max(0.0);
        // Where threads were seen to the end, the kernel's count; where many ended between two samples, those that could run and did not.
        let seen_share = if used > 0.0 { seen.on_processor / used } else { 0.0 };
        let waiting =
            if seen_share >= SEEN_MIN { seen.waited / seen_share.min(1.0) } else { (seen.runnable - used).max(0.0) };
        let waiting = waiting.min(rest);
        let idle = seen.blocked.iter().sum::<f64>() + seen.absent;
        let share = |seconds: f64| if idle > 0.0 { (rest - waiting) * seconds / idle } else { 0.0 };
        // A run that is over before anything was seen has its rest in one piece.
        let absent = if idle > 0.0 { share(seen.absent) } else { rest - waiting };
        Account { counted, waiting, blocked: seen.blocked.map(share), absent }
    }

    /// All parts together.
    pub fn whole(&self) -> f64 {
        self.parts().iter().map(|(_, seconds)| seconds).sum()
    }

    /// Each part with its name; of what threads slept for, only what there was.
    pub fn parts(&self) -> Vec<(Part, f64)> {
        let mut parts =
            vec![(Part::User, self.counted.user), (Part::System, self.counted.system), (Part::Waiting, self.waiting)];
        parts.extend(Wait::ALL.into_iter().zip(self.blocked).map(|(wait, seconds)| (Part::Blocked(wait), seconds)));
        parts.push((Part::Absent, self.absent));
        parts.retain(|(part, seconds)| *seconds > 0.0 || !matches!(part, Part::Blocked(_)));
        parts
    }

    fn part(&self, part: Part) -> f64 {
        self.parts().into_iter().find(|(other, _)| *other == part).map_or(0.0, |(_, seconds)| seconds)
    }
}

/// A part of the time of workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Part {
    /// In the program.
    User,
    /// In the kernel.
    System,
    /// Ready to run, without a processor.
    Waiting,
    /// Asleep.
    Blocked(Wait),
    /// Not started, or ended.
    Absent,
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Part::User => f.write_str("user"),
            Part::System => f.write_str("system"),
            Part::Waiting => f.write_str("waiting for a processor"),
            Part::Blocked(wait) => write!(f, "blocked by {wait}"),
            Part::Absent => f.write_str("not started or ended"),
        }
    }
}

/// What the loss of a run is, against the run with the fewest workers.
#[derive(Clone, Debug, PartialEq)]
pub struct Loss {
    /// How many workers.
    pub workers: u64,
    /// Thread-seconds more than those with the fewest workers.
    pub seconds: f64,
    /// The same as a share of all thread-seconds.
    pub share: f64,
    /// Which parts grew, the one that grew most first, in thread-seconds.
    pub grown: Vec<(Part, f64)>,
    /// What that means.
    pub cause: Cause,
}

/// What stops more workers, as far as an account can tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// There is hardly a loss.
    None,
    /// Workers were missing: a serial stretch, parts of unequal size, or a number that the program does not use.
    Serial,
    /// Workers slept until another woke them, and seldom: a barrier, parts of unequal size, a serial stretch.
    Imbalance,
    /// Workers slept until another woke them, and often.
    Lock,
    /// Workers slept for this.
    Blocked(Wait),
    /// Workers had no processor.
    Crowded,
    /// The kernel, for page faults.
    Faults,
    /// The kernel, for waits and wake-ups.
    Switches,
    /// The kernel; the account does not tell for what.
    Kernel,
    /// The same work took more time on the processors: memory, caches, shared cores, frequency, spinning.
    Slower,
    /// Several parts grew alike.
    Mixed,
}

/// Less than this share of the time is no loss to explain.
const LOSS_MIN: f64 = 0.10;
/// A cause makes at least this share of the loss.
const CAUSE_MIN: f64 = 0.55;
/// More waits than this in a second of a worker are those of a lock.
const WAITS_OF_LOCK: f64 = 1000.0;
/// A second in the kernel that is spent on page faults has at least so many; one costs 0.1 to 3 us.
const FAULTS_MIN: f64 = 200_000.0;
/// The same for waits.
const SWITCHES_MIN: f64 = 100_000.0;

impl Loss {
    /// What `many` lost against `few`.
    pub fn of(few: &Account, many: &Account) -> Loss {
        let seconds = many.whole() - few.whole();
        let mut grown: Vec<(Part, f64)> = many
            .parts()
            .into_iter()
            .map(|(part, now)| (part, now - few.part(part)))
            .filter(|(_, more)| *more > 0.0)
            .collect();
        grown.sort_by(|a, b| b.1.total_cmp(&a.1));
        let share = seconds / many.whole().max(f64::MIN_POSITIVE);
        let all: f64 = grown.iter().map(|(_, more)| more).sum();
        let cause = match grown.first() {
            _ if share < LOSS_MIN => Cause::None,
            Some((part, more)) if *more >= CAUSE_MIN * all => cause(*part, *more, few, many),
            _ => Cause::Mixed,
        };
        Loss { workers: many.counted.workers, seconds, share, grown, cause }
    }

    /// The loss and its cause in a sentence.
    pub fn sentence(&self) -> String {
        let Some((part, more)) = self.grown.first().filter(|_| self.cause != Cause::None) else {
            return format!("With {} workers there is hardly a loss to explain.", self.workers);
        };
        let all: f64 = self.grown.iter().map(|(_, more)| more).sum();
        let lost = format!(
            "With {} workers {:.0} % of their time is lost; {:.0} % of that is {}",
            self.workers,
            self.share * 100.0,
            more / all * 100.0,
            if *part == Part::User { "more user time for the same work".to_owned() } else { part.to_string() }
        );
        let means = match self.cause {
            Cause::Serial => "a serial stretch, parts of unequal size, or workers that were never started (inferred)",
            Cause::Imbalance => {
                "workers wait for each other, but seldom: a barrier, parts of unequal size, or a serial stretch (inferred)"
            }
            Cause::Lock => "workers ask for the same lock, again and again (inferred)",
            Cause::Blocked(_) => "that is what stops them (seen in samples)",
            Cause::Crowded => "there are more runnable threads than processors that they may use (measured)",
            Cause::Faults => "the kernel serves page faults (inferred from their number)",
            Cause::Switches => "the kernel puts threads to sleep and wakes them (inferred from their number)",
            Cause::Kernel => "for what, an account cannot tell; perf trace -s, or strace -c -f, would",
            Cause::Slower => {
                "an account cannot tell why; memory bandwidth, caches, false sharing, shared cores, frequency and spinning look alike \
                 without the processor's counters"
            }
            Cause::None | Cause::Mixed => "no part stands out, so the cause cannot be told",
        };
        format!("{lost}: {means}.")
    }
}

fn cause(part: Part, more: f64, few: &Account, many: &Account) -> Cause {
    let waits = many.counted.waits.saturating_sub(few.counted.waits) as f64;
    let faults = many.counted.faults.saturating_sub(few.counted.faults) as f64;
    match part {
        Part::Absent => Cause::Serial,
        Part::Waiting => Cause::Crowded,
        Part::User => Cause::Slower,
        Part::Blocked(Wait::Lock) if waits > WAITS_OF_LOCK * more => Cause::Lock,
        Part::Blocked(Wait::Lock) => Cause::Imbalance,
        Part::Blocked(Wait::Other | Wait::Events) => Cause::Mixed,
        Part::Blocked(wait) => Cause::Blocked(wait),
        Part::System if faults > FAULTS_MIN * more => Cause::Faults,
        Part::System if waits > SWITCHES_MIN * more => Cause::Switches,
        Part::System => Cause::Kernel,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn moment(runnable: u64, asleep: &[Wait]) -> Moment {
        Moment { runnable, asleep: asleep.to_vec() }
    }

    fn counted(workers: u64, seconds: f64, user: f64, system: f64) -> Counted {
        Counted { workers, seconds, user, system, ..Counted::default() }
    }

    /// Ten seconds of one worker that computes.
    fn alone() -> Account {
        let mut seen = Seen { on_processor: 10.0, ..Seen::default() };
        seen.add(&moment(1, &[]), 10.0, 1);
        Account::of(counted(1, 10.0, 9.9, 0.1), &seen)
    }

    #[test]
    fn a_second_of_each_kind_is_found_where_it_belongs() {
        // Two workers, four seconds: both run; one waits for a lock; one is gone; one for a disk.
        let mut seen = Seen { on_processor: 5.0, ..Seen::default() };
        seen.add(&moment(2, &[]), 1.0, 2);
        seen.add(&moment(1, &[Wait::Lock]), 1.0, 2);
        seen.add(&moment(1, &[]), 1.0, 2);
        seen.add(&moment(1, &[Wait::Disk]), 1.0, 2);
        let account = Account::of(counted(2, 4.0, 4.5, 0.5), &seen);
        for (part, seconds) in [
            (Part::Blocked(Wait::Lock), 1.0),
            (Part::Blocked(Wait::Disk), 1.0),
            (Part::Absent, 1.0),
            (Part::Waiting, 0.0),
        ] {
            assert!((account.part(part) - seconds).abs() < 1e-9, "{part}: {account:?}");
        }
        assert!((account.whole() - 8.0).abs() < 1e-9);
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn parts_sum_to_the_whole(
            workers in 1..200_u64, seconds in 0.001..1e3_f64, busy in 0.0..1.3_f64, system in 0.0..1.0_f64,
            waited in 0.0..5.0_f64, on in 0.0..2.0_f64,
            moments in prop::collection::vec((0..300_u64, prop::collection::vec(0..7_usize, 0..9)), 0..20),
        ) {
            let whole = workers as f64 * seconds;
            let used = whole * busy;
            let mut seen = Seen { on_processor: on * used, waited: waited * used, ..Seen::default() };
            for (runnable, asleep) in &moments {
                let asleep: Vec<Wait> = asleep.iter().map(|at| Wait::ALL[*at]).collect();
                seen.add(&Moment { runnable: *runnable, asleep }, seconds / moments.len() as f64, workers);
            }
            let account = Account::of(counted(workers, seconds, used * (1.0 - system), used * system), &seen);
            let expected = whole.max(used);
            prop_assert!((account.whole() / expected - 1.0).abs() < 1e-9, "{} {expected}", account.whole());
            prop_assert!(account.parts().iter().all(|(_, seconds)| *seconds >= 0.0));
            prop_assert!(!Loss::of(&alone(), &account).sentence().is_empty());
        }
    }

    /// Four workers that take ten seconds again, of which each sample saw this, and the kernel counted that.
    fn cause_of(runnable: u64, asleep: &[Wait], user: f64, system: f64, waits: u64, faults: u64) -> Cause {
        let mut seen = Seen { on_processor: user + system, ..Seen::default() };
        seen.add(&moment(runnable, asleep), 10.0, 4);
        let counted = Counted { waits, faults, ..counted(4, 10.0, user, system) };
        Loss::of(&alone(), &Account::of(counted, &seen)).cause
    }

    #[test]
    fn the_part_that_grew_names_the_cause() {
        assert_eq!(cause_of(1, &[], 9.9, 0.1, 0, 0), Cause::Serial);
        assert_eq!(cause_of(1, &[Wait::Lock; 3], 9.9, 0.1, 40, 0), Cause::Imbalance);
        assert_eq!(cause_of(1, &[Wait::Lock; 3], 9.9, 0.1, 900_000, 0), Cause::Lock);
        assert_eq!(cause_of(1, &[Wait::Disk; 3], 9.9, 0.1, 900, 0), Cause::Blocked(Wait::Disk));
        assert_eq!(cause_of(4, &[], 39.0, 0.1, 0, 0), Cause::Slower);
        assert_eq!(cause_of(4, &[], 10.0, 29.0, 0, 30_000_000), Cause::Faults);
        assert_eq!(cause_of(4, &[], 10.0, 29.0, 30_000_000, 10), Cause::Switches);
        assert_eq!(cause_of(4, &[], 10.0, 29.0, 10, 10), Cause::Kernel);
        assert_eq!(cause_of(1, &[Wait::Lock, Wait::Disk, Wait::Pipe], 9.9, 0.1, 10, 10), Cause::Mixed);
        assert_eq!(cause_of(1, &[Wait::Other; 3], 9.9, 0.1, 10, 10), Cause::Mixed);
    }

    #[test]
    fn more_runnable_threads_than_processors_are_a_crowd() {
        let mut seen = Seen { on_processor: 10.0, waited: 30.0, ..Seen::default() };
        seen.add(&moment(4, &[]), 10.0, 4);
        let loss = Loss::of(&alone(), &Account::of(counted(4, 10.0, 9.9, 0.1), &seen));
        assert_eq!(loss.cause, Cause::Crowded);
        // Where the kernel does not count it, what could run and did not.
        let seen = Seen { on_processor: 0.0, waited: 0.0, ..seen };
        assert_eq!(Loss::of(&alone(), &Account::of(counted(4, 10.0, 9.9, 0.1), &seen)).cause, Cause::Crowded);
    }

    /// A program that waited for its disk, and whose end no sample saw, was said to wait for a processor.
    #[test]
    fn what_few_threads_waited_is_not_taken_for_all() {
        let mut seen = Seen { on_processor: 0.0003, waited: 0.006, ..Seen::default() };
        seen.add(&moment(0, &[Wait::Disk]), 0.1, 1);
        let account = Account::of(counted(1, 0.1, 0.001, 0.004), &seen);
        assert!(account.waiting == 0.0 && account.part(Part::Blocked(Wait::Disk)) > 0.09, "{account:?}");
    }

    #[test]
    fn a_program_that_scales_has_nothing_to_explain() {
        let mut seen = Seen { on_processor: 10.0, ..Seen::default() };
        seen.add(&moment(4, &[]), 2.55, 4);
        let loss = Loss::of(&alone(), &Account::of(counted(4, 2.55, 9.9, 0.1), &seen));
        assert_eq!((loss.cause, loss.sentence().contains("hardly a loss")), (Cause::None, true));
    }
}
