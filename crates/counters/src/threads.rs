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
    /// Classifies a sleep by the letter of the thread's state, the kernel function in which it sleeps (`wchan`), and its
    /// system call, as `/proc/PID/syscall` has it, with the name of the file that it is about.
    ///
    /// The call is asked for only if the function is the one for semaphores of the kernel (the address space has one, but
    /// so has each file and folder), or an unknown one, or if the kernel tells none.
    pub fn of(state: char, function: &str, call: impl FnOnce() -> Option<Call>) -> Sleep {
        let is = |names: &[&str]| names.iter().any(|name| function.contains(name));
        if is(&["futex"]) {
            Sleep::Futex
        } else if is(&["do_wait", "kernel_wait", "wait4"]) {
            Sleep::Child
        } else if is(&["mmap_lock", "vma_start_write", "vma_mark_detached", "vma_enter_locked"]) {
            Sleep::AddressSpace
        } else if is(&["rwsem", "down_read", "down_write"]) {
            call().map_or(Sleep::Other, |call| Sleep::on_semaphore(call.number))
        } else if is(&["pipe_", "unix_stream", "unix_dgram", "sk_wait", "sock", "tcp_", "inet_"]) {
            Sleep::Pipe
        } else if is(&["nanosleep", "hrtimer"]) {
            Sleep::Clock
        } else if is(&["poll", "select"]) {
            Sleep::Events
        } else if is(&["io_schedule", "folio_wait", "jbd2", "blk_", "wait_on_page", "fsync", "bdi_", "balance_dirty"]) {
            Sleep::Disk
        } else {
            match call().map(|call| Sleep::in_call(&call)) {
                // Only disks and locks of the kernel make a thread sleep so deeply.
                None | Some(Sleep::Other) if state == 'D' => Sleep::Disk,
                sleep => sleep.unwrap_or(Sleep::Other),
            }
        }
    }

    /// Classifies a sleep by its system call alone.
    fn in_call(call: &Call) -> Sleep {
        let Call { number, file } = call;
        match *number {
            libc::SYS_futex => Sleep::Futex,
            libc::SYS_wait4 | libc::SYS_waitid => Sleep::Child,
            libc::SYS_nanosleep | libc::SYS_clock_nanosleep => Sleep::Clock,
            number if calls::OF_EVENTS.contains(&number) => Sleep::Events,
            number if calls::OF_MEMORY.contains(&number) => Sleep::AddressSpace,
            number if calls::OF_SOCKETS.contains(&number) => Sleep::Pipe,
            number if calls::OF_DESCRIPTORS.contains(&number) => match file.as_deref() {
                Some(name) if name.starts_with("pipe:") || name.starts_with("socket:") => Sleep::Pipe,
                Some(name) if name.starts_with("/dev/") || name.starts_with("anon_inode:") => Sleep::Other,
                Some(name) if name.starts_with('/') => Sleep::Disk,
                _ => Sleep::Other,
            },
            number if calls::OF_FILES.contains(&number) => Sleep::Disk,
            _ => Sleep::Other,
        }
    }

    /// Classifies a sleep on a semaphore of the kernel.
    fn on_semaphore(call: i64) -> Sleep {
        match call {
            // A page fault.
            -1 => Sleep::AddressSpace,
            call if calls::OF_MEMORY.contains(&call) => Sleep::AddressSpace,
            call if calls::OF_FILES.contains(&call) => Sleep::Disk,
            // Any call may meet a page fault when it copies from or to the program.
            _ => Sleep::Other,
        }
    }
}

/// The system call in which a thread sleeps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// Its number; -1 outside of any, as in a page fault.
    number: i64,
    /// The name of the file that its first argument means, such as `pipe:[4711]`.
    file: Option<String>,
}

impl Call {
    /// Parses `/proc/PID/syscall`: the number, and arguments in hexadecimal digits. `file` finds the name of a descriptor.
    fn of(text: &str, file: impl FnOnce(u64) -> Option<String>) -> Option<Call> {
        let mut words = text.split_ascii_whitespace();
        let number = words.next()?.parse().ok()?;
        let descriptor = words.next().and_then(|word| u64::from_str_radix(word.strip_prefix("0x")?, 16).ok());
        let has_file = calls::OF_DESCRIPTORS.contains(&number);
        Some(Call { number, file: descriptor.filter(|_| has_file).and_then(file) })
    }
}

