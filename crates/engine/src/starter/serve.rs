//! The starter, and the process of one call.

use std::collections::BTreeMap;
use std::io::{self, BufReader, BufWriter, IoSliceMut, Read, Write};
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

use gristmill_os::process::{Child, Death, fork_worker};
use gristmill_os::stop::Stop;
use gristmill_os::wake::poll;
use rustix::cmsg_space;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};

use crate::data::datum::Datum;
use crate::program_error::ProgramError;
use crate::starter::frames::{self, END, Kind, MESSAGE_BYTES, START};

/// Takes the answers of one call, for its caller.
pub struct Answers<A> {
    to: BufWriter<UnixStream>,
    content: Vec<u8>,
    kind: PhantomData<fn(A)>,
}

impl<A: Datum> Answers<A> {
    /// Sends an answer, soon or with those that follow. Waits while the caller takes none.
    ///
    /// # Panics
    /// When the answer is written as 4 GiB or more.
    pub fn push(&mut self, answer: A::Ref<'_>) {
        self.content.resize(A::width(answer), 0);
        A::write(answer, &mut self.content);
        self.send(Kind::Answer);
    }

    /// Sends all answers so far.
    pub fn flush(&mut self) {
        // A caller that has gone wants no answers, and has this process killed.
        let _ = self.to.flush();
    }

    fn send(&mut self, kind: Kind) {
        assert!(u32::try_from(self.content.len()).is_ok(), "an answer is shorter than 4 GiB");
        let _ = frames::write(&mut self.to, kind, &self.content);
    }
}

/// A call that is being served.
struct Served {
    child: Child,
    /// Takes the words that say how the process ended.
    fate: OwnedFd,
}

/// Serves all calls that come through `control`, until its other end is closed. Returns an exit status.
pub(super) fn all<Q: Datum, A: Datum>(
    control: &OwnedFd,
    serve: &dyn Fn(Q::Ref<'_>, &mut Answers<A>) -> Result<(), ProgramError>,
) -> i32 {
    // An interrupt from the terminal is for the caller, who may want to go on. This process ends with it.
    let _signals_wait = Stop::new();
    let mut calls = BTreeMap::<u64, Served>::new();
    loop {
        let fds: Vec<BorrowedFd<'_>> =
            std::iter::once(control.as_fd()).chain(calls.values().map(|call| call.child.pidfd())).collect();
        let Ok(ready) = poll(&fds, None) else { return 1 };
        let numbers: Vec<u64> = calls.keys().copied().collect();
        for number in ready.iter().filter_map(|at| numbers.get(at.checked_sub(1)?)) {
            if let Some(call) = calls.get_mut(number)
                && let Ok(Some(death)) = call.child.try_wait()
                && let Some(Served { fate, .. }) = calls.remove(number)
            {
                tell(fate, death);
            }
        }
        if !ready.contains(&0) {
            continue;
        }
        match receive(control) {
            Ok(Some(Message::Start { number, stream, fate })) => {
                let started = fork_worker(|| one::<Q, A>(&stream, serve));
                match started {
                    Ok(child) => drop(calls.insert(number, Served { child, fate })),
                    Err(error) => say(fate, &error.to_string()),
                }
            }
            // The process is killed when its child is dropped.
            Ok(Some(Message::End { number })) => drop(calls.remove(&number)),
            Ok(None) => return 0,
            Err(_) => return 1,
        }
    }
}

fn tell(fate: OwnedFd, death: Death) {
    let words = match death {
        Death::Exited(0) => "it ended before the last answer".to_owned(),
        Death::Exited(gristmill_os::process::PANICKED) => "it panicked; standard error has the message".to_owned(),
        death => format!("it died: {death}"),
    };
    say(fate, &words);
}

/// Writes the words and a zero byte. A pipe has room for them, and its reader may have gone.
fn say(fate: OwnedFd, words: &str) {
    let _ = std::fs::File::from(fate).write_all(format!("{words}\0").as_bytes());
}

/// A message of the caller.
enum Message {
    Start { number: u64, stream: UnixStream, fate: OwnedFd },
    End { number: u64 },
}

/// Receives the next message; `None` if there will be none.
fn receive(control: &OwnedFd) -> io::Result<Option<Message>> {
    let mut bytes = [0; MESSAGE_BYTES];
    let mut room = [MaybeUninit::uninit(); cmsg_space!(ScmRights(2))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut room);
    let received = recvmsg(control, &mut [IoSliceMut::new(&mut bytes)], &mut ancillary, RecvFlags::CMSG_CLOEXEC)?.bytes;
    if received == 0 {
        return Ok(None);
    }
    let mut fds: Vec<OwnedFd> = Vec::new();
    for message in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            fds.extend(rights);
        }
    }
    let [number @ .., kind] = bytes;
    let number = u64::from_le_bytes(number);
    match (kind, <[OwnedFd; 2]>::try_from(fds)) {
        (START, Ok([stream, fate])) => Ok(Some(Message::Start { number, stream: stream.into(), fate })),
        (END, _) => Ok(Some(Message::End { number })),
        _ => Err(io::Error::other("a message to the starter lacks its descriptors")),
    }
}

/// Serves one call. Returns an exit status.
fn one<Q: Datum, A: Datum>(
    stream: &UnixStream,
    serve: &dyn Fn(Q::Ref<'_>, &mut Answers<A>) -> Result<(), ProgramError>,
) -> i32 {
    let Some((request, stream)) = request(stream).ok().flatten() else { return 1 };
    let mut answers =
        Answers { to: BufWriter::with_capacity(64 << 10, stream), content: Vec::new(), kind: PhantomData };
    let served = serve(Q::read(&request), &mut answers);
    answers.content.clear();
    match served {
        Ok(()) => answers.send(Kind::Done),
        Err(error) => {
            let code = error.number();
            answers.content.extend(code.unwrap_or(0).to_le_bytes());
            answers.content.push(u8::from(code.is_some()));
            answers.content.extend(error.messages().join("\0").as_bytes());
            answers.send(Kind::Failed);
        }
    }
    answers.flush();
    0
}

/// Reads the request.
fn request(stream: &UnixStream) -> io::Result<Option<(Vec<u8>, UnixStream)>> {
    let mut from = BufReader::new(stream.try_clone()?);
    let mut length = [0; 8];
    if !frames::fill(&mut from, &mut length)? {
        return Ok(None);
    }
    let mut request = Vec::new();
    from.take(u64::from_le_bytes(length)).read_to_end(&mut request)?;
    Ok(Some((request, stream.try_clone()?)))
}
