//! The programs in `examples/` give the same answer with any number of workers, in both isolations, whoever dies.
//! (`examples.rs` compares what they print with a few sequential lines.)

#![allow(dead_code)] // The programs have main functions of their own.

mod common;

#[path = "../examples/custom_keys.rs"]
mod custom_keys;
#[path = "../examples/failing.rs"]
mod failing;
#[path = "../examples/from_memory.rs"]
mod from_memory;
#[path = "../examples/inverted_index.rs"]
mod inverted_index;
#[path = "../examples/join.rs"]
mod join;
#[path = "../examples/many_jobs.rs"]
mod many_jobs;
#[path = "../examples/pagerank.rs"]
mod pagerank;
#[path = "../examples/sessions.rs"]
mod sessions;
#[path = "../examples/sinks.rs"]
mod sinks;
#[path = "../examples/top_per_group.rs"]
mod top_per_group;

use std::collections::BTreeMap;
use std::fs;

use common::Random;
use gristmill::internal::Moment;
use gristmill::options::Buffer;
use gristmill::sinks::PartFiles;
use gristmill::stats::Count;
use gristmill::types::Ending;
use gristmill::{Bytes, Chunk, Datum, Emit, Input, Isolation, Job, MapReduce, ProgramError, Records, Summary};

fn main() {
    common::run(
        &[
            ("the_examples_give_the_same_answer_whoever_dies", answers),
            ("the_example_of_pagerank_gives_the_same_ranks_whoever_dies", ranks),
            ("the_example_of_a_sink_writes_the_same_rows_whoever_dies", rows),
            ("the_example_of_bad_records_finds_the_same_ones_whoever_dies", bad),
            ("two_thousand_jobs_in_a_row_leave_nothing_behind", many),
            ("pairs_emitted_together_and_alone_all_count", together_and_alone),
        ],
        &[],
    );
}

/// Counts lines, of which it emits some together and some alone, in runs of random lengths.
struct TogetherAndAlone;

impl MapReduce for TogetherAndAlone {
    type Key = Bytes;
    type Value = u64;

    fn combiner(&self) -> Option<impl Fn(u64, u64) -> u64> {
        Some(|a, b| a + b)
    }

    fn map(&self, chunk: &mut Chunk<'_>, out: &mut impl Emit<Bytes, u64>) -> Result<(), ProgramError> {
        let (text, mut random) = (chunk.bytes(), Random(chunk.offset()));
        let mut start = 0;
        let lines = text.split_inclusive(|byte| *byte == b'\n').map(|line| {
            let place = [start, start + line.len() as u32 - 1];
            start += line.len() as u32;
            place
        });
        let lines: Vec<[u32; 2]> = lines.collect();
        let mut rest = &lines[..];
        while !rest.is_empty() {
            let together = [1, 63, 64, 65, 128][random.below(5) as usize].min(rest.len());
            out.emit_each(text, &rest[..together], 1);
            rest = &rest[together..];
            let alone = (random.below(200) as usize).min(rest.len());
            rest[..alone].iter().for_each(|[start, end]| out.emit(&text[*start as usize..*end as usize], 1));
            rest = &rest[alone..];
        }
        Ok(())
    }
}

fn together_and_alone() {
    // After a worker had died, the rest of its task was sometimes "out of range": a full queue, left by words that were
    // emitted together, took more words.
    let mut random = Random(11);
    let text: String = (0..200_000).map(|_| format!("word{}\n", random.below(20_000))).collect();
    let mut expected = BTreeMap::new();
    text.lines().for_each(|line| *expected.entry(line.as_bytes().to_vec()).or_insert(0) += 1);
    for buffer in [Buffer::Hash, Buffer::Array] {
        let input = Input::bytes("lines", text.as_bytes()).expect("in memory").records(Records::Lines);
        let (counts, summary) = Job::new(&TogetherAndAlone, input).workers(2).buffer(buffer).run().expect("it runs");
        let found: BTreeMap<Vec<u8>, u64> = counts.iter().map(|(line, count)| (line.to_vec(), count)).collect();
        assert!(found == expected && summary.deaths.is_empty(), "{buffer:?}: {:?}", summary.deaths);
    }
}

/// Ways to run a job: isolation, workers, and the moments at which workers die.
const WAYS: [(Isolation, usize, &[(usize, Moment, u64)]); 6] = [
    (Isolation::Process, 2, &[]),
    (Isolation::Process, 2, &[(1, Moment::Claimed, 2), (2, Moment::Drained, 1)]),
    (Isolation::Process, 7, &[(1, Moment::Flushed, 1), (2, Moment::Claimed, 1), (3, Moment::Received, 2)]),
    (Isolation::Process, 7, &[(1, Moment::Committed, 1), (4, Moment::Sent, 1)]),
    (Isolation::Thread, 2, &[]),
    (Isolation::Thread, 7, &[]),
];

