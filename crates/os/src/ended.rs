//! Proof that a worker has ended.
//!
//! Others may take over the pages of a worker only after its end, so they need an [`Ended`]. Only a process that was
//! reaped and a thread that was joined give one. It names the worker by a number that is given once and that the
//! worker knows ([`this_worker`]).

use std::cell::Cell;
use std::io;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::{Builder, Scope, ScopedJoinHandle};

/// The largest number of a worker. Words that hold such a number use the larger values for other meanings.
const WORKERS_MAX: u32 = u32::MAX - 16;

thread_local! {
    static NUMBER: Cell<u32> = const { Cell::new(0) };
}

/// The number of this thread's worker; 0 without one.
pub fn this_worker() -> u32 {
    NUMBER.get()
}

/// A number that no worker has had.
///
/// # Panics
///
/// After four billion workers.
pub(crate) fn new_number() -> u32 {
    static LAST: AtomicU32 = AtomicU32::new(0);
    let next = LAST.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| (last < WORKERS_MAX).then_some(last + 1));
    next.expect("fewer than four billion workers") + 1
}

/// Makes this thread that worker.
pub(crate) fn become_worker(number: u32) {
    NUMBER.set(number);
}

/// Proof that a worker has ended: it was reaped, or joined.
#[derive(Debug)]
pub struct Ended {
    number: u32,
}

impl Ended {
    pub(crate) fn new(number: u32) -> Ended {
        Ended { number }
    }

    /// The number that the worker had.
    pub fn worker(&self) -> u32 {
        self.number
    }
}

/// A worker that is a thread.
#[derive(Debug)]
pub struct WorkerThread<'scope> {
    thread: ScopedJoinHandle<'scope, ()>,
    number: u32,
}

impl<'scope> WorkerThread<'scope> {
    /// Starts a thread of this name in `scope`.
    ///
    /// # Errors
    ///
    /// When the system starts no more threads.
    ///
    /// ```
    /// use gristmill_os::ended::{WorkerThread, this_worker};
    ///
    /// std::thread::scope(|scope| {
    ///     let worker = WorkerThread::spawn(scope, "a worker".to_owned(), || assert!(this_worker() > 0))?;
    ///     assert!(worker.join().worker() > 0);
    ///     Ok::<(), std::io::Error>(())
    /// })?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn spawn<'env>(
        scope: &'scope Scope<'scope, 'env>,
        name: String,
        body: impl FnOnce() + Send + 'scope,
    ) -> io::Result<WorkerThread<'scope>> {
        let number = new_number();
        let thread = Builder::new().name(name).spawn_scoped(scope, move || {
            become_worker(number);
            body();
        })?;
        Ok(WorkerThread { thread, number })
    }

    /// Waits for its end. Its own body may report a panic.
    pub fn join(self) -> Ended {
        drop(self.thread.join());
        Ended::new(self.number)
    }
}
