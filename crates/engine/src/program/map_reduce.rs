//! The traits that a user implements: the map function, and how values combine.

use crate::data::datum::{Datum, Key, Owned};
use crate::input::chunk::Chunk;
use crate::program::aggregate::{self, Aggregate};
use crate::program::pairs::Pairs;
use crate::program_error::ProgramError;
use crate::spill::values::Values;

/// A MapReduce program.
///
/// The engine calls [`map`](MapReduce::map) with pieces of the input, in any order, on many workers, and again with
/// pieces whose worker died. So `map` must depend on nothing but its chunk. Seed random numbers with the place of the
/// chunk ([`Chunk::offset`](crate::Chunk::offset)), and use neither the time nor the iteration order of a hash set.
///
/// A program that breaks this rule still gets no wrong result. If a part of the result is lost and a task emits other
/// pairs than those that the rest was made from, the job starts over. If some of the result was already delivered, it
/// ends with [`Error::Unrepeatable`](crate::Error::Unrepeatable).
///
/// ```
/// use gristmill::{Bytes, Emit, MapReduce, ProgramError, Chunk};
///
/// struct WordCount;
///
/// impl MapReduce for WordCount {
///     type Key = Bytes;
///     type Value = u64;
///
///     fn combiner(&self) -> Option<impl Fn(u64, u64) -> u64> {
///         Some(|a, b| a + b)
///     }
///
///     fn map(&self, chunk: &mut Chunk<'_>, out: &mut impl Emit<Bytes, u64>) -> Result<(), ProgramError> {
///         for word in chunk.bytes().split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()) {
///             out.emit(word, 1);
///         }
///         Ok(())
///     }
/// }
/// ```
pub trait MapReduce: Sync {
    /// The type of keys, by which pairs are grouped.
    type Key: Key;
    /// The type of values.
    type Value: Datum;

    /// Chooses the partition of a key; the number of partitions is a power of two. `None` spreads keys by their hash; a
    /// function can keep keys together, or in order. All pairs of one partition are reduced by one worker.
    const PARTITION: Option<Partition<Self::Key>> = None;

    /// Whether the map function expands files in memory beyond the pairs that it emits, such as to the pixels of a
    /// picture, and asks [`Source::memory`](crate::files::Source::memory) for its limit. A part of the job's memory is
    /// reserved for it.
    const UNPACKS: bool = false;

    /// Returns the size of the key domain, if all keys are numbers below it. Pairs are then added into a plain array
    /// with one value per key, without hashing. A key outside the domain is a bug of the program and ends the task with
    /// a panic. Only for keys of an unsigned integer type and programs with a combiner.
    fn keys(&self) -> Option<usize> {
        None
    }

    /// Returns the function that combines two values of one key into one. It must be associative and commutative, and
    /// it may use the fields of the program. `None`, the default, keeps every value. The engine calls this method as
    /// often as it combines; the compiler inlines both. A closure that uses a field or a method of its arguments must
    /// name their types: `Some(|a: (u64, u64), b: (u64, u64)| (a.0 + b.0, a.1.max(b.1)))`. Values that are much larger
    /// than what a record adds to them are an [`Aggregate`], whose combiner is [`Aggregate::merged`].
    ///
    /// ```
    /// # use gristmill::{Emit, MapReduce, ProgramError, Chunk};
    /// /// The largest numbers.
    /// struct Largest {
    ///     count: usize,
    /// }
    ///
    /// impl MapReduce for Largest {
    ///     type Key = ();
    ///     type Value = Vec<u8>;
    /// #
    /// #   fn map(&self, chunk: &mut Chunk<'_>, out: &mut impl Emit<(), Vec<u8>>) -> Result<(), ProgramError> {
    /// #       chunk.bytes().iter().for_each(|byte| out.emit((), std::slice::from_ref(byte)));
    /// #       Ok(())
    /// #   }
    ///
    ///     fn combiner(&self) -> Option<impl Fn(Vec<u8>, Vec<u8>) -> Vec<u8>> {
    ///         Some(|a: Vec<u8>, b: Vec<u8>| {
    ///             let mut numbers = [a, b].concat();
    ///             numbers.sort_unstable_by(|a, b| b.cmp(a));
    ///             numbers.truncate(self.count);
    ///             numbers
    ///         })
    ///     }
    /// }
    /// # use gristmill::{Input, Isolation, Job};
    /// # let job = Job::new(&Largest { count: 2 }, Input::bytes("numbers", &[3, 9, 4, 7])?).isolation(Isolation::Thread);
    /// # assert_eq!(job.run()?.0.get(()), Some(&[9, 7][..]));
    /// # Ok::<(), gristmill::Error>(())
    /// ```
    fn combiner(&self) -> Option<impl Fn(Owned<Self::Value>, Owned<Self::Value>) -> Owned<Self::Value>> {
        None::<fn(Owned<Self::Value>, Owned<Self::Value>) -> Owned<Self::Value>>
    }

