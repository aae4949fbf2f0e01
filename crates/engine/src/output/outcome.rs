//! What a job gives back: the pairs, and what it took to make them.

use std::marker::PhantomData;
use std::path::PathBuf;

use crate::control::counters::Counters;
use crate::data::datum::{Datum, Key};
use crate::data::entry;
use crate::program::map_reduce::MapReduce;

/// The result of a job, gathered in memory, in the order that the job asked for.
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

    /// Number of pairs.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// True when there are none.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// The pairs, in order.
    pub fn iter(&self) -> impl Iterator<Item = (K::Ref<'_>, V::Ref<'_>)> {
        self.places.iter().map(|place| {
            let pair = entry::read::<K, V>(&self.bytes[*place..]);
            (pair.key, pair.value)
        })
    }

    /// The value of `key`: a look through all pairs.
    pub fn get(&self, key: K::Ref<'_>) -> Option<V::Ref<'_>> {
        self.places
            .iter()
            .map(|place| entry::read::<K, V>(&self.bytes[*place..]))
            .find(|pair| K::compare(pair.key, key).is_eq())
            .map(|pair| pair.value)
    }
}

/// What a run gives back: its pairs, and what it took to make them.
pub type Outcome<J> = (Output<<J as MapReduce>::Key, <J as MapReduce>::Value>, Summary);

/// What a run took.
#[derive(Clone, Debug)]
pub struct Summary {
    /// From the call to the answer, nanoseconds.
    pub wall_ns: u64,
    /// From the call until every worker had been started, nanoseconds.
    pub start_ns: u64,
    /// Bytes of input.
    pub input_bytes: u64,
    /// The memory that the job was given, bytes.
    pub memory_bytes: u64,
    /// Map tasks.
    pub tasks: usize,
    /// Map tasks that were done when the job was continued ([`Job::checkpoint`](crate::Job::checkpoint)); they are not among
    /// `tasks`.
    pub resumed_tasks: usize,
    /// Pairs in the result.
    pub pairs: u64,
    /// Workers that died and were replaced, each with the sentence that says how.
    pub deaths: Vec<String>,
    /// Times the input was mapped, whole or in part.
    pub rounds: u32,
    /// Times that the job began anew, because a task gave other pairs when it was mapped again; what is told of workers and rounds
    /// is that of the last time.
    pub begun_anew: u32,
    /// Steps of an iterated job; 1 for others.
    pub steps: u32,
    /// Records that were set aside, in the order of the input ([`Job::skip_bad_records`](crate::Job::skip_bad_records)).
    pub bad_records: Vec<BadRecord>,
    /// What each worker did, the dead included.
    pub workers: Vec<Worker>,
}

/// A record that was set aside, because the map function could not deal with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadRecord {
    /// The file.
    pub path: PathBuf,
    /// Where in its content the record begins, in bytes.
    pub offset: u64,
    /// Its line, from 1, if records are lines.
    pub line: Option<u64>,
    /// The record, without what ends it; of a longer one its first 64 KiB.
    pub record: Vec<u8>,
    /// What the map function died of, or said against it.
    pub cause: String,
}

/// One worker of a run.
#[derive(Clone, Debug)]
pub struct Worker {
    /// Its number, from 1.
    pub number: usize,
    /// It mapped.
    pub maps: bool,
    /// It reduced.
    pub reduces: bool,
    /// What it counted.
    pub counters: Counters,
}