/// System calls by the object that they wait for.
mod calls {
    /// Calls that wait for several objects.
    pub const OF_EVENTS: &[i64] = &[
        libc::SYS_ppoll,
        libc::SYS_pselect6,
        libc::SYS_epoll_pwait,
        libc::SYS_epoll_pwait2,
        #[cfg(target_arch = "x86_64")]
        libc::SYS_poll,
        #[cfg(target_arch = "x86_64")]
        libc::SYS_select,
        #[cfg(target_arch = "x86_64")]
        libc::SYS_epoll_wait,
    ];

    /// Calls that wait for another socket.
    pub const OF_SOCKETS: &[i64] = &[
        libc::SYS_accept,
        libc::SYS_accept4,
        libc::SYS_connect,
        libc::SYS_recvfrom,
        libc::SYS_recvmsg,
        libc::SYS_sendto,
        libc::SYS_sendmsg,
    ];

    /// Calls whose first argument is a file, a pipe or a socket.
    pub const OF_DESCRIPTORS: &[i64] =
        &[libc::SYS_read, libc::SYS_readv, libc::SYS_write, libc::SYS_writev, libc::SYS_splice, libc::SYS_sendfile];

    /// Calls that change the address space.
    pub const OF_MEMORY: &[i64] = &[
        libc::SYS_mmap,
        libc::SYS_munmap,
        libc::SYS_mremap,
        libc::SYS_mprotect,
        libc::SYS_madvise,
        libc::SYS_brk,
        libc::SYS_mlock,
        libc::SYS_munlock,
    ];

    /// Calls that change, find or write files.
    pub const OF_FILES: &[i64] = &[
        libc::SYS_openat,
        libc::SYS_openat2,
        libc::SYS_unlinkat,
        libc::SYS_mkdirat,
        libc::SYS_renameat2,
        libc::SYS_linkat,
        libc::SYS_symlinkat,
        libc::SYS_statx,
        libc::SYS_getdents64,
        libc::SYS_ftruncate,
        libc::SYS_fallocate,
        libc::SYS_fsync,
        libc::SYS_fdatasync,
        libc::SYS_write,
        libc::SYS_pwrite64,
        libc::SYS_writev,
        // Newer machines have only the calls above.
        #[cfg(target_arch = "x86_64")]
        libc::SYS_open,
        #[cfg(target_arch = "x86_64")]
        libc::SYS_creat,
        #[cfg(target_arch = "x86_64")]
        libc::SYS_unlink,
        #[cfg(target_arch = "x86_64")]
        libc::SYS_mkdir,
        #[cfg(target_arch = "x86_64")]
        libc::SYS_rmdir,
        #[cfg(target_arch = "x86_64")]
        libc::SYS_rename,
        #[cfg(target_arch = "x86_64")]
        libc::SYS_stat,
    ];
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

/// The seconds of threads.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spent {
    /// On processors.
    pub on_processor: f64,
    /// Runnable, but without a processor.
    pub waited: f64,
    /// The share of all time on processors that the thread with the most of it had; 0 if that is unknown.
    pub busiest: f64,
}

/// Repeatedly examines the threads of all descendants of a process.
#[derive(Debug)]
pub struct Watcher {
    root: u32,
    /// For each thread, the nanoseconds on a processor and waiting for one, when it was last seen.
    seen: HashMap<(u32, u32), (u64, u64)>,
    /// For each thread, the ticks on a processor, when it was last seen: all that kernels without the above tell.
    ticks: HashMap<(u32, u32), u64>,
}

impl Watcher {
    /// Watches the descendants of `root`.
    pub fn new(root: u32) -> Watcher {
        Watcher { root, seen: HashMap::new(), ticks: HashMap::new() }
    }

