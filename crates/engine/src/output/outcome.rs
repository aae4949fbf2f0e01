//! The outcome of a job: its pairs, and statistics of the run.

use std::marker::PhantomData;
use std::path::PathBuf;

use crate::control::counters::Counters;
use crate::control::node_reads::NodeReads;
use crate::data::datum::{Datum, Key};
use crate::data::entry;
use crate::output::timeline::Timeline;
use crate::program::accumulator::{Accumulator, Values};
use crate::program::ending::{AsMapped, Ending};

/// The result of a job, gathered in memory in the requested order.
///
/// ```
/// # use gristmill::{Emit, Input, Isolation, Job, MapReduce, ProgramError, Chunk};
/// /// Counts words by their first letter.
/// struct Letters;
///
/// impl MapReduce for Letters {
///     type Key = char;
///     type Value = u64;
///
///     fn combiner(&self) -> Option<impl Fn(u64, u64) -> u64> {
///         Some(|a, b| a + b)
///     }
///
///     fn map(&self, chunk: &mut Chunk<'_>, out: &mut impl Emit<char, u64>) -> Result<(), ProgramError> {
///         let words = chunk.bytes().split(u8::is_ascii_whitespace);
///         words.filter_map(|word| word.first()).for_each(|letter| out.emit(char::from(*letter), 1));
///         Ok(())
///     }
/// }
///
/// // This doctest runs beside others in one process, so its workers are threads.
/// let job = Job::new(&Letters, Input::bytes("pond", b"a frog leaps in\na pond\n")?).isolation(Isolation::Thread);
/// let (counts, _) = job.run()?;
/// assert_eq!(counts.get('a'), Some(2));
/// for (letter, count) in &counts {
///     println!("{letter}: {count}");
/// }
/// assert_eq!(counts.iter().next_back(), Some(('p', 1)));
/// # Ok::<(), gristmill::Error>(())
/// ```
pub struct Output<K, V> {
    bytes: Vec<u8>,
    places: Vec<usize>,
    /// Whether the pairs are in the order of their keys.
    is_sorted: bool,
    kind: PhantomData<(K, V)>,
}

impl<K: Key, V: Datum> Output<K, V> {
    /// Makes an empty output. `is_sorted` says that pairs will be pushed in the order of their keys.
    pub(crate) fn new(is_sorted: bool) -> Self {
        Output { bytes: Vec::new(), places: Vec::new(), is_sorted, kind: PhantomData }
    }

    pub(crate) fn push(&mut self, key: K::Ref<'_>, value: V::Ref<'_>) {
        self.places.push(self.bytes.len());
        entry::append::<K, V>(0, key, value, &mut self.bytes);
    }

    /// Returns the number of pairs.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Returns whether there are no pairs.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Iterates over the pairs, in order.
    pub fn iter(&self) -> Iter<'_, K, V> {
        Iter { output: self, places: self.places.iter() }
    }

    /// Returns the value of the first pair with this key. A result in the order of its keys is searched by halves, any
    /// other from its start. The result of a reduce function is of the other kind, because it may emit any keys.
    pub fn get(&self, key: K::Ref<'_>) -> Option<V::Ref<'_>> {
        let found = match self.is_sorted {
            true => {
                let start = self.places.partition_point(|place| K::compare(self.at(*place).0, key).is_lt());
                self.places.get(start).map(|place| self.at(*place))
            }
            false => self.iter().find(|(other, _)| K::compare(*other, key).is_eq()),
        };
        found.filter(|(other, _)| K::compare(*other, key).is_eq()).map(|(_, value)| value)
    }

    fn at(&self, place: usize) -> (K::Ref<'_>, V::Ref<'_>) {
        let pair = entry::read::<K, V>(&self.bytes[place..]);
        (pair.key, pair.value)
    }
}

impl<'o, K: Key, V: Datum> IntoIterator for &'o Output<K, V> {
    type Item = (K::Ref<'o>, V::Ref<'o>);
    type IntoIter = Iter<'o, K, V>;

    fn into_iter(self) -> Iter<'o, K, V> {
        self.iter()
    }
}

/// The pairs of an [`Output`], in order.
pub struct Iter<'o, K, V> {
    output: &'o Output<K, V>,
    places: std::slice::Iter<'o, usize>,
}

impl<'o, K: Key, V: Datum> Iterator for Iter<'o, K, V> {
    type Item = (K::Ref<'o>, V::Ref<'o>);

    fn next(&mut self) -> Option<Self::Item> {
        self.places.next().map(|place| self.output.at(*place))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.places.size_hint()
    }
}

