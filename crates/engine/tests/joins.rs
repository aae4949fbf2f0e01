//! Joins, and jobs that follow each other: the answers of a few sequential lines, whoever dies.

mod common;

use std::collections::{BTreeMap, BTreeSet};

use common::Random;
use gristmill::internal::Moment;
use gristmill::types::Ending;
use gristmill::{Bytes, Chunk, Either, Emit, Error, Input, Isolation, Job, MapReduce, ProgramError, Records};

fn main() {
    common::run(
        &[
            ("every_join_has_the_pairs_of_two_nested_loops", joins),
            ("a_result_is_the_input_of_the_next_job", chained),
            ("a_result_without_pairs_is_an_input_without_records", empty),
            ("pairs_of_other_types_are_one_clear_error", mistaken),
        ],
        &[],
    );
}

/// Rows of two tables: a byte for the key, and the text that follows.
struct Rows;

impl MapReduce for Rows {
    type Key = u8;
    type Value = Either<Bytes, u64>;

    fn map(&self, chunk: &mut Chunk<'_>, out: &mut impl Emit<u8, Either<Bytes, u64>>) -> Result<(), ProgramError> {
        for (_, row) in chunk.records() {
            match chunk.tag() {
                0 => out.emit(row[0], Either::Left(&row[1..])),
                _ => out.emit(row[0], Either::Right(row.len() as u64)),
            }
        }
        Ok(())
    }
}

type Row = (u8, Vec<u8>);