/// Runs a job in each of these ways, and checks that each has the same answer, and that some workers died.
fn same<'j, J, E, T>(job: impl Fn() -> Job<'j, J, E>, run: impl Fn(Job<'j, J, E>) -> gristmill::Result<(T, Summary)>)
where
    J: MapReduce + 'j,
    E: Ending<J>,
    T: PartialEq + std::fmt::Debug,
{
    let (expected, _) = run(job().workers(1).isolation(Isolation::Thread)).expect("it runs");
    let mut deaths = 0;
    for (isolation, workers, kills) in WAYS {
        let job = job().isolation(isolation).workers(workers).split_bytes(4_000);
        let job = kills.iter().fold(job, |job, (worker, moment, nth)| job.die_at(*worker, *moment, *nth));
        let (found, summary) = run(job).expect("it runs");
        assert!(found == expected, "{isolation:?}, {workers} workers: {found:?}");
        deaths += summary.deaths.len();
    }
    assert!(deaths >= 4, "{deaths} workers died");
}

/// Runs a job and returns its pairs as text.
fn pairs<J: MapReduce, E: Ending<J>>(job: Job<'_, J, E>) -> gristmill::Result<(Vec<String>, Summary)> {
    let mut pairs = Vec::new();
    let summary = job.run_each(|key, value| {
        let mut text = Vec::new();
        E::Key::to_text(key, &mut text);
        text.push(b'\t');
        E::Value::to_text(value, &mut text);
        pairs.push(String::from_utf8_lossy(&text).into_owned());
    })?;
    Ok((pairs, summary))
}

/// Makes an input of lines, each from two random numbers.
fn lines(seed: u64, line: impl Fn(u64, u64) -> String) -> Input {
    let mut random = Random(seed);
    let text: Vec<String> = (0..4_000).map(|_| line(random.below(500), random.below(100_000))).collect();
    Input::bytes("lines", text.join("\n").as_bytes()).expect("memory")
}

fn answers() {
    let words = lines(1, |a, b| format!("w{a} w{}", b % 1_000));
    same(|| inverted_index::index(words.clone()), pairs);
    let visits = lines(2, |user, time| format!("user{} {}", user % 50, time * 10));
    same(|| sessions::sessions(visits.clone()), pairs);
    let numbers = lines(3, |group, number| format!("group{} {}", group % 30, number as f64 / 8.0));
    same(|| top_per_group::largest(5, numbers.clone()), pairs);
    let [customers, orders] = [4, 5].map(|seed| lines(seed, |a, b| format!("{a} text{}", b % 90)));
    same(|| join::joined(customers.clone(), orders.clone()), pairs);
    let log = lines(6, |status, time| format!("{} {}", time * 100, 200 + status % 300));
    same(|| custom_keys::requests(log.clone()), pairs);
    let numbers = Input::from_records("numbers", (1..6_000u64).map(u64::to_le_bytes)).expect("made");
    same(|| from_memory::factors(numbers.clone()), pairs);
}

fn ranks() {
    let mut random = Random(7);
    let mut page = || (random.below(300).min(random.below(300)) as u32).to_le_bytes();
    let bytes: Vec<u8> = (0..6_000).flat_map(|_| [page(), page()].concat()).collect();
    let links = pagerank::Links::of(&bytes);
    let input = Input::bytes("links", &bytes).expect("memory");
    let (expected, mut deaths) = (links.ranks(links.job(input.clone()).workers(1), 6).expect("it runs"), 0);
    for (isolation, workers, kills) in WAYS {
        let job = links.job(input.clone()).isolation(isolation).workers(workers).split_bytes(4_000);
        let job = job.on_news(|_| deaths += 1);
        let job = kills.iter().fold(job, |job, (worker, moment, nth)| job.die_at(*worker, *moment, *nth));
        let found = links.ranks(job, 6).expect("it runs");
        let differ = found.iter().zip(&expected).filter(|(a, b)| (*a - *b).abs() > 1e-12).count();
        assert_eq!((found.len(), differ), (expected.len(), 0), "{isolation:?}, {workers} workers");
    }
    assert!(deaths >= 4, "{deaths} workers died");
}

fn rows() {
    let amounts = lines(8, |account, cents| format!("account{account} {}", cents as i64 - 50_000));
    let dir = tempfile::tempdir().expect("a folder");
    same(
        || sinks::sums(amounts.clone()),
        |job| {
            let folder = dir.path().join("sums");
            let summary = job.run_into(&PartFiles::new(&folder, &sinks::Csv).expect("made"))?;
            let files = fs::read_dir(&folder).expect("a folder").map(|file| file.expect("a file").path());
            let text: String = files.map(|file| fs::read_to_string(file).expect("read")).collect();
            fs::remove_dir_all(&folder).expect("removed");
            let mut rows: Vec<String> = text.lines().map(str::to_owned).collect();
            rows.sort();
            Ok((rows, summary))
        },
    );
}

fn bad() {
    let numbers = lines(9, |a, b| if a == 7 { format!("{b}x") } else { (b * 20_000).to_string() });
    same(
        || failing::sum(numbers.clone(), 4_000),
        |job| {
            let (sums, summary) = job.run()?;
            let places = summary.bad_records.iter().map(|bad| (bad.line, bad.cause.clone())).collect::<Vec<_>>();
            assert!(!places.is_empty());
            Ok(((sums.get(()), places), summary))
        },
    );
}

fn many() {
    let descriptors = || fs::read_dir("/proc/self/fd").expect("listed").count();
    let faults = |summary: &Summary| -> u64 {
        summary.workers.iter().map(|worker| worker.counters.get(Count::MinorFaults)).sum()
    };
    let run = |number: u64| {
        let line = (0..number % 7).map(|word| format!("w{word} ")).collect::<String>().repeat(3);
        let (words, summary) =
            many_jobs::words(&line).expect("memory").isolation(Isolation::Process).run().expect("it runs");
        assert_eq!(words.len() as u64, number % 7);
        faults(&summary)
    };
    let (first, before) = ((0..100).map(run).sum::<u64>(), descriptors());
    (100..1_900).for_each(|number| _ = run(number));
    let last: u64 = (1_900..2_000).map(run).sum();
    assert_eq!(descriptors(), before);
    assert!(last <= first + first / 10, "{first} page faults of the first hundred jobs, {last} of the last");
}
