//! Accounts for the workers' time: `k` workers for `T` seconds have `k T` thread-seconds, and each of them is
//! accounted for.
//!
//! User and system time are counted by the kernel. Samples of the program's threads divide the rest. A worker that
//! has not started, has ended, or waits for a child process is absent.

use std::fmt;

/// The object that a thread waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Wait {
    /// A lock, a barrier or a condition: any sleep on a futex.
    Lock,
    /// The lock of the address space, which page faults and `mmap` take.
    AddressSpace,
    /// A pipe or a socket.
    Pipe,
    /// A disk or a file system.
    Disk,
    /// The clock.
    Clock,
    /// Several objects at once (poll, epoll, select).
    Events,
    /// Anything else.
    Other,
}

impl Wait {
    /// All kinds of waits, in the order of `Seen::blocked`.
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

/// The threads at one moment, except those that wait for a child process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Moment {
    /// The number of threads on a processor or waiting for one.
    pub runnable: u64,
    /// The sleeping threads, one entry each with the reason.
    pub asleep: Vec<Wait>,
}

/// The samples of a run, summed up.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Seen {
    /// The seconds that workers slept, for each of [`Wait::ALL`].
    blocked: [f64; 7],
    /// The seconds that workers were absent.
    absent: f64,
    /// The seconds that threads were runnable.
    runnable: f64,
    /// The seconds that the sampled threads spent on processors.
    pub on_processor: f64,
    /// The seconds that they waited for a processor. Both are 0 if the kernel does not count them.
    pub waited: f64,
}

impl Seen {
    /// Adds a sample that stands for `seconds` of a program with this many workers.
    pub fn add(&mut self, moment: &Moment, seconds: f64, workers: u64) {
        let free = workers.saturating_sub(moment.runnable);
        let asleep = (moment.asleep.len() as u64).min(free);
        self.runnable += seconds * moment.runnable as f64;
        self.absent += seconds * (free - asleep) as f64;
        // If more threads sleep than workers are missing, it is unknown which of them are workers.
        let each = asleep as f64 / moment.asleep.len().max(1) as f64;
        for wait in &moment.asleep {
            self.blocked[wait.place()] += seconds * each;
        }
    }
}

/// The kernel's counts for a run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Counted {
    /// The number of workers.
    pub workers: u64,
    /// The time from start to end.
    pub seconds: f64,
    /// The processor time outside of the kernel.
    pub user: f64,
    /// The processor time in the kernel.
    pub system: f64,
    /// The number of page faults without disk access.
    pub faults: u64,
    /// The number of times that a thread gave up its processor to wait.
    pub waits: u64,
}

/// The thread-seconds of a run. The parts sum to `workers * seconds`, or to the processor time if that is larger.
#[derive(Clone, Debug, PartialEq)]
pub struct Account {
    /// The kernel's counts.
    pub counted: Counted,
    /// Runnable, but without a processor.
    pub waiting: f64,
    /// Asleep, for each of [`Wait::ALL`].
    pub blocked: [f64; 7],
    /// Not started, ended, or waiting for a child process.
    pub absent: f64,
}

/// The share of the processor time that samples must have seen to count as having followed threads to their ends.
const SEEN_MIN: f64 = 0.9;

impl Account {
    /// Divides the time into parts.
    pub fn of(counted: Counted, seen: &Seen) -> Account {
        let used = counted.user + counted.system;
        let rest = (counted.workers as f64 * counted.seconds - used).max(0.0);
        // The kernel's count if threads were seen to their ends. If many ended between samples, the excess of
        // runnable time over processor time.
        let seen_share = if used > 0.0 { seen.on_processor / used } else { 0.0 };
        let waiting =
            if seen_share >= SEEN_MIN { seen.waited / seen_share.min(1.0) } else { (seen.runnable - used).max(0.0) };
        let waiting = waiting.min(rest);
        let idle = seen.blocked.iter().sum::<f64>() + seen.absent;
        let share = |seconds: f64| if idle > 0.0 { (rest - waiting) * seconds / idle } else { 0.0 };
        // If the run ended before the first sample, all its remaining time counts as absent.
        let absent = if idle > 0.0 { share(seen.absent) } else { rest - waiting };
        Account { counted, waiting, blocked: seen.blocked.map(share), absent }
    }

