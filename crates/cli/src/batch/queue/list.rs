//! The jobs of a file, of the command line, or of standard input.

use std::ffi::OsString;
use std::fs;
use std::io::{self, IsTerminal, Read};
use std::path::Path;

use gristmill::{Error, units};
use gristmill_queue::{Arriving, Job, table};

use super::values::{Made, Values};
use crate::terminal::failure::Failure;
use crate::terminal::messages::tell;

/// Reads the jobs.
pub fn read(path: Option<&Path>, command: &[OsString], values: &Values) -> Result<Vec<Job>, Failure> {
    if !command.is_empty() {
        return match values.jobs(command)? {
            Made::Jobs(jobs) => Ok(jobs),
            Made::Arriving(path, template) => {
                let bytes = if path == "-" {
                    let mut bytes = Vec::new();
                    io::stdin().read_to_end(&mut bytes).map(|_| bytes)
                } else {
                    fs::read(&path)
                };
                let shown = if path == "-" { "standard input".into() } else { path.clone() };
                let failed = |source| Failure::Job(Error::Input { path: shown.clone().into(), source });
                let mut list = Arriving::values(template, values.separator());
                let mut jobs = list.take(&bytes.map_err(failed)?).map_err(|why| failed(io::Error::other(why)))?;
                jobs.extend(list.end().map_err(|why| failed(io::Error::other(why)))?);
                Ok(jobs)
            }
        };
    }
    values.check_list()?;
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
    if path.and_then(Path::extension).is_none_or(|extension| !extension.eq_ignore_ascii_case("toml")) {
        let mut list = Arriving::lines(values.shell(), values.separator());
        let mut jobs = list.take(&bytes).map_err(|why| failed(io::Error::other(why)))?;
        jobs.extend(list.end().map_err(|why| failed(io::Error::other(why)))?);
        return Ok(jobs);
    }
    let text = String::from_utf8(bytes).map_err(|_| failed(io::Error::other("it is not text in UTF-8")))?;
    // Some editors write a mark at the beginning.
    let text = text.trim_start_matches('\u{feff}');
    let bytes = |size: &str| units::bytes(size).map(|bytes| bytes as u64);
    table(text, &values.shell(), bytes).map_err(|why| failed(io::Error::other(why)))
}
