//! A look at the input before the plan is made: a few small pieces of it, mapped once.
//!
//! The pieces are mapped by a child process, because the map function may crash, or never end: then the plan is made
//! without them. The child is given [`PATIENCE_MS`]; a piece that it has finished by then counts. Nothing of what it emits is
//! kept but numbers, which come back through a pipe.
//!
//! Measured: 0.3 ms of CPU time for the fork, the child and the count, which is why inputs below [`WORTH_BYTES`] are planned without.

use std::collections::HashSet;
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::AsFd;
use std::sync::Arc;

use gristmill_os::clock::monotonic_ns;
use gristmill_os::process::{Child, fork_worker};
use gristmill_os::wake::poll;

use crate::data::datum::{Datum, Key};
use crate::data::entry;
use crate::data::key;
use crate::data::seed::Seed;
use crate::input::reader::Reader;
use crate::input::records::Records;
use crate::input::source::Source;
use crate::input::split::Split;
use crate::input::tasks::Tasks;
use crate::plan::sample::{Sample, WORTH_BYTES};
use crate::plan::settings::{Isolation, Settings};
use crate::program::map_reduce::{Emit, MapReduce};

/// Pieces, spread over the input.
const PIECES: u64 = 3;
/// Bytes of a piece, about.
const PIECE_BYTES: usize = 8 << 10;
/// A whole file that is one record is a piece if it has no more than this.
const WHOLE_BYTES_MAX: u64 = 256 << 10;
/// How long the child may take.
const PATIENCE_MS: u32 = 10;
/// Pairs among which keys are told apart.
const PAIRS_TOLD_APART: usize = 4096;

/// Words that the child sends after each piece.
const WORDS: usize = 7;

/// Maps pieces of `sources`, if it is worth it and safe: a process of several threads must not be forked. The child
/// that did it may still be ending; dropped, it is waited for.
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
    let (told, has_ended, child) = ask(PATIENCE_MS, |to| {
        let mut reader = Reader::new(PIECE_BYTES);
        reader.state.extend_from_slice(state);
        map_pieces(program, &cut(settings, sources, PIECES), reader, seed, to);
    })?;
    let words = told.as_chunks::<{ WORDS * 8 }>().0.last()?;
    let sample = Sample::from_words(words);
    // What crashes on the first piece says nothing.
    (sample.pieces > 0 || !has_ended).then_some((sample, child))
}

impl Sample {
    fn to_words(self) -> [u8; WORDS * 8] {
        let Sample { pieces, bytes, pairs, pair_bytes, told_apart, keys, ns_per_byte } = self;
        let words = [pieces, bytes, pairs, pair_bytes, told_apart, keys, ns_per_byte.to_bits()].map(u64::to_le_bytes);
        words.as_flattened().try_into().expect("eight bytes each")
    }

    fn from_words(words: &[u8; WORDS * 8]) -> Sample {
        let mut words = words.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word));
        let mut next = || words.next().expect("there are as many as were written");
        Sample {
            pieces: next(),
            bytes: next(),
            pairs: next(),
            pair_bytes: next(),
            told_apart: next(),
            keys: next(),
            ns_per_byte: f64::from_bits(next()),
        }
    }
}

/// Whether there is enough input to look at, and not all of it is one record.
pub(crate) fn is_worth_it(settings: &Settings, sources: &[Source]) -> bool {
    let input_bytes: u64 = sources.iter().map(|source| source.bytes).sum();
    let first = sources.iter().find(|source| source.bytes > 0);
    let is_large =
        matches!(settings.records, Records::WholeFile) && first.is_some_and(|first| first.bytes > WHOLE_BYTES_MAX);
    let is_read_once = sources.iter().any(Source::is_stream);
    settings.sample && !is_large && !is_read_once && input_bytes >= WORTH_BYTES
}