    /// The sum of all parts.
    pub fn whole(&self) -> f64 {
        self.parts().iter().map(|(_, seconds)| seconds).sum()
    }

    /// Returns each part with its name, without waits that did not occur.
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

/// A part of the workers' time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Part {
    /// Time in the program.
    User,
    /// Time in the kernel.
    System,
    /// Runnable, but without a processor.
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

/// The loss of a run, compared with the run with the fewest workers.
#[derive(Clone, Debug, PartialEq)]
pub struct Loss {
    /// The number of workers.
    pub workers: u64,
    /// The thread-seconds beyond those of the run with the fewest workers.
    pub seconds: f64,
    /// The loss as a share of all thread-seconds.
    pub share: f64,
    /// The parts that grew, in thread-seconds, the largest growth first.
    pub grown: Vec<(Part, f64)>,
    /// The cause that this suggests.
    pub cause: Cause,
}

/// The reason why more workers do not help, as far as an account can tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// There is hardly any loss.
    None,
    /// Workers were absent: a serial stretch, parts of unequal size, or a setting that the program ignores.
    Serial,
    /// Workers slept, seldom, until another woke them: a barrier, parts of unequal size, or a serial stretch.
    Imbalance,
    /// Workers slept, often, until another woke them.
    Lock,
    /// Workers slept for this reason.
    Blocked(Wait),
    /// Workers had no processor.
    Crowded,
    /// The kernel handled page faults.
    Faults,
    /// The kernel handled waits and wake-ups.
    Switches,
    /// The kernel was busy for an unknown reason.
    Kernel,
    /// The same work took more processor time: memory, caches, shared cores, frequency, spinning.
    Slower,
    /// Several parts grew alike.
    Mixed,
}

/// The smallest loss to explain, as a share of the time.
const LOSS_MIN: f64 = 0.10;
/// The smallest share of the loss that makes a part its cause.
const CAUSE_MIN: f64 = 0.55;
/// The waits per second of a worker above which a lock is the cause.
const WAITS_OF_LOCK: f64 = 1000.0;
/// The smallest number of page faults per second of kernel time that makes them its cause; one costs 0.1 to 3 us.
const FAULTS_MIN: f64 = 200_000.0;
/// The smallest number of waits per second of kernel time that makes them its cause.
const SWITCHES_MIN: f64 = 100_000.0;

impl Loss {
    /// Compares `many` with `few`.
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

    /// Returns the loss and its cause in a sentence.
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

    /// Makes the account of one worker that computes for ten seconds.
    fn alone() -> Account {
        let mut seen = Seen { on_processor: 10.0, ..Seen::default() };
        seen.add(&moment(1, &[]), 10.0, 1);
        Account::of(counted(1, 10.0, 9.9, 0.1), &seen)
    }

    #[test]
    fn a_second_of_each_kind_is_found_where_it_belongs() {
        // Two workers, four seconds: both run; one waits for a lock; one is absent; one waits for a disk.
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

    /// Returns the cause for four workers that again take ten seconds, with this sample and these counts.
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
        // Without the kernel's count, the excess of runnable time.
        let seen = Seen { on_processor: 0.0, waited: 0.0, ..seen };
        assert_eq!(Loss::of(&alone(), &Account::of(counted(4, 10.0, 9.9, 0.1), &seen)).cause, Cause::Crowded);
    }

    /// A program that waited for its disk, and whose end no sample saw, was once said to wait for a processor.
    #[test]
    fn waits_of_a_few_threads_do_not_count_for_all() {
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
