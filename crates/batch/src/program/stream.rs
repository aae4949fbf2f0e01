//! One stream of a program: the pipe that it writes to, and the file that keeps it.
//!
//! A program does not get the file itself. It could write where another of its processes has written (`> /dev/stderr`
//! opens a file anew, and cuts it), and a write that fails for a full disk would be its own affair, which most
//! programs ignore. So it gets a pipe, which the queue drains into the file:
//!
//! - The bytes are moved by `splice`, which copies them once, inside the kernel. At any moment each byte is in the
//!   pipe or in the file, even if this process is killed. So the guard, which has copies of both ([`super::handed`]),
//!   can finish the work.
//! - A drain takes only what was in the pipe when it began. So it never waits, and a process that still writes after
//!   the end of its program cannot hold the queue.
//! - A pipe that was found full is enlarged: a program that prints much is interrupted less often. Others stay small,
//!   because users may have only so much in pipes.

use std::fs::File;
use std::io::{self, PipeReader, PipeWriter, Read, Write, pipe};
use std::os::fd::{AsFd, OwnedFd};

use gristmill_os::room::temporary_folder;
use rustix::io::{Errno, ioctl_fionread};
use rustix::pipe::{SpliceFlags, fcntl_setpipe_size, splice};

/// The bytes of a pipe as the kernel makes it, and of one whose program prints much.
const PIPE_BYTES: u64 = 64 << 10;
const LARGE_PIPE_BYTES: usize = 1 << 20;

/// A stream of a program.
pub struct Stream {
    /// `None` once the program has closed it, or has ended.
    pipe: Option<PipeReader>,
    /// Made when there is something to keep, unless it has a name.
    file: Option<File>,
    kept_bytes: u64,
    is_large: bool,
}

impl Stream {
    /// Begins a stream that is kept in this file, or in one without a name. Returns the end that the program writes to.
    pub fn begin(file: Option<File>) -> io::Result<(Stream, PipeWriter)> {
        let (reader, writer) = pipe()?;
        Ok((Stream { pipe: Some(reader), file, kept_bytes: 0, is_large: false }, writer))
    }

    /// A stream that another process has begun.
    pub fn handed(pipe: OwnedFd, file: File) -> Stream {
        Stream { pipe: Some(pipe.into()), file: Some(file), kept_bytes: 0, is_large: true }
    }

    /// The reading end of its pipe, while the stream is open.
    pub fn pipe(&self) -> Option<&PipeReader> {
        self.pipe.as_ref()
    }

    /// The file, if anything is kept or it has a name.
    pub fn file(&self) -> Option<&File> {
        self.file.as_ref()
    }

    /// The bytes that this process has moved to the file.
    pub fn kept_bytes(&self) -> u64 {
        self.kept_bytes
    }

    /// Closes the pipe, and returns the file.
    pub fn into_file(self) -> Option<File> {
        self.file
    }

    /// Moves what is in the pipe to the file, and returns its bytes. If the pipe is readable, 0 is its end.
    pub fn drain(&mut self) -> io::Result<u64> {
        let Some(pipe) = &self.pipe else { return Ok(0) };
        let there = ioctl_fionread(pipe)?;
        if there == 0 {
            return Ok(0);
        }
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(tempfile::tempfile_in(temporary_folder())?),
        };
        let mut left = there;
        while left > 0 {
            let moved = moved(pipe, file, left as usize)?;
            self.kept_bytes += moved;
            left = left.saturating_sub(moved);
        }
        if there >= PIPE_BYTES && !self.is_large {
            // If the user's pipes are too large already, it stays as it is.
            let _ = fcntl_setpipe_size(pipe, LARGE_PIPE_BYTES);
            self.is_large = true;
        }
        Ok(there)
    }

    /// Closes the pipe.
    pub fn close(&mut self) {
        self.pipe = None;
    }
}

/// Moves at most `bytes` bytes, which are in the pipe, to the file. Returns how many it has moved, at least one.
fn moved(pipe: &PipeReader, file: &mut File, bytes: usize) -> io::Result<u64> {
    loop {
        match splice(pipe.as_fd(), None, file.as_fd(), None, bytes, SpliceFlags::NONBLOCK) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => return Ok(count as u64),
            Err(Errno::INTR) => {}
            // A file system without this call. If this process is killed in between, bytes are lost.
            Err(Errno::INVAL) => return copied(pipe, file, bytes),
            Err(error) => return Err(error.into()),
        }
    }
}

fn copied(mut pipe: &PipeReader, file: &mut File, bytes: usize) -> io::Result<u64> {
    let mut piece = vec![0; bytes.min(PIPE_BYTES as usize)];
    let count = pipe.read(&mut piece)?;
    file.write_all(&piece[..count])?;
    if count == 0 { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(count as u64) }
}

#[cfg(test)]
mod tests {
    use std::io::Seek;

    use super::*;

    fn kept(stream: Stream) -> String {
        let mut text = String::new();
        let Some(mut file) = stream.into_file() else { return text };
        file.rewind().and_then(|()| file.read_to_string(&mut text)).expect("it is readable");
        text
    }

    #[test]
    fn a_drain_takes_what_is_there_and_waits_for_nobody() {
        let (mut stream, mut writer) = Stream::begin(None).expect("a pipe");
        assert_eq!((stream.drain().expect("nothing"), stream.file().is_none()), (0, true));
        writer.write_all(b"one ").expect("it has room");
        assert_eq!(stream.drain().expect("moved"), 4);
        writer.write_all(b"two").expect("it has room");
        assert_eq!((stream.drain().expect("moved"), stream.drain().expect("nothing")), (3, 0));
        assert_eq!((stream.kept_bytes(), kept(stream)), (7, "one two".to_owned()));
    }

    #[test]
    fn a_file_that_takes_no_more_is_an_error_and_what_came_before_stays() {
        let full = File::options().write(true).open("/dev/full").expect("there");
        let (mut stream, mut writer) = Stream::begin(Some(full)).expect("a pipe");
        writer.write_all(b"x").expect("it has room");
        assert_eq!(stream.drain().expect_err("it is full").kind(), io::ErrorKind::StorageFull);
    }

    #[test]
    fn bytes_are_copied_where_the_kernel_does_not_move_them() {
        let (reader, mut writer) = pipe().expect("a pipe");
        let mut file = tempfile::tempfile().expect("a file");
        writer.write_all(b"abc").expect("it has room");
        assert_eq!(copied(&reader, &mut file, 2).expect("copied"), 2);
        assert_eq!(copied(&reader, &mut file, 2).expect("copied"), 1);
    }
}
