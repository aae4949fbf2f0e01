//! The one piece of memory that all workers share.
//!
//! The region is made before the first worker starts, and fork passes it on: every worker has it at
//! the same address, so an offset, a page number or an address means the same thing everywhere. No
//! name in a file system leads to it; when the last process is gone, so is the memory.
//!
//! ```text
//!   byte 0                 control area: atomics, lent out as u32s or as u64s
//!        control_bytes     ledger: which words of the control area are lent as what
//!        (next 2 MiB)      page area: bytes, reached through a raw pointer
//!        (next 2 MiB)      end
//! ```
//!
//! Memory is given when it is first touched, and reads zero until it is written.

use std::io;
use std::ops::Range;
use std::ptr::{NonNull, null_mut};
use std::slice;
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering};

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};
use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, mmap_anonymous, munmap};

use crate::machine::os_page_bytes;

/// Both areas start at a multiple of the size of a huge page, so that the kernel can use them.
const HUGE_PAGE_BYTES: usize = 2 << 20;

/// The ledger has one entry for this many bytes of the control area: 8 words of 8 bytes.
const LINE_BYTES: usize = 64;

/// Memory shared by this process and all processes that it forks.
///
/// ```
/// use std::sync::atomic::Ordering;
/// use gristmill_os::Region;
///
/// let region = Region::new(4096, 64 << 20)?;
/// region.u64s(0, 1)[0].store(7, Ordering::Relaxed);
/// let flags = region.u32s(8, 2);
/// assert_eq!(flags[1].load(Ordering::Relaxed), 0);
/// assert_eq!(region.page_area_bytes(), 64 << 20); // none of it takes memory yet
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct Region {
    base: NonNull<u8>,
    control_bytes: usize,
    page_area_start: usize,
    page_area_bytes: usize,
    mapped_bytes: usize,
}

// SAFETY: the mapping belongs to the process, not to a thread; the safe methods reach it through
// atomics and system calls only.
unsafe impl Send for Region {}
// SAFETY: as above.
unsafe impl Sync for Region {}

impl Region {
    /// Maps a new region with room for `control_bytes` of atomics and `page_area_bytes` of pages,
    /// the latter rounded up to 2 MiB.
    ///
    /// # Errors
    ///
    /// When the sizes are zero or absurd, or the process may not map that much address space.
    pub fn new(control_bytes: usize, page_area_bytes: usize) -> io::Result<Region> {
        let too_large = || io::Error::from(io::ErrorKind::OutOfMemory);
        let huge_pages = |bytes: usize| {
            bytes
                .checked_next_multiple_of(HUGE_PAGE_BYTES)
                .ok_or_else(too_large)
        };
        let ledger_start = control_bytes
            .checked_next_multiple_of(LINE_BYTES)
            .ok_or_else(too_large)?;
        let ledger_bytes = ledger_start / LINE_BYTES * size_of::<AtomicU16>();
        let page_area_start = huge_pages(
            ledger_start
                .checked_add(ledger_bytes)
                .ok_or_else(too_large)?,
        )?;
        let page_area_bytes = huge_pages(page_area_bytes)?;
        let mapped_bytes = page_area_start
            .checked_add(page_area_bytes)
            .filter(|&bytes| bytes <= isize::MAX as usize - HUGE_PAGE_BYTES)
            .ok_or_else(too_large)?;
        let base = map_shared(mapped_bytes)?;
        Ok(Region {
            base,
            control_bytes,
            page_area_start,
            page_area_bytes,
            mapped_bytes,
        })
    }

    /// `count` atomics of 4 bytes at byte `offset` of the control area, zero at first.
    ///
    /// # Panics
    ///
    /// When they do not lie inside the control area, `offset` is not a multiple of 4, or one of the
    /// same 8-byte words was lent by [`Region::u64s`] before, in any process: atomic accesses of
    /// two sizes to one place have no meaning in Rust.
    pub fn u32s(&self, offset: usize, count: usize) -> &[AtomicU32] {
        self.lend(offset, count, size_of::<AtomicU32>(), 0);
        // SAFETY: `lend` has checked that the range lies inside the mapping, which lives as long as
        // `self`; that it is aligned; and that nobody reaches it as anything but `AtomicU32`. All
        // bit patterns are valid, and memory that is shared with other processes may change under
        // an atomic.
        unsafe { slice::from_raw_parts(self.base.as_ptr().add(offset).cast(), count) }
    }

