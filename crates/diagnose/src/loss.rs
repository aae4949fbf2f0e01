//! The part of the workers' time that is lost, and what causes that.
//!
//! 1. Already the fewest workers keep as many processors busy as the most: there is nothing to gain.
//! 2. A part of the time stands out among those that grew: its cause is looked for in the kernel's counts and in how the
//!    threads took turns. Sleep on a futex is for a lock if most threads slept in operations of locks. Otherwise one thread that
//!    is busy all the time while the others sleep hands out too little work, and threads that run one after the other share a lock.
//! 3. No part stands out, but those that belong to one object do together: time in the kernel for it, and sleep for it.
//! 4. Otherwise the cause cannot be told.

use crate::account::{Account, Part, Wait};
use crate::asleep::{is_on_futex, joined, of_sleep};
use crate::cause::{Cause, Object};
use crate::kernel_work::KernelWork;

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
    /// The kinds of system time that grew, the largest growth first. Empty if samples do not show them.
    pub grown_in_kernel: Vec<(KernelWork, f64)>,
    /// The share of the time in which no thread was runnable.
    pub idle: f64,
    /// The threads that waited for a disk, on average.
    pub on_disk: f64,
    /// True if workers may have memory in common.
    pub shares_memory: bool,
    /// The cause that this suggests.
    pub cause: Cause,
}

impl Object {
    const ALL: [Object; 3] = [Object::AddressSpace, Object::Files, Object::Pipes];

    /// The sleep for it, and the work of the kernel for it.
    fn costs(self) -> (Wait, &'static [KernelWork]) {
        match self {
            Object::AddressSpace => {
                (Wait::AddressSpace, &[KernelWork::PageFaults, KernelWork::AddressSpace, KernelWork::Shootdowns])
            }
            Object::Files => (Wait::Disk, &[KernelWork::Files]),
            Object::Pipes => (Wait::Pipe, &[KernelWork::Pipes]),
        }
    }
}

/// The smallest loss to explain, as a share of the time.
const LOSS_MIN: f64 = 0.10;
/// The smallest share of the loss that makes a part its cause.
const CAUSE_MIN: f64 = 0.55;
/// The processors that a worker keeps busy beyond one, from which on it must have threads of its own.
const BUSY_MIN: f64 = 0.25;
/// The number of threads waiting for a processor above which processors are scarce.
const QUEUE_MIN: f64 = 0.5;
/// The most sleep, as a share of an estimated wait for processors, beside which that counts: threads that sleep and wake all the time look
/// runnable in samples.
const ASLEEP_MAX: f64 = 0.15;
/// The threads that wait for a disk on average, above which that is mentioned beside a lock.
const ON_DISK_MIN: f64 = 0.25;
/// The growth of processor time and page faults, as a share of that of the workers, above which each does the whole work.
const REPEATED_MIN: f64 = 0.8;
/// The number of page faults that no start of a process explains.
const FAULTS_OF_WORK: u64 = 5000;
/// The waits per second of the loss above which all that a lock costs counts as its cost: to spin, to sleep and to wake
/// another take at most 50 us.
const WAITS_OF_ALL: f64 = 20_000.0;
/// The share of the loss that the parts of a lock must have together.
const LOCK_PARTS_MIN: f64 = 0.9;
/// The share of the loss that sleep for a lock must have at least, if it is not the largest part.
const LOCK_SLEEP_MIN: f64 = 0.2;
/// The smallest number of page faults per second of kernel time that makes them its cause; one costs 0.1 to 3 us.
const FAULTS_MIN: f64 = 200_000.0;
/// The smallest number of waits per second of kernel time that makes them its cause.
const SWITCHES_MIN: f64 = 100_000.0;

