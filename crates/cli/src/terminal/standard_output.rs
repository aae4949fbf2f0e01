//! Standard output, which carries only results.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

pub use gristmill_os::standard::standard_output;

use crate::terminal::failure::Failure;

/// Prints a line: text, or the name of a file as it is. A reader that closes the pipe early is not a failure.
pub fn print(text: impl AsRef<OsStr>) -> Result<(), Failure> {
    print_bytes(&[text.as_ref().as_bytes(), b"\n"].concat())
}

/// Prints bytes as they are. A reader that closes the pipe early is not a failure.
pub fn print_bytes(bytes: &[u8]) -> Result<(), Failure> {
    gristmill_os::standard::print(bytes).map_err(|source| Failure::output("standard output", source))
}
