//! Private memory of one process.

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::cell::RefCell;
use std::io;
use std::mem::MaybeUninit;
use std::ops::{Deref, DerefMut};
use std::ptr::{self, NonNull};
use std::rc::Rc;

use rustix::mm::{Advice, madvise};

use crate::machine::os_page_bytes;

/// The bytes of a huge page.
pub const HUGE_PAGE_BYTES: usize = 2 << 20;

/// The bytes of a cache line, or a part of one.
const LINE_BYTES: usize = 64;

/// Memory in blocks of [`BLOCK_BYTES`], cut from huge pages.
///
/// Huge pages (2 MiB, if the kernel grants them) take fewer faults and fewer TLB misses. A block that is dropped is
/// handed out next, while the caches still hold it. Huge pages are freed when their blocks and the `Blocks` are
/// dropped.
///
/// ```
/// use gristmill_os::memory::{BLOCK_BYTES, Blocks};
///
/// let blocks = Blocks::default();
/// let mut block = blocks.take(100);
/// block.append(b"grist");
/// assert_eq!((block.bytes(), block.room()), (&b"grist"[..], BLOCK_BYTES - 5));
/// assert_eq!(blocks.take(BLOCK_BYTES + 1).room(), BLOCK_BYTES + 1); // One that is too large is memory of its own.
/// ```
#[derive(Clone, Default)]
pub struct Blocks(Rc<RefCell<Cut>>);

/// Bytes of a block.
pub const BLOCK_BYTES: usize = 16 << 10;

#[derive(Default)]
struct Cut {
    huge_pages: Vec<NonNull<u8>>,
    free: Vec<NonNull<u8>>,
}

/// A buffer of fixed capacity at a fixed address.
pub struct Block {
    start: NonNull<u8>,
    used: usize,
    capacity: usize,
    /// The place to return it to on drop, if it is part of a huge page.
    home: Option<Blocks>,
}

impl Blocks {
    const HUGE_PAGE: Layout = match Layout::from_size_align(HUGE_PAGE_BYTES, HUGE_PAGE_BYTES) {
        Ok(layout) => layout,
        Err(_) => panic!("a huge page has a layout"),
    };

    /// An empty block with room for `bytes`, or for [`BLOCK_BYTES`] if that is more.
    pub fn take(&self, bytes: usize) -> Block {
        if bytes > BLOCK_BYTES {
            return Block { start: allocate(Block::layout(bytes)), used: 0, capacity: bytes, home: None };
        }
        let mut cut = self.0.borrow_mut();
        if cut.free.is_empty() {
            let page = allocate(Self::HUGE_PAGE);
            // The first page is an ordinary one, so that small users need not wait for a huge page to be cleared.
            if !cut.huge_pages.is_empty() {
                prefer_huge(page, HUGE_PAGE_BYTES);
            }
            cut.huge_pages.push(page);
            // SAFETY: the blocks lie inside the page. The first is to be handed out first.
            cut.free.extend((0..HUGE_PAGE_BYTES).step_by(BLOCK_BYTES).rev().map(|at| unsafe { page.add(at) }));
        }
        let start = cut.free.pop().expect("a page has blocks");
        Block { start, used: 0, capacity: BLOCK_BYTES, home: Some(self.clone()) }
    }
}

impl Drop for Cut {
    fn drop(&mut self) {
        for page in &self.huge_pages {
            // SAFETY: allocated in `take` with this layout; blocks keep `Blocks` alive, so there is none any more.
            unsafe { dealloc(page.as_ptr(), Blocks::HUGE_PAGE) };
        }
    }
}

impl Block {
    fn layout(bytes: usize) -> Layout {
        Layout::array::<u8>(bytes).expect("less than the address space")
    }