impl<K: Key, V: Datum> DoubleEndedIterator for Iter<'_, K, V> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.places.next_back().map(|place| self.output.at(*place))
    }
}

impl<K: Key, V: Datum> ExactSizeIterator for Iter<'_, K, V> {}

/// The outcome of a run: its pairs, and its statistics.
pub type Outcome<J, E = AsMapped> = (Output<<E as Ending<J>>::Key, <E as Ending<J>>::Value>, Summary);

/// The statistics of a run.
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
/// use gristmill::stats::Count;
/// use gristmill::{Input, Isolation, Job};
///
/// // This doctest runs beside others in one process, so its workers are threads.
/// let job = Job::new(&Words, Input::bytes("song", b"row row your boat")?).isolation(Isolation::Thread);
/// let (_, summary) = job.run()?;
/// assert_eq!((summary.input_bytes, summary.pairs, summary.deaths.len()), (17, 3, 0));
/// let keys: u64 = summary.workers.iter().map(|worker| worker.counters.get(Count::Keys)).sum();
/// assert_eq!(keys, 3);
/// # Ok::<(), gristmill::Error>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Summary {
    /// Nanoseconds from the call to the result.
    pub wall_ns: u64,
    /// Nanoseconds from the call until the workers that the job begins with were started.
    pub start_ns: u64,
    /// Bytes of input.
    pub input_bytes: u64,
    /// The memory of the job in bytes.
    pub memory_bytes: u64,
    /// The number of map tasks.
    pub tasks: usize,
    /// The number of map tasks that were already done when the job was continued
    /// ([`Job::checkpoint`](crate::Job::checkpoint)); not part of `tasks`.
    pub resumed_tasks: usize,
    /// The number of pairs in the result.
    pub pairs: u64,
    /// For each worker that died and was replaced, a sentence about its death.
    pub deaths: Vec<String>,
    /// The number of times that the input was mapped, whole or in part.
    pub rounds: u32,
    /// The number of times that the job started over, because a task emitted other pairs when it was mapped again. The
    /// figures of workers and rounds are those of the last start.
    pub begun_anew: u32,
    /// The number of steps of an iterated job; 1 for other jobs.
    pub steps: u32,
    /// Records that were set aside, in the order of the input
    /// ([`Job::skip_bad_records`](crate::Job::skip_bad_records)).
    pub bad_records: Vec<BadRecord>,
    /// The bytes of pages that workers and coordinator have read, by the NUMA node of the page's memory and that of
    /// the reader. Empty on a machine with one node.
    pub node_reads: Vec<NodeReads>,
    /// The statistics of each worker, including dead ones.
    pub workers: Vec<Worker>,
    /// Which phase each worker was in, and when, if [`Job::timeline`](crate::Job::timeline) asked for it.
    pub timeline: Option<Timeline>,
    /// The values of the accumulators that were added to.
    pub(crate) totals: Values,
}

impl Summary {
    /// Returns what the map function has added to `accumulator` in the whole job; `None` if it has added nothing.
    pub fn total(&self, accumulator: &Accumulator) -> Option<i64> {
        self.totals.iter().find(|(kind, _)| *kind == accumulator.kind).map(|(_, total)| *total)
    }
}

/// A record that was set aside because the map function failed on it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BadRecord {
    /// The file.
    pub path: PathBuf,
    /// The offset in bytes of the record in the file's content.
    pub offset: u64,
    /// Its line, from 1, if records are lines.
    pub line: Option<u64>,
    /// The record without its end mark; at most its first 64 KiB.
    pub record: Vec<u8>,
    /// How the map function died, or why it rejected the record.
    pub cause: String,
}

/// One worker of a run.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Worker {
    /// Its number, from 1.
    pub number: usize,
    /// Whether it mapped.
    pub maps: bool,
    /// Whether it reduced.
    pub reduces: bool,
    /// Its counters.
    pub counters: Counters,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_first_pair_of_a_key_is_found_in_any_order(mut pairs in prop::collection::vec((0..20u8, any::<u32>()), 0..30)) {
            for is_sorted in [false, true] {
                if is_sorted {
                    pairs.sort_by_key(|(key, _)| *key);
                }
                let mut output = Output::<u8, u32>::new(is_sorted);
                pairs.iter().for_each(|(key, value)| output.push(*key, *value));
                for key in 0..20 {
                    let expected = pairs.iter().find(|(other, _)| *other == key).map(|(_, value)| *value);
                    prop_assert_eq!(output.get(key), expected);
                }
                prop_assert!(output.iter().rev().eq(pairs.iter().rev().copied()));
            }
        }
    }
}
