//! The master copy of an array that many workers change.
//!
//! ```text
//!  control area                                                page area
//!  | latch, u32 per OS page | state, u32 per OS page | gate |   | the array, in words of 64 bits |
//!
//!  state:  zeros --touch--> changed --settle--> settled: the original that views are of has the same
//!                              ^-----touch---------+
//! ```
//!
//! *Access.* A worker that is [`Inside`] sees the array as words, accessed as atomics, and holds the latch of an OS
//! page in which it changes words. It sees its [`MasterView`] as bytes. While the array is [`Closed`], the process
//! that made it sees it as bytes; between jobs, by `&mut`. `gate.rs` ensures that nobody is inside then.

use std::io;
use std::marker::PhantomData;
use std::ops::Range;
use std::slice;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use gristmill_os::ended::{Ended, this_worker};
use gristmill_os::machine::os_page_bytes;
use gristmill_os::{Original, PrivateView, Region};
use gristmill_ring::Latch;

use crate::gate::{GATE_WORDS, Gate};

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
    /// Tells originals of this array from others.
    number: u64,
}

/// The array while no worker uses it. Dropping this lets workers in.
pub struct Closed<'m> {
    master: &'m Master,
    /// Whether dropping this ends the job's use of the array.
    rests: bool,
    /// Only a thread of the process that made the array has it.
    stays: PhantomData<*const ()>,
}

/// The use of the array by a worker. Dropping this ends it.
pub struct Inside<'m> {
    master: &'m Master,
    slot: usize,
    worker: u32,
    /// The worker's end is its end.
    stays: PhantomData<*const ()>,
}

/// The array's content when it was last settled.
#[derive(Debug)]
pub struct MasterOriginal {
    original: Original,
    of: u64,
}

/// A worker's view of the array: the original and its own changes, which no other process sees.
#[derive(Debug)]
pub struct MasterView {
    own: PrivateView,
    /// The original without the changes. `None`: zeros.
    twin: Option<PrivateView>,
    of: u64,
}

