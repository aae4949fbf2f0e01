//! Jobs that exceed their memory: the result is that of ten sequential lines, however much is spilled, merged, killed
//! or refused meanwhile.

mod common;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use common::{Case, Places, Random, input_of, least_memory, random_text, resident_kib};
use gristmill::internal::Moment;
use gristmill::options::{Combining, Exchange};
use gristmill::stats::{Count as Counted, Counters};
use gristmill::{Bytes, Chunk, Emit, Error, Input, Job, MapReduce, Order, ProgramError, Records, Summary};
use rustix::process::{Resource, Rlimit, setrlimit};

fn main() {
    common::run(
        &[
            ("spilled_runs_merge_to_the_same_result", same_answer),
            ("many_runs_are_merged_in_several_passes", many_runs),
            ("a_reduce_function_sees_all_values_of_a_key_in_order", reduce_function),
            ("one_key_may_have_half_of_all_values", hot_key),
            ("pairs_larger_than_pages_and_blocks_are_spilled_too", giants),
            ("pages_that_wait_at_a_barrier_are_spilled", barrier),
            ("runs_take_turns_with_the_spill_folders", folders),
            ("a_spilling_worker_killed_at_any_moment_changes_nothing", killed),
            ("a_full_disk_is_one_clear_error", full_disk),
            ("a_vanished_spill_folder_is_one_clear_error", no_folder),
            ("few_file_descriptors_are_enough", few_descriptors),
            ("memory_stays_within_the_budget", within_budget),
            ("a_deterministic_job_gives_the_same_bits_on_any_number_of_workers", deterministic),
        ],
        &[],
    );
}

fn sum(summary: &Summary, count: Counted) -> u64 {
    Counters::sum(summary.workers.iter().map(|worker| &worker.counters)).get(count)
}

/// Returns the case with the least memory, and with fewer and larger splits, because there is more text.
fn tight(case: Case) -> Case {
    Case { least_memory: true, split_bytes: 20_000, ..case }
}

fn same_answer() {
    let (_dir, input) = input_of(&random_text(&mut Random(1), 1_000_000, 1 << 40, 12, false));
    let topologies = [Case::fused(1), Case::fused(3), Case::split(2, 2)].map(tight);
    for case in topologies {
        for order in [Order::ByKey, Order::ByValueDescending, Order::Unordered] {
            for (count, combine) in
                [(false, Combining::Both), (true, Combining::Both), (true, Combining::Off), (true, Combining::Map)]
            {
                let case = Case { order, count, combine, ..case.clone() };
                let summary = case.check(&input, &[]).unwrap_or_else(|why| panic!("{case:?}: {why}"));
                assert!(sum(&summary, Counted::Runs) > 1, "nothing was spilled: {case:?}");
            }
        }
        for limit in [1, 100, 30_000] {
            let case = Case { limit, count: limit != 100, ..case.clone() };
            let summary = case.check(&input, &[]).unwrap_or_else(|why| panic!("{case:?}: {why}"));
            assert!(sum(&summary, Counted::Runs) > 1, "nothing was spilled: {case:?}");
        }
    }
}

fn many_runs() {
    let (_dir, input) = input_of(&random_text(&mut Random(2), 6_000_000, 1 << 18, 12, false));
    for (count, order) in [(true, Order::ByKey), (false, Order::ByKey), (false, Order::ByValueDescending)] {
        let case = Case { count, order, combine: Combining::Both, split_bytes: 100_000, ..tight(Case::fused(2)) };
        let summary = case.check(&input, &[]).unwrap_or_else(|why| panic!("{case:?}: {why}"));
        assert!(sum(&summary, Counted::RunsMerged) > 20, "{} runs", sum(&summary, Counted::Runs));
    }
}

/// Reduces the places of a word to a number that depends on their count and order.
fn folded(values: impl Iterator<Item = u64>) -> u64 {
    values.fold(7u64, |so_far, value| so_far.wrapping_mul(31).wrapping_add(value))
}

fn turned(word: &[u8]) -> Vec<u8> {
    word.iter().rev().copied().collect()
}

