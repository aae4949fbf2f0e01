//! Arrays that map functions write to: twin and diff, as in DMR (Yu and Zhang 2017, section 5.1; docs/bibliography.md).
//!
//! ```text
//!   original    the array as it was when the job, or this step of a job in steps, began: nobody changes it while there
//!       |       are tasks. Nothing at all the first time, when it is zeros
//!       |  private, copy on write
//!       v
//!   view        of one worker: the map function writes here; the kernel knows which OS pages were written
//!       |  diff: OS page by OS page, only what is different from the original (the twin)
//!       v
//!   master      the array as committed tasks have made it; the caller reads it after the job, and between two steps
//! ```
//!
//! A task is merged after its map function has returned and before its epoch is committed. Therefore:
//!
//! - A task that fails before the merge leaves no trace.
//! - A worker that dies during the merge, or before the commit, leaves a part of the task's changes. The task runs
//!   again and makes the same changes, and a change that is already there is no conflict.
//! - A map function sees the original and its own writes, whatever else runs or has run on its worker.
//! - Two tasks that change one element to different values are detected, wherever and whenever they run.
//!
//! When a step is complete, no worker is in a task, and the coordinator updates the original: it copies what the step
//! has changed. The views map the same file, so they show the changes, and workers need not do anything. For this the
//! original of a job in steps exists from the beginning, and is not sealed as those of other jobs are.

use std::cell::{Cell, RefCell};
use std::fmt::Display;
use std::io;
use std::marker::PhantomData;
use std::ops::Range;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bytemuck::{cast_slice, cast_slice_mut};
use gristmill_os::ended::Ended;
use gristmill_os::machine::os_page_bytes;
use gristmill_page::{Closed, Inside, Master, MasterOriginal, MasterView};
use gristmill_ring::Latch;

use crate::data::seed::Seed;
use crate::data::short::Short;
use crate::error::{Asked, Error, Result};
use crate::shared_output::diff::{Clash, merge};

/// The number of OS pages of the master that are faulted in together.
const PREFAULT_OS_PAGES: usize = 64;

/// A number type of a [`SharedOutput`]: `f64`, `f32`, `u64`, `i64`, `u32`, `i32` or `u8`.
pub trait Plain: bytemuck::Pod + Display + Send + Sync + sealed::Sealed {}

mod sealed {
    pub trait Sealed {}
}

macro_rules! plain {
    ($($number:ty),*) => { $(impl sealed::Sealed for $number {} impl Plain for $number {})* };
}

plain!(f64, f32, u64, i64, u32, i32, u8);

/// An array that the map function of a job writes to.
///
/// Every worker has its own view. A map function sees the array as it was when the job started, plus its own writes.
/// When it has returned, the elements that it changed are merged into the array. Only one task may change an element,
/// or several tasks to the same value; otherwise the job ends with [`Error::Conflict`]. Writing the old value is no
/// change. If the job fails, the array is unchanged.
///
/// In a job in steps ([`Job::iterate`](crate::Job::iterate)) this holds for each step. Map functions, and the caller
/// between two steps ([`Step::values`](crate::Step::values)), see the array as the previous step left it. A step may
/// change elements that an earlier step changed. If the job fails, the array is as the last complete step left it.
///
/// Make the array before the job, name it with [`Job::writes`](crate::Job::writes), and read it afterwards. Further
/// jobs can continue with its content.
///
/// ```
/// use gristmill::{Emit, Input, Isolation, Job, MapReduce, ProgramError, Records, SharedOutput, Chunk};
///
/// /// Writes the square of each number of the input to its place.
/// struct Squares<'o> {
///     squares: &'o SharedOutput<u64>,
/// }
///
/// impl MapReduce for Squares<'_> {
///     type Key = u64;
///     type Value = u64;
///
///     fn map(&self, chunk: &mut Chunk<'_>, _: &mut impl Emit<u64, u64>) -> Result<(), ProgramError> {
///         let start = chunk.offset() as usize / 8;
///         self.squares.write(|squares| {
///             for (square, number) in squares[start..].iter_mut().zip(chunk.bytes().as_chunks::<8>().0) {
///                 *square = u64::from_le_bytes(*number).pow(2);
///             }
///         });
///         Ok(())
///     }
/// }
///
/// let numbers: Vec<u8> = (0..1000u64).flat_map(u64::to_le_bytes).collect();
/// let mut squares = SharedOutput::new("squares", 1000)?;
/// let program = Squares { squares: &squares };
/// let job = Job::new(&program, Input::bytes("numbers", &numbers)?).records(Records::Fixed(8)).split_bytes(500);
/// // This doctest runs beside others in one process, so its workers are threads.
/// job.writes(&squares).workers(2).isolation(Isolation::Thread).run()?;
/// assert_eq!(squares.values()[999], 998_001);
/// # Ok::<(), gristmill::Error>(())
/// ```
pub struct SharedOutput<T: Plain> {
    scope: Scope,
    len: usize,
    element_type: PhantomData<T>,
}

