//! Why a thread sleeps: the kernel's function, and the system call with its arguments.

use std::fmt;

/// The reason for which a thread sleeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Sleep {
    /// On a futex, for a lock that another thread holds.
    Lock,
    /// On a futex, until another thread gives a signal: a condition, a barrier, a semaphore, a queue.
    Signal,
    /// On a futex, for one or the other.
    Futex,
    /// For the lock of the address space.
    AddressSpace,
    /// For a lock on a file (`flock`, `fcntl`), or for the clock before another try to get one.
    FileLock,
    /// For the clock before another try to get sqlite's lock on a database.
    Database,
    /// For a System V semaphore.
    Semaphore,
    /// For a message of a queue, or a count of an `eventfd`.
    Message,
    /// For a pipe or a socket.
    Pipe,
    /// For a disk or a file system.
    Disk,
    /// For the clock.
    Clock,
    /// In poll, epoll or select.
    Events,
    /// For a process that it has started, or for any signal, as a shell waits for such a process.
    Child,
    /// For something else.
    Other,
}

impl Sleep {
    /// Classifies a sleep by the letter of the thread's state, the kernel function in which it sleeps (`wchan`), and
    /// its system call.
    ///
    /// The function tells most. The call tells the rest: the operation on a futex, the object of the kernel's
    /// semaphores (the address space has one, but so has each file and folder), and all if the kernel tells no
    /// function.
    pub fn of(state: char, function: &str, call: Option<&Call>) -> Sleep {
        let is = |names: &[&str]| names.iter().any(|name| function.contains(name));
        if is(&["futex"]) {
            call.map_or(Sleep::Futex, Call::on_futex)
        } else if is(&["do_wait", "kernel_wait", "wait4", "sigsuspend"]) && !is(&["do_wait_intr"]) {
            Sleep::Child
        } else if is(&["mmap_lock", "vma_start_write", "vma_mark_detached", "vma_enter_locked"]) {
            Sleep::AddressSpace
        } else if is(&["rwsem", "down_read", "down_write"]) {
            call.map_or(Sleep::Other, |call| Sleep::on_semaphore(call.number))
        } else if is(&["locks_lock_inode", "posix_lock", "flock", "fcntl_setlk"]) {
            Sleep::FileLock
        } else if is(&["semtimedop"]) {
            Sleep::Semaphore
        } else if is(&["do_msgrcv", "do_msgsnd", "wq_sleep"]) {
            Sleep::Message
        } else if is(&["pipe_", "unix_stream", "unix_dgram", "sk_wait", "sock", "tcp_", "inet_"]) {
            Sleep::Pipe
        } else if is(&["nanosleep", "hrtimer"]) {
            Sleep::Clock
        } else if is(&["poll", "select"]) {
            Sleep::Events
        } else if is(&["io_schedule", "folio_wait", "jbd2", "blk_", "wait_on_page", "fsync", "bdi_", "balance_dirty"]) {
            Sleep::Disk
        } else {
            match call.map(Sleep::in_call) {
                // Only disks and locks of the kernel make a thread sleep so deeply.
                None | Some(Sleep::Other) if state == 'D' => Sleep::Disk,
                sleep => sleep.unwrap_or(Sleep::Other),
            }
        }
    }

    /// Returns true for any sleep on a futex.
    pub fn is_on_futex(self) -> bool {
        matches!(self, Sleep::Lock | Sleep::Signal | Sleep::Futex)
    }

    /// Classifies a sleep by its system call alone.
    fn in_call(call: &Call) -> Sleep {
        match call.number {
            number if calls::OF_FUTEX.contains(&number) => call.on_futex(),
            libc::SYS_wait4 | libc::SYS_waitid | libc::SYS_rt_sigsuspend => Sleep::Child,
            libc::SYS_nanosleep | libc::SYS_clock_nanosleep => Sleep::Clock,
            libc::SYS_flock => Sleep::FileLock,
            libc::SYS_fcntl if calls::FCNTL_WAITS.contains(&call.arguments[1]) => Sleep::FileLock,
            libc::SYS_semop | libc::SYS_semtimedop => Sleep::Semaphore,
            number if calls::OF_QUEUES.contains(&number) => Sleep::Message,
            number if calls::OF_EVENTS.contains(&number) => Sleep::Events,
            number if calls::OF_MEMORY.contains(&number) => Sleep::AddressSpace,
            number if calls::OF_SOCKETS.contains(&number) => Sleep::Pipe,
            number if calls::OF_DESCRIPTORS.contains(&number) => match call.file.as_deref() {
                Some(name) if name.starts_with("pipe:") || name.starts_with("socket:") => Sleep::Pipe,
                Some(name) if name.starts_with("anon_inode:[eventfd") => Sleep::Message,
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

impl fmt::Display for Sleep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Sleep::Lock => "a lock (futex)",
            Sleep::Signal => "a condition, a queue or a barrier (futex)",
            Sleep::Futex => "a lock, a queue or a barrier (futex)",
            Sleep::AddressSpace => "the lock of the address space",
            Sleep::FileLock => "a lock on a file (flock, fcntl)",
            Sleep::Database => "sqlite's lock on a database",
            Sleep::Semaphore => "a System V semaphore",
            Sleep::Message => "a message queue or an eventfd",
            Sleep::Pipe => "a pipe or socket",
            Sleep::Disk => "a disk or file system",
            Sleep::Clock => "the clock (sleep)",
            Sleep::Events => "events (poll)",
            Sleep::Child => "a child process",
            Sleep::Other => "something else",
        })
    }
}

