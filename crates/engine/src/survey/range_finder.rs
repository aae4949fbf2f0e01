//! A survey for the cuts between ranges of the result: a child process maps pieces of the input before the job starts.

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

/// The number of pieces, spread over the input, and their approximate size. They yield thousands of pairs, so the
/// largest of 64 ranges is hardly a tenth larger than the average.
const PIECES: u64 = 128;
const PIECE_BYTES: usize = 8 << 10;
/// The time limits of the survey, which takes 2 ms if pairs are records of 100 bytes. Without cuts, one process merges
/// what the others have sorted; this is so fast compared with a slow map function that such a job need not wait for the
/// survey. If reducers write the result, cuts are worth a longer wait, because nobody could merge it.
const PATIENCE_MS: u32 = 200;
const PATIENCE_TO_WRITE_MS: u32 = 5000;
/// The size of the pairs that are kept: longer pairs need fewer pieces.
const PAIRS_BYTES: usize = 4 << 20;

/// Searches pieces of the input for cuts, before the job starts. Finds none if the map function crashes on the pieces,
/// if it is so slow that the merge of its pairs does not matter, or if the input is hardly larger than the pieces.
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
            map_piece(&mut reader, &tasks, task, |chunk| {
                // The job will meet its error again.
                let _ = program.map(chunk, &mut collector);
            });
            if monotonic_ns() > deadline_ns {
                return None;
            }
        }
        Some(Ranges::cut(collector.pairs, count))
    };
    if settings.isolation == Isolation::Thread {
        // Without a child process, a map function that hangs would also hang in the job.
        return catch_unwind(AssertUnwindSafe(look)).ok()?;
    }
    let (told, ..) = ask(patience_ms, |to| {
        let Some(ranges) = look() else { return };
        let length = ranges.bytes().len() as u64;
        // The reader may have given up by now, and then does not need the cuts.
        let _ = to.write_all(&length.to_le_bytes()).and_then(|()| to.write_all(ranges.bytes()));
    })?;
    let (length, cuts) = told.split_first_chunk()?;
    (u64::from_le_bytes(*length) == cuts.len() as u64).then(|| Ranges::read(cuts.to_vec()))
}

/// Keeps the pairs that a map function emits.
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
