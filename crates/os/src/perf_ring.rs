//! A ring of records that the kernel writes about the programs on a processor (`perf_event_open`).

use std::io;
use std::mem::size_of;
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use crate::machine::os_page_bytes;
use crate::perf::{Attributes, DUMMY, EXCLUDE_HYPERVISOR, EXCLUDE_KERNEL, INHERIT, SIZE, SOFTWARE, TASK_CLOCK, open};

/// The places of the head and the tail in a ring's first page (`struct perf_event_mmap_page`).
const HEAD: usize = 1024;
const TAIL: usize = 1032;
/// `PERF_RECORD_SAMPLE`
const RECORD_SAMPLE: u32 = 9;
/// `PERF_EVENT_IOC_SET_OUTPUT`
const SET_OUTPUT: libc::Ioctl = 0x2405;
/// Every record begins with a word for its kind and its size.
const WORD: usize = size_of::<u64>();

/// A ring of records.
#[derive(Debug)]
pub(crate) struct Ring {
    processor: libc::c_int,
    /// The fields of a sample.
    sample_type: u64,
    /// An event that counts nothing, to which the ring belongs.
    event: OwnedFd,
    /// The first page has the head and the tail; `pages` with records follow.
    base: NonNull<u8>,
    pages: usize,
}

impl Ring {
    /// Makes a ring for samples with these parts (`sample_type`). The kernel asks that `pages` is a power of two.
    pub fn new(processor: usize, sample_type: u64, pages: usize) -> io::Result<Ring> {
        let attributes = Attributes {
            kind: SOFTWARE,
            size: SIZE as u32,
            config: DUMMY,
            sample_type,
            flags: EXCLUDE_KERNEL | EXCLUDE_HYPERVISOR,
            ..Attributes::default()
        };
        let processor = processor as libc::c_int;
        let event = open(&attributes, 0, processor)?;
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: the kernel chooses a free place for the mapping.
        let base = unsafe { mmap(null_mut(), (1 + pages) * os_page_bytes(), access, MapFlags::SHARED, &event, 0)? };
        let base = NonNull::new(base.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Ring { processor, sample_type, event, base, pages })
    }

    /// Samples a thread (0 for the calling one), with all that it starts from now on, once for each `period` of
    /// processor time on this processor. `flags` say what is left out. The samples go into this ring until the event is
    /// closed.
    pub fn sample(&self, thread: libc::pid_t, period: Duration, flags: u64) -> io::Result<OwnedFd> {
        let attributes = Attributes {
            kind: SOFTWARE,
            size: SIZE as u32,
            config: TASK_CLOCK,
            sample_period: period.as_nanos() as u64,
            sample_type: self.sample_type,
            flags: INHERIT | EXCLUDE_HYPERVISOR | flags,
            ..Attributes::default()
        };
        let event = open(&attributes, thread, self.processor)?;
        // SAFETY: the call takes a descriptor, which is open.
        match unsafe { libc::ioctl(event.as_raw_fd(), SET_OUTPUT, self.event.as_raw_fd()) } {
            0 => Ok(event),
            _ => Err(io::Error::last_os_error()),
        }
    }

    fn word(&self, at: usize) -> &AtomicU64 {
        // SAFETY: the first page is mapped as long as `self` lives, and head and tail are u64s at a multiple of 8. The
        // kernel reads and writes them as whole words.
        unsafe { &*self.base.as_ptr().add(at).cast::<AtomicU64>() }
    }

    /// Returns the eight bytes of the record data at `at`, which wraps around at the end of the ring.
    fn data(&self, at: u64) -> [u8; WORD] {
        let place = at as usize % (self.pages * os_page_bytes());
        // SAFETY: records begin at a multiple of 8 and their size is one, so these bytes are within the mapped pages.
        // The caller reads below the head only, and the kernel does not write there before the tail has passed.
        unsafe { self.base.as_ptr().add(os_page_bytes() + place).cast::<[u8; WORD]>().read() }
    }

    /// Visits the samples since the last call: the words that follow their headers. Those for which there was no room
    /// are lost.
    pub fn take(&self, visit: &mut dyn FnMut(&[u64])) {
        // PAIRS WITH the kernel's store of data_head: what it wrote before is to be seen.
        let head = self.word(HEAD).load(Ordering::Acquire);
        let mut tail = self.word(TAIL).load(Ordering::Relaxed);
        let mut words = Vec::new();
        while tail < head {
            let [a, b, c, d, _, _, low, high] = self.data(tail);
            let (kind, bytes) = (u32::from_ne_bytes([a, b, c, d]), u64::from(u16::from_ne_bytes([low, high])));
            if bytes < WORD as u64 {
                // No record is that small; what follows cannot be read.
                tail = head;
                break;
            }
            if kind == RECORD_SAMPLE {
                words.clear();
                words.extend((1..bytes / WORD as u64).map(|at| u64::from_ne_bytes(self.data(tail + at * WORD as u64))));
                visit(&words);
            }
            tail += bytes;
        }
        // PAIRS WITH the kernel's load of data_tail: all reads are over before the room is free.
        self.word(TAIL).store(tail, Ordering::Release);
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and nothing leads to it any more. If it fails, memory is lost and nothing else.
        let _ = unsafe { munmap(self.base.as_ptr().cast(), (1 + self.pages) * os_page_bytes()) };
    }
}
