//! The state of a process, as others see it.

use std::fs;
use std::io;
use std::mem::MaybeUninit;

use crate::process::child::Child;

/// The state of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activity {
    /// It runs, or waits for a processor.
    Runs,
    /// It sleeps until it is woken.
    Sleeps,
    /// It waits in the kernel, usually for a disk, and no signal wakes it.
    WaitsForDevice,
    /// SIGSTOP, a similar signal or a debugger has stopped it.
    Stopped,
    /// It has ended.
    Ended,
}

impl Activity {
    /// By the letter in `/proc/PID/stat`.
    fn of(stat: &str) -> Activity {
        // The name before it is in brackets, and may hold some itself.
        let letter = stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
        match letter {
            Some('R') => Activity::Runs,
            Some('D') => Activity::WaitsForDevice,
            Some('T' | 't') => Activity::Stopped,
            Some('S' | 'I') => Activity::Sleeps,
            _ => Activity::Ended,
        }
    }
}

impl Child {
    /// The state; [`Activity::Ended`] also if it is unknown.
    pub fn activity(&self) -> Activity {
        fs::read_to_string(format!("/proc/{}/stat", self.pid())).map_or(Activity::Ended, |stat| Activity::of(&stat))
    }

    /// Nanoseconds of processor time of all its threads. Any work takes some.
    ///
    /// # Errors
    ///
    /// When it was reaped.
    pub fn cpu_ns(&self) -> io::Result<u64> {
        let mut clock = MaybeUninit::uninit();
        // SAFETY: the pointer is valid, and the clock behind it is set when the call returns 0.
        let failed = unsafe { libc::clock_getcpuclockid(self.pid.as_raw_pid(), clock.as_mut_ptr()) };
        if failed != 0 {
            return Err(io::Error::from_raw_os_error(failed));
        }
        let mut time = MaybeUninit::<libc::timespec>::uninit();
        // SAFETY: the clock was set above; the kernel fills the struct behind this valid pointer when it returns 0.
        let time = unsafe {
            if libc::clock_gettime(clock.assume_init(), time.as_mut_ptr()) != 0 {
                return Err(io::Error::last_os_error());
            }
            time.assume_init()
        };
        Ok(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_letter_follows_a_name_that_may_hold_brackets() {
        assert_eq!(Activity::of("7 (a) S (b) T 1 2 3"), Activity::Stopped);
        assert_eq!(Activity::of("7 (gristmill) R 1 2 3"), Activity::Runs);
        assert_eq!(Activity::of(""), Activity::Ended);
    }
}
