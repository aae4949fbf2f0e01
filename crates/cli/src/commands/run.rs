//! Programs in Python: hands over to the interpreter that has the package `gristmill`.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

use clap::Args;

use crate::terminal::failure::Failure;

/// Run a program in Python that uses the package `gristmill`
///
/// Settings of the package come before the file: `gristmill run --workers 4 --on-error skip job.py words.txt`. An error
/// of a job is shown without the lines of the package. The interpreter is the one beside this command, or else
/// `python3`.
#[derive(Args)]
pub struct RunScript {
    /// Settings, the program, and its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "JOB.py")]
    arguments: Vec<OsString>,
}

/// The program that starts the user's script.
const PROGRAM: &str = "\
import sys
folder = sys.path.pop(0)
try:
    from gristmill.__main__ import main
except ModuleNotFoundError as error:
    here = sys.executable or 'python3'
    sys.exit(f'gristmill run: {error}: the package is not installed for {here}. Install it there, or put the python3 that '
             'has it first in PATH')
sys.path.insert(0, folder)
sys.exit(main(sys.argv[1:]))
";

impl RunScript {
    /// Becomes the interpreter; returns only if there is none.
    pub fn run(self) -> Result<(), Failure> {
        let python = beside().unwrap_or_else(|| OsString::from("python3"));
        let error = Command::new(&python).args(["-c", PROGRAM]).args(&self.arguments).exec();
        Err(match error.kind() {
            io::ErrorKind::NotFound => Failure::Usage("there is no python3; install Python 3.10 or later".to_owned()),
            _ => Failure::output(PathBuf::from(python), error),
        })
    }
}

/// The interpreter of the environment in which this command is installed.
fn beside() -> Option<OsString> {
    let command = std::env::current_exe().ok()?;
    let python = command.with_file_name(OsStr::new("python3"));
    python.exists().then(|| python.into_os_string())
}
