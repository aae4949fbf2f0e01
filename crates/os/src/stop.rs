//! Requests to stop, as something to wait for.
//!
//! A program that runs others must end them before it ends. So SIGINT, SIGTERM and SIGHUP are kept from ending it and
//! wait in a descriptor (signalfd). One that was ignored at the start, as under `nohup`, stays ignored. SIGQUIT ends a
//! program at once, unless it asks for that one too.

use std::fs::File;
use std::io::{self, Read};
use std::mem::{MaybeUninit, size_of};
use std::os::fd::{AsFd, BorrowedFd, FromRawFd};
use std::ptr::null;

use crate::signals::{empty_set, set_mask};

/// As long as it lives, the calling thread is not ended by these signals.
#[derive(Debug)]
pub struct Stop {
    file: File,
    before: libc::sigset_t,
}

const SIGNALS: [libc::c_int; 3] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP];

fn is_ignored(signal: libc::c_int) -> bool {
    let mut now = MaybeUninit::<libc::sigaction>::uninit();
    // SAFETY: no new action is set; the kernel fills the struct behind this valid pointer when it returns 0.
    unsafe { libc::sigaction(signal, null(), now.as_mut_ptr()) == 0 && now.assume_init().sa_sigaction == libc::SIG_IGN }
}

impl Stop {
    /// Keeps the signals from now on.
    ///
    /// # Errors
    ///
    /// When the process has no file descriptor left.
    pub fn new() -> io::Result<Stop> {
        Stop::of(&SIGNALS)
    }

    /// Keeps SIGQUIT (Ctrl-\) as well.
    ///
    /// # Errors
    ///
    /// As [`Stop::new`].
    pub fn with_quit() -> io::Result<Stop> {
        Stop::of(&[&SIGNALS[..], &[libc::SIGQUIT]].concat())
    }

    fn of(signals: &[libc::c_int]) -> io::Result<Stop> {
        let (mut set, mut before) = (empty_set(), empty_set());
        // SAFETY: the calls are given valid pointers; `pthread_sigmask` can only fail for a bad `how`.
        let fd = unsafe {
            for signal in signals.iter().filter(|signal| !is_ignored(**signal)) {
                libc::sigaddset(&mut set, *signal);
            }
            let fd = libc::signalfd(-1, &set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK);
            if fd < 0 {
                return Err(io::Error::last_os_error());
            }
            libc::pthread_sigmask(libc::SIG_BLOCK, &set, &mut before);
            fd
        };
        // SAFETY: the kernel has just made this descriptor for us.
        Ok(Stop { file: unsafe { File::from_raw_fd(fd) }, before })
    }

    /// A descriptor that is readable once a signal has come, for [`crate::wake::poll`].
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// The signal that has come, if one has.
    pub fn taken(&self) -> Option<i32> {
        let mut bytes = [0; size_of::<libc::signalfd_siginfo>()];
        (&self.file).read_exact(&mut bytes).ok()?;
        // Its first field.
        Some(u32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]) as i32)
    }

    /// Ends this process as the signal would have.
    pub fn end_by(self, signal: i32) {
        drop(self);
        // SAFETY: it touches no memory. The signal is one whose default is the end of the process.
        unsafe { libc::raise(signal) };
    }
}

impl Drop for Stop {
    fn drop(&mut self) {
        set_mask(&self.before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wake::poll;

    /// It waited for ever under `nohup`, where SIGHUP is ignored.
    #[test]
    fn a_signal_waits_instead_of_ending_the_process() {
        let signal = SIGNALS.into_iter().find(|signal| !is_ignored(*signal)).expect("one of them is not ignored");
        let stop = Stop::new().unwrap();
        assert_eq!((poll(&[stop.fd()], Some(0)).unwrap(), stop.taken()), (vec![], None));
        // SAFETY: the signal goes to this thread, which has blocked it.
        unsafe { libc::pthread_kill(libc::pthread_self(), signal) };
        assert_eq!(poll(&[stop.fd()], None).unwrap(), [0]);
        assert_eq!(stop.taken(), Some(signal));
        assert_eq!(stop.taken(), None);
    }
}
