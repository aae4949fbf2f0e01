//! The master copy of an array that many workers change.
//!
//! ```text
//!  control area                                        page area
//!  | latch, u32 per OS page | state, u32 per OS page |   | the array, in words of 64 bits |
//!
//!  state:  zeros --touch--> changed --settle--> settled: the original that views are of has the same
//!                              ^-----touch---------+
//! ```
//!
//! *Access.* While a job maps, the array is words, accessed as atomics; a worker that changes words of an OS page holds its
//! latch. Between jobs, and between the steps of a job, the process that made the array sees it as plain bytes.

use std::io;
use std::ops::Range;
use std::slice;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use gristmill_os::machine::os_page_bytes;
use gristmill_os::{Original, Region};
use gristmill_ring::Latch;

// States of an OS page.
const ZEROS: u32 = 0;
const SETTLED: u32 = 1;
const CHANGED: u32 = 2;

/// An array of bytes, shared with all processes that this one forks.
pub struct Master {
    region: Region,
    bytes: usize,
    os_pages: usize,
    maker: u32,
}

impl Master {
    /// An array of zero bytes. It takes no memory before it is written.
    ///
    /// # Errors
    /// The kernel's error from `memfd_create`, `ftruncate` or `mmap`.
    pub fn new(bytes: usize) -> io::Result<Master> {
        let os_pages = bytes.div_ceil(os_page_bytes());
        let region = Region::new(2 * os_pages * size_of::<AtomicU32>(), bytes)?;
        Ok(Master { region, bytes, os_pages, maker: std::process::id() })
    }

    /// The length in OS pages, the last of which may extend beyond the array.
    pub fn os_pages(&self) -> usize {
        self.os_pages
    }

    /// True in the process that made the array, false in its forks.
    pub fn is_mine(&self) -> bool {
        self.maker == std::process::id()
    }

    /// The words of one OS page. A worker that stores one holds the [latch](Master::latch).
    #[inline]
    pub fn words(&self, os_page: usize) -> &[AtomicU64] {
        assert!(os_page < self.os_pages, "OS page {os_page} of an array of {}", self.os_pages);
        // SAFETY: the page lies inside the page area, which is aligned to 2 MiB; zero and all other bits are valid; and
        // through a shared reference the area is reached as `AtomicU64` only, which other processes may change.
        unsafe {
            let first = self.region.page_area().add(os_page * os_page_bytes());
            slice::from_raw_parts(first.cast().as_ptr(), os_page_bytes() / size_of::<AtomicU64>())
        }
    }

    /// The latch of one OS page.
    pub fn latch(&self, os_page: usize) -> Latch<'_> {
        Latch::new(&self.region.u32s(0, self.os_pages)[os_page])
    }

    /// Notes that the OS page may differ from zeros and from the original.
    pub fn touch(&self, os_page: usize) {
        self.state(os_page).store(CHANGED, Ordering::Relaxed);
    }

    /// True when it was ever [touched](Master::touch).
    pub fn is_touched(&self, os_page: usize) -> bool {
        self.state(os_page).load(Ordering::Relaxed) != ZEROS
    }

    fn state(&self, os_page: usize) -> &AtomicU32 {
        &self.region.u32s(self.os_pages * size_of::<AtomicU32>(), self.os_pages)[os_page]
    }

    /// Writes the OS pages touched since the last call to `original`.
    ///
    /// Call it only when it is certain that no process changes the array or has a reference into a view of `original`. That is so
    /// before the first worker starts, and between two steps, because workers use views only in tasks.
    ///
    /// # Errors
    /// When the kernel has no memory left.
    ///
    /// # Panics
    /// In a fork, as [`Master::bytes`].
    pub fn settle(&self, original: &Original) -> io::Result<()> {
        let array = self.settled_os_pages();
        let is_changed = |os_page: &usize| self.state(*os_page).load(Ordering::Relaxed) == CHANGED;
        let mut os_page = 0;
        while let Some(first) = (os_page..self.os_pages).find(is_changed) {
            os_page = (first..self.os_pages).find(|os_page| !is_changed(os_page)).unwrap_or(self.os_pages);
            let bytes = first * os_page_bytes()..os_page * os_page_bytes();
            // SAFETY: the caller promises that no process has a reference into a view.
            unsafe { original.write(&array[bytes.clone()], bytes.start)? };
            (first..os_page).for_each(|os_page| self.state(os_page).store(SETTLED, Ordering::Relaxed));
        }
        Ok(())
    }

    /// The array, while workers that know it exist.
    ///
    /// Call it only when it is certain that no process changes the array while the caller holds the returned reference. That is so
    /// between two steps of a job.
    ///
    /// # Panics
    /// In a fork, as [`Master::bytes`].
    pub fn settled_bytes(&self) -> &[u8] {
        &self.settled_os_pages()[..self.bytes]
    }

    /// The same with the rest of the last OS page.
    fn settled_os_pages(&self) -> &[u8] {
        assert!(self.is_mine(), "an array is read and filled by the process that made it, not by its workers");
        // SAFETY: these bytes are the page area. Workers change them in tasks, and there is none, the caller promises; this
        // process changes them through `bytes_mut`, which this reference excludes.
        unsafe { slice::from_raw_parts(self.region.page_area().as_ptr(), self.os_pages * os_page_bytes()) }
    }

    /// Faults in OS pages together, at half the cost of one by one.
    ///
    /// A kernel without that call leaves them to be faulted in later.
    pub fn prefault(&self, os_pages: Range<usize>) {
        let _ = self.region.prefault(os_pages.start * os_page_bytes()..os_pages.end * os_page_bytes());
    }

    /// The array.
    ///
    /// # Panics
    /// In a fork: the process that made the array may be writing.
    pub fn bytes(&mut self) -> &[u8] {
        self.bytes_mut()
    }

    /// The array, to write. Writing does not [touch](Master::touch) it.
    ///
    /// # Panics
    /// In a fork, as [`Master::bytes`].
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        assert!(self.is_mine(), "an array is read and filled by the process that made it, not by its workers");
        // SAFETY: the bytes lie inside the page area. No reference into it exists in this process, because this one is
        // exclusive. Other processes that know the area are workers of jobs which borrow the array (the engine's
        // `Job::writes`) until they have reaped them all; and in no fork does this method come here.
        unsafe { slice::from_raw_parts_mut(self.region.page_area().as_ptr(), self.bytes) }
    }
}