impl<T: Plain> SharedOutput<T> {
    /// Makes an array of `len` zeros. Messages call it `name`.
    ///
    /// # Errors
    /// [`Error::System`] if the process may not map that much memory.
    pub fn new(name: impl Into<String>, len: usize) -> Result<SharedOutput<T>> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let bytes = len.checked_mul(size_of::<T>()).ok_or(io::ErrorKind::OutOfMemory);
        let scope = Scope {
            name: name.into(),
            number: NEXT.fetch_add(1, Ordering::Relaxed),
            master: bytes.map_err(io::Error::from).and_then(Master::new).asked("mapping a shared output")?,
            original: Mutex::new(None),
            element_type: ElementType::of::<T>(),
        };
        Ok(SharedOutput { scope, len, element_type: PhantomData })
    }

    /// Returns the number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the array, between jobs.
    pub fn values(&mut self) -> &[T] {
        cast_slice(self.scope.master.bytes())
    }

    /// Returns the array, to fill it before a job.
    pub fn values_mut(&mut self) -> &mut [T] {
        let master = &mut self.scope.master;
        (0..master.os_pages()).for_each(|os_page| master.touch(os_page));
        cast_slice_mut(master.bytes_mut())
    }

    /// Calls `write` with this worker's view of the array. For map functions.
    ///
    /// # Panics
    /// Outside the map function of a job that [writes](crate::Job::writes) this array, on a thread that the map
    /// function has started, and inside another `write` to the same array.
    pub fn write<R>(&self, write: impl FnOnce(&mut [T]) -> R) -> R {
        let name = &self.scope.name;
        let view = self.scope.view().filter(|_| MAPS.get()).unwrap_or_else(|| {
            panic!(
                "the shared output {name} is written where it has no view: name it to the job with Job::writes, \
                 and write it in the map function, on the thread on which that is called"
            )
        });
        let Ok(mut view) = view.try_borrow_mut() else {
            panic!("the shared output {name} is written inside another write to it");
        };
        let inside = self.scope.master.enter(view.slot);
        write(&mut cast_slice_mut(view.memory.own_mut(&inside))[..self.len])
    }

    /// Returns the type-independent part.
    pub(crate) fn scope(&self) -> &Scope {
        &self.scope
    }
}

/// The operations that depend on the type of the elements.
#[derive(Clone, Copy)]
struct ElementType {
    merge: fn(&[u64], &[u64], &[AtomicU64]) -> std::result::Result<(), Clash>,
    element_bytes: usize,
    show: fn(u64, usize) -> String,
}

impl ElementType {
    fn of<T: Plain>() -> ElementType {
        let element_bytes = size_of::<T>();
        let merge = match element_bytes {
            1 => merge::<1>,
            4 => merge::<4>,
            8 => merge::<8>,
            other => unreachable!("numbers of {other} bytes are not plain"),
        };
        ElementType { merge, element_bytes, show: |word, lane| cast_slice::<u64, T>(&[word])[lane].to_string() }
    }
}

