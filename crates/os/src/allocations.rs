//! Counts of allocations per thread.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicI32, Ordering};

/// The allocator of the C library, with a count of its allocations.
///
/// A preloaded allocator replaces it. A program that wants the counts makes this its global allocator; in all others
/// they are zero. If the system refuses memory, the process prints an error and ends with status 1. A worker ends with
/// a status of its own, which its [`Death`](crate::process::Death) reports.
///
/// ```
/// use gristmill_os::allocations::{Allocations, Counting};
///
/// #[global_allocator]
/// static ALLOCATOR: Counting = Counting;
///
/// # fn main() {
/// let before = Allocations::of_thread();
/// let mut grist: Vec<u8> = Vec::with_capacity(1000);
/// grist.reserve_exact(3000);
/// let asked = Allocations::of_thread() - before;
/// assert_eq!((asked.count, asked.bytes), (2, 3000));
/// # drop(grist);
/// # }
/// ```
pub struct Counting;

/// Allocations of a thread since it began. Subtract two to get the difference.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Allocations {
    /// The count of allocations and reallocations.
    pub count: u64,
    /// The bytes allocated; for memory that grew, the growth.
    pub bytes: u64,
}

thread_local! {
    // Two plain words at a fixed place: nothing to make, nothing to drop, and nothing to allocate.
    static COUNT: Cell<u64> = const { Cell::new(0) };
    static BYTES: Cell<u64> = const { Cell::new(0) };
}

impl Allocations {
    /// The counts of the calling thread. A forked process inherits those of the forking thread.
    pub fn of_thread() -> Allocations {
        Allocations { count: COUNT.get(), bytes: BYTES.get() }
    }
}

impl std::ops::Sub for Allocations {
    type Output = Allocations;

    fn sub(self, earlier: Allocations) -> Allocations {
        Allocations { count: self.count - earlier.count, bytes: self.bytes - earlier.bytes }
    }
}

#[inline(always)]
fn count(bytes: usize) {
    COUNT.set(COUNT.get() + 1);
    BYTES.set(BYTES.get() + bytes as u64);
}

/// The allocation, or the end of the process if there is none.
#[inline(always)]
fn had(memory: *mut u8, bytes: usize) -> *mut u8 {
    if memory.is_null() {
        exhausted(bytes);
    }
    memory
}

/// The exit status of a worker that was refused memory. Other programs may use it for anything.
pub const REFUSED: i32 = 186;
/// The exit status of this process if it is refused memory.
static STATUS: AtomicI32 = AtomicI32::new(1);

/// Makes this process a worker from now on.
pub(crate) fn become_worker() {
    STATUS.store(REFUSED, Ordering::Relaxed);
}

/// Ends the process, and allocates nothing for it.
#[cold]
fn exhausted(bytes: usize) -> ! {
    use std::io::Write;
    let mut text = [0; 200];
    let mut rest = &mut text[..];
    // It fits.
    let _ = writeln!(
        rest,
        "gristmill: out of memory: the system refused {bytes} bytes. Raise the limit of this process (ulimit -v), or give the \
         job less with --memory and --workers"
    );
    let written = 200 - rest.len();
    // SAFETY: `text` has that many bytes, and to end a process needs nothing of it.
    unsafe {
        libc::write(2, text.as_ptr().cast(), written);
        libc::_exit(STATUS.load(Ordering::Relaxed))
    }
}

// SAFETY: every call goes to `System` as it came, and counting neither allocates nor panics: the words are there as
// long as the thread, and no machine has handed out 2^64 bytes. What is returned is what `System` returned.
unsafe impl GlobalAlloc for Counting {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: the caller's promises are those that `System` asks for.
        had(unsafe { System.alloc(layout) }, layout.size())
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: as in `alloc`.
        had(unsafe { System.alloc_zeroed(layout) }, layout.size())
    }

    #[inline]
    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        count(bytes.saturating_sub(layout.size()));
        // SAFETY: as in `alloc`; and all memory of this allocator is that of `System`.
        had(unsafe { System.realloc(memory, layout, bytes) }, bytes)
    }

    #[inline]
    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: as in `realloc`.
        unsafe { System.dealloc(memory, layout) }
    }
}
