//! Errors: each says what failed, where, at which limit, and what to do next.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use rustix::io::Errno;

use gristmill_os::file_size::limit_bytes;
use gristmill_os::process::ForkError;
use gristmill_os::room::{TemporaryFolder, named};

use crate::failure::{Doing, Failure};
use crate::memory::{is_limit, shown};
use crate::program_error::ProgramError;

/// The reason why a job gave no result. Each message says what failed, where, at which limit, and what to do next.
///
/// ```
/// # use gristmill::{Bytes, Chunk, Emit, MapReduce, ProgramError};
/// # struct Words;
/// # impl MapReduce for Words {
/// #     type Key = Bytes;
/// #     type Value = u64;
/// #     fn combiner(&self) -> Option<impl Fn(u64, u64) -> u64> {
/// #         Some(|a, b| a + b)
/// #     }
/// #     fn map(&self, chunk: &mut Chunk<'_>, out: &mut impl Emit<Bytes, u64>) -> Result<(), ProgramError> {
/// #         let words = chunk.bytes().split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
/// #         words.for_each(|word| out.emit(word, 1));
/// #         Ok(())
/// #     }
/// # }
/// use gristmill::{Error, Input, Isolation, Job};
///
/// // This doctest runs beside others in one process, so its workers are threads.
/// let job = Job::new(&Words, Input::paths(["/no/such/file"])).isolation(Isolation::Thread);
/// match job.run() {
///     Err(Error::Input { path, .. }) => assert_eq!(path.to_str(), Some("/no/such/file")),
///     _ => unreachable!("there is no such file"),
/// }
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An input cannot be opened or read.
    #[error("cannot read {}: {source}", path.display())]
    Input {
        /// The file or directory.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// An input cannot be read to its end.
    #[error("cannot read {}{}: {source}", path.display(), at(*offset))]
    Read {
        /// The file.
        path: PathBuf,
        /// The first byte of its content that cannot be read.
        offset: u64,
        /// The error of the system.
        source: io::Error,
    },
    /// The input names nothing to read.
    #[error("{what}")]
    NoInput {
        /// The thing that was searched for, and where.
        what: String,
    },
    /// A compressed file is damaged or is not compressed, or a file that is read as text is none.
    #[error("cannot read {}{}: {why}", path.display(), content(*offset))]
    Compressed {
        /// The file.
        path: PathBuf,
        /// Bytes of its content that were decompressed before.
        offset: u64,
        /// The reason.
        why: String,
    },
    /// A stream cannot be copied to a file, which is needed to read it twice.
    #[error(
        "cannot copy {} to the folder {}: {} ({copied_bytes} bytes were copied). A pipe is copied first, because it can be read only once: name another folder with Input::spool_dir, or read it without a copy with Input::read_once",
        path.display(), named(folder), says(source)
    )]
    Spool {
        /// The stream.
        path: PathBuf,
        /// The folder.
        folder: PathBuf,
        /// Bytes copied before.
        copied_bytes: u64,
        /// The error of the system.
        source: io::Error,
    },
    /// A worker died, and the part of a stream that it had read is lost
    /// ([`Input::read_once`](crate::Input::read_once)).
    #[error(
        "{last}. {} was read as it came (Input::read_once), and what that worker had of it is gone. Leave that out: then it is copied first, and read again",
        path.display()
    )]
    ReadOnce {
        /// The stream.
        path: PathBuf,
        /// The death: worker, role, place, cause.
        last: String,
    },
    /// A program cannot read a file ([`Input::sift`](crate::Input::sift)).
    #[error("{}: {why}", path.display())]
    Unfit {
        /// The file.
        path: PathBuf,
        /// The reason that it cannot be used.
        why: String,
    },
    /// A file needs more memory than this job may take, or the job more than the system gives it. That is no fault of
    /// the file, so it is not set aside ([`Input::skip_bad_files`](crate::Input::skip_bad_files)).
    #[error("{what}")]
    TooLarge {
        /// The file or the job, what it needs, and the limit.
        what: String,
    },
    /// More files are bad than may be set aside.
    #[error(
        "{last}. That is one file more than the {limit} that may be set aside (Input::skip_bad_files): raise that number, or say all"
    )]
    TooManyBadFiles {
        /// The number of files that may be set aside.
        limit: u32,
        /// The reason of the last one.
        last: String,
    },
    /// A file is shorter than it was when the job began.
    #[error(
        "{} ends at byte {found}, but had {expected} bytes when the job began: it was truncated while it was read. Rerun when nothing writes to it",
        path.display()
    )]
    Truncated {
        /// The file.
        path: PathBuf,
        /// Its size at the start, in bytes.
        expected: u64,
        /// Where it ends now, in bytes.
        found: u64,
    },
    /// A record is longer than the limit.
    #[error(
        "a record in {} that starts at byte {offset} is longer than {limit_bytes} bytes. Raise the limit with Job::record_bytes_max, or check that this is the right kind of file and that its lines end with LF",
        path.display()
    )]
    RecordTooLong {
        /// The file.
        path: PathBuf,
        /// Where the record starts, in bytes.
        offset: u64,
        /// The limit.
        limit_bytes: usize,
    },
    /// A file of fixed-size records ends within a record.
    #[error(
        "{} ends within the record that starts at byte {offset}: its size is no multiple of {record_bytes} bytes. Check that it is whole, and the right kind of file",
        path.display()
    )]
    RecordCut {
        /// The file.
        path: PathBuf,
        /// Where the last record starts, in bytes.
        offset: u64,
        /// The size of a record.
        record_bytes: usize,
    },
    /// A quoted field of a CSV file is not closed.
    #[error(
        "{}{}: a quote opens a field here (byte {offset}) and is not closed {}; if quotes are text in this file, set Records::Lines",
        path.display(),
        line.map(|line| format!(" line {line}")).unwrap_or_default(),
        match limit_bytes {
            None => "before the end of the file. Close it".to_owned(),
            Some(limit) => format!("within {limit} bytes, the limit on a row. Close it, or raise Job::record_bytes_max"),
        }
    )]
    QuoteOpen {
        /// The file.
        path: PathBuf,
        /// The byte of its content at which the quote opens the field.
        offset: u64,
        /// The line of that byte, from 1, if the file can still be read.
        line: Option<u64>,
        /// The limit on a row in bytes, if the field reaches beyond it; otherwise the field reaches the end of the
        /// file.
        limit_bytes: Option<usize>,
    },
    /// The map function returned an error ([`ProgramError`]).
    #[error("{}{}: {why}", path.display(), line.map(|line| format!(" line {line}")).unwrap_or_default())]
    Rejected {
        /// The file.
        path: PathBuf,
        /// The byte of the file that the program rejected.
        offset: u64,
        /// The line of that byte, from 1, if records are lines.
        line: Option<u64>,
        /// The message of the error, and those of its sources.
        why: String,
        /// The number that the program gave it ([`ProgramError::code`](crate::ProgramError::code)).
        code: Option<i32>,
    },
    /// The reduce function, [`MapReduce::map_pairs`](crate::MapReduce::map_pairs), a combiner
    /// ([`ProgramError::throw`](crate::ProgramError::throw)) or a [`Sink`](crate::Sink) failed.
    #[error("{what}: {why}")]
    Program {
        /// The function, and the key, the step or the part.
        what: String,
        /// The message of the error, and those of its sources.
        why: String,
        /// The number that the program gave it ([`ProgramError::code`](crate::ProgramError::code)).
        code: Option<i32>,
    },
    /// Two tasks changed one element of a [`SharedOutput`](crate::SharedOutput) to different values.
    #[error("{what} (that on {place}). Let each element be changed by one task only, or by all to the same value")]
    Conflict {
        /// The input of the second task.
        place: String,
        /// The element, its value before, and the values that the tasks gave it.
        what: String,
    },
    /// A task failed as often as it may be tried.
    #[error("{last}. The task was tried {attempts} times and the job stopped")]
    TaskFailed {
        /// The last death: worker, role, place, cause.
        last: String,
        /// The number of attempts.
        attempts: u32,
    },
    /// A record failed as often as a task may be tried.
    #[error(
        "{last}. The task was tried {attempts} times, and that record did it. Rerun with Job::skip_bad_records(1) to set it aside"
    )]
    RecordFailed {
        /// The file.
        path: PathBuf,
        /// The offset of the record in the file's content.
        offset: u64,
        /// Its line, from 1, if records are lines.
        line: Option<u64>,
        /// The last death: worker, role, place, cause.
        last: String,
        /// The number of attempts.
        attempts: u32,
    },
    /// The system refused memory to the workers of a task, as often as the task may be tried. No record is set aside
    /// for that.
    #[error(
        "{last}. The task was tried {attempts} times, and each time there was too little memory for it, which is no fault of a record. Raise the limit of memory (ulimit -v, or that of the cgroup), or take fewer workers"
    )]
    MemoryRefused {
        /// The last death: worker, role, place, cause.
        last: String,
        /// The number of attempts.
        attempts: u32,
    },
    /// More records failed than may be set aside.
    #[error(
        "{what}. That is one record more than the {limit} that may be set aside (Job::skip_bad_records): raise that number, or check that this is the right kind of file"
    )]
    TooManyBadRecords {
        /// The number of records that may be set aside.
        limit: u32,
        /// The record, and its failure.
        what: String,
    },
    /// Combining or reducing some partitions failed as often as a task may be tried.
    #[error("{last}. Its partitions were made {attempts} times and the job stopped")]
    ReduceFailed {
        /// The last death: worker, role, cause.
        last: String,
        /// The number of attempts.
        attempts: u32,
    },
    /// More workers died than this job tolerates.
    #[error("{last}. That is one more than the {limit} failures that this job may have (Job::max_failures)")]
    TooManyFailures {
        /// The number of deaths that it tolerates.
        limit: u32,
        /// The last death: worker, role, place, cause.
        last: String,
    },
    /// More workers died than the job has spare slots for.
    #[error("{deaths} workers died, more than the {limit} that a job replaces. The last: {last}")]
    TooManyDeaths {
        /// The number of workers that died.
        deaths: usize,
        /// The number of spare slots.
        limit: usize,
        /// The last death: worker, role, place, cause.
        last: String,
    },
    /// Process isolation was requested where a fork is not safe.
    #[error(
        "this process already runs {threads} threads, and a process with threads cannot be forked safely. Make a Starter before the first thread and run the job there, or use Isolation::Thread"
    )]
    ThreadsRunning {
        /// The number of threads of this process.
        threads: usize,
    },
    /// A call of a [`Starter`](crate::Starter) was not served to its end.
    #[error("{what}")]
    Starter {
        /// The process that ended, and why.
        what: String,
    },
    /// The pairs of two consecutive steps of an iterated job do not fit in memory and in the spill folder.
    #[error(
        "step {step} did not fit: the pairs of two steps in a row may take {limit_bytes} bytes together, in memory and in the spill folder. Make room there, raise Job::memory or Job::keep_bytes, or stop a step earlier"
    )]
    KeepLimit {
        /// The step whose pairs did not fit, from 0.
        step: u32,
        /// The limit.
        limit_bytes: u64,
    },
    /// A pair kept for the next step is larger than an extent, the piece of the region that a worker takes at a time.
    #[error(
        "a pair of {bytes} bytes in step {step} is larger than {limit_bytes} bytes, the largest that can be kept from step to step. Emit it in parts"
    )]
    PairTooLarge {
        /// The step that emitted it, from 0.
        step: u32,
        /// Its size.
        bytes: usize,
        /// The limit.
        limit_bytes: usize,
    },
    /// An iterated job exceeded the limit of rounds.
    #[error("the job was to begin round {limit}; an iterated job has fewer, the repetitions after a loss included")]
    TooManyRounds {
        /// The limit.
        limit: u32,
    },
    /// A setting cannot be honoured.
    #[error("{0}")]
    Setting(String),
    /// The result cannot be written.
    #[error("cannot write {}: {}", path.display(), says(source))]
    Output {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// Pairs that did not fit in memory could not be spilled to disk.
    #[error(
        "cannot {doing} in the spill folder {}: {} (this worker had spilled {spilled_bytes} bytes). {} another folder with Job::spill_dirs, or give the job more memory with Job::memory",
        named(path),
        says(source),
        if let Some(room) = room(source) { format!("{room}, name") } else { "Name".to_owned() }
    )]
    Spill {
        /// The folder.
        path: PathBuf,
        /// The operation that failed.
        doing: &'static str,
        /// Bytes that the worker had spilled before.
        spilled_bytes: u64,
        /// The error of the system.
        source: io::Error,
    },
    /// A spill file is damaged. Nothing of the damaged block was used.
    #[error(
        "a block at byte {offset} of a spill file in {} is not what was written there: the disk, its driver or the memory damaged it. The job was stopped before it could use it; rerun it with another Job::spill_dirs",
        path.display()
    )]
    SpillDamaged {
        /// The folder.
        path: PathBuf,
        /// The offset of the block in bytes.
        offset: u64,
    },
    /// A checkpoint cannot be used.
    #[error(
        "cannot use the checkpoint in {}: {}. {} another folder with Job::checkpoint",
        path.display(),
        says(source),
        if let Some(room) = room(source) { format!("{room}, or name") } else { "Name".to_owned() }
    )]
    Checkpoint {
        /// Its folder.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// A checkpoint is in use by a running job.
    #[error(
        "the checkpoint in {} is in use: another run goes on there. Wait until that has ended, or name another folder with Job::checkpoint",
        path.display()
    )]
    CheckpointInUse {
        /// Its folder.
        path: PathBuf,
    },
    /// A checkpoint belongs to a job with another input, other options, or another program.
    #[error(
        "the checkpoint in {} is not of this job: {why}. Remove that folder to begin anew, or name another one with Job::checkpoint",
        path.display()
    )]
    CheckpointOfAnother {
        /// Its folder.
        path: PathBuf,
        /// The difference.
        why: String,
    },
    /// A checkpoint is damaged. Nothing of the damaged block was used.
    #[error(
        "the checkpoint in {} is damaged: a file there is not what was written. Remove that folder to begin anew",
        path.display()
    )]
    CheckpointDamaged {
        /// Its folder.
        path: PathBuf,
    },
    /// A worker died, its part of the result had to be made again, and a task then emitted other pairs than the first
    /// time.
    #[error(
        "{place} {} when it was mapped again after a death{}. What was made of the first does not fit the others, so the job stopped. Let the map function depend on nothing but its chunk: seed random numbers with its place, and use no clock and no order that changes; and let nobody write to the input",
        gave(*first, *again),
        begun_anew(*anew)
    )]
    Unrepeatable {
        /// The input of the task.
        place: String,
        /// The number of pairs that it emitted the first time.
        first: u64,
        /// The number of pairs that it emitted when it was mapped again. If the number is the same, the pairs differ,
        /// or the task changed a shared output differently.
        again: u64,
        /// The number of times that the job had started over for this reason.
        anew: u32,
    },
    /// A word that workers share has a value that no worker gives it.
    #[error(
        "a shared word was overwritten{}: {what}. A function of the program has written there through a stray pointer, so no result can be trusted, and the job stopped. Look for the pointer with a memory checker (valgrind, or -fsanitize=address)",
        worker.map(|worker| format!(" by worker {worker}")).unwrap_or_default()
    )]
    Overwritten {
        /// The worker that has done it, if only one could.
        worker: Option<usize>,
        /// The word, or what does not agree.
        what: String,
    },
    /// Somebody cancelled the job: through its [`CancelToken`](crate::CancelToken), or because
    /// [`Job::on_progress`](crate::Job::on_progress) returned `Break`.
    #[error("the job was cancelled")]
    Cancelled,
    /// The job took longer than [`Job::deadline`](crate::Job::deadline) allows.
    #[error("the job did not end within its deadline of {limit:?} (Job::deadline)")]
    Deadline {
        /// The time that it was given.
        limit: Duration,
    },
    /// The operating system refused a request of the engine.
    #[error("{what}: {}{}", says(source), advice(source))]
    System {
        /// The request.
        what: &'static str,
        /// The error of the system.
        source: io::Error,
    },
}

