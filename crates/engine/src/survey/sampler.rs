//! A survey before the plan is made: a few small pieces of the input are read and mapped once, to estimate the whole.
//!
//! A child process maps the pieces, because the map function may crash or never end; the plan is then made without
//! them. The child is given [`PATIENCE_MS`], and the pieces that it finishes by then count. Only counts and times of
//! what it emits are kept; they come back through a pipe.
//!
//! Measured: the fork, the child and the counting take 0.3 ms of CPU time, which is why inputs below [`WORTH_BYTES`]
//! are planned without a sample.

use std::collections::HashMap;
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::AsFd;
use std::sync::Arc;

use gristmill_os::clock::monotonic_ns;
use gristmill_os::process::{Activity, Child, fork_worker};
use gristmill_os::wake::poll;

use crate::data::datum::{Datum, Key};
use crate::data::entry;
use crate::data::key;
use crate::data::seed::Seed;
use crate::failure::Failure;
use crate::input::chunk::Chunk;
use crate::input::reader::Reader;
use crate::input::records::Records;
use crate::input::source::Source;
use crate::input::tasks::{Splits, Tasks};
use crate::plan::sample::{Sample, SampleWords, WORTH_BYTES};
use crate::plan::settings::{Isolation, Settings};
use crate::program::aggregate::{self, Aggregate, ItemOf};
use crate::program::map_reduce::{Emit, MapReduce};
use crate::survey::reading::{Reading, read_places};

/// The number of pieces, spread over the input.
const PIECES: u64 = 3;
/// The approximate size of a piece.
const PIECE_BYTES: usize = 8 << 10;
/// The size up to which a whole file that is one record is a piece.
const WHOLE_BYTES_MAX: u64 = 256 << 10;
/// The time limit of the child.
const PATIENCE_MS: u32 = 10;
/// The number of pairs whose distinct keys are counted.
const PAIRS_TOLD_APART: usize = 4096;

/// Maps pieces of `sources`, if that pays and is safe: a process with several threads must not be forked. The returned
/// child may still be ending; dropping it waits for it.
pub(crate) fn take_sample<J: MapReduce>(
    program: &J,
    settings: &Settings,
    sources: &Arc<[Source]>,
    state: &[u8],
    seed: &Seed,
) -> Option<(Sample, Child)> {
    let open = settings.workers.is_none() && settings.map_workers.is_none() || settings.split_bytes.is_none();
    if settings.isolation != Isolation::Process || !open || !is_worth_it(settings, sources) {
        return None;
    }
    let (told, activity, child) = ask(PATIENCE_MS, |to| {
        let mut reader = Reader::new(PIECE_BYTES);
        reader.state.extend_from_slice(state);
        // Until it has been read, only a lower bound of the time is known.
        let wait_ns = u64::from(PATIENCE_MS) * 1_000_000;
        let slow = Sample { read_bytes: PIECE_BYTES as u64, wait_ns, ..Sample::default() };
        if tell(slow, to) {
            let reading = read_places(sources);
            map_pieces(program, &cut(settings, sources, PIECES), reader, seed, reading, to);
        }
    })?;
    // The last message may be cut off.
    let words = told.chunks_exact(size_of::<SampleWords>()).last()?;
    let sample = Sample::of_words(bytemuck::pod_read_unaligned(words));
    let is_known = match activity {
        // A crash on the first piece yields no estimate.
        Activity::Ended => sample.pieces > 0,
        Activity::WaitsForDevice => true,
        // It may be the machine that is busy, and not the disk that is slow: the lower bound of reading says nothing
        // then.
        _ => sample.ns_per_byte > 0.0,
    };
    is_known.then_some((sample, child))
}

/// Tells a sample to the process that waits for it. Returns whether it still does.
fn tell(sample: Sample, to: &mut impl Write) -> bool {
    to.write_all(bytemuck::bytes_of(&sample.to_words())).is_ok()
}

/// Returns whether there is enough input to sample, and not all of it is one record.
pub(crate) fn is_worth_it(settings: &Settings, sources: &[Source]) -> bool {
    let input_bytes: u64 = sources.iter().map(|source| source.bytes).sum();
    let first = sources.iter().find(|source| source.bytes > 0);
    let is_whole = |source: &Source| matches!(source.records_or(settings.records), Records::WholeFile);
    let is_large = first.is_some_and(|first| is_whole(first) && first.bytes > WHOLE_BYTES_MAX);
    let is_read_once = sources.iter().any(Source::is_stream);
    settings.sample.unwrap_or(true) && !is_large && !is_read_once && input_bytes >= WORTH_BYTES
}

/// Cuts the input into about `pieces` tasks; the first chunk of each is a piece.
pub(crate) fn cut(settings: &Settings, sources: &Arc<[Source]>, pieces: u64) -> Tasks {
    let input_bytes: u64 = sources.iter().map(|source| source.bytes).sum();
    let is_csv = |source: &Source| matches!(source.records_or(settings.records), Records::Csv(_));
    // Where a quoted field is open is only known at the beginning.
    let piece = if sources.iter().any(is_csv) { u64::MAX } else { input_bytes.div_ceil(pieces) };
    Tasks::cut(sources.clone(), settings.records, Splits::of(piece), settings.record_bytes_max())
}

/// Ends the reader.
struct Enough;

impl From<Failure> for Enough {
    fn from(_: Failure) -> Enough {
        Enough
    }
}

