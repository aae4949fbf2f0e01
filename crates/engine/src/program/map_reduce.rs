//! What a user writes: the map function, and how values combine.

use crate::data::datum::{Combine, Datum, Key};
use crate::input::split::Split;
use crate::program::pairs::Pairs;
use crate::spill::values::Values;

/// A MapReduce program.
///
/// The engine calls [`map`](MapReduce::map) for pieces of the input, in any order, on many workers, and
/// again for pieces whose worker died; so `map` must depend on nothing but its split. Random numbers are seeded with the
/// place of the split ([`Split::offset`](crate::Split::offset)), and neither the time nor the order of a hash set may have a say.
///
/// A program that does otherwise gets no wrong answer: when a part of the result is lost, and a task gives other pairs than those of which
/// the rest was made, the job begins anew, or it ends with [`Error::Unrepeatable`](crate::Error::Unrepeatable) if
/// some of the result was seen before.
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
    /// What is grouped by.
    type Key: Key;
    /// What is gathered for each key.
    type Value: Datum;

    /// How two values of one key become one; associative and commutative. `None` keeps every value.
    const COMBINE: Option<Combine<Self::Value>> = None;

    /// Which of so many partitions (a power of two) a key belongs to. `None` spreads keys by their hash; a
    /// function of its own can keep keys together, or in order. All pairs of one partition are reduced by
    /// one worker.
    const PARTITION: Option<Partition<Self::Key>> = None;

    /// The map function makes more of a file than pairs, the pixels of a picture for example, and asks
    /// [`Source::memory`](crate::Source::memory) how much that may be. A part of the job's memory is kept for it.
    const UNPACKS: bool = false;

    /// The keys are the numbers below this one. Pairs are then added into a plain array, one value per key, without
    /// hashing; a key outside the domain is a mistake of the program and ends the task with a panic. For keys of an
    /// unsigned integer type and programs with a combiner.
    fn keys(&self) -> Option<usize> {
        None
    }

    /// Emits the pairs of one piece of the input: whole records, separators included. The same pairs each time that it is called for
    /// that piece, in any order.
    fn map(&self, split: &mut Split<'_>, out: &mut impl Emit<Self::Key, Self::Value>);

    /// Emits what becomes of pairs that the step before has made, in a job whose steps follow on each other
    /// ([`Next::Pairs`](crate::Next::Pairs)). Without a function of its own a program passes them on.
    fn map_pairs(&self, pairs: &Pairs<'_, Self::Key, Self::Value>, out: &mut impl Emit<Self::Key, Self::Value>) {
        pairs.iter().for_each(|(key, value)| out.emit(key, value));
    }
}

/// Chooses one of so many partitions for a key.
pub type Partition<K> = for<'a> fn(<K as Datum>::Ref<'a>, usize) -> usize;

/// Makes the pairs of the result out of a key and all its values: see [`Job::reduce`](crate::Job::reduce).
pub type Reduce<'f, K, V> = dyn for<'a> Fn(
        <K as Datum>::Ref<'a>,
        &mut Values<'_, K, V>,
        &mut dyn FnMut(<K as Datum>::Ref<'_>, <V as Datum>::Ref<'_>),
    ) + Sync
    + 'f;

/// Where a map function puts its pairs.
pub trait Emit<K: Key, V: Datum> {
    /// Emits one pair.
    fn emit(&mut self, key: K::Ref<'_>, value: V::Ref<'_>);

    /// Emits a pair for each of `places`, with the bytes of `text` from the first number to before the second as its key.
    /// The same as `emit(&text[start..end], value)` for each, and faster: a short key can be read without asking how short
    /// where more text follows, and many keys are looked up together.
    #[inline(always)]
    fn emit_each(&mut self, text: &[u8], places: &[[u32; 2]], value: V::Ref<'_>) {
        for [start, end] in places {
            self.emit(K::read(&text[*start as usize..*end as usize]), value);
        }
    }
}

/// The combiner of a program, for code that the plan runs only when there is one. Being known to the
/// compiler, it becomes part of the loops that combine.
pub(crate) const fn combiner<J: MapReduce>() -> Combine<J::Value> {
    match J::COMBINE {
        Some(combine) => combine,
        None => |_, _| panic!("the plan combines only with a combiner"),
    }
}

/// What values combine to depends on their order.
pub(crate) const fn rounds<J: MapReduce>() -> bool {
    J::COMBINE.is_some() && !J::Value::EXACT
}
