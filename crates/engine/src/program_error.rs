//! The error of a map or reduce function, in a form that crosses processes.

use std::error::Error;
use std::fmt::{self, Display, Formatter};

/// The error of a map or reduce function. The `?` operator makes one from any [`std::error::Error`].
///
/// If a map function returns it, the job ends with [`Error::Rejected`](crate::Error::Rejected), which names the record:
/// unless the error has a place ([`Chunk::reject`](crate::Chunk::reject)), the engine maps the records of the piece
/// once more, one by one, up to the first that fails. With [`Job::skip_bad_records`](crate::Job::skip_bad_records) the
/// record is set aside instead. If a reduce function returns it, or
/// [`MapReduce::map_pairs`](crate::MapReduce::map_pairs), the job ends with [`Error::Program`](crate::Error::Program),
/// which names the key or the step.
///
/// The function is not tried again, because it gives the same answer for the same input; [`retry`](ProgramError::retry)
/// is for the exceptions.
///
/// Only text crosses from a worker to the process that started the job: the messages of the error and of its sources,
/// up to 512 bytes, and a [`code`](ProgramError::code).
///
/// ```
/// use gristmill::{Emit, Error, Input, Isolation, Job, MapReduce, ProgramError, Chunk};
///
/// /// Adds up numbers, one in each line.
/// struct Sum;
///
/// impl MapReduce for Sum {
///     type Key = ();
///     type Value = i64;
///
///     fn map(&self, chunk: &mut Chunk<'_>, out: &mut impl Emit<(), i64>) -> Result<(), ProgramError> {
///         for line in chunk.lines() {
///             out.emit((), str::from_utf8(line)?.parse()?);
///         }
///         Ok(())
///     }
/// }
///
/// // This doctest runs beside others in one process, so its workers are threads.
/// let job = Job::new(&Sum, Input::bytes("numbers", b"1\n2\nthree\n")?).isolation(Isolation::Thread);
/// let Err(Error::Rejected { line, why, .. }) = job.run() else { panic!("three is spelt out") };
/// assert_eq!((line, &why[..]), (Some(3), "invalid digit found in string"));
/// # Ok::<(), gristmill::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
#[must_use = "return it from the map or reduce function: return Err(..)"]
pub struct ProgramError {
    /// The message, and those of its sources.
    messages: Vec<String>,
    code: Option<i32>,
    pub(crate) verdict: Consequence,
    /// The byte of the file that it is about, if the program says so.
    pub(crate) offset: Option<u64>,
}

/// The consequence of an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Consequence {
    /// The input is wrong: end the job, or set the record aside.
    Bad,
    /// The input is correct, but needs more than the job may take: end the job.
    TooLarge,
    /// Try the task again.
    Retry,
}

impl ProgramError {
    /// Makes an error with a message of its own.
    pub fn new(why: impl Display) -> ProgramError {
        let mut why = why.to_string();
        if why.is_empty() {
            "the program gave no reason".clone_into(&mut why);
        }
        ProgramError { messages: vec![why], code: None, verdict: Consequence::Bad, offset: None }
    }

    /// Adds a number by which the caller of the job can tell errors apart ([`Error::Rejected`](crate::Error::Rejected),
    /// [`Error::Program`](crate::Error::Program)).
    pub fn code(self, code: i32) -> ProgramError {
        ProgramError { code: Some(code), ..self }
    }

    /// Lets the task be tried again ([`Job::retries`](crate::Job::retries)), as after a panic, because the error may
    /// not come back: a service did not answer, say. The worker is replaced, and what it had not sent is mapped again.
    pub fn retry(self) -> ProgramError {
        ProgramError { verdict: Consequence::Retry, ..self }
    }

    /// Ends the job with this error, from a function that cannot return it: a combiner. (A map or reduce function
    /// returns it.) The job's error is [`Error::Program`](crate::Error::Program). No record is set aside for it,
    /// because a combiner may see values of many.
    ///
    /// ```
    /// use gristmill::{Chunk, Emit, Error, Input, Isolation, Job, MapReduce, ProgramError};
    ///
    /// /// Adds up numbers whose sum fits a byte.
    /// struct Sum;
    ///
    /// impl MapReduce for Sum {
    ///     type Key = ();
    ///     type Value = u8;
    ///
    ///     fn combiner(&self) -> Option<impl Fn(u8, u8) -> u8> {
    ///         Some(|a: u8, b| a.checked_add(b).unwrap_or_else(|| ProgramError::new("more than 255").throw()))
    ///     }
    ///
    ///     fn map(&self, chunk: &mut Chunk<'_>, out: &mut impl Emit<(), u8>) -> Result<(), ProgramError> {
    ///         chunk.lines().try_for_each(|line| Ok(out.emit((), str::from_utf8(line)?.parse()?)))
    ///     }
    /// }
    ///
    /// // This doctest runs beside others in one process, so its workers are threads.
    /// let job = Job::new(&Sum, Input::bytes("numbers", b"200\n100\n")?).isolation(Isolation::Thread);
    /// let Err(error @ Error::Program { .. }) = job.run() else { panic!("300 does not fit") };
    /// assert_eq!(error.to_string(), "the combiner: more than 255");
    /// # Ok::<(), gristmill::Error>(())
    /// ```
    pub fn throw(self) -> ! {
        std::panic::resume_unwind(Box::new(self))
    }

    /// Sets the byte of the file that it is about.
    pub(crate) fn at(self, offset: u64) -> ProgramError {
        ProgramError { offset: Some(offset), ..self }
    }

    /// Says that the input is correct, but needs too much.
    pub(crate) fn too_large(self) -> ProgramError {
        ProgramError { verdict: Consequence::TooLarge, ..self }
    }

    /// Returns it with another message.
    pub(crate) fn with_message(self, why: String) -> ProgramError {
        ProgramError { messages: vec![why], ..self }
    }

    /// Returns the number that [`ProgramError::code`] set.
    pub(crate) fn number(&self) -> Option<i32> {
        self.code
    }

    /// Returns whether the task is to be tried again.
    pub(crate) fn is_retried(&self) -> bool {
        self.verdict == Consequence::Retry
    }

    /// Returns it, or ends this worker if the task is to be tried again.
    pub(crate) fn unless_retried(self) -> ProgramError {
        match self.verdict {
            Consequence::Retry => std::panic::resume_unwind(Box::new(self)),
            Consequence::Bad | Consequence::TooLarge => self,
        }
    }

    /// Returns the message, and those of its sources.
    pub(crate) fn messages(&self) -> &[String] {
        &self.messages
    }

    /// Makes the error that another process had.
    pub(crate) fn received<'m>(messages: impl Iterator<Item = &'m str>, code: Option<i32>) -> ProgramError {
        let messages = messages.map(str::to_owned).collect();
        ProgramError { messages, code, verdict: Consequence::Bad, offset: None }
    }
}

impl<E: Error> From<E> for ProgramError {
    fn from(error: E) -> ProgramError {
        let mut made = ProgramError::new(&error);
        let mut next = error.source();
        while let Some(source) = next {
            made.messages.push(source.to_string());
            next = source.source();
        }
        made
    }
}

/// The message, followed by those of its sources.
impl Display for ProgramError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&self.messages.join(": "))
    }
}

impl fmt::Debug for ProgramError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        Display::fmt(self, f)
    }
}
