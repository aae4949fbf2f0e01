//! A survey for the weights of partitions: a child process maps pieces of the input before the job starts, and counts
//! the bytes of each partition and of each key that many pieces have.

use std::collections::HashMap;
use std::io::Write;
use std::marker::PhantomData;
use std::sync::Arc;

use gristmill_os::clock::monotonic_ns;

use crate::data::datum::Datum;
use crate::data::entry;
use crate::data::key;
use crate::data::seed::Seed;
use crate::input::reader::Reader;
use crate::input::source::Source;
use crate::input::tasks::Tasks;
use crate::plan::sample::Weights;
use crate::plan::settings::Settings;
use crate::program::map_reduce::{Emit, MapReduce};
use crate::program::partition::Partitioner;
use crate::survey::sampler::{ask, cut, map_piece};

/// The number of pieces, spread over the input, and their approximate size. A reducer's part of 100,000 pairs, a
/// thirty-second, is known within two percent.
const PIECES: u64 = 128;
const PIECE_BYTES: usize = 8 << 10;
/// The fewest pieces that say something about the whole.
const PIECES_MIN: usize = 8;
/// The part of the pieces that a key must be in to count as heavy. In an input that is sorted by key, each key fills
/// the few pieces that it is in, and says nothing about the partitions of the others.
const SPREAD: usize = 4;
/// The number of passes over the input. Each maps every eighth piece, so even a few pieces come from all of it.
const PASSES: usize = 8;

/// Weighs pairs in pieces of the input for at most `patience_ms`. `None` if the map function crashes on them, or is so
/// slow that too few were mapped.
pub(crate) fn weigh_partitions<J: MapReduce>(
    program: &J,
    settings: &Settings,
    sources: &Arc<[Source]>,
    partitions: usize,
    patience_ms: u32,
    seed: &Seed,
) -> Option<Weights> {
    let (told, ..) = ask(patience_ms, |to| {
        // The message takes a moment, too.
        let until_ns = monotonic_ns() + u64::from(patience_ms) * 750_000;
        let tasks = cut(settings, sources, PIECES);
        if let Some(weights) = count(program, &tasks, partitions, until_ns, seed) {
            let words = [weights.counted].into_iter().chain(weights.of.iter().map(|weight| weight.to_bits()));
            // The reader may have given up by now, and then does not need them.
            let _ = to.write_all(&words.flat_map(u64::to_le_bytes).collect::<Vec<u8>>());
        }
    })?;
    let mut words = told.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().expect("it is 8 bytes")));
    let counted = words.next()?;
    let of: Vec<f64> = words.map(f64::from_bits).collect();
    (of.len() == partitions).then_some(Weights { counted, of })
}

/// Maps pieces until all are mapped or the time is over, and weighs the partitions of what they emit.
fn count<J: MapReduce>(program: &J, tasks: &Tasks, partitions: usize, until_ns: u64, seed: &Seed) -> Option<Weights> {
    let mut reader = Reader::new(PIECE_BYTES);
    let mut counter = Counter::new(partitions, seed, J::PARTITION.is_some());
    let passes = (0..PASSES).flat_map(|pass| (pass..tasks.len()).step_by(PASSES));
    for task in passes.take_while(|_| monotonic_ns() < until_ns) {
        counter.pieces += 1;
        map_piece(&mut reader, tasks, task, |chunk| {
            let mut emitter = Emitter::<J> { counter: &mut counter, program: PhantomData };
            // Through a pointer, for which the map function is compiled anyway. The job will meet its error again.
            let _ = program.map(chunk, &mut (&mut emitter as &mut dyn Emit<J::Key, J::Value>));
        });
    }
    counter.weights()
}

/// The size of a key.
#[derive(Clone, Copy, Default)]
struct KeySize {
    partition: usize,
    bytes: u64,
    /// The number of pieces that it was in, and the last of them.
    pieces: usize,
    last_piece: usize,
}

