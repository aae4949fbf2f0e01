//! A result that its reducers write to a place of the program's choice, each its own part.
//!
//! ```text
//!  reducer:  open(part, attempt) -> its pairs, one by one -> close -> told to the coordinator
//!            (if it dies, the reducer that replaces it opens the same part with another attempt)
//!  caller:   when every part is closed, commit names one attempt at each part
//! ```

use crate::data::datum::{Datum, Key};
use crate::failure::Failure;
use crate::program_error::ProgramError;

/// Where the reducers of a job write their pairs, in parallel ([`Job::run_into`](crate::Job::run_into)).
///
/// Each reducer writes one part. A reducer that dies is replaced by one that begins the same part again, so a part may
/// be begun more than once, and nothing may be visible before [`commit`](Sink::commit).
///
/// With isolated workers, `open` and the writer run in a copy of the caller's process: they share files with it, but
/// what they change in memory stays theirs. `commit` and `abort` run in the caller's own process.
///
/// [`PartFiles`](crate::sinks::PartFiles) writes files of rows.
///
/// ```
/// # use gristmill::sinks::{Attempt, SinkWriter};
/// # use gristmill::{Emit, Input, Isolation, Job, MapReduce, ProgramError, Sink, Chunk};
/// # struct Letters;
/// # impl MapReduce for Letters {
/// #     type Key = char;
/// #     type Value = u64;
/// #     fn combiner(&self) -> Option<impl Fn(u64, u64) -> u64> {
/// #         Some(|a, b| a + b)
/// #     }
/// #     fn map(&self, chunk: &mut Chunk<'_>, out: &mut impl Emit<char, u64>) -> Result<(), ProgramError> {
/// #         chunk.bytes().iter().for_each(|byte| out.emit(char::from(*byte), 1));
/// #         Ok(())
/// #     }
/// # }
/// use std::path::PathBuf;
///
/// /// Counts of letters, in a file for each part.
/// struct Counts {
///     dir: PathBuf,
/// }
///
/// struct Part {
///     path: PathBuf,
///     text: String,
/// }
///
/// impl Counts {
///     fn path(&self, Attempt { part, attempt }: Attempt) -> PathBuf {
///         self.dir.join(format!("{part}.{attempt}"))
///     }
/// }
///
/// impl Sink<char, u64> for Counts {
///     fn open(&self, at: Attempt) -> Result<Box<dyn SinkWriter<char, u64> + '_>, ProgramError> {
///         Ok(Box::new(Part { path: self.path(at), text: String::new() }))
///     }
///
///     fn commit(&self, parts: &[Attempt]) -> Result<(), ProgramError> {
///         for part in parts {
///             std::fs::rename(self.path(*part), self.dir.join(format!("{}.txt", part.part)))?;
///         }
///         Ok(())
///     }
/// }
///
/// impl SinkWriter<char, u64> for Part {
///     fn pair(&mut self, letter: char, count: u64) -> Result<(), ProgramError> {
///         self.text += &format!("{letter} {count}\n");
///         Ok(())
///     }
///
///     fn close(self: Box<Self>) -> Result<(), ProgramError> {
///         Ok(std::fs::write(&self.path, &self.text)?)
///     }
/// }
///
/// # let dir = tempfile::tempdir()?;
/// let counts = Counts { dir: dir.path().to_owned() };
/// // This doctest runs beside others in one process, so its workers are threads.
/// let job = Job::new(&Letters, Input::bytes("frog", b"croak")?).workers(1).isolation(Isolation::Thread);
/// let summary = job.run_into(&counts)?;
/// assert_eq!(summary.pairs, 5);
/// assert_eq!(std::fs::read_to_string(dir.path().join("0.txt"))?, "a 1\nc 1\nk 1\no 1\nr 1\n");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Sink<K: Key, V: Datum>: Sync {
    /// Called once, in the caller's process, before any worker starts. Parts are numbered up to `parts`.
    ///
    /// # Errors
    /// Any of them is the error of the job.
    fn begin(&self, parts: usize) -> Result<(), ProgramError> {
        let _ = parts;
        Ok(())
    }

    /// Begins a part, in a worker. The same part may be begun again with another attempt.
    ///
    /// # Errors
    /// Any of them ends the job, unless [`ProgramError::retry`] says otherwise.
    fn open(&self, part: Attempt) -> Result<Box<dyn SinkWriter<K, V> + '_>, ProgramError>;

    /// Makes these parts visible, and no others. Called once, when all of them are closed. A part whose reducer had no
    /// pairs may be missing.
    ///
    /// # Errors
    /// Any of them is the error of the job.
    fn commit(&self, parts: &[Attempt]) -> Result<(), ProgramError>;

    /// Removes what has been written, because the job has failed. Not called if the caller's process dies.
    fn abort(&self) {}
}

/// Writes one part of a result ([`Sink::open`]). If the job fails, it is dropped without being closed.
pub trait SinkWriter<K: Key, V: Datum> {
    /// Writes a pair. They come in the order of the result ([`Job::order`](crate::Job::order)).
    ///
    /// # Errors
    /// As [`Sink::open`].
    fn pair(&mut self, key: K::Ref<'_>, value: V::Ref<'_>) -> Result<(), ProgramError>;

    /// Ends the part. When this returns, the pairs must be where [`Sink::commit`] finds them.
    ///
    /// # Errors
    /// As [`Sink::open`].
    fn close(self: Box<Self>) -> Result<(), ProgramError>;
}

/// An attempt at a part of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Attempt {
    /// The number of the part, from 0.
    pub part: usize,
    /// A number that no other attempt of this job has.
    pub attempt: usize,
}

/// A part that is being written.
pub(crate) struct OpenPart<'s, K: Key, V: Datum> {
    at: Attempt,
    writer: Box<dyn SinkWriter<K, V> + 's>,
    pairs: u64,
}

impl<'s, K: Key, V: Datum> OpenPart<'s, K, V> {
    pub fn open(sink: &'s dyn Sink<K, V>, at: Attempt) -> Result<OpenPart<'s, K, V>, Failure> {
        let writer = sink.open(at).map_err(|error| failure(at, error))?;
        Ok(OpenPart { at, writer, pairs: 0 })
    }

    pub fn pair(&mut self, key: K::Ref<'_>, value: V::Ref<'_>) -> Result<(), Failure> {
        self.pairs += 1;
        self.writer.pair(key, value).map_err(|error| failure(self.at, error))
    }

    /// Closes the part; returns the number of its pairs.
    pub fn close(self) -> Result<u64, Failure> {
        self.writer.close().map_err(|error| failure(self.at, error))?;
        Ok(self.pairs)
    }
}

fn failure(at: Attempt, error: ProgramError) -> Failure {
    Failure::Sink { part: at.part, error: error.unless_retried() }
}
