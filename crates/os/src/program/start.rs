//! Starts a program in a session of its own, and tells when it has ended.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus};
use std::sync::OnceLock;
use std::thread;

use rustix::process::{
    Pid, Resource, Rlimit, Signal, WaitId, WaitIdOptions, getpid, getrlimit, kill_process, setrlimit, setsid, waitid,
};

use crate::descriptor;
use crate::signals::{dispose, empty_set, set_mask};

/// The limit on open files before it was raised.
static USUAL_FILES: OnceLock<Rlimit> = OnceLock::new();

/// Lets this process have as many files open as it may, and returns that number. Programs that [`start`] begins have
/// the limit that there was before.
///
/// ```
/// assert!(gristmill_os::program::raise_file_limit() >= 3);
/// ```
pub fn raise_file_limit() -> u64 {
    let usual = USUAL_FILES.get_or_init(|| getrlimit(Resource::Nofile));
    let raised = Rlimit { current: usual.maximum, maximum: usual.maximum };
    let limit = if setrlimit(Resource::Nofile, raised).is_ok() { usual.maximum } else { usual.current };
    limit.unwrap_or(u64::MAX)
}

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
/// Before the program begins, `note`, its process number and a line end are written to `told` in one piece. So whoever
/// reads there knows of every program that has begun, even if this process dies at that moment. `groups` are open files
/// `cgroup.procs`, which the program enters first.
///
/// `attach` is called when the process is there, and the program begins only after it. So what it attaches to the
/// process misses nothing: a shell may have started other programs a moment later. If this process dies before that,
/// the waiting one kills itself (SIGKILL): its program never began.
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
/// let started = start(std::process::Command::new("true"), &tell, b"job 7 ", &[], None)?;
/// let mut line = String::new();
/// BufReader::new(told).read_line(&mut line)?;
/// assert_eq!(line, format!("job 7 {}\n", started.pid.as_raw_nonzero()));
/// gristmill_os::wake::poll(&[std::os::fd::AsFd::as_fd(&started.pidfd)], None)?;
/// assert!(now_ended(started.pid)?.is_some_and(|status| status.success()));
/// reap(started.pid)?;
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn start(
    mut command: Command,
    told: &impl AsFd,
    note: &[u8],
    groups: &[File],
    attach: Option<&mut dyn FnMut(Pid)>,
) -> io::Result<Start> {
    let told = told.as_fd().as_raw_fd();
    let groups: Vec<i32> = groups.iter().map(AsRawFd::as_raw_fd).collect();
    let note = note.to_vec();
    let (ours, gate) = match attach.is_some().then(UnixStream::pair).transpose()? {
        Some((ours, theirs)) => (Some(ours), Some(theirs)),
        None => (None, None),
    };
    let usual_files = USUAL_FILES.get();
    let ours_in_child = ours.as_ref().map(AsRawFd::as_raw_fd);
    let in_child = move || {
        setsid()?;
        for group in &groups {
            // SAFETY: the descriptor is open in this copy of the process, whose files were copied with it.
            rustix::io::write(unsafe { BorrowedFd::borrow_raw(*group) }, b"0")?;
        }
        // SAFETY: as above.
        let told = unsafe { BorrowedFd::borrow_raw(told) };
        // If nobody reads any more, that is an error of this call, and not the death of a program that has begun.
        dispose(&[libc::SIGPIPE], libc::SIG_IGN);
        if let Some(files) = usual_files {
            setrlimit(Resource::Nofile, *files)?;
        }
        let mut line = [0; LINE_BYTES];
        let mut rest = &mut line[..];
        rest.write_all(&note)?;
        writeln!(rest, "{}", getpid().as_raw_nonzero())?;
        let left = rest.len();
        rustix::io::write(told, &line[..LINE_BYTES - left])?;
        reset_signals();
        if let (Some(mut gate), Some(ours)) = (gate.as_ref(), ours_in_child) {
            // SAFETY: this copy of the descriptor belongs to the child alone, which uses it nowhere. While it were
            // open, the read below would not end if the parent died.
            unsafe { libc::close(ours) };
            let opened =
                gate.write_all(&getpid().as_raw_nonzero().get().to_ne_bytes()).and_then(|()| gate.read_exact(&mut [0]));
            if opened.is_err() {
                // Nobody opens the gate any more. An error from here would have nobody to go to either: the standard
                // library aborts then, which would look like the end of a program that has begun.
                kill_process(getpid(), Signal::KILL)?;
            }
        }
        Ok(())
    };
    // SAFETY: between fork and exec the closure makes system calls and writes numbers to its stack; it takes no lock
    // and allocates nothing (its error values are codes).
    unsafe { command.pre_exec(in_child) };
    let child = match ours.zip(attach) {
        Some((ours, attach)) => spawn_held(command, ours, attach)?,
        None => command.spawn()?,
    };
    let pid = Pid::from_raw(child.id() as i32).expect("a process has a number");
    Ok(Start { pid, pidfd: descriptor::of_process(pid)? })
}

