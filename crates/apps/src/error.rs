//! What can be wrong with a question or with its data, before the engine comes into it.

use std::path::{Path, PathBuf};

/// Why an application did not give an answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The job failed.
    #[error(transparent)]
    Engine(#[from] gristmill::Error),
    /// A file is not what it should be.
    #[error("{}: {what}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong, and where in it.
        what: String,
    },
    /// A question that this data has no answer to.
    #[error("{0}")]
    Question(String),
}

/// A result whose error is [`enum@Error`].
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    pub(crate) fn file(path: &Path, what: impl ToString) -> Error {
        Error::File { path: path.to_owned(), what: what.to_string() }
    }
}
