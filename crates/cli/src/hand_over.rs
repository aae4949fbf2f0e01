//! The same small job with three ways to hand data from one process to another: shared pages, a pipe, a socket; and the rate of
//! the first way alone, for `gristmill machine`.

use std::fs::File;
use std::hint::black_box;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use gristmill_os::clock::monotonic_ns;
use gristmill_os::futex::SharedFutex;
use gristmill_os::machine::pin_to_cpu;
use gristmill_os::process::{Child, Death, fork_worker};
use gristmill_os::wake::poll;
use gristmill_page::{PageMut, Pages, Receiver, Sender, Shape};

use crate::terminal::failure::Failure;
use crate::terminal::standard_output::print;

/// Count the lines of a file: one process reads, another counts
///
/// A part of `gristmill experiment`.
#[derive(Args)]
pub struct HandOver {
    /// What is between the two
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

const PAGE_BYTES: usize = 32 << 10;
/// 512 KiB, so that the pages stay in the cache.
const PAGES: usize = 16;
/// The header of a page: the number of bytes that follow. Zero marks the end of the file.
const HEADER_BYTES: usize = 8;

/// The slots of the reader and the counter.
const READER: usize = 0;
const COUNTER: usize = 1;

impl HandOver {
    pub fn run(&self) -> Result<(), Failure> {
        let failed = |source| gristmill::Error::Input { path: self.input.clone(), source };
        let file = File::open(&self.input).map_err(failed)?;
        let done = match self.way {
            Way::Pages => {
                let shape = Shape { slots: 2, pages_per_arena: PAGES, page_bytes: PAGE_BYTES, ..Shape::default() };
                let pages = Pages::new(shape).map_err(|source| system("mapping shared pages", source))?;
                apart(
                    || read_into_pages(file, &pages, pages.claim(READER).0),
                    || count_in_pages(&pages, pages.claim(COUNTER).1),
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

/// Waits until all have ended. If one fails, the others are killed.
fn wait(mut at_work: Vec<Child>) -> io::Result<()> {
    while !at_work.is_empty() {
        let ends: Vec<_> = at_work.iter().map(|child| child.pidfd()).collect();
        poll(&ends, None)?;
        let mut left = Vec::new();
        for mut child in at_work {
            match child.try_wait()? {
                None => left.push(child),
                Some(Death::Exited(0)) => {}
                // The other process is killed when it is dropped.
                Some(Death::Exited(errno)) => return Err(io::Error::from_raw_os_error(errno)),
                Some(death) => return Err(io::Error::other(death.to_string())),
            }
        }
        at_work = left;
    }
    Ok(())
}

/// The bytes that each pair of processes hands over to measure a rate.
const RATE_BYTES: usize = 256 << 20;

/// Returns the rate, in bytes per second, at which processes on each two of `processors` hand over pages: one writes all of a page,
/// the other reads all of it. `None` for fewer than two.
pub fn rate(processors: &[usize]) -> io::Result<Option<f64>> {
    let (pairs, _) = processors.as_chunks::<2>();
    if pairs.is_empty() {
        return Ok(None);
    }
    let shape = Shape { slots: 2, pages_per_arena: PAGES, page_bytes: PAGE_BYTES, ..Shape::default() };
    let all = pairs.iter().map(|_| Pages::new(shape)).collect::<io::Result<Vec<Pages>>>()?;
    let (mut told, tell) = io::pipe()?;
    let status = |outcome: io::Result<()>| outcome.map_or_else(|error| error.raw_os_error().unwrap_or(1), |()| 0);
    let mut at_work = Vec::new();
    for (pages, [writer, reader]) in all.iter().zip(pairs) {
        let write = || {
            let _ = pin_to_cpu(*writer);
            write_pages(pages, pages.claim(READER).0);
            0
        };
        let read = || {
            let _ = pin_to_cpu(*reader);
            let times = read_pages(pages, pages.claim(COUNTER).1).map(u64::to_ne_bytes);
            status((&tell).write_all(times.as_flattened()))
        };
        at_work.push(fork_worker(write).map_err(io::Error::other)?);
        at_work.push(fork_worker(read).map_err(io::Error::other)?);
    }
    drop(tell);
    wait(at_work)?;
    let mut times = Vec::new();
    told.read_to_end(&mut times)?;
    let times = times.as_chunks::<8>().0.iter().map(|time| u64::from_ne_bytes(*time));
    let (began, ended) = times.fold((u64::MAX, 0), |(began, ended), time| (time.min(began), time.max(ended)));
    Ok(Some((pairs.len() * RATE_BYTES) as f64 / (ended.saturating_sub(began).max(1) as f64 / 1e9)))
}

fn write_pages(pages: &Pages, mut sender: Sender<'_>) {
    for number in 0..RATE_BYTES / PAGE_BYTES {
        let mut page = taken(pages, &mut sender);
        page.bytes_mut().fill(number as u8);
        sender.send(COUNTER, page);
        pages.doorbell(COUNTER).ring(&SharedFutex);
    }
}

/// Returns when the first page came, and when the last one had been read.
fn read_pages(pages: &Pages, mut receiver: Receiver<'_>) -> [u64; 2] {
    let (mut began_ns, mut left) = (None, RATE_BYTES / PAGE_BYTES);
    while left > 0 {
        let Some(page) = receiver.recv() else {
            pages.doorbell(COUNTER).sleep_unless(&SharedFutex, || !receiver.is_empty());
            continue;
        };
        began_ns.get_or_insert_with(monotonic_ns);
        let words = page.bytes().as_chunks::<8>().0.iter();
        black_box(words.fold(0, |sum: u64, word| sum.wrapping_add(u64::from_ne_bytes(*word))));
        receiver.give_back(page);
        pages.doorbell(READER).ring(&SharedFutex);
        left -= 1;
    }
    [began_ns.unwrap_or(0), monotonic_ns()]
}

/// Returns an empty page, when there is one.
fn taken<'p>(pages: &Pages, sender: &mut Sender<'p>) -> PageMut<'p> {
    loop {
        match sender.take() {
            Some(page) => return page,
            None => pages.doorbell(READER).sleep_unless(&SharedFutex, || sender.collect() > 0),
        }
    }
}

fn read_into_pages(mut file: File, pages: &Pages, mut sender: Sender<'_>) -> io::Result<()> {
    loop {
        let mut page = taken(pages, &mut sender);
        let (header, body) = page.bytes_mut().split_at_mut(HEADER_BYTES);
        let bytes = file.read(body)?;
        header.copy_from_slice(&(bytes as u64).to_le_bytes());
        sender.send(COUNTER, page);
        pages.doorbell(COUNTER).ring(&SharedFutex);
        if bytes == 0 {
            return Ok(());
        }
    }
}

fn count_in_pages(pages: &Pages, mut receiver: Receiver<'_>) -> io::Result<usize> {
    let mut lines = 0;
    loop {
        let Some(page) = receiver.recv() else {
            pages.doorbell(COUNTER).sleep_unless(&SharedFutex, || !receiver.is_empty());
            continue;
        };
        let (header, body) = page.bytes().split_at(HEADER_BYTES);
        let bytes = u64::from_le_bytes(header.try_into().expect("eight bytes")) as usize;
        lines += count(&body[..bytes]);
        receiver.give_back(page);
        pages.doorbell(READER).ring(&SharedFutex);
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