impl Loss {
    /// Compares `many` with `few`.
    pub fn of(few: &Account, many: &Account) -> Loss {
        let seconds = many.whole() - few.whole();
        let grown = many.parts().into_iter().map(|(part, now)| (part, now - few.part(part)));
        let mut grown = joined(grown.filter(|(_, more)| *more > 0.0).collect());
        grown.sort_by(|a, b| b.1.total_cmp(&a.1));
        let share = seconds / many.whole().max(f64::MIN_POSITIVE);
        let grown_in_kernel = grown_in_kernel(few, many);
        let workers = many.counted.workers;
        let on_disk = many.blocked[Wait::Disk.place()] / many.counted.seconds.max(f64::MIN_POSITIVE);
        let mut loss = Loss {
            workers,
            seconds,
            share,
            grown,
            grown_in_kernel,
            idle: many.idle,
            on_disk,
            shares_memory: many.shares_memory,
            cause: Cause::Mixed,
        };
        loss.cause = loss.cause(few, many);
        loss
    }

    fn cause(&self, few: &Account, many: &Account) -> Cause {
        // Processors that nobody waits for, while workers sleep, are not what the workers lack.
        let sleeps = matches!(self.standing_out(), Some((Part::Blocked(_), _))) && few.queue < QUEUE_MIN;
        if is_busy_already(few, many) && !sleeps {
            return Cause::Busy { workers: few.counted.workers, processors: few.busy(), queue: few.queue };
        }
        if self.share < LOSS_MIN {
            let (workers, processors) = (few.counted.workers, few.busy());
            let is_helped = processors > workers as f64 + BUSY_MIN && gains_less(few, many);
            return if is_helped { Cause::Helped { workers, processors } } else { Cause::None };
        }
        match self.standing_out() {
            Some((Part::User | Part::System, _)) | None if is_repeated(few, many) => Cause::Repeated,
            Some((Part::System, more)) if !self.grown_in_kernel.is_empty() => self.in_kernel(more),
            Some((Part::Waiting, more)) if many.is_estimate && many.asleep() > ASLEEP_MAX * more => Cause::Mixed,
            Some((part, more)) => of_part(part, more, few, many),
            None if self.is_of_lock(few, many) => Cause::Lock,
            None => self.object().map_or(Cause::Mixed, Cause::Shared),
        }
    }

    /// Returns the part that makes up more than half of the loss, if there is one.
    fn standing_out(&self) -> Option<(Part, f64)> {
        self.grown.first().copied().filter(|(_, more)| *more >= CAUSE_MIN * self.all())
    }

    /// Returns the cause of system time that grew by `more`, by what samples show of it.
    fn in_kernel(&self, more: f64) -> Cause {
        let (work, of_work) = self.grown_in_kernel[0];
        if of_work >= CAUSE_MIN * more {
            return Cause::KernelWork(work);
        }
        let is_most = |object: &Object| self.grown_by_work(object.costs().1) >= CAUSE_MIN * more;
        let object = self.object().or_else(|| Object::ALL.into_iter().find(is_most));
        object.map_or(Cause::Kernel, Cause::Shared)
    }

    /// Returns the object whose costs make up more than half of the loss, if there is one.
    fn object(&self) -> Option<Object> {
        Object::ALL.into_iter().find(|object| self.grown_for(*object) >= CAUSE_MIN * self.all())
    }

    /// Returns by how much sleep for an object and the work of the kernel for it grew.
    fn grown_for(&self, object: Object) -> f64 {
        let (wait, works) = object.costs();
        self.grown_by(&[Part::Blocked(wait)]) + self.grown_by_work(works)
    }

    fn grown_by_work(&self, works: &[KernelWork]) -> f64 {
        self.grown_in_kernel.iter().filter(|(work, _)| works.contains(work)).map(|(_, more)| more).sum()
    }

    /// Returns true if the parts that a lock costs stand out together: sleep, and time to spin and to wake others.
    fn is_of_lock(&self, few: &Account, many: &Account) -> bool {
        let waits = many.counted.waits.saturating_sub(few.counted.waits) as f64;
        let slept: f64 = self.grown.iter().filter(|(part, _)| is_on_futex(*part)).map(|(_, more)| more).sum();
        let called = self.grown_by_work(&[KernelWork::Futex]);
        (waits > WAITS_OF_ALL * self.all() || called >= LOCK_SLEEP_MIN * self.all())
            && slept + called >= LOCK_SLEEP_MIN * self.all()
            && self.grown_by_lock() >= LOCK_PARTS_MIN * self.all()
    }

