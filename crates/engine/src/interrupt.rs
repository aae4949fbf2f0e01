//! Ends a job early, because its caller wants that: by a cancel token or a deadline.

use std::ops::ControlFlow;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use gristmill_os::clock::monotonic_ns;
use gristmill_os::wake::{Bell, poll};

use crate::error::{Asked, Error, Result};

/// How often a wait with a deadline looks at the clock.
const TICK_MS: u32 = 50;

/// Cancels jobs, from any thread and also from a signal handler ([`Job::cancel_by`](crate::Job::cancel_by)).
///
/// Clones are the same token, and a token may serve several jobs. Once cancelled it stays so.
///
/// ```
/// use gristmill::{Bytes, CancelToken, Emit, Error, Input, Isolation, Job, MapReduce, ProgramError, Chunk};
///
/// struct Lines;
///
/// impl MapReduce for Lines {
///     type Key = Bytes;
///     type Value = u64;
///
///     fn map(&self, chunk: &mut Chunk<'_>, out: &mut impl Emit<Bytes, u64>) -> Result<(), ProgramError> {
///         chunk.lines().for_each(|line| out.emit(line, 1));
///         Ok(())
///     }
/// }
///
/// let token = CancelToken::new()?;
/// let canceller = token.clone();
/// std::thread::spawn(move || canceller.cancel()).join().expect("it does not panic");
/// // Workers are threads, because processes cannot be forked where other threads run.
/// let job = Job::new(&Lines, Input::bytes("pond", b"a frog\n")?).isolation(Isolation::Thread);
/// assert!(matches!(job.cancel_by(&token).run(), Err(Error::Cancelled)));
/// # Ok::<(), gristmill::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct CancelToken {
    cancel: Arc<Cancel>,
}

#[derive(Debug)]
struct Cancel {
    is_cancelled: AtomicBool,
    /// Rung by [`CancelToken::cancel`] and never drained, so that every wait for it ends.
    bell: Bell,
}

impl CancelToken {
    /// Makes a token.
    ///
    /// # Errors
    /// When the process has no file descriptor left.
    pub fn new() -> Result<CancelToken> {
        let bell = Bell::new().asked("making an eventfd for a cancel token")?;
        Ok(CancelToken { cancel: Arc::new(Cancel { is_cancelled: AtomicBool::new(false), bell }) })
    }

    /// Ends every job that has this token with [`Error::Cancelled`], within 100 ms. A map function in a thread is not
    /// interrupted, but its job ends before the next chunk of its input.
    pub fn cancel(&self) {
        self.cancel.is_cancelled.store(true, Ordering::Release);
        self.cancel.bell.ring();
    }

    /// Returns whether the token was cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.cancel.is_cancelled.load(Ordering::Acquire)
    }
}

impl AsFd for CancelToken {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.cancel.bell.as_fd()
    }
}

/// The return type of a callback that may stop its job: `()`, or a [`ControlFlow`] whose `Break` stops it.
pub trait MayStop {
    /// Returns whether the job shall stop.
    fn stops(self) -> bool;
}

impl MayStop for () {
    fn stops(self) -> bool {
        false
    }
}

impl MayStop for ControlFlow<()> {
    fn stops(self) -> bool {
        self.is_break()
    }
}

/// The interrupts of one job.
#[derive(Clone, Debug, Default)]
pub(crate) struct Interrupt {
    pub token: Option<CancelToken>,
    /// The time at which the job must have ended, and the time that it was given.
    deadline: Option<(u64, Duration)>,
}

impl Interrupt {
    /// Starts the clock of a job that has `limit` from now.
    pub fn new(token: Option<CancelToken>, limit: Option<Duration>) -> Interrupt {
        Interrupt { token, ..Interrupt::default() }.within(limit, Instant::now())
    }

    /// Returns the same interrupts, with the end of `limit` from `since` on as the deadline.
    pub fn within(self, limit: Option<Duration>, since: Instant) -> Interrupt {
        let left = |limit: Duration| limit.saturating_sub(since.elapsed()).as_nanos().try_into().unwrap_or(u64::MAX);
        Interrupt { deadline: limit.map(|limit| (monotonic_ns().saturating_add(left(limit)), limit)), ..self }
    }

    /// Returns the same interrupts, with the deadline of `other` if that is earlier.
    pub fn or_earlier(self, other: &Interrupt) -> Interrupt {
        Interrupt { deadline: self.deadline.into_iter().chain(other.deadline).min(), ..self }
    }

    /// Returns whether the job has a deadline, and must be looked at from time to time.
    pub fn has_deadline(&self) -> bool {
        self.deadline.is_some()
    }

    /// Fails if the job must end now.
    pub fn check(&self) -> Result<()> {
        if self.token.as_ref().is_some_and(CancelToken::is_cancelled) {
            return Err(Error::Cancelled);
        }
        match self.deadline {
            Some((end_ns, limit)) if monotonic_ns() >= end_ns => Err(Error::Deadline { limit }),
            _ => Ok(()),
        }
    }

    /// Waits until `stream` has something to read or has ended, and fails if the job must end before that.
    pub fn wait_for(&self, stream: BorrowedFd<'_>) -> Result<()> {
        let mut fds = vec![stream];
        fds.extend(self.token.as_ref().map(AsFd::as_fd));
        let timeout_ms = self.deadline.map(|_| TICK_MS);
        loop {
            self.check()?;
            // A wait that fails is left to the read, which says why.
            if poll(&fds, timeout_ms).map_or(true, |ready| ready.contains(&0)) {
                return Ok(());
            }
        }
    }
}
