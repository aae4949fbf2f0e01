//! Copying of a stream to a file before the job begins.
//!
//! A retried task must read the same bytes again, and a pipe gives them only once. The copy has no name, so it vanishes
//! with this process, however the process ends. A stream may never end, so the copy leaves some room free on its disk.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::path::Path;

use gristmill_os::room::{TemporaryFolder, temporary_folder};

use crate::error::{Error, Result, little_room};
use crate::input::look::{InputNews, Look};

/// The number of bytes copied at a time.
const PIECE_BYTES: usize = 256 << 10;
/// The number of bytes copied between two checks of the free room.
const UNCHECKED_BYTES: u64 = 8 << 20;

/// Copies all of `stream`; returns the copy and its size.
pub(crate) fn copy(stream: &mut File, name: &Path, look: &Look) -> Result<(File, u64)> {
    let folder = look.spool_dir.clone().unwrap_or_else(temporary_folder);
    let place = TemporaryFolder::new(&folder, look.keep_free_bytes);
    let (mut bytes, mut checked_at) = (0, 0);
    let failed =
        |copied_bytes, source| Error::Spool { path: name.to_owned(), folder: folder.clone(), copied_bytes, source };
    let mut file = tempfile::tempfile_in(&folder).map_err(|source| failed(0, source))?;
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        look.interrupt.wait_for(stream.as_fd())?;
        let read = match stream.read(&mut piece) {
            Ok(0) => break,
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(source) => return Err(Error::Read { path: name.to_owned(), offset: bytes, source }),
        };
        if bytes >= checked_at {
            checked_at = bytes + UNCHECKED_BYTES;
            if !place.has_room(&file) {
                return Err(failed(bytes, little_room(place.kept_free_bytes)));
            }
        }
        file.write_all(&piece[..read]).map_err(|source| failed(bytes, source))?;
        bytes += read as u64;
        look.news.tell(&InputNews::Copied { name, bytes });
    }
    Ok((file, bytes))
}
