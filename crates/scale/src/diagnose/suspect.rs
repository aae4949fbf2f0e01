//! Suspects: the causes of a loss between which an account cannot decide, and what each of them predicts.

use std::fmt;

use gristmill_counters::sleep::Sleep;

use crate::diagnose::account::TimePart;
use crate::diagnose::cause_kinds::Cause;
use crate::diagnose::change::Change;
use crate::diagnose::kernel_work::KernelWork;
use crate::diagnose::loss::Loss;

/// A possible cause of a loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Suspect {
    /// The bandwidth of the memory, or a cache that all share.
    Memory,
    /// Cache lines that several workers write.
    SharedLines,
    /// Processors that are slower while others work.
    SharedCores,
    /// Workers that wait without sleep.
    Spinning,
    /// The workers together have more to do than one has.
    MoreWork,
    /// A lock that several workers want.
    Contention,
    /// Page faults of memory that is asked for and given back.
    FreshMemory,
    /// Huge pages, which must be found and cleared.
    HugePages,
    /// The lock of the allocator.
    Allocator,
    /// The input comes no faster.
    Reading,
    /// Workers of the engine are processes, each with page tables of its own.
    Processes,
    /// Pages of the engine that are touched for the first time.
    FirstTouch,
}

/// The prediction of a suspect about a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prediction {
    /// Most of the loss vanishes; beside other processes, most of it appears.
    Effect,
    /// The loss stays; beside other processes, none appears.
    NoEffect,
    /// Either may happen.
    Either,
}

/// The smallest share of the loss that a part must have, to suspect what it would be the cause of.
const SHARE_MIN: f64 = 0.15;

impl Suspect {
    /// Returns the suspects of a loss; none if its cause is certain, or no experiment here can tell more.
    pub fn of(loss: &Loss) -> Vec<Suspect> {
        let mut all = Suspect::of_cause(loss);
        // Without memory in common, nobody writes the cache lines of another or spins for its lock.
        all.retain(|suspect| loss.shares_memory || !matches!(suspect, Suspect::SharedLines | Suspect::Spinning));
        all
    }

    fn of_cause(loss: &Loss) -> Vec<Suspect> {
        use Suspect::*;
        match loss.cause {
            Cause::Slower => vec![Memory, SharedLines, SharedCores, Spinning, MoreWork],
            Cause::Lock | Cause::Switches => vec![Contention, Allocator, MoreWork],
            Cause::KernelWork(KernelWork::Futex) => vec![Contention, Allocator, MoreWork],
            Cause::Kernel
            | Cause::KernelWork(_)
            | Cause::Shared(_)
            | Cause::Faults
            | Cause::Blocked(Sleep::AddressSpace) => {
                vec![Contention, FreshMemory, HugePages, Allocator, Memory, SharedCores, MoreWork]
            }
            Cause::Mixed => {
                // What hardly grew is not the cause, whatever an experiment on short runs seems to show.
                let whole: f64 = loss.grown.iter().map(|(_, more)| more).sum();
                let has = |part: fn(&TimePart) -> bool| {
                    loss.grown.iter().any(|(grown, more)| part(grown) && *more >= SHARE_MIN * whole)
                };
                let mut all = vec![Memory, SharedLines, SharedCores, Spinning, MoreWork];
                if has(|part| matches!(part, TimePart::Blocked(wait) if wait.is_on_futex())) {
                    all.extend([Contention, Allocator]);
                }
                if has(|part| *part == TimePart::System) {
                    all.extend([FreshMemory, HugePages]);
                }
                all
            }
            _ => Vec::new(),
        }
    }

    /// Returns the suspects that only the engine's own applications have.
    pub fn of_engine(loss: &Loss) -> Vec<Suspect> {
        match loss.cause {
            Cause::None | Cause::Busy { .. } | Cause::Helped { .. } | Cause::Crowded => Vec::new(),
            _ => vec![Suspect::Reading, Suspect::Processes, Suspect::FirstTouch],
        }
    }

    /// Returns what it predicts of a change.
    ///
    /// On half the processors workers take turns, so that half as many use the memory, a lock or a cache line at once.
    /// A worker that spins then does so for the rest of its turn, and work that was added stays.
    pub fn predicts(self, change: Change) -> Prediction {
        use Prediction::{Effect, Either, NoEffect};
        use Suspect::*;
        match (change, self) {
            (Change::HalfProcessors, Memory | SharedLines | Contention | Allocator) => Effect,
            (Change::HalfProcessors, MoreWork) => NoEffect,
            (Change::HalfProcessors, Spinning) => NoEffect,
            (Change::BesideComputing, SharedCores) => Effect,
            (Change::BesideReading, Memory) => Effect,
            (Change::HugePages, FreshMemory) => Effect,
            (Change::SmallPages, HugePages) => Effect,
            (Change::OtherAllocator, Allocator) => Effect,
            (Change::InputInMemory, Reading) => Effect,
            (Change::Threads, Processes) => Effect,
            (Change::PreparedPages, FirstTouch) => Effect,
            _ => Either,
        }
    }

    /// Returns the suspect of which it is a special case.
    pub(crate) fn general(self) -> Option<Suspect> {
        (self == Suspect::Allocator).then_some(Suspect::Contention)
    }

    /// Returns the changes that tell it from others.
    pub fn changes(self) -> &'static [Change] {
        match self {
            Suspect::Memory => &[Change::HalfProcessors, Change::BesideComputing, Change::BesideReading],
            Suspect::SharedCores => &[Change::BesideComputing],
            Suspect::FreshMemory => &[Change::HugePages],
            Suspect::HugePages => &[Change::SmallPages],
            Suspect::Allocator => &[Change::OtherAllocator],
            Suspect::Reading => &[Change::InputInMemory],
            Suspect::Processes => &[Change::Threads],
            Suspect::FirstTouch => &[Change::PreparedPages],
            _ => &[Change::HalfProcessors],
        }
    }
}

impl fmt::Display for Suspect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Suspect::Memory => "memory bandwidth, or caches that the workers share",
            Suspect::SharedLines => {
                "cache lines that several workers write (false sharing, or a counter, lock or queue in common)"
            }
            Suspect::SharedCores => "processors that are slower while others work (shared cores, frequency)",
            Suspect::Spinning => "spinning for a lock that others hold for long",
            Suspect::MoreWork => "work that grows with the workers",
            Suspect::Contention => {
                "workers that want the same lock or queue, of the program, of its allocator or of the kernel"
            }
            Suspect::FreshMemory => "page faults of memory that is asked for and given back",
            Suspect::HugePages => "huge pages, which the kernel must find and clear",
            Suspect::Allocator => "the lock of the allocator",
            Suspect::Reading => "reading the input",
            Suspect::Processes => "workers that are processes, each with page tables of its own",
            Suspect::FirstTouch => "pages of the engine that are touched for the first time",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnose::account::{Account, Counted, Seen};

    /// Work that grows with the workers was never named: spinning looks alike, though programs that share no memory
    /// cannot spin.
    #[test]
    fn processes_without_common_memory_neither_spin_nor_share_cache_lines() {
        let suspects = |are_apart| {
            let account = |workers, user| {
                let counted = Counted { workers, seconds: 1.0, user, ..Counted::default() };
                let mut seen = Seen::default();
                seen.are_apart = are_apart;
                Account::of(counted, &seen)
            };
            Suspect::of(&Loss::of(&account(1, 1.0), &account(2, 1.9)))
        };
        assert_eq!(suspects(true), [Suspect::Memory, Suspect::SharedCores, Suspect::MoreWork]);
        assert_eq!(suspects(false).len(), 5);
    }
}
