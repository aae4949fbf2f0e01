//! The master copy of an array that many workers change.
//!
//! ```text
//!  control area                                        page area
//!  | latch, u32 per OS page | touched, u32 per OS page |   | the array, in words of 64 bits |
//! ```
//!
//! *Who touches what.* While a job runs the array is words, accessed as atomics; who changes words of an OS page holds its
//! latch. Between jobs the process that made the array sees it as plain bytes.

use std::io;
use std::ops::Range;
use std::slice;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use gristmill_os::Region;
use gristmill_os::machine::os_page_bytes;
use gristmill_ring::Latch;

/// An array of bytes, shared with all processes that this one forks.
pub struct Master {
    region: Region,
    bytes: usize,
    os_pages: usize,
    maker: u32,
}

impl Master {
    /// So many bytes, all zero. None of them takes memory yet.
    ///
    /// # Errors
    /// What the kernel answers to `memfd_create`, `ftruncate` or `mmap`.
    pub fn new(bytes: usize) -> io::Result<Master> {
        let os_pages = bytes.div_ceil(os_page_bytes());
        let region = Region::new(2 * os_pages * size_of::<AtomicU32>(), bytes)?;
        Ok(Master { region, bytes, os_pages, maker: std::process::id() })
    }

    /// Its length in OS pages, the last of which may be longer than the array.
    pub fn os_pages(&self) -> usize {
        self.os_pages
    }

    /// True in the process that made it, false in its forks.
    pub fn is_mine(&self) -> bool {
        self.maker == std::process::id()
    }

    /// The words of one OS page. Whoever stores one holds the [latch](Master::latch).
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

    /// Notes that the OS page may hold something else than zeros.
    pub fn touch(&self, os_page: usize) {
        self.touched_word(os_page).store(1, Ordering::Relaxed);
    }

    /// True after [`Master::touch`].
    pub fn is_touched(&self, os_page: usize) -> bool {
        self.touched_word(os_page).load(Ordering::Relaxed) != 0
    }

    fn touched_word(&self, os_page: usize) -> &AtomicU32 {
        &self.region.u32s(self.os_pages * size_of::<AtomicU32>(), self.os_pages)[os_page]
    }

    /// Faults OS pages in together, which costs half of what it costs one by one. A kernel that cannot leaves them to be
    /// faulted in later.
    pub fn prefault(&self, os_pages: Range<usize>) {
        let _ = self.region.prefault(os_pages.start * os_page_bytes()..os_pages.end * os_page_bytes());
    }

    /// The array.
    ///
    /// # Panics
    /// In a fork: its maker may be writing.
    pub fn bytes(&mut self) -> &[u8] {
        self.bytes_mut()
    }

    /// The array, to write. What is written is not [touched](Master::touch) thereby.
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
}
