//! Counters of the kernel and of the processor (`perf_event_open`).

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{FromRawFd, OwnedFd, RawFd};

use rustix::process::Pid;

/// A countable event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// Cycles of the processor.
    Cycles,
    /// Instructions of the processor.
    Instructions,
    /// Misses of the last-level cache.
    CacheMisses,
    /// Nanoseconds on a processor; counted by the kernel.
    TaskClock,
    /// Page faults; counted by the kernel.
    PageFaults,
    /// Context switches; counted by the kernel.
    ContextSwitches,
    /// Moves from one processor to another; counted by the kernel.
    Migrations,
    /// A tracepoint, by the number in its file `id`.
    Tracepoint(u64),
}

/// The part of execution that is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Space {
    /// Outside of the kernel only, which needs fewer rights.
    User,
    /// In the kernel, too.
    All,
}

impl Event {
    /// `type` and `config` of the kernel's interface.
    fn numbers(self) -> (u32, u64) {
        const HARDWARE: u32 = 0;
        const SOFTWARE: u32 = 1;
        const TRACEPOINT: u32 = 2;
        match self {
            Event::Cycles => (HARDWARE, 0),
            Event::Instructions => (HARDWARE, 1),
            Event::CacheMisses => (HARDWARE, 3),
            Event::TaskClock => (SOFTWARE, 1),
            Event::PageFaults => (SOFTWARE, 2),
            Event::ContextSwitches => (SOFTWARE, 3),
            Event::Migrations => (SOFTWARE, 4),
            Event::Tracepoint(id) => (TRACEPOINT, id),
        }
    }
}

/// A running counter of the calling thread.
///
/// It includes threads and processes that the thread starts from now on.
///
/// ```
/// use gristmill_os::perf::{Counter, Event, Space};
///
/// // A sandbox may forbid it.
/// if let Ok(counter) = Counter::start(Event::PageFaults, Space::User) {
///     let pages = vec![1_u8; 1 << 20];
///     assert!(counter.count()? <= 1 << 20);
///     # drop(pages);
/// }
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct Counter(File);

/// `struct perf_event_attr`, as its first version had it (64 bytes): the kernel takes what is missing as zero.
#[repr(C)]
#[derive(Default)]
pub(crate) struct Attributes {
    pub(crate) kind: u32,
    pub(crate) size: u32,
    pub(crate) config: u64,
    pub(crate) sample_period: u64,
    pub(crate) sample_type: u64,
    pub(crate) read_format: u64,
    pub(crate) flags: u64,
    pub(crate) wakeup_events: u32,
    pub(crate) breakpoint: u32,
    pub(crate) address: u64,
}

pub(crate) const SIZE: usize = 64;
const _: () = assert!(size_of::<Attributes>() == SIZE);

/// `PERF_TYPE_SOFTWARE`, and two of its events.
pub(crate) const SOFTWARE: u32 = 1;
pub(crate) const TASK_CLOCK: u64 = 1;
pub(crate) const DUMMY: u64 = 9;

/// Bits of `flags`.
pub(crate) const INHERIT: u64 = 1 << 1;
pub(crate) const EXCLUDE_USER: u64 = 1 << 4;
pub(crate) const EXCLUDE_KERNEL: u64 = 1 << 5;
pub(crate) const EXCLUDE_HYPERVISOR: u64 = 1 << 6;
pub(crate) const EXCLUDE_CALLS_OF_USER: u64 = 1 << 22;
/// `PERF_FLAG_FD_CLOEXEC`
const CLOSE_ON_EXEC: libc::c_ulong = 1 << 3;

/// An event of a thread is counted on all processors.
const ANY_PROCESSOR: libc::c_int = -1;

/// Opens an event of a thread (0 for the calling one) on a processor.
pub(crate) fn open(attributes: &Attributes, thread: libc::pid_t, processor: libc::c_int) -> io::Result<OwnedFd> {
    let no_group: libc::c_int = -1;
    let attributes: *const Attributes = attributes;
    // SAFETY: the kernel reads `size` bytes from the pointer, which is as many as there are, and writes nothing.
    let fd =
        unsafe { libc::syscall(libc::SYS_perf_event_open, attributes, thread, processor, no_group, CLOSE_ON_EXEC) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just made this descriptor for us.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as RawFd) })
}

impl Counter {
    /// Starts to count.
    ///
    /// # Errors
    ///
    /// `ENOENT` or `EOPNOTSUPP` where the machine has no such counter (virtual machines seldom have those of the
    /// processor), `EACCES` or `EPERM` where this user may not, `ENOSYS` where the kernel has none.
    pub fn start(event: Event, space: Space) -> io::Result<Counter> {
        Counter::open(event, space, 0)
    }

    /// Starts to count for a thread that another process has just begun with. Threads and processes that it had started
    /// before are left out.
    ///
    /// # Errors
    ///
    /// As [`Counter::start`], and `ESRCH` if there is no such thread.
    pub fn of(thread: Pid, event: Event, space: Space) -> io::Result<Counter> {
        Counter::open(event, space, thread.as_raw_nonzero().get())
    }

    fn open(event: Event, space: Space, thread: libc::pid_t) -> io::Result<Counter> {
        let (kind, config) = event.numbers();
        let flags = match space {
            Space::User => INHERIT | EXCLUDE_KERNEL | EXCLUDE_HYPERVISOR,
            Space::All => INHERIT,
        };
        let attributes = Attributes { kind, size: SIZE as u32, config, flags, ..Attributes::default() };
        Ok(Counter(File::from(open(&attributes, thread, ANY_PROCESSOR)?)))
    }

    /// The count so far. The count of a started process is added when it ends.
    ///
    /// # Errors
    ///
    /// When the kernel gives no number.
    pub fn count(&self) -> io::Result<u64> {
        let mut bytes = [0; 8];
        (&self.0).read_exact(&mut bytes)?;
        Ok(u64::from_ne_bytes(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_of_the_kernel_counts_or_says_why_not() {
        match Counter::start(Event::PageFaults, Space::User) {
            Ok(counter) => {
                let before = counter.count().unwrap();
                let pages = std::hint::black_box(vec![1_u8; 64 << 20]);
                assert!(counter.count().unwrap() > before, "64 MiB took no page fault");
                drop(pages);
            }
            Err(error) => assert!(error.raw_os_error().is_some(), "{error}"),
        }
    }

    #[test]
    fn a_counter_of_another_process_counts_or_says_why_not() {
        let mut child = std::process::Command::new("sh");
        let mut child = child.args(["-c", "i=0; while [ $i -lt 9999 ]; do i=$((i+1)); done"]).spawn().unwrap();
        let counter = Counter::of(Pid::from_child(&child), Event::TaskClock, Space::User);
        assert!(child.wait().unwrap().success());
        match counter {
            Ok(counter) => assert!(counter.count().unwrap() > 0, "it used no time"),
            Err(error) => assert!(error.raw_os_error().is_some(), "{error}"),
        }
    }

    #[test]
    fn an_event_that_there_is_not_is_an_error() {
        assert!(Counter::start(Event::Tracepoint(u64::MAX), Space::All).is_err());
    }
}
