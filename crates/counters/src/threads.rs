//! The threads of a program at one moment: running, or asleep for some reason.

use std::collections::HashMap;

use crate::files::here;
use crate::tree::{Stat, descendants, numbers};

/// A thread that is asleep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sleep {
    /// On a futex: a lock, a barrier, a condition.
    Futex,
    /// For the lock of the address space.
    AddressSpace,
    /// For a pipe or a socket.
    Pipe,
    /// For a disk or a file system.
    Disk,
    /// For the clock.
    Clock,
    /// In poll, epoll or select.
    Events,
    /// For a process that it has started.
    Child,
    /// For something else.
    Other,
}

impl Sleep {
    /// Classifies a sleep by the letter of the thread's state and the kernel function in which it sleeps (`wchan`).
    pub fn of(state: char, function: &str) -> Sleep {
        let is = |names: &[&str]| names.iter().any(|name| function.contains(name));
        if is(&["futex"]) {
            Sleep::Futex
        } else if is(&["do_wait", "kernel_wait", "wait4"]) {
            Sleep::Child
        } else if is(&["rwsem", "mmap_lock", "down_read", "down_write"]) {
            Sleep::AddressSpace
        } else if is(&["pipe_", "unix_stream", "unix_dgram", "sk_wait", "sock", "tcp_", "inet_"]) {
            Sleep::Pipe
        } else if is(&["nanosleep", "hrtimer"]) {
            Sleep::Clock
        } else if is(&["poll", "select"]) {
            Sleep::Events
        } else if state == 'D'
            || is(&["io_schedule", "folio_wait", "jbd2", "blk_", "wait_on_page", "fsync", "bdi_", "balance_dirty"])
        {
            Sleep::Disk
        } else {
            Sleep::Other
        }
    }
}

/// The threads at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Glance {
    /// The number of threads on a processor or waiting for one.
    pub runnable: u64,
    /// The sleeping threads.
    pub asleep: Vec<Sleep>,
    /// The number of threads asleep on a futex that are the first of their processes; they may be waiting for the
    /// other threads.
    pub first_on_futex: u64,
}

/// Repeatedly examines the threads of all descendants of a process.
#[derive(Debug)]
pub struct Watcher {
    root: u32,
    /// For each thread, the nanoseconds on a processor and waiting for one, when it was last seen.
    seen: HashMap<(u32, u32), (u64, u64)>,
}

impl Watcher {
    /// Watches the descendants of `root`.
    pub fn new(root: u32) -> Watcher {
        Watcher { root, seen: HashMap::new() }
    }

    /// Examines the threads once. A thread that ends in the meantime may be missed.
    pub fn look(&mut self) -> Glance {
        let mut glance = Glance::default();
        for process in descendants(self.root) {
            for thread in numbers(&format!("/proc/{process}/task")) {
                let read = |name: &str| here(&format!("/proc/{process}/task/{thread}/{name}"));
                let Some(stat) = read("stat").and_then(|text| Stat::of(&text)) else { continue };
                match stat.state {
                    'R' => glance.runnable += 1,
                    'S' | 'D' | 'I' => {
                        let sleep = Sleep::of(stat.state, &read("wchan").unwrap_or_default());
                        glance.first_on_futex += u64::from(sleep == Sleep::Futex && thread == process);
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
        glance
    }

    /// Returns the seconds on processors and the seconds waiting for one, of all threads seen; both 0 if the kernel
    /// does not count.
    pub fn times(&self) -> (f64, f64) {
        let sum = self.seen.values().fold((0, 0), |(on, waited), times| (on + times.0, waited + times.1));
        (sum.0 as f64 / 1e9, sum.1 as f64 / 1e9)
    }
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
    use std::time::{Duration, Instant};

    #[test]
    fn kernel_functions_tell_why_a_thread_sleeps() {
        for (state, function, sleep) in [
            ('S', "futex_wait_queue", Sleep::Futex),
            ('S', "futex_do_wait", Sleep::Futex),
            ('S', "do_wait", Sleep::Child),
            ('S', "anon_pipe_read", Sleep::Pipe),
            ('S', "pipe_write", Sleep::Pipe),
            ('S', "unix_stream_read_generic", Sleep::Pipe),
            ('S', "hrtimer_nanosleep", Sleep::Clock),
            ('S', "ep_poll", Sleep::Events),
            ('S', "do_sys_poll", Sleep::Events),
            ('D', "rwsem_down_write_slowpath", Sleep::AddressSpace),
            ('D', "folio_wait_bit_common", Sleep::Disk),
            ('D', "0", Sleep::Disk),
            ('S', "jbd2_log_wait_commit", Sleep::Disk),
            ('S', "0", Sleep::Other),
            ('S', "", Sleep::Other),
        ] {
            assert_eq!(Sleep::of(state, function), sleep, "{state} {function}");
        }
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
        let (on, waited) = watcher.times();
        assert!(on >= 0.0 && waited >= 0.0);
    }
}