impl Master {
    /// An array of zero bytes. It takes no memory before it is written.
    ///
    /// # Errors
    /// The kernel's error from `memfd_create`, `ftruncate` or `mmap`.
    pub fn new(bytes: usize) -> io::Result<Master> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let os_pages = bytes.div_ceil(os_page_bytes());
        let region = Region::new((2 * os_pages + GATE_WORDS) * size_of::<AtomicU32>(), bytes)?;
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        Ok(Master { region, bytes, os_pages, maker: std::process::id(), number })
    }

    /// The length in OS pages, the last of which may extend beyond the array.
    pub fn os_pages(&self) -> usize {
        self.os_pages
    }

    /// Takes the array for a job; `None` if another has it, or in a fork.
    pub fn begin(&self) -> Option<Closed<'_>> {
        (self.is_mine() && self.gate().begin()).then(|| Closed::new(self))
    }

    /// Keeps workers out; `None` in a fork, if it is closed already, if no job has it, or if somebody is inside. Then
    /// it stays closed.
    pub fn close(&self) -> Option<Closed<'_>> {
        (self.is_mine() && self.gate().close()).then(|| Closed::new(self))
    }

    /// Lets the worker on this thread, which has `slot`, use the array.
    ///
    /// # Panics
    /// When it is closed, or a worker is inside with this slot.
    pub fn enter(&self, slot: usize) -> Inside<'_> {
        self.gate().enter(slot);
        Inside { master: self, slot, worker: this_worker(), stays: PhantomData }
    }

    /// The worker that had `slot` has ended, perhaps inside.
    pub fn let_out(&self, slot: usize, ended: &Ended) {
        self.gate().let_out(slot, ended);
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

    /// An original of zeros, to [settle](Closed::settle).
    ///
    /// # Errors
    /// When the kernel has no memory or no file descriptor left.
    pub fn original(&self) -> io::Result<MasterOriginal> {
        Ok(MasterOriginal { original: Original::new(self.os_pages * os_page_bytes())?, of: self.number })
    }

    /// A view of `original`, or of zeros.
    ///
    /// # Errors
    /// When the process may not map more memory, or has no file descriptor left.
    ///
    /// # Panics
    /// When it is the original of another array.
    pub fn view(&self, original: Option<&MasterOriginal>) -> io::Result<MasterView> {
        assert!(original.is_none_or(|original| original.of == self.number), "a view is of an original of its array");
        let (own, twin) = match original {
            Some(MasterOriginal { original, .. }) => (PrivateView::of(original)?, Some(PrivateView::of(original)?)),
            None => (PrivateView::of_zeros(self.os_pages * os_page_bytes())?, None),
        };
        Ok(MasterView { own, twin, of: self.number })
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
    /// In a fork, and while a job has it.
    pub fn bytes(&mut self) -> &[u8] {
        self.bytes_mut()
    }

    /// The array, to write. Writing does not [touch](Master::touch) it.
    ///
    /// # Panics
    /// In a fork, and while a job has it.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        assert!(self.is_mine(), "an array is read and filled by the process that made it, not by its workers");
        assert!(self.gate().is_resting(), "an array is read and filled when the workers that use it have ended");
        // SAFETY: the bytes lie inside the page area. No reference into it exists in this process, because this one is
        // exclusive. In no other process is there one: nobody is inside a resting array, and nobody enters, because
        // only this process ends its rest, by `begin`, which this reference excludes.
        unsafe { slice::from_raw_parts_mut(self.region.page_area().as_ptr(), self.bytes) }
    }

    /// True in the process that made the array, false in its forks.
    fn is_mine(&self) -> bool {
        self.maker == std::process::id()
    }

    fn gate(&self) -> Gate<'_> {
        Gate::new(self.region.u32s(2 * self.os_pages * size_of::<AtomicU32>(), GATE_WORDS))
    }

    fn state(&self, os_page: usize) -> &AtomicU32 {
        &self.region.u32s(self.os_pages * size_of::<AtomicU32>(), self.os_pages)[os_page]
    }

    /// The words of one OS page. Callers are inside, or have the array closed without a reference to its bytes.
    #[inline]
    fn words(&self, os_page: usize) -> &[AtomicU64] {
        assert!(os_page < self.os_pages, "OS page {os_page} of an array of {}", self.os_pages);
        // SAFETY: the page lies inside the page area, which is aligned to 2 MiB; zero and all other bits are valid.
        // While somebody is inside there is no reference to bytes of the area, in any process, and others reach it as
        // `AtomicU64` only.
        unsafe {
            let first = self.region.page_area().add(os_page * os_page_bytes());
            slice::from_raw_parts(first.cast().as_ptr(), os_page_bytes() / size_of::<AtomicU64>())
        }
    }
}

