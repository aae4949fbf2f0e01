//! The OS pages of a private mapping that its owner has written.
//!
//! The first write to a page of a private mapping gives the process a copy of its own, and the kernel's page map tells
//! such pages from those that still are the file's (or the zero page).

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;

use crate::machine::os_page_bytes;

/// The page map of this process.
#[derive(Debug)]
pub(crate) struct Pagemap {
    file: File,
    process: u32,
}

impl Pagemap {
    /// Opens the page map of this process. A fork cannot use it.
    pub fn open() -> io::Result<Pagemap> {
        Ok(Pagemap { file: File::open("/proc/self/pagemap")?, process: std::process::id() })
    }

    /// The runs of OS pages between two addresses of which this process has its own copies.
    ///
    /// These are all pages that it wrote, and perhaps others. Addresses ascend and are those of whole OS pages.
    pub fn own_pages(&self, addresses: Range<usize>) -> io::Result<Vec<Range<usize>>> {
        assert_eq!(self.process, std::process::id(), "a page map speaks of the process that opened it");
        match self.scan(addresses.clone()) {
            // The kernel is older than 6.7 and does not know the call.
            Err(error) if error.raw_os_error() == Some(libc::ENOTTY) => self.read(addresses),
            result => result,
        }
    }

    /// By one call, which returns runs and skips what is not mapped.
    fn scan(&self, addresses: Range<usize>) -> io::Result<Vec<Range<usize>>> {
        let mut runs = Vec::new();
        let mut found = [MappedRange::default(); 128];
        let mut start = addresses.start as u64;
        while start < addresses.end as u64 {
            let mut question = Scan {
                size: size_of::<Scan>() as u64,
                start,
                end: addresses.end as u64,
                vec: found.as_mut_ptr() as u64,
                vec_len: found.len() as u64,
                // In memory or swapped out, and neither a page of the file nor the zero page.
                category_inverted: IS_FILE | IS_ZERO_PAGE,
                category_mask: IS_FILE | IS_ZERO_PAGE,
                category_anyof_mask: IS_PRESENT | IS_SWAPPED,
                return_mask: IS_PRESENT,
                ..Scan::default()
            };
            // SAFETY: the kernel reads the question, stores where it stopped, and stores at most `vec_len` regions at
            // `vec`, which is an array of that length without other references. The structures are those of linux/fs.h.
            let count = unsafe { libc::ioctl(self.file.as_raw_fd(), PAGEMAP_SCAN as _, &mut question) };
            let count = usize::try_from(count).map_err(|_| io::Error::last_os_error())?;
            found[..count].iter().for_each(|run| extend(&mut runs, run.start as usize..run.end as usize));
            start = question.walk_end;
        }
        Ok(runs)
    }

    /// By the word for each page in the page map.
    fn read(&self, addresses: Range<usize>) -> io::Result<Vec<Range<usize>>> {
        let os_page = os_page_bytes();
        let mut runs = Vec::new();
        let mut words = vec![0; 8 * 512];
        for start in addresses.clone().step_by(512 * os_page) {
            let words = &mut words[..8 * 512.min((addresses.end - start).div_ceil(os_page))];
            self.file.read_exact_at(words, (start / os_page * 8) as u64)?;
            for (address, word) in (start..).step_by(os_page).zip(words.as_chunks::<8>().0) {
                let word = u64::from_ne_bytes(*word);
                if word & (PRESENT | SWAPPED) != 0 && word & FILE_OR_SHARED == 0 {
                    extend(&mut runs, address..address + os_page);
                }
            }
        }
        Ok(runs)
    }
}

/// Appends a run, or extends the last one if they touch.
fn extend(runs: &mut Vec<Range<usize>>, run: Range<usize>) {
    match runs.last_mut() {
        Some(last) if last.end == run.start => last.end = run.end,
        _ => runs.push(run),
    }
}

// Bits of a word of the page map (Documentation/admin-guide/mm/pagemap.rst).
const PRESENT: u64 = 1 << 63;
const SWAPPED: u64 = 1 << 62;
const FILE_OR_SHARED: u64 = 1 << 61;

// Categories of the call, and the call itself: _IOWR('f', 16, struct pm_scan_arg) in linux/fs.h.
const IS_FILE: u64 = 1 << 2;
const IS_PRESENT: u64 = 1 << 3;
const IS_SWAPPED: u64 = 1 << 4;
const IS_ZERO_PAGE: u64 = 1 << 5;
const PAGEMAP_SCAN: u32 = 3 << 30 | (size_of::<Scan>() as u32) << 16 | (b'f' as u32) << 8 | 16;

/// `struct pm_scan_arg`.
#[repr(C)]
#[derive(Default)]
struct Scan {
    size: u64,
    flags: u64,
    start: u64,
    end: u64,
    walk_end: u64,
    vec: u64,
    vec_len: u64,
    max_pages: u64,
    category_inverted: u64,
    category_mask: u64,
    category_anyof_mask: u64,
    return_mask: u64,
}

const _: () = assert!(size_of::<Scan>() == 96);

/// `struct page_region`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct MappedRange {
    start: u64,
    end: u64,
    categories: u64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Original, PrivateView};

    /// The OS pages of `view` that each of the two ways finds, counted from its start; of the first, if this kernel
    /// offers it.
    fn found(view: &PrivateView) -> (Option<Vec<usize>>, Vec<usize>) {
        let pagemap = Pagemap::open().unwrap();
        let start = view.bytes().as_ptr() as usize;
        let addresses = start..start + view.bytes().len();
        let pages = |runs: Vec<Range<usize>>| -> Vec<usize> {
            runs.into_iter().flatten().step_by(os_page_bytes()).map(|at| (at - start) / os_page_bytes()).collect()
        };
        let scanned = match pagemap.scan(addresses.clone()) {
            Err(error) if error.raw_os_error() == Some(libc::ENOTTY) => None,
            result => Some(pages(result.unwrap())),
        };
        (scanned, pages(pagemap.read(addresses).unwrap()))
    }

    #[test]
    fn both_ways_find_the_written_pages_and_no_page_of_the_file() {
        let os_page = os_page_bytes();
        // Every other page, so that there are more runs than one call returns.
        let written: Vec<usize> = (1..400).step_by(2).chain([1022, 1023]).collect();
        let write = |view: &mut PrivateView| {
            // Reading maps pages of the file, or the zero page.
            assert_eq!(view.bytes().iter().position(|byte| *byte > 1), None);
            written.iter().for_each(|page| view.bytes_mut()[page * os_page + page] = 2);
        };
        let original = Original::new(1024 * os_page).unwrap();
        // SAFETY: there is no view yet.
        unsafe { original.write(&[1], 4 * os_page).unwrap() };
        let mut view = PrivateView::of(&original).unwrap();
        write(&mut view);
        let (scanned, read) = found(&view);
        assert!(scanned.is_none_or(|scanned| scanned == written));
        assert_eq!(read, written);

        // Huge pages, and the zero page in the older way, may add others to a view of zeros.
        let mut view = PrivateView::of_zeros(1024 * os_page).unwrap();
        write(&mut view);
        let (scanned, read) = found(&view);
        assert!(scanned.is_none_or(|scanned| written.iter().all(|page| scanned.contains(page))));
        assert!(written.iter().all(|page| read.contains(page)));
    }

    #[test]
    fn runs_that_touch_are_one() {
        let mut runs = Vec::new();
        for run in [0..4, 4..8, 12..16, 16..20] {
            extend(&mut runs, run);
        }
        assert_eq!(runs, [0..8, 12..20]);
    }
}
