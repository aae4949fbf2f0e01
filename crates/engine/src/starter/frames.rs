//! The frames that a caller, the starter and the process of a call send each other.
//!
//! ```text
//!  caller to starter   | number of the call, 8 | START or END, 1 |   with two descriptors, if it starts
//!  caller to process   | length, 8 | request |
//!  process to caller   | kind, 1 | length, 4 | content |             again and again; the last is DONE or FAILED
//!  starter to caller   how the process ended, in words, and a zero byte
//! ```
//!
//! Numbers are little-endian. Both sides are one program, so nothing has a version.

use std::io::{self, BufRead, Read, Write};

/// The caller wants a process for a call.
pub(super) const START: u8 = 0;
/// The caller wants no more answers.
pub(super) const END: u8 = 1;
/// The length of a message to the starter.
pub(super) const MESSAGE_BYTES: usize = 9;

/// The kind of a frame's content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// One answer.
    Answer = 0,
    /// Nothing: that was the last answer.
    Done = 1,
    /// The code of an error (4 bytes, and 1 for whether it has one), and its message.
    Failed = 2,
}

/// Writes a frame.
pub(super) fn write(to: &mut impl Write, kind: Kind, content: &[u8]) -> io::Result<()> {
    let bytes = u32::try_from(content.len()).map_err(|_| io::Error::other("an answer has 4 GiB or more"))?;
    to.write_all(&[kind as u8])?;
    to.write_all(&bytes.to_le_bytes())?;
    to.write_all(content)
}

/// Reads a frame into `content`; `None` if the other side ended before a whole one.
pub(super) fn read(from: &mut impl BufRead, content: &mut Vec<u8>) -> io::Result<Option<Kind>> {
    let mut head = [0; 5];
    if !fill(from, &mut head)? {
        return Ok(None);
    }
    let [kind, bytes @ ..] = head;
    content.resize(u32::from_le_bytes(bytes) as usize, 0);
    let kind = match kind {
        0 => Kind::Answer,
        1 => Kind::Done,
        2 => Kind::Failed,
        other => return Err(io::Error::other(format!("no frame has the kind {other}"))),
    };
    Ok(fill(from, content)?.then_some(kind))
}

/// Fills `to`; returns whether the other side sent that much.
pub(super) fn fill(from: &mut impl Read, to: &mut [u8]) -> io::Result<bool> {
    match from.read_exact(to) {
        Ok(()) => Ok(true),
        // A process that is killed may leave unread bytes of the request.
        Err(error) if [io::ErrorKind::UnexpectedEof, io::ErrorKind::ConnectionReset].contains(&error.kind()) => {
            Ok(false)
        }
        Err(error) => Err(error),
    }
}
