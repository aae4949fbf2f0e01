//! A value of one of two types, as in a join.

use std::cmp::Ordering;

use crate::data::datum::{Datum, Key, trust};

/// A value of one type or of another. Every [`Left`] is less than every [`Right`], so a
/// reduce function sees the left values of a key first ([`Job::cogroup`](crate::Job::cogroup)).
///
/// As a key it gives a job a second result beside the first: pairs with left keys, and pairs with right keys behind
/// them. Values may be [`Either`], too.
///
/// ```
/// use gristmill::{Chunk, Either, Emit, Input, Isolation, Job, MapReduce, ProgramError};
///
/// /// Adds up the numbers in a text, and counts the other words.
/// struct Numbers;
///
/// impl MapReduce for Numbers {
///     type Key = Either<(), String>;
///     type Value = u64;
///
///     fn combiner(&self) -> Option<impl Fn(u64, u64) -> u64> {
///         Some(|a, b| a + b)
///     }
///
///     fn map(
///         &self,
///         chunk: &mut Chunk<'_>,
///         out: &mut impl Emit<Either<(), String>, u64>,
///     ) -> Result<(), ProgramError> {
///         for word in str::from_utf8(chunk.bytes())?.split_whitespace() {
///             match word.parse() {
///                 Ok(number) => out.emit(Either::Left(()), number),
///                 Err(_) => out.emit(Either::Right(word), 1),
///             }
///         }
///         Ok(())
///     }
/// }
///
/// // This doctest runs beside others in one process, so its workers are threads.
/// let job = Job::new(&Numbers, Input::bytes("text", b"5 apples, 7 pears")?).isolation(Isolation::Thread);
/// let (pairs, _) = job.run()?;
/// let all = [(Either::Left(()), 12), (Either::Right("apples,"), 1), (Either::Right("pears"), 1)];
/// assert!(pairs.iter().eq(all));
/// # Ok::<(), gristmill::Error>(())
/// ```
///
/// Written as one byte, 0 for left and 1 for right, and the value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Either<L, R> {
    /// A value of the first type.
    Left(L),
    /// A value of the second type.
    Right(R),
}

use Either::{Left, Right};

impl<L: Default, R> Default for Either<L, R> {
    fn default() -> Self {
        Left(L::default())
    }
}

impl<L: Datum, R: Datum> Datum for Either<L, R> {
    type Ref<'a> = Either<L::Ref<'a>, R::Ref<'a>>;
    type Owned = Either<L::Owned, R::Owned>;
    const WIDTH: Option<usize> = match (L::WIDTH, R::WIDTH) {
        (Some(left), Some(right)) if left == right => Some(1 + left),
        _ => None,
    };
    const EXACT: bool = L::EXACT && R::EXACT;
    const TRUSTED: trust::Trusted = trust::Trusted(L::TRUSTED.0 && R::TRUSTED.0);

    #[inline(always)]
    fn width(value: Self::Ref<'_>) -> usize {
        1 + match value {
            Left(value) => L::WIDTH.unwrap_or_else(|| L::width(value)),
            Right(value) => R::WIDTH.unwrap_or_else(|| R::width(value)),
        }
    }
    #[inline(always)]
    fn write(value: Self::Ref<'_>, to: &mut [u8]) {
        to[0] = matches!(value, Right(_)).into();
        match value {
            Left(value) => L::write(value, &mut to[1..]),
            Right(value) => R::write(value, &mut to[1..]),
        }
    }
    #[inline(always)]
    fn read(from: &[u8]) -> Self::Ref<'_> {
        match from[0] {
            0 => Left(L::read(&from[1..])),
            _ => Right(R::read(&from[1..])),
        }
    }
    #[inline(always)]
    fn own(value: Self::Ref<'_>) -> Self::Owned {
        match value {
            Left(value) => Left(L::own(value)),
            Right(value) => Right(R::own(value)),
        }
    }
    #[inline(always)]
    fn lend(value: &Self::Owned) -> Self::Ref<'_> {
        match value {
            Left(value) => Left(L::lend(value)),
            Right(value) => Right(R::lend(value)),
        }
    }
    fn compare(a: Self::Ref<'_>, b: Self::Ref<'_>) -> Ordering {
        match (a, b) {
            (Left(a), Left(b)) => L::compare(a, b),
            (Right(a), Right(b)) => R::compare(a, b),
            (Left(_), Right(_)) => Ordering::Less,
            (Right(_), Left(_)) => Ordering::Greater,
        }
    }
    fn prefix(value: Self::Ref<'_>) -> u64 {
        match value {
            Left(value) => L::prefix(value) >> 1,
            Right(value) => 1 << 63 | R::prefix(value) >> 1,
        }
    }
    fn to_text(value: Self::Ref<'_>, to: &mut Vec<u8>) {
        match value {
            Left(value) => L::to_text(value, to),
            Right(value) => R::to_text(value, to),
        }
    }
}

impl<L: Key, R: Key> Key for Either<L, R> {}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::data::contract::check_key;
    use crate::data::datum::Bytes;

    proptest! {
        #[test]
        fn either_keeps_the_contract_of_a_key(
            pairs in prop::collection::vec((any::<bool>(), any::<u32>(), ".{0,12}"), 0..20)
        ) {
            check_key::<Either<u32, Bytes>>(pairs.iter().map(|(left, number, text)| match left {
                true => Left(*number),
                false => Right(text.as_bytes()),
            }));
            check_key::<Either<u32, i32>>(pairs.iter().map(|(left, number, _)| match left {
                true => Left(*number),
                false => Right(*number as i32),
            }));
        }
    }
}
