//! The jobs of a file, of the command line, or of standard input.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::io::{self, IsTerminal, Read};
use std::path::Path;

use gristmill::{Error, units};
use gristmill_queue::{Job, combined, lines, table};

use crate::terminal::failure::Failure;
use crate::terminal::messages::tell;

/// Reads the jobs. Where each runs is part of what it is, by the real path of this process's folder.
pub fn read(path: Option<&Path>, command: &[OsString]) -> Result<Vec<Job>, Failure> {
    let jobs = listed(path, command)?;
    let here = env::current_dir()
        .map_err(|source| Failure::Job(Error::System { what: "asking for the current folder", source }))?;
    Ok(jobs.into_iter().map(|job| job.in_folder(&here)).collect())
}

fn listed(path: Option<&Path>, command: &[OsString]) -> Result<Vec<Job>, Failure> {
    if !command.is_empty() {
        return combined(command).map_err(Failure::Usage);
    }
    let path = path.filter(|path| path.as_os_str() != "-");
    let name = path.unwrap_or(Path::new("standard input"));
    let failed = |source| Failure::Job(Error::Input { path: name.to_owned(), source });
    let mut bytes = Vec::new();
    match path {
        Some(path) => bytes = fs::read(path).map_err(failed)?,
        None => {
            if io::stdin().is_terminal() {
                tell("reading commands from the terminal, one in each line; Ctrl-D ends the list");
            }
            io::stdin().read_to_end(&mut bytes).map_err(failed)?;
        }
    }
    let text = String::from_utf8(bytes).map_err(|_| failed(io::Error::other("it is not text in UTF-8")))?;
    // Some editors write a mark at the beginning.
    let text = text.trim_start_matches('\u{feff}');
    if path.and_then(Path::extension).is_none_or(|extension| !extension.eq_ignore_ascii_case("toml")) {
        return Ok(lines(text));
    }
    let bytes = |size: &str| units::bytes(size).map(|bytes| bytes as u64);
    table(text, bytes).map_err(|why| failed(io::Error::other(why)))
}
