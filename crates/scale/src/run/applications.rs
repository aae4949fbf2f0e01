//! The applications that this program is made of: the command knows their options, and this crate does not.

use std::ffi::OsString;

use gristmill_history::Asked;

use super::reads::Reads;

/// Answers to questions about the applications. Each takes the name of one and its arguments.
#[derive(Clone, Copy)]
pub struct Applications {
    /// Returns what it reads, or a sentence: the first word names no application, or its arguments are wrong.
    pub reads: fn(&[OsString]) -> Result<Reads, String>,
    /// Returns the question under which the history keeps its times; `None` if the words make no sense.
    pub asked: fn(&[OsString]) -> Option<Asked>,
    /// Returns the bytes that `palindromes` moves between caches and memory for each byte of a line, at most.
    pub traffic: fn(&[OsString]) -> u64,
    /// The limit on the file that `palindromes --constant` takes.
    pub constant_bytes_max: u64,
}
