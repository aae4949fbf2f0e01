//! The part of the workers' time that is lost, and what causes that.
//!
//! 1. Already the fewest workers keep as many processors busy as the most: there is nothing to gain.
//! 2. A part of the time stands out among those that grew: its cause is looked for in the kernel's counts and in how
//!    the threads took turns. Sleep on a futex is for a lock if most threads slept in operations of locks. Otherwise
//!    one thread that is busy all the time while the others sleep hands out too little work, and threads that run one
//!    after the other share a lock.
//! 3. No part stands out, but those that belong to one object do together: time in the kernel for it, and sleep for it.
//! 4. Otherwise the cause cannot be told.

use gristmill_counters::sleep::Sleep;

use crate::diagnose::account::{Account, TimePart, place};
use crate::diagnose::asleep::{is_on_futex, joined, of_sleep};
use crate::diagnose::cause_kinds::{Cause, Object};
use crate::diagnose::kernel_work::KernelWork;

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
    pub grown: Vec<(TimePart, f64)>,
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
    fn costs(self) -> (Sleep, &'static [KernelWork]) {
        match self {
            Object::AddressSpace => {
                (Sleep::AddressSpace, &[KernelWork::PageFaults, KernelWork::AddressSpace, KernelWork::Shootdowns])
            }
            Object::Files => (Sleep::Disk, &[KernelWork::Files]),
            Object::Pipes => (Sleep::Pipe, &[KernelWork::Pipes]),
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
pub(super) const QUEUE_MIN: f64 = 0.5;
/// The most sleep, as a share of an estimated wait for processors, beside which that counts: threads that sleep and
/// wake all the time look runnable in samples.
const ASLEEP_MAX: f64 = 0.15;
/// The growth of processor time and page faults, as a share of that of the workers, above which each does the whole
/// work.
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
        let on_disk = many.blocked[place(Sleep::Disk)] / many.counted.seconds.max(f64::MIN_POSITIVE);
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
        let sleeps = matches!(self.standing_out(), Some((TimePart::Blocked(_), _))) && few.queue < QUEUE_MIN;
        if is_busy_already(few, many) && !sleeps {
            return Cause::Busy { workers: few.counted.workers, processors: few.busy(), queue: few.queue };
        }
        if self.share < LOSS_MIN {
            let (workers, processors) = (few.counted.workers, few.busy());
            let is_helped = processors > workers as f64 + BUSY_MIN && gains_less(few, many);
            return if is_helped { Cause::Helped { workers, processors } } else { Cause::None };
        }
        match self.standing_out() {
            Some((TimePart::User | TimePart::System, _)) | None if is_repeated(few, many) => Cause::Repeated,
            Some((TimePart::System, more)) if !self.grown_in_kernel.is_empty() => self.in_kernel(more),
            Some((TimePart::Waiting, more)) if many.is_estimate && many.asleep() > ASLEEP_MAX * more => Cause::Mixed,
            Some((part, more)) => of_part(part, more, few, many),
            None if self.is_of_lock(few, many) => Cause::Lock,
            None => self.object().map_or(Cause::Mixed, Cause::Shared),
        }
    }

    /// Returns the part that makes up more than half of the loss, if there is one.
    pub(super) fn standing_out(&self) -> Option<(TimePart, f64)> {
        self.grown.first().copied().filter(|(_, more)| *more >= CAUSE_MIN * self.all())
    }

    /// Returns the cause of system time that grew by `more`, judging by samples.
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

    /// Returns the growth of the sleep for an object and of the kernel's work for it.
    pub(super) fn grown_for(&self, object: Object) -> f64 {
        let (wait, works) = object.costs();
        self.grown_by(&[TimePart::Blocked(wait)]) + self.grown_by_work(works)
    }

    pub(super) fn grown_by_work(&self, works: &[KernelWork]) -> f64 {
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
        matches!(
            self.cause,
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
                | Cause::Crowded
        )
    }

    /// Returns true if the account names a cause, and does not only say which part of the time grew.
    pub fn is_named(&self) -> bool {
        self.is_by_rest() && !matches!(self.cause, Cause::Lock | Cause::Asleep | Cause::Blocked(Sleep::AddressSpace))
    }

    fn grown_by(&self, parts: &[TimePart]) -> f64 {
        self.grown.iter().filter(|(part, _)| parts.contains(part)).map(|(_, more)| more).sum()
    }

    /// Returns the growth of all that a lock costs: sleep, and time to spin and to wake others.
    pub(super) fn grown_by_lock(&self) -> f64 {
        let costs = |part: TimePart| is_on_futex(part) || matches!(part, TimePart::User | TimePart::System);
        self.grown.iter().filter(|(part, _)| costs(*part)).map(|(_, more)| more).sum()
    }

    pub(super) fn all(&self) -> f64 {
        self.grown.iter().map(|(_, more)| more).sum()
    }
}

/// Returns the kinds of system time that grew, the largest growth first, if they are known of both runs. A run that
/// hardly was in the kernel has no samples.
fn grown_in_kernel(few: &Account, many: &Account) -> Vec<(KernelWork, f64)> {
    let (before, now) = (few.kernel_work(), many.kernel_work());
    if now.is_empty() || before.is_empty() && few.counted.system > LOSS_MIN * many.counted.system {
        return Vec::new();
    }
    let earlier =
        |work: KernelWork| before.iter().find(|(other, _)| *other == work).map_or(0.0, |(_, seconds)| *seconds);
    let mut grown: Vec<(KernelWork, f64)> = now
        .into_iter()
        .map(|(work, seconds)| (work, seconds - earlier(work)))
        .filter(|(_, more)| *more > 0.0)
        .collect();
    grown.sort_by(|a, b| b.1.total_cmp(&a.1));
    grown
}

/// Returns true if each worker uses as much processor time, and touches as much memory for the first time, as the
/// fewest together.
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

fn of_part(part: TimePart, more: f64, few: &Account, many: &Account) -> Cause {
    let waits = many.counted.waits.saturating_sub(few.counted.waits) as f64;
    match part {
        TimePart::Absent => Cause::Serial,
        TimePart::Waiting => Cause::Crowded,
        TimePart::User => Cause::Slower,
        TimePart::Blocked(wait) => of_sleep(wait, more, waits, many),
        TimePart::System if are_of_kernel(FAULTS_MIN, more, few, many, |account| account.counted.faults) => {
            Cause::Faults
        }
        TimePart::System if are_of_kernel(SWITCHES_MIN, more, few, many, |account| account.counted.waits) => {
            Cause::Switches
        }
        TimePart::System => Cause::Kernel,
    }
}

/// Returns true if events, of which at least `least` fill a second of kernel time, explain why it grew by `more`: there
/// are more of them, or they fill the kernel's time of both runs and each takes longer.
fn are_of_kernel(least: f64, more: f64, few: &Account, many: &Account, count: impl Fn(&Account) -> u64) -> bool {
    let fill = |account: &Account| count(account) as f64 > least * account.counted.system;
    count(many).saturating_sub(count(few)) as f64 > least * more || fill(few) && fill(many)
}

#[cfg(test)]
pub(crate) mod tests;
