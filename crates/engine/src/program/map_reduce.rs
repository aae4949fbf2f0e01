//! The traits that a user implements: the map function, and how values combine.

use crate::data::datum::{Combine, Datum, Key};
use crate::input::split::Split;
use crate::program::pairs::Pairs;
use crate::spill::values::Values;

/// A MapReduce program.
///
/// The engine calls [`map`](MapReduce::map) with pieces of the input, in any order, on many workers, and again with
/// pieces whose worker died. So `map` must depend on nothing but its split. Seed random numbers with the place of the
/// split ([`Split::offset`](crate::Split::offset)), and use neither the time nor the iteration order of a hash set.
///
/// A program that breaks this rule still gets no wrong result. If a part of the result is lost and a task emits other
/// pairs than those that the rest was made from, the job starts over. If some of the result was already delivered, it
/// ends with [`Error::Unrepeatable`](crate::Error::Unrepeatable).
///
/// ```
/// use gristmill::{Bytes, Combine, Emit, MapReduce, Split};
///
/// struct WordCount;
///
/// impl MapReduce for WordCount {
///     type Key = Bytes;
///     type Value = u64;
///     const COMBINE: Option<Combine<u64>> = Some(|a, b| a + b);
///
///     fn map(&self, split: &mut Split<'_>, out: &mut impl Emit<Bytes, u64>) {
///         for word in split.bytes().split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()) {
///             out.emit(word, 1);
///         }
///     }
/// }
/// ```
pub trait MapReduce: Sync {
    /// The type of keys, by which pairs are grouped.
    type Key: Key;
    /// The type of values.
    type Value: Datum;

    /// Combines two values of one key into one; associative and commutative. `None` keeps every value.
    const COMBINE: Option<Combine<Self::Value>> = None;

    /// Chooses the partition of a key; the number of partitions is a power of two. `None` spreads keys by their hash; a
    /// function can keep keys together, or in order. All pairs of one partition are reduced by one worker.
    const PARTITION: Option<Partition<Self::Key>> = None;

    /// Whether the map function expands files in memory beyond the pairs that it emits, such as to the pixels of a
    /// picture, and asks [`Source::memory`](crate::Source::memory) for its limit. A part of the job's memory is
    /// reserved for it.
    const UNPACKS: bool = false;

    /// Returns the size of the key domain, if all keys are numbers below it. Pairs are then added into a plain array
    /// with one value per key, without hashing. A key outside the domain is a bug of the program and ends the task with
    /// a panic. Only for keys of an unsigned integer type and programs with a combiner.
    fn keys(&self) -> Option<usize> {
        None
    }

    /// Emits the pairs of one piece of the input, which consists of whole records, separators included. Every call for
    /// one piece must emit the same pairs, in any order.
    fn map(&self, split: &mut Split<'_>, out: &mut impl Emit<Self::Key, Self::Value>);

    /// Maps pairs that the previous step made, in a job whose steps map the pairs of the step before
    /// ([`Next::Pairs`](crate::Next::Pairs)). By default, emits them unchanged.
    fn map_pairs(&self, pairs: &Pairs<'_, Self::Key, Self::Value>, out: &mut impl Emit<Self::Key, Self::Value>) {
        pairs.iter().for_each(|(key, value)| out.emit(key, value));
    }
}

/// Chooses a partition for a key; the second argument is the number of partitions.
pub type Partition<K> = for<'a> fn(<K as Datum>::Ref<'a>, usize) -> usize;

/// Makes the pairs of the result from a key and all its values: see [`Job::reduce`](crate::Job::reduce).
pub type Reduce<'f, K, V> = dyn for<'a> Fn(
        <K as Datum>::Ref<'a>,
        &mut Values<'_, K, V>,
        &mut dyn FnMut(<K as Datum>::Ref<'_>, <V as Datum>::Ref<'_>),
    ) + Sync
    + 'f;

/// Takes the pairs of a map function.
pub trait Emit<K: Key, V: Datum> {
    /// Emits one pair.
    fn emit(&mut self, key: K::Ref<'_>, value: V::Ref<'_>);

    /// Emits a pair for each of `places`; its key is the bytes of `text` from the first number up to the second,
    /// exclusive. Equivalent to `emit(&text[start..end], value)` for each, but faster: a short key can be read without
    /// a check of its length if more text follows, and many keys are looked up together.
    #[inline(always)]
    fn emit_each(&mut self, text: &[u8], places: &[[u32; 2]], value: V::Ref<'_>) {
        for [start, end] in places {
            self.emit(K::read(&text[*start as usize..*end as usize]), value);
        }
    }
}

/// Returns the combiner of a program, for code that the plan runs only if there is one. The compiler knows it and
/// inlines it into the loops that combine.
pub(crate) const fn combiner<J: MapReduce>() -> Combine<J::Value> {
    match J::COMBINE {
        Some(combine) => combine,
        None => |_, _| panic!("the plan combines only with a combiner"),
    }
}

/// Returns whether the result of combining depends on the order of the values.
pub(crate) const fn rounds<J: MapReduce>() -> bool {
    J::COMBINE.is_some() && !J::Value::EXACT
}