/// Counts the pairs that a map function emits.
struct Counter<'s> {
    seed: &'s Seed,
    partitioner: Partitioner,
    /// Whether the program chooses the partitions.
    chooses: bool,
    pairs: u64,
    /// The bytes of each partition.
    of: Vec<u64>,
    /// The size of each key, by its hash.
    keys: HashMap<u32, KeySize, foldhash::fast::FixedState>,
    pieces: usize,
}

impl Counter<'_> {
    fn new(partitions: usize, seed: &Seed, chooses: bool) -> Counter<'_> {
        let (partitioner, of) = (Partitioner::new(partitions), vec![0; partitions]);
        Counter { seed, partitioner, chooses, pairs: 0, of, keys: HashMap::default(), pieces: 0 }
    }

    /// Returns the weight of each partition: its heavy keys, and an equal part of all other bytes, which hashing
    /// spreads. A program that spreads them itself may do so unequally.
    fn weights(&self) -> Option<Weights> {
        if self.pieces < PIECES_MIN || self.pairs == 0 {
            return None;
        }
        let mut heavy = vec![0; self.of.len()];
        let pieces_min = PIECES_MIN.max(self.pieces / SPREAD);
        for key in self.keys.values().filter(|key| key.pieces >= pieces_min) {
            heavy[key.partition] += key.bytes;
        }
        let light = self.of.iter().sum::<u64>() - heavy.iter().sum::<u64>();
        let equal = light.max(1) as f64 / self.of.len() as f64;
        let weight = |partition: usize| match self.chooses {
            true => self.of[partition].max(1) as f64,
            false => heavy[partition] as f64 + equal,
        };
        Some(Weights { counted: self.pairs, of: (0..self.of.len()).map(weight).collect() })
    }
}

/// Hands a program's pairs to the counter.
struct Emitter<'c, 's, J> {
    counter: &'c mut Counter<'s>,
    program: PhantomData<J>,
}