fn reduced(case: &Case, input: &Path, text: &[u8]) -> Summary {
    let mut expected = BTreeMap::<Vec<u8>, Vec<u64>>::new();
    for (word, place) in common::oracle(text, false, Order::ByKey, usize::MAX) {
        expected.entry(word).or_default().push(place);
    }
    // Two pairs for each word, the second of which has another key.
    let mut expected: common::Answer = expected
        .into_iter()
        .flat_map(|(word, places)| {
            let turned = turned(&word);
            [(word, folded(places.iter().copied())), (turned, places.len() as u64)]
        })
        .collect();
    expected.sort();
    if case.order == Order::ByValueDescending {
        expected.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    }
    let (mut found, summary) = case
        .run_with(&Places { pause: Duration::ZERO }, input, |job| {
            job.reduce(|word, places, emit| {
                let mut values = 0;
                let fold = folded(places.owned().inspect(|_| values += 1));
                emit(word, fold);
                emit(&turned(word), values);
                Ok(())
            })
        })
        .unwrap_or_else(|why| panic!("{case:?}: {why}"));
    if case.order == Order::Unordered {
        found.sort();
    }
    assert!(found == expected, "another answer: {case:?}");
    summary
}

fn reduce_function() {
    let text = random_text(&mut Random(3), 1_000_000, 1 << 12, 12, false);
    let (_dir, input) = input_of(&text);
    for order in [Order::ByKey, Order::ByValueDescending, Order::Unordered] {
        for least_memory in [true, false] {
            let case = Case { order, count: false, least_memory, ..tight(Case::fused(2)) };
            let summary = reduced(&case, &input, &text);
            assert_eq!(sum(&summary, Counted::Runs) > 1, least_memory);
        }
    }
    // A reduce function may read only some values, or none.
    let case = Case { count: false, ..tight(Case::fused(2)) };
    let (firsts, _) = case
        .run_with(&Places { pause: Duration::ZERO }, &input, |job| {
            job.reduce(|word, places, emit| {
                if word[0].is_ascii_digit() {
                    emit(word, places.next().expect("a key has a value"));
                }
                Ok(())
            })
        })
        .expect("runs");
    let mut expected = common::oracle(&text, false, Order::ByKey, usize::MAX);
    expected.retain(|(word, _)| word[0].is_ascii_digit());
    expected.dedup_by(|later, first| later.0 == first.0);
    assert!(firsts == expected);
}

fn hot_key() {
    let mut random = Random(4);
    let mut text = Vec::new();
    for _ in 0..120_000 {
        match random.below(2) {
            0 => text.extend_from_slice(b"hot "),
            _ => text.extend_from_slice(format!("{:x} ", random.below(1 << 13)).as_bytes()),
        }
    }
    let (_dir, input) = input_of(&text);
    for (count, combine) in [(false, Combining::Both), (true, Combining::Off), (true, Combining::Reduce)] {
        let case = Case { count, combine, ..tight(Case::fused(2)) };
        case.check(&input, &[]).unwrap_or_else(|why| panic!("{case:?}: {why}"));
    }
    let summary = reduced(&Case { count: false, ..tight(Case::fused(2)) }, &input, &text);
    assert!(sum(&summary, Counted::Runs) > 10);
}

fn giants() {
    let (_dir, input) = input_of(&random_text(&mut Random(5), 1_500_000, 1 << 30, 12, true));
    for (count, order) in [(false, Order::ByKey), (true, Order::ByKey), (false, Order::ByValueDescending)] {
        let case = Case { count, order, ..tight(Case::split(2, 2)) };
        let summary = case.check(&input, &[]).unwrap_or_else(|why| panic!("{case:?}: {why}"));
        assert!(sum(&summary, Counted::Runs) > 1);
    }
}

fn barrier() {
    let text = random_text(&mut Random(6), 600_000, 100, 8, false);
    let (_dir, input) = input_of(&text);
    for case in [Case::fused(2), Case::split(2, 1)].map(tight) {
        // With few keys tables are small, so only waiting pages are spilled.
        let case = Case { exchange: Exchange::Barrier, combine: Combining::Reduce, ..case };
        let summary = case.check(&input, &[]).unwrap_or_else(|why| panic!("{case:?}: {why}"));
        assert_eq!(sum(&summary, Counted::Runs), 0);
        assert!(sum(&summary, Counted::SpilledBytes) > 500_000, "{}", sum(&summary, Counted::SpilledBytes));
    }
}