impl Error {
    /// Returns an error of the program, in `what`.
    pub(crate) fn program(what: impl Into<String>, error: &ProgramError) -> Error {
        Error::Program { what: what.into(), why: error.to_string(), code: error.number() }
    }

    /// Returns the error of a process that could not be forked, for `what`.
    pub(crate) fn fork(what: &'static str, error: ForkError) -> Error {
        match error {
            ForkError::ThreadsRunning { count } => Error::ThreadsRunning { threads: count },
            ForkError::Kernel(source) => Error::System { what, source },
        }
    }

    /// Returns whether the error is a limit of this run, and not a fault of a file.
    pub(crate) fn is_limit(&self) -> bool {
        match self {
            Error::Spool { .. } | Error::TooManyBadFiles { .. } | Error::Setting(_) | Error::TooLarge { .. } => true,
            Error::Input { source, .. } | Error::Read { source, .. } => is_limit(source),
            _ => false,
        }
    }
}

/// Makes the error of a word that no worker writes like that.
pub(crate) fn overwritten(worker: Option<usize>, what: &str) -> Error {
    Error::Overwritten { worker, what: what.to_owned() }
}

/// Returns what to do about a request that the system refused because of a limit, to be added to a message.
fn advice(source: &io::Error) -> &'static str {
    match source.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::MFILE) => {
            ": raise the limit of open files of this process (ulimit -n), or take fewer workers (Job::workers)"
        }
        Some(Errno::AGAIN) => {
            ": raise the limit of processes of this user (ulimit -u) or of the container (pids.max), or take fewer workers \
             (Job::workers)"
        }
        Some(Errno::NFILE) => {
            ": the system has too many open files; end other programs, or take fewer workers (Job::workers)"
        }
        _ => "",
    }
}

