//! Values that others are added to, in place.

use crate::data::datum::{Datum, Owned};

/// The item that an aggregate takes.
pub(crate) type ItemOf<V> = <V as Aggregate>::Item;

/// A value that others are added to one by one: a mean, a range, the largest ten, a sketch.
///
/// A combiner makes one value of two, so each record has to become a value first. That is wasteful if a value is much
/// larger than what a record contributes to it. A map function adds to an aggregate instead
/// ([`Emit::add`](crate::Emit::add)): the engine keeps one for each key and changes it in place. Aggregates of one key
/// that were made in different places are merged by the combiner, which must return `Some(V::merged)`; without it each
/// item stays a pair of its own.
///
/// The default of the owned form is an aggregate to which nothing was added. It should own no memory, because the table
/// of a map worker has 65,536 of them, and an aggregate of more than some hundred bytes should own its memory (a
/// `Vec<u8>`) from the first item on.
///
/// Items are added, and aggregates are merged, in any order. If the result depends on it, as that of adding
/// floating-point numbers does, [`Datum::EXACT`] is false, and [`Job::deterministic`](crate::Job::deterministic) makes
/// the result the same each time. It is false for bytes, which may hold such numbers; the attribute `#[datum(exact)]`
/// says that the order does not matter.
///
/// ```
/// use gristmill::{Aggregate, Bytes, Chunk, Datum, Emit, Input, Isolation, Job, MapReduce, ProgramError};
///
/// /// The mean of whole numbers.
/// #[derive(Clone, Copy, Debug, Default, Datum)]
/// struct Mean {
///     sum: i64,
///     count: u64,
/// }
///
/// impl Aggregate for Mean {
///     type Item = i64;
///
///     fn add(mean: &mut Mean, number: i64) {
///         mean.sum += number;
///         mean.count += 1;
///     }
///
///     fn merge(mean: &mut Mean, other: Mean) {
///         mean.sum += other.sum;
///         mean.count += other.count;
///     }
/// }
///
/// /// The mean depth of each pond.
/// struct Depths;
///
/// impl MapReduce for Depths {
///     type Key = Bytes;
///     type Value = Mean;
///
///     fn combiner(&self) -> Option<impl Fn(Mean, Mean) -> Mean> {
///         Some(Mean::merged)
///     }
///
///     fn map(&self, chunk: &mut Chunk<'_>, out: &mut impl Emit<Bytes, Mean>) -> Result<(), ProgramError> {
///         for line in str::from_utf8(chunk.bytes())?.lines() {
///             let words = line.split_once(' ');
///             let (pond, depth) = words.ok_or_else(|| ProgramError::new("a line has a pond and a depth"))?;
///             out.add(pond.as_bytes(), depth.parse()?);
///         }
///         Ok(())
///     }
/// }
///
/// # // This doctest runs beside others in one process, so its workers are threads.
/// let job = Job::new(&Depths, Input::bytes("depths", b"mill 3\nmoor 8\nmill 5\n")?).isolation(Isolation::Thread);
/// let mill = job.run()?.0.get(b"mill").expect("a pond");
/// assert_eq!(mill.sum as f64 / mill.count as f64, 4.0);
/// # Ok::<(), gristmill::Error>(())
/// ```
///
/// A large aggregate, or one whose size varies, keeps its data in a field of variable width, which is changed in place,
/// too:
///
/// ```
/// use gristmill::{Aggregate, Datum};
///
/// /// Which of the numbers there were, modulo 4096.
/// #[derive(Clone, Debug, Default, Datum)]
/// #[datum(borrowed = SeenRef, exact)]
/// struct Seen {
///     bits: Vec<u8>,
/// }
///
/// impl Aggregate for Seen {
///     type Item = u16;
///
///     fn add(seen: &mut Seen, number: u16) {
///         seen.bits.resize(512, 0);
///         seen.bits[usize::from(number / 8) % 512] |= 1 << (number % 8);
///     }
///
///     fn merge(seen: &mut Seen, other: Seen) {
///         seen.bits.resize(512, 0);
///         seen.bits.iter_mut().zip(other.bits).for_each(|(bits, others)| *bits |= others);
///     }
/// }
/// ```
pub trait Aggregate: Datum {
    /// The type of items.
    type Item: Datum;

    /// Adds an item.
    fn add(aggregate: &mut Owned<Self>, item: <Self::Item as Datum>::Ref<'_>);

    /// Adds all items that were added to `other`.
    fn merge(aggregate: &mut Owned<Self>, other: Owned<Self>);

    /// Returns an aggregate of the items of both: the combiner of a job whose values are aggregates.
    fn merged(mut a: Owned<Self>, b: Owned<Self>) -> Owned<Self> {
        Self::merge(&mut a, b);
        a
    }
}

/// Returns an aggregate of one item.
pub(crate) fn one<A: Aggregate>(item: <A::Item as Datum>::Ref<'_>) -> Owned<A> {
    let mut aggregate = Owned::<A>::default();
    A::add(&mut aggregate, item);
    aggregate
}
