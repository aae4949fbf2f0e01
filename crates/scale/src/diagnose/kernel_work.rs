//! The work of the kernel for a program, told by the functions in which samples find it.

use std::fmt;

/// The object of the kernel's work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum KernelWork {
    /// Page faults.
    PageFaults,
    /// Calls that change the address space.
    AddressSpace,
    /// Interrupts of other processors, which must forget addresses of memory that was given back.
    Shootdowns,
    /// Calls of locks, barriers and conditions that sleep or wake others.
    Futex,
    /// Files, folders and disks.
    Files,
    /// Pipes and sockets.
    Pipes,
    /// Threads and processes that begin and end.
    Processes,
    /// Sleeping for a time, waiting for events, and giving the processor away.
    Scheduling,
    /// Anything else.
    Other,
}

impl KernelWork {
    /// All kinds of work, in the order of their definition and of `Seen::kernel`.
    pub const ALL: [KernelWork; 9] = [
        KernelWork::PageFaults,
        KernelWork::AddressSpace,
        KernelWork::Shootdowns,
        KernelWork::Futex,
        KernelWork::Files,
        KernelWork::Pipes,
        KernelWork::Processes,
        KernelWork::Scheduling,
        KernelWork::Other,
    ];

    /// Tells the work by a chain of functions that have called each other, the innermost first.
    pub fn of(chain: &[&str]) -> KernelWork {
        let within = |names: &[&str]| chain.iter().any(|function| names.iter().any(|name| function.contains(name)));
        if within(&["flush_tlb", "smp_call_function"]) {
            return KernelWork::Shootdowns;
        }
        if within(&["page_fault"]) {
            return KernelWork::PageFaults;
        }
        let Some(call) = chain.iter().rev().find_map(|function| system_call(function)) else {
            return KernelWork::Other;
        };
        match call {
            "mmap" | "munmap" | "mremap" | "mprotect" | "madvise" | "brk" | "mmap_pgoff" | "mlock" | "munlock" => {
                KernelWork::AddressSpace
            }
            "read" | "write" | "readv" | "writev" | "splice" | "tee" | "sendfile" | "sendfile64" | "close" => {
                if within(&["pipe_", "sock_", "unix_", "tcp_"]) { KernelWork::Pipes } else { KernelWork::Files }
            }
            "accept" | "accept4" | "connect" | "socket" | "sendto" | "sendmsg" | "recvfrom" | "recvmsg" | "pipe2" => {
                KernelWork::Pipes
            }
            "clone" | "clone3" | "fork" | "vfork" | "execve" | "exit" | "exit_group" | "wait4" | "waitid" => {
                KernelWork::Processes
            }
            "sched_yield" | "nanosleep" | "clock_nanosleep" | "poll" | "ppoll" | "select" | "pselect6" => {
                KernelWork::Scheduling
            }
            call if call.starts_with("futex") => KernelWork::Futex,
            call if call.starts_with("epoll") => KernelWork::Scheduling,
            call if OF_FILES.iter().any(|name| call.contains(name)) => KernelWork::Files,
            _ => KernelWork::Other,
        }
    }
}

/// Parts of the names of calls that find, change or write files.
const OF_FILES: [&str; 20] = [
    "open",
    "creat",
    "unlink",
    "rename",
    "mkdir",
    "rmdir",
    "link",
    "stat",
    "getdents",
    "truncate",
    "fallocate",
    "sync",
    "access",
    "pread",
    "pwrite",
    "copy_file",
    "lseek",
    "fadvise",
    "mknod",
    "chmod",
];

/// Returns the name of the system call that a function serves.
fn system_call(function: &str) -> Option<&str> {
    let prefixes = [
        "__x64_sys_",
        "__arm64_sys_",
        "__riscv_sys_",
        "__s390x_sys_",
        "__ia32_sys_",
        "__se_sys_",
        "__do_sys_",
        "ksys_",
    ];
    let call = prefixes.iter().find_map(|prefix| function.strip_prefix(prefix))?;
    // Compilers make copies of functions, such as `read.isra.0`.
    Some(call.split('.').next().unwrap_or(call))
}

impl fmt::Display for KernelWork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            KernelWork::PageFaults => "page faults",
            KernelWork::AddressSpace => "changes of the address space (mmap, munmap)",
            KernelWork::Shootdowns => {
                "interrupts of other processors, which must forget unmapped memory (TLB shoot-downs)"
            }
            KernelWork::Futex => "locks that put threads to sleep and wake them (futex)",
            KernelWork::Files => "files and folders",
            KernelWork::Pipes => "pipes and sockets",
            KernelWork::Processes => "threads and processes that begin and end",
            KernelWork::Scheduling => "timers, events and yielding",
            KernelWork::Other => "something else",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chain_of_calls_tells_what_the_kernel_does() {
        for (chain, work) in [
            ("do_anonymous_page handle_mm_fault exc_page_fault asm_exc_page_fault", KernelWork::PageFaults),
            ("down_write __vm_munmap __x64_sys_munmap do_syscall_64", KernelWork::AddressSpace),
            ("smp_call_function_many_cond flush_tlb_mm_range __x64_sys_munmap", KernelWork::Shootdowns),
            ("try_to_wake_up futex_wake do_futex __x64_sys_futex do_syscall_64", KernelWork::Futex),
            ("rwsem_spin_on_owner path_openat __x64_sys_openat do_syscall_64", KernelWork::Files),
            ("ext4_da_write_end vfs_write ksys_write do_syscall_64", KernelWork::Files),
            ("pipe_write vfs_write ksys_write do_syscall_64", KernelWork::Pipes),
            ("unix_stream_sendmsg __sys_sendto __x64_sys_sendto", KernelWork::Pipes),
            ("copy_process kernel_clone __do_sys_clone3 do_syscall_64", KernelWork::Processes),
            ("do_sched_yield __x64_sys_sched_yield do_syscall_64", KernelWork::Scheduling),
            // A page fault while a call copies from the program.
            ("handle_mm_fault exc_page_fault copy_page_from_iter vfs_write ksys_write", KernelWork::PageFaults),
            ("ksys_read.isra.0 do_syscall_64", KernelWork::Files),
            ("do_syscall_64 entry_SYSCALL_64_after_hwframe", KernelWork::Other),
            ("", KernelWork::Other),
        ] {
            let functions: Vec<&str> = chain.split_ascii_whitespace().collect();
            assert_eq!(KernelWork::of(&functions), work, "{chain}");
        }
    }
}
