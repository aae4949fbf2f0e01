//! A stream, copied to a file before the job begins.
//!
//! A task that is tried again must read the same bytes again, and a pipe gives them once. The copy has no name: it
//! vanishes with this process, however that ends.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

use crate::error::{Error, Result};
use crate::input::look::{InputNews, Look};

/// Bytes copied at a time.
const PIECE_BYTES: usize = 256 << 10;

/// Copies what `stream` has; returns the copy and its bytes.
pub(crate) fn copy(stream: &mut impl Read, name: &Path, look: &Look) -> Result<(File, u64)> {
    let folder = look.spool_dir.clone().unwrap_or_else(std::env::temp_dir);
    let mut bytes = 0;
    let failed =
        |copied_bytes, source| Error::Spool { path: name.to_owned(), folder: folder.clone(), copied_bytes, source };
    let mut file = tempfile::tempfile_in(&folder).map_err(|source| failed(0, source))?;
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        let read = match stream.read(&mut piece) {
            Ok(0) => break,
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(source) => return Err(Error::Read { path: name.to_owned(), offset: bytes, source }),
        };
        file.write_all(&piece[..read]).map_err(|source| failed(bytes, source))?;
        bytes += read as u64;
        look.news.tell(&InputNews::Copied { name, bytes });
    }
    Ok((file, bytes))
}