    /// The appended bytes.
    #[inline(always)]
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: `used` bytes have been written, and belong to this block alone.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.used) }
    }

    /// The appended bytes, to change.
    #[inline(always)]
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and `self` is borrowed alone.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.used) }
    }

    /// Prefetches the byte at `at`.
    #[inline(always)]
    pub fn prefetch(&self, at: usize) {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: a prefetch reads and writes nothing, whatever the address.
        unsafe {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            _mm_prefetch::<_MM_HINT_T0>(self.start.as_ptr().wrapping_add(at).cast());
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = at;
    }

    /// The remaining capacity in bytes.
    #[inline(always)]
    pub fn room(&self) -> usize {
        self.capacity - self.used
    }

    /// Appends `bytes`.
    ///
    /// # Panics
    /// When there is no room for them.
    #[inline(always)]
    pub fn append(&mut self, bytes: &[u8]) {
        assert!(bytes.len() <= self.room(), "a block with room for {} bytes is given {}", self.room(), bytes.len());
        // SAFETY: there is room for them, and nobody else has a borrow of this block.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), self.start.as_ptr().add(self.used), bytes.len()) };
        self.used += bytes.len();
    }

    /// Appends the first `bytes` of `from`; fast for few bytes.
    ///
    /// # Panics
    /// When there is no room for them, or fewer in `from`.
    #[inline(always)]
    pub fn append_first(&mut self, from: &[u8], bytes: usize) {
        const FEW: usize = 32;
        if bytes <= FEW && from.len() >= FEW && self.room() >= FEW {
            // SAFETY: `from` has FEW bytes and this block has room for them, and nobody else has a borrow of this
            // block. Bytes beyond `bytes` are not counted as used.
            unsafe { ptr::copy_nonoverlapping(from.as_ptr(), self.start.as_ptr().add(self.used), FEW) };
            self.used += bytes;
        } else {
            self.append(&from[..bytes]);
        }
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        match &self.home {
            Some(Blocks(cut)) => cut.borrow_mut().free.push(self.start),
            // SAFETY: allocated in `take` with this layout.
            None => unsafe { dealloc(self.start.as_ptr(), Block::layout(self.capacity)) },
        }
    }
}

/// Asks the kernel for huge pages wherever one fits into this memory, which has not been used yet. It may refuse.
pub fn prefer_huge_pages<T>(unused: &mut [MaybeUninit<T>]) {
    let (start, bytes) = (unused.as_mut_ptr().cast::<u8>(), size_of_val(unused));
    let before = start.align_offset(HUGE_PAGE_BYTES).min(bytes);
    let whole = (bytes - before) / HUGE_PAGE_BYTES * HUGE_PAGE_BYTES;
    if whole > 0 {
        // SAFETY: the huge pages lie inside `unused`.
        let start = unsafe { start.add(before) };
        prefer_huge(NonNull::new(start).expect("memory has an address"), whole);
    }
}