/// A shared output without its element type.
pub(crate) struct Scope {
    name: String,
    number: u64,
    master: Master,
    /// `None` while it is all zeros and no task has changed that.
    original: Mutex<Option<Arc<MasterOriginal>>>,
    element_type: ElementType,
}

thread_local! {
    /// The views of the worker on this thread, with the numbers of their scopes.
    static VIEWS: RefCell<Vec<(u64, Rc<RefCell<View>>)>> = const { RefCell::new(Vec::new()) };
    /// Whether the worker on this thread maps a task, whose writes will be merged.
    static MAPS: Cell<bool> = const { Cell::new(false) };
}

/// Allows the map function on this thread to write until it is dropped.
pub(crate) struct Mapping(());

impl Drop for Mapping {
    fn drop(&mut self) {
        MAPS.set(false);
    }
}

/// One worker's view of a scope.
struct View {
    /// The private copy.
    slot: usize,
    /// Tracks written pages, and gives the original to compare with.
    memory: MasterView,
    /// One OS page of zeros, the twin of every page if there is no original.
    zeros: Vec<u64>,
    /// The bytes that the task has written, from the first look until the merge.
    written: Vec<Range<usize>>,
}

impl View {
    fn of(scope: &Scope, slot: usize) -> io::Result<View> {
        let zeros = vec![0; os_page_bytes() / size_of::<u64>()];
        Ok(View { slot, memory: scope.master.view(scope.original().as_deref())?, zeros, written: Vec::new() })
    }

    /// Returns the numbers of the OS pages that the task has written and changed.
    fn changed(&self, inside: &Inside<'_>) -> impl Iterator<Item = usize> {
        let os_pages = |run: &Range<usize>| run.start / os_page_bytes()..run.end / os_page_bytes();
        self.written.iter().flat_map(os_pages).filter(|os_page| {
            let (twin, own) = self.twin_and_own(*os_page, inside);
            twin != own
        })
    }

    /// Returns one OS page as it was when the job or step started, and as it is now.
    fn twin_and_own<'i>(&'i self, os_page: usize, inside: &'i Inside<'_>) -> (&'i [u64], &'i [u64]) {
        let bytes = os_page * os_page_bytes()..(os_page + 1) * os_page_bytes();
        let twin = self.memory.twin(inside).map_or(&self.zeros[..], |twin| cast_slice(&twin[bytes.clone()]));
        (twin, cast_slice(&self.memory.own(inside)[bytes]))
    }
}

impl Scope {
    /// Returns the view of the worker on this thread.
    fn view(&self) -> Option<Rc<RefCell<View>>> {
        VIEWS.with_borrow(|views| views.iter().find(|(number, _)| *number == self.number).map(|(_, view)| view.clone()))
    }

    fn original(&self) -> Option<Arc<MasterOriginal>> {
        self.original.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set_original(&self, original: Option<MasterOriginal>) {
        *self.original.lock().unwrap_or_else(PoisonError::into_inner) = original.map(Arc::new);
    }

    fn touched_os_pages(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.master.os_pages()).filter(|os_page| self.master.is_touched(*os_page))
    }

    /// Copies the master to the original, at the start of a job or after a step.
    fn begin(&self, closed: &Closed<'_>, iterates: bool) -> io::Result<()> {
        if self.touched_os_pages().next().is_none() && !iterates {
            return Ok(()); // All zeros.
        }
        let original = self.master.original()?;
        // The pages may be settled, but the original belongs to another job.
        self.touched_os_pages().for_each(|os_page| self.master.touch(os_page));
        closed.settle(&original)?;
        if !iterates {
            original.seal()?;
        }
        self.set_original(Some(original));
        Ok(())
    }

    /// Copies the original to the master. A job that failed for lack of descriptors or memory has none left for this,
    /// so this allocates only one OS page.
    fn revert(&self, closed: &mut Closed<'_>) -> io::Result<()> {
        let original = self.original();
        let mut twin = vec![0u64; os_page_bytes() / size_of::<u64>()];
        for os_page in self.touched_os_pages() {
            if let Some(original) = &original {
                original.read(cast_slice_mut(&mut twin), os_page * os_page_bytes())?;
            }
            closed.words(os_page).iter().zip(&twin).for_each(|(word, twin)| word.store(*twin, Ordering::Relaxed));
        }
        Ok(())
    }

