//! The order of a result.

use crate::data::datum::{Datum, Key};

/// The order of the result.
///
/// ```
/// # use gristmill::{Bytes, Chunk, Emit, MapReduce, ProgramError};
/// # struct Words;
/// # impl MapReduce for Words {
/// #     type Key = Bytes;
/// #     type Value = u64;
/// #     fn combiner(&self) -> Option<impl Fn(u64, u64) -> u64> {
/// #         Some(|a, b| a + b)
/// #     }
/// #     fn map(&self, chunk: &mut Chunk<'_>, out: &mut impl Emit<Bytes, u64>) -> Result<(), ProgramError> {
/// #         let words = chunk.bytes().split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
/// #         words.for_each(|word| out.emit(word, 1));
/// #         Ok(())
/// #     }
/// # }
/// use gristmill::{Input, Isolation, Job, Order};
///
/// // This doctest runs beside others in one process, so its workers are threads.
/// let job = Job::new(&Words, Input::bytes("song", b"row row your boat")?).isolation(Isolation::Thread);
/// let (counts, _) = job.order(Order::ByValueDescending).run()?;
/// assert_eq!(counts.iter().map(|(_, count)| count).collect::<Vec<_>>(), [2, 1, 1]);
/// # Ok::<(), gristmill::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Order {
    /// In no particular order.
    Unordered,
    /// By key, ascending.
    #[default]
    ByKey,
    /// By value, descending; equal values by key, ascending.
    ByValueDescending,
}

impl Order {
    /// Returns a number that decides most comparisons: a pair with a smaller one comes earlier.
    #[inline(always)]
    pub(crate) fn prefix<K: Key, V: Datum>(self, key: K::Ref<'_>, value: V::Ref<'_>) -> u64 {
        match self {
            Order::Unordered => 0,
            Order::ByKey => K::prefix(key),
            Order::ByValueDescending => !V::prefix(value),
        }
    }

    /// As [`Order::prefix`], of the next pair of a stream: the largest number if the stream has ended.
    #[inline(always)]
    pub(crate) fn prefix_of_next<K: Key, V: Datum>(self, next: Option<(K::Ref<'_>, V::Ref<'_>)>) -> u64 {
        next.map_or(u64::MAX, |(key, value)| self.prefix::<K, V>(key, value))
    }

    /// As [`Order::compare`], of the next pairs of two streams. One that has ended comes after all others.
    pub(crate) fn compare_next<K: Key, V: Datum>(
        self,
        a: Option<(K::Ref<'_>, V::Ref<'_>)>,
        b: Option<(K::Ref<'_>, V::Ref<'_>)>,
    ) -> std::cmp::Ordering {
        match (a, b) {
            (Some(a), Some(b)) => self.compare::<K, V>(a, b),
            (a, b) => b.is_some().cmp(&a.is_some()),
        }
    }

    pub(crate) fn compare<K: Key, V: Datum>(
        self,
        a: (K::Ref<'_>, V::Ref<'_>),
        b: (K::Ref<'_>, V::Ref<'_>),
    ) -> std::cmp::Ordering {
        match self {
            Order::Unordered => std::cmp::Ordering::Equal,
            Order::ByKey => K::compare(a.0, b.0).then_with(|| V::compare(a.1, b.1)),
            Order::ByValueDescending => V::compare(b.1, a.1).then_with(|| K::compare(a.0, b.0)),
        }
    }
}