    /// `count` atomics of 8 bytes at byte `offset` of the control area, zero at first.
    ///
    /// # Panics
    ///
    /// When they do not lie inside the control area, `offset` is not a multiple of 8, or one of
    /// them was lent by [`Region::u32s`] before, in any process.
    pub fn u64s(&self, offset: usize, count: usize) -> &[AtomicU64] {
        self.lend(offset, count, size_of::<AtomicU64>(), 8);
        // SAFETY: as in `u32s`, for `AtomicU64`.
        unsafe { slice::from_raw_parts(self.base.as_ptr().add(offset).cast(), count) }
    }

    /// Checks that `count` atomics at `offset` may be lent, and enters them in the ledger. An entry
    /// has one bit for each word of its line at `kind_bit` 0 (lent as u32s) and one at 8 (as u64s).
    fn lend(&self, offset: usize, count: usize, atomic_bytes: usize, kind_bit: u32) {
        let end = count
            .checked_mul(atomic_bytes)
            .and_then(|bytes| bytes.checked_add(offset));
        assert!(
            end.is_some_and(|end| end <= self.control_bytes),
            "{count} atomics of {atomic_bytes} bytes at byte {offset} do not fit the control area of {} bytes",
            self.control_bytes,
        );
        assert!(
            offset.is_multiple_of(atomic_bytes),
            "byte {offset} is no place for atomics of {atomic_bytes} bytes"
        );
        let words = offset / 8..(offset + count * atomic_bytes).div_ceil(8);
        let ledger = self.ledger();
        let mut word = words.start;
        while word < words.end {
            let line = word / 8;
            let next_line = (line + 1) * 8;
            let bits =
                (word..next_line.min(words.end)).fold(0, |bits, word| bits | 1u16 << (word % 8));
            let lent =
                ledger[line].fetch_or(bits << kind_bit, Ordering::Relaxed) | bits << kind_bit;
            assert_eq!(
                lent & 0xff & lent >> 8,
                0,
                "bytes {}..{} of the control area are lent both as u32s and as u64s",
                line * LINE_BYTES,
                (line + 1) * LINE_BYTES,
            );
            word = next_line;
        }
    }

    fn ledger(&self) -> &[AtomicU16] {
        let lines = self.control_bytes.div_ceil(LINE_BYTES);
        // SAFETY: `new` left room for one entry per line between the control area and the page
        // area, at a multiple of 64 bytes; only this method reaches it.
        unsafe { slice::from_raw_parts(self.base.as_ptr().add(lines * LINE_BYTES).cast(), lines) }
    }

    /// The first byte of the page area, at a multiple of 2 MiB.
    ///
    /// Whoever reads or writes through it sees to it that no process accesses the same bytes in a
    /// conflicting way at the same time; [`Region::populate`] and [`Region::discard`] of a range
    /// count as writes to it.
    pub fn page_area(&self) -> NonNull<u8> {
        // SAFETY: the page area starts inside the mapping, or at its end when it is empty.
        unsafe { self.base.add(self.page_area_start) }
    }

    /// The length of the page area in bytes, a multiple of 2 MiB.
    pub fn page_area_bytes(&self) -> usize {
        self.page_area_bytes
    }

    /// Asks the kernel to back the page area with huge pages (2 MiB) as it is touched. A kernel that
    /// does not want to, or cannot, goes on with small ones.
    pub fn ask_for_huge_pages(&self) {
        // SAFETY: the advice does not change what the memory holds. Its failure is the kernel's "no".
        let _ = unsafe { self.advise(0..self.page_area_bytes, Advice::LinuxHugepage) };
    }

    /// Gives memory to `range` of the page area now, so that this process takes no page fault there
    /// later. Contents stay as they are. The ends are widened to whole OS pages.
    ///
    /// # Errors
    ///
    /// When there is not enough memory.
    ///
    /// # Panics
    ///
    /// When `range` does not lie inside the page area.
    pub fn populate(&self, range: Range<usize>) -> io::Result<()> {
        self.assert_in_page_area(&range);
        let os_page = os_page_bytes();
        let whole = range.start / os_page * os_page..range.end.next_multiple_of(os_page);
        // SAFETY: populating does not change what the memory holds.
        match unsafe { self.advise(whole.clone(), Advice::LinuxPopulateWrite) } {
            // The kernel is older than 5.14 and does not know this advice: touch every OS page.
            Err(Errno::INVAL) => {
                for offset in whole.step_by(os_page) {
                    // SAFETY: inside the page area, which is mapped. The users of `page_area` promise
                    // that nobody accesses the range meanwhile; and adding 0 changes nothing.
                    let byte = unsafe { AtomicU8::from_ptr(self.page_area().add(offset).as_ptr()) };
                    byte.fetch_add(0, Ordering::Relaxed);
                }
                Ok(())
            }
            result => Ok(result?),
        }
    }

