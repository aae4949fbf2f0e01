//! Memory that a worker changes for itself alone.
//!
//! ```text
//!   Sealed        a file in memory that nobody can change any more
//!   PrivateView   the same bytes (or zeros) in one process: a write gives it a copy of the OS page,
//!                 which nobody else sees, and `restore` throws the copy away
//! ```

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::AsFd;
use std::ptr::{NonNull, null_mut};
use std::slice;

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, mmap_anonymous, munmap};

use crate::machine::os_page_bytes;
use crate::pagemap::Pagemap;

/// Bytes in memory that never change again.
#[derive(Debug)]
pub struct Sealed {
    memory: File,
    bytes: usize,
}

impl Sealed {
    /// So many bytes, zero but for what `fill` writes into the file that holds them. What it leaves out takes no memory.
    ///
    /// # Errors
    ///
    /// What `fill` gives, or when the kernel has no memory or no file descriptor left.
    pub fn new(bytes: usize, fill: impl FnOnce(&File) -> io::Result<()>) -> io::Result<Sealed> {
        let memory = File::from(memfd_create("gristmill original", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?);
        let bytes = whole_os_pages(bytes)?;
        ftruncate(&memory, bytes as u64)?;
        fill(&memory)?;
        if memory.metadata()?.len() != bytes as u64 {
            return Err(io::Error::other("the file of an array was given another length"));
        }
        fcntl_add_seals(&memory, SealFlags::WRITE | SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
        Ok(Sealed { memory, bytes })
    }
}

/// A private copy-on-write view of [`Sealed`] bytes, or of zeros.
///
/// ```
/// use gristmill_os::{PrivateView, Sealed};
/// use std::os::unix::fs::FileExt;
///
/// let sealed = Sealed::new(100_000, |file| file.write_all_at(b"flour", 50_000))?;
/// let mut view = PrivateView::of(&sealed)?;
/// view.bytes_mut()[50_000] = b'F';
/// let written = view.written()?;
/// assert_eq!(written.len(), 1);
/// assert!(written[0].contains(&50_000));
/// assert_eq!(&PrivateView::of(&sealed)?.bytes()[50_000..50_005], b"flour");
/// view.restore(written[0].clone())?;
/// assert_eq!(&view.bytes()[50_000..50_005], b"flour");
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct PrivateView {
    base: NonNull<u8>,
    bytes: usize,
    pagemap: Pagemap,
}

// SAFETY: the mapping belongs to this value alone, as a boxed slice would.
unsafe impl Send for PrivateView {}
// SAFETY: as above; shared references only read.
unsafe impl Sync for PrivateView {}

impl PrivateView {
    /// A view of `sealed`.
    ///
    /// # Errors
    ///
    /// When the process may not map more memory, or has no file descriptor left.
    pub fn of(sealed: &Sealed) -> io::Result<PrivateView> {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        // SAFETY: a mapping at an address of the kernel's choice touches nothing that exists.
        let base = unsafe { mmap(null_mut(), sealed.bytes, access, flags, sealed.memory.as_fd(), 0)? };
        PrivateView::at(base, sealed.bytes)
    }

    /// A view of so many zeros, rounded up to whole OS pages.
    ///
    /// # Errors
    ///
    /// As [`PrivateView::of`].
    pub fn of_zeros(bytes: usize) -> io::Result<PrivateView> {
        let bytes = whole_os_pages(bytes)?;
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: as in `of`.
        let base = unsafe { mmap_anonymous(null_mut(), bytes, access, MapFlags::PRIVATE | MapFlags::NORESERVE)? };
        PrivateView::at(base, bytes)
    }

    fn at(base: *mut std::ffi::c_void, bytes: usize) -> io::Result<PrivateView> {
        let base = NonNull::new(base.cast()).expect("the kernel maps nothing at address 0");
        Pagemap::open().map(|pagemap| PrivateView { base, bytes, pagemap }).inspect_err(|_| {
            // SAFETY: mapped by the caller a moment ago, and nobody else knows it.
            let result = unsafe { munmap(base.as_ptr().cast(), bytes) };
            debug_assert_eq!(result, Ok(()));
        })
    }

    /// What this view holds.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: mapped and readable as long as `self` lives. The bytes under it are zeros or a file sealed against
        // writing, and copies of this process that `&mut self` alone leads to; so nothing changes meanwhile.
        unsafe { slice::from_raw_parts(self.base.as_ptr(), self.bytes) }
    }

    /// The same to write: nobody else sees it.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `bytes`, writable, and the only reference.
        unsafe { slice::from_raw_parts_mut(self.base.as_ptr(), self.bytes) }
    }