/// Describes the two results of one task.
pub(crate) fn gave(first: u64, again: u64) -> String {
    match (first, again) {
        (0, 0) => "wrote something into a shared output when it was mapped first, and something else".into(),
        _ => format!("gave {first} pairs when it was mapped first, and {again} others"),
    }
}

fn at(offset: u64) -> String {
    if offset == 0 { String::new() } else { format!(" at byte {offset}") }
}

fn content(offset: u64) -> String {
    if offset == 0 { String::new() } else { format!(" after byte {offset} of its content") }
}

/// Returns how to get room for a file; `None` if the error has another cause.
fn room(error: &io::Error) -> Option<&'static str> {
    match error.kind() {
        io::ErrorKind::StorageFull => Some("Make room there"),
        io::ErrorKind::QuotaExceeded => Some("Make room there, or have the quota raised"),
        io::ErrorKind::FileTooLarge => Some("Raise the limit of file sizes (ulimit -f)"),
        _ => None,
    }
}

/// Returns the error that stops a job before a disk is full.
pub(crate) fn little_room(kept_free_bytes: u64) -> io::Error {
    let kept = shown(kept_free_bytes);
    let why = format!("less than {kept} is free there, and temporary files leave that much free (Job::keep_free)");
    io::Error::new(io::ErrorKind::StorageFull, why)
}

