//! What can go wrong, each with what, where, which limit, and what to do next.

use std::io;
use std::path::PathBuf;

use gristmill_os::file_size::limit_bytes;

use crate::failure::{Doing, Failure};
use crate::memory::is_limit;

/// Why a job did not give an answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An input cannot be opened or read.
    #[error("cannot read {}: {source}", path.display())]
    Input {
        /// The file or directory.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// An input cannot be read any further.
    #[error("cannot read {}{}: {source}", path.display(), at(*offset))]
    Read {
        /// The file.
        path: PathBuf,
        /// The byte of its content that cannot be read.
        offset: u64,
        /// What the system says.
        source: io::Error,
    },
    /// The input names nothing to read.
    #[error("{what}")]
    NoInput {
        /// What was looked for, and where.
        what: String,
    },
    /// A compressed file is damaged, or is none.
    #[error("cannot read {}{}: {why}", path.display(), content(*offset))]
    Compressed {
        /// The file.
        path: PathBuf,
        /// Bytes of its content that could be decompressed before.
        offset: u64,
        /// What is wrong.
        why: String,
    },
    /// A stream cannot be copied to a file, as it must be to be read twice.
    #[error(
        "cannot copy {} to the folder {}: {} ({copied_bytes} bytes were copied). A pipe is copied first, because it can be read only once: name another folder with Input::spool_dir, or read it without a copy with Input::read_once",
        path.display(), folder.display(), says(source)
    )]
    Spool {
        /// The stream.
        path: PathBuf,
        /// The folder.
        folder: PathBuf,
        /// How much had been copied before.
        copied_bytes: u64,
        /// What the system says.
        source: io::Error,
    },
    /// A worker died, and what it had read of a stream is gone ([`Input::read_once`](crate::Input::read_once)).
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
        /// What is wrong with it.
        why: String,
    },
    /// A file needs more than this job may take. That is no fault of the file, so it is not set aside
    /// ([`Input::skip_bad_files`](crate::Input::skip_bad_files)).
    #[error("{what}")]
    TooLarge {
        /// The file, what it needs, and the limit.
        what: String,
    },
    /// One file more is bad than may be set aside.
    #[error(
        "{last}. That is one file more than the {limit} that may be set aside (Input::skip_bad_files): raise that number, or say all"
    )]
    TooManyBadFiles {
        /// How many may be.
        limit: u32,
        /// What is wrong with the last.
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
        "a record in {} that starts at byte {offset} is longer than {limit_bytes} bytes. Raise the limit with Job::record_bytes_max, or check that this is the right kind of file",
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
    /// A file of records of a fixed size ends inside of one.
    #[error(
        "{} ends within the record that starts at byte {offset}: its size is no multiple of {record_bytes} bytes. Check that it is whole, and the right kind of file",
        path.display()
    )]
    RecordCut {
        /// The file.
        path: PathBuf,
        /// Where the last record starts, in bytes.
        offset: u64,
        /// How long a record is.
        record_bytes: usize,
    },
    /// The program cannot use what it read ([`Split::reject`](crate::Split::reject)).
    #[error("{}{}: {why}", path.display(), line.map(|line| format!(" line {line}")).unwrap_or_default())]
    Rejected {
        /// The file.
        path: PathBuf,
        /// What the program complained about: a byte of the file.
        offset: u64,
        /// The line in which that byte stands, from 1, if records are lines.
        line: Option<u64>,
        /// What is wrong.
        why: String,
    },
    /// Two tasks changed one element of a [`SharedOutput`](crate::SharedOutput) to different values.
    #[error("{what} (that on {place}). Let each element be changed by one task only, or by all to the same value")]
    Conflict {
        /// The input of the second task.
        place: String,
        /// The element, what it was, and what the tasks made of it.
        what: String,
    },
    /// A task failed as often as a task may.
    #[error("{last}. The task was tried {attempts} times and the job stopped")]
    TaskFailed {
        /// The last death: worker, role, place, cause.
        last: String,
        /// How often the task was tried.
        attempts: u32,
    },
    /// A record failed as often as a task may.
    #[error(
        "{last}. The task was tried {attempts} times, and that record did it. Rerun with Job::skip_bad_records(1) to set it aside"
    )]
    RecordFailed {
        /// The file.
        path: PathBuf,
        /// Where in its content the record begins, in bytes.
        offset: u64,
        /// Its line, from 1, if records are lines.
        line: Option<u64>,
        /// The last death: worker, role, place, cause.
        last: String,
        /// How often the task was tried.
        attempts: u32,
    },
    /// One record more failed than may be set aside.
    #[error(
        "{what}. That is one record more than the {limit} that may be set aside (Job::skip_bad_records): raise that number, or check that this is the right kind of file"
    )]
    TooManyBadRecords {
        /// How many may be.
        limit: u32,
        /// The record, and what it did.
        what: String,
    },
    /// Partitions failed, as often as a task may, when they were combined or reduced.
    #[error("{last}. Its partitions were made {attempts} times and the job stopped")]
    ReduceFailed {
        /// The last death: worker, role, cause.
        last: String,
        /// How often they were made.
        attempts: u32,
    },
    /// More workers died than this job was to bear.
    #[error("{last}. That is one more than the {limit} failures that this job may have (Job::max_failures)")]
    TooManyFailures {
        /// How many it may have.
        limit: u32,
        /// The last death: worker, role, place, cause.
        last: String,
    },
    /// More workers died than the job has spare slots for.
    #[error("{deaths} workers died, more than the {limit} that a job replaces. The last: {last}")]
    TooManyDeaths {
        /// Workers that died.
        deaths: usize,
        /// Spare slots.
        limit: usize,
        /// The last death: worker, role, place, cause.
        last: String,
    },
    /// Process isolation was asked for where a fork is not safe.
    #[error(
        "this process already runs {threads} threads, and a process with threads cannot be forked safely. Use Isolation::Thread, or run the job before the first thread is started"
    )]
    ThreadsRunning {
        /// Threads found.
        threads: usize,
    },
    /// What two steps of an iterated job leave is more than the region keeps.
    #[error(
        "step {step} did not fit: the pairs of two steps in a row may take {limit_bytes} bytes together. Raise Job::memory or Job::keep_bytes, or stop a step earlier"
    )]
    KeepLimit {
        /// The step whose pairs found no room, from 0.
        step: u32,
        /// The limit.
        limit_bytes: u64,
    },
    /// What a reducer of an iterated job gathers in a step is more than its share of the memory.
    #[error(
        "step {step} did not fit: its pairs may take {limit_bytes} bytes in each reducer, and a job in steps does not spill. Raise Job::memory, or stop a step earlier"
    )]
    StepLimit {
        /// The step, from 0.
        step: u32,
        /// The limit of a reducer.
        limit_bytes: u64,
    },
    /// A pair that a step leaves for the next is larger than a piece of the region that one worker takes at a time.
    #[error(
        "a pair of {bytes} bytes in step {step} is larger than {limit_bytes} bytes, the largest that can be kept from step to step. Emit it in parts"
    )]
    PairTooLarge {
        /// The step that made it, from 0.
        step: u32,
        /// Its size.
        bytes: usize,
        /// The limit.
        limit_bytes: usize,
    },
    /// An iterated job went on and on.
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
        /// What the system says.
        source: io::Error,
    },
    /// What did not fit memory cannot be spilled to disk.
    #[error(
        "cannot {doing} in the spill folder {}: {} (this worker had spilled {spilled_bytes} bytes). {} another folder with Job::spill_dirs, or give the job more memory with Job::memory",
        path.display(),
        says(source),
        if let Some(room) = room(source) { format!("{room}, name") } else { "Name".to_owned() }
    )]
    Spill {
        /// The folder.
        path: PathBuf,
        /// What was being done there.
        doing: &'static str,
        /// Bytes that the worker had written to its spill files before.
        spilled_bytes: u64,
        /// What the system says.
        source: io::Error,
    },
    /// A spill file does not hold what was written to it. Nothing of the damaged block was used.
    #[error(
        "a block at byte {offset} of a spill file in {} is not what was written there: the disk, its driver or the memory damaged it. The job was stopped before it could use it; rerun it with another Job::spill_dirs",
        path.display()
    )]
    SpillDamaged {
        /// The folder.
        path: PathBuf,
        /// Where the block lies, in bytes.
        offset: u64,
    },
    /// A checkpoint cannot be kept.
    #[error(
        "cannot use the checkpoint in {}: {}. {} another folder with Job::checkpoint",
        path.display(),
        says(source),
        if let Some(room) = room(source) { format!("{room}, or name") } else { "Name".to_owned() }
    )]
    Checkpoint {
        /// Its folder.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// A checkpoint is that of a job which runs.
    #[error(
        "the checkpoint in {} is in use: another run goes on there. Wait until that has ended, or name another folder with Job::checkpoint",
        path.display()
    )]
    CheckpointInUse {
        /// Its folder.
        path: PathBuf,
    },
    /// A checkpoint was left by a job with another input, other options, or another program.
    #[error(
        "the checkpoint in {} is not of this job: {why}. Remove that folder to begin anew, or name another one with Job::checkpoint",
        path.display()
    )]
    CheckpointOfAnother {
        /// Its folder.
        path: PathBuf,
        /// What is not as it was.
        why: String,
    },
    /// A checkpoint does not hold what was written to it. Nothing of the damaged block was used.
    #[error(
        "the checkpoint in {} is damaged: a file there is not what was written. Remove that folder to begin anew",
        path.display()
    )]
    CheckpointDamaged {
        /// Its folder.
        path: PathBuf,
    },
    /// A worker died, its part of the result had to be made again, and a task gave other pairs than the first time.
    #[error(
        "{place} {} when it was mapped again after a death{}. What was made of the first does not fit the others, so the job stopped. Let the map function depend on nothing but its split: seed random numbers with its place, and use no clock and no order that changes; and let nobody write to the input",
        gave(*first, *again),
        begun_anew(*anew)
    )]
    Unrepeatable {
        /// The input of the task.
        place: String,
        /// Pairs that it gave the first time.
        first: u64,
        /// Pairs that it gave when it was mapped again; if that is the same number, they are other pairs, or it has written
        /// something else into a shared output.
        again: u64,
        /// How often the job had begun anew before, because of the same.
        anew: u32,
    },
    /// The operating system refused something that the engine needs.
    #[error("{what}: {}", says(source))]
    System {
        /// What was asked of it.
        what: &'static str,
        /// What it says.
        source: io::Error,
    },
}

