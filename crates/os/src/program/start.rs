//! Starts a program in a session of its own, and tells when it has ended.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitStatus};
use std::ptr::null_mut;

use rustix::process::{Pid, PidfdFlags, WaitId, WaitIdOptions, getpid, pidfd_open, setsid, waitid};

/// A program that has started.
#[derive(Debug)]
pub struct Start {
    /// Its process, which leads a session and a process group of the same number.
    pub pid: Pid,
    /// Readable when it has ended.
    pub pidfd: OwnedFd,
}

/// Starts `command` in a session of its own, with no signal blocked and every signal's usual effect.
///
/// Before the program begins, `note`, its process number and a line end are written to `told` in one piece. So whoever reads
/// there knows of every program that has begun, even if this process dies at that moment. `group` is an open `cgroup.procs`,
/// which the program enters first.
///
/// # Errors
///
/// When there is no such program, it may not be run, or the kernel refuses.
///
/// ```
/// use std::io::{BufRead, BufReader};
/// use gristmill_os::program::{now_ended, reap, start};
///
/// let (told, tell) = std::io::pipe()?;
/// let started = start(std::process::Command::new("true"), &tell, b"job 7 ", None)?;
/// let mut line = String::new();
/// BufReader::new(told).read_line(&mut line)?;
/// assert_eq!(line, format!("job 7 {}\n", started.pid.as_raw_nonzero()));
/// gristmill_os::wake::poll(&[std::os::fd::AsFd::as_fd(&started.pidfd)], None)?;
/// assert!(now_ended(started.pid)?.is_some_and(|status| status.success()));
/// reap(started.pid)?;
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn start(mut command: Command, told: &impl AsFd, note: &[u8], group: Option<&File>) -> io::Result<Start> {
    let (told, group) = (told.as_fd().as_raw_fd(), group.map(AsRawFd::as_raw_fd));
    let note = note.to_vec();
    let in_child = move || {
        setsid()?;
        // SAFETY: both descriptors are open in this copy of the process, whose files were copied with it.
        let (told, group) = unsafe { (BorrowedFd::borrow_raw(told), group.map(|fd| BorrowedFd::borrow_raw(fd))) };
        if let Some(group) = group {
            rustix::io::write(group, b"0")?;
        }
        reset_signals();
        let mut line = [0; LINE_BYTES];
        let mut rest = &mut line[..];
        rest.write_all(&note)?;
        writeln!(rest, "{}", getpid().as_raw_nonzero())?;
        let left = rest.len();
        rustix::io::write(told, &line[..LINE_BYTES - left])?;
        Ok(())
    };
    // SAFETY: between fork and exec the closure makes system calls and writes numbers to its stack; it takes no lock and
    // allocates nothing (its error values are codes).
    let child = unsafe { command.pre_exec(in_child) }.spawn()?;
    let pid = Pid::from_raw(child.id() as i32).expect("a process has a number");
    Ok(Start { pid, pidfd: pidfd_open(pid, PidfdFlags::empty())? })
}

/// The longest line that [`start`] writes. The kernel keeps a write to a pipe in one piece up to 4 KiB.
const LINE_BYTES: usize = 256;

/// Undoes what this process changed for itself.
fn reset_signals() {
    let mut none = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: `sigemptyset` initialises the set behind this valid pointer; the default disposition runs no code of ours.
    unsafe {
        for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGPIPE, libc::SIGXFSZ] {
            libc::signal(signal, libc::SIG_DFL);
        }
        libc::sigemptyset(none.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, none.as_ptr(), null_mut());
    }
}

/// Returns how a child ended; `None` while it runs. It stays a child until [`reap`].
///
/// # Errors
///
/// When it is no child of this process, or was reaped before.
pub fn now_ended(pid: Pid) -> io::Result<Option<ExitStatus>> {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    let status = rustix::io::retry_on_intr(|| waitid(WaitId::Pid(pid), options))?;
    Ok(status.map(|status| match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => ExitStatus::from_raw(code << 8),
        (None, signal) => ExitStatus::from_raw(signal.unwrap_or(0)),
    }))
}

/// What an ended program used, with the processes that it waited for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Used {
    /// Microseconds of processor time in user mode.
    pub user_us: u64,
    /// Microseconds of processor time in the kernel.
    pub sys_us: u64,
    /// The most memory that one of its processes held.
    pub memory_bytes: u64,
}

/// Takes an ended child out of the kernel's table, so that its number becomes free.
///
/// # Errors
///
/// When it has not ended, or is no child of this process.
pub fn reap(pid: Pid) -> io::Result<Used> {
    let (mut status, mut usage) = (0, std::mem::MaybeUninit::<libc::rusage>::zeroed());
    // SAFETY: two valid pointers; the kernel fills both when it returns a number above 0, and all zeros are valid before.
    let (number, usage) = unsafe {
        let number = libc::wait4(pid.as_raw_nonzero().get(), &mut status, libc::WNOHANG, usage.as_mut_ptr());
        (number, usage.assume_init())
    };
    match number {
        -1 => return Err(io::Error::last_os_error()),
        0 => return Err(io::ErrorKind::WouldBlock.into()),
        _ => {}
    }
    let us = |time: libc::timeval| time.tv_sec as u64 * 1_000_000 + time.tv_usec as u64;
    Ok(Used { user_us: us(usage.ru_utime), sys_us: us(usage.ru_stime), memory_bytes: usage.ru_maxrss as u64 * 1024 })
}