fn folders() {
    let text = random_text(&mut Random(7), 600_000, 1 << 40, 12, false);
    let (dir, input) = input_of(&text);
    let folders = ["one", "two", "three"].map(|name| dir.path().join(name));
    folders.iter().for_each(|folder| fs::create_dir(folder).expect("made"));
    let expected = common::oracle(&text, false, Order::ByKey, usize::MAX);
    let case = Case { count: false, ..tight(Case::fused(1)) };
    let program = Places { pause: Duration::ZERO };
    let (pairs, summary) = case.run_with(&program, &input, |job| job.spill_dirs(&folders)).expect("runs");
    assert!(pairs == expected && sum(&summary, Counted::Runs) > 3);
    // Spill files have no names. The job fails without any one of its folders, so it uses them all.
    for missing in 0..3 {
        let mut folders = folders.clone();
        let gone = dir.path().join("gone");
        fs::create_dir_all(&gone).expect("made");
        folders[missing] = gone.clone();
        let program = Removes { folder: gone };
        let why = case.run_with(&program, &input, |job| job.spill_dirs(&folders)).expect_err("a folder is missing");
        assert!(matches!(why, Error::Spill { .. }), "{why}");
    }
}

const SPILLS: [Moment; 6] =
    [Moment::Spilled, Moment::RunsMerged, Moment::Received, Moment::Sent, Moment::Drained, Moment::Committed];

fn killed() {
    let (_dir, input) = input_of(&random_text(&mut Random(8), 250_000, 1 << 40, 12, false));
    let cases = [
        Case { count: false, ..Case::fused(2) },
        Case { count: true, order: Order::ByValueDescending, ..Case::fused(2) },
        Case { count: false, order: Order::Unordered, ..Case::split(2, 2) },
        Case { count: false, exchange: Exchange::Barrier, ..Case::fused(2) },
    ];
    for case in cases.map(tight) {
        for moment in SPILLS {
            let mut died = 0;
            for worker in 1..=4 {
                for nth in [1, 2, 3, 5, 9] {
                    let summary = case
                        .check(&input, &[(worker, moment, nth), (worker + 2, moment, 1)])
                        .unwrap_or_else(|why| panic!("worker {worker} at its {nth}. {moment:?}: {why}\n{case:?}"));
                    died += summary.deaths.len();
                }
            }
            assert!(died > 0, "nobody died at {moment:?}: {case:?}");
        }
    }
}

/// Limits the size of files, and emits every word with its place.
struct Limits {
    file_bytes_max: u64,
}

impl MapReduce for Limits {
    type Key = Bytes;
    type Value = u64;

    fn map(&self, chunk: &mut Chunk<'_>, out: &mut impl Emit<Bytes, u64>) -> Result<(), ProgramError> {
        let limit = Rlimit { current: Some(self.file_bytes_max), maximum: None };
        setrlimit(Resource::Fsize, limit).expect("a lower limit is allowed");
        Places { pause: Duration::ZERO }.map(chunk, out)
    }
}

fn full_disk() {
    let (_dir, input) = input_of(&random_text(&mut Random(9), 1_000_000, 1 << 40, 12, false));
    // At the first run, at a later one, and while runs are merged, which needs room, too.
    for (file_bytes_max, order) in [(1000, Order::ByKey), (200_000, Order::ByKey), (500_000, Order::ByValueDescending)]
    {
        let case = Case { count: false, order, ..tight(Case::fused(2)) };
        let error = case.run_with(&Limits { file_bytes_max }, &input, |job| job).expect_err("there is no room");
        let why = error.to_string();
        assert!(matches!(error, Error::Spill { .. }), "{why}");
        let folder = std::env::temp_dir().display().to_string();
        let parts =
            ["cannot write in the spill folder ", &folder, ": File too large", "Job::spill_dirs", "Job::memory"];
        assert!(parts.iter().all(|part| why.contains(part)), "{why}");
    }
}

/// Removes a folder, and emits every word with its place.
struct Removes {
    folder: PathBuf,
}

impl MapReduce for Removes {
    type Key = Bytes;
    type Value = u64;

    fn map(&self, chunk: &mut Chunk<'_>, out: &mut impl Emit<Bytes, u64>) -> Result<(), ProgramError> {
        // Another worker may have removed it.
        let _ = fs::remove_dir(&self.folder);
        Places { pause: Duration::ZERO }.map(chunk, out)
    }
}

fn no_folder() {
    let (dir, input) = input_of(&random_text(&mut Random(10), 600_000, 1 << 40, 12, false));
    let case = Case { count: false, ..tight(Case::fused(2)) };
    let folder = dir.path().join("spilled");
    let run = || case.run_with(&Removes { folder: folder.clone() }, &input, |job| job.spill_dirs([&folder]));
    let why = run().expect_err("it was never made").to_string();
    assert!(why.contains("the spill folder ") && why.contains("/spilled is no directory"), "{why}");
    fs::create_dir(&folder).expect("made");
    let error = run().expect_err("it went away");
    let why = error.to_string();
    assert!(why.starts_with(&format!("cannot make a file in the spill folder {}", folder.display())), "{why}");
}

