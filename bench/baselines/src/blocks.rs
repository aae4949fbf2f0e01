//! Threads that claim blocks of a file from a shared counter and read them into a reused buffer each.

use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Runs `work` over the blocks of the bytes from `skip` to the end, and returns each thread's state. All blocks
/// except the last have `block_bytes`.
pub fn each<S: Send>(
    path: impl AsRef<Path>,
    skip: usize,
    block_bytes: usize,
    threads: usize,
    new: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, &[u8]) + Sync,
) -> std::io::Result<Vec<S>> {
    let file = File::open(path)?;
    let size = file.metadata()?.len() as usize;
    run(threads, |next| {
        let (mut state, mut buffer) = (new(), vec![0; block_bytes]);
        while let Some(block) = claim(next, skip..size, block_bytes) {
            let bytes = &mut buffer[..block.len()];
            file.read_exact_at(bytes, block.start as u64)?;
            work(&mut state, bytes);
        }
        Ok(state)
    })
}

/// Does the same for lines: each belongs to the block in which it starts. The text passed to `work` ends with a line
/// end.
pub fn each_of_lines<S: Send>(
    path: impl AsRef<Path>,
    block_bytes: usize,
    threads: usize,
    new: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, &[u8]) + Sync,
) -> std::io::Result<Vec<S>> {
    const MORE: usize = 1 << 10;
    let file = File::open(path)?;
    let size = file.metadata()?.len() as usize;
    run(threads, |next| {
        let (mut state, mut buffer) = (new(), Vec::new());
        while let Some(block) = claim(next, 0..size, block_bytes) {
            // The byte before tells whether a line starts with the block; bytes after complete the last line.
            let from = block.start.saturating_sub(1);
            let (mut have, mut want) = (0, (block.end - from + MORE).min(size - from));
            let end = loop {
                if buffer.len() <= want {
                    buffer.resize(want + 1, 0);
                }
                file.read_exact_at(&mut buffer[have..want], (from + have) as u64)?;
                have = want;
                match buffer[block.end - from - 1..have].iter().position(|&byte| byte == b'\n') {
                    Some(at) => break block.end - from + at,
                    None if from + have == size => {
                        buffer[have] = b'\n';
                        break have + 1;
                    }
                    None => want = (2 * have).min(size - from),
                }
            };
            let first = match block.start {
                0 => 0,
                _ => buffer[..end].iter().position(|&byte| byte == b'\n').map_or(end, |at| at + 1),
            };
            work(&mut state, &buffer[first..end]);
        }
        Ok(state)
    })
}

fn claim(next: &AtomicUsize, bytes: Range<usize>, block_bytes: usize) -> Option<Range<usize>> {
    let start = bytes.start + next.fetch_add(1, Relaxed) * block_bytes;
    (start < bytes.end).then(|| start..(start + block_bytes).min(bytes.end))
}

fn run<S: Send>(threads: usize, thread: impl Fn(&AtomicUsize) -> std::io::Result<S> + Sync) -> std::io::Result<Vec<S>> {
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        let running: Vec<_> = (0..threads).map(|_| scope.spawn(|| thread(&next))).collect();
        running.into_iter().map(|thread| thread.join().expect("no thread panics")).collect()
    })
}
