//! Access to counters: those that can be read on this machine, and why others cannot.
//!
//! The access determines how much a measurement can tell, in three tiers: A has counters of the processor, B those of
//! the kernel, C neither.

use std::fmt;
use std::io;

use gristmill_os::perf::{Counter, Event, Space};
use rustix::io::Errno;

use crate::files::{Files, is_hidden};

/// The extent of counting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tier {
    /// Counters of the processor, or memory traffic from `resctrl`.
    A,
    /// Counters of the kernel: software events, tracepoints.
    B,
    /// Only `/proc` and `getrusage`.
    C,
}

impl fmt::Display for Tier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Tier::A => "A: the processor's own counters can be read",
            Tier::B => "B: the kernel's counters can be read, not the processor's",
            Tier::C => "C: neither the processor's counters nor the kernel's events can be read; /proc can",
        })
    }
}

/// A source of counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CountAccess {
    /// The name.
    pub name: &'static str,
    /// `None` if it can be read; otherwise the reason, and a remedy.
    pub refused: Option<String>,
}

/// All sources of counts that were tried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Access {
    /// The sources, the most informative first.
    pub sources: Vec<CountAccess>,
}

/// The kernel's answers to attempts to count.
pub struct Attempts {
    /// Cycles outside the kernel.
    pub hardware: io::Result<()>,
    /// Page faults outside the kernel.
    pub software: io::Result<()>,
    /// Context switches, a tracepoint of the scheduler.
    pub tracepoint: io::Result<()>,
}

const HARDWARE: &str = "hardware counters";
const TRAFFIC: &str = "memory traffic (resctrl)";
const SOFTWARE: &str = "software events";
const TRACEPOINTS: &str = "tracepoints";
const SCHEDULER: &str = "waiting for a processor (schedstat)";
const PRESSURE: &str = "pressure (PSI)";
const BLOCKED: &str = "where a process sleeps (wchan)";

const PARANOID: &str = "/proc/sys/kernel/perf_event_paranoid";

impl Attempts {
    /// Tries to count on this machine.
    pub fn here(files: Files<'_>) -> Attempts {
        let count = |event, space| {
            if is_hidden("events") {
                return Err(Errno::ACCESS.into());
            }
            Counter::start(event, space).and_then(|counter| counter.count()).map(|_| ())
        };
        let places = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];
        let id = places
            .into_iter()
            .find_map(|place| files(&format!("{place}/events/sched/sched_switch/id"))?.trim().parse::<u64>().ok());
        Attempts {
            hardware: count(Event::Cycles, Space::User),
            software: count(Event::PageFaults, Space::User),
            tracepoint: match id {
                Some(id) => count(Event::Tracepoint(id), Space::All),
                None => Err(io::ErrorKind::NotFound.into()),
            },
        }
    }
}

impl Access {
    /// Finds the sources that can be read.
    pub fn read(files: Files<'_>, attempts: &Attempts) -> Access {
        let paranoid = files(PARANOID).and_then(|text| text.trim().parse::<i32>().ok());
        let exists = |path: &str| files(path).is_some();
        let is_guest = files("/proc/cpuinfo").is_some_and(|text| text.contains(" hypervisor"));
        let source = |name, refused| CountAccess { name, refused };
        let unless = |readable: bool, why: &str| (!readable).then(|| why.to_owned());
        let flags = files("/proc/cpuinfo").unwrap_or_default();
        // A line of numbers; the second is the time waited.
        let scheduler = files("/proc/self/schedstat");
        let waits = scheduler.is_some_and(|text| {
            text.split_ascii_whitespace().next().is_some_and(|on| on.parse::<u64>().is_ok_and(|on| on > 0))
        });
        Access {
            sources: vec![
                source(
                    HARDWARE,
                    attempts.hardware.as_ref().err().map(|error| match Errno::from_io_error(error) {
                        Some(Errno::NOENT | Errno::OPNOTSUPP | Errno::NODEV) if is_guest => {
                            "the virtual machine has none; its host would have to pass them on".to_owned()
                        }
                        Some(Errno::NOENT | Errno::OPNOTSUPP | Errno::NODEV) => {
                            "the kernel knows none of this processor".to_owned()
                        }
                        _ => why(error, paranoid, 2),
                    }),
                ),
                source(
                    TRAFFIC,
                    match exists("/sys/fs/resctrl/info/L3_MON/mon_features") {
                        true => None,
                        false if flags.contains(" cqm_mbm_total") => {
                            Some("the processor counts it; mount -t resctrl resctrl /sys/fs/resctrl".to_owned())
                        }
                        false => Some("the processor does not count it, or its host does not pass it on".to_owned()),
                    },
                ),
                source(SOFTWARE, attempts.software.as_ref().err().map(|error| why(error, paranoid, 2))),
                source(
                    TRACEPOINTS,
                    attempts.tracepoint.as_ref().err().map(|error| match error.kind() {
                        io::ErrorKind::NotFound => "tracefs is not mounted, or this user may not read it \
                                                (mount -t tracefs tracefs /sys/kernel/tracing, as root)"
                            .to_owned(),
                        _ => why(error, paranoid, -1),
                    }),
                ),
                source(SCHEDULER, unless(waits, "the kernel was built without it")),
                source(
                    PRESSURE,
                    unless(exists("/proc/pressure/cpu"), "the kernel was built or started without it (psi=1)"),
                ),
                source(BLOCKED, unless(exists("/proc/self/wchan"), "the kernel was built without it")),
            ],
        }
    }