/// Runs a job in both isolations with 2 and 7 workers, whole and with workers killed, and returns the sorted pairs.
fn run<E: Ending<Rows>, T: Ord + std::fmt::Debug>(
    lefts: &[Row],
    rights: &[Row],
    join: impl Fn(Job<'static, Rows>) -> Job<'static, Rows, E>,
    own: impl Fn(<E::Key as gristmill::Datum>::Ref<'_>, <E::Value as gristmill::Datum>::Ref<'_>) -> T,
) -> Vec<T> {
    let records = |rows: &[Row]| rows.iter().map(|(key, text)| [&[*key], &text[..]].concat()).collect::<Vec<_>>();
    let right = Input::from_records("right", records(rights)).expect("made").tagged(1);
    let input = Input::from_records("left", records(lefts)).expect("made").chain(right);
    let mut answers = BTreeSet::new();
    for (isolation, workers) in
        [(Isolation::Process, 2), (Isolation::Process, 7), (Isolation::Thread, 2), (Isolation::Thread, 7)]
    {
        for kills in 0..if isolation == Isolation::Process { 3 } else { 1 } {
            let job = Job::new(&Rows, input.clone()).isolation(isolation).workers(workers).split_bytes(500);
            let moments = [Moment::Claimed, Moment::Drained];
            let job = (0..kills).fold(job, |job, kill| job.die_at(kill + 1, moments[kill], 1));
            let mut pairs = Vec::new();
            join(job).run_each(|key, value| pairs.push(own(key, value))).expect("it runs");
            pairs.sort();
            answers.insert(pairs);
        }
    }
    assert_eq!(answers.len(), 1, "every plan gives the same answer");
    answers.pop_first().expect("there is one")
}

fn joins() {
    for seed in 0..3 {
        let mut random = Random(seed);
        let mut rows = |count| -> Vec<Row> {
            (0..count).map(|_| (random.below(40) as u8, vec![b'x'; random.below(9) as usize])).collect()
        };
        let (lefts, rights) = (rows(200 * seed), rows(300));
        let number = |row: &Row| row.1.len() as u64 + 1;
        let matches = |key: u8, rows: &[Row]| -> Vec<Row> { rows.iter().filter(|row| row.0 == key).cloned().collect() };
        let sorted = |mut all: Vec<(u8, Option<Vec<u8>>, Option<u64>)>| {
            all.sort();
            all
        };
        let mut inner = Vec::new();
        for left in &lefts {
            for right in matches(left.0, &rights) {
                inner.push((left.0, Some(left.1.clone()), Some(number(&right))));
            }
        }
        let alone = lefts.iter().filter(|left| matches(left.0, &rights).is_empty());
        let alone: Vec<_> = alone.map(|left| (left.0, Some(left.1.clone()), None)).collect();
        let unmatched = rights.iter().filter(|right| matches(right.0, &lefts).is_empty());
        let unmatched: Vec<_> = unmatched.map(|right| (right.0, None, Some(number(right)))).collect();

        let found = run(&lefts, &rights, Job::inner_join, |key, (l, r)| (key, Some(l.to_vec()), Some(r)));
        assert!(found == sorted(inner.clone()), "inner");
        let found = run(&lefts, &rights, Job::left_join, |key, (l, r)| (key, Some(l.to_vec()), r));
        assert!(found == sorted([&inner[..], &alone].concat()), "left");
        let found = run(&lefts, &rights, Job::full_join, |key, (l, r)| (key, l.map(<[u8]>::to_vec), r));
        assert!(found == sorted([&inner[..], &alone, &unmatched].concat()), "full");
        let found = run(&lefts, &rights, Job::anti_join, |key, l| (key, Some(l.to_vec()), None));
        assert!(found == sorted(alone), "anti");
        // The right values are read in part, and the left ones only counted.
        let grouped = run(
            &lefts,
            &rights,
            |job| {
                job.cogroup::<u8, (u64, Option<u64>)>(|key, lefts, rights, emit| {
                    emit(key, (lefts.len() as u64, rights.next()));
                    Ok(())
                })
            },
            |key, value| (key, value),
        );
        let mut expected = BTreeMap::<u8, (u64, Option<u64>)>::new();
        lefts.iter().for_each(|left| expected.entry(left.0).or_default().0 += 1);
        for right in &rights {
            let least = &mut expected.entry(right.0).or_default().1;
            *least = Some(least.map_or(number(right), |least| least.min(number(right))));
        }
        assert!(grouped.into_iter().eq(expected), "cogroup");
    }
}

/// Counts records.
struct Count;

impl MapReduce for Count {
    type Key = Bytes;
    type Value = u64;

    fn combiner(&self) -> Option<impl Fn(u64, u64) -> u64> {
        Some(|a, b| a + b)
    }

    fn map(&self, chunk: &mut Chunk<'_>, out: &mut impl Emit<Bytes, u64>) -> Result<(), ProgramError> {
        chunk.records().for_each(|(_, record)| out.emit(record, 1));
        Ok(())
    }
}

/// Counts the records that are equally frequent, from what [`Count`] makes.
struct Frequencies;

impl MapReduce for Frequencies {
    type Key = u64;
    type Value = u64;

    fn combiner(&self) -> Option<impl Fn(u64, u64) -> u64> {
        Some(|a, b| a + b)
    }

    fn map(&self, chunk: &mut Chunk<'_>, out: &mut impl Emit<u64, u64>) -> Result<(), ProgramError> {
        chunk.pairs::<Bytes, u64>()?.for_each(|(_, count)| out.emit(count, 1));
        Ok(())
    }
}

fn chained() {
    let mut random = Random(7);
    // Some are larger than a page, and than what is written at once.
    let text = |random: &mut Random| {
        let filling = "-".repeat(if random.below(4_000) == 0 { 400_000 } else { 3 });
        format!("{}{filling}", random.below(30_000))
    };
    let records: Vec<String> = (0..60_000).map(|_| text(&mut random)).collect();
    let mut counts = BTreeMap::<&str, u64>::new();
    records.iter().for_each(|record| *counts.entry(record).or_default() += 1);
    let mut expected = BTreeMap::<u64, u64>::new();
    counts.values().for_each(|count| *expected.entry(*count).or_default() += 1);
    let input = Input::from_records("records", &records).expect("made");
    for (isolation, workers, kills) in
        [(Isolation::Process, 1, 0), (Isolation::Process, 2, 2), (Isolation::Process, 7, 2), (Isolation::Thread, 3, 0)]
    {
        let moments = [Moment::Written, Moment::Claimed];
        let first = Job::new(&Count, input.clone()).isolation(isolation).workers(workers).split_bytes(50_000);
        let first = (0..kills).fold(first, |job, kill| job.die_at(kill + 1, moments[kill], 1));
        let (pairs, summary) = first.run_to_input().expect("it runs");
        assert_eq!((summary.pairs, summary.deaths.is_empty()), (counts.len() as u64, kills == 0));
        // Read twice, and with a format that they do not have.
        for _ in 0..2 {
            let job = Job::new(&Frequencies, pairs.clone()).records(Records::Fixed(3));
            let (found, summary) = job.isolation(isolation).workers(workers).run().expect("it runs");
            assert!(found.iter().eq(expected.clone()), "{isolation:?} {workers}");
            assert!(summary.tasks > 1, "the pairs can be cut into tasks");
        }
        let (top, _) = Job::new(&Count, input.clone()).top(3).run_to_input().expect("it runs");
        let (found, _) = Job::new(&Frequencies, top).isolation(isolation).run().expect("it runs");
        assert_eq!(found.iter().map(|(_, records)| records).sum::<u64>(), 3);
    }
}

fn empty() {
    for isolation in [Isolation::Process, Isolation::Thread] {
        let job = Job::new(&Count, Input::bytes("nothing", b"").expect("made")).isolation(isolation);
        let (pairs, _) = job.run_to_input().expect("it runs");
        assert!(Job::new(&Frequencies, pairs).isolation(isolation).run().expect("it runs").0.is_empty());
    }
}

fn mistaken() {
    let error = |input| match Job::new(&Frequencies, input).isolation(Isolation::Process).run().map(drop) {
        Err(Error::Rejected { why, .. }) => why,
        other => panic!("{other:?}"),
    };
    let records = Input::from_records("records", ["a"]).expect("made");
    assert_eq!(error(records.clone()), "the map function asks for pairs, but the input has records");
    let (counts, _) = Job::new(&Count, records).run_to_input().expect("it runs");
    let (others, _) = Job::new(&Frequencies, counts).run_to_input().expect("it runs");
    let why = error(others);
    assert!(why.starts_with("the map function asks for pairs (") && why.ends_with("but they are (u64, u64)"), "{why}");
    let job = Job::new(&Count, Input::bytes("a", b"a").expect("made")).spill_dirs(["/nowhere"]);
    let error = job.run_to_input().map(drop).expect_err("there is no such folder").to_string();
    assert!(error.contains("the spill folder /nowhere is no directory"), "{error}");
}
