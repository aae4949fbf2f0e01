//! The threads of a program at one moment: running, or asleep for some reason.

use std::collections::HashMap;

use gristmill_os::process::{Stat, descendants, numbers};

use crate::file_locks::FileLocks;
use crate::files::here;
use crate::sleep::{Call, Sleep};

/// The threads at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Glance {
    /// The number of threads on a processor or waiting for one.
    pub runnable: u64,
    /// The sleeping threads.
    pub asleep: Vec<Sleep>,
    /// Those of `asleep` that may only wait for the end of other threads: in `pthread_join`, or as the first thread of
    /// a process on a futex.
    pub aside: Vec<Sleep>,
}

/// The seconds of threads.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spent {
    /// On processors.
    pub on_processor: f64,
    /// Runnable, but without a processor.
    pub waited: f64,
    /// The share of all time on processors that the thread with the most of it had; 0 if that is unknown.
    pub busiest: f64,
    /// True if all processes had one thread, and none had memory that others may write.
    pub are_apart: bool,
}

/// Repeatedly examines the threads of all descendants of a process.
#[derive(Debug)]
pub struct Watcher {
    root: u32,
    /// For each thread, the nanoseconds on a processor and waiting for one, when it was last seen.
    seen: HashMap<(u32, u32), (u64, u64)>,
    /// For each thread, the ticks on a processor, when it was last seen: all that kernels without the above tell.
    ticks: HashMap<(u32, u32), u64>,
    /// The number of times that the threads were examined.
    looks: u64,
    /// True if a process had several threads, or memory that others may write, or mappings that cannot be read.
    is_shared: bool,
}

/// The mappings of a process are examined each time that the threads are examined this often.
const LOOKS_OF_MAPS: u64 = 8;

impl Watcher {
    /// Watches the descendants of `root`.
    pub fn new(root: u32) -> Watcher {
        Watcher { root, seen: HashMap::new(), ticks: HashMap::new(), looks: 0, is_shared: false }
    }

    /// Examines the threads once. A thread that ends in the meantime may be missed.
    pub fn look(&mut self) -> Glance {
        let mut glance = Glance::default();
        let mut locks = None;
        for process in descendants(self.root) {
            let threads = numbers(&format!("/proc/{process}/task"));
            for &thread in &threads {
                let read = |name: &str| here(&format!("/proc/{process}/task/{thread}/{name}"));
                let Some(stat) = read("stat").and_then(|text| Stat::of(&text)) else { continue };
                self.ticks.insert((process, thread), stat.ticks);
                let is_alive = matches!(stat.state, 'R' | 'S' | 'D');
                if !self.is_shared && is_alive && self.looks.is_multiple_of(LOOKS_OF_MAPS) {
                    self.is_shared =
                        threads.len() > 1 || here(&format!("/proc/{process}/maps")).is_none_or(|maps| is_shared(&maps));
                }
                match stat.state {
                    'R' => glance.runnable += 1,
                    'S' | 'D' | 'I' => {
                        let file = |descriptor| {
                            let link = std::fs::read_link(format!("/proc/{process}/fd/{descriptor}")).ok()?;
                            Some(link.to_string_lossy().into_owned())
                        };
                        let call = read("syscall").and_then(|text| Call::of(&text, file));
                        let mut sleep = Sleep::of(stat.state, &read("wchan").unwrap_or_default(), call.as_ref());
                        if sleep == Sleep::Clock {
                            let locks = locks.get_or_insert_with(FileLocks::read);
                            sleep = locks.held_against(process, threads.len()).unwrap_or(sleep);
                        }
                        let joins = call.is_some_and(|call| call.joins(&threads));
                        if joins || sleep.is_on_futex() && thread == process {
                            glance.aside.push(sleep);
                        }
                        glance.asleep.push(sleep);
                    }
                    // Ended, or stopped.
                    _ => {}
                }
                // The times are read last, so that the reason of the sleep is read while the thread sleeps.
                if let Some(times) = read("schedstat").and_then(|text| times(&text)) {
                    self.seen.insert((process, thread), times);
                }
            }
        }
        self.looks += 1;
        glance
    }

    /// Returns the times of all threads seen; both 0 if the kernel does not count them.
    pub fn spent(&self) -> Spent {
        let seconds = |nanoseconds: u64| nanoseconds as f64 / 1e9;
        let on: Vec<u64> = match self.seen.is_empty() {
            true => self.ticks.values().copied().collect(),
            false => self.seen.values().map(|(on, _)| *on).collect(),
        };
        let share = *on.iter().max().unwrap_or(&0) as f64 / on.iter().sum::<u64>().max(1) as f64;
        Spent {
            on_processor: self.seen.values().map(|(on, _)| seconds(*on)).sum(),
            waited: self.seen.values().map(|(_, waited)| seconds(*waited)).sum(),
            busiest: share,
            are_apart: !self.is_shared && self.looks > LOOKS_OF_MAPS,
        }
    }
}

