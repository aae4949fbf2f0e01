//! The cause of a process's death, in words.

use std::fmt;

use rustix::process::{Resource, WaitStatus, getrlimit};

use crate::allocations::REFUSED;

/// The cause of a process's death.
///
/// ```
/// use gristmill_os::process::Death;
///
/// assert_eq!(Death::Exited(3).to_string(), "exit status 3");
/// let death = Death::Signalled { signal: 9, oom: Some(true) };
/// assert_eq!(death.to_string(), "signal 9 (SIGKILL, by the kernel: out of memory)");
/// assert!(death.is_for_memory());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Death {
    /// It ended by itself, with this exit status (0 to 255).
    Exited(i32),
    /// A signal ended it.
    Signalled {
        /// The number of the signal.
        signal: i32,
        /// Whether the kernel killed it for lack of memory. `None` when that cannot be known.
        oom: Option<bool>,
    },
    /// The system refused it memory, and its allocator is [`Counting`](crate::allocations::Counting).
    MemoryRefused,
}

impl Death {
    /// True for a kill from outside: SIGKILL, and not for lack of memory.
    pub fn is_from_outside(self) -> bool {
        matches!(self, Death::Signalled { signal: libc::SIGKILL, oom } if oom != Some(true))
    }

    /// True if there was not enough memory for it. A program with another allocator aborts then: where address space is
    /// limited (`ulimit -v`), no abort can be told from that.
    pub fn is_for_memory(self) -> bool {
        match self {
            Death::MemoryRefused | Death::Signalled { oom: Some(true), .. } => true,
            Death::Signalled { signal: libc::SIGABRT, .. } => {
                [Resource::As, Resource::Data].into_iter().any(|limit| getrlimit(limit).current.is_some())
            }
            Death::Exited(_) | Death::Signalled { .. } => false,
        }
    }

    /// The death that `waitpid` reports. `oom_killed` is called only if the
    /// signal is that of the out-of-memory killer.
    pub(super) fn of(status: WaitStatus, oom_killed: impl FnOnce() -> Option<bool>) -> Death {
        match (status.exit_status(), status.terminating_signal()) {
            (Some(REFUSED), _) => Death::MemoryRefused,
            (Some(code), _) => Death::Exited(code),
            (None, Some(libc::SIGKILL)) => Death::Signalled { signal: libc::SIGKILL, oom: oom_killed() },
            (None, Some(signal)) => Death::Signalled { signal, oom: Some(false) },
            (None, None) => unreachable!("waitpid reports stopped processes only when asked to"),
        }
    }
}

impl fmt::Display for Death {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Death::Exited(code) => write!(f, "exit status {code}"),
            Death::MemoryRefused => f.write_str("the system refused it memory"),
            Death::Signalled { signal, oom } => {
                write!(f, "signal {signal}")?;
                match (signal_name(signal), oom) {
                    (Some(name), Some(true)) => {
                        write!(f, " ({name}, by the kernel: out of memory)")
                    }
                    (Some(name), _) => write!(f, " ({name})"),
                    (None, _) => Ok(()),
                }
            }
        }
    }
}

/// The names of the signals that end a process unless it handles them.
fn signal_name(signal: i32) -> Option<&'static str> {
    Some(match signal {
        libc::SIGABRT => "SIGABRT",
        libc::SIGALRM => "SIGALRM",
        libc::SIGBUS => "SIGBUS",
        libc::SIGFPE => "SIGFPE",
        libc::SIGHUP => "SIGHUP",
        libc::SIGILL => "SIGILL",
        libc::SIGINT => "SIGINT",
        libc::SIGKILL => "SIGKILL",
        libc::SIGPIPE => "SIGPIPE",
        libc::SIGPROF => "SIGPROF",
        libc::SIGQUIT => "SIGQUIT",
        libc::SIGSEGV => "SIGSEGV",
        libc::SIGSYS => "SIGSYS",
        libc::SIGTERM => "SIGTERM",
        libc::SIGTRAP => "SIGTRAP",
        libc::SIGUSR1 => "SIGUSR1",
        libc::SIGUSR2 => "SIGUSR2",
        libc::SIGVTALRM => "SIGVTALRM",
        libc::SIGXCPU => "SIGXCPU",
        libc::SIGXFSZ => "SIGXFSZ",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deaths_read_as_the_manual_names_them() {
        let signalled = |signal, oom| Death::Signalled { signal, oom }.to_string();
        assert_eq!(Death::Exited(3).to_string(), "exit status 3");
        assert_eq!(signalled(11, Some(false)), "signal 11 (SIGSEGV)");
        assert_eq!(signalled(9, None), "signal 9 (SIGKILL)");
        assert_eq!(signalled(9, Some(true)), "signal 9 (SIGKILL, by the kernel: out of memory)");
        assert_eq!(signalled(40, Some(false)), "signal 40");
        assert_eq!(Death::MemoryRefused.to_string(), "the system refused it memory");
    }

    #[test]
    fn a_kill_for_lack_of_memory_is_no_fault_of_what_was_mapped() {
        let signalled = |signal, oom| Death::Signalled { signal, oom }.is_for_memory();
        assert!(Death::MemoryRefused.is_for_memory() && signalled(libc::SIGKILL, Some(true)));
        assert!(!signalled(libc::SIGKILL, None) && !signalled(libc::SIGSEGV, Some(false)));
        assert!(!Death::Exited(1).is_for_memory());
    }
}
