//! Copy-on-write memory of one worker.
//!
//! ```text
//!   Original      a file in memory: sealed when it changes no more, or changed while no view is in use
//!   PrivateView   the same bytes (or zeros) in one process: a write gives it a copy of the OS page,
//!                 which no other process sees, and `restore` throws the copy away
//! ```

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::ptr::{NonNull, null_mut};
use std::slice;

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, mmap_anonymous, munmap};

use crate::machine::os_page_bytes;
use crate::pagemap::Pagemap;

/// The bytes that [`PrivateView`]s show.
///
/// Only [`Original::write`] changes them, and nothing after [`Original::seal`].
#[derive(Debug)]
pub struct Original {
    memory: File,
    bytes: usize,
}

impl Original {
    /// An original of zeros, rounded up to whole OS pages. It takes memory where it is written or read.
    ///
    /// # Errors
    ///
    /// When the kernel has no memory or no file descriptor left.
    pub fn new(bytes: usize) -> io::Result<Original> {
        let memory = File::from(memfd_create("gristmill original", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?);
        let bytes = whole_os_pages(bytes)?;
        ftruncate(&memory, bytes as u64)?;
        // A view of what is not there any more would end its process.
        fcntl_add_seals(&memory, SealFlags::SHRINK | SealFlags::GROW)?;
        Ok(Original { memory, bytes })
    }

    /// Writes `bytes` from byte `start` on. Views show them, except in OS pages that they have copied.
    ///
    /// # Errors
    ///
    /// When the kernel has no memory left, the bytes do not lie inside, or this is sealed.
    ///
    /// # Safety
    ///
    /// No process has a reference into a view of this original meanwhile.
    pub unsafe fn write(&self, bytes: &[u8], start: usize) -> io::Result<()> {
        self.memory.write_all_at(bytes, start as u64)
    }

    /// Reads from byte `start` on. It needs no further memory or file descriptor.
    ///
    /// # Errors
    ///
    /// When the bytes do not lie inside.
    pub fn read(&self, to: &mut [u8], start: usize) -> io::Result<()> {
        self.memory.read_exact_at(to, start as u64)
    }

    /// Seals it: the kernel allows no further change.
    ///
    /// # Errors
    ///
    /// When the kernel refuses, which it does not.
    pub fn seal(&self) -> io::Result<()> {
        Ok(fcntl_add_seals(&self.memory, SealFlags::WRITE | SealFlags::SEAL)?)
    }
}

/// A private copy-on-write view of an [`Original`], or of zeros.
///
/// ```
/// use gristmill_os::{Original, PrivateView};
///
/// let original = Original::new(100_000)?;
/// // SAFETY: there is no view of it yet.
/// unsafe { original.write(b"flour", 50_000)? };
/// original.seal()?;
/// let mut view = PrivateView::of(&original)?;
/// view.bytes_mut()[50_000] = b'F';
/// let written = view.written()?;
/// assert_eq!(written.len(), 1);
/// assert!(written[0].contains(&50_000));
/// assert_eq!(&PrivateView::of(&original)?.bytes()[50_000..50_005], b"flour");
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
    /// A view of `original`.
    ///
    /// # Errors
    ///
    /// When the process may not map more memory, or has no file descriptor left.
    pub fn of(original: &Original) -> io::Result<PrivateView> {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        // SAFETY: a mapping at an address of the kernel's choice touches nothing that exists.
        let base = unsafe { mmap(null_mut(), original.bytes, access, flags, original.memory.as_fd(), 0)? };
        PrivateView::at(base, original.bytes)
    }

    /// A view of zeros, rounded up to whole OS pages.
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

    /// The bytes of the view.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: mapped and readable as long as `self` lives. The bytes under it are zeros or those of an `Original`,
        // which nobody writes while this reference lives (`Original::write`), and copies of this process that `&mut
        // self` alone leads to; so nothing changes meanwhile.
        unsafe { slice::from_raw_parts(self.base.as_ptr(), self.bytes) }
    }

    /// The bytes of the view, to write. No other process sees the changes.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `bytes`, writable, and the only reference.
        unsafe { slice::from_raw_parts_mut(self.base.as_ptr(), self.bytes) }
    }

    /// The runs of whole OS pages that may differ from the original.
    ///
    /// They include every page that was written since the view was made or the page was restored, and perhaps others.
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

    /// Restores `range` to the original, and frees its memory.
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
        // SAFETY: inside the mapping, which has no other references than `&mut self`; the bytes become those of the
        // original, or zeros, and any byte is valid.
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

/// At least one OS page, because an empty range cannot be mapped.
fn whole_os_pages(bytes: usize) -> io::Result<usize> {
    let whole = bytes.max(1).checked_next_multiple_of(os_page_bytes()).filter(|bytes| *bytes <= isize::MAX as usize);
    whole.ok_or_else(|| io::ErrorKind::OutOfMemory.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_is_seen_by_its_view_alone_until_it_is_restored() {
        let os_page = os_page_bytes();
        let original = Original::new(3 * os_page - 1).unwrap();
        // SAFETY: no view yet.
        unsafe { original.write(b"rye", os_page).unwrap() };
        let (mut one, other) = (PrivateView::of(&original).unwrap(), PrivateView::of(&original).unwrap());
        assert_eq!(one.bytes().len(), 3 * os_page);
        one.bytes_mut()[os_page..][..3].copy_from_slice(b"oat");
        assert_eq!(&other.bytes()[os_page..][..3], b"rye");
        assert_eq!(one.written().unwrap(), vec![os_page..2 * os_page]);
        one.restore(os_page..2 * os_page).unwrap();
        assert_eq!(&one.bytes()[os_page..][..3], b"rye");
        assert_eq!(one.written().unwrap(), []);
    }

    #[test]
    fn views_show_what_is_written_to_their_original() {
        let os_page = os_page_bytes();
        let original = Original::new(2 * os_page).unwrap();
        let mut view = PrivateView::of(&original).unwrap();
        assert_eq!((view.bytes()[0], view.bytes()[os_page]), (0, 0));
        view.bytes_mut()[os_page] = 1;
        view.restore(os_page..2 * os_page).unwrap();
        // SAFETY: the references above are gone.
        unsafe { original.write(&vec![7; 2 * os_page], 0).unwrap() };
        assert!(view.bytes().iter().all(|byte| *byte == 7));
        assert_eq!(view.written().unwrap(), []);
    }

    #[test]
    fn what_is_sealed_cannot_be_written_and_nothing_lies_behind_the_end() {
        let original = Original::new(10).unwrap();
        // SAFETY: there is no view.
        let write = |start| unsafe { original.write(b"x", start) };
        assert!(write(os_page_bytes()).is_err());
        write(0).unwrap();
        original.seal().unwrap();
        assert!(write(0).is_err());
        assert_eq!(PrivateView::of(&original).unwrap().bytes()[0], b'x');
    }

    #[test]
    fn absurd_sizes_are_an_error() {
        assert!(PrivateView::of_zeros(usize::MAX).is_err());
        assert!(PrivateView::of_zeros(isize::MAX as usize).is_err());
        assert!(Original::new(usize::MAX).is_err());
    }
}