impl<J: MapReduce> Emit<J::Key, J::Value> for Emitter<'_, '_, J> {
    fn emit(&mut self, key: <J::Key as Datum>::Ref<'_>, value: <J::Value as Datum>::Ref<'_>) {
        let counter = &mut *self.counter;
        let bytes = entry::width::<J::Key, J::Value>(key, value) as u64;
        let hash = entry::short_hash(key::hash::<J::Key>(key, counter.seed));
        let partition = counter.partitioner.of::<J>(hash, key);
        counter.pairs += 1;
        counter.of[partition] += bytes;
        let found = counter.keys.entry(hash).or_default();
        if found.last_piece != counter.pieces {
            (found.partition, found.last_piece) = (partition, counter.pieces);
            found.pieces += 1;
        }
        found.bytes += bytes;
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::data::datum::Bytes;
    use crate::input::chunk::Chunk;
    use crate::input::records::Records;
    use crate::input::tasks::Splits;
    use crate::plan::balance::largest_first;
    use crate::program_error::ProgramError;

    const PARTITIONS: usize = 64;
    const REDUCERS: usize = 8;

    /// Emits each line.
    struct Lines;

    impl MapReduce for Lines {
        type Key = Bytes;
        type Value = ();

        fn map(&self, chunk: &mut Chunk<'_>, out: &mut impl Emit<Bytes, ()>) -> Result<(), ProgramError> {
            chunk.bytes().split_inclusive(|byte| *byte == b'\n').for_each(|line| out.emit(line, ()));
            Ok(())
        }
    }

    fn weigh(program: &impl MapReduce, text: &str) -> Option<Weights> {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("text");
        std::fs::write(&path, text).expect("written");
        let source = Source::plain(PathBuf::from("text"), path, text.len() as u64);
        let pieces = Splits::of((text.len() as u64).div_ceil(PIECES));
        let tasks = Tasks::cut([source].into(), Records::Lines, pieces, 1 << 20);
        count(program, &tasks, PARTITIONS, u64::MAX, &Seed::of(1))
    }

    /// Returns how many lines each reducer gets, in proportion to a fair part, the fullest last.
    fn shares(text: &str, owners: &[usize]) -> Vec<f64> {
        let lines: Vec<&str> = text.split_inclusive('\n').collect();
        let mut found = [0.0; REDUCERS];
        for line in &lines {
            let hash = key::hash::<Bytes>(line.as_bytes(), &Seed::of(1));
            found[owners[(hash >> 58) as usize]] += REDUCERS as f64 / lines.len() as f64;
        }
        found.sort_by(f64::total_cmp);
        found.to_vec()
    }

    /// Lines whose frequencies follow Zipf's law, in any order.
    fn zipf(lines: u32, exponent: f64) -> String {
        let frequency = |rank: u32| f64::from(rank).powf(-exponent);
        let total: f64 = (1..=5000).map(frequency).sum();
        let mut bounds = Vec::new();
        (1..=5000).fold(0.0, |sum, rank| {
            bounds.push((sum + frequency(rank)) / total);
            sum + frequency(rank)
        });
        let mut state = 7u64;
        let mut draw = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 11) as f64 / (1u64 << 53) as f64
        };
        (0..lines).map(|_| draw()).map(|at| format!("{:06}\n", bounds.partition_point(|bound| *bound < at))).collect()
    }

    /// A reducer got 1.4 times its fair part when partitions went round.
    #[test]
    fn reducers_of_zipf_keys_get_fair_parts() {
        let text = zipf(400_000, 0.9);
        let weights = weigh(&Lines, &text).expect("enough pieces");
        let round: Vec<usize> = (0..PARTITIONS).map(|partition| partition % REDUCERS).collect();
        let (before, after) = (shares(&text, &round), shares(&text, &largest_first(&weights.of, REDUCERS)));
        assert!(before[REDUCERS - 1] > 1.15, "{before:?}");
        assert!(after[REDUCERS - 1] < 1.1, "{after:?}");
    }

    #[test]
    fn a_key_with_a_third_of_the_pairs_is_hardly_with_others() {
        let text: String =
            (0..300_000).map(|line| if line % 3 == 0 { "frog--\n".into() } else { format!("{line:06}\n") }).collect();
        let weights = weigh(&Lines, &text).expect("enough pieces");
        assert!((weights.largest() - 0.34).abs() < 0.01, "{}", weights.largest());
        let shares = shares(&text, &largest_first(&weights.of, REDUCERS));
        assert!(shares[REDUCERS - 1] < REDUCERS as f64 * 0.36, "{shares:?}");
        assert!(shares[REDUCERS - 2] < 0.85, "{shares:?}");
    }

    /// Each of 2,000 keys is in one place; those that happen to be in the pieces say nothing about the others.
    #[test]
    fn sorted_keys_have_alike_partitions() {
        let text: String = (0..400_000).map(|line| format!("{}\n", line / 200)).collect();
        let weights = weigh(&Lines, &text).expect("enough pieces");
        assert!(weights.of.iter().all(|weight| *weight == weights.of[0]), "{:?}", weights.of);
    }

    /// Emits each line into the partition that its first letter names.
    struct Lettered;

    impl MapReduce for Lettered {
        type Key = Bytes;
        type Value = ();
        const PARTITION: Option<crate::types::Partition<Bytes>> =
            Some(|line, partitions| (line[0] - b'a') as usize % partitions);

        fn map(&self, chunk: &mut Chunk<'_>, out: &mut impl Emit<Bytes, ()>) -> Result<(), ProgramError> {
            Lines.map(chunk, out)
        }
    }

    #[test]
    fn a_program_that_chooses_partitions_may_fill_them_unequally() {
        let text: String =
            (0..100_000).map(|line| format!("{} {line:09}\n", if line % 4 == 0 { 'b' } else { 'a' })).collect();
        let weights = weigh(&Lettered, &text).expect("enough pieces");
        assert!((weights.of[1] / weights.of[0] - 1.0 / 3.0).abs() < 0.01, "{:?}", &weights.of[..3]);
        assert!(weights.of[2] < weights.of[1] / 1000.0);
    }

    #[test]
    fn too_few_pieces_say_nothing() {
        assert_eq!(weigh(&Lines, "a\nb\n"), None);
    }
}
