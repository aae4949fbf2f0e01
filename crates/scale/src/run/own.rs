//! One of our own applications as a command: its words, and the statistics that it leaves.

use std::ffi::OsString;
use std::io;

use gristmill::Error;
use gristmill_os::room::{no_temporary, private_folder, temporary_folder};

use super::applications::Applications;
use super::phases::Phases;
use super::reads::Reads;
use super::words::PLACE;

/// Makes the failure of a system call around the runs.
pub fn system(source: io::Error) -> Error {
    Error::System { what: "running the command", source }
}

/// One of our own applications, which is run with several numbers of workers.
pub struct Own {
    /// Holds the statistics of the last run.
    folder: tempfile::TempDir,
    /// The files that it reads.
    pub reads: Reads,
}

impl Own {
    /// Where further options have their place among the words: behind the name of the application.
    pub const OPTIONS_AT: usize = 2;

    /// Returns the command that runs an application of this program with its arguments, and what reads its statistics.
    ///
    /// # Errors
    /// [`Error::Setting`] if the first word names no application, or the arguments are wrong.
    pub fn command(words: &[OsString], applications: &Applications) -> Result<(Vec<OsString>, Own), Error> {
        let reads = (applications.reads)(words).map_err(Error::Setting)?;
        let folder = private_folder(&temporary_folder()).map_err(no_temporary).map_err(system)?;
        let mut command = vec![std::env::current_exe().map_err(system)?.into_os_string()];
        command.extend_from_slice(&words[..1]);
        command.extend(["--workers", PLACE, "--quiet", "--no-history", "--stats"].map(OsString::from));
        command.push(folder.path().join("stats.json").into_os_string());
        command.extend_from_slice(&words[1..]);
        Ok((command, Own { folder, reads }))
    }

    /// Returns the phases of the last run.
    ///
    /// # Errors
    /// The run has left no statistics.
    pub fn phases(&self) -> io::Result<Phases> {
        Phases::read(&self.folder.path().join("stats.json"))
    }
}