    /// Gives the memory of `range` of the page area back to the kernel, for all processes. It reads
    /// zero afterwards and takes memory again when it is touched.
    ///
    /// # Errors
    ///
    /// When the kernel refuses, which it does not for ordinary shared memory.
    ///
    /// # Panics
    ///
    /// When `range` does not lie inside the page area, or an end is not a multiple of the
    /// [OS page](crate::machine::os_page_bytes).
    pub fn discard(&self, range: Range<usize>) -> io::Result<()> {
        self.assert_in_page_area(&range);
        assert!(
            range.start.is_multiple_of(os_page_bytes())
                && range.end.is_multiple_of(os_page_bytes()),
            "only whole OS pages can be given back, not bytes {range:?}"
        );
        // SAFETY: the users of `page_area` promise that nobody accesses the range meanwhile.
        Ok(unsafe { self.advise(range, Advice::LinuxRemove) }?)
    }

    fn assert_in_page_area(&self, range: &Range<usize>) {
        assert!(
            range.start <= range.end && range.end <= self.page_area_bytes,
            "bytes {range:?} do not lie in the page area of {} bytes",
            self.page_area_bytes
        );
    }

    /// # Safety
    ///
    /// `range` lies inside the page area, and whoever uses the range expects what `advice` does.
    unsafe fn advise(&self, range: Range<usize>, advice: Advice) -> rustix::io::Result<()> {
        // SAFETY: the range is mapped, and by this region alone.
        unsafe {
            madvise(
                self.page_area().add(range.start).as_ptr().cast(),
                range.len(),
                advice,
            )
        }
    }
}

impl Drop for Region {
    /// Takes the region out of this process. The memory lives until no process has it mapped.
    fn drop(&mut self) {
        // SAFETY: the mapping is this region's own, and every reference into it borrows the region.
        let result = unsafe { munmap(self.base.as_ptr().cast(), self.mapped_bytes) };
        debug_assert_eq!(result, Ok(()));
    }
}

/// Maps `bytes` of new shared memory at a multiple of 2 MiB.
fn map_shared(bytes: usize) -> io::Result<NonNull<u8>> {
    let memory = memfd_create("gristmill", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
    ftruncate(&memory, bytes as u64)?;
    // Nobody can cut the memory short later, which would make an access to it fatal.
    fcntl_add_seals(
        &memory,
        SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL,
    )?;

    // The kernel aligns to OS pages only, so: (1) reserve 2 MiB too much, (2) map the memory over
    // the aligned part, (3) give the rest back.
    let reserved_bytes = bytes + HUGE_PAGE_BYTES;
    // SAFETY: a mapping at an address of the kernel's choice touches nothing that exists.
    let reserved = unsafe {
        mmap_anonymous(
            null_mut(),
            reserved_bytes,
            ProtFlags::empty(),
            MapFlags::PRIVATE | MapFlags::NORESERVE,
        )?
    };
    let before = reserved.align_offset(HUGE_PAGE_BYTES);
    let release = |offset: usize, bytes: usize| {
        // SAFETY: `offset` and `bytes` lie inside the reservation, and nothing of it is in use yet.
        let result = unsafe { munmap(reserved.add(offset), bytes) };
        debug_assert!(bytes == 0 || result == Ok(()));
    };
    // SAFETY: the aligned part lies inside the reservation, which nobody else knows.
    let mapped = unsafe {
        mmap(
            reserved.add(before),
            bytes,
            ProtFlags::READ | ProtFlags::WRITE,
            MapFlags::SHARED | MapFlags::FIXED | MapFlags::NORESERVE,
            &memory,
            0,
        )
    };
    match mapped {
        Ok(base) => {
            release(0, before);
            release(before + bytes, HUGE_PAGE_BYTES - before);
            Ok(NonNull::new(base.cast()).expect("the kernel maps nothing at address 0"))
        }
        Err(error) => {
            release(0, reserved_bytes);
            Err(error.into())
        }
    }
}