/// The input in about so many tasks, of which the first chunk of each is a piece.
pub(crate) fn cut(settings: &Settings, sources: &Arc<[Source]>, pieces: u64) -> Tasks {
    let input_bytes: u64 = sources.iter().map(|source| source.bytes).sum();
    let piece = match settings.records {
        // Whether a quoted field is open elsewhere than at the beginning is not known yet.
        Records::Csv(_) => u64::MAX,
        _ => input_bytes.div_ceil(pieces),
    };
    Tasks::cut(sources.clone(), settings.records, piece, settings.record_bytes_max)
}

/// Shows `map` the first chunk of a task.
pub(crate) fn map_piece(reader: &mut Reader, tasks: &Tasks, task: usize, mut map: impl FnMut(&mut Split<'_>)) {
    // The reader ends early, with an error that nobody wants to see, when the first chunk is mapped.
    let _ = reader.for_each_chunk(tasks, &tasks.parts(task)[0], |split| {
        map(split);
        split.reject(0, "enough");
    });
}

/// What a child process tells through a pipe within so many milliseconds, and whether it was done by then. It may still be ending;
/// dropped, it is waited for.
pub(crate) fn ask(patience_ms: u32, tell: impl FnOnce(&mut PipeWriter)) -> Option<(Vec<u8>, bool, Child)> {
    let (mut from, mut to) = std::io::pipe().ok()?;
    let child = fork_worker(move || {
        // Whatever the map function does here, nobody shall hear of it: the workers will meet it again.
        std::panic::set_hook(Box::new(|_| {}));
        tell(&mut to);
        0
    });
    let mut child = child.ok()?;
    let (told, has_ended) = read_for(patience_ms, &mut from).ok()?;
    if !has_ended {
        child.kill().ok()?;
    }
    Some((told, has_ended, child))
}

/// The life of the child. A piece is what a reader of small chunks sees first of a task that is a third of the input.
fn map_pieces<J: MapReduce>(program: &J, tasks: &Tasks, mut reader: Reader, seed: &Seed, to: &mut impl Write) {
    let mut counter = Counter {
        seed,
        sample: Sample::default(),
        seen: HashSet::with_capacity_and_hasher(PAIRS_TOLD_APART, Default::default()),
    };
    // Until a piece is finished, what is known is how long the first one takes at least.
    let at_least = Sample { ns_per_byte: f64::from(PATIENCE_MS) * 1e6 / PIECE_BYTES as f64, ..Sample::default() };
    let tell = |sample: Sample, to: &mut dyn Write| to.write_all(&sample.to_words()).is_ok();
    if !tell(at_least, to) {
        return;
    }
    for task in 0..tasks.len().min(PIECES as usize) {
        let mut bytes = 0;
        let mut ns = 0;
        map_piece(&mut reader, tasks, task, |split| {
            let began_ns = monotonic_ns();
            bytes = split.bytes().len() as u64;
            program.map(split, &mut counter);
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

/// What comes through the pipe within so many milliseconds, and whether it has been closed by then.
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

/// Takes pairs and keeps numbers.
struct Counter<'s> {
    seed: &'s Seed,
    sample: Sample,
    /// Hashes of keys.
    seen: HashSet<u64, foldhash::fast::FixedState>,
}

impl<K: Key, V: Datum> Emit<K, V> for Counter<'_> {
    #[inline]
    fn emit(&mut self, key: K::Ref<'_>, value: V::Ref<'_>) {
        self.sample.pairs += 1;
        self.sample.pair_bytes += entry::width::<K, V>(key, value) as u64;
        if (self.sample.told_apart as usize) < PAIRS_TOLD_APART {
            self.sample.told_apart += 1;
            self.sample.keys += u64::from(self.seen.insert(key::hash::<K>(key, self.seed)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_survives_the_way_through_the_pipe() {
        let sample = Sample { pieces: 1, bytes: 2, pairs: 3, pair_bytes: 4, told_apart: 5, keys: 6, ns_per_byte: 7.5 };
        assert_eq!(Sample::from_words(&sample.to_words()), sample);
    }
}
