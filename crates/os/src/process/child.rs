//! A worker process: fork, watch, end.

use std::fs;
use std::io::{self, Write};
use std::mem;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process;
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitOptions, getpid, getppid, kill_process, pidfd_send_signal, set_parent_process_death_signal,
    waitpid,
};

use crate::allocations;
use crate::cgroup::oom_kills;
use crate::descriptor;
use crate::ended::{Ended, become_worker, new_number};
use crate::process::death::Death;
use crate::signals::{dispose, empty_set, set_mask};

/// The exit status of a worker whose body panicked; the standard library's own for a panic.
pub const PANICKED: i32 = 101;

/// The count of threads of the calling process.
///
/// A thread that was joined a moment ago may still be counted.
///
/// # Errors
///
/// When `/proc` cannot be read.
pub fn threads_in_this_process() -> io::Result<usize> {
    // A folder has two links and one for each folder in it, here one for each thread. This takes one call, the text
    // below ten, and it is asked for before each fork. A count below 3 says that this `/proc` does not count links.
    let tasks = fs::metadata("/proc/self/task").map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => io::Error::new(error.kind(), "/proc is not mounted (mount -t proc proc /proc)"),
        _ => error,
    })?;
    if let Some(count) = tasks.nlink().checked_sub(2).filter(|count| *count > 0) {
        return Ok(count as usize);
    }
    let status = fs::read_to_string("/proc/self/status")?;
    let count = status.lines().find_map(|line| line.strip_prefix("Threads:")?.trim().parse().ok());
    count.ok_or_else(|| io::Error::other("/proc/self/status has no line Threads"))
}

/// A worker could not be started.
#[derive(Debug, thiserror::Error)]
pub enum ForkError {
    /// This process runs more than one thread. A fork copies only the thread that calls it; a lock
    /// that another holds at that moment (the allocator's, say) would stay locked in the copy.
    #[error(
        "cannot fork a worker: this process runs {count} threads, and a fork is safe only with one. \
         Start the workers before the first thread, or use threads as workers."
    )]
    ThreadsRunning {
        /// The count of threads, including the calling one.
        count: usize,
    },
    /// The kernel refused, for example because there are too many processes or open files.
    #[error("cannot start a worker process: {0}")]
    Kernel(#[source] io::Error),
}

/// Starts a worker: a copy of this process that runs `body` and ends with its result as exit status.
///
/// The worker
///
/// - never returns from this call, and runs no destructors of the caller's values;
/// - is killed when the calling thread ends, and so when this process ends in any way;
/// - ends with [`PANICKED`] when `body` panics, after the usual message;
/// - dies of SIGINT and SIGTERM, whatever handlers this process has; a write to a closed pipe, or
///   beyond the limit of a file's size, gives it an error, not a signal; no signal is blocked.
///
/// Standard output is flushed first, so that nothing appears twice.
///
/// A fork copies every value, even of types that promise to be unique. Types that stand for shared memory (the ends of
/// a slot, a worker inside an array) therefore know their [worker](crate::ended::this_worker), and panic in any other.
/// Only a plain slice of shared memory cannot know: `body` must not use one that it was given by its caller. Nothing
/// proves that. The engine's workers are given the job, which has none.
///
/// # Errors
///
/// [`ForkError::ThreadsRunning`] when this process runs other threads, [`ForkError::Kernel`] when
/// the kernel refuses.
///
/// ```
/// use gristmill_os::process::{Death, fork_worker};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let mut worker = fork_worker(|| 3)?;
/// assert_eq!(worker.wait()?, Death::Exited(3));
/// # Ok(())
/// # }
/// ```
pub fn fork_worker(body: impl FnOnce() -> i32) -> Result<Child, ForkError> {
    fork_worker_of(OomKills::until_now(), body)
}

/// The number of kills for lack of memory that the kernel had counted at some moment. If it grows until a worker dies
/// of SIGKILL, that worker may have been one of them.
#[derive(Clone, Copy, Debug)]
pub struct OomKills(Option<u64>);

impl OomKills {
    /// Reads the count. That costs more than the rest of a fork's preparation, so a caller that starts many workers
    /// reads it once.
    pub fn until_now() -> OomKills {
        OomKills(oom_kills())
    }
}

/// As [`fork_worker`], for one of many workers that are started after `oom_kills_before` was read.
///
/// # Errors
///
/// As [`fork_worker`].
pub fn fork_worker_of(oom_kills_before: OomKills, body: impl FnOnce() -> i32) -> Result<Child, ForkError> {
    let count = threads_now().map_err(ForkError::Kernel)?;
    if count > 1 {
        return Err(ForkError::ThreadsRunning { count });
    }
    // A failure to write belongs to whoever wrote; it will see it at the next write.
    let _ = io::stdout().flush();
    let parent = getpid();
    let number = new_number();
    // No handler of this process may run in the worker before the worker has put them off.
    let mask = block_signals();
    // SAFETY: this process has one thread, counted above. So no other thread holds a lock, and the
    // copy may do all that this process may do.
    match unsafe { libc::fork() } {
        0 => {
            become_worker(number);
            allocations::become_worker();
            work(parent, body)
        }
        -1 => {
            let error = io::Error::last_os_error();
            set_mask(&mask);
            Err(ForkError::Kernel(error))
        }
        pid => {
            set_mask(&mask);
            let pid = Pid::from_raw(pid).expect("fork gives the parent a pid above 0");
            Child::adopt(pid, number, oom_kills_before).map_err(ForkError::Kernel)
        }
    }
}

