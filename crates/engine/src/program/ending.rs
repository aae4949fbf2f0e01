//! The types of a job's result: those of its program, or those that its reduce function makes.

use std::marker::PhantomData;

use crate::data::datum::{Datum, Key};
use crate::program::map_reduce::{MapReduce, Reduce};

type KeyOf<'a, J> = <<J as MapReduce>::Key as Datum>::Ref<'a>;
type ValueOf<'a, J> = <<J as MapReduce>::Value as Datum>::Ref<'a>;
type OutKeyOf<'a, J, E> = <<E as Ending<J>>::Key as Datum>::Ref<'a>;
type OutValueOf<'a, J, E> = <<E as Ending<J>>::Value as Datum>::Ref<'a>;

/// The types of a job's result. [`AsMapped`] and [`Made`] implement it, and nothing else can.
pub trait Ending<J: MapReduce>: sealed::Sealed + Sync + Sized {
    /// The type of its keys.
    type Key: Key;
    /// The type of its values.
    type Value: Datum;

    /// Returns a pair that no reduce function has changed as a pair of the result.
    #[doc(hidden)]
    fn out<'k, 'v>(key: KeyOf<'k, J>, value: ValueOf<'v, J>) -> (OutKeyOf<'k, J, Self>, OutValueOf<'v, J, Self>);

    /// Returns a pair of the result as a pair that the program could have emitted.
    #[doc(hidden)]
    fn back<'k, 'v>(key: OutKeyOf<'k, J, Self>, value: OutValueOf<'v, J, Self>) -> (KeyOf<'k, J>, ValueOf<'v, J>);
}

/// The result has the keys and values of the program.
pub struct AsMapped;

/// The result has keys and values of other types, which the reduce function makes
/// ([`Job::reduce_to`](crate::Job::reduce_to)).
pub struct Made<K, V>(PhantomData<fn() -> (K, V)>);

mod sealed {
    pub trait Sealed {}
}

impl sealed::Sealed for AsMapped {}
impl<K, V> sealed::Sealed for Made<K, V> {}

impl<J: MapReduce> Ending<J> for AsMapped {
    type Key = J::Key;
    type Value = J::Value;

    #[inline(always)]
    fn out<'k, 'v>(key: KeyOf<'k, J>, value: ValueOf<'v, J>) -> (KeyOf<'k, J>, ValueOf<'v, J>) {
        (key, value)
    }

    #[inline(always)]
    fn back<'k, 'v>(key: KeyOf<'k, J>, value: ValueOf<'v, J>) -> (KeyOf<'k, J>, ValueOf<'v, J>) {
        (key, value)
    }
}

impl<J: MapReduce, K: Key, V: Datum> Ending<J> for Made<K, V> {
    type Key = K;
    type Value = V;

    fn out<'k, 'v>(_: KeyOf<'k, J>, _: ValueOf<'v, J>) -> (K::Ref<'k>, V::Ref<'v>) {
        unreachable!("a reduce function makes every pair of this result")
    }

    fn back<'k, 'v>(_: K::Ref<'k>, _: V::Ref<'v>) -> (KeyOf<'k, J>, ValueOf<'v, J>) {
        unreachable!("only the result of a step is mapped, and that has the types of its program")
    }
}

/// The types of a program that the engine can run: a user's, and those of the result.
pub(crate) trait Program {
    /// The program.
    type User: MapReduce<Key = Self::Key, Value = Self::Value>;
    type Key: Key;
    type Value: Datum;
    type OutKey: Key;
    type OutValue: Datum;

    type Ending: Ending<Self::User, Key = Self::OutKey, Value = Self::OutValue>;

    /// As [`Ending::out`].
    #[inline(always)]
    fn out<'k, 'v>(
        key: <Self::Key as Datum>::Ref<'k>,
        value: <Self::Value as Datum>::Ref<'v>,
    ) -> (<Self::OutKey as Datum>::Ref<'k>, <Self::OutValue as Datum>::Ref<'v>) {
        Self::Ending::out(key, value)
    }

    /// As [`Ending::back`].
    #[inline(always)]
    fn back<'k, 'v>(
        key: <Self::OutKey as Datum>::Ref<'k>,
        value: <Self::OutValue as Datum>::Ref<'v>,
    ) -> (<Self::Key as Datum>::Ref<'k>, <Self::Value as Datum>::Ref<'v>) {
        Self::Ending::back(key, value)
    }
}

/// The reduce function of a job.
pub(crate) type ReduceOf<'f, J> =
    Reduce<'f, <J as Program>::Key, <J as Program>::Value, <J as Program>::OutKey, <J as Program>::OutValue>;

/// The program of a user with the types of the result.
pub(crate) struct Whole<J, E>(PhantomData<fn() -> (J, E)>);

impl<J: MapReduce, E: Ending<J>> Program for Whole<J, E> {
    type User = J;
    type Key = J::Key;
    type Value = J::Value;
    type OutKey = E::Key;
    type OutValue = E::Value;
    type Ending = E;
}
