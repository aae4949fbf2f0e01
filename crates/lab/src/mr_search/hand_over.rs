//! The same small job with three ways to hand data from one process to another: shared pages, a pipe, a socket.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use gristmill_cli::hand_over::{PAGE_BYTES, RECEIVER, SENDER, empty_page, shared_pages, wait};
use gristmill_cli::{Failure, print};
use gristmill_os::futex::SharedFutex;
use gristmill_os::process::fork_worker;
use gristmill_page::{Pages, Receiver, Sender};

/// Count the lines of a file: one process reads, another counts
///
/// A part of `gristmill-lab experiment`.
#[derive(Args)]
pub struct HandOver {
    /// The way between the two
    #[arg(long, value_enum)]
    way: Way,

    /// The file
    input: PathBuf,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Way {
    /// Pages of shared memory, which change hands in place
    Pages,
    /// A pipe
    Pipe,
    /// A pair of sockets
    Socket,
}

/// The header of a page: the number of bytes that follow. Zero marks the end of the file.
const HEADER_BYTES: usize = 8;

impl HandOver {
    pub fn run(&self) -> Result<(), Failure> {
        let failed = |source| gristmill::Error::Input { path: self.input.clone(), source };
        let file = File::open(&self.input).map_err(failed)?;
        let done = match self.way {
            Way::Pages => {
                let pages = shared_pages().map_err(|source| system("mapping shared pages", source))?;
                apart(
                    || read_into_pages(file, &pages, pages.claim(SENDER).0),
                    || count_in_pages(&pages, pages.claim(RECEIVER).1),
                )
            }
            Way::Pipe => {
                let (from, to) = io::pipe().map_err(|source| system("making a pipe", source))?;
                apart(|| copy(file, to), || count_copies(from))
            }
            Way::Socket => {
                let (from, to) = UnixStream::pair().map_err(|source| system("making a pair of sockets", source))?;
                apart(|| copy(file, to), || count_copies(from))
            }
        };
        print(done.map_err(failed)?.trim_end())
    }
}

fn system(what: &'static str, source: io::Error) -> Failure {
    gristmill::Error::System { what, source }.into()
}

/// Runs both sides in a process each and returns the count, in digits.
fn apart(read: impl FnOnce() -> io::Result<()>, count: impl FnOnce() -> io::Result<usize>) -> io::Result<String> {
    let status = |outcome: io::Result<()>| outcome.map_or_else(|error| error.raw_os_error().unwrap_or(1), |()| 0);
    // The reader is forked first. Its writing end is then open nowhere else, so the counter sees the end of the
    // stream.
    let reader = fork_worker(|| status(read())).map_err(io::Error::other)?;
    let (mut counted, mut to) = io::pipe()?;
    let counter =
        fork_worker(|| status(count().and_then(|lines| writeln!(to, "{lines}")))).map_err(io::Error::other)?;
    drop(to);
    wait(vec![reader, counter])?;
    let mut digits = String::new();
    counted.read_to_string(&mut digits)?;
    Ok(digits)
}

fn read_into_pages(mut file: File, pages: &Pages, mut sender: Sender<'_>) -> io::Result<()> {
    loop {
        let mut page = empty_page(pages, &mut sender);
        let (header, body) = page.bytes_mut().split_at_mut(HEADER_BYTES);
        let bytes = file.read(body)?;
        header.copy_from_slice(&(bytes as u64).to_le_bytes());
        sender.send(RECEIVER, page);
        pages.doorbell(RECEIVER).ring(&SharedFutex);
        if bytes == 0 {
            return Ok(());
        }
    }
}

fn count_in_pages(pages: &Pages, mut receiver: Receiver<'_>) -> io::Result<usize> {
    let mut lines = 0;
    loop {
        let Some(page) = receiver.recv() else {
            pages.doorbell(RECEIVER).sleep_unless(&SharedFutex, || !receiver.is_empty());
            continue;
        };
        let (header, body) = page.bytes().split_at(HEADER_BYTES);
        let bytes = u64::from_le_bytes(header.try_into().expect("eight bytes")) as usize;
        lines += count(&body[..bytes]);
        receiver.give_back(page);
        pages.doorbell(SENDER).ring(&SharedFutex);
        if bytes == 0 {
            return Ok(lines);
        }
    }
}

fn copy(mut file: File, mut to: impl Write) -> io::Result<()> {
    let mut page = vec![0; PAGE_BYTES - HEADER_BYTES];
    loop {
        match file.read(&mut page)? {
            0 => return Ok(()),
            bytes => to.write_all(&page[..bytes])?,
        }
    }
}

fn count_copies(mut from: impl Read) -> io::Result<usize> {
    let (mut page, mut lines) = (vec![0; PAGE_BYTES - HEADER_BYTES], 0);
    loop {
        match from.read(&mut page)? {
            0 => return Ok(lines),
            bytes => lines += count(&page[..bytes]),
        }
    }
}

fn count(text: &[u8]) -> usize {
    memchr::memchr_iter(b'\n', text).count()
}
