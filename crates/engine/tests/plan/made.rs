//! Reduce functions that emit keys and values of other types than the map function.

use std::collections::BTreeMap;
use std::time::Duration;

use gristmill::internal::Moment;
use gristmill::{Bytes, Chunk, Emit, Input, Isolation, Job, Made, MapReduce, Order, ProgramError};

/// For each word, the numbers of its places modulo 1,000.
struct Words<const COMBINES: bool>;

impl<const COMBINES: bool> MapReduce for Words<COMBINES> {
    type Key = Bytes;
    type Value = u64;

    fn combiner(&self) -> Option<impl Fn(u64, u64) -> u64> {
        COMBINES.then_some(|a, b| a + b)
    }

    fn map(&self, chunk: &mut Chunk<'_>, out: &mut impl Emit<Bytes, u64>) -> Result<(), ProgramError> {
        for word in chunk.bytes().split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()) {
            out.emit(word, (chunk.offset() + chunk.place_of(word) as u64) % 1000);
        }
        Ok(())
    }
}

type Row = ((u64, bool), String);

/// Emits the sum of the values and, for some words, their number, under keys that do not grow with the words.
fn reduced<const COMBINES: bool>(job: Job<'_, Words<COMBINES>>) -> Job<'_, Words<COMBINES>, Made<(u64, bool), String>> {
    job.reduce_to::<(u64, bool), String>(|word, values, emit| {
        let values: Vec<u64> = values.owned().collect();
        let (sum, word) = (values.iter().sum::<u64>(), str::from_utf8(word)?);
        emit((sum % 100, false), &format!("{word} {sum}"));
        if word.len().is_multiple_of(2) {
            emit((values.len() as u64, true), word);
        }
        Ok(())
    })
}

/// The answer in a few sequential lines, in the order of the pairs.
fn expected(text: &[u8], combines: bool) -> Vec<Row> {
    let mut words = BTreeMap::<&str, (u64, u64)>::new();
    for word in str::from_utf8(text).expect("text").split_ascii_whitespace() {
        let place = (word.as_ptr().addr() - text.as_ptr().addr()) as u64;
        let (sum, count) = words.entry(word).or_default();
        (*sum, *count) = (*sum + place % 1000, *count + 1);
    }
    let mut rows = Vec::new();
    for (word, (sum, count)) in words {
        rows.push(((sum % 100, false), format!("{word} {sum}")));
        if word.len().is_multiple_of(2) {
            rows.push(((if combines { 1 } else { count }, true), word.to_owned()));
        }
    }
    rows.sort();
    rows
}

fn rows<const COMBINES: bool>(job: Job<'_, Words<COMBINES>>, order: Order) -> Vec<Row> {
    let (output, _) = reduced(job).order(order).run().expect("it succeeds");
    output.iter().map(|(key, value)| (key, value.to_owned())).collect()
}

fn check<const COMBINES: bool>(text: &[u8], input: &std::path::Path) {
    let expected = expected(text, COMBINES);
    let job = |isolation, workers| {
        let job = Job::new(&Words::<COMBINES>, Input::paths([input])).isolation(isolation).workers(workers);
        job.split_bytes(60_000).chunk_bytes(5_000)
    };
    for isolation in [Isolation::Process, Isolation::Thread] {
        for workers in [1, 2, 7] {
            assert!(rows(job(isolation, workers), Order::ByKey) == expected, "{isolation:?} {workers}");
            let mut found = rows(job(isolation, workers), Order::Unordered);
            found.sort();
            assert!(found == expected, "{isolation:?} {workers}");
        }
        // Both sorts spill.
        let (output, summary) =
            reduced(job(isolation, 2)).memory(if COMBINES { 14 << 20 } else { 6 << 20 }).run().expect("it succeeds");
        let spilled =
            summary.workers.iter().map(|worker| worker.counters.get(gristmill::stats::Count::Runs)).sum::<u64>();
        assert!(spilled > 0 || COMBINES, "nothing was spilled");
        assert!(output.iter().map(|(key, value)| (key, value.to_owned())).eq(expected.iter().cloned()));
        let mut by_value = expected.clone();
        by_value.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(&b.0)));
        by_value.truncate(50);
        let (top, _) = reduced(job(isolation, 2)).top(50).run().expect("it succeeds");
        assert!(top.iter().map(|(key, value)| (key, value.to_owned())).eq(by_value));
    }
    let dir = tempfile::tempdir().expect("a directory");
    for moment in [Moment::Committed, Moment::Received, Moment::Drained, Moment::Saved, Moment::RunsMerged] {
        for worker in [1, 2] {
            let saved = |job: Job<'static, Words<COMBINES>>| {
                job.checkpoint(dir.path().join(format!("{moment:?}{worker}")), "words", Duration::from_millis(1))
            };
            let job = || Job::new(&Words::<COMBINES>, Input::paths([input])).workers(2).split_bytes(60_000);
            assert!(rows(job().die_at(worker, moment, 1), Order::ByKey) == expected, "{moment:?}");
            assert!(rows(saved(job().die_at(worker, moment, 1)), Order::ByKey) == expected, "{moment:?}");
            assert!(rows(saved(job()), Order::ByKey) == expected, "{moment:?} from the checkpoint");
        }
    }
}

/// A reduce function could only emit what the map function emits.
pub fn other_types() {
    let text = crate::common::random_text(&mut crate::common::Random(3), 1_500_000, 20_000, 8, false);
    let (_dir, input) = crate::common::input_of(&text);
    check::<false>(&text, &input);
    check::<true>(&text, &input);
}
