//! Text that is being printed: a program's output, or a line about it.

use std::fs::File;
use std::io::{self, Cursor, Read, Seek, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::FileTypeExt;

use gristmill_os::wake::has_room;
use rustix::io::Errno;
use rustix::pipe::{SpliceFlags, splice};

use super::tagged::Tagged;
use gristmill_os::standard::standard_output;

/// The bytes that a pipe takes without waiting once it takes any.
const PIECE_BYTES: usize = 4096;
/// The pieces that are printed without looking for anything else.
const PIECES: usize = 256;
/// The bytes that are copied to a file, or moved to a pipe, without looking for anything else.
const COPIED_BYTES: u64 = 4 << 20;

/// The milliseconds in which a reader that reads makes room.
const ROOM_MS: u32 = 1;

/// How far something was printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Printed {
    All,
    /// There is more, and may be room for it.
    Part,
    NoRoom,
}

/// Text that is being printed.
pub struct Written {
    from: Content,
    is_error: bool,
}

enum Content {
    Text(Box<dyn Read>),
    File(File),
}

impl Read for Content {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        match self {
            Content::Text(text) => text.read(to),
            Content::File(file) => file.read(to),
        }
    }
}

impl Written {
    /// A text for standard output, or standard error.
    pub fn text(text: impl Into<Vec<u8>>, is_error: bool) -> Written {
        Written { from: Content::Text(Box::new(Cursor::new(text.into()))), is_error }
    }

    /// All that is in a file.
    pub fn file(mut file: File, is_error: bool) -> io::Result<Written> {
        // It was written to here.
        file.rewind()?;
        Ok(Written { from: Content::File(file), is_error })
    }

    /// The rest of the lines in a file that changes no more.
    pub fn lines(lines: Tagged, file: File, is_error: bool) -> Written {
        Written { from: Content::Text(Box::new(Lines { lines, file, text: Cursor::default() })), is_error }
    }

    /// Prints some of it.
    pub fn print_some(&mut self) -> io::Result<Printed> {
        let printed = if self.is_error {
            io::stderr().as_fd().try_clone_to_owned().map(File::from).and_then(|to| self.print_to(to))
        } else {
            standard_output().and_then(|to| self.print_to(to))
        };
        match printed {
            // Nobody listens on standard error any more, which ends no queue.
            Err(error) if self.is_error && error.kind() == io::ErrorKind::BrokenPipe => Ok(Printed::All),
            printed => printed,
        }
    }

    fn print_to(&mut self, mut to: File) -> io::Result<Printed> {
        let kind = to.metadata()?.file_type();
        if kind.is_file() {
            let count = io::copy(&mut (&mut self.from).take(COPIED_BYTES), &mut to)?;
            return Ok(if count < COPIED_BYTES { Printed::All } else { Printed::Part });
        }
        if let (Content::File(file), true) = (&self.from, kind.is_fifo())
            && let Some(printed) = moved(file, &to)?
        {
            return Ok(printed);
        }
        let mut piece = [0; PIECE_BYTES];
        for _ in 0..PIECES {
            if !has_room(&to, ROOM_MS)? {
                return Ok(Printed::NoRoom);
            }
            match self.from.read(&mut piece)? {
                0 => return Ok(Printed::All),
                count => to.write_all(&piece[..count])?,
            }
        }
        Ok(Printed::Part)
    }
}

/// Moves the next bytes of a file that no longer changes to a pipe, as many as it has room for, without copying them.
/// Returns `None` if the file system cannot do that.
fn moved(file: &File, to: &File) -> io::Result<Option<Printed>> {
    let mut left = COPIED_BYTES;
    while left > 0 {
        match splice(file, None, to, None, left as usize, SpliceFlags::NONBLOCK) {
            Ok(0) => return Ok(Some(Printed::All)),
            Ok(count) => left = left.saturating_sub(count as u64),
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) if has_room(to, ROOM_MS)? => {}
            Err(Errno::AGAIN) => return Ok(Some(Printed::NoRoom)),
            Err(Errno::INVAL) => return Ok(None),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(Some(Printed::Part))
}

/// The lines that were not printed while their program ran, as something to read.
struct Lines {
    lines: Tagged,
    file: File,
    text: Cursor<Vec<u8>>,
}

impl Read for Lines {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        if self.text.position() == self.text.get_ref().len() as u64 {
            self.text = Cursor::new(self.lines.last(&self.file)?);
        }
        self.text.read(to)
    }
}
