//! A call, as its caller sees it.

use std::fs::File;
use std::io::{BufRead, BufReader, IoSlice, Write};
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use gristmill_os::process::Child;
use rustix::cmsg_space;
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use rustix::pipe::{PipeFlags, pipe_with};

use crate::data::datum::{Datum, Owned};
use crate::error::{Asked, Error, Result};
use crate::interrupt::{CancelToken, Interrupt};
use crate::program_error::ProgramError;
use crate::starter::frames::{self, END, Kind, START};

/// The answers of a call, one after the other. After an error there are no more. Dropping it ends the call: its process
/// is killed, and the workers of its job.
pub struct Call<A> {
    process: Arc<Process>,
    number: u64,
    answers: BufReader<UnixStream>,
    fate: BufReader<File>,
    content: Vec<u8>,
    interrupt: Interrupt,
    is_over: bool,
    kind: PhantomData<fn() -> A>,
}

impl<A: Datum> Call<A> {
    pub(super) fn begin(process: Arc<Process>, request: &[u8]) -> Result<Call<A>> {
        const WHAT: &str = "connecting a call with its process";
        let (mut ours, theirs) = UnixStream::pair().asked(WHAT)?;
        let (fate, its_fate) = pipe_with(PipeFlags::CLOEXEC).asked(WHAT)?;
        let number = process.next_call.fetch_add(1, Ordering::Relaxed);
        process.send(number, START, &[theirs.as_fd(), its_fate.as_fd()])?;
        drop((theirs, its_fate));
        // A process that has died says why when its answers are read.
        let sent = ours.write_all(&(request.len() as u64).to_le_bytes()).and_then(|()| ours.write_all(request));
        drop(sent);
        Ok(Call {
            process,
            number,
            answers: BufReader::with_capacity(64 << 10, ours),
            fate: BufReader::new(fate.into()),
            content: Vec::new(),
            interrupt: Interrupt::default(),
            is_over: false,
            kind: PhantomData,
        })
    }

    /// Lets `token` end this call with [`Error::Cancelled`].
    pub fn cancel_by(mut self, token: &CancelToken) -> Call<A> {
        self.interrupt.token = Some(token.clone());
        self
    }

    /// Ends this call with [`Error::Deadline`] if the next answer has not come when `limit` has passed from now.
    pub fn deadline(mut self, limit: Duration) -> Call<A> {
        self.interrupt = Interrupt::new(self.interrupt.token.take(), Some(limit));
        self
    }

    /// Reads the next answer into `content`; returns false after the last.
    fn read(&mut self) -> Result<bool> {
        if self.answers.buffer().is_empty() {
            self.interrupt.wait_for(self.answers.get_ref().as_fd())?;
        }
        match frames::read(&mut self.answers, &mut self.content).asked("reading the answers of a call")? {
            Some(Kind::Answer) => Ok(true),
            Some(Kind::Done) => Ok(false),
            Some(Kind::Failed) => {
                let (code, message) = self.content.split_at(5.min(self.content.len()));
                let [a, b, c, d, has_code] = *code else { return Err(self.process.gone()) };
                let code = (has_code > 0).then(|| i32::from_le_bytes([a, b, c, d]));
                let error = ProgramError::received(String::from_utf8_lossy(message).split('\0'), code);
                Err(Error::program("the function of the starter", &error))
            }
            None => {
                let mut words = Vec::new();
                let read = self.fate.read_until(0, &mut words);
                match read.is_ok() && words.pop() == Some(0) {
                    true => Err(Error::Starter {
                        what: format!("the process that served a call: {}", String::from_utf8_lossy(&words)),
                    }),
                    false => Err(self.process.gone()),
                }
            }
        }
    }
}

impl<A: Datum> Iterator for Call<A> {
    type Item = Result<Owned<A>>;

    fn next(&mut self) -> Option<Result<Owned<A>>> {
        if self.is_over {
            return None;
        }
        let answer = self.read();
        self.is_over = !matches!(answer, Ok(true));
        match answer {
            Ok(false) => None,
            Ok(true) => Some(Ok(A::own(A::read(&self.content)))),
            Err(error) => Some(Err(error)),
        }
    }
}

impl<A> Drop for Call<A> {
    fn drop(&mut self) {
        // If the starter has died, so has the process.
        let _ = self.process.send(self.number, END, &[]);
    }
}

/// The process of a starter.
pub(super) struct Process {
    /// Takes messages. Its other end is open in that process and in those that it has started.
    control: OwnedFd,
    next_call: AtomicU64,
    /// Killed when it is dropped, with all that it has started.
    _child: Child,
}

impl Process {
    pub(super) fn new(control: OwnedFd, child: Child) -> Process {
        Process { control, next_call: AtomicU64::new(0), _child: child }
    }

    fn send(&self, number: u64, kind: u8, fds: &[BorrowedFd<'_>]) -> Result<()> {
        let mut room = [MaybeUninit::uninit(); cmsg_space!(ScmRights(2))];
        let mut ancillary = SendAncillaryBuffer::new(&mut room);
        if !fds.is_empty() {
            assert!(ancillary.push(SendAncillaryMessage::ScmRights(fds)), "there is room for two descriptors");
        }
        let (number, kind) = (number.to_le_bytes(), [kind]);
        let bytes = [IoSlice::new(&number), IoSlice::new(&kind)];
        rustix::io::retry_on_intr(|| sendmsg(&self.control, &bytes, &mut ancillary, SendFlags::NOSIGNAL))
            .map(drop)
            .map_err(|_| self.gone())
    }

    fn gone(&self) -> Error {
        Error::Starter { what: "the starter, which must run as long as it is called, has died".into() }
    }
}
