//! The open streams of programs, which the scheduler hands to the guard.
//!
//! If the scheduler dies, the pipes stay open, so no program ends because nobody reads; and the guard moves what
//! programs that had ended left in their pipes to the files, before it writes their ends to the journal. Before a
//! program begins, the scheduler sends a line `streams JOB COUNT` with its descriptors (`SCM_RIGHTS`).

use std::collections::{BTreeMap, VecDeque};
use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::io::{IoSlice, retry_on_intr};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};

use super::capture::Capture;
use super::ready::STREAMS;
use super::stream::Stream;

/// A pipe and a file for each stream.
const DESCRIPTORS_MAX: usize = 2 * STREAMS;

/// Sends the streams of a program that is about to begin.
///
/// Without names, only the pipes are sent, so that they stay open: output that was not printed is lost with the
/// scheduler.
pub fn hand_over(to: &UnixStream, job: usize, capture: &Capture) -> io::Result<()> {
    let mut descriptors: Vec<BorrowedFd<'_>> = Vec::with_capacity(DESCRIPTORS_MAX);
    for stream in capture.streams() {
        descriptors.extend(stream.pipe().map(AsFd::as_fd));
        descriptors.extend(stream.file().map(AsFd::as_fd));
    }
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
    let mut rights = SendAncillaryBuffer::new(&mut space);
    rights.push(SendAncillaryMessage::ScmRights(&descriptors));
    let line = format!("streams {job} {}\n", descriptors.len());
    // The kernel takes a short message whole.
    retry_on_intr(|| sendmsg(to, &[IoSlice::new(line.as_bytes())], &mut rights, SendFlags::NOSIGNAL))?;
    Ok(())
}

/// Streams that the guard was handed, by job.
#[derive(Default)]
pub struct Handed {
    /// Descriptors whose lines were not read yet, in the order of the lines.
    arrived: VecDeque<Vec<OwnedFd>>,
    streams: BTreeMap<usize, Vec<OwnedFd>>,
}

impl Handed {
    /// Reads the lines that have arrived, and keeps the descriptors that come with them. Returns the number of
    /// bytes; 0 is the end.
    pub fn read(&mut self, from: &UnixStream, bytes: &mut [u8]) -> io::Result<usize> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
        let mut rights = RecvAncillaryBuffer::new(&mut space);
        let received = recvmsg(from, &mut [IoSliceMut::new(bytes)], &mut rights, RecvFlags::CMSG_CLOEXEC)?;
        let descriptors: Vec<OwnedFd> = rights
            .drain()
            .filter_map(|message| match message {
                RecvAncillaryMessage::ScmRights(descriptors) => Some(descriptors),
                _ => None,
            })
            .flatten()
            .collect();
        // If this process has too many files open, some are missing; the line still needs its own.
        if !descriptors.is_empty() || received.flags.contains(ReturnFlags::CTRUNC) {
            self.arrived.push_back(descriptors);
        }
        Ok(received.bytes)
    }

    /// Takes the descriptors that came with the next line: `count`, or fewer if this process may not open more files.
    pub fn note(&mut self, job: usize, count: usize) {
        if let Some(descriptors) = self.arrived.pop_front().filter(|all| all.len() == count) {
            self.streams.insert(job, descriptors);
        }
    }

    /// Closes those of a job.
    pub fn forget(&mut self, job: usize) {
        self.streams.remove(&job);
    }

    /// Moves what a program has left in its pipes to its files. Returns true if all that it wrote is kept now, or was
    /// to be printed only.
    pub fn keep(&mut self, job: usize) -> io::Result<bool> {
        let Some(descriptors) = self.streams.remove(&job) else { return Ok(false) };
        match <[OwnedFd; DESCRIPTORS_MAX]>::try_from(descriptors) {
            Ok([out, out_file, error, error_file]) => {
                for (pipe, file) in [(out, out_file), (error, error_file)] {
                    Stream::handed(pipe, file.into()).drain()?;
                }
                Ok(true)
            }
            Err(descriptors) => Ok(descriptors.len() == STREAMS),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;
    use crate::queue::Shell;

    #[test]
    fn what_a_dead_scheduler_left_in_the_pipes_reaches_the_files() {
        let output = tempfile::tempdir().expect("a folder");
        let (ours, theirs) = UnixStream::pair().expect("sockets");
        let mut begun: Vec<_> = (0..3)
            .map(|number| {
                let job = Shell::default().job(format!("job {number}").into());
                let begun = Capture::begin(Some(output.path()), (number, &job), &number.to_string(), 1);
                let (capture, writers) = begun.expect("files");
                hand_over(&ours, number, &capture).expect("sent");
                (&ours).write_all(b"another line\n").expect("sent");
                (capture.folder.clone().expect("a folder"), capture, writers)
            })
            .collect();
        let (mut handed, mut text, mut bytes) = (Handed::default(), String::new(), [0; 7]);
        while text.matches('\n').count() < 6 {
            let count = handed.read(&theirs, &mut bytes).expect("it has come");
            text.push_str(std::str::from_utf8(&bytes[..count]).expect("text"));
        }
        assert_eq!(text, "streams 0 4\nanother line\nstreams 1 4\nanother line\nstreams 2 4\nanother line\n");
        (0..3).for_each(|job| handed.note(job, 4));
        handed.forget(0);
        begun[2].2[0].write_all(b"last words").expect("it has room");
        let folder = begun[2].0.clone();
        drop(begun);
        assert_eq!([0, 1, 2].map(|job| handed.keep(job).expect("kept")), [false, true, true]);
        assert_eq!(std::fs::read_to_string(folder.join("stdout")).expect("there"), "last words");
    }
}
