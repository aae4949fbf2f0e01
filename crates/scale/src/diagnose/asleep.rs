//! Sleep that grew with the workers: its object, and what it says of the cause.
//!
//! The same sleep may be the fight for a lock, or the lack of work. Where the samples of the waits leave that open,
//! the shape of the run decides: one thread that is always busy, nobody who computes, workers that run in turns.

use gristmill_counters::sleep::Sleep;

use crate::diagnose::account::{Account, SLEEPS, TimePart};
use crate::diagnose::cause_kinds::Cause;

/// The waits per second of a worker above which a lock is the cause.
const WAITS_OF_LOCK: f64 = 1000.0;
/// The waits per second of sleep above which workers wait for each piece of work.
const WAITS_OF_WORK: f64 = 50.0;
/// The waits per second of sleep above which workers sleep only until they look again.
const WAITS_OF_POLLING: f64 = 20.0;
/// The share of the time that a thread must have a processor to count as always busy.
const ALWAYS_MIN: f64 = 0.8;
/// The share of the time without runnable threads above which the workers do not wait for one that computes.
const IDLE_MIN: f64 = 0.3;
/// The share of the sleep on futexes in operations of one kind that makes all of it count as that.
const KIND_MIN: f64 = 2.0 / 3.0;
/// The sleep beside a locked file, as a multiple of other sleep for the clock, above which all of it is for the lock:
/// it may be free when it is looked at, and taken again before the next try.
const TRIED_MIN: f64 = 0.25;
/// The largest share of the time with several runnable threads in which workers count as taking turns.
const TOGETHER_MAX: f64 = 0.15;
/// The largest part of the busiest thread, as a multiple of an equal part, for which all had their turn.
const UNEVEN_MAX: f64 = 1.3;

/// Returns true for sleep on a futex.
pub(crate) fn is_on_futex(part: TimePart) -> bool {
    matches!(part, TimePart::Blocked(wait) if wait.is_on_futex())
}

/// Adds up sleep that is for one object, though samples see it as several: on futexes, and in the pauses between tries
/// to lock a file.
pub(crate) fn joined(grown: Vec<(TimePart, f64)>) -> Vec<(TimePart, f64)> {
    let growth =
        |wait: Sleep| grown.iter().find(|(part, _)| *part == TimePart::Blocked(wait)).map_or(0.0, |(_, more)| *more);
    let futexes = growth(Sleep::Lock) + growth(Sleep::Signal) + growth(Sleep::Futex);
    let is_most = |wait: &Sleep| growth(*wait) >= KIND_MIN * futexes;
    let on_futexes = [Sleep::Lock, Sleep::Signal].into_iter().find(is_most).unwrap_or(Sleep::Futex);
    let tried = growth(Sleep::FileLock) + growth(Sleep::Database) >= TRIED_MIN * growth(Sleep::Clock);
    let locked = if growth(Sleep::Database) >= growth(Sleep::FileLock) { Sleep::Database } else { Sleep::FileLock };
    let name = |wait: Sleep| match wait {
        Sleep::Lock | Sleep::Signal | Sleep::Futex => on_futexes,
        Sleep::FileLock | Sleep::Database => locked,
        Sleep::Clock if tried => locked,
        other => other,
    };
    let mut all: Vec<(TimePart, f64)> = Vec::new();
    for (part, more) in &grown {
        let part = if let TimePart::Blocked(wait) = part { TimePart::Blocked(name(*wait)) } else { *part };
        match all.iter_mut().find(|(other, _)| *other == part) {
            Some((_, sum)) => *sum += more,
            None => all.push((part, *more)),
        }
    }
    all
}

/// Returns the cause of sleep that grew by `more`, in which threads began to wait `waits` times more.
pub(crate) fn of_sleep(wait: Sleep, more: f64, waits: f64, many: &Account) -> Cause {
    let is_often = waits > WAITS_OF_LOCK * more;
    let waits_of_all = many.counted.waits as f64 / many.asleep().max(f64::MIN_POSITIVE);
    let one_is_busy = waits_of_all > WAITS_OF_WORK && many.busy_most().is_some_and(|share| share >= ALWAYS_MIN);
    match wait {
        Sleep::Lock if is_often => Cause::Lock,
        Sleep::Lock => Cause::Held,
        Sleep::Signal | Sleep::Futex | Sleep::Message | Sleep::Pipe | Sleep::Events if one_is_busy => Cause::Starved,
        Sleep::Signal | Sleep::Futex if many.idle >= IDLE_MIN => Cause::Unfed(asleep_besides(many)),
        Sleep::Signal | Sleep::Futex if is_often => Cause::Lock,
        Sleep::Signal | Sleep::Futex if take_turns(many) => Cause::Turns,
        Sleep::Signal | Sleep::Futex => Cause::Imbalance,
        Sleep::Clock if waits_of_all > WAITS_OF_POLLING => Cause::Polling,
        Sleep::Other | Sleep::Events => Cause::Asleep,
        _ => Cause::Blocked(wait),
    }
}