    /// Returns the tier.
    pub fn tier(&self) -> Tier {
        let can = |name| self.sources.iter().any(|source| source.name == name && source.refused.is_none());
        if can(HARDWARE) || can(TRAFFIC) {
            Tier::A
        } else if can(SOFTWARE) || can(TRACEPOINTS) {
            Tier::B
        } else {
            Tier::C
        }
    }
}

/// Explains why an attempt failed. `needed` is the highest perf_event_paranoid setting that allows it.
fn why(error: &io::Error, paranoid: Option<i32>, needed: i32) -> String {
    match Errno::from_io_error(error) {
        Some(Errno::ACCESS | Errno::PERM) => match paranoid {
            Some(paranoid) if paranoid > needed => format!(
                "{PARANOID} is {paranoid}: this user may not (sysctl kernel.perf_event_paranoid={needed}, or CAP_PERFMON)"
            ),
            _ => "this user may not; a sandbox (seccomp) or missing CAP_PERFMON forbids it".to_owned(),
        },
        Some(Errno::NOSYS) => "the kernel has no perf_event_open, or a sandbox hides it".to_owned(),
        _ => format!("the kernel refuses: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::tests::recorded;

    fn refused(errno: Errno) -> io::Result<()> {
        Err(errno.into())
    }

    fn named<'a>(access: &'a Access, name: &str) -> Option<&'a str> {
        access.sources.iter().find(|source| source.name == name).expect("asked for").refused.as_deref()
    }

    #[test]
    fn with_counters_of_the_processor_it_is_tier_a() {
        let attempts = Attempts { hardware: Ok(()), software: Ok(()), tracepoint: refused(Errno::ACCESS) };
        let access = Access::read(&recorded(&[(PARANOID, "2\n"), ("/proc/self/schedstat", "5 6 7\n")]), &attempts);
        assert_eq!((access.tier(), named(&access, HARDWARE), named(&access, SCHEDULER)), (Tier::A, None, None));
        assert!(named(&access, TRACEPOINTS).is_some_and(|why| why.contains("perf_event_paranoid is 2")));
        // No processor counters, but memory traffic.
        let attempts = Attempts { hardware: refused(Errno::NOENT), software: Ok(()), tracepoint: Ok(()) };
        let resctrl = [("/sys/fs/resctrl/info/L3_MON/mon_features", "mbm_total_bytes\n")];
        assert_eq!(Access::read(&recorded(&resctrl), &attempts).tier(), Tier::A);
    }

    #[test]
    fn a_virtual_machine_is_tier_b_and_says_why() {
        let attempts = Attempts {
            hardware: refused(Errno::NOENT),
            software: Ok(()),
            tracepoint: Err(io::ErrorKind::NotFound.into()),
        };
        let files = [("/proc/cpuinfo", "flags\t: fpu hypervisor lahf_lm\n"), ("/proc/pressure/cpu", "some\n")];
        let access = Access::read(&recorded(&files), &attempts);
        assert_eq!(access.tier(), Tier::B);
        assert!(named(&access, HARDWARE).is_some_and(|why| why.contains("virtual machine")));
        assert!(named(&access, TRACEPOINTS).is_some_and(|why| why.contains("mount -t tracefs")));
        assert_eq!(named(&access, PRESSURE), None);
        // The kernel has the file, but counts nothing in it.
        let access = Access::read(&recorded(&[("/proc/self/schedstat", "0 0 0\n")]), &attempts);
        assert!(named(&access, SCHEDULER).is_some());
    }

    #[test]
    fn a_sandbox_is_tier_c_and_says_why() {
        for (errno, said) in [(Errno::PERM, "sandbox"), (Errno::NOSYS, "sandbox"), (Errno::ACCESS, "paranoid is 3")] {
            let attempts = Attempts { hardware: refused(errno), software: refused(errno), tracepoint: refused(errno) };
            let paranoid = if errno == Errno::ACCESS { "3\n" } else { "hostile" };
            let access = Access::read(&recorded(&[(PARANOID, paranoid)]), &attempts);
            assert_eq!(access.tier(), Tier::C);
            assert!(named(&access, SOFTWARE).is_some_and(|why| why.contains(said)), "{access:?}");
        }
    }

    #[test]
    fn this_machine_answers() {
        let access = Access::read(&crate::files::here, &Attempts::here(&crate::files::here));
        assert_eq!(access.sources.len(), 7);
    }
}