/// Starts a program that waits at its gate, the other end of `ours`, until `attach` has been called. Starting returns
/// only when the program has begun, so another thread does it.
fn spawn_held(mut command: Command, mut ours: UnixStream, attach: &mut dyn FnMut(Pid)) -> io::Result<Child> {
    // If `attach` panics, this end is closed, and the process ends.
    thread::scope(move |threads| {
        // The command takes its end of the gate with it, so the reading ends if there is no process.
        let child = thread::Builder::new().spawn_scoped(threads, move || command.spawn())?;
        let mut pid = [0; 4];
        if ours.read_exact(&mut pid).is_ok() {
            Pid::from_raw(i32::from_ne_bytes(pid)).into_iter().for_each(attach);
            // If the process has died since, starting tells why.
            let _ = ours.write_all(&[1]);
        }
        child.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// The longest line that [`start`] writes. The kernel keeps a write to a pipe in one piece up to 4 KiB.
const LINE_BYTES: usize = 256;

/// Undoes what this process changed for itself.
fn reset_signals() {
    dispose(&[libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGPIPE, libc::SIGXFSZ], libc::SIG_DFL);
    set_mask(&empty_set());
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

/// Resources that an ended program used, with the processes that it waited for.
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
    // SAFETY: two valid pointers; the kernel fills both when it returns a number above 0, and all zeros are valid
    // before.
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

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;
    use crate::wake::poll;

    fn exe(pid: Pid) -> std::path::PathBuf {
        std::fs::read_link(format!("/proc/{}/exe", pid.as_raw_nonzero())).expect("it is there")
    }

    /// A shell had started the rest of its line before it was counted, so most of a line was not seen.
    #[test]
    fn nothing_of_a_program_happens_before_what_is_attached_to_it() {
        let ourselves = std::env::current_exe().expect("a file");
        let (_told, tell) = io::pipe().expect("a pipe");
        let mut attached = None;
        let mut attach = |pid| {
            std::thread::sleep(std::time::Duration::from_millis(20));
            attached = Some((pid, exe(pid)));
        };
        let mut command = Command::new("sh");
        command.args(["-c", "read line"]).stdin(std::process::Stdio::piped());
        let started = start(command, &tell, b"", &[], Some(&mut attach)).expect("it starts");
        assert_eq!(attached, Some((started.pid, ourselves.clone())));
        poll(&[started.pidfd.as_fd()], None).expect("it ends: its input was closed with the command");
        assert!(now_ended(started.pid).expect("a child").is_some());
        reap(started.pid).expect("it has ended");
    }

    #[test]
    fn a_program_that_there_is_not_is_the_same_error_with_something_to_attach() {
        let (_told, tell) = io::pipe().expect("a pipe");
        let mut attached = 0;
        for attach in [None, Some(&mut |_| attached += 1)] {
            let attach = attach.map(|attach| attach as &mut dyn FnMut(Pid));
            let error = start(Command::new("/no/such/program"), &tell, b"", &[], attach).expect_err("there is none");
            assert_eq!(error.kind(), io::ErrorKind::NotFound);
        }
        assert_eq!(attached, 1);
    }

    #[test]
    fn a_process_that_cannot_begin_is_attached_to_by_nobody() {
        let (_told, tell) = io::pipe().expect("a pipe");
        let read_only = File::open("/dev/null").expect("it is there");
        let mut attach = |_| panic!("it had not reached its gate");
        let command = Command::new("true");
        assert!(start(command, &tell, b"", std::slice::from_ref(&read_only), Some(&mut attach)).is_err());
    }
    /// As when this process dies in between. A queue that was killed took such a process for a program that had ended
    /// by signal 6.
    #[test]
    fn a_program_whose_gate_nobody_opens_is_killed_and_never_begins() {
        let (_told, tell) = io::pipe().expect("a pipe");
        let mut held = None;
        let mut attach = |pid| {
            held = Some(pid);
            panic!("nobody opens the gate");
        };
        let starting = AssertUnwindSafe(|| start(Command::new("true"), &tell, b"", &[], Some(&mut attach)));
        catch_unwind(starting).expect_err("it panics");
        let pid = held.expect("it was there");
        let pidfd = descriptor::of_process(pid).expect("not reaped");
        poll(&[pidfd.as_fd()], None).expect("it ends");
        assert_eq!(now_ended(pid).expect("a child").and_then(|status| status.signal()), Some(9));
        reap(pid).expect("it has ended");
    }
}
