//! Compares ways to read a large file: two processes count the line ends of half of it each.
//!
//! - `pread`: into one reused buffer of 256 KiB, as Gristmill reads;
//! - `pread-sequential`, `pread-willneed`: the same, with advice to the kernel (posix_fadvise) that reading is
//!   sequential, or to fetch the next 8 MiB;
//! - `mmap`, `mmap-sequential`, `mmap-populate`: a map of the half; with advice (madvise); with its page table filled
//!   8 MiB at a time.
//!
//! `reads ROUNDS FILE...` runs all of them in turn on each file, ROUNDS times, with the file in the page cache
//! (`"cold": false`) and after the kernel was told to drop it (tmpfs cannot). Each run is one line of JSON: GB/s of
//! elapsed time, processor time of both processes in milliseconds, faults, and the resident set of the larger process
//! in KiB.

use std::fs::File;
use std::io::Read;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use memmap2::{Advice, Mmap, MmapOptions};

const BUFFER: usize = 256 << 10;
/// The distance that the kernel is asked to read ahead.
const AHEAD: usize = 8 << 20;
const WAYS: [&str; 6] = ["pread", "pread-sequential", "pread-willneed", "mmap", "mmap-sequential", "mmap-populate"];

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match &words[..] {
        [flag, way, path, from, to] if flag == "--half" => {
            let [from, to] = [from, to].map(|word| word.parse().expect("a number"));
            println!("{} {}", count(way, Path::new(path), from, to), peak_kib());
        }
        [rounds, paths @ ..] if !paths.is_empty() => {
            for round in 0..rounds.parse::<u32>().expect("a number of rounds") {
                for (path, cold) in paths.iter().flat_map(|path| [(path, false), (path, true)]) {
                    WAYS.iter().for_each(|way| run(way, path, cold, round));
                }
            }
        }
        _ => eprintln!("usage: reads ROUNDS FILE..."),
    }
}

/// Reads the file once, and prints the measurements.
fn run(way: &str, path: &str, cold: bool, round: u32) {
    let file = File::open(path).expect("there");
    let bytes = file.metadata().expect("known").len();
    if cold {
        file.sync_all().expect("written");
        // SAFETY: the descriptor is open, and the other arguments are numbers.
        assert_eq!(unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) }, 0);
    }
    let (before, began) = (usage(), Instant::now());
    let half = bytes / 2 / AHEAD as u64 * AHEAD as u64;
    let halves = [(0, half), (half, bytes)].map(|(from, to)| start(way, path, from, to));
    let told = halves.map(|mut child| {
        let mut told = String::new();
        child.stdout.take().expect("a pipe").read_to_string(&mut told).expect("text");
        assert!(child.wait().expect("waited for").success());
        let (lines, peak) = told.trim().split_once(' ').expect("two numbers");
        [lines, peak].map(|word| word.parse::<u64>().expect("a number"))
    });
    let seconds = began.elapsed().as_secs_f64();
    let [user, system, minor, major] = std::array::from_fn(|at| usage()[at] - before[at]);
    println!(
        "{{\"way\": \"{way}\", \"file\": \"{}\", \"cold\": {cold}, \"round\": {round}, \"gb_per_s\": {:.2}, \"user_ms\": {}, \
         \"sys_ms\": {}, \"minor_faults\": {minor}, \"major_faults\": {major}, \"peak_kib\": {}, \"lines\": {}}}",
        Path::new(path).file_name().expect("a name").display(),
        bytes as f64 / seconds / 1e9,
        user / 1000,
        system / 1000,
        told[0][1].max(told[1][1]),
        told[0][0] + told[1][0],
    );
}

fn start(way: &str, path: &str, from: u64, to: u64) -> Child {
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command.args(["--half", way, path, &from.to_string(), &to.to_string()]).stdout(Stdio::piped());
    command.spawn().expect("started")
}

/// Counts the line ends between two offsets of a file.
fn count(way: &str, path: &Path, from: u64, to: u64) -> usize {
    let file = File::open(path).expect("there");
    let lines = |bytes: &[u8]| memchr::memchr_iter(b'\n', bytes).count();
    if way.starts_with("pread") {
        // SAFETY: the descriptor is open, and the other arguments are numbers.
        let advise = |at: u64, bytes: usize, what| unsafe {
            libc::posix_fadvise(file.as_raw_fd(), at as i64, bytes as i64, what);
        };
        if way == "pread-sequential" {
            advise(from, (to - from) as usize, libc::POSIX_FADV_SEQUENTIAL);
        }
        let (mut buffer, mut at, mut found) = (vec![0; BUFFER], from, 0);
        while at < to {
            if way == "pread-willneed" && (at - from).is_multiple_of(AHEAD as u64) {
                advise(at + AHEAD as u64, AHEAD, libc::POSIX_FADV_WILLNEED);
            }
            let wanted = BUFFER.min((to - at) as usize);
            file.read_exact_at(&mut buffer[..wanted], at).expect("read");
            found += lines(&buffer[..wanted]);
            at += wanted as u64;
        }
        return found;
    }
    // SAFETY: no process writes to the file during the measurement.
    let map: Mmap = unsafe { MmapOptions::new().offset(from).len((to - from) as usize).map(&file) }.expect("mapped");
    if way == "mmap-sequential" {
        map.advise(Advice::Sequential).expect("told");
    }
    let pieces = map.chunks(AHEAD).enumerate();
    let populate = |at: usize, bytes: usize| {
        if way == "mmap-populate" {
            map.advise_range(Advice::PopulateRead, at, bytes).expect("populated");
        }
    };
    pieces
        .map(|(number, piece)| {
            populate(number * AHEAD, piece.len());
            lines(piece)
        })
        .sum()
}

/// Returns user and system time in microseconds, and minor and major faults, of all children so far.
fn usage() -> [i64; 4] {
    // SAFETY: zeros are a valid value of this type, and the kernel writes to it.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        assert_eq!(libc::getrusage(libc::RUSAGE_CHILDREN, &mut usage), 0);
        usage
    };
    let [user, system] = [usage.ru_utime, usage.ru_stime].map(|time| time.tv_sec * 1_000_000 + time.tv_usec);
    [user, system, usage.ru_minflt, usage.ru_majflt]
}

/// Returns the largest resident set of this process so far.
fn peak_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("there");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("the kernel says so");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}
