//! Compares ways to hand a page from one worker to another (DMR, Yu and Zhang 2017, section 3.3.1).
//!
//! A producer fills pages of 64 KiB. A consumer adds up all their words (`"read": "all"`) or reads only the first one
//! (`"read": "first"`: the cost of the way itself, because reading what another core wrote costs the same with all
//! ways). Only the way between them differs:
//!
//! - `pages-processes`, `pages-threads`: Gristmill's channel, with the page handed over in place;
//! - `remap-processes`, `remap-threads`: DMR's way, with the page's memory mapped out of one buffer and into another;
//! - `socket`, `pipe`: between two processes, copied by the kernel.
//!
//! `exchange [MEBIBYTES] [ROUNDS]` runs all of them in turn, ROUNDS times, and prints one line of JSON for each run:
//! GB/s and, for the consumer, minor faults and voluntary context switches per page.

use std::io::{Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::ptr::null_mut;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use gristmill_os::clock::monotonic_ns;
use gristmill_os::futex::SharedFutex;
use gristmill_os::process::fork_worker;
use gristmill_os::usage::Usage;
use gristmill_page::{PageMut, Pages, Receiver, Sender, Shape};

const PAGE: usize = 64 << 10;
/// 8 MiB of pages, which stay in the last-level cache.
const POOL: usize = 128;

fn main() {
    let mut words = std::env::args().skip(1).map(|word| word.parse().expect("usage: exchange [MEBIBYTES] [ROUNDS]"));
    let count = words.next().unwrap_or(4096usize) * (1 << 20) / PAGE;
    let rounds = words.next().unwrap_or(5);
    for (round, all) in (0..rounds).flat_map(|round| [(round, true), (round, false)]) {
        READ_ALL.store(all, Relaxed);
        let read = if all { "all" } else { "first" };
        for way in ["pages-processes", "pages-threads", "remap-processes", "remap-threads", "socket", "pipe"] {
            // Each run has its own process, because threads of one run would forbid the forks of the next.
            let run = fork_worker(|| {
                let line = run(way, count);
                println!(
                    "{{\"way\": \"{way}\", \"read\": \"{read}\", \"round\": {round}, \"pages\": {count}, {line}}}"
                );
                0
            });
            run.expect("forked").wait().expect("waited for");
        }
    }
}

fn run(way: &str, count: usize) -> String {
    match way {
        "pages-processes" | "pages-threads" => {
            let pages = Pages::new(Shape { slots: 2, pages_per_arena: POOL, page_bytes: PAGE, ..Shape::default() });
            let pages = pages.expect("mapped");
            pages.region().ask_for_huge_pages();
            apart(way, || send_pages(&pages, count), || receive_pages(&pages, count))
        }
        "remap-processes" | "remap-threads" => {
            // The numbers of remapped pages travel in small pages of our own channel, so that only the remapping
            // differs.
            let pages = Pages::new(Shape { slots: 2, pages_per_arena: POOL, page_bytes: 4096, ..Shape::default() });
            let pages = pages.expect("mapped");
            let memory = Remapped::new();
            apart(way, || memory.send(&pages, count), || memory.receive(&pages, count))
        }
        "socket" => {
            let (out, into) = pair();
            apart(way, || copy_out(&out, count), || copy_in(&into, count))
        }
        "pipe" => {
            let (into, out) = std::io::pipe().expect("a pipe");
            apart(way, || copy_out(&out, count), || copy_in(&into, count))
        }
        _ => unreachable!("a way listed above"),
    }
}

/// Runs the producer in another process or thread and the consumer here. Returns the line to report.
fn apart(way: &str, produce: impl FnOnce() + Send, consume: impl FnOnce() -> Tally) -> String {
    let tally = if way.ends_with("threads") {
        std::thread::scope(|scope| {
            scope.spawn(produce);
            consume()
        })
    } else {
        let producer = fork_worker(|| {
            produce();
            0
        });
        let mut producer = producer.expect("forked");
        let tally = consume();
        producer.wait().expect("waited for");
        tally
    };
    let Tally { ns, pages, faults, switches, sum } = tally;
    assert!(sum > 0, "the pages were not empty");
    format!(
        "\"gb_per_s\": {:.2}, \"faults_per_page\": {:.4}, \"switches_per_page\": {:.4}",
        (pages * PAGE) as f64 / ns as f64,
        faults as f64 / pages as f64,
        switches as f64 / pages as f64
    )
}

/// The consumer's measurements, after the first POOL pages as a warm-up.
struct Tally {
    ns: u64,
    pages: usize,
    faults: u64,
    switches: u64,
    sum: u64,
}

/// Calls `next` for each page, and measures all except the first POOL.
fn consume(count: usize, mut next: impl FnMut() -> u64) -> Tally {
    let mut sum = 0_u64;
    for _ in 0..POOL {
        sum = sum.wrapping_add(next());
    }
    let (before, start_ns) = (Usage::of_thread(), monotonic_ns());
    for _ in POOL..count {
        sum = sum.wrapping_add(next());
    }
    let (ns, after) = (monotonic_ns() - start_ns, Usage::of_thread());
    Tally {
        ns,
        pages: count - POOL,
        faults: after.minor_faults - before.minor_faults,
        switches: after.voluntary_switches - before.voluntary_switches,
        sum,
    }
}

fn fill(page: &mut [u8], number: usize) {
    page.fill(number as u8 | 1);
}

/// True if the consumer reads whole pages; set before the fork.
static READ_ALL: AtomicBool = AtomicBool::new(true);

fn add_up(page: &[u8]) -> u64 {
    if !READ_ALL.load(Relaxed) {
        return u64::from(page[0]);
    }
    page.as_chunks::<8>().0.iter().fold(0, |sum: u64, word| sum.wrapping_add(u64::from_le_bytes(*word))) >> 1 | 1
}

/// Claims a slot in the process or thread that sends, because an end stays where it was claimed.
fn send_pages(pages: &Pages, count: usize) {
    let (mut sender, _) = pages.claim(0);
    for number in 0..count {
        let mut page = take(pages, &mut sender);
        fill(page.bytes_mut(), number);
        sender.send(1, page);
        pages.doorbell(1).ring(&SharedFutex);
    }
}

fn take<'r>(pages: &Pages, sender: &mut Sender<'r>) -> PageMut<'r> {
    loop {
        match sender.take() {
            Some(page) => return page,
            None => pages.doorbell(0).sleep_unless(&SharedFutex, || sender.collect() > 0),
        }
    }
}