impl Error {
    /// It says where this run ends, and not what is wrong with a file.
    pub(crate) fn is_limit(&self) -> bool {
        match self {
            Error::Spool { .. } | Error::TooManyBadFiles { .. } | Error::Setting(_) | Error::TooLarge { .. } => true,
            Error::Input { source, .. } | Error::Read { source, .. } => is_limit(source),
            _ => false,
        }
    }
}

/// What a task did two times.
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

/// How to get room for a file that found none; `None` when that was not what it lacked.
fn room(error: &io::Error) -> Option<&'static str> {
    match error.kind() {
        io::ErrorKind::StorageFull => Some("Make room there"),
        io::ErrorKind::QuotaExceeded => Some("Make room there, or have the quota raised"),
        io::ErrorKind::FileTooLarge => Some("Raise the limit of file sizes (ulimit -f)"),
        _ => None,
    }
}

fn begun_anew(times: u32) -> String {
    match times {
        0 => String::new(),
        1 => "; the job had begun anew once".to_owned(),
        times => format!("; the job had begun anew {times} times"),
    }
}

/// What went wrong with a file in one of the spill folders.
pub(crate) fn explain_spill(spill_dirs: &[PathBuf], failure: Failure) -> Error {
    let Failure::Spill { folder, doing, errno, bytes } = failure else {
        unreachable!("files of pairs fail as such, and not with {failure:?}");
    };
    let path = spill_dirs[folder].clone();
    let doing = match doing {
        Doing::Open => "make a file",
        Doing::Write => "write",
        Doing::Read => "read",
        Doing::Check => return Error::SpillDamaged { path, offset: bytes },
    };
    let source = match errno {
        0 => io::ErrorKind::UnexpectedEof.into(),
        errno => io::Error::from_raw_os_error(errno),
    };
    Error::Spill { path, doing, spilled_bytes: bytes, source }
}

/// What the system says, with the limit if it was that of a file's size.
fn says(source: &io::Error) -> String {
    match limit_bytes().filter(|_| source.kind() == io::ErrorKind::FileTooLarge) {
        Some(limit) => format!("{source}: a file may have {limit} bytes (ulimit -f)"),
        None => source.to_string(),
    }
}

/// A result whose error is [`enum@Error`].
pub type Result<T> = std::result::Result<T, Error>;

/// Names what was asked of the system when an [`io::Error`] becomes an [`enum@Error`].
pub(crate) trait Asked<T> {
    fn asked(self, what: &'static str) -> Result<T>;
}

impl<T, E: Into<io::Error>> Asked<T> for std::result::Result<T, E> {
    fn asked(self, what: &'static str) -> Result<T> {
        self.map_err(|source| Error::System { what, source: source.into() })
    }
}