/// The system call in which a thread sleeps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// Its number; -1 outside of any, as in a page fault.
    number: i64,
    /// Its arguments.
    arguments: [u64; 6],
    /// The thread's stack pointer; 0 if the kernel does not tell it.
    stack: u64,
    /// The name of the file that its first argument means, such as `pipe:[4711]`.
    file: Option<String>,
}

impl Call {
    /// Parses `/proc/PID/syscall`: the number, six arguments and the stack pointer, these in hexadecimal digits. `file`
    /// finds the name of a descriptor.
    pub fn of(text: &str, file: impl FnOnce(u64) -> Option<String>) -> Option<Call> {
        let mut words = text.split_ascii_whitespace();
        let number = words.next()?.parse().ok()?;
        let mut next = || words.next().and_then(|word| u64::from_str_radix(word.strip_prefix("0x")?, 16).ok());
        let descriptor = next();
        let has_file = calls::OF_DESCRIPTORS.contains(&number);
        let file = descriptor.filter(|_| has_file).and_then(file);
        let mut arguments = [descriptor.unwrap_or(0); 6];
        arguments[1..].fill_with(|| next().unwrap_or(0));
        Some(Call { number, arguments, stack: next().unwrap_or(0), file })
    }

    /// Tells for what a thread sleeps on a futex, by the operation and the value that it expects in the futex.
    ///
    /// | waits for | operation | value |
    /// |---|---|---|
    /// | a mutex of glibc, Rust or Go's runtime | any wait | 2 |
    /// | a read-write lock of glibc | a wait with the clock of the day | 2, 3 |
    /// | a mutex of musl or OpenMP (libgomp) | a plain wait | with the highest bit |
    /// | a semaphore or a read-write lock of musl | a plain wait | -1, in 64 bits |
    /// | a mutex with inheritance of priorities | `FUTEX_LOCK_PI` | |
    /// | a thread of Go's runtime that has nothing to run, for whatever reason | a plain wait | 0 |
    /// | a condition of musl | a plain wait on the thread's own stack | 2 |
    /// | a condition, a semaphore, a barrier, a parked thread | any wait | others |
    ///
    /// The locks of Java and Python are made of conditions and semaphores, so they count as those.
    fn on_futex(&self) -> Sleep {
        /// The words above the stack pointer that belong to the functions in which the thread waits.
        const OWN_STACK: u64 = 1 << 16;
        const CLOCK_OF_DAY: u64 = 256;
        let [word, second, third, ..] = self.arguments;
        let (operation, value) = match self.number {
            libc::SYS_futex => (second, third as u32),
            // Since Linux 6.7 waits have a call of their own, which takes the value first.
            calls::FUTEX_WAIT => (9, second as u32),
            _ => return Sleep::Futex,
        };
        let is_own = self.stack != 0 && (self.stack..self.stack + OWN_STACK).contains(&word);
        match (operation & 0x7f, value) {
            (6 | 13, _) => Sleep::Lock,
            (0 | 9, _) if is_own => Sleep::Signal,
            (0 | 9, 2) => Sleep::Lock,
            (9, 3) if operation & CLOCK_OF_DAY != 0 => Sleep::Lock,
            (0, 0) => Sleep::Futex,
            (0, _) if third == u64::MAX => Sleep::Futex,
            (0, 0x8000_0000..) => Sleep::Lock,
            _ => Sleep::Signal,
        }
    }

