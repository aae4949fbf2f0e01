//! Programs whose limit is known, to try a diagnosis on: `zoo KIND WORKERS [STRENGTH]`.
//!
//! The workers are threads. With any number of them a kind does the same work, which takes about a second with one.
//! The strength multiplies what limits it; where it says so, it divides the work between two waits. `bench/zoo.sh`
//! runs all kinds, and sets the limits that a program cannot set for itself: a slow disk, a quota of processors, an
//! allocator with a single lock.

use std::fs::{self, File, OpenOptions};
use std::hint::{black_box, spin_loop};
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Barrier, Condvar, Mutex};
use std::thread;

use rustix::fs::{FlockOperation, OFlags, flock};

/// A kind: its name, and what it does with a number of workers and a strength.
type Kind = (&'static str, fn(u64, u64));

const KINDS: [Kind; 18] = [
    ("compute", compute),
    ("bandwidth", bandwidth),
    ("cache", cache),
    ("false-sharing", false_sharing),
    ("mutex", mutex),
    ("spin", spin),
    ("queue", queue),
    ("file-lock", file_lock),
    ("barrier", barrier),
    ("serial", serial),
    ("faults", faults),
    ("allocator", allocator),
    ("pipe", pipe),
    ("fsync", fsync),
    ("disk", disk),
    ("files", files),
    ("threads", threads),
    ("tiny-tasks", tiny_tasks),
];

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize| arguments.get(at).map_or(Some(1), |word| word.parse().ok()).filter(|number| *number > 0);
    let kind = KINDS.iter().find(|(name, _)| arguments.first().is_some_and(|first| first == name));
    match (kind, number(1), number(2)) {
        (Some((_, run)), Some(workers), Some(strength)) => run(workers, strength),
        _ => {
            let names: Vec<&str> = KINDS.iter().map(|(name, _)| *name).collect();
            eprintln!("usage: zoo KIND WORKERS [STRENGTH], where KIND is one of {}", names.join(", "));
            std::process::exit(2);
        }
    }
}

/// Runs `work` with the number of each worker, in a thread of its own.
fn each(workers: u64, work: impl Fn(u64) + Sync) {
    thread::scope(|scope| {
        for worker in 0..workers {
            let work = &work;
            scope.spawn(move || work(worker));
        }
    });
}

/// Keeps a processor busy without memory, about a nanosecond for each turn.
fn turn(turns: u64) {
    let mut x = black_box(turns | 1);
    for _ in 0..turns {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
    }
    black_box(x);
}

/// About a second.
const SECOND: u64 = 600_000_000;

/// Computation only: nothing stops it.
fn compute(workers: u64, strength: u64) {
    each(workers, |_| turn(SECOND * strength / workers));
}

/// Reads memory that is in no cache, as fast as it comes.
fn bandwidth(workers: u64, strength: u64) {
    let words: Vec<u64> = (0..16 << 20).collect();
    each(workers, |worker| {
        let part = words.len() / workers as usize;
        for _ in 0..60 * strength {
            black_box(words[worker as usize * part..][..part].iter().copied().fold(0, u64::wrapping_add));
        }
    });
}

/// The size of the last cache; where the kernel tells none, that of a common one.
fn last_cache_bytes() -> usize {
    let size = fs::read_to_string("/sys/devices/system/cpu/cpu0/cache/index3/size").unwrap_or_default();
    size.trim().strip_suffix('K').and_then(|kib| kib.parse::<usize>().ok()).map_or(32 << 20, |kib| kib << 10)
}

/// Reads random places of a table of its own, which fits the last cache alone, but not beside others.
fn cache(workers: u64, strength: u64) {
    let words = last_cache_bytes() / 4 * 3 / size_of::<u64>();
    each(workers, |worker| {
        let table: Vec<u64> = (0..words as u64).collect();
        let mut random = worker;
        for _ in 0..6_000_000 * strength / workers {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let at = ((u128::from(random) * words as u128) >> 64) as usize;
            random ^= table[at];
        }
        black_box(random);
    });
}

/// Counts in words of its own, which share a cache line with those of the others.
fn false_sharing(workers: u64, strength: u64) {
    let counts: Vec<AtomicU64> = (0..workers).map(|_| AtomicU64::new(0)).collect();
    each(workers, |worker| {
        for _ in 0..400_000_000 * strength / workers {
            counts[worker as usize].fetch_add(1, Ordering::Relaxed);
        }
    });
}

/// Does everything under one lock, a microsecond at a time.
fn mutex(workers: u64, strength: u64) {
    let lock = Mutex::new(());
    each(workers, |_| {
        for _ in 0..700_000 * strength / workers {
            let _held = lock.lock().expect("nobody panics");
            turn(700);
        }
    });
}

/// As `mutex`, with a lock that is waited for without sleep.
fn spin(workers: u64, strength: u64) {
    let lock = AtomicBool::new(false);
    each(workers, |_| {
        for _ in 0..800_000 * strength / workers {
            while lock.compare_exchange_weak(false, true, Ordering::Acquire, Ordering::Relaxed).is_err() {
                spin_loop();
            }
            turn(700);
            lock.store(false, Ordering::Release);
        }
    });
}

/// One thread makes the work, a millisecond at a time, and the workers have little to do with it.
fn queue(workers: u64, strength: u64) {
    let (work, made) = (Mutex::new((0, false)), Condvar::new());
    thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                loop {
                    let held = work.lock().expect("nobody panics");
                    let mut held =
                        made.wait_while(held, |(pieces, ended)| *pieces == 0 && !*ended).expect("nobody panics");
                    if held.0 == 0 {
                        return;
                    }
                    held.0 -= 1;
                    drop(held);
                    turn(SECOND / 10_000);
                }
            });
        }
        for _ in 0..1000 * strength {
            turn(SECOND / 1000);
            work.lock().expect("nobody panics").0 += 1;
            made.notify_one();
        }
        work.lock().expect("nobody panics").1 = true;
        made.notify_all();
    });
}

