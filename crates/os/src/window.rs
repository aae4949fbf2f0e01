//! Memory that processes share piece by piece. A window shows one piece, and is moved to another by mapping it.
//!
//! ```text
//!   Pieces     a file in memory, cut into pieces of equal size
//!   Window     a place in the address space of one process that shows one of them
//! ```

use std::io;
use std::os::fd::OwnedFd;
use std::ptr::{NonNull, null_mut};
use std::slice;
use std::sync::atomic::AtomicU64;

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use crate::file_size::LimitIsAnError;
use crate::machine::os_page_bytes;

/// A file in memory, cut into pieces of equal size. Zero at first; a piece takes memory when it is touched.
///
/// ```
/// use std::sync::atomic::Ordering;
/// use gristmill_os::{Pieces, Window};
///
/// let pieces = Pieces::new(2, 4096)?;
/// let mut window = Window::onto(&pieces, 0)?;
/// window.words()[7].store(42, Ordering::Relaxed);
/// window.show(1)?;
/// assert_eq!(window.words()[7].load(Ordering::Relaxed), 0);
/// assert_eq!(Window::onto(&pieces, 0)?.words()[7].load(Ordering::Relaxed), 42);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct Pieces {
    memory: OwnedFd,
    count: usize,
    piece_bytes: usize,
}

impl Pieces {
    /// Makes `count` pieces of `piece_bytes` each, rounded up to whole OS pages.
    ///
    /// # Errors
    ///
    /// When the kernel has no memory or no file descriptor left, or a limit of file sizes is lower.
    pub fn new(count: usize, piece_bytes: usize) -> io::Result<Pieces> {
        let piece_bytes = piece_bytes.max(1).next_multiple_of(os_page_bytes());
        let bytes = count.checked_mul(piece_bytes).ok_or(io::ErrorKind::OutOfMemory)?;
        let _guard = LimitIsAnError::new();
        let memory = memfd_create("gristmill pieces", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
        ftruncate(&memory, bytes as u64)?;
        // A window onto bytes that are not there any more would end its process.
        fcntl_add_seals(&memory, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
        Ok(Pieces { memory, count, piece_bytes })
    }
}

/// A place in the address space that shows one of several [`Pieces`].
#[derive(Debug)]
pub struct Window<'p> {
    pieces: &'p Pieces,
    base: NonNull<u8>,
}

// SAFETY: the mapping belongs to the process, not to a thread, and is reached through atomics only.
unsafe impl Send for Window<'_> {}
// SAFETY: as above.
unsafe impl Sync for Window<'_> {}

impl<'p> Window<'p> {
    /// Maps a window that shows `piece`.
    ///
    /// # Errors
    ///
    /// When the process may not map more memory.
    ///
    /// # Panics
    ///
    /// When there is no such piece.
    pub fn onto(pieces: &'p Pieces, piece: usize) -> io::Result<Window<'p>> {
        // SAFETY: a mapping at an address of the kernel's choice touches nothing that exists.
        let base = unsafe { map(pieces, piece, null_mut(), MapFlags::SHARED)? };
        Ok(Window { pieces, base: NonNull::new(base.cast()).expect("the kernel maps nothing at address 0") })
    }

    /// Moves the window to another piece. What was written stays in the old one.
    ///
    /// # Errors
    ///
    /// As [`Window::onto`]; the window then still shows the piece that it showed.
    ///
    /// # Panics
    ///
    /// When there is no such piece.
    pub fn show(&mut self, piece: usize) -> io::Result<()> {
        let place = self.base.as_ptr().cast();
        // SAFETY: the range is this window's own mapping, of the same length, and no reference into it is left, since
        // they borrow the window.
        unsafe { map(self.pieces, piece, place, MapFlags::SHARED | MapFlags::FIXED)? };
        Ok(())
    }

    /// The piece, as words that others may change.
    #[inline]
    pub fn words(&self) -> &[AtomicU64] {
        let count = self.pieces.piece_bytes / size_of::<AtomicU64>();
        // SAFETY: mapped, writable and aligned as long as `self` lives and is not moved to another piece, which needs
        // `&mut self`. The file cannot shrink. All processes reach these bytes as `AtomicU64` only, for which every bit
        // pattern is valid.
        unsafe { slice::from_raw_parts(self.base.as_ptr().cast(), count) }
    }
}

impl Drop for Window<'_> {
    fn drop(&mut self) {
        // SAFETY: the mapping is this window's own, and references into it borrow the window.
        let result = unsafe { munmap(self.base.as_ptr().cast(), self.pieces.piece_bytes) };
        debug_assert_eq!(result, Ok(()));
    }
}

/// Maps a piece.
///
/// # Safety
///
/// With [`MapFlags::FIXED`], nobody uses the bytes of a piece at `place`, and they are a mapping of the caller's.
unsafe fn map(
    pieces: &Pieces,
    piece: usize,
    place: *mut std::ffi::c_void,
    flags: MapFlags,
) -> io::Result<*mut std::ffi::c_void> {
    assert!(piece < pieces.count, "piece {piece} of {}", pieces.count);
    let offset = (piece * pieces.piece_bytes) as u64;
    let access = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: the caller's promise.
    Ok(unsafe { mmap(place, pieces.piece_bytes, access, flags, &pieces.memory, offset)? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering;

    #[test]
    fn two_windows_show_the_same_piece_and_a_moved_one_shows_another() {
        let pieces = Pieces::new(3, 1).expect("pieces");
        let [mut first, mut second] = [2, 0].map(|piece| Window::onto(&pieces, piece).expect("a window"));
        first.words()[0].store(1, Ordering::Relaxed);
        second.show(2).expect("moved");
        second.words()[0].fetch_add(5, Ordering::Relaxed);
        assert_eq!(first.words()[0].load(Ordering::Relaxed), 6);
        first.show(1).expect("moved");
        assert_eq!(first.words()[0].load(Ordering::Relaxed), 0);
        assert_eq!(second.words()[0].load(Ordering::Relaxed), 6);
    }
}