    /// Emits the pairs of one piece of the input, which consists of whole records, separators included. Every call for
    /// one piece must emit the same pairs, in any order.
    ///
    /// # Errors
    /// The program cannot use the input: see [`ProgramError`].
    fn map(&self, chunk: &mut Chunk<'_>, out: &mut impl Emit<Self::Key, Self::Value>) -> Result<(), ProgramError>;

    /// Called when all pieces of a task have been mapped, in the worker that mapped them: see [`Chunk::task`]. For
    /// programs that deliver something besides their pairs. A task whose worker dies before its pairs count is mapped
    /// again from its start.
    fn end_task(&self, task: usize) {
        let _ = task;
    }

    /// Maps pairs that the previous step made, in a job whose steps map the pairs of the step before
    /// ([`Next::Pairs`](crate::Next::Pairs)). By default, emits them unchanged.
    ///
    /// # Errors
    /// The program cannot use the pairs.
    fn map_pairs(
        &self,
        pairs: &Pairs<'_, Self::Key, Self::Value>,
        out: &mut impl Emit<Self::Key, Self::Value>,
    ) -> Result<(), ProgramError> {
        pairs.iter().for_each(|(key, value)| out.emit(key, value));
        Ok(())
    }
}

/// Chooses a partition for a key; the second argument is the number of partitions.
pub type Partition<K> = for<'a> fn(<K as Datum>::Ref<'a>, usize) -> usize;

/// Makes the pairs of the result, which have keys `OK` and values `OV`, from a key and all its values: see
/// [`Job::reduce`](crate::Job::reduce).
pub(crate) type Reduce<'f, K, V, OK = K, OV = V> = dyn for<'a> Fn(
        <K as Datum>::Ref<'a>,
        &mut Values<'_, K, V>,
        &mut dyn FnMut(<OK as Datum>::Ref<'_>, <OV as Datum>::Ref<'_>),
    ) -> Result<(), ProgramError>
    + Send
    + Sync
    + 'f;

/// Takes the pairs of a map function.
pub trait Emit<K: Key, V: Datum> {
    /// Emits one pair.
    fn emit(&mut self, key: K::Ref<'_>, value: V::Ref<'_>);

    /// Adds an item to the aggregate of a key. Equivalent to emitting an aggregate of this item alone, but where the
    /// job combines in map, the item is added in place.
    #[inline(always)]
    fn add(&mut self, key: K::Ref<'_>, item: <V::Item as Datum>::Ref<'_>)
    where
        V: Aggregate,
    {
        self.emit(key, V::lend(&aggregate::one::<V>(item)));
    }

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

/// So a function can pass its `out` on as `&mut dyn Emit<K, V>`.
impl<K: Key, V: Datum, E: Emit<K, V> + ?Sized> Emit<K, V> for &mut E {
    #[inline(always)]
    fn emit(&mut self, key: K::Ref<'_>, value: V::Ref<'_>) {
        (**self).emit(key, value);
    }

    #[inline(always)]
    fn add(&mut self, key: K::Ref<'_>, item: <V::Item as Datum>::Ref<'_>)
    where
        V: Aggregate,
    {
        (**self).add(key, item);
    }

    #[inline(always)]
    fn emit_each(&mut self, text: &[u8], places: &[[u32; 2]], value: V::Ref<'_>) {
        (**self).emit_each(text, places, value);
    }
}

/// Returns the combiner of a program, for code that the plan runs only if there is one. The compiler inlines it into
/// the loops that combine.
#[inline(always)]
pub(crate) fn combiner<J: MapReduce>(
    program: &J,
) -> impl Fn(Owned<J::Value>, Owned<J::Value>) -> Owned<J::Value> + Copy + use<'_, J> {
    move |a, b| match program.combiner() {
        Some(combine) => combine(a, b),
        None => panic!("the plan combines only with a combiner"),
    }
}

/// Returns whether a program has a combiner.
#[inline(always)]
pub(crate) fn combines<J: MapReduce>(program: &J) -> bool {
    program.combiner().is_some()
}

/// Returns whether the result of combining depends on the order of the values.
pub(crate) fn rounds<J: MapReduce>(program: &J) -> bool {
    combines(program) && !J::Value::EXACT
}
