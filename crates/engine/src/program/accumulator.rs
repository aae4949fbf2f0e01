//! Figures that map functions gather besides their pairs: sums, and least or greatest values.
//!
//! What a task adds is kept apart until the task has ended, and stored once for each task. So a figure counts each
//! record once, however often its task was tried.

use std::cell::RefCell;
use std::sync::atomic::{AtomicU32, Ordering};

/// A figure of a job: the sum, the least or the greatest of all values that its map function adds. Each record counts
/// once, even if a worker dies and its tasks are mapped again.
///
/// Give it to the job with [`Job::accumulates`](crate::Job::accumulates), and let the program refer to it. When the job
/// has ended, [`Summary::total`](crate::Summary::total) has its value; after a step,
/// [`Step::total`](crate::Step::total) has that of the step.
///
/// ```
/// use gristmill::{Accumulator, Emit, Input, Isolation, Job, MapReduce, ProgramError, Chunk};
///
/// /// Adds up the lines that are numbers, and counts the others.
/// struct Sum<'a> {
///     others: &'a Accumulator,
/// }
///
/// impl MapReduce for Sum<'_> {
///     type Key = ();
///     type Value = i64;
///
///     fn combiner(&self) -> Option<impl Fn(i64, i64) -> i64> {
///         Some(|a, b| a + b)
///     }
///
///     fn map(&self, chunk: &mut Chunk<'_>, out: &mut impl Emit<(), i64>) -> Result<(), ProgramError> {
///         for line in chunk.lines() {
///             match str::from_utf8(line)?.parse() {
///                 Ok(number) => out.emit((), number),
///                 Err(_) => self.others.add(1),
///             }
///         }
///         Ok(())
///     }
/// }
///
/// let others = Accumulator::sum();
/// let program = Sum { others: &others };
/// // This doctest runs beside others in one process, so its workers are threads.
/// let job = Job::new(&program, Input::bytes("numbers", b"1\ntwo\n3\n")?).isolation(Isolation::Thread);
/// let (sum, summary) = job.accumulates(&others).run()?;
/// assert_eq!((sum.get(()), summary.total(&others)), (Some(4), Some(1)));
/// # Ok::<(), gristmill::Error>(())
/// ```
#[derive(Debug)]
pub struct Accumulator {
    pub(crate) kind: Kind,
}

/// An accumulator, without its identity as a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Kind {
    /// No other accumulator of this process has this number.
    number: u32,
    fold: Fold,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fold {
    Sum,
    Least,
    Greatest,
}

impl Accumulator {
    /// Makes one that adds up.
    pub fn sum() -> Accumulator {
        Accumulator::new(Fold::Sum)
    }

    /// Makes one that keeps the least value.
    pub fn least() -> Accumulator {
        Accumulator::new(Fold::Least)
    }

    /// Makes one that keeps the greatest value.
    pub fn greatest() -> Accumulator {
        Accumulator::new(Fold::Greatest)
    }

    fn new(fold: Fold) -> Accumulator {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        Accumulator { kind: Kind { number: NEXT.fetch_add(1, Ordering::Relaxed), fold } }
    }

    /// Adds a value. For [`MapReduce::map`](crate::MapReduce::map) and
    /// [`MapReduce::map_pairs`](crate::MapReduce::map_pairs); what other functions add is lost, because they are called
    /// as often as it suits the engine.
    ///
    /// # Panics
    /// When the sum of one task exceeds 64 bits.
    pub fn add(&self, value: i64) {
        OF_THIS_TASK.with_borrow_mut(|values| match values.iter_mut().find(|(kind, _)| *kind == self.kind) {
            Some((kind, sum)) => *sum = kind.fold(*sum, value).expect("the sum of an accumulator exceeds 64 bits"),
            None => values.push((self.kind, value)),
        });
    }
}

impl Kind {
    /// Combines two values; `None` if the sum exceeds 64 bits.
    pub fn fold(self, a: i64, b: i64) -> Option<i64> {
        match self.fold {
            Fold::Sum => a.checked_add(b),
            Fold::Least => Some(a.min(b)),
            Fold::Greatest => Some(a.max(b)),
        }
    }
}

/// Values of accumulators.
pub(crate) type Values = Vec<(Kind, i64)>;

thread_local! {
    /// The sums of this worker's task so far.
    static OF_THIS_TASK: RefCell<Values> = const { RefCell::new(Vec::new()) };
}

/// Returns what the task has added so far.
pub(crate) fn of_this_task() -> Values {
    OF_THIS_TASK.with_borrow(Clone::clone)
}

/// Sets what the task has added: nothing, when it begins, or what it had added before a record that failed.
pub(crate) fn set_of_this_task(values: Values) {
    OF_THIS_TASK.set(values);
}