    /// Returns true if the thread waits for the end of one of these, as in `pthread_join`: a wait on a futex that
    /// processes may share, until it no longer holds the thread's number.
    pub fn joins(&self, threads: &[u32]) -> bool {
        const PRIVATE: u64 = 128;
        let [_, operation, value, ..] = self.arguments;
        self.number == libc::SYS_futex
            && matches!(operation & 0x7f, 0 | 9)
            && operation & PRIVATE == 0
            && threads.contains(&(value as u32))
    }
}

/// System calls by the object that they wait for.
mod calls {
    /// The call that waits on a futex, of Linux 6.7.
    pub const FUTEX_WAIT: i64 = 455;

    /// Calls that wait on a futex, or on several.
    pub const OF_FUTEX: &[i64] = &[libc::SYS_futex, libc::SYS_futex_waitv, FUTEX_WAIT];

    /// Commands of `fcntl` that wait for a lock: of a process, or of an open file.
    pub const FCNTL_WAITS: &[u64] = &[libc::F_SETLKW as u64, libc::F_OFD_SETLKW as u64];

    /// Calls that wait for a message of a queue, or for room in it.
    pub const OF_QUEUES: &[i64] =
        &[libc::SYS_msgrcv, libc::SYS_msgsnd, libc::SYS_mq_timedreceive, libc::SYS_mq_timedsend];

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

#[cfg(test)]
mod tests {
    use super::*;

    /// Programs, the call in which their threads were found asleep, and for what they slept.
    const RECORDED: &[(&str, &str, Sleep)] = &[
        ("a mutex of glibc", "202 0x55ce5ca75280 0x80 0x2 0x0 0x0 0x0 0x7f0 0x7f1", Sleep::Lock),
        ("a mutex of glibc with inheritance", "202 0x555b4d237240 0x86 0x0 0x0 0x0 0x0", Sleep::Lock),
        ("a read-write lock of glibc", "202 0x55c62aed81cc 0x189 0x3 0x0 0x0 0xffffffff", Sleep::Lock),
        ("a condition of glibc", "202 0x5601323f2228 0x189 0x0 0x0 0x0 0xffffffff", Sleep::Signal),
        ("the same, for a time at most", "202 0x56251896d228 0x189 0x0 0x0 0x7f1d1e8b2e80 0xffffffff", Sleep::Signal),
        ("a semaphore of glibc", "202 0x55d4940251a0 0x189 0x0 0x0 0x0 0xffffffff", Sleep::Signal),
        ("a barrier of glibc", "202 0x564800517184 0x80 0x1b 0x0 0x564800517180 0x1c", Sleep::Signal),
        ("a mutex of Rust", "202 0x7ffdb912da24 0x89 0x2 0x0 0x0 0x7fccffffffff", Sleep::Lock),
        ("a condition of Rust", "202 0x7ffcbc721484 0x89 0x85 0x0 0x0 0x7ff6ffffffff", Sleep::Signal),
        ("a receiver of a channel of Rust", "202 0x562b62f630c8 0x89 0xffffffff 0x0 0x0 0x562bffffffff", Sleep::Signal),
        ("a mutex or a channel of Go", "202 0x5b198633160 0x80 0x0 0x0 0x0 0x0", Sleep::Futex),
        ("a critical section of OpenMP", "202 0x7f87f8492648 0x80 0xffffffff 0x0 0xffffffff 0xca", Sleep::Lock),
        ("a loop of OpenMP", "202 0x55efa1622304 0x80 0x150 0x0 0xca 0x0", Sleep::Signal),
        (
            "the lock of Python's interpreter",
            "202 0x7f3efcf4e6f4 0x89 0x0 0x7f3efb1f8ae0 0x0 0xffffffff",
            Sleep::Signal,
        ),
        ("a mutex of musl", "202 0x55fc3db2c284 0x80 0xffffffff80000010 0x0 0x0 0x0 0x7f4276a37960 0x7f0", Sleep::Lock),
        ("a condition of musl", "202 0x7fb0e0e9ba14 0x80 0x2 0x0 0x0 0x0 0x7fb0e0e9b928 0x7f0", Sleep::Signal),
        ("a barrier of musl", "202 0x7f5a69a6fa2c 0x80 0x1 0x0 0x1 0x80 0x7f5a69a6fa20 0x7f0", Sleep::Signal),
        (
            "a semaphore of musl",
            "202 0x55f215df01a0 0x80 0xffffffffffffffff 0x0 0x0 0x0 0x7ff8eb8a2978 0x7f0",
            Sleep::Futex,
        ),
    ];
    #[test]
    fn kernel_functions_tell_why_a_thread_sleeps() {
        for (state, function, sleep) in [
            ('S', "futex_wait_queue", Sleep::Futex),
            ('S', "futex_do_wait", Sleep::Futex),
            ('S', "locks_lock_inode_wait", Sleep::FileLock),
            ('S', "fcntl_setlk", Sleep::FileLock),
            ('S', "__do_semtimedop", Sleep::Semaphore),
            ('S', "do_msgrcv", Sleep::Message),
            ('S', "wq_sleep.constprop.0", Sleep::Message),
            ('S', "do_wait", Sleep::Child),
            ('S', "sigsuspend.isra.0", Sleep::Child),
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
            assert_eq!(Sleep::of(state, function, None), sleep, "{state} {function}");
        }
    }