    /// Returns true if the cause lies in time in which workers did not run.
    pub fn is_by_rest(&self) -> bool {
        match self.cause {
            Cause::Serial
            | Cause::Imbalance
            | Cause::Turns
            | Cause::Lock
            | Cause::Held
            | Cause::Starved
            | Cause::Unfed(_)
            | Cause::Polling
            | Cause::Blocked(_)
            | Cause::Asleep
            | Cause::Crowded => true,
            Cause::None
            | Cause::Busy { .. }
            | Cause::Helped { .. }
            | Cause::Faults
            | Cause::Switches
            | Cause::Kernel
            | Cause::KernelWork(_)
            | Cause::Shared(_)
            | Cause::Repeated
            | Cause::Slower
            | Cause::Mixed => false,
        }
    }

    /// Returns true if the account names a cause, and does not only say which part of the time grew.
    pub fn is_named(&self) -> bool {
        self.is_by_rest() && !matches!(self.cause, Cause::Lock | Cause::Asleep | Cause::Blocked(Wait::AddressSpace))
    }

    fn grown_by(&self, parts: &[Part]) -> f64 {
        self.grown.iter().filter(|(part, _)| parts.contains(part)).map(|(_, more)| more).sum()
    }

    /// Returns by how much all that a lock costs grew: sleep, and time to spin and to wake others.
    fn grown_by_lock(&self) -> f64 {
        let costs = |part: Part| is_on_futex(part) || matches!(part, Part::User | Part::System);
        self.grown.iter().filter(|(part, _)| costs(*part)).map(|(_, more)| more).sum()
    }