impl<'m> Closed<'m> {
    fn new(master: &'m Master) -> Closed<'m> {
        Closed { master, rests: false, stays: PhantomData }
    }

    /// Writes the OS pages touched since the last call to `original`.
    ///
    /// # Errors
    /// When the kernel has no memory left, or the original is sealed.
    ///
    /// # Panics
    /// When it is the original of another array.
    pub fn settle(&self, original: &MasterOriginal) -> io::Result<()> {
        let Master { os_pages, number, .. } = *self.master;
        assert_eq!(original.of, number, "an array is settled in an original of its own");
        let array = self.os_pages_bytes();
        let is_changed = |os_page: &usize| self.master.state(*os_page).load(Ordering::Relaxed) == CHANGED;
        let mut os_page = 0;
        while let Some(first) = (os_page..os_pages).find(is_changed) {
            os_page = (first..os_pages).find(|os_page| !is_changed(os_page)).unwrap_or(os_pages);
            let bytes = first * os_page_bytes()..os_page * os_page_bytes();
            // SAFETY: views of the original are `MasterView`s, which show their bytes to a worker that is inside only,
            // and nobody is.
            unsafe { original.original.write(&array[bytes.clone()], bytes.start)? };
            (first..os_page).for_each(|os_page| self.master.state(os_page).store(SETTLED, Ordering::Relaxed));
        }
        Ok(())
    }

    /// The array.
    pub fn bytes(&self) -> &[u8] {
        &self.os_pages_bytes()[..self.master.bytes]
    }

    /// The words of one OS page.
    pub fn words(&mut self, os_page: usize) -> &[AtomicU64] {
        self.master.words(os_page)
    }

    /// The job is over: the array is the caller's again.
    pub fn rest(mut self) {
        self.rests = true;
    }

    /// The array with the rest of the last OS page.
    fn os_pages_bytes(&self) -> &[u8] {
        let Master { region, os_pages, .. } = self.master;
        // SAFETY: these bytes are the page area. Workers change them inside, where nobody is while this lives; this
        // process changes them through `bytes_mut`, which panics meanwhile, and through `words`, which this reference
        // excludes.
        unsafe { slice::from_raw_parts(region.page_area().as_ptr(), os_pages * os_page_bytes()) }
    }
}

impl Drop for Closed<'_> {
    fn drop(&mut self) {
        match self.rests {
            // A fork has a copy of it.
            _ if !self.master.is_mine() => {}
            true => self.master.gate().rest(),
            false => self.master.gate().open(),
        }
    }
}

impl Inside<'_> {
    /// The words of one OS page. A worker that stores one holds the [latch](Master::latch).
    ///
    /// # Panics
    /// In a fork of the worker.
    #[inline]
    pub fn words(&self, os_page: usize) -> &[AtomicU64] {
        self.check(self.master.number);
        self.master.words(os_page)
    }

    /// Panics if this is not the worker that has entered the array `of`.
    fn check(&self, of: u64) {
        assert_eq!(self.worker, this_worker(), "the worker is inside, not its fork");
        assert_eq!(self.master.number, of, "the worker is inside of another array");
    }
}

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        // A fork has a copy of it.
        if self.worker == this_worker() {
            self.master.gate().leave(self.slot);
        }
    }
}

impl MasterOriginal {
    /// Reads from byte `start` on. It needs no further memory or file descriptor.
    ///
    /// # Errors
    /// When the bytes do not lie inside.
    pub fn read(&self, to: &mut [u8], start: usize) -> io::Result<()> {
        self.original.read(to, start)
    }

    /// Seals it: it is not settled again.
    ///
    /// # Errors
    /// When the kernel refuses, which it does not.
    pub fn seal(&self) -> io::Result<()> {
        self.original.seal()
    }
}