    /// Examines the threads once. A thread that ends in the meantime may be missed.
    pub fn look(&mut self) -> Glance {
        let mut glance = Glance::default();
        for process in descendants(self.root) {
            for thread in numbers(&format!("/proc/{process}/task")) {
                let read = |name: &str| here(&format!("/proc/{process}/task/{thread}/{name}"));
                let Some(stat) = read("stat").and_then(|text| Stat::of(&text)) else { continue };
                self.ticks.insert((process, thread), stat.ticks);
                match stat.state {
                    'R' => glance.runnable += 1,
                    'S' | 'D' | 'I' => {
                        let file = |descriptor| {
                            let link = std::fs::read_link(format!("/proc/{process}/fd/{descriptor}")).ok()?;
                            Some(link.to_string_lossy().into_owned())
                        };
                        let call = || Call::of(&read("syscall")?, file);
                        let sleep = Sleep::of(stat.state, &read("wchan").unwrap_or_default(), call);
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
        }
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
            ('D', "__lock_mm_and_find_vma_mmap_lock", Sleep::AddressSpace),
            ('D', "rwsem_down_write_slowpath", Sleep::Other),
            ('D', "folio_wait_bit_common", Sleep::Disk),
            ('D', "0", Sleep::Disk),
            ('S', "jbd2_log_wait_commit", Sleep::Disk),
            ('S', "0", Sleep::Other),
            ('S', "", Sleep::Other),
        ] {
            assert_eq!(Sleep::of(state, function, || None), sleep, "{state} {function}");
        }
        assert_eq!(times("5 6 7\n"), Some((5, 6)));
        assert_eq!((times("5"), times("x 6 7"), times("")), (None, None, None));
    }

    /// Threads that made files in the same folder were once said to wait for the lock of the address space.
    #[test]
    fn the_system_call_tells_for_which_semaphore_a_thread_sleeps() {
        let of = |call: &str| Sleep::of('D', "rwsem_down_write_slowpath", || Call::of(call, |_| None));
        let numbered = |call: i64| of(&format!("{call} 0x7f0 0x1000 0x7ffe 0x4010\n"));
        assert_eq!(numbered(libc::SYS_munmap), Sleep::AddressSpace);
        assert_eq!(of("-1 0x7ffe 0x4010\n"), Sleep::AddressSpace);
        assert_eq!(numbered(libc::SYS_openat), Sleep::Disk);
        assert_eq!(numbered(libc::SYS_unlinkat), Sleep::Disk);
        assert_eq!(numbered(libc::SYS_read), Sleep::Other);
        assert_eq!((of("running\n"), of("")), (Sleep::Other, Sleep::Other));
    }

    /// Kernels that tell no function left every sleep unexplained.
    #[test]
    fn without_a_function_the_system_call_tells_why_a_thread_sleeps() {
        let of = |state, call: i64, file: &str| {
            let named = |descriptor| (descriptor == 0x1f).then(|| file.to_owned());
            Sleep::of(state, "0", || Call::of(&format!("{call} 0x1f 0x1000 0x7ffe\n"), named))
        };
        for (state, call, file, sleep) in [
            ('S', libc::SYS_futex, "", Sleep::Futex),
            ('S', libc::SYS_wait4, "", Sleep::Child),
            ('S', libc::SYS_read, "pipe:[4711]", Sleep::Pipe),
            ('S', libc::SYS_write, "socket:[4711]", Sleep::Pipe),
            ('S', libc::SYS_read, "/home/file", Sleep::Disk),
            ('S', libc::SYS_read, "/dev/pts/1", Sleep::Other),
            ('S', libc::SYS_clock_nanosleep, "", Sleep::Clock),
            ('S', libc::SYS_epoll_pwait, "", Sleep::Events),
            ('S', libc::SYS_recvfrom, "", Sleep::Pipe),
            ('D', libc::SYS_munmap, "", Sleep::AddressSpace),
            ('D', libc::SYS_fdatasync, "", Sleep::Disk),
            ('D', libc::SYS_getpid, "", Sleep::Disk),
            ('S', libc::SYS_getpid, "", Sleep::Other),
        ] {
            assert_eq!(of(state, call, file), sleep, "{state} {call} {file}");
        }
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
        assert!(spent.on_processor > 0.0 && spent.waited >= 0.0 && (0.4..=1.0).contains(&spent.busiest), "{spent:?}");
        // Where the kernel does not count so finely, ticks tell the share.
        watcher.seen.clear();
        watcher.ticks = HashMap::from([((1, 1), 30), ((1, 2), 10)]);
        assert_eq!(watcher.spent(), Spent { on_processor: 0.0, waited: 0.0, busiest: 0.75 });
    }
}