    /// Returns what workers slept for on futexes, as far as samples tell.
    fn lock_or_queue(&self) -> &'static str {
        let is_lock = self.grown.iter().any(|(part, _)| *part == Part::Blocked(Wait::Lock));
        if is_lock { "a lock" } else { "a lock or a queue" }
    }

    fn all(&self) -> f64 {
        self.grown.iter().map(|(_, more)| more).sum()
    }

    /// Returns the loss and its cause in a sentence.
    pub fn sentence(&self) -> String {
        self.explained(&self.meaning())
    }

    /// Returns the loss in a sentence, explained by these words instead of the cause that the account suggests.
    pub fn explained(&self, meaning: &str) -> String {
        if let Cause::Busy { workers, processors, queue } = self.cause {
            let few = if workers == 1 { "1 worker".to_owned() } else { format!("{workers} workers") };
            let why = if queue >= QUEUE_MIN {
                format!(
                    "{queue:.1} threads wait for a processor besides (measured): it has more threads than it is told"
                )
            } else {
                "hardly a thread waits for one (measured): it has more threads than it is told, or does not use the number"
                    .to_owned()
            };
            return format!(
                "With {} workers nothing is gained, because already with {few} the command keeps {processors:.1} processors busy, and \
                 {why}.",
                self.workers
            );
        }
        if let Cause::Helped { workers, processors } = self.cause {
            let few = if workers == 1 { "1 worker".to_owned() } else { format!("{workers} workers") };
            return format!(
                "With {} workers hardly any processor time is lost, but already with {few} the command keeps {processors:.1} processors \
                 busy: it has threads beside its workers, so more workers gain less than their number (measured).",
                self.workers
            );
        }
        let Some((part, more)) = self.grown.first().filter(|_| self.cause != Cause::None) else {
            return format!("With {} workers there is hardly a loss to explain.", self.workers);
        };
        let (more, named) = match (self.cause, part) {
            (Cause::Lock, _) if self.standing_out().is_none() => (
                self.grown_by_lock(),
                format!("sleep for {}, and time to spin and to wake others", self.lock_or_queue()),
            ),
            (Cause::KernelWork(work), _) => (self.grown_by_work(&[work]), format!("system time for {work}")),
            (Cause::Shared(object), _) => (
                self.grown_for(object),
                match object {
                    Object::AddressSpace => "page faults, changes of the address space, and sleep for its lock",
                    Object::Files => "system time for files and folders, and sleep for them",
                    Object::Pipes => "system time for pipes and sockets, and sleep for them",
                }
                .to_owned(),
            ),
            (_, Part::User) => (*more, "more user time for the same work".to_owned()),
            (_, Part::System) => (*more, "system time".to_owned()),
            (_, Part::Absent) => (*more, "time before workers began or after they ended".to_owned()),
            _ => (*more, part.to_string()),
        };
        format!(
            "With {} workers {:.0} % of their time is lost; {:.0} % of that is {named}: {}.",
            self.workers,
            self.share * 100.0,
            more / self.all() * 100.0,
            meaning
        )
    }

    fn meaning(&self) -> String {
        let meaning = match self.cause {
            Cause::Serial => "a serial stretch, parts of unequal size, or workers that were never started (inferred)",
            Cause::Imbalance => {
                "workers wait for each other, but seldom: a barrier, parts of unequal size, or a serial stretch (inferred)"
            }
            Cause::Turns => {
                "only one worker runs at a time, and all have their turn: a lock that is held for long, such as an interpreter's \
                 (inferred)"
            }
            Cause::Lock if self.lock_or_queue() == "a lock" => {
                "workers ask for the same lock, again and again (seen in samples)"
            }
            Cause::Lock => "workers ask for the same lock or wait for the same queue, again and again (inferred)",
            Cause::Held => return self.with_disk("workers wait for a lock that others hold for long"),
            Cause::Starved => {
                "one thread is busy all the time, and the others wait for it: it hands out work too slowly, or has more to do than they \
                 (inferred)"
            }
            Cause::Unfed(wait) => return self.unfed(wait),
            Cause::Polling => {
                "workers sleep for a short time, again and again: they poll, or pause before they try again (seen in samples)"
            }
            Cause::Repeated => {
                "work that grows with the workers: each of them takes as much processor time and touches as much memory for the first time \
                 (inferred from page faults)"
            }
            Cause::Blocked(Wait::FileLock | Wait::Database | Wait::Semaphore) => {
                return self.with_disk("that is what stops them");
            }
            Cause::Blocked(_) => "that is what stops them (seen in samples)",
            Cause::Asleep => "for what, samples of the threads cannot tell; strace -f -c would",
            Cause::Crowded => "there are more runnable threads than processors that they may use (measured)",
            Cause::Faults => "the kernel serves page faults (inferred from their number)",
            Cause::Switches => "the kernel puts threads to sleep and wakes them (inferred from their number)",
            Cause::KernelWork(_) | Cause::Shared(_) => "that is what stops them (seen in samples)",
            Cause::Kernel => "for what, an account cannot tell; perf trace -s, or strace -c -f, would",
            Cause::Slower => {
                "an account cannot tell why; memory bandwidth, caches, false sharing, shared cores, frequency and spinning look alike \
                 without the processor's counters"
            }
            Cause::None | Cause::Busy { .. } | Cause::Helped { .. } | Cause::Mixed => {
                "no part stands out, so the cause cannot be told"
            }
        };
        meaning.to_owned()
    }

    /// Returns a meaning that was seen, and that a disk delays who has the lock, if it does.
    fn with_disk(&self, meaning: &str) -> String {
        if self.on_disk < ON_DISK_MIN {
            return format!("{meaning} (seen in samples)");
        }
        let share = (self.on_disk * 100.0).min(100.0);
        format!(
            "{meaning}, and meanwhile a worker waits for a disk or file system for {share:.0} % of the time (seen in samples)"
        )
    }

    fn unfed(&self, wait: Option<Wait>) -> String {
        let wait = wait.map_or_else(String::new, |wait| format!(", as for {wait}"));
        format!(
            "workers wait for work or for each other, and no thread computes for {:.0} % of the time: what they wait for is made by \
             none, or by one that itself sleeps{wait} (inferred)",
            self.idle * 100.0
        )
    }
}

/// Returns the kinds of system time that grew, the largest growth first, if they are known of both runs. A run that hardly
/// was in the kernel has no samples.
fn grown_in_kernel(few: &Account, many: &Account) -> Vec<(KernelWork, f64)> {
    let (before, now) = (few.kernel_work(), many.kernel_work());
    if now.is_empty() || before.is_empty() && few.counted.system > LOSS_MIN * many.counted.system {
        return Vec::new();
    }
    let of = |work: KernelWork| before.iter().find(|(other, _)| *other == work).map_or(0.0, |(_, seconds)| *seconds);
    let mut grown: Vec<(KernelWork, f64)> =
        now.into_iter().map(|(work, seconds)| (work, seconds - of(work))).filter(|(_, more)| *more > 0.0).collect();
    grown.sort_by(|a, b| b.1.total_cmp(&a.1));
    grown
}