    /// Called after the last worker has ended. Latches that dead workers held are free then, and another job may write.
    fn end(&self, closed: Closed<'_>) {
        (0..self.master.os_pages()).for_each(|os_page| self.master.latch(os_page).release());
        self.set_original(None);
        closed.rest();
    }

    /// Returns the sum of the hashes of all OS pages that the task has changed.
    fn changes(&self, number: usize, seed: &Seed) -> std::result::Result<u64, String> {
        let view = self.view().expect("a worker that maps is attached");
        let mut view = view.borrow_mut();
        let inside = self.master.enter(view.slot);
        view.written = view.memory.written().map_err(|error| format!("the page map of a shared output: {error}"))?;
        let hash = |os_page: usize| {
            let content = seed.hash_long(cast_slice(view.twin_and_own(os_page, &inside).1));
            seed.hash(Short { words: [(number as u64) << 48 | os_page as u64, content], len: 16 })
        };
        Ok(view.changed(&inside).map(hash).fold(0, u64::wrapping_add))
    }

    fn merge(&self, take: &impl Fn(Latch<'_>), merged: &impl Fn()) -> std::result::Result<u64, String> {
        let view = self.view().expect("a worker that maps is attached");
        let mut view = view.borrow_mut();
        let inside = self.master.enter(view.slot);
        let runs = std::mem::take(&mut view.written);
        let os_pages = |run: &Range<usize>| run.start / os_page_bytes()..run.end / os_page_bytes();
        let mut count = 0;
        for run in &runs {
            let Range { start, end } = os_pages(run);
            let mut faulted_in = start;
            for os_page in start..end {
                let (twin, own) = view.twin_and_own(os_page, &inside);
                if twin == own {
                    continue;
                }
                if os_page >= faulted_in {
                    faulted_in = end.min(os_page + PREFAULT_OS_PAGES);
                    self.master.prefault(os_page..faulted_in);
                }
                let latch = self.master.latch(os_page);
                take(latch);
                self.master.touch(os_page);
                let outcome = (self.element_type.merge)(twin, own, inside.words(os_page));
                merged();
                latch.release();
                outcome.map_err(|clash| self.explain(os_page, clash))?;
                count += 1;
            }
        }
        for run in runs {
            view.memory.restore(run).map_err(|error| format!("restoring the view of a shared output: {error}"))?;
        }
        Ok(count)
    }

    fn explain(&self, os_page: usize, clash: Clash) -> String {
        let elements_per_word = size_of::<u64>() / self.element_type.element_bytes;
        let index = os_page * (os_page_bytes() / self.element_type.element_bytes) + clash.element;
        let [was, other, own] =
            clash.words.map(|word| (self.element_type.show)(word, clash.element % elements_per_word));
        let name = &self.name;
        format!("element {index} of the shared output {name} was {was}; one task made it {other}, and another {own}")
    }
}

/// The scopes that a job writes, from before its first worker starts until its last one has ended.
pub(crate) struct Scopes<'j> {
    scopes: Vec<&'j Scope>,
    /// Whether merged changes stay, because the job or the step is complete.
    keep: AtomicBool,
}