/// As `mutex`, with the lock of a file, a millisecond at a time.
fn file_lock(workers: u64, strength: u64) {
    let folder = Folder::new();
    each(workers, |_| {
        let file = File::create(folder.0.join("lock")).expect("made");
        for _ in 0..1000 * strength / workers {
            flock(&file, FlockOperation::LockExclusive).expect("locked");
            turn(SECOND / 1000);
            flock(&file, FlockOperation::Unlock).expect("unlocked");
        }
    });
}

/// Rounds in which one worker has more to do than the others, who wait for it.
fn barrier(workers: u64, strength: u64) {
    let barrier = Barrier::new(workers as usize);
    each(workers, |worker| {
        for _ in 0..20 {
            let round = SECOND / 20;
            turn(if worker == 0 { round * 7 / 10 * strength } else { round * 3 / 10 / (workers - 1) });
            if workers == 1 {
                turn(round * 3 / 10);
            }
            barrier.wait();
        }
    });
}

/// One worker does most, and only then the others begin.
fn serial(workers: u64, strength: u64) {
    turn(SECOND * 7 / 10 * strength);
    each(workers, |_| turn(SECOND * 3 / 10 / workers));
}

/// Asks for memory, touches some of it and gives it back, which the other processors must hear of. With more strength,
/// less of it is touched at a time.
fn faults(workers: u64, strength: u64) {
    const BYTES: usize = 64 << 20;
    const PAGES: u64 = 400_000;
    let pages = (64 / strength).max(1);
    each(workers, |_| {
        for _ in 0..PAGES / pages / workers {
            let mut memory = vec![0u8; BYTES];
            memory.iter_mut().step_by(4096).take(pages as usize).for_each(|byte| *byte = 1);
            black_box(&memory);
        }
    });
}

/// Replaces pieces of memory by others. They are too large for what the allocator keeps for each thread.
fn allocator(workers: u64, strength: u64) {
    each(workers, |worker| {
        let mut pieces = vec![Vec::<u8>::new(); 64];
        let mut random = worker;
        for _ in 0..4_000_000 * strength / workers {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            pieces[(random >> 58) as usize] = Vec::with_capacity(2_000 + (random >> 40) as usize % 6_000);
        }
        black_box(&pieces);
    });
}

/// All write into a pipe, from which one reads and computes.
fn pipe(workers: u64, strength: u64) {
    let (mut reader, writer) = std::io::pipe().expect("a pipe");
    let total = 160 << 20;
    thread::scope(|scope| {
        scope.spawn(move || {
            let mut block = vec![0; 64 << 10];
            while reader.read(&mut block).expect("read") > 0 {
                turn(200_000 * strength);
            }
        });
        for _ in 0..workers {
            let mut writer = writer.try_clone().expect("a second descriptor");
            scope.spawn(move || {
                let block = [1; 64 << 10];
                for _ in 0..total / block.len() as u64 / workers {
                    turn(20_000);
                    writer.write_all(&block).expect("written");
                }
            });
        }
        drop(writer);
    });
}

/// A folder for files, which is removed in the end.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Folder {
        let path = std::env::current_dir().expect("a folder").join(format!("zoo-{}", std::process::id()));
        fs::create_dir(&path).expect("made");
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.0));
    }
}

/// Writes a little and waits until it is on the disk, again and again.
fn fsync(workers: u64, strength: u64) {
    let folder = Folder::new();
    each(workers, |worker| {
        let mut file = File::create(folder.0.join(worker.to_string())).expect("made");
        for _ in 0..300 * strength / workers {
            file.write_all(&[1; 4096]).expect("written");
            file.sync_data().expect("synced");
        }
    });
}

/// A block as direct writes want it.
#[repr(align(4096))]
struct Block([u8; 1 << 20]);

/// Writes much to the disk, past the page cache.
fn disk(workers: u64, strength: u64) {
    let direct_and_sync = (OFlags::DIRECT | OFlags::SYNC).bits() as i32;
    let folder = Folder::new();
    each(workers, |worker| {
        let block = Box::new(Block([1; 1 << 20]));
        let path = folder.0.join(worker.to_string());
        let mut file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .custom_flags(direct_and_sync)
            .open(path)
            .expect("made");
        for _ in 0..100 * strength / workers {
            file.write_all(&block.0).expect("written");
        }
    });
}

/// Makes, reads and removes small files in one folder.
fn files(workers: u64, strength: u64) {
    let folder = Folder::new();
    each(workers, |worker| {
        for number in 0..24_000 * strength / workers {
            let path = folder.0.join(format!("{worker}.{number}"));
            fs::write(&path, [1; 100]).expect("written");
            black_box(fs::read(&path).expect("read"));
            fs::remove_file(path).expect("removed");
        }
    });
}

/// Each worker has eight threads of its own, as when a parallel program calls a parallel library.
fn threads(workers: u64, strength: u64) {
    each(workers * 8 * strength, |_| turn(SECOND / workers / 8 / strength));
}

/// Tasks of a fiftieth of a microsecond, from one queue. With more strength, they are shorter.
fn tiny_tasks(workers: u64, strength: u64) {
    let queue = Mutex::new(0..32_000_000);
    each(workers, |_| {
        loop {
            let task = queue.lock().expect("nobody panics").next();
            let Some(task) = task else { break };
            turn(16 / strength);
            black_box(task);
        }
    });
}