/// Returns true if each worker uses as much processor time, and touches as much memory for the first time, as the fewest together.
fn is_repeated(few: &Account, many: &Account) -> bool {
    let least = REPEATED_MIN * many.counted.workers as f64 / few.counted.workers.max(1) as f64;
    let used = |account: &Account| account.counted.user + account.counted.system;
    few.counted.faults >= FAULTS_OF_WORK
        && many.counted.faults as f64 >= least * few.counted.faults as f64
        && used(many) >= least * used(few)
}

/// Returns true if already `few` workers, which have threads of their own, keep as many processors busy as `many`.
fn is_busy_already(few: &Account, many: &Account) -> bool {
    few.busy() > few.counted.workers as f64 + BUSY_MIN
        && many.busy() < few.busy() * (1.0 + LOSS_MIN)
        && gains_less(few, many)
}

/// Returns true if the time falls by less than the number of workers grows.
fn gains_less(few: &Account, many: &Account) -> bool {
    let gain = few.counted.seconds / many.counted.seconds.max(f64::MIN_POSITIVE);
    let expected = many.counted.workers as f64 / few.counted.workers as f64;
    gain < expected * (1.0 - LOSS_MIN)
}

fn of_part(part: Part, more: f64, few: &Account, many: &Account) -> Cause {
    let waits = many.counted.waits.saturating_sub(few.counted.waits) as f64;
    match part {
        Part::Absent => Cause::Serial,
        Part::Waiting => Cause::Crowded,
        Part::User => Cause::Slower,
        Part::Blocked(wait) => of_sleep(wait, more, waits, many),
        Part::System if are_of_kernel(FAULTS_MIN, more, few, many, |account| account.counted.faults) => Cause::Faults,
        Part::System if are_of_kernel(SWITCHES_MIN, more, few, many, |account| account.counted.waits) => {
            Cause::Switches
        }
        Part::System => Cause::Kernel,
    }
}

