//! Errors in a question or in its data that are found before the engine runs.

use std::io;
use std::path::{Path, PathBuf};

use gristmill::Input;
use gristmill::files::{Source, Verdict};

/// The reason why an application gave no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The job failed.
    #[error(transparent)]
    Engine(#[from] gristmill::Error),
    /// A file is malformed.
    #[error("{}: {what}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The problem, and its place in the file.
        what: String,
    },
    /// The question has no answer for this data.
    #[error("{0}")]
    Question(String),
}

/// A result whose error is [`enum@Error`], unless another is named.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    pub(crate) fn file(path: &Path, what: impl ToString) -> Error {
        Error::File { path: path.to_owned(), what: what.to_string() }
    }

    /// Converts a verdict on a file. `TooLarge` is reported as a lack of memory, not as a fault of the file.
    pub(crate) fn verdict(path: &Path, verdict: Verdict) -> Error {
        match verdict {
            Verdict::TooLarge(why) => gristmill::Error::TooLarge { what: format!("{}: {why}", path.display()) }.into(),
            Verdict::Bad(why) | Verdict::OtherKind(why) => Error::file(path, why),
            Verdict::Fit => unreachable!("a verdict that is an error"),
        }
    }

    /// A valid file that needs more memory than is allowed.
    pub(crate) fn too_large(path: &Path, why: String) -> Error {
        Error::verdict(path, Verdict::TooLarge(why))
    }

    /// A file that cannot be read.
    pub fn read(path: &Path, error: io::Error) -> Error {
        Error::verdict(path, error.into())
    }
}

/// Calls `look_at` with each file of `input`. A file that is at fault is set aside, if bad files are; any other error
/// is returned.
pub(crate) fn sift(input: &mut Input, mut look_at: impl FnMut(&Source) -> Result<()>) -> Result<()> {
    // An error that is not the current file's fault.
    let mut ended = None;
    let sifted = input.sift(|source| match if ended.is_none() { look_at(source) } else { Ok(()) } {
        Ok(()) => Verdict::Fit,
        Err(Error::File { what, .. }) => Verdict::Bad(what),
        Err(error) => {
            ended = Some(error);
            Verdict::Fit
        }
    });
    ended.map_or_else(|| Ok(sifted?), Err)
}

/// Opens a source for a first look. The job will read it again.
pub(crate) fn open_to_look(source: &Source) -> Result<Box<dyn std::io::Read>> {
    if source.is_stream() {
        let name = source.name.display();
        let what =
            format!("{name} has to be looked at before it is read: write it to a file, or leave out Input::read_once");
        return Err(gristmill::Error::Setting(what).into());
    }
    source.open().map_err(|error| Error::read(&source.name, error))
}

/// Refuses a file that does not consist of records of `width` bytes; `need` begins the message. The length of a
/// compressed file is only checked when the job reads it.
pub(crate) fn whole_records(input: &mut Input, width: u64, need: &str) -> Result<()> {
    let is_cut = |source: &&Source| source.compression().is_none() && !source.bytes.is_multiple_of(width);
    match input.sources()?.iter().find(is_cut) {
        Some(cut) => Err(Error::file(&cut.name, format!("has {} bytes; {need}", cut.bytes))),
        None => Ok(()),
    }
}