    /// Threads that made files in the same folder were once said to wait for the lock of the address space.
    #[test]
    fn the_system_call_tells_for_which_semaphore_a_thread_sleeps() {
        let asleep_in = |call: &str| Sleep::of('D', "rwsem_down_write_slowpath", Call::of(call, |_| None).as_ref());
        let numbered = |call: i64| asleep_in(&format!("{call} 0x7f0 0x1000 0x7ffe 0x4010\n"));
        assert_eq!(numbered(libc::SYS_munmap), Sleep::AddressSpace);
        assert_eq!(asleep_in("-1 0x7ffe 0x4010\n"), Sleep::AddressSpace);
        assert_eq!(numbered(libc::SYS_openat), Sleep::Disk);
        assert_eq!(numbered(libc::SYS_unlinkat), Sleep::Disk);
        assert_eq!(numbered(libc::SYS_read), Sleep::Other);
        assert_eq!((asleep_in("running\n"), asleep_in("")), (Sleep::Other, Sleep::Other));
    }

    /// Kernels that tell no function left every sleep unexplained.
    #[test]
    fn without_a_function_the_system_call_tells_why_a_thread_sleeps() {
        let asleep_in = |state, call: i64, file: &str| {
            let named = |descriptor| (descriptor == 0x1f).then(|| file.to_owned());
            Sleep::of(state, "0", Call::of(&format!("{call} 0x1f 0x7 0x2\n"), named).as_ref())
        };
        for (state, call, file, sleep) in [
            ('S', libc::SYS_flock, "", Sleep::FileLock),
            ('S', libc::SYS_fcntl, "", Sleep::FileLock),
            ('S', libc::SYS_semtimedop, "", Sleep::Semaphore),
            ('S', libc::SYS_msgrcv, "", Sleep::Message),
            ('S', libc::SYS_read, "anon_inode:[eventfd]", Sleep::Message),
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
            assert_eq!(asleep_in(state, call, file), sleep, "{state} {call} {file}");
        }
    }

    /// Workers that waited for a slow producer were said to fight for a lock. Recorded of C with glibc 2.36
    /// and musl 1.2, of Rust 1.95, Go 1.26, Python 3.11 and libgomp 12.
    #[test]
    fn the_operation_on_a_futex_tells_a_lock_from_a_queue() {
        for (program, call, sleep) in RECORDED {
            let call = Call::of(call, |_| None);
            assert_eq!(Sleep::of('S', "futex_do_wait", call.as_ref()), *sleep, "{program}");
            assert_eq!(Sleep::of('S', "0", call.as_ref()), *sleep, "{program}, where the kernel tells no function");
        }
        assert_eq!(Sleep::of('S', "futex_do_wait", Call::of("running", |_| None).as_ref()), Sleep::Futex);
    }

    /// The first thread of a program was taken for a worker that waits.
    #[test]
    fn a_thread_that_waits_for_the_end_of_another_is_told_from_one_that_waits_for_work() {
        let joins = |text: &str, threads: &[u32]| Call::of(text, |_| None).expect("a call").joins(threads);
        let join = "202 0x7fb14438e990 0x109 0x37b1 0x0 0x0 0xffffffff 0x7ffd5d3b2238 0x7f3aca3c42ad";
        assert!(joins(join, &[0x37b0, 0x37b1]) && !joins(join, &[0x37b0]));
        assert!(!joins(&join.replace("0x109", "0x189"), &[0x37b1]));
    }

    /// A worker that read an `eventfd` was taken for a process that waits for its children: the kernel's function is
    /// named alike.
    #[test]
    fn an_eventfd_is_no_child() {
        let call = Call::of("0 0x3 0x7f0e1ffaee80 0x8\n", |_| Some("anon_inode:[eventfd]".to_owned()));
        assert_eq!(Sleep::of('S', "do_wait_intr_irq", call.as_ref()), Sleep::Message);
    }
}