/// Returns true if events, of which at least `least` fill a second of kernel time, explain why it grew by `more`: there
/// are more of them, or they fill the kernel's time of both runs and each takes longer.
fn are_of_kernel(least: f64, more: f64, few: &Account, many: &Account, count: impl Fn(&Account) -> u64) -> bool {
    let fill = |account: &Account| count(account) as f64 > least * account.counted.system;
    count(many).saturating_sub(count(few)) as f64 > least * more || fill(few) && fill(many)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::account::Counted;

    /// A run of two workers, or of one, as the report shows it: seconds, user, system, waiting and absent.
    pub(crate) fn account(
        workers: u64,
        [seconds, user, system, waiting, absent]: [f64; 5],
        asleep: &[(Wait, f64)],
    ) -> Account {
        let counted = Counted { workers, seconds, user, system, ..Counted::default() };
        let mut blocked = [0.0; Wait::ALL.len()];
        for (wait, seconds) in asleep {
            blocked[Wait::ALL.iter().position(|other| other == wait).expect("all are listed")] = *seconds;
        }
        let queue = waiting / seconds;
        Account {
            counted,
            waiting,
            is_estimate: false,
            queue,
            blocked,
            kernel: [0.0; 9],
            absent,
            together: 1.0,
            busiest: 1.0 / workers as f64,
            idle: 0.0,
            shares_memory: true,
        }
    }

    pub(crate) fn counts(account: Account, waits: u64, faults: u64) -> Account {
        Account { counted: Counted { waits, faults, ..account.counted }, ..account }
    }

    /// One worker that computes for a second.
    pub(crate) fn alone() -> Account {
        account(1, [1.0, 0.99, 0.01, 0.0, 0.0], &[])
    }

    fn cause(many: &Account) -> Cause {
        Loss::of(&alone(), many).cause
    }

    #[test]
    fn the_part_that_grew_names_the_cause() {
        let asleep = |wait| account(4, [1.0, 0.99, 0.01, 0.0, 0.0], &[(wait, 3.0)]);
        assert_eq!(cause(&account(4, [1.0, 0.99, 0.01, 0.0, 3.0], &[])), Cause::Serial);
        assert_eq!(cause(&account(4, [1.0, 0.99, 0.01, 3.0, 0.0], &[])), Cause::Crowded);
        assert_eq!(cause(&account(4, [1.0, 3.9, 0.1, 0.0, 0.0], &[])), Cause::Slower);
        assert_eq!(cause(&counts(asleep(Wait::Signal), 40, 0)), Cause::Imbalance);
        assert_eq!(cause(&counts(asleep(Wait::Lock), 40, 0)), Cause::Held);
        assert_eq!(cause(&counts(asleep(Wait::Lock), 90_000, 0)), Cause::Lock);
        assert_eq!(cause(&counts(asleep(Wait::Disk), 900, 0)), Cause::Blocked(Wait::Disk));
        let kernel = account(4, [1.0, 1.0, 3.0, 0.0, 0.0], &[]);
        assert_eq!(cause(&counts(kernel.clone(), 10, 3_000_000)), Cause::Faults);
        assert_eq!(cause(&counts(kernel.clone(), 3_000_000, 10)), Cause::Switches);
        assert_eq!(cause(&counts(kernel, 10, 10)), Cause::Kernel);
        let three = [(Wait::Lock, 1.0), (Wait::Disk, 1.0), (Wait::Pipe, 1.0)];
        assert_eq!(cause(&account(4, [1.0, 0.99, 0.01, 0.0, 0.0], &three)), Cause::Mixed);
    }

    #[test]
    fn a_program_that_scales_has_nothing_to_explain() {
        let loss = Loss::of(&alone(), &account(4, [0.255, 0.99, 0.01, 0.02, 0.0], &[]));
        assert_eq!((loss.cause, loss.sentence().contains("hardly a loss")), (Cause::None, true));
    }

    /// Python threads under the interpreter's lock were once said to wait at a barrier.
    #[test]
    fn workers_that_only_run_in_turns_share_a_lock() {
        let python = |together, busiest| Account {
            together,
            busiest,
            ..counts(account(2, [0.503, 0.466, 0.031, 0.015, 0.039], &[(Wait::Signal, 0.456)]), 134, 1_952)
        };
        let few = account(1, [0.5, 0.465, 0.03, 0.0, 0.005], &[]);
        assert_eq!(Loss::of(&few, &python(0.05, 0.55)).cause, Cause::Turns);
        // One thread did nearly all, or both ran together for a while.
        assert_eq!(Loss::of(&few, &python(0.05, 0.9)).cause, Cause::Starved);
        assert_eq!(Loss::of(&few, &python(0.4, 0.55)).cause, Cause::Imbalance);
    }

    /// Writers of a database were said to be stopped by the clock.
    #[test]
    fn a_lock_on_a_file_is_named_with_the_disk_under_it() {
        let few = account(1, [1.0, 0.2, 0.1, 0.0, 0.0], &[(Wait::Disk, 0.7)]);
        let tries = [(Wait::Disk, 0.75), (Wait::Database, 0.6), (Wait::Clock, 0.35)];
        let loss = Loss::of(&few, &account(2, [1.0, 0.2, 0.1, 0.0, 0.0], &tries));
        assert_eq!(loss.cause, Cause::Blocked(Wait::Database));
        let said = "blocked by sqlite's lock on a database: that is what stops them, and meanwhile a worker waits for a disk or file system \
                    for 75 % of the time (seen in samples).";
        assert!(loss.sentence().contains(said), "{}", loss.sentence());
        let asleep = |wait| account(2, [1.0, 1.0, 0.0, 0.0, 0.0], &[(wait, 1.0)]);
        for wait in [Wait::FileLock, Wait::Semaphore, Wait::Message] {
            assert_eq!(cause(&asleep(wait)), Cause::Blocked(wait));
        }
        assert_eq!(cause(&counts(asleep(Wait::Clock), 900, 0)), Cause::Polling);
        assert_eq!(cause(&counts(asleep(Wait::Clock), 3, 0)), Cause::Blocked(Wait::Clock));
    }

    /// Workers of which each did the whole work were said to be slow for one of five reasons.
    #[test]
    fn work_that_each_worker_does_again_is_named() {
        let of = |seconds, user, faults: [u64; 2]| {
            let few = counts(account(1, [1.0, 0.95, 0.05, 0.0, 0.0], &[]), 9, faults[0]);
            Loss::of(&few, &counts(account(2, [seconds, user, 0.1, 0.0, 0.0], &[]), 18, faults[1])).cause
        };
        assert_eq!(of(1.0, 1.9, [20_000, 40_000]), Cause::Repeated);
        // The same memory, twice the time; a process starts, but no more; and a part of the work only.
        assert_eq!(of(1.0, 1.9, [20_000, 20_100]), Cause::Slower);
        assert_eq!(of(1.0, 1.9, [600, 1_200]), Cause::Slower);
        assert_eq!(of(0.7, 1.3, [20_000, 40_000]), Cause::Slower);
    }

    /// A program whose only worker had eight threads was once said to have hardly a loss.
    #[test]
    fn who_is_busy_with_one_worker_has_nothing_to_gain() {
        let few = Account { queue: 6.1, ..account(1, [0.494, 0.987, 0.0, 0.0, 0.0], &[]) };
        let many = account(2, [0.546, 0.987, 0.004, 0.102, 0.0], &[]);
        let loss = Loss::of(&few, &many);
        assert_eq!(loss.cause, Cause::Busy { workers: 1, processors: few.busy(), queue: 6.1 });
        let said = "already with 1 worker the command keeps 2.0 processors busy, and 6.1 threads wait for a processor besides (measured)";
        assert!(loss.sentence().contains(said), "{}", loss.sentence());
        let few = Account { queue: 0.1, ..few };
        assert!(Loss::of(&few, &many).sentence().contains("and hardly a thread waits for one (measured)"));
    }

    /// `go build`, whose compiler has threads of its own, was 1.4 times as fast with two workers, and had "hardly a loss to explain".
    #[test]
    fn one_worker_that_has_help_gains_less_from_a_second() {
        let helped = account(1, [2.138, 2.21, 0.934, 0.0, 0.0], &[]);
        let loss = Loss::of(&helped, &account(2, [1.526, 2.047, 0.824, 0.182, 0.0], &[]));
        assert_eq!(loss.cause, Cause::Helped { workers: 1, processors: helped.busy() });
        assert!(
            loss.sentence().contains("already with 1 worker the command keeps 1.5 processors busy"),
            "{}",
            loss.sentence()
        );
        // One that works alone gains as much as is expected.
        assert_eq!(Loss::of(&alone(), &account(2, [0.51, 0.99, 0.02, 0.0, 0.0], &[])).cause, Cause::None);
    }

    /// The cost of a lock was once divided into sleep, spinning and system calls, of which none stood out.
    #[test]
    fn all_that_a_lock_costs_counts_for_it() {
        let few = account(1, [0.797, 0.796, 0.0, 0.0, 0.0], &[]);
        let many = account(2, [1.035, 1.174, 0.384, 0.031, 0.0], &[(Wait::Lock, 0.482)]);
        let of = |waits| Loss::of(&few, &counts(many.clone(), waits, 85));
        assert_eq!(of(45_000).cause, Cause::Lock);
        assert!(of(45_000).sentence().contains("98 % of that is sleep for a lock, and time to spin"));
        assert_eq!(of(2_000).cause, Cause::Mixed);
    }

    /// `bench/zoo.sh`'s files: the account could not tell what the kernel did.
    #[test]
    fn samples_tell_what_the_kernel_does() {
        let with = |account: Account, works: &[(KernelWork, f64)]| {
            let mut kernel = [0.0; 9];
            works.iter().for_each(|(work, seconds)| kernel[work.place()] = *seconds);
            Account { kernel, ..account }
        };
        let few = with(account(1, [1.02, 0.04, 0.98, 0.0, 0.0], &[]), &[(KernelWork::Files, 0.98)]);
        let slept = |seconds| account(2, [0.65, 0.04, 1.2, 0.04, 0.0], &[(Wait::Disk, seconds)]);
        let files = with(slept(0.0), &[(KernelWork::Files, 1.19), (KernelWork::Processes, 0.01)]);
        let loss = Loss::of(&few, &files);
        assert_eq!(loss.cause, Cause::KernelWork(KernelWork::Files));
        let said = "of that is system time for files and folders: that is what stops them (seen in samples).";
        assert!(loss.sentence().contains(said), "{}", loss.sentence());
        // No part stands out, but all of them are for files.
        let slept = with(Account { waiting: 0.0, ..slept(0.2) }, &[(KernelWork::Files, 1.2)]);
        assert_eq!(Loss::of(&few, &slept).cause, Cause::Shared(Object::Files));
        // Recorded of its faults: page faults and munmap together are most of what the kernel does.
        let works = [(KernelWork::PageFaults, 0.929), (KernelWork::AddressSpace, 0.157)];
        let faults = with(account(1, [1.148, 0.028, 1.116, 0.004, 0.0], &[]), &works);
        let works = [(KernelWork::PageFaults, 1.04), (KernelWork::AddressSpace, 0.233), (KernelWork::Other, 0.095)];
        let many = with(account(2, [0.841, 0.067, 1.412, 0.071, 0.0], &[(Wait::Disk, 0.132)]), &works);
        assert_eq!(Loss::of(&faults, &many).cause, Cause::Shared(Object::AddressSpace));
        let two = with(
            account(2, [0.65, 0.04, 1.2, 0.04, 0.0], &[]),
            &[(KernelWork::Files, 1.08), (KernelWork::Pipes, 0.12)],
        );
        assert_eq!(Loss::of(&few, &two).cause, Cause::Kernel);
    }

    /// `bench/zoo.sh`'s allocator: a lock whose waits ended before a thread slept, so that most of its cost was in the kernel.
    #[test]
    fn a_lock_for_which_threads_hardly_sleep_is_a_lock() {
        let few = account(1, [0.382, 0.378, 0.004, 0.0, 0.0], &[]);
        let mut many = account(2, [2.104, 2.015, 1.876, 0.0, 0.0], &[(Wait::Lock, 0.317)]);
        assert_eq!(Loss::of(&few, &many).cause, Cause::Mixed);
        many.kernel[KernelWork::Futex.place()] = 1.876;
        assert_eq!(Loss::of(&few, &many).cause, Cause::Lock);
    }

    /// `bench/zoo.sh`'s pipe, where the kernel does not count waits for processors: its workers were once said to have none.
    #[test]
    fn sleep_beside_an_estimated_wait_for_processors_leaves_the_cause_open() {
        let few = account(1, [1.24, 1.113, 0.126, 0.0, 0.0], &[]);
        let pipe = |is_estimate| {
            let many = account(2, [1.076, 1.158, 0.076, 0.708, 0.014], &[(Wait::Pipe, 0.195)]);
            Loss::of(&few, &Account { is_estimate, ..many }).cause
        };
        assert_eq!((pipe(true), pipe(false)), (Cause::Mixed, Cause::Crowded));
        let quota = account(2, [1.224, 1.215, 0.0, 1.128, 0.029], &[(Wait::Lock, 0.074)]);
        assert_eq!(Loss::of(&few, &Account { is_estimate: true, ..quota }).cause, Cause::Crowded);
    }

    /// Page faults that grew slower, but not more, were once no cause.
    #[test]
    fn slower_page_faults_are_page_faults() {
        let few = counts(account(1, [0.77, 0.05, 0.72, 0.0, 0.0], &[]), 2, 393_295);
        let many = account(2, [0.75, 0.06, 1.44, 0.0, 0.0], &[]);
        assert_eq!(Loss::of(&few, &counts(many.clone(), 16, 393_299)).cause, Cause::Faults);
        // The kernel did something else before, and does more of it.
        let few = Account { counted: Counted { faults: 1_000, ..few.counted }, ..few };
        assert_eq!(Loss::of(&few, &counts(many, 16, 1_200)).cause, Cause::Kernel);
    }
}