/// Calls `map` with the first chunk of a task.
pub(crate) fn map_piece(reader: &mut Reader, tasks: &Tasks, task: usize, mut map: impl FnMut(&mut Chunk<'_>)) {
    // An error of the reader is of no interest here; the job will meet it again.
    let _: Result<(), Enough> = reader.for_each_chunk(tasks, &tasks.parts(task)[0], &mut |chunk| {
        map(chunk);
        Err(Enough)
    });
}

/// Forks a child process that sends data through a pipe. Returns the data sent within `patience_ms`, and what the child
/// did then: it has ended, or was killed. It may still be ending; dropping it waits for it.
pub(crate) fn ask(patience_ms: u32, tell: impl FnOnce(&mut PipeWriter)) -> Option<(Vec<u8>, Activity, Child)> {
    let (mut from, mut to) = std::io::pipe().ok()?;
    let child = fork_worker(move || {
        // Keep a panic of the map function silent: the workers will meet it again.
        std::panic::set_hook(Box::new(|_| {}));
        tell(&mut to);
        0
    });
    let mut child = child.ok()?;
    let (told, has_ended) = read_for(patience_ms, &mut from).ok()?;
    if has_ended {
        return Some((told, Activity::Ended, child));
    }
    let activity = match child.activity() {
        // It cannot be asked.
        Activity::Ended => Activity::Runs,
        activity => activity,
    };
    child.kill().ok()?;
    Some((told, activity, child))
}

/// The work of the child. The input is cut into three tasks, and a piece is the first small chunk of a task.
fn map_pieces<J: MapReduce>(
    program: &J,
    tasks: &Tasks,
    mut reader: Reader,
    seed: &Seed,
    Reading { bytes: read_bytes, wait_ns }: Reading,
    to: &mut impl Write,
) {
    let read = Sample { read_bytes, wait_ns, ..Sample::default() };
    let mut counter =
        Counter { seed, sample: read, seen: HashMap::with_capacity_and_hasher(PAIRS_TOLD_APART, Default::default()) };
    // Until a piece is finished, only a lower bound for the time of the first one is known.
    let at_least = Sample { ns_per_byte: f64::from(PATIENCE_MS) * 1e6 / PIECE_BYTES as f64, ..read };
    if !tell(at_least, to) {
        return;
    }
    for task in 0..tasks.len().min(PIECES as usize) {
        let mut bytes = 0;
        let mut ns = 0;
        map_piece(&mut reader, tasks, task, |chunk| {
            let began_ns = monotonic_ns();
            bytes = chunk.bytes().len() as u64;
            // The job will meet its error again.
            let _ = program.map(chunk, &mut counter);
            ns = monotonic_ns() - began_ns;
        });
        if bytes == 0 {
            continue;
        }
        let sample = &mut counter.sample;
        let ns_per_byte = ns as f64 / bytes as f64;
        sample.ns_per_byte = if sample.pieces == 0 { ns_per_byte } else { sample.ns_per_byte.min(ns_per_byte) };
        sample.pieces += 1;
        sample.bytes += bytes;
        if !tell(*sample, to) {
            return;
        }
    }
}

/// Returns the data received through the pipe within `patience_ms`, and whether the pipe was closed by then.
fn read_for(patience_ms: u32, from: &mut PipeReader) -> io::Result<(Vec<u8>, bool)> {
    let ends_ns = monotonic_ns() + u64::from(patience_ms) * 1_000_000;
    let (mut told, mut buffer) = (Vec::new(), [0; 4096]);
    loop {
        let left_ms = ends_ns.saturating_sub(monotonic_ns()).div_ceil(1_000_000);
        if poll(&[from.as_fd()], Some(left_ms as u32))?.is_empty() {
            if left_ms == 0 {
                return Ok((told, false));
            }
            continue;
        }
        match from.read(&mut buffer)? {
            0 => return Ok((told, true)),
            read => told.extend_from_slice(&buffer[..read]),
        }
    }
}

/// Counts the pairs that a map function emits.
struct Counter<'s> {
    seed: &'s Seed,
    sample: Sample,
    /// The hashes of distinct keys, and the bytes of the pairs of each.
    seen: HashMap<u64, u64, foldhash::fast::FixedState>,
}

impl<K: Key, V: Datum> Emit<K, V> for Counter<'_> {
    #[inline]
    fn emit(&mut self, key: K::Ref<'_>, value: V::Ref<'_>) {
        let sample = &mut self.sample;
        let bytes = entry::width::<K, V>(key, value) as u64;
        sample.pairs += 1;
        sample.pair_bytes += bytes;
        if (sample.told_apart as usize) < PAIRS_TOLD_APART {
            sample.told_apart += 1;
            sample.told_bytes += bytes;
            let of_key = self.seen.entry(key::hash::<K>(key, self.seed)).or_insert(0);
            *of_key += bytes;
            sample.heaviest_bytes = sample.heaviest_bytes.max(*of_key);
            sample.keys = self.seen.len() as u64;
        }
    }

    #[inline]
    fn add(&mut self, key: K::Ref<'_>, item: <ItemOf<V> as Datum>::Ref<'_>)
    where
        V: Aggregate,
    {
        let Sample { told_apart, told_bytes, .. } = self.sample;
        if (told_apart as usize) < PAIRS_TOLD_APART {
            return Emit::<K, V>::emit(self, key, V::lend(&aggregate::one::<V>(item)));
        }
        // To make an aggregate of each item would take longer than the job does, which adds in place.
        self.sample.pairs += 1;
        self.sample.pair_bytes += told_bytes / told_apart;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_is_unchanged_by_the_pipe() {
        let sample = Sample {
            pieces: 1,
            bytes: 2,
            pairs: 3,
            pair_bytes: 4,
            told_apart: 5,
            keys: 6,
            told_bytes: 7,
            heaviest_bytes: 8,
            ns_per_byte: 9.5,
            read_bytes: 10,
            wait_ns: 11,
        };
        let mut message = Vec::new();
        assert!(tell(sample, &mut message));
        assert_eq!(Sample::of_words(bytemuck::pod_read_unaligned(&message)), sample);
    }
}
