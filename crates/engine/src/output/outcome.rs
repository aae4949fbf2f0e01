//! The outcome of a job: its pairs, and statistics of the run.

use std::marker::PhantomData;
use std::path::PathBuf;

use crate::control::counters::Counters;
use crate::data::datum::{Datum, Key};
use crate::data::entry;
use crate::program::map_reduce::MapReduce;

/// The result of a job, gathered in memory in the requested order.
pub struct Output<K, V> {
    bytes: Vec<u8>,
    places: Vec<usize>,
    kind: PhantomData<(K, V)>,
}

impl<K, V> Default for Output<K, V> {
    fn default() -> Self {
        Output { bytes: Vec::new(), places: Vec::new(), kind: PhantomData }
    }
}

impl<K: Key, V: Datum> Output<K, V> {
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
    pub fn iter(&self) -> impl Iterator<Item = (K::Ref<'_>, V::Ref<'_>)> {
        self.places.iter().map(|place| {
            let pair = entry::read::<K, V>(&self.bytes[*place..]);
            (pair.key, pair.value)
        })
    }

    /// Returns the value of `key`, by a search through all pairs.
    pub fn get(&self, key: K::Ref<'_>) -> Option<V::Ref<'_>> {
        self.places
            .iter()
            .map(|place| entry::read::<K, V>(&self.bytes[*place..]))
            .find(|pair| K::compare(pair.key, key).is_eq())
            .map(|pair| pair.value)
    }
}

/// The outcome of a run: its pairs, and its statistics.
pub type Outcome<J> = (Output<<J as MapReduce>::Key, <J as MapReduce>::Value>, Summary);

/// The statistics of a run.
#[derive(Clone, Debug)]
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
    /// Records that were set aside, in the order of the input ([`Job::skip_bad_records`](crate::Job::skip_bad_records)).
    pub bad_records: Vec<BadRecord>,
    /// The statistics of each worker, including dead ones.
    pub workers: Vec<Worker>,
}

/// A record that was set aside because the map function failed on it.
#[derive(Clone, Debug, PartialEq, Eq)]
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
