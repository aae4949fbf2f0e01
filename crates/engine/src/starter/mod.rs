//! Jobs with isolated workers for a process that has threads.
//!
//! A process with threads cannot be forked safely, because the copy has only one of them, and the locks of all. So a
//! copy of the process is made before its first thread starts: the starter. It has one thread and waits. For each call
//! it forks a process that serves the call, and runs jobs there.
//!
//! ```text
//!  process with threads          starter, one thread          one process for each call
//!  ------------------            -------------------          -------------------------
//!  call(request)  -- socket ---> receives, forks  ----------> function(request, answers), which runs a job
//!        <------------------------- answers ------------------       |
//!        <-- how it ended -----  reaps it                       forks workers
//! ```
//!
//! In: a function and its requests. Out: its answers. It knows nothing of jobs.

mod frames;
mod serve;
mod call;

use std::marker::PhantomData;
use std::sync::Arc;

use gristmill_os::process::fork_worker;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

use crate::data::datum::Datum;
use crate::error::{Asked, Error, Result};
use crate::program_error::ProgramError;

pub use call::Call;
use call::Process;
pub use serve::Answers;

/// Runs a function in processes of one thread each, for a process that has several: in such processes jobs have
/// isolated workers. Make it in `main`, before anything starts a thread.
///
/// Requests have the type `Q`, answers the type `A`. Calls may come from any thread, and several at once; each is
/// served by a process of its own, a copy of this one as it was when the starter was made. What this process has
/// changed since then is not seen there, so everything that a call needs is in its request. If the function panics, is
/// killed or runs out of memory, its call fails, and no other.
///
/// ```
/// use gristmill::{Bytes, Emit, Input, Job, MapReduce, ProgramError, Chunk, Starter};
///
/// struct Words;
///
/// impl MapReduce for Words {
///     type Key = Bytes;
///     type Value = u64;
///
///     fn combiner(&self) -> Option<impl Fn(u64, u64) -> u64> {
///         Some(|a, b| a + b)
///     }
///
///     fn map(&self, chunk: &mut Chunk<'_>, out: &mut impl Emit<Bytes, u64>) -> Result<(), ProgramError> {
///         chunk.bytes().split(u8::is_ascii_whitespace).for_each(|word| out.emit(word, 1));
///         Ok(())
///     }
/// }
///
/// fn main() -> gristmill::Result<()> {
///     # // This doctest may run beside others in one process, which has threads then.
///     # if std::fs::read_dir("/proc/self/task").map_or(true, |tasks| tasks.count() > 1) { return Ok(()) }
///     // First of all: the starter.
///     let count = Starter::<String, (String, u64)>::new(|text, answers| {
///         let words = Job::new(&Words, Input::bytes("text", text.as_bytes())?);
///         words.run_each(|word, count| answers.push((&String::from_utf8_lossy(word), count)))?;
///         Ok(())
///     })?;
///     // Then threads, which may all call it.
///     let words = std::thread::scope(|scope| {
///         scope.spawn(|| count.call("a frog leaps into a pond")?.collect::<gristmill::Result<Vec<_>>>()).join()
///     });
///     assert_eq!(words.expect("it does not panic")?[0], ("a".to_owned(), 2));
///     Ok(())
/// }
/// ```
pub struct Starter<Q, A> {
    process: Arc<Process>,
    kind: PhantomData<fn(Q) -> A>,
}

impl<Q: Datum, A: Datum> Starter<Q, A> {
    /// Starts a process that will run `serve` for each call. It dies with the thread that made it, so make it in a
    /// thread that lives as long as the program.
    ///
    /// # Errors
    /// [`Error::ThreadsRunning`] if this process already has more than one thread; [`Error::System`] if the system
    /// refuses another process.
    pub fn new(serve: impl Fn(Q::Ref<'_>, &mut Answers<A>) -> Result<(), ProgramError>) -> Result<Starter<Q, A>> {
        const WHAT: &str = "starting a process for calls";
        let (control, other_end) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).asked(WHAT)?;
        let child = fork_worker(|| serve::all::<Q, A>(&other_end, &serve));
        let child = child.map_err(|error| Error::fork(WHAT, error))?;
        Ok(Starter { process: Process::new(control, child).into(), kind: PhantomData })
    }

    /// Lets a process serve `request`. Returns at once; the answers come as they are made.
    ///
    /// # Errors
    /// [`Error::Starter`] if the starter has died; [`Error::System`] if this process has no file descriptor left.
    pub fn call(&self, request: Q::Ref<'_>) -> Result<Call<A>> {
        let mut bytes = vec![0; Q::width(request)];
        Q::write(request, &mut bytes);
        Call::begin(self.process.clone(), &bytes)
    }
}
