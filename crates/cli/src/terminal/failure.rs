//! Failures of a command, and their exit status.

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use gristmill::Error;

use crate::terminal::messages::{printable, tell};
use crate::terminal::nearest::nearest;
use crate::terminal::settings::of_the_command;

/// The reason why a command ended early.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The command makes no sense.
    #[error("{0}")]
    Usage(String),
    /// The job failed.
    #[error(transparent)]
    Job(#[from] Error),
    /// The application cannot answer this question, or not from this data.
    #[error("{0}")]
    Application(gristmill_apps::Error),
    /// The reason was printed already.
    #[error("")]
    Told,
}

impl From<gristmill_apps::Error> for Failure {
    fn from(error: gristmill_apps::Error) -> Failure {
        match error {
            gristmill_apps::Error::Engine(error) => Failure::Job(error),
            other => Failure::Application(other),
        }
    }
}

impl Failure {
    /// Makes the failure of a `path` that cannot be written.
    pub fn output(path: impl Into<PathBuf>, source: io::Error) -> Failure {
        Failure::Job(Error::Output { path: path.into(), source })
    }

    /// Returns the path that leads nowhere, if that is the failure.
    fn not_found(&self) -> Option<&Path> {
        match self {
            Failure::Job(Error::Input { path, source } | Error::Output { path, source }) => {
                Some(path.as_path()).filter(|_| source.kind() == io::ErrorKind::NotFound)
            }
            // Its cause is a text, and a path that is there has no nearest one.
            Failure::Application(gristmill_apps::Error::File { path, .. }) => Some(path),
            _ => None,
        }
    }

    /// Prints the failure. Returns 1 for a job that failed, 2 for a command that makes no sense; `command` is the
    /// subcommand that was called.
    pub fn report(&self, command: &mut clap::Command) -> ExitCode {
        let mut what = of_the_command(&self.to_string(), command);
        if let Some(near) = self.not_found().and_then(nearest) {
            what = format!("{what}; did you mean {}?", near.display());
        }
        match self {
            Failure::Usage(_) | Failure::Job(Error::Setting(_)) => {
                // If standard error is closed, the message is lost.
                let _ = command.error(clap::error::ErrorKind::ValueValidation, printable(&what)).print();
                ExitCode::from(2)
            }
            Failure::Told => ExitCode::FAILURE,
            Failure::Job(_) | Failure::Application(_) => {
                tell(what);
                ExitCode::FAILURE
            }
        }
    }
}
