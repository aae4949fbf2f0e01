//! Joins: jobs whose map function emits values of two kinds for a key.

use crate::data::datum::{Datum, Key};
use crate::data::either::Either;
use crate::job::builder::Job;
use crate::program::ending::Made;
use crate::program::map_reduce::MapReduce;
use crate::program_error::ProgramError;

/// Joins and cogroups: for programs whose values are [`Either`] of two types. Inputs of two kinds come from
/// [`Input::chain`](crate::Input::chain), and [`Chunk::tag`](crate::Chunk::tag) tells them apart.
///
/// The left values of one key are held in memory, the right ones pass by one at a time. So the side with fewer values
/// for each key is best the left one.
impl<'j, J, L: Datum, R: Datum> Job<'j, J>
where
    J: MapReduce<Value = Either<L, R>>,
{
    /// Calls `group` once for each key with its left values and its right values, both in ascending order. The pairs
    /// that it emits are the result.
    ///
    /// ```
    /// use gristmill::{Either, Emit, Input, Isolation, Job, MapReduce, ProgramError, Chunk};
    ///
    /// /// Prices (`tea 3`) on the left, numbers of items sold (`tea 20`) on the right.
    /// struct Goods;
    ///
    /// impl MapReduce for Goods {
    ///     type Key = String;
    ///     type Value = Either<u64, u64>;
    ///
    ///     fn map(
    ///         &self,
    ///         chunk: &mut Chunk<'_>,
    ///         out: &mut impl Emit<String, Either<u64, u64>>,
    ///     ) -> Result<(), ProgramError> {
    ///         for line in chunk.lines() {
    ///             let (name, number) = str::from_utf8(line)?.split_once(' ').unwrap_or_default();
    ///             let number = number.parse()?;
    ///             out.emit(name, if chunk.tag() == 0 { Either::Left(number) } else { Either::Right(number) });
    ///         }
    ///         Ok(())
    ///     }
    /// }
    ///
    /// let sold = Input::bytes("sold", b"tea 20\nsalt 1\ntea 4\n")?.tagged(1);
    /// let goods = || -> gristmill::Result<Input> { Ok(Input::bytes("prices", b"tea 3\nrice 2\n")?.chain(sold.clone())) };
    /// // This doctest runs beside others in one process, so its workers are threads.
    /// let job = || -> gristmill::Result<_> { Ok(Job::new(&Goods, goods()?).isolation(Isolation::Thread)) };
    /// let income = job()?.cogroup::<String, u64>(|name, prices, sold, emit| {
    ///     emit(name, prices.first().unwrap_or(&0) * sold.sum::<u64>());
    ///     Ok(())
    /// });
    /// let income = income.run()?.0;
    /// assert_eq!(income.iter().collect::<Vec<_>>(), [("rice", 0), ("salt", 0), ("tea", 72)]);
    ///
    /// assert_eq!(job()?.inner_join().run()?.0.iter().collect::<Vec<_>>(), [("tea", (3, 4)), ("tea", (3, 20))]);
    /// assert_eq!(job()?.left_join().run()?.0.get("rice"), Some((2, None)));
    /// assert_eq!(job()?.full_join().run()?.0.get("salt"), Some((None, Some(1))));
    /// assert_eq!(job()?.anti_join().run()?.0.iter().collect::<Vec<_>>(), [("rice", 2)]);
    /// # Ok::<(), gristmill::Error>(())
    /// ```
    pub fn cogroup<K: Key, V: Datum>(
        self,
        group: impl for<'a> Fn(
            <J::Key as Datum>::Ref<'a>,
            &[L::Owned],
            &mut dyn Iterator<Item = R::Owned>,
            &mut dyn FnMut(K::Ref<'_>, V::Ref<'_>),
        ) -> Result<(), ProgramError>
        + Send
        + Sync
        + 'j,
    ) -> Job<'j, J, Made<K, V>> {
        self.reduce_to::<K, V>(move |key, values, emit| {
            let (mut lefts, mut first) = (Vec::new(), None);
            for value in values.owned() {
                match value {
                    Either::Left(value) => lefts.push(value),
                    Either::Right(value) => {
                        first = Some(value);
                        break;
                    }
                }
            }
            let mut rights = first.into_iter().chain(values.owned().map(|value| match value {
                Either::Right(value) => value,
                Either::Left(_) => unreachable!("values ascend, and every left one is less than every right one"),
            }));
            group(key, &lefts, &mut rights, emit)
        })
    }

    /// Joins: a pair for each left value and each right value of a key.
    pub fn inner_join(self) -> Job<'j, J, Made<J::Key, (L, R)>> {
        self.cogroup::<J::Key, (L, R)>(|key, lefts, rights, emit| {
            for right in rights {
                lefts.iter().for_each(|left| emit(key, (L::lend(left), R::lend(&right))));
            }
            Ok(())
        })
    }

    /// As [`Job::inner_join`], and a pair for each left value of a key that has no right one.
    pub fn left_join(self) -> Job<'j, J, Made<J::Key, (L, Option<R>)>> {
        self.cogroup::<J::Key, (L, Option<R>)>(|key, lefts, rights, emit| {
            let mut is_alone = true;
            for right in rights {
                is_alone = false;
                lefts.iter().for_each(|left| emit(key, (L::lend(left), Some(R::lend(&right)))));
            }
            if is_alone {
                lefts.iter().for_each(|left| emit(key, (L::lend(left), None)));
            }
            Ok(())
        })
    }

    /// As [`Job::left_join`], and a pair for each right value of a key that has no left one.
    pub fn full_join(self) -> Job<'j, J, Made<J::Key, (Option<L>, Option<R>)>> {
        self.cogroup::<J::Key, (Option<L>, Option<R>)>(|key, lefts, rights, emit| {
            let mut is_alone = true;
            for right in rights {
                is_alone = false;
                let right = Some(R::lend(&right));
                lefts.iter().for_each(|left| emit(key, (Some(L::lend(left)), right)));
                if lefts.is_empty() {
                    emit(key, (None, right));
                }
            }
            if is_alone {
                lefts.iter().for_each(|left| emit(key, (Some(L::lend(left)), None)));
            }
            Ok(())
        })
    }

    /// The left values of keys that have no right one.
    pub fn anti_join(self) -> Job<'j, J, Made<J::Key, L>> {
        self.cogroup::<J::Key, L>(|key, lefts, rights, emit| {
            if rights.next().is_none() {
                lefts.iter().for_each(|left| emit(key, L::lend(left)));
            }
            Ok(())
        })
    }
}