fn few_descriptors() {
    let (_dir, input) = input_of(&random_text(&mut Random(11), 6_000_000, 1 << 40, 12, false));
    setrlimit(Resource::Nofile, Rlimit { current: Some(64), maximum: Some(64) }).expect("a lower limit is allowed");
    let case = Case { count: false, split_bytes: 100_000, ..tight(Case::fused(3)) };
    let summary = case.check(&input, &[]).expect("runs are ranges of one file for each worker");
    assert!(sum(&summary, Counted::Runs) > 64, "{} runs", sum(&summary, Counted::Runs));
}

/// Emits a number for each byte of its input, far apart from each other, so that a small file becomes many pairs.
struct Many;

impl MapReduce for Many {
    type Key = u64;
    type Value = u64;

    fn map(&self, chunk: &mut Chunk<'_>, out: &mut impl Emit<u64, u64>) -> Result<(), ProgramError> {
        for at in 0..chunk.bytes().len() as u64 {
            let number = chunk.offset() + at;
            out.emit(number.wrapping_mul(0x9e37_79b9_7f4a_7c15), number);
        }
        Ok(())
    }
}

fn within_budget() {
    let (_dir, input) = input_of(&vec![b'x'; 4 << 20]);
    let before_kib = resident_kib();
    for (budget, order) in [(12, Order::ByKey), (16, Order::ByValueDescending), (24, Order::ByKey)] {
        let (mut peak_kib, mut pairs, mut last) = (0, 0, None);
        let summary = Job::new(&Many, Input::paths([&input]))
            .records(Records::Fixed(1))
            .workers(2)
            .order(order)
            .memory(budget << 20)
            .on_progress(|_| peak_kib = peak_kib.max(resident_kib()))
            .run_each(|key, value| {
                let next = if order == Order::ByKey { key } else { !value };
                assert!(last < Some(next));
                last = Some(next);
                pairs += 1;
            })
            .expect("runs");
        assert_eq!(pairs, 4 << 20);
        let spilled = sum(&summary, Counted::SpilledBytes);
        println!("{budget} MiB: {peak_kib} KiB above {before_kib} KiB, {spilled} bytes spilled");
        // Pairs take 16 bytes, and their rows as much: 128 MiB together, and much of the memory is for other uses.
        assert!(spilled > 40 << 20, "{spilled} bytes were spilled");
        assert!(peak_kib > 0 && peak_kib - before_kib < budget as u64 * 1024, "{peak_kib} KiB of {budget} MiB");
    }
}

/// Sums that depend on the order of their parts.
struct Sums;

impl MapReduce for Sums {
    type Key = u32;
    type Value = f64;

    fn combiner(&self) -> Option<impl Fn(f64, f64) -> f64> {
        Some(|a, b| a + b)
    }

    fn map(&self, chunk: &mut Chunk<'_>, out: &mut impl Emit<u32, f64>) -> Result<(), ProgramError> {
        for at in 0..chunk.bytes().len() as u64 {
            let number = (chunk.offset() + at).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            out.emit((number >> 40) as u32 % 5000, 1.0 / (1.0 + (number >> 20) as f64));
        }
        Ok(())
    }
}

fn deterministic() {
    let (_dir, input) = input_of(&vec![b'x'; 5_000_000]);
    let answer = |workers: usize, order: Order, least: bool, deterministic: bool| {
        let job = || {
            Job::new(&Sums, Input::paths([&input]))
                .records(Records::Fixed(1))
                .workers(workers)
                .page_bytes(4096)
                .order(order)
                .deterministic(deterministic)
        };
        let job = if least { job().memory(least_memory(job())) } else { job() };
        let mut bits = Vec::new();
        job.run_each(|key, value| bits.push((key, value.to_bits()))).expect("runs");
        assert_eq!(bits.len(), 5000);
        bits
    };
    let expected = answer(1, Order::ByKey, false, true);
    for workers in [1, 2, 3, 5] {
        for (order, least) in [(Order::ByKey, false), (Order::ByKey, true), (Order::Unordered, false)] {
            assert!(answer(workers, order, least, true) == expected, "{workers} workers give other bits");
        }
    }
    // If sums were always the same, this test would prove nothing.
    assert!(
        (1..20).any(|_| answer(3, Order::ByKey, false, false) != expected),
        "sums are the same without being told to"
    );
}
