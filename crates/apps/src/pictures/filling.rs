//! Reads of a fixed size.

use std::io::{self, Read};

/// Reads until `to` is full or the content ends. Returns the number of bytes read.
pub(super) fn read_up_to(content: &mut impl Read, to: &mut [u8]) -> io::Result<usize> {
    let mut found = 0;
    while found < to.len() {
        match content.read(&mut to[found..]) {
            Ok(0) => break,
            Ok(read) => found += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(found)
}
