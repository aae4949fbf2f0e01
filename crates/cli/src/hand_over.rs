//! The rate at which processes hand over pages, for `gristmill machine`; and a wait for processes.

use std::hint::black_box;
use std::io::{self, Read, Write};

use gristmill_os::clock::monotonic_ns;
use gristmill_os::futex::SharedFutex;
use gristmill_os::machine::pin_to_cpu;
use gristmill_os::process::{Child, Death, fork_worker};
use gristmill_os::wake::poll;
use gristmill_page::{PageMut, Pages, Receiver, Sender, Shape};

/// The size of a page.
const PAGE_BYTES: usize = 32 << 10;

/// The slot of the process that sends pages.
const SENDER: usize = 0;
/// The slot of the process that gets them.
const RECEIVER: usize = 1;

/// Maps the pages of two processes: 512 KiB, which stay in the cache.
fn shared_pages() -> io::Result<Pages> {
    Pages::new(Shape { slots: 2, pages_per_arena: 16, page_bytes: PAGE_BYTES, ..Shape::default() })
}

/// Waits until all have ended. If one fails, the others are killed.
pub fn wait(mut at_work: Vec<Child>) -> io::Result<()> {
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

/// Returns the rate, in bytes per second, at which processes on each two of `processors` hand over pages: one writes
/// all of a page, the other reads all of it. `None` for fewer than two.
pub(crate) fn rate(processors: &[usize]) -> io::Result<Option<f64>> {
    let (pairs, _) = processors.as_chunks::<2>();
    if pairs.is_empty() {
        return Ok(None);
    }
    let all = pairs.iter().map(|_| shared_pages()).collect::<io::Result<Vec<Pages>>>()?;
    let (mut told, tell) = io::pipe()?;
    let status = |outcome: io::Result<()>| outcome.map_or_else(|error| error.raw_os_error().unwrap_or(1), |()| 0);
    let mut at_work = Vec::new();
    for (pages, [writer, reader]) in all.iter().zip(pairs) {
        let write = || {
            let _ = pin_to_cpu(*writer);
            write_pages(pages, pages.claim(SENDER).0);
            0
        };
        let read = || {
            let _ = pin_to_cpu(*reader);
            let times = read_pages(pages, pages.claim(RECEIVER).1).map(u64::to_ne_bytes);
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
        let mut page = empty_page(pages, &mut sender);
        page.bytes_mut().fill(number as u8);
        sender.send(RECEIVER, page);
        pages.doorbell(RECEIVER).ring(&SharedFutex);
    }
}

/// Returns when the first page came, and when the last one had been read.
fn read_pages(pages: &Pages, mut receiver: Receiver<'_>) -> [u64; 2] {
    let (mut began_ns, mut left) = (None, RATE_BYTES / PAGE_BYTES);
    while left > 0 {
        let Some(page) = receiver.recv() else {
            pages.doorbell(RECEIVER).sleep_unless(&SharedFutex, || !receiver.is_empty());
            continue;
        };
        began_ns.get_or_insert_with(monotonic_ns);
        let words = page.bytes().as_chunks::<8>().0.iter();
        black_box(words.fold(0, |sum: u64, word| sum.wrapping_add(u64::from_ne_bytes(*word))));
        receiver.give_back(page);
        pages.doorbell(SENDER).ring(&SharedFutex);
        left -= 1;
    }
    [began_ns.unwrap_or(0), monotonic_ns()]
}

/// Returns an empty page, when there is one.
fn empty_page<'p>(pages: &Pages, sender: &mut Sender<'p>) -> PageMut<'p> {
    loop {
        match sender.take() {
            Some(page) => return page,
            None => pages.doorbell(SENDER).sleep_unless(&SharedFutex, || sender.collect() > 0),
        }
    }
}
