//! Signals of this process, and of programs that it starts.

use std::mem::MaybeUninit;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::ptr::null_mut;

/// Returns a set without a signal.
pub(crate) fn empty_set() -> libc::sigset_t {
    let mut set = MaybeUninit::uninit();
    // SAFETY: `sigemptyset` initialises the set behind this valid pointer.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        set.assume_init()
    }
}

/// Blocks the signals of a set, and no others.
pub(crate) fn set_mask(mask: &libc::sigset_t) {
    // SAFETY: `mask` is initialised, and null says that the mask before is not wanted.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, mask, null_mut()) };
}

/// Ignores these signals (`SIG_IGN`), or lets them do what they do by default (`SIG_DFL`).
pub(crate) fn dispose(signals: &[libc::c_int], disposition: libc::sighandler_t) {
    for signal in signals {
        // SAFETY: neither disposition runs code of ours.
        unsafe { libc::signal(*signal, disposition) };
    }
}

/// Makes a program heed SIGINT, SIGQUIT and SIGTERM, however this process was started.
///
/// Programs that a shell starts in the background ignore the first two, and so do their children.
pub fn heed(command: &mut Command) {
    let reset = || {
        dispose(&[libc::SIGINT, libc::SIGQUIT, libc::SIGTERM], libc::SIG_DFL);
        Ok(())
    };
    // SAFETY: signal() may be called between fork and exec.
    unsafe { command.pre_exec(reset) };
}