fn receive_pages(pages: &Pages, count: usize) -> Tally {
    let (_, mut receiver) = pages.claim(1);
    consume(count, || next(pages, &mut receiver, add_up))
}

/// Waits for a page, reads it and gives it back.
fn next(pages: &Pages, receiver: &mut Receiver<'_>, look: impl FnOnce(&[u8]) -> u64) -> u64 {
    loop {
        if let Some(page) = receiver.recv() {
            let sum = look(page.bytes());
            receiver.give_back(page);
            pages.doorbell(0).ring(&SharedFutex);
            return sum;
        }
        pages.doorbell(1).sleep_unless(&SharedFutex, || !receiver.is_empty());
    }
}

fn pair() -> (UnixStream, UnixStream) {
    UnixStream::pair().expect("a pair of sockets")
}

fn copy_out(mut out: impl Write, count: usize) {
    let mut page = vec![0; PAGE];
    for number in 0..count {
        fill(&mut page, number);
        out.write_all(&page).expect("sent");
    }
}

fn copy_in(mut from: impl Read, count: usize) -> Tally {
    let mut page = vec![0; PAGE];
    consume(count, || {
        from.read_exact(&mut page).expect("received");
        add_up(&page)
    })
}

/// A pool of pages in a memory file. Each side maps one page at a time.
struct Remapped {
    file: OwnedFd,
}

impl Remapped {
    fn new() -> Remapped {
        // SAFETY: plain system calls on a new descriptor of ours.
        let file = unsafe {
            let fd = libc::memfd_create(c"remapped".as_ptr(), 0);
            assert!(fd >= 0 && libc::ftruncate(fd, (POOL * PAGE) as i64) == 0, "a memory file");
            OwnedFd::from_raw_fd(fd)
        };
        Remapped { file }
    }

    /// Reserves address space for a buffer.
    fn buffer(&self) -> *mut u8 {
        // SAFETY: a new private mapping aliases nothing.
        let at =
            unsafe { libc::mmap(null_mut(), PAGE, libc::PROT_NONE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1, 0) };
        assert!(at != libc::MAP_FAILED, "address space for a buffer");
        at.cast()
    }

    /// Maps page `number` of the pool at the buffer.
    fn map(&self, buffer: *mut u8, number: u32) -> &mut [u8] {
        let flags = libc::MAP_SHARED | libc::MAP_FIXED;
        // SAFETY: this replaces the buffer's own mapping. The page numbers passed back and forth give the page to one
        // side at a time, and the slice is not used after the next call.
        unsafe {
            let at = libc::mmap(
                buffer.cast(),
                PAGE,
                libc::PROT_READ | libc::PROT_WRITE,
                flags,
                self.file.as_raw_fd(),
                number as i64 * PAGE as i64,
            );
            assert!(at != libc::MAP_FAILED, "remapped");
            std::slice::from_raw_parts_mut(buffer, PAGE)
        }
    }

    fn send(&self, pages: &Pages, count: usize) {
        let (mut sender, _) = pages.claim(0);
        let buffer = self.buffer();
        for number in 0..count {
            // There are as many numbers as pages, and a number is free when its page is.
            let mut name = take(pages, &mut sender);
            let page = number as u32 % POOL as u32;
            fill(self.map(buffer, page), number);
            name.bytes_mut()[..4].copy_from_slice(&page.to_le_bytes());
            sender.send(1, name);
            pages.doorbell(1).ring(&SharedFutex);
        }
    }

    fn receive(&self, pages: &Pages, count: usize) -> Tally {
        let (_, mut receiver) = pages.claim(1);
        let buffer = self.buffer();
        consume(count, || {
            next(pages, &mut receiver, |name| {
                let page = u32::from_le_bytes(name[..4].try_into().expect("four bytes"));
                add_up(self.map(buffer, page))
            })
        })
    }
}
