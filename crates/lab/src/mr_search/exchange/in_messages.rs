//! Messages between processes, through a pipe or a pair of sockets for each two of them.
//!
//! ```text
//!  message:  | bytes that follow, 8 bytes; 0 ends the step | pairs of 16 bytes ...
//! ```
//!
//! Nothing waits for one descriptor alone: a worker whose message does not fit takes others in meanwhile, so no two
//! wait for each other. Behind the end of a step nothing is read from its sender until the next step.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use super::ends::Exchange;

const HEADER_BYTES: usize = 8;
const PAIR_BYTES: usize = 16;
/// The bytes of a message, as many as a page of shared memory has.
const MESSAGE_BYTES: usize = 32 << 10;

/// The descriptors between all workers, in rows by sender.
pub struct Lines {
    workers: usize,
    /// The end to write to, and the end to read from.
    ends: Vec<(OwnedFd, OwnedFd)>,
}

impl Lines {
    /// Opens pipes, or pairs of sockets.
    ///
    /// # Errors
    /// There may be no more files open: two for each two workers.
    pub fn open(workers: usize, are_sockets: bool) -> io::Result<Lines> {
        let line = |_| -> io::Result<(OwnedFd, OwnedFd)> {
            let (to, from): (OwnedFd, OwnedFd) = match are_sockets {
                true => UnixStream::pair().map(|(a, b)| (a.into(), b.into()))?,
                false => io::pipe().map(|(from, to)| (to.into(), from.into()))?,
            };
            rustix::io::ioctl_fionbio(&to, true)?;
            rustix::io::ioctl_fionbio(&from, true)?;
            Ok((to, from))
        };
        Ok(Lines { workers, ends: (0..workers * workers).map(line).collect::<io::Result<_>>()? })
    }

    fn to_write(&self, from: usize, to: usize) -> &OwnedFd {
        &self.ends[from * self.workers + to].0
    }

    fn to_read(&self, from: usize, to: usize) -> &OwnedFd {
        &self.ends[from * self.workers + to].1
    }
}

/// The end of one process.
pub struct InMessages<'l> {
    lines: &'l Lines,
    worker: usize,
    /// For each worker, the message that is being filled.
    filled: Vec<Vec<u8>>,
    /// For each worker, the bytes that came from it and were not taken yet.
    came: Vec<Vec<u8>>,
    /// For each worker, whether its end of this step has been taken.
    has_ended: Vec<bool>,
}

impl<'l> InMessages<'l> {
    pub fn new(lines: &'l Lines, worker: usize) -> InMessages<'l> {
        let none = || vec![Vec::new(); lines.workers];
        let filled = vec![vec![0; HEADER_BYTES]; lines.workers];
        InMessages { lines, worker, filled, came: none(), has_ended: vec![false; lines.workers] }
    }

    fn send(&mut self, to: usize, take: &mut impl FnMut([u64; 2])) -> io::Result<()> {
        let mut message = std::mem::take(&mut self.filled[to]);
        let bytes = (message.len() - HEADER_BYTES) as u64;
        message[..HEADER_BYTES].copy_from_slice(&bytes.to_le_bytes());
        let mut left = &message[..];
        while !left.is_empty() {
            match rustix::io::write(self.lines.to_write(self.worker, to), left) {
                Ok(written) => left = &left[written..],
                Err(Errno::AGAIN) => self.receive(Some(to), take)?,
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        message.truncate(HEADER_BYTES);
        self.filled[to] = message;
        Ok(())
    }

    /// Waits until something comes, or until there is room for a message to a worker; takes in what has come.
    fn receive(&mut self, room_to: Option<usize>, take: &mut impl FnMut([u64; 2])) -> io::Result<()> {
        let open: Vec<usize> = (0..self.lines.workers).filter(|from| !self.has_ended[*from]).collect();
        let lines = self.lines;
        let read =
            open.iter().map(|from| PollFd::from_borrowed_fd(lines.to_read(*from, self.worker).as_fd(), PollFlags::IN));
        let write = room_to.map(|to| PollFd::from_borrowed_fd(lines.to_write(self.worker, to).as_fd(), PollFlags::OUT));
        let mut all: Vec<PollFd> = read.chain(write).collect();
        match poll(&mut all, None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let ready: Vec<usize> =
            open.iter().zip(&all).filter(|(_, fd)| !fd.revents().is_empty()).map(|(from, _)| *from).collect();
        for from in ready {
            let came = &mut self.came[from];
            let before = came.len();
            came.resize(before + (64 << 10), 0);
            let read = match rustix::io::read(lines.to_read(from, self.worker), &mut came[before..]) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(read) => read,
                Err(Errno::AGAIN | Errno::INTR) => 0,
                Err(error) => return Err(error.into()),
            };
            came.truncate(before + read);
            self.open_messages(from, take);
        }
        Ok(())
    }

    /// Takes the whole messages of this step that have come from a worker.
    fn open_messages(&mut self, from: usize, take: &mut impl FnMut([u64; 2])) {
        let came = &mut self.came[from];
        let mut at = 0;
        while !self.has_ended[from]
            && let Some(header) = came[at..].first_chunk()
        {
            let bytes = u64::from_le_bytes(*header) as usize;
            let Some(body) = came[at + HEADER_BYTES..].get(..bytes) else { break };
            for pair in body.as_chunks::<PAIR_BYTES>().0 {
                let (key, value) = pair.split_at(8);
                take([key, value].map(|bytes| u64::from_le_bytes(bytes.try_into().expect("eight bytes"))));
            }
            at += HEADER_BYTES + bytes;
            self.has_ended[from] = bytes == 0;
        }
        came.drain(..at);
    }
}

impl Exchange for InMessages<'_> {
    #[inline]
    fn give(&mut self, to: usize, [key, value]: [u64; 2], take: &mut impl FnMut([u64; 2])) -> io::Result<()> {
        let message = &mut self.filled[to];
        message.extend_from_slice(&key.to_le_bytes());
        message.extend_from_slice(&value.to_le_bytes());
        if message.len() + PAIR_BYTES > MESSAGE_BYTES {
            self.send(to, take)?;
        }
        Ok(())
    }

    fn end_step(&mut self, take: &mut impl FnMut([u64; 2])) -> io::Result<()> {
        for to in 0..self.lines.workers {
            if self.filled[to].len() > HEADER_BYTES {
                self.send(to, take)?;
            }
            self.send(to, take)?;
        }
        for from in 0..self.lines.workers {
            self.open_messages(from, take);
        }
        while self.has_ended.contains(&false) {
            self.receive(None, take)?;
        }
        self.has_ended.fill(false);
        Ok(())
    }
}