/// In whole OS pages. Methods that need a worker inside panic if it is inside of another array, or is a fork of it.
impl MasterView {
    /// The original with the worker's changes.
    pub fn own<'i>(&'i self, inside: &'i Inside<'_>) -> &'i [u8] {
        inside.check(self.of);
        self.own.bytes()
    }

    /// The same, to write.
    pub fn own_mut<'i>(&'i mut self, inside: &'i Inside<'_>) -> &'i mut [u8] {
        inside.check(self.of);
        self.own.bytes_mut()
    }

    /// The original; `None`: zeros.
    pub fn twin<'i>(&'i self, inside: &'i Inside<'_>) -> Option<&'i [u8]> {
        inside.check(self.of);
        self.twin.as_ref().map(PrivateView::bytes)
    }

    /// The runs of OS pages, in bytes, that may differ from the original: as [`PrivateView::written`].
    ///
    /// # Errors
    /// When the kernel does not show the page map.
    pub fn written(&self) -> io::Result<Vec<Range<usize>>> {
        self.own.written()
    }

    /// Throws away changes in `range`: as [`PrivateView::restore`].
    ///
    /// # Errors
    /// When the kernel refuses, which it does not for ordinary memory.
    pub fn restore(&mut self, range: Range<usize>) -> io::Result<()> {
        self.own.restore(range)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_bytes_are_the_same_memory() {
        let mut master = Master::new(os_page_bytes() + 9).unwrap();
        assert_eq!(master.os_pages(), 2);
        drop(master.begin().unwrap());
        master.enter(1).words(1)[1].store(u64::from_ne_bytes(*b"barleyee"), Ordering::Relaxed);
        master.close().unwrap().rest();
        assert_eq!(master.bytes().len(), os_page_bytes() + 9);
        assert_eq!(&master.bytes()[os_page_bytes()..], b"\0\0\0\0\0\0\0\0b");
        master.bytes_mut()[0] = 1;
        assert_eq!(master.begin().unwrap().words(0)[0].load(Ordering::Relaxed).to_ne_bytes()[0], 1);
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
        assert_eq!(master.begin().unwrap().words(2)[0].load(Ordering::Relaxed), 0);
    }

    #[test]
    fn what_was_touched_since_the_last_time_is_settled() {
        let master = Master::new(4 * os_page_bytes() - 1).unwrap();
        let original = master.original().unwrap();
        let view = master.view(Some(&original)).unwrap();
        drop(master.begin().unwrap());
        let settled = |values: [(usize, u64); 2], touched: usize| {
            for (os_page, value) in values {
                master.enter(1).words(os_page)[0].store(value, Ordering::Relaxed);
            }
            master.touch(touched);
            master.close().unwrap().settle(&original).unwrap();
            let inside = master.enter(1);
            [0, 1, 2, 3].map(|os_page| view.own(&inside)[os_page * os_page_bytes()])
        };
        assert_eq!(settled([(1, 7), (2, 9)], 1), [0, 7, 0, 0]);
        assert_eq!(settled([(1, 8), (3, 5)], 2), [0, 7, 9, 0], "settled once, and not touched since");
        assert_eq!(settled([(1, 8), (3, 5)], 3), [0, 7, 9, 5]);
        assert_eq!(settled([(1, 8), (3, 6)], 1), [0, 8, 9, 5]);
        assert_eq!(master.close().unwrap().bytes().len(), 4 * os_page_bytes() - 1);
        assert_eq!([0, 1, 2, 3].map(|os_page| master.is_touched(os_page)), [false, true, true, true]);
    }

    fn panics<R>(body: impl FnOnce() -> R) -> bool {
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| drop(body()))).is_err()
    }

    #[test]
    fn nobody_enters_an_array_that_is_closed_or_resting() {
        let mut master = Master::new(1).unwrap();
        assert!(panics(|| master.enter(1).words(0).len()));
        let closed = master.begin().unwrap();
        assert!(panics(|| master.enter(1).words(0).len()));
        assert!(master.begin().is_none(), "a job has it");
        drop(closed);
        assert!(!panics(|| master.enter(1).words(0).len()));
        assert!(panics(|| master.bytes_mut().len()), "a job has it");
    }

    #[test]
    fn an_array_is_not_closed_while_a_worker_is_inside_unless_it_has_ended_there() {
        for ends in [false, true] {
            let mut master = Master::new(1).unwrap();
            drop(master.begin().unwrap());
            let ended = std::thread::scope(|scope| {
                let enters = || std::mem::forget(master.enter(3));
                gristmill_os::ended::WorkerThread::spawn(scope, "worker".to_owned(), enters).unwrap().join()
            });
            assert!(panics(|| master.enter(3)), "another worker by the same name");
            if ends {
                master.let_out(3, &ended);
            }
            assert_eq!(master.close().map(Closed::rest).is_some(), ends);
            assert_eq!(panics(|| master.bytes().len()), !ends);
        }
    }

    #[test]
    fn a_view_is_seen_by_who_is_inside_of_its_own_array() {
        let [one, other] = [1, 1].map(|bytes| Master::new(bytes).unwrap());
        drop((one.begin().unwrap(), other.begin().unwrap()));
        let view = one.view(None).unwrap();
        assert!(!panics(|| view.own(&one.enter(1)).len()));
        assert!(panics(|| view.own(&other.enter(1)).len()));
        assert!(panics(|| other.view(Some(&one.original().unwrap()))));
    }
}
