//! Private memory of one process.

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::mem::MaybeUninit;
use std::ops::{Deref, DerefMut};
use std::ptr::{self, NonNull};

use rustix::mm::{Advice, madvise};

const HUGE_PAGE_BYTES: usize = 2 << 20;

/// Has the kernel give memory to the whole OS pages inside `spare` now: one call instead of a fault for each. A kernel
/// older than 5.14, or without memory to give, leaves it to the faults.
///
/// ```
/// let mut list: Vec<u8> = Vec::with_capacity(1 << 20);
/// gristmill_os::memory::populate(list.spare_capacity_mut());
/// list.resize(1 << 20, 7);
/// ```
pub fn populate(spare: &mut [MaybeUninit<u8>]) {
    let os_page = rustix::param::page_size();
    let before = spare.as_ptr().align_offset(os_page);
    let bytes = spare.len().saturating_sub(before) / os_page * os_page;
    if bytes > 0 {
        // SAFETY: `bytes` bytes behind `before` lie inside `spare`, which is borrowed to be written. Populating does not
        // change what the memory holds.
        let _ = unsafe { madvise(spare[before..].as_mut_ptr().cast(), bytes, Advice::LinuxPopulateWrite) };
    }
}

/// An array that begins at a huge page (2 MiB), which the kernel is asked to use: fewer faults, and addresses are found
/// faster. A kernel that does not want to uses small pages.
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

    /// `N` times `value`.
    pub fn filled(value: &T) -> HugeArray<T, N>
    where
        T: Clone,
    {
        // SAFETY: the layout has a size above 0.
        let start = unsafe { alloc(Self::LAYOUT) };
        let Some(start) = NonNull::new(start.cast::<T>()) else { handle_alloc_error(Self::LAYOUT) };
        // SAFETY: the memory that was allocated a line ago, from its first byte to its last. The advice does not change
        // what it holds, and its failure is the kernel's "no".
        let _ = unsafe { madvise(start.as_ptr().cast(), Self::LAYOUT.size(), Advice::LinuxHugepage) };
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
