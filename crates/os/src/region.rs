//! The region: the memory that all workers share.
//!
//! The region is made before the first worker starts, and fork passes it on: every worker has it at
//! the same address, so an offset, a page number or an address means the same thing everywhere. No
//! name in a file system leads to it; when the last process is gone, so is the memory.
//!
//! ```text
//!   byte 0                 control area: atomics, first the u32s, then the u64s
//!        control_bytes     borders: how far the two kinds reach
//!        (next 2 MiB)      page area: bytes, reached through a raw pointer
//!        (next 2 MiB)      end
//! ```
//!
//! Memory is allocated when it is first touched, and reads zero until it is written. The end of the page area may
//! be a file ([`Region::with_file`]).

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::ptr::{NonNull, null_mut};
use std::slice;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};
use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, MprotectFlags, ProtFlags, madvise, mmap, mmap_anonymous, mprotect, munmap};

use crate::file_size::LimitIsAnError;
use crate::machine::os_page_bytes;
use crate::memory::HUGE_PAGE_BYTES;

/// The borders have a cache line of their own: they are read often and hardly ever written.
const LINE_BYTES: usize = 64;

/// Indices into the borders.
const U32S: usize = 0;
const U64S: usize = 1;

/// Memory shared by this process and all processes that it forks.
///
/// ```
/// use std::sync::atomic::Ordering;
/// use gristmill_os::Region;
///
/// let region = Region::new(4096, 64 << 20)?;
/// let flags = region.u32s(0, 2);
/// let counts = region.u64s(64, 10);
/// counts[9].store(7, Ordering::Relaxed);
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
    /// The part of the page area that is memory; the rest is a file.
    memory_bytes: usize,
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
    /// When the sizes are absurd, or the process may not map that much address space.
    pub fn new(control_bytes: usize, page_area_bytes: usize) -> io::Result<Region> {
        Region::map(control_bytes, page_area_bytes, None)
    }

    /// As [`Region::new`]; behind `page_area_bytes`, rounded up to 2 MiB, the page area goes on with
    /// the first `file_bytes` of `file`, which is made that long. What is written there goes to the
    /// disk when the kernel needs the memory. A write to a place for which the disk has no room ends
    /// the process with SIGBUS, so room must be allocated before.
    ///
    /// # Errors
    ///
    /// As [`Region::new`], and when the file cannot be extended or mapped.
    pub fn with_file(
        control_bytes: usize,
        page_area_bytes: usize,
        file: &File,
        file_bytes: usize,
    ) -> io::Result<Region> {
        Region::map(control_bytes, page_area_bytes, Some((file, file_bytes)))
    }

    fn map(control_bytes: usize, page_area_bytes: usize, file: Option<(&File, usize)>) -> io::Result<Region> {
        let too_large = || io::Error::from(io::ErrorKind::OutOfMemory);
        let huge_pages = |bytes: usize| bytes.checked_next_multiple_of(HUGE_PAGE_BYTES).ok_or_else(too_large);
        let borders_end = control_bytes
            .checked_next_multiple_of(LINE_BYTES)
            .and_then(|start| start.checked_add(LINE_BYTES))
            .ok_or_else(too_large)?;
        let page_area_start = huge_pages(borders_end)?;
        let memory_bytes = huge_pages(page_area_bytes)?;
        let file_bytes = file.map_or(0, |(_, bytes)| bytes).next_multiple_of(os_page_bytes());
        let page_area_bytes = memory_bytes.checked_add(file_bytes).ok_or_else(too_large)?;
        let mapped_bytes = page_area_start
            .checked_add(page_area_bytes)
            .filter(|&bytes| bytes <= isize::MAX as usize - HUGE_PAGE_BYTES)
            .ok_or_else(too_large)?;
        let base = map_shared(mapped_bytes)?;
        let region = Region { base, control_bytes, page_area_start, page_area_bytes, memory_bytes, mapped_bytes };
        if let Some((file, _)) = file.filter(|_| file_bytes > 0) {
            ftruncate(file, file_bytes as u64)?;
            let flags = MapFlags::SHARED | MapFlags::FIXED;
            // SAFETY: the range is the end of the new mapping, of which nothing is in use yet.
            unsafe {
                let start = region.page_area().add(memory_bytes).as_ptr().cast();
                mmap(start, file_bytes, ProtFlags::READ | ProtFlags::WRITE, flags, file, 0)?;
            }
        }
        Ok(region)
    }

    /// `count` atomics of 4 bytes at byte `offset` of the control area, zero at first.
    ///
    /// All u32s lie before all u64s, in every process. So no place is ever
    /// accessed in two sizes, which has no meaning in Rust.
    ///
    /// # Panics
    ///
    /// When they do not lie inside the control area, `offset` is not a multiple of 4, or a u64 was
    /// asked for before them.
    #[inline]
    pub fn u32s(&self, offset: usize, count: usize) -> &[AtomicU32] {
        let end = self.end_of(offset, count, size_of::<AtomicU32>());
        self.extend(U32S, end);
        // SAFETY: the range lies inside the mapping, which lives as long as `self`; it is aligned;
        // and nobody reaches it as anything but `AtomicU32`, see `extend`. All bit patterns are
        // valid, and memory under an atomic may be changed by other processes.
        unsafe { slice::from_raw_parts(self.base.as_ptr().add(offset).cast(), count) }
    }

    /// `count` atomics of 8 bytes at byte `offset` of the control area, zero at first.
    ///
    /// # Panics
    ///
    /// When they do not lie inside the control area, `offset` is not a multiple of 8, or a u32 was
    /// asked for behind them; see [`Region::u32s`].
    #[inline]
    pub fn u64s(&self, offset: usize, count: usize) -> &[AtomicU64] {
        self.end_of(offset, count, size_of::<AtomicU64>());
        self.extend(U64S, self.control_bytes - offset);
        // SAFETY: as in `u32s`, for `AtomicU64`.
        unsafe { slice::from_raw_parts(self.base.as_ptr().add(offset).cast(), count) }
    }

    /// Checks that `count` atomics at `offset` lie in the control area, and returns their end.
    fn end_of(&self, offset: usize, count: usize, atomic_bytes: usize) -> usize {
        let end = count.checked_mul(atomic_bytes).and_then(|bytes| bytes.checked_add(offset));
        let end = end.filter(|&end| end <= self.control_bytes && offset.is_multiple_of(atomic_bytes));
        end.unwrap_or_else(|| {
            panic!(
                "{count} atomics of {atomic_bytes} bytes do not fit at byte {offset} of a control area of {} bytes",
                self.control_bytes
            )
        })
    }

    /// Moves the border of one kind outwards to `reach`, if needed.
    ///
    /// Panics if the two kinds meet.
    fn extend(&self, border: usize, reach: usize) {
        let borders = self.borders();
        // Almost always it is there already; then the line stays shared between the processors.
        if borders[border].load(Ordering::Relaxed) < reach as u64 {
            borders[border].fetch_max(reach as u64, Ordering::SeqCst);
        }
        // SeqCst: of two processes that extend towards each other at once, one sees both.
        let reaches = [0, 1].map(|border: usize| borders[border].load(Ordering::SeqCst) as usize);
        assert!(
            reaches[U32S] + reaches[U64S] <= self.control_bytes,
            "u32s were asked for up to byte {}, and u64s from byte {} on: u32s come first",
            reaches[U32S],
            self.control_bytes - reaches[U64S],
        );
    }

    /// The bytes that u32s take from the start of the control area, and u64s from its end.
    fn borders(&self) -> &[AtomicU64; 2] {
        let offset = self.control_bytes.next_multiple_of(LINE_BYTES);
        // SAFETY: `new` left a line for them between the control area and the page area, at a
        // multiple of 64 bytes; only this method reaches it, and zero is valid.
        unsafe { self.base.add(offset).cast().as_ref() }
    }

    /// The first byte of the page area, at a multiple of 2 MiB.
    ///
    /// A caller that reads or writes through it must ensure that no process accesses the same bytes in a
    /// conflicting way at the same time.
    pub fn page_area(&self) -> NonNull<u8> {
        // SAFETY: the page area starts inside the mapping, or at its end when it is empty.
        unsafe { self.base.add(self.page_area_start) }
    }

    /// The length of the page area in bytes.
    pub fn page_area_bytes(&self) -> usize {
        self.page_area_bytes
    }

    /// Asks the kernel to back the page area with huge pages (2 MiB) as it is touched. A kernel that
    /// does not want to, or cannot, goes on with small ones.
    pub fn ask_for_huge_pages(&self) {
        // SAFETY: the advice does not change what the memory holds. Its failure is the kernel's "no".
        let _ = unsafe { self.advise(0..self.memory_bytes, Advice::LinuxHugepage) };
    }

    /// Takes from this process the right to write to `range` of the page area: a write there ends it with SIGSEGV from
    /// now on. Other processes keep their rights; those that this one forks inherit its own.
    ///
    /// # Errors
    ///
    /// When the kernel has no memory to note it.
    ///
    /// # Panics
    ///
    /// When `range` does not lie inside the page area, or does not begin and end with an OS page.
    pub fn forbid_writes(&self, range: Range<usize>) -> io::Result<()> {
        self.protect(range, MprotectFlags::READ)
    }

    /// Gives back the right to write to `range`.
    ///
    /// # Errors
    ///
    /// As [`Region::forbid_writes`].
    ///
    /// # Panics
    ///
    /// As [`Region::forbid_writes`].
    pub fn permit_writes(&self, range: Range<usize>) -> io::Result<()> {
        self.protect(range, MprotectFlags::READ | MprotectFlags::WRITE)
    }

    /// As [`Region::forbid_writes`], for a range of bytes before the page area. All atomics must have been asked for
    /// before: the borders may lie there.
    ///
    /// # Errors
    ///
    /// As [`Region::forbid_writes`].
    ///
    /// # Panics
    ///
    /// When `range` does not lie before the page area, or does not begin and end with an OS page.
    pub fn forbid_control_writes(&self, range: Range<usize>) -> io::Result<()> {
        assert!(range.end <= self.page_area_start, "{range:?} lies before the page area");
        self.protect_bytes(range, MprotectFlags::READ)
    }

    /// The bytes before the page area: the control area, the borders, and room up to the next multiple of 2 MiB.
    pub fn page_area_start(&self) -> usize {
        self.page_area_start
    }

    fn protect(&self, range: Range<usize>, rights: MprotectFlags) -> io::Result<()> {
        assert!(range.start <= range.end && range.end <= self.page_area_bytes, "{range:?} lies in the page area");
        self.protect_bytes(self.page_area_start + range.start..self.page_area_start + range.end, rights)
    }

    /// Sets the rights of this process to a range of the mapping.
    fn protect_bytes(&self, range: Range<usize>, rights: MprotectFlags) -> io::Result<()> {
        let os_page_bytes = os_page_bytes();
        assert!(
            range.start.is_multiple_of(os_page_bytes) && range.end.is_multiple_of(os_page_bytes),
            "{range:?} is whole OS pages"
        );
        if range.is_empty() {
            return Ok(());
        }
        // SAFETY: the range lies inside the mapping. Contents stay; a reference through which somebody writes where
        // that is forbidden ends the process and changes nothing.
        unsafe { mprotect(self.base.add(range.start).as_ptr().cast(), range.len(), rights) }?;
        Ok(())
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
    ///
    /// # Safety
    ///
    /// It counts as a write to the range: nobody, in any process, uses these bytes meanwhile.
    pub unsafe fn populate(&self, range: Range<usize>) -> io::Result<()> {
        match self.prefault(range.clone()) {
            // The kernel is older than 5.14 and does not know this advice: touch every OS page.
            Err(Errno::INVAL) => {
                let os_page = os_page_bytes();
                for offset in (range.start / os_page * os_page..range.end).step_by(os_page) {
                    // SAFETY: inside the page area, which is mapped. The caller promises that nobody
                    // accesses the range meanwhile; and adding 0 changes nothing.
                    let byte = unsafe { AtomicU8::from_ptr(self.page_area().add(offset).as_ptr()) };
                    byte.fetch_add(0, Ordering::Relaxed);
                }
                Ok(())
            }
            result => Ok(result?),
        }
    }

    /// Gives memory to `range` of the page area now, if the kernel has a call for that. Unlike [`Region::populate`] it
    /// does not count as a write, so others may use the range meanwhile.
    ///
    /// # Errors
    ///
    /// When there is not enough memory, or no such call (`EINVAL`).
    ///
    /// # Panics
    ///
    /// When `range` does not lie inside the page area.
    pub fn prefault(&self, range: Range<usize>) -> rustix::io::Result<()> {
        self.assert_in_page_area(&range);
        let os_page = os_page_bytes();
        let whole = range.start / os_page * os_page..range.end.next_multiple_of(os_page);
        // SAFETY: populating does not change what the memory holds.
        unsafe { self.advise(whole, Advice::LinuxPopulateWrite) }
    }

    /// Gives the memory of `range` back to the kernel, for all processes.
    ///
    /// It reads zero afterwards and takes memory again when it is touched.
    ///
    /// # Errors
    ///
    /// When the kernel refuses, which it does not for ordinary shared memory.
    ///
    /// # Panics
    ///
    /// When `range` does not lie inside the page area, or an end is not a multiple of the
    /// [OS page](crate::machine::os_page_bytes).
    ///
    /// # Safety
    ///
    /// It counts as a write to the range: no process uses these bytes meanwhile, or has a reference to them.
    pub unsafe fn discard(&self, range: Range<usize>) -> io::Result<()> {
        self.assert_in_page_area(&range);
        assert!(
            range.start.is_multiple_of(os_page_bytes()) && range.end.is_multiple_of(os_page_bytes()),
            "only whole OS pages can be given back, not bytes {range:?}"
        );
        // SAFETY: the caller promises that nobody accesses the range meanwhile.
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
    /// `range` lies inside the page area, and every user of the range expects what `advice` does.
    unsafe fn advise(&self, range: Range<usize>, advice: Advice) -> rustix::io::Result<()> {
        // SAFETY: the range is mapped, and by this region alone.
        unsafe { madvise(self.page_area().add(range.start).as_ptr().cast(), range.len(), advice) }
    }
}

impl Drop for Region {
    /// Unmaps the region from this process. The memory lives until no process maps it.
    fn drop(&mut self) {
        // SAFETY: the mapping is this region's own, and every reference into it borrows the region.
        let result = unsafe { munmap(self.base.as_ptr().cast(), self.mapped_bytes) };
        debug_assert_eq!(result, Ok(()));
    }
}

/// Maps `bytes` of new shared memory at a multiple of 2 MiB.
fn map_shared(bytes: usize) -> io::Result<NonNull<u8>> {
    let memory = match in_memory_file(bytes) {
        Ok(memory) => Some(memory),
        // A limit of file sizes (`ulimit -f`) holds for what only looks like a file, too. Shared memory without any is
        // mapped then; not always, because a kernel that never overcommits would want to have all of it at once.
        Err(Errno::FBIG) => None,
        Err(error) => return Err(error.into()),
    };

    // The kernel aligns to OS pages only, so: (1) reserve 2 MiB too much, (2) map the memory over
    // the aligned part, (3) give the rest back.
    let reserved_bytes = bytes + HUGE_PAGE_BYTES;
    // SAFETY: a mapping at an address of the kernel's choice touches nothing that exists.
    let reserved = unsafe {
        mmap_anonymous(null_mut(), reserved_bytes, ProtFlags::empty(), MapFlags::PRIVATE | MapFlags::NORESERVE)?
    };
    let before = reserved.align_offset(HUGE_PAGE_BYTES);
    let release = |offset: usize, bytes: usize| {
        // SAFETY: `offset` and `bytes` lie inside the reservation, and nothing of it is in use yet.
        let result = unsafe { munmap(reserved.add(offset), bytes) };
        debug_assert!(bytes == 0 || result == Ok(()));
    };
    let access = ProtFlags::READ | ProtFlags::WRITE;
    let flags = MapFlags::SHARED | MapFlags::FIXED | MapFlags::NORESERVE;
    // SAFETY: the aligned part lies inside the reservation, which nobody else knows.
    let mapped = unsafe {
        match &memory {
            Some(memory) => mmap(reserved.add(before), bytes, access, flags, memory, 0),
            None => mmap_anonymous(reserved.add(before), bytes, access, flags),
        }
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

/// A file of `bytes` zeros in memory, without a name.
fn in_memory_file(bytes: usize) -> rustix::io::Result<OwnedFd> {
    let _guard = LimitIsAnError::new();
    let memory = memfd_create("gristmill", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
    ftruncate(&memory, bytes as u64)?;
    // No process can truncate the memory later, which would make an access to it fatal.
    fcntl_add_seals(&memory, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
    Ok(memory)
}