#[cfg(test)]
mod tests {
    use gristmill_os::PrivateView;

    use super::*;

    #[test]
    fn words_and_bytes_are_the_same_memory() {
        let mut master = Master::new(os_page_bytes() + 9).unwrap();
        assert_eq!(master.os_pages(), 2);
        master.words(1)[1].store(u64::from_ne_bytes(*b"barleyee"), Ordering::Relaxed);
        assert_eq!(master.bytes().len(), os_page_bytes() + 9);
        assert_eq!(&master.bytes()[os_page_bytes()..], b"\0\0\0\0\0\0\0\0b");
        master.bytes_mut()[0] = 1;
        assert_eq!(master.words(0)[0].load(Ordering::Relaxed).to_ne_bytes()[0], 1);
    }

    #[test]
    fn an_array_of_nothing_has_no_pages() {
        let mut master = Master::new(0).unwrap();
        assert_eq!((master.os_pages(), master.bytes().len()), (0, 0));
    }

    #[test]
    fn pages_are_touched_and_latched_one_by_one() {
        let master = Master::new(3 * os_page_bytes()).unwrap();
        master.touch(1);
        assert_eq!([0, 1, 2].map(|page| master.is_touched(page)), [false, true, false]);
        assert!(master.latch(2).try_take(1, |_| false));
        assert!(master.latch(1).try_take(2, |_| false));
        assert!(!master.latch(2).try_take(2, |_| false));
        master.prefault(0..3);
        assert_eq!(master.words(2)[0].load(Ordering::Relaxed), 0);
    }

    #[test]
    fn what_was_touched_since_the_last_time_is_settled() {
        let master = Master::new(4 * os_page_bytes() - 1).unwrap();
        let original = Original::new(4 * os_page_bytes()).unwrap();
        let view = PrivateView::of(&original).unwrap();
        let settled = |values: [(usize, u64); 2], touched: usize| {
            for (os_page, value) in values {
                master.words(os_page)[0].store(value, Ordering::Relaxed);
            }
            master.touch(touched);
            master.settle(&original).unwrap();
            [0, 1, 2, 3].map(|os_page| view.bytes()[os_page * os_page_bytes()])
        };
        assert_eq!(settled([(1, 7), (2, 9)], 1), [0, 7, 0, 0]);
        assert_eq!(settled([(1, 8), (3, 5)], 2), [0, 7, 9, 0], "settled once, and not touched since");
        assert_eq!(settled([(1, 8), (3, 5)], 3), [0, 7, 9, 5]);
        assert_eq!(settled([(1, 8), (3, 6)], 1), [0, 8, 9, 5]);
        assert_eq!(master.settled_bytes().len(), 4 * os_page_bytes() - 1);
        assert_eq!([0, 1, 2, 3].map(|os_page| master.is_touched(os_page)), [false, true, true, true]);
    }
}