/// Puts memory out of all caches of the machine, so that the next access waits for the memory itself. Returns false
/// where the processor has no instruction for it that programs may use.
///
/// ```
/// let numbers = vec![1_u64; 1 << 10];
/// let is_out = gristmill_os::memory::put_out_of_caches(&numbers);
/// assert_eq!(is_out, cfg!(any(target_arch = "x86_64", target_arch = "aarch64")));
/// assert_eq!(numbers.iter().sum::<u64>(), 1 << 10);
/// ```
pub fn put_out_of_caches<T>(memory: &[T]) -> bool {
    let before = memory.as_ptr().addr() % LINE_BYTES;
    let start = memory.as_ptr().cast::<u8>().wrapping_sub(before);
    let lines = (0..before + size_of_val(memory)).step_by(LINE_BYTES).map(|at| start.wrapping_add(at));
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every processor of this kind has the instructions, each line has a part of `memory`, and its content
    // stays the same.
    unsafe {
        use std::arch::x86_64::{_mm_clflush, _mm_mfence};
        lines.for_each(|line| _mm_clflush(line));
        _mm_mfence();
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: as above; the kernel lets programs use these.
    unsafe {
        use std::arch::asm;
        lines.for_each(|line| asm!("dc civac, {}", in(reg) line, options(nostack, preserves_flags)));
        asm!("dsb ish", options(nostack, preserves_flags));
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    drop(lines);
    cfg!(any(target_arch = "x86_64", target_arch = "aarch64"))
}

/// Returns the NUMA node of each OS page of this memory that is there; `None` for pages that are not, because nothing
/// was written yet.
///
/// # Errors
/// The kernel has no NUMA, or a sandbox forbids the call.
///
/// ```
/// let numbers = vec![1_u64; 1 << 12];
/// if let Ok(nodes) = gristmill_os::memory::nodes_of(&numbers) {
///     assert!(nodes.len() >= 8 && nodes.iter().all(Option::is_some));
/// }
/// ```
pub fn nodes_of<T>(memory: &[T]) -> io::Result<Vec<Option<u32>>> {
    let (start, page) = (memory.as_ptr().addr(), os_page_bytes());
    let first = start / page * page;
    let pages: Vec<usize> = (first..start + size_of_val(memory)).step_by(page).collect();
    let mut nodes: Vec<libc::c_int> = vec![-1; pages.len()];
    const THIS_PROCESS: libc::c_int = 0;
    // SAFETY: without target nodes the kernel moves nothing. It reads the addresses, which it does not follow, and
    // stores a number for each into `nodes`, which is as long.
    let failed = unsafe {
        libc::syscall(
            libc::SYS_move_pages,
            THIS_PROCESS,
            pages.len(),
            pages.as_ptr(),
            ptr::null::<libc::c_int>(),
            nodes.as_mut_ptr(),
            0,
        )
    };
    match failed {
        0 => Ok(nodes.into_iter().map(|node| u32::try_from(node).ok()).collect()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Asks the kernel for huge pages. It may refuse.
fn prefer_huge(start: NonNull<u8>, bytes: usize) {
    // SAFETY: the advice does not change what memory holds.
    let _ = unsafe { madvise(start.as_ptr().cast(), bytes, Advice::LinuxHugepage) };
}

fn allocate(layout: Layout) -> NonNull<u8> {
    // SAFETY: no layout here has a size of 0.
    NonNull::new(unsafe { alloc(layout) }).unwrap_or_else(|| handle_alloc_error(layout))
}

/// An array in huge pages (2 MiB), if the kernel grants them.
///
/// Huge pages take fewer faults and fewer TLB misses.
///
/// ```
/// let mut table = gristmill_os::memory::HugeArray::<u64, 1000>::filled(&0);
/// table[7] = 1;
/// assert_eq!(table.iter().sum::<u64>(), 1);
/// ```
pub struct HugeArray<T, const N: usize>(NonNull<[T; N]>);

// SAFETY: it owns its elements, as a Box does.
unsafe impl<T: Send, const N: usize> Send for HugeArray<T, N> {}

impl<T, const N: usize> HugeArray<T, N> {
    /// Whole huge pages; the alignment of a huge page is a multiple of any type's.
    const LAYOUT: Layout = {
        let bytes = size_of::<[T; N]>();
        assert!(bytes > 0 && align_of::<T>() <= HUGE_PAGE_BYTES);
        match Layout::from_size_align(bytes.next_multiple_of(HUGE_PAGE_BYTES), HUGE_PAGE_BYTES) {
            Ok(layout) => layout,
            Err(_) => panic!("the array does not fit the address space"),
        }
    };

    /// An array of `N` copies of `value`.
    pub fn filled(value: &T) -> HugeArray<T, N>
    where
        T: Clone,
    {
        let start = allocate(Self::LAYOUT).cast::<T>();
        prefer_huge(start.cast(), Self::LAYOUT.size());
        for at in 0..N {
            // SAFETY: `at` lies inside the allocation. Should a clone panic, the memory is leaked.
            unsafe { start.add(at).write(value.clone()) };
        }
        HugeArray(start.cast())
    }
}

impl<T, const N: usize> Drop for HugeArray<T, N> {
    fn drop(&mut self) {
        // SAFETY: allocated in `filled` with this layout, all elements written, and nobody borrows them any more.
        unsafe {
            ptr::drop_in_place(self.0.as_ptr());
            dealloc(self.0.as_ptr().cast(), Self::LAYOUT);
        }
    }
}

impl<T, const N: usize> Deref for HugeArray<T, N> {
    type Target = [T; N];

    #[inline(always)]
    fn deref(&self) -> &[T; N] {
        // SAFETY: all elements were written in `filled`; the borrow is that of `self`.
        unsafe { self.0.as_ref() }
    }
}

impl<T, const N: usize> DerefMut for HugeArray<T, N> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [T; N] {
        // SAFETY: as above, and `self` is borrowed alone.
        unsafe { self.0.as_mut() }
    }
}