/// Returns what threads sleep for most, other than futexes.
fn asleep_besides(account: &Account) -> Option<Sleep> {
    let others = SLEEPS.into_iter().zip(account.blocked).filter(|(wait, _)| !wait.is_on_futex());
    others.filter(|(_, seconds)| *seconds > 0.0).max_by(|a, b| a.1.total_cmp(&b.1)).map(|(wait, _)| wait)
}

/// Returns true if hardly ever two workers ran at once, although no thread did most of the work.
fn take_turns(many: &Account) -> bool {
    many.together < TOGETHER_MAX && many.busiest * many.counted.workers as f64 <= UNEVEN_MAX
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnose::loss::Loss;
    use crate::diagnose::loss::tests::{account, alone, counts};

    /// Workers that starve for one producer were said to fight for a lock, or to be at a barrier.
    #[test]
    fn workers_that_starve_for_one_producer_do_not_fight_for_a_lock() {
        // The producer has a processor all the time; two workers share the little that it makes.
        let fed = |wait, busiest, waits| {
            let many = account(2, [1.0, 1.15, 0.05, 0.0, 0.0], &[(wait, 0.8)]);
            counts(Account { together: 0.2, busiest, ..many }, waits, 100)
        };
        let few = counts(account(1, [1.0, 1.15, 0.05, 0.0, 0.0], &[]), 2_900, 90);
        for wait in [Sleep::Signal, Sleep::Futex, Sleep::Pipe] {
            let loss = Loss::of(&few, &fed(wait, 0.83, 3_000));
            assert_eq!(loss.cause, Cause::Starved, "{wait}");
            assert!(
                loss.sentence().contains("one thread is busy all the time, and the others wait for it"),
                "{loss:?}"
            );
        }
        // They wait for a lock, or the work is spread evenly, or nobody knows who is busy.
        assert_eq!(Loss::of(&few, &fed(Sleep::Lock, 0.83, 3_000)).cause, Cause::Held);
        assert_eq!(Loss::of(&few, &fed(Sleep::Lock, 0.83, 90_000)).cause, Cause::Lock);
        assert_eq!(Loss::of(&few, &fed(Sleep::Signal, 0.4, 3_000)).cause, Cause::Imbalance);
        assert_eq!(Loss::of(&few, &fed(Sleep::Signal, 1.0, 90_000)).cause, Cause::Lock);
    }

    /// A producer that sleeps between two pieces of work lets its workers run in turns, which was said to be a lock.
    #[test]
    fn a_producer_that_sleeps_is_no_lock() {
        let few = account(1, [1.0, 0.3, 0.0, 0.0, 0.0], &[(Sleep::Signal, 0.4), (Sleep::Clock, 0.3)]);
        let many = account(2, [1.0, 0.3, 0.0, 0.0, 0.0], &[(Sleep::Signal, 1.3), (Sleep::Clock, 0.4)]);
        let loss = Loss::of(&few, &counts(Account { together: 0.02, busiest: 0.45, idle: 0.7, ..many }, 900, 90));
        assert_eq!(loss.cause, Cause::Unfed(Some(Sleep::Clock)));
        let said = "no thread computes for 70 % of the time: what they wait for is made by none, or by one that itself sleeps, as for \
                    the clock (sleep)";
        assert!(loss.sentence().contains(said), "{}", loss.sentence());
    }

    /// The costs of a queue under a mutex fell into parts of which none stood out.
    #[test]
    fn sleep_on_futexes_counts_together_and_is_named_by_most_of_it() {
        let parts = |lock, signal| {
            let asleep = [(Sleep::Lock, lock), (Sleep::Signal, signal)];
            Loss::of(&alone(), &account(4, [1.0, 0.99, 0.01, 0.0, 0.0], &asleep)).grown[0]
        };
        let near = |(part, more): (TimePart, f64), wait| part == TimePart::Blocked(wait) && (more - 3.0).abs() < 1e-9;
        assert!(
            near(parts(0.3, 2.7), Sleep::Signal)
                && near(parts(2.7, 0.3), Sleep::Lock)
                && near(parts(1.6, 1.4), Sleep::Futex)
        );
    }
}
