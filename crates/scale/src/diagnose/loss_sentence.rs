//! A loss and its cause in plain words.

use gristmill_counters::sleep::Sleep;

use super::account::TimePart;
use super::cause_kinds::{Cause, Object};
use super::loss::{Loss, QUEUE_MIN};
use gristmill_report::text::counted;

/// The threads that wait for a disk on average, above which that is mentioned beside a lock.
const ON_DISK_MIN: f64 = 0.25;

impl Loss {
    /// Returns the loss and its cause in a sentence.
    pub fn sentence(&self) -> String {
        self.explained(&self.meaning())
    }

    /// Returns the loss in a sentence, explained by these words instead of the cause that the account suggests.
    pub fn explained(&self, meaning: &str) -> String {
        match (self.cause, self.grown.first()) {
            (Cause::Busy { workers, processors, queue }, _) => {
                let why = if queue >= QUEUE_MIN {
                    &format!(
                        "{queue:.1} threads wait for a processor besides (measured): it has more threads than it is told"
                    )
                } else {
                    "hardly a thread waits for one (measured): it has more threads than it is told, or does not use the number"
                };
                format!(
                    "With {} workers nothing is gained, because already with {} the command keeps {processors:.1} processors busy, and \
                     {why}.",
                    self.workers,
                    counted(workers, "worker")
                )
            }
            (Cause::Helped { workers, processors }, _) => format!(
                "With {} workers hardly any processor time is lost, but already with {} the command keeps {processors:.1} processors \
                 busy: it has threads beside its workers, so more workers gain less than their number (measured).",
                self.workers,
                counted(workers, "worker")
            ),
            (Cause::None, _) | (_, None) => format!("With {} workers there is hardly a loss to explain.", self.workers),
            (_, Some((part, more))) => {
                let (more, named) = self.named(*part, *more);
                format!(
                    "With {} workers {:.0} % of their time is lost; {:.0} % of that is {named}: {meaning}.",
                    self.workers,
                    self.share * 100.0,
                    more / self.all() * 100.0,
                )
            }
        }
    }

    /// Names what makes up most of the loss, with its thread-seconds; `part` grew most, by `more`.
    fn named(&self, part: TimePart, more: f64) -> (f64, String) {
        match (self.cause, part) {
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
            (_, TimePart::User) => (more, "more user time for the same work".to_owned()),
            (_, TimePart::System) => (more, "system time".to_owned()),
            (_, TimePart::Absent) => (more, "time before workers began or after they ended".to_owned()),
            _ => (more, part.to_string()),
        }
    }

    /// Returns what workers slept for on futexes, according to the samples.
    fn lock_or_queue(&self) -> &'static str {
        let is_lock = self.grown.iter().any(|(part, _)| *part == TimePart::Blocked(Sleep::Lock));
        if is_lock { "a lock" } else { "a lock or a queue" }
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
            Cause::Blocked(Sleep::FileLock | Sleep::Database | Sleep::Semaphore) => {
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

    fn unfed(&self, wait: Option<Sleep>) -> String {
        let wait = wait.map_or_else(String::new, |wait| format!(", as for {wait}"));
        format!(
            "workers wait for work or for each other, and no thread computes for {:.0} % of the time: what they wait for is made by \
             none, or by one that itself sleeps{wait} (inferred)",
            self.idle * 100.0
        )
    }
}
