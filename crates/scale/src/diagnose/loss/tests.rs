//! Accounts of programs whose limit is known, and the causes that are named.

use super::*;
use crate::diagnose::account::{Counted, SLEEPS};

/// A run of two workers, or of one, as the report shows it: seconds, user, system, waiting and absent.
pub(crate) fn account(
    workers: u64,
    [seconds, user, system, waiting, absent]: [f64; 5],
    asleep: &[(Sleep, f64)],
) -> Account {
    let counted = Counted { workers, seconds, user, system, ..Counted::default() };
    let mut blocked = [0.0; SLEEPS.len()];
    for (wait, seconds) in asleep {
        blocked[SLEEPS.iter().position(|other| other == wait).expect("all are listed")] = *seconds;
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
    assert_eq!(cause(&counts(asleep(Sleep::Signal), 40, 0)), Cause::Imbalance);
    assert_eq!(cause(&counts(asleep(Sleep::Lock), 40, 0)), Cause::Held);
    assert_eq!(cause(&counts(asleep(Sleep::Lock), 90_000, 0)), Cause::Lock);
    assert_eq!(cause(&counts(asleep(Sleep::Disk), 900, 0)), Cause::Blocked(Sleep::Disk));
    let kernel = account(4, [1.0, 1.0, 3.0, 0.0, 0.0], &[]);
    assert_eq!(cause(&counts(kernel.clone(), 10, 3_000_000)), Cause::Faults);
    assert_eq!(cause(&counts(kernel.clone(), 3_000_000, 10)), Cause::Switches);
    assert_eq!(cause(&counts(kernel, 10, 10)), Cause::Kernel);
    let three = [(Sleep::Lock, 1.0), (Sleep::Disk, 1.0), (Sleep::Pipe, 1.0)];
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
        ..counts(account(2, [0.503, 0.466, 0.031, 0.015, 0.039], &[(Sleep::Signal, 0.456)]), 134, 1_952)
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
    let few = account(1, [1.0, 0.2, 0.1, 0.0, 0.0], &[(Sleep::Disk, 0.7)]);
    let tries = [(Sleep::Disk, 0.75), (Sleep::Database, 0.6), (Sleep::Clock, 0.35)];
    let loss = Loss::of(&few, &account(2, [1.0, 0.2, 0.1, 0.0, 0.0], &tries));
    assert_eq!(loss.cause, Cause::Blocked(Sleep::Database));
    let said = "blocked by sqlite's lock on a database: that is what stops them, and meanwhile a worker waits for a disk or file system \
                for 75 % of the time (seen in samples).";
    assert!(loss.sentence().contains(said), "{}", loss.sentence());
    let asleep = |wait| account(2, [1.0, 1.0, 0.0, 0.0, 0.0], &[(wait, 1.0)]);
    for wait in [Sleep::FileLock, Sleep::Semaphore, Sleep::Message] {
        assert_eq!(cause(&asleep(wait)), Cause::Blocked(wait));
    }
    assert_eq!(cause(&counts(asleep(Sleep::Clock), 900, 0)), Cause::Polling);
    assert_eq!(cause(&counts(asleep(Sleep::Clock), 3, 0)), Cause::Blocked(Sleep::Clock));
}

/// Workers of which each did the whole work were said to be slow for one of five reasons.
#[test]
fn work_that_each_worker_does_again_is_named() {
    let cause_of = |seconds, user, faults: [u64; 2]| {
        let few = counts(account(1, [1.0, 0.95, 0.05, 0.0, 0.0], &[]), 9, faults[0]);
        Loss::of(&few, &counts(account(2, [seconds, user, 0.1, 0.0, 0.0], &[]), 18, faults[1])).cause
    };
    assert_eq!(cause_of(1.0, 1.9, [20_000, 40_000]), Cause::Repeated);
    // The same memory, twice the time; a process starts, but no more; and a part of the work only.
    assert_eq!(cause_of(1.0, 1.9, [20_000, 20_100]), Cause::Slower);
    assert_eq!(cause_of(1.0, 1.9, [600, 1_200]), Cause::Slower);
    assert_eq!(cause_of(0.7, 1.3, [20_000, 40_000]), Cause::Slower);
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

/// `go build`, whose compiler has threads of its own, was 1.4 times as fast with two workers, and had "hardly a loss
/// to explain".
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
    let many = account(2, [1.035, 1.174, 0.384, 0.031, 0.0], &[(Sleep::Lock, 0.482)]);
    let loss_of = |waits| Loss::of(&few, &counts(many.clone(), waits, 85));
    assert_eq!(loss_of(45_000).cause, Cause::Lock);
    assert!(loss_of(45_000).sentence().contains("98 % of that is sleep for a lock, and time to spin"));
    assert_eq!(loss_of(2_000).cause, Cause::Mixed);
}

/// `bench/zoo.sh`'s files: the account could not tell what the kernel did.
#[test]
fn samples_tell_what_the_kernel_does() {
    let with = |account: Account, works: &[(KernelWork, f64)]| {
        let mut kernel = [0.0; 9];
        works.iter().for_each(|(work, seconds)| kernel[*work as usize] = *seconds);
        Account { kernel, ..account }
    };
    let few = with(account(1, [1.02, 0.04, 0.98, 0.0, 0.0], &[]), &[(KernelWork::Files, 0.98)]);
    let slept = |seconds| account(2, [0.65, 0.04, 1.2, 0.04, 0.0], &[(Sleep::Disk, seconds)]);
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
    let many = with(account(2, [0.841, 0.067, 1.412, 0.071, 0.0], &[(Sleep::Disk, 0.132)]), &works);
    assert_eq!(Loss::of(&faults, &many).cause, Cause::Shared(Object::AddressSpace));
    let two =
        with(account(2, [0.65, 0.04, 1.2, 0.04, 0.0], &[]), &[(KernelWork::Files, 1.08), (KernelWork::Pipes, 0.12)]);
    assert_eq!(Loss::of(&few, &two).cause, Cause::Kernel);
}

/// `bench/zoo.sh`'s allocator: a lock whose waits ended before a thread slept, so that most of its cost was in the
/// kernel.
#[test]
fn a_lock_for_which_threads_hardly_sleep_is_a_lock() {
    let few = account(1, [0.382, 0.378, 0.004, 0.0, 0.0], &[]);
    let mut many = account(2, [2.104, 2.015, 1.876, 0.0, 0.0], &[(Sleep::Lock, 0.317)]);
    assert_eq!(Loss::of(&few, &many).cause, Cause::Mixed);
    many.kernel[KernelWork::Futex as usize] = 1.876;
    assert_eq!(Loss::of(&few, &many).cause, Cause::Lock);
}

/// `bench/zoo.sh`'s pipe, where the kernel does not count waits for processors: its workers were once said to have
/// none.
#[test]
fn sleep_beside_an_estimated_wait_for_processors_leaves_the_cause_open() {
    let few = account(1, [1.24, 1.113, 0.126, 0.0, 0.0], &[]);
    let pipe = |is_estimate| {
        let many = account(2, [1.076, 1.158, 0.076, 0.708, 0.014], &[(Sleep::Pipe, 0.195)]);
        Loss::of(&few, &Account { is_estimate, ..many }).cause
    };
    assert_eq!((pipe(true), pipe(false)), (Cause::Mixed, Cause::Crowded));
    let quota = account(2, [1.224, 1.215, 0.0, 1.128, 0.029], &[(Sleep::Lock, 0.074)]);
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