/// Returns true if a process has memory that others may write, by the list of its mappings; or if it may not be read.
fn is_shared(maps: &str) -> bool {
    maps.is_empty()
        || maps.lines().any(|line| {
            line.split_ascii_whitespace().nth(1).is_some_and(|mode| mode.starts_with("rw") && mode.ends_with('s'))
        })
}

/// Parses `schedstat`: nanoseconds on a processor, nanoseconds waiting for one, time slices.
fn times(text: &str) -> Option<(u64, u64)> {
    let mut fields = text.split_ascii_whitespace();
    Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};
    use std::sync::{Condvar, Mutex};
    use std::time::{Duration, Instant};

    #[test]
    fn mappings_tell_whether_others_may_write_the_memory() {
        let own = "7f00-7f01 rw-p 00000000 fe:00 1 /lib/libc.so\n7f02-7f03 r--s 00000000 fe:00 2 /cache\n";
        assert!(!is_shared(own) && is_shared(""));
        assert!(is_shared(&format!("{own}7f04-7f05 rw-s 00000000 00:01 3 /dev/shm/counter\n")));
    }

    #[test]
    fn times_of_a_thread_are_read() {
        assert_eq!(times("5 6 7\n"), Some((5, 6)));
        assert_eq!((times("5"), times("x 6 7"), times("")), (None, None, None));
    }

    #[test]
    fn a_program_that_reads_is_seen_asleep_and_one_that_computes_is_seen_running() {
        let mut reads = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().expect("cat");
        let mut computes =
            Command::new("sh").args(["-c", "while :; do :; done"]).stdin(Stdio::null()).spawn().expect("a shell");
        let mut watcher = Watcher::new(std::process::id());
        let began = Instant::now();
        let (mut slept, mut ran) = (false, false);
        while !(slept && ran) && began.elapsed() < Duration::from_secs(30) {
            let glance = watcher.look();
            slept |= !glance.asleep.is_empty();
            ran |= glance.runnable > 0;
            std::thread::sleep(Duration::from_millis(5));
        }
        computes.kill().expect("it runs");
        computes.wait().expect("it ends");
        drop(reads.stdin.take());
        reads.wait().expect("it ends");
        assert!(slept && ran);
        let spent = watcher.spent();
        assert!(spent.on_processor > 0.0 && spent.waited >= 0.0, "{spent:?}");
    }

    /// The share of the busiest thread was expected of a shell, beside which programs of other tests ran.
    #[test]
    fn the_busiest_thread_has_its_share_of_all_threads_times() {
        let mut watcher = Watcher::new(std::process::id());
        assert_eq!(watcher.spent(), Spent { on_processor: 0.0, waited: 0.0, busiest: 0.0, are_apart: false });
        watcher.ticks = HashMap::from([((1, 1), 30), ((1, 2), 10)]);
        // Where the kernel does not count so finely, ticks tell the share.
        assert_eq!(watcher.spent(), Spent { on_processor: 0.0, waited: 0.0, busiest: 0.75, are_apart: false });
        watcher.seen = HashMap::from([((1, 1), (4_000_000_000, 250_000_000)), ((1, 2), (1_000_000_000, 500_000_000))]);
        assert_eq!(watcher.spent(), Spent { on_processor: 5.0, waited: 0.75, busiest: 0.8, are_apart: false });
    }

    /// Looks until some thread sleeps so, or for half a minute.
    fn is_seen(watcher: &mut Watcher, sleep: Sleep) -> bool {
        let began = Instant::now();
        while began.elapsed() < Duration::from_secs(30) {
            if watcher.look().asleep.contains(&sleep) {
                return true;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        false
    }

    /// A thread that waited for work looked like one that waits for a lock.
    #[test]
    fn threads_at_a_lock_and_at_a_condition_are_told_apart() {
        let (lock, condition) = (Mutex::new(()), Condvar::new());
        std::thread::scope(|scope| {
            let held = lock.lock().expect("not poisoned");
            scope.spawn(|| drop(lock.lock()));
            // The threads of this process are below its parent.
            let mut watcher = Watcher::new(std::os::unix::process::parent_id());
            assert!(is_seen(&mut watcher, Sleep::Lock));
            drop(held);
            let work = Mutex::new(false);
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    let has_work = work.lock().expect("not poisoned");
                    drop(condition.wait_while(has_work, |has_work| !*has_work));
                });
                assert!(is_seen(&mut watcher, Sleep::Signal));
                *work.lock().expect("not poisoned") = true;
                condition.notify_all();
            });
        });
    }

    /// A program that waited for a locked file was said to wait for something else.
    #[test]
    fn a_program_that_waits_for_a_locked_file_is_seen_so() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let held = std::fs::File::open(file.path()).expect("it is there");
        rustix::fs::flock(&held, rustix::fs::FlockOperation::LockExclusive).expect("locked");
        let mut waits = Command::new("flock").arg(file.path()).arg("true").spawn().expect("flock of util-linux");
        let is_seen = is_seen(&mut Watcher::new(std::process::id()), Sleep::FileLock);
        drop(held);
        waits.wait().expect("it ends");
        assert!(is_seen);
    }
}