/// The count of threads, without threads that were already joined.
///
/// A join returns when the thread has left user space; the kernel counts it a little longer.
fn threads_now() -> io::Result<usize> {
    const ATTEMPTS: u32 = 20;
    for _ in 1..ATTEMPTS {
        let count = threads_in_this_process()?;
        if count == 1 {
            return Ok(count);
        }
        std::thread::sleep(Duration::from_micros(100));
    }
    threads_in_this_process()
}

/// Runs a worker to its end.
fn work(parent: Pid, body: impl FnOnce() -> i32) -> ! {
    let bound_to_parent = set_parent_process_death_signal(Some(Signal::KILL));
    // The parent may have died before the request: then nobody would kill this worker.
    if bound_to_parent.is_err() || getppid() != Some(parent) {
        exit_at_once(1);
    }
    dispose(&[libc::SIGINT, libc::SIGTERM], libc::SIG_DFL);
    dispose(&[libc::SIGPIPE, libc::SIGXFSZ], libc::SIG_IGN);
    set_mask(&empty_set());
    let code = match catch_unwind(AssertUnwindSafe(body)) {
        Ok(code) => code,
        Err(payload) => {
            // Its destructor could panic again, and unwind into the caller.
            mem::forget(payload);
            PANICKED
        }
    };
    let _ = io::stdout().flush();
    exit_at_once(code)
}

/// Ends the process without the exit handlers, which belong to the process it was copied from.
fn exit_at_once(code: i32) -> ! {
    // SAFETY: it takes any code and does not return.
    unsafe { libc::_exit(code) }
}

/// Blocks all signals for this thread and returns the mask before.
fn block_signals() -> libc::sigset_t {
    let (mut all, mut before) = (empty_set(), empty_set());
    // SAFETY: three valid pointers; the call can only fail for a bad `how`.
    unsafe {
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut before);
    }
    before
}

/// A worker process, as its parent sees it. A drop kills and reaps it.
#[derive(Debug)]
pub struct Child {
    pub(super) pid: Pid,
    /// Its number among all workers.
    number: u32,
    pidfd: OwnedFd,
    /// The process that started it: a drop kills only there. A worker started later has a copy
    /// of this value, and must not kill the earlier worker when it drops the copy.
    parent: u32,
    oom_kills_before: OomKills,
    killed_here: bool,
    death: Option<Death>,
}

impl Child {
    /// Opens the process descriptor of a new child, or ends the child if that fails.
    fn adopt(pid: Pid, number: u32, oom_kills_before: OomKills) -> io::Result<Child> {
        match descriptor::of_process(pid) {
            Ok(pidfd) => Ok(Child {
                pid,
                number,
                pidfd,
                parent: process::id(),
                oom_kills_before,
                killed_here: false,
                death: None,
            }),
            Err(error) => {
                let _ = kill_process(pid, Signal::KILL);
                let _ = waitpid(Some(pid), WaitOptions::empty());
                Err(error)
            }
        }
    }

    /// The process id, as `ps` shows it.
    pub fn pid(&self) -> u32 {
        self.pid.as_raw_pid() as u32
    }

    /// A descriptor that becomes readable when the process has ended, for [`crate::wake::poll`].
    pub fn pidfd(&self) -> BorrowedFd<'_> {
        self.pidfd.as_fd()
    }

    /// Sends SIGKILL. It has no effect after the process has ended.
    ///
    /// # Errors
    ///
    /// When this process has no right to, which a worker can bring about only by changing its user.
    pub fn kill(&mut self) -> io::Result<()> {
        self.killed_here = true;
        match pidfd_send_signal(&self.pidfd, Signal::KILL) {
            Ok(()) | Err(Errno::SRCH) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Reaps it if it has died, and returns how.
    ///
    /// After `Some` the process is certainly not running.
    ///
    /// # Errors
    ///
    /// When another thread or the kernel has reaped it; the kernel does so if the host ignores SIGCHLD.
    pub fn try_wait(&mut self) -> io::Result<Option<Death>> {
        self.reap(WaitOptions::NOHANG)
    }

    /// Waits until it has died, and returns how.
    ///
    /// # Errors
    ///
    /// As [`Child::try_wait`].
    pub fn wait(&mut self) -> io::Result<Death> {
        let death = self.reap(WaitOptions::empty())?;
        Ok(death.expect("a wait that may block ends with a death"))
    }

    /// Proof that it has ended, after it was reaped.
    pub fn ended(&self) -> Option<Ended> {
        self.death.map(|_| Ended::new(self.number))
    }

    /// Kills it if it runs, and reaps it.
    ///
    /// # Panics
    ///
    /// In another process than its parent.
    pub fn end(mut self) -> Ended {
        assert_eq!(self.parent, process::id(), "a worker is ended by the process that started it");
        let _ = self.kill();
        // An error says that there is no such child any more: another thread, or the kernel, has reaped it.
        let _ = self.wait();
        let number = self.number;
        Ended::new(number)
    }

    fn reap(&mut self, options: WaitOptions) -> io::Result<Option<Death>> {
        if self.death.is_none() {
            let ended = rustix::io::retry_on_intr(|| waitpid(Some(self.pid), options))?;
            self.death = ended.map(|(_, status)| Death::of(status, || self.oom_killed()));
        }
        Ok(self.death)
    }

    /// Whether a SIGKILL came from the kernel for lack of memory: `None` when the kernel does not
    /// count such kills, or when the count cannot be read.
    fn oom_killed(&self) -> Option<bool> {
        Some(!self.killed_here && oom_kills()? > self.oom_kills_before.0?)
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if self.death.is_none() && self.parent == process::id() {
            let _ = self.kill();
            let _ = self.wait();
        }
    }
}
