//! Processes that keep processors or the memory busy beside a run.

use std::hint::black_box;
use std::io::{self, Read, Write};
use std::time::Instant;

use gristmill_os::process::{Child, fork_worker};

/// The work of a process beside a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BesideWork {
    /// Computes without memory.
    Compute,
    /// Reads this many bytes of memory, again and again.
    Read { bytes: usize },
}

/// Starts processes, and returns when all of them are at work. They end when the values are dropped.
pub fn start(work: BesideWork, count: u64) -> io::Result<Vec<Child>> {
    let (mut told, tell) = io::pipe()?;
    let begin = |_| fork_worker(|| endless(work, &tell)).map_err(io::Error::other);
    let all: Vec<Child> = (0..count).map(begin).collect::<io::Result<_>>()?;
    drop(tell);
    // Each writes a byte when it begins. If one dies, the others are at work nevertheless.
    let mut byte = [0];
    for _ in 0..count {
        if told.read(&mut byte)? == 0 {
            break;
        }
    }
    Ok(all)
}

/// How often a computation is timed, and its length: some 10 ms.
const TIMES: usize = 9;
const ROUNDS: usize = 5_000;

/// Measures how much longer a computation takes beside others: 0.02 is two percent.
pub fn computing_growth(others: u64) -> io::Result<f64> {
    let alone = computation_seconds();
    let beside = start(BesideWork::Compute, others)?;
    let seconds = computation_seconds();
    drop(beside);
    Ok((seconds / alone - 1.0).max(0.0))
}

/// Returns the least time of several: whatever disturbs makes it longer.
fn computation_seconds() -> f64 {
    let mut random = 1;
    let timed = (0..TIMES).map(|_| {
        let began = Instant::now();
        (0..ROUNDS).for_each(|_| compute(&mut random));
        began.elapsed().as_secs_f64()
    });
    timed.fold(f64::INFINITY, f64::min)
}

fn compute(random: &mut u64) {
    for _ in 0..1_000 {
        *random = black_box(*random ^ (*random << 13));
        *random ^= *random >> 7;
    }
}

fn endless(work: BesideWork, mut tell: &io::PipeWriter) -> i32 {
    let words: Vec<u64> = match work {
        BesideWork::Compute => Vec::new(),
        // Memory that was never written would be one page of zeros.
        BesideWork::Read { bytes } => vec![1; bytes / size_of::<u64>()],
    };
    // It works in any case.
    let _ = tell.write_all(&[1]);
    let mut random = 1_u64;
    loop {
        compute(&mut random);
        if !words.is_empty() {
            black_box(words.iter().copied().fold(0, u64::wrapping_add));
        }
    }
}