impl<'j> Scopes<'j> {
    /// Takes the scopes for a job that is about to start its workers; `iterates` if it runs in steps.
    pub fn begin(scopes: Vec<&'j Scope>, iterates: bool) -> Result<Scopes<'j>> {
        let mut begun = Scopes { scopes: Vec::with_capacity(scopes.len()), keep: AtomicBool::new(false) };
        for scope in scopes {
            let Some(closed) = scope.master.begin() else {
                return Err(Error::Setting(format!(
                    "the shared output {} is named twice, or written by another job; a job has its outputs for itself",
                    scope.name
                )));
            };
            // A scope without an original must not be reverted to it when this job ends.
            if let Err(source) = scope.begin(&closed, iterates) {
                scope.end(closed);
                return Err(Error::System { what: "keeping what a shared output held before the job", source });
            }
            begun.scopes.push(scope);
        }
        Ok(begun)
    }

    /// Ends a step, when no worker is in a task. The next step starts with what this one has written.
    pub fn settle(&self) -> Result<Settled<'j>> {
        self.keep();
        let settle = |scope: &&'j Scope| {
            let original = scope.original().expect("a job in steps has its originals from the beginning");
            let closed = scope.master.close().expect("no worker is in a task when a step is complete");
            closed.settle(&original).asked("keeping what a step has written into a shared output")?;
            Ok((scope.number, closed))
        };
        let settled = self.scopes.iter().map(settle).collect::<Result<_>>()?;
        self.keep.store(false, Ordering::Relaxed);
        Ok(Settled(settled))
    }

    /// Notes that the worker in `slot` has ended, perhaps in the middle of a write.
    pub fn let_out(&self, slot: usize, ended: &Ended) {
        self.scopes.iter().for_each(|scope| scope.master.let_out(slot, ended));
    }

    /// Keeps what was merged so far, even if the job fails later.
    pub fn keep(&self) {
        self.keep.store(true, Ordering::Relaxed);
    }

    /// Returns whether the job writes no scopes.
    pub fn is_empty(&self) -> bool {
        self.scopes.is_empty()
    }

    /// Gives the worker on this thread its views.
    pub fn attach(&self, slot: usize) -> io::Result<()> {
        let view = |scope: &&Scope| Ok((scope.number, Rc::new(RefCell::new(View::of(scope, slot)?))));
        VIEWS.set(self.scopes.iter().map(view).collect::<io::Result<_>>()?);
        // A worker that was forked by another worker has a copy of that one's state.
        MAPS.set(false);
        Ok(())
    }

    /// Allows the map function to write to the views of this thread.
    pub fn map_task(&self) -> Mapping {
        MAPS.set(true);
        Mapping(())
    }

    /// Returns a hash of what the task on this thread has changed. Call it before the merge.
    ///
    /// # Errors
    /// The kernel's error when it reads the page map.
    pub fn changes(&self, seed: &Seed) -> std::result::Result<u64, String> {
        let scopes = self.scopes.iter().enumerate();
        scopes
            .map(|(number, scope)| scope.changes(number, seed))
            .try_fold(0, |sum, hash| Ok(u64::wrapping_add(sum, hash?)))
    }

    /// Merges what the task on this thread has changed, and restores the views. Returns the number of OS pages merged.
    /// Calls `take` to acquire the latch of each page, and `merged` before it is released.
    ///
    /// # Errors
    /// Two tasks changed one element: the text of [`Error::Conflict`].
    pub fn merge(&self, take: impl Fn(Latch<'_>), merged: impl Fn()) -> std::result::Result<u64, String> {
        self.scopes.iter().try_fold(0, |os_pages, scope| Ok(os_pages + scope.merge(&take, &merged)?))
    }
}

/// The content of a job's scopes between two steps. Workers are kept out meanwhile.
pub(crate) struct Settled<'j>(Vec<(u64, Closed<'j>)>);

impl Settled<'_> {
    /// Returns the content of `output`.
    ///
    /// # Panics
    /// If the job does not write it.
    pub fn values<T: Plain>(&self, output: &SharedOutput<T>) -> &[T] {
        let Scope { name, number, .. } = &output.scope;
        let Some((_, closed)) = self.0.iter().find(|(other, _)| other == number) else {
            panic!("the shared output {name} is not one that this job writes: name it with Job::writes");
        };
        cast_slice(closed.bytes())
    }
}

impl Drop for Scopes<'_> {
    fn drop(&mut self) {
        for scope in &self.scopes {
            // If it cannot be closed, something has panicked before. Then the array stays inaccessible.
            let Some(mut closed) = scope.master.close() else { continue };
            if !*self.keep.get_mut() {
                scope.revert(&mut closed).expect("an original can be read");
            }
            scope.end(closed);
        }
    }
}