fn begun_anew(times: u32) -> String {
    match times {
        0 => String::new(),
        1 => "; the job had begun anew once".to_owned(),
        times => format!("; the job had begun anew {times} times"),
    }
}

/// Turns the failure of a file in a spill folder into an error.
pub(crate) fn explain_spill(spill_dirs: &[TemporaryFolder], failure: Failure) -> Error {
    let Failure::Spill { folder, doing, errno, bytes } = failure else {
        unreachable!("files of pairs fail as such, and not with {failure:?}");
    };
    let TemporaryFolder { path, kept_free_bytes } = spill_dirs[folder].clone();
    let doing = match doing {
        Doing::Open => "make a file",
        Doing::Write => "write",
        Doing::KeepFree => {
            return Error::Spill { path, doing: "write", spilled_bytes: bytes, source: little_room(kept_free_bytes) };
        }
        Doing::Read => "read",
        Doing::Check => return Error::SpillDamaged { path, offset: bytes },
    };
    let source = match errno {
        0 => io::ErrorKind::UnexpectedEof.into(),
        errno => io::Error::from_raw_os_error(errno),
    };
    Error::Spill { path, doing, spilled_bytes: bytes, source }
}

/// Returns the system's error, with the limit if it is that of the size of files.
fn says(source: &io::Error) -> String {
    match limit_bytes().filter(|_| source.kind() == io::ErrorKind::FileTooLarge) {
        Some(limit) => format!("{source}: a file may have {limit} bytes (ulimit -f)"),
        None => source.to_string(),
    }
}

/// A result whose error is [`enum@Error`], unless another is named.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Converts an [`io::Error`] to an [`enum@Error`] that names the request.
pub(crate) trait Asked<T> {
    fn asked(self, what: &'static str) -> Result<T>;
}

impl<T, E: Into<io::Error>> Asked<T> for std::result::Result<T, E> {
    fn asked(self, what: &'static str) -> Result<T> {
        self.map_err(|source| Error::System { what, source: source.into() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `ulimit -n 20` ended a job with "starting a worker process: Too many open files", and nothing said what to do.
    #[test]
    fn a_lack_of_file_descriptors_is_told_with_advice() {
        let told =
            |errno: Errno| Err::<(), _>(errno).asked("starting a worker process").expect_err("refused").to_string();
        let expected = "starting a worker process: too many open files";
        assert!(told(Errno::MFILE).to_lowercase().starts_with(expected), "{}", told(Errno::MFILE));
        assert!(told(Errno::MFILE).ends_with(
            "raise the limit of open files of this process (ulimit -n), or take fewer workers (Job::workers)"
        ));
        assert!(told(Errno::AGAIN).contains("limit of processes of this user (ulimit -u)"));
        assert!(!told(Errno::PERM).contains("fewer workers"));
    }
}
