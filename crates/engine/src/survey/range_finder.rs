//! A look at the input for cuts between ranges of the result: pieces of it, mapped by a child process before the job starts.

use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use gristmill_os::clock::monotonic_ns;

use crate::data::datum::{Datum, Key};
use crate::gather::store::Pile;
use crate::input::reader::Reader;
use crate::input::source::Source;
use crate::plan::settings::{Isolation, Settings};
use crate::program::map_reduce::{Emit, MapReduce};
use crate::program::ranges::Ranges;
use crate::survey::sampler::{ask, cut, is_worth_it, map_piece};

/// Pieces that are looked at, spread over the input, and their size, about: thousands of pairs, so that the largest of 64
/// ranges is hardly a tenth larger than the average.
const PIECES: u64 = 128;
const PIECE_BYTES: usize = 8 << 10;
/// How long the look may take; it takes 2 ms where pairs are records of 100 bytes. Without cuts one process merges what the
/// others have sorted: a map function that is slower than this does not wait for it. If nobody can merge it is worth more.
const PATIENCE_MS: u32 = 200;
const PATIENCE_TO_WRITE_MS: u32 = 5000;
/// Pairs that are kept of it: longer ones need fewer pieces.
const PAIRS_BYTES: usize = 4 << 20;

/// Looks for cuts in pieces of the input, before the job starts. There are none if the map function crashes on them or is so
/// slow that whoever merges its pairs need not hurry, and if the input is hardly more than the pieces.
pub(crate) fn find_ranges<J: MapReduce>(
    program: &J,
    settings: &Settings,
    sources: &Arc<[Source]>,
    count: usize,
    writes: bool,
) -> Option<Ranges<J::Key, J::Value>> {
    if !is_worth_it(settings, sources) {
        return None;
    }
    let patience_ms = if writes { PATIENCE_TO_WRITE_MS } else { PATIENCE_MS };
    let look = || {
        let deadline_ns = monotonic_ns() + u64::from(patience_ms) * 1_000_000;
        let tasks = cut(settings, sources, PIECES);
        let mut reader = Reader::new(PIECE_BYTES);
        let mut collector = Collector { pairs: Pile::new(1) };
        for task in 0..tasks.len() {
            map_piece(&mut reader, &tasks, task, |split| program.map(split, &mut collector));
            if monotonic_ns() > deadline_ns {
                return None;
            }
        }
        Some(Ranges::cut(collector.pairs, count))
    };
    if settings.isolation == Isolation::Thread {
        // Here a map function hangs only if the job would, too.
        return catch_unwind(AssertUnwindSafe(look)).ok()?;
    }
    let (told, ..) = ask(patience_ms, |to| {
        let Some(ranges) = look() else { return };
        let length = ranges.bytes().len() as u64;
        // If nobody listens any more, nobody misses it.
        let _ = to.write_all(&length.to_le_bytes()).and_then(|()| to.write_all(ranges.bytes()));
    })?;
    let (length, cuts) = told.split_first_chunk()?;
    (u64::from_le_bytes(*length) == cuts.len() as u64).then(|| Ranges::read(cuts.to_vec()))
}

/// Takes pairs and keeps them.
struct Collector<K: Key, V: Datum> {
    pairs: Pile<K, V>,
}

impl<K: Key, V: Datum> Emit<K, V> for Collector<K, V> {
    fn emit(&mut self, key: K::Ref<'_>, value: V::Ref<'_>) {
        if self.pairs.bytes() < PAIRS_BYTES {
            self.pairs.push(0, key, value);
        }
    }
}
