//! Usage of a thread or a process: time, page faults, context switches.

use std::mem::MaybeUninit;
use std::ops::Sub;

/// Counts since the thread or the process started. Subtract two to get the difference.
///
/// ```
/// use gristmill_os::usage::Usage;
///
/// let before = Usage::of_thread();
/// let pages = vec![1u8; 1 << 20];
/// let used = Usage::of_thread() - before;
/// assert!(used.minor_faults <= Usage::of_process().minor_faults);
/// # drop(pages);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Microseconds of processor time in user mode.
    pub user_us: u64,
    /// Microseconds of processor time in the kernel.
    pub sys_us: u64,
    /// Page faults that needed no input or output.
    pub minor_faults: u64,
    /// Page faults that waited for a disk.
    pub major_faults: u64,
    /// Context switches because the thread had to wait for something.
    pub voluntary_switches: u64,
    /// Context switches because the time slice ended or another thread was more urgent.
    pub involuntary_switches: u64,
}

impl Usage {
    /// The usage of the calling thread.
    pub fn of_thread() -> Usage {
        Usage::of(libc::RUSAGE_THREAD)
    }

    /// The usage of all threads of the calling process, without its children.
    pub fn of_process() -> Usage {
        Usage::of(libc::RUSAGE_SELF)
    }

    /// The usage of all children that have ended and been waited for, and of their children.
    pub fn of_children() -> Usage {
        Usage::of(libc::RUSAGE_CHILDREN)
    }

    fn of(who: libc::c_int) -> Usage {
        let mut raw = MaybeUninit::<libc::rusage>::uninit();
        // SAFETY: the kernel fills the whole struct behind this valid pointer when it returns 0.
        let result = unsafe { libc::getrusage(who, raw.as_mut_ptr()) };
        assert_eq!(result, 0, "getrusage fails only for an unknown `who` or a bad pointer");
        // SAFETY: it returned 0.
        let raw = unsafe { raw.assume_init() };
        let us = |time: libc::timeval| time.tv_sec as u64 * 1_000_000 + time.tv_usec as u64;
        Usage {
            user_us: us(raw.ru_utime),
            sys_us: us(raw.ru_stime),
            minor_faults: raw.ru_minflt as u64,
            major_faults: raw.ru_majflt as u64,
            voluntary_switches: raw.ru_nvcsw as u64,
            involuntary_switches: raw.ru_nivcsw as u64,
        }
    }
}

impl Sub for Usage {
    type Output = Usage;

    /// The usage between `earlier` and `self`.
    ///
    /// A count that went back gives 0; the kernel scales its sampled times, so it may.
    fn sub(self, earlier: Usage) -> Usage {
        Usage {
            user_us: self.user_us.saturating_sub(earlier.user_us),
            sys_us: self.sys_us.saturating_sub(earlier.sys_us),
            minor_faults: self.minor_faults.saturating_sub(earlier.minor_faults),
            major_faults: self.major_faults.saturating_sub(earlier.major_faults),
            voluntary_switches: self.voluntary_switches.saturating_sub(earlier.voluntary_switches),
            involuntary_switches: self.involuntary_switches.saturating_sub(earlier.involuntary_switches),
        }
    }
}
