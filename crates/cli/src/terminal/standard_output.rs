//! Standard output, which carries only results.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;

use rustix::io::Errno;

use crate::terminal::failure::Failure;

/// Returns unbuffered standard output, or an error if it was closed.
pub fn standard_output() -> io::Result<File> {
    if gristmill_os::standard::was_closed(1) {
        return Err(Errno::BADF.into());
    }
    io::stdout().as_fd().try_clone_to_owned().map(File::from)
}

/// Prints a line: text, or the name of a file as it is. A reader that closes the pipe early is not a failure.
pub fn print(text: impl AsRef<OsStr>) -> Result<(), Failure> {
    print_bytes(&[text.as_ref().as_bytes(), b"\n"].concat())
}

/// Prints bytes as they are. A reader that closes the pipe early is not a failure.
pub fn print_bytes(bytes: &[u8]) -> Result<(), Failure> {
    match standard_output().and_then(|mut to| to.write_all(bytes)) {
        Err(source) if source.kind() != io::ErrorKind::BrokenPipe => Err(Failure::output("standard output", source)),
        _ => Ok(()),
    }
}
