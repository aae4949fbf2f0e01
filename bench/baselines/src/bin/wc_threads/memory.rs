//! Zeroed memory directly from the kernel, in huge pages if large enough: fewer faults and TLB misses.

/// Anonymous memory, unmapped when dropped.
pub struct Zeroed {
    start: *mut u8,
    bytes: usize,
}

// SAFETY: plain memory without thread affinity.
unsafe impl Send for Zeroed {}
// SAFETY: it only hands out addresses; their users are responsible for accesses.
unsafe impl Sync for Zeroed {}

const HUGE: usize = 2 << 20;

impl Zeroed {
    /// Maps `bytes`, which must be a multiple of the OS page.
    pub fn new(bytes: usize) -> Self {
        // Huge pages need alignment: map more, and unmap both ends.
        let spare = if bytes >= HUGE { HUGE } else { 0 };
        // SAFETY: a new private mapping aliases nothing, and no pointer into the unmapped ends exists.
        unsafe {
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
            let mapped =
                libc::mmap(std::ptr::null_mut(), bytes + spare, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0);
            assert!(mapped != libc::MAP_FAILED, "no memory for {bytes} bytes");
            let mut start = mapped.cast::<u8>();
            if spare > 0 {
                let before = start.align_offset(HUGE);
                if before > 0 {
                    libc::munmap(mapped, before);
                }
                start = start.add(before);
                if before < spare {
                    libc::munmap(start.add(bytes).cast(), spare - before);
                }
                libc::madvise(start.cast(), bytes, libc::MADV_HUGEPAGE);
            }
            Self { start, bytes }
        }
    }

    pub fn start(&self) -> *mut u8 {
        self.start
    }
}

impl Drop for Zeroed {
    fn drop(&mut self) {
        // SAFETY: mapped by `new` with this length.
        unsafe { libc::munmap(self.start.cast(), self.bytes) };
    }
}