    /// The runs of bytes that may differ from what the view was of: whole OS pages, every one that was written since the
    /// view was made or the page was restored, and perhaps others.
    ///
    /// # Errors
    ///
    /// When the kernel does not show the page map.
    ///
    /// # Panics
    ///
    /// When another process made this view.
    pub fn written(&self) -> io::Result<Vec<Range<usize>>> {
        let start = self.base.as_ptr() as usize;
        let runs = self.pagemap.own_pages(start..start + self.bytes)?;
        Ok(runs.into_iter().map(|run| run.start - start..run.end - start).collect())
    }

    /// Makes `range` what it was at first, and gives its memory back.
    ///
    /// # Errors
    ///
    /// When the kernel refuses, which it does not for ordinary memory.
    ///
    /// # Panics
    ///
    /// When the range does not lie inside, or an end is not a multiple of the [OS page](crate::machine::os_page_bytes).
    pub fn restore(&mut self, range: Range<usize>) -> io::Result<()> {
        let os_page = os_page_bytes();
        assert!(
            range.start <= range.end
                && range.end <= self.bytes
                && range.start.is_multiple_of(os_page)
                && range.end.is_multiple_of(os_page),
            "only whole OS pages inside a view of {} bytes can be restored, not bytes {range:?}",
            self.bytes
        );
        // SAFETY: inside the mapping, which has no other references than `&mut self`; the bytes become those of the file,
        // or zeros, and any byte is valid.
        let result = unsafe { madvise(self.base.as_ptr().add(range.start).cast(), range.len(), Advice::LinuxDontNeed) };
        Ok(result?)
    }
}

impl Drop for PrivateView {
    fn drop(&mut self) {
        // SAFETY: the mapping is this view's own, and every reference into it borrows the view.
        let result = unsafe { munmap(self.base.as_ptr().cast(), self.bytes) };
        debug_assert_eq!(result, Ok(()));
    }
}

/// At least one OS page: nothing cannot be mapped.
fn whole_os_pages(bytes: usize) -> io::Result<usize> {
    let whole = bytes.max(1).checked_next_multiple_of(os_page_bytes()).filter(|bytes| *bytes <= isize::MAX as usize);
    whole.ok_or_else(|| io::ErrorKind::OutOfMemory.into())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt;

    use super::*;

    #[test]
    fn a_write_is_seen_by_its_view_alone_until_it_is_restored() {
        let os_page = os_page_bytes();
        let sealed = Sealed::new(3 * os_page - 1, |file| file.write_all_at(b"rye", os_page as u64)).unwrap();
        let (mut one, other) = (PrivateView::of(&sealed).unwrap(), PrivateView::of(&sealed).unwrap());
        assert_eq!(one.bytes().len(), 3 * os_page);
        one.bytes_mut()[os_page..][..3].copy_from_slice(b"oat");
        assert_eq!(&other.bytes()[os_page..][..3], b"rye");
        assert_eq!(one.written().unwrap(), vec![os_page..2 * os_page]);
        one.restore(os_page..2 * os_page).unwrap();
        assert_eq!(&one.bytes()[os_page..][..3], b"rye");
        assert_eq!(one.written().unwrap(), []);
    }

    #[test]
    fn sealed_bytes_cannot_be_written_through_a_file_that_was_kept() {
        let mut kept = None;
        let sealed = Sealed::new(10, |file| file.try_clone().map(|file| kept = Some(file))).unwrap();
        assert!(kept.unwrap().write_all_at(b"x", 0).is_err());
        assert_eq!(PrivateView::of(&sealed).unwrap().bytes()[0], 0);
    }

    #[test]
    fn absurd_sizes_are_an_error() {
        assert!(PrivateView::of_zeros(usize::MAX).is_err());
        assert!(PrivateView::of_zeros(isize::MAX as usize).is_err());
        assert!(Sealed::new(usize::MAX, |_| Ok(())).is_err());
    }
}
