//! The plan: what it learns from a sample, and that neither sample nor plan nor types change the result.

mod common;
#[path = "plan/growth.rs"]
mod growth;
#[path = "plan/made.rs"]
mod made;
#[path = "plan/nodes.rs"]
mod nodes;
#[path = "plan/types.rs"]
mod types;

use std::time::{Duration, Instant};

use common::Test;
use gristmill::options::{Buffer, Choice, Combining};
use gristmill::stats::{Count, Counters};
use gristmill::{Bytes, Chunk, Emit, Input, Isolation, Job, MapReduce, ProgramError, Records, Summary};

const TESTS: [Test; 17] = [
    ("a_sample_from_several_places_decides_the_number_of_workers", sampled),
    ("no_sample_is_taken_if_it_is_useless_or_unwanted", not_sampled),
    ("a_job_that_crashes_on_the_sample_is_planned_without_one", crashing),
    ("a_job_that_hangs_on_the_sample_is_planned_without_one", never_ending),
    ("keys_that_hardly_repeat_bypass_the_table_and_are_still_combined", past_the_table),
    ("only_jobs_with_a_frequent_key_combine_it_early", skewed),
    ("the_explained_plan_is_the_executed_plan", told),
    ("words_chosen_to_collide_are_counted_fast", chosen_words),
    ("keys_are_compared_by_their_bytes_only", types::own_keys),
    ("derived_and_compound_keys_group_as_others_do", types::derived_keys),
    ("a_type_that_breaks_its_contract_is_a_clear_error", types::broken_contracts),
    ("values_of_any_width_combine_to_the_same_result_in_any_plan", types::values_of_any_width),
    ("workers_that_get_nothing_are_not_started", growth::idle_workers),
    ("page_faults_of_a_worker_do_not_grow_with_the_number_of_workers", growth::busy_workers),
    ("each_node_reduces_its_own_pairs_and_all_reads_are_counted", nodes::reads_of_nodes),
    ("a_reduce_function_emits_pairs_of_other_types_in_every_mode", made::other_types),
    ("a_pair_of_four_gib_is_refused_where_it_is_emitted", types::huge_pairs),
];

fn main() {
    common::run(&TESTS, &[]);
}

/// Counts the occurrences of eight-byte numbers. On small chunks, which only a sample has, it calls `on_sample`.
struct Numbers {
    on_sample: fn(),
}

impl MapReduce for Numbers {
    type Key = u64;
    type Value = u64;

    fn combiner(&self) -> Option<impl Fn(u64, u64) -> u64> {
        Some(|a, b| a + b)
    }

    fn map(&self, chunk: &mut Chunk<'_>, out: &mut impl Emit<u64, u64>) -> Result<(), ProgramError> {
        if chunk.bytes().len() < 16 << 10 {
            (self.on_sample)();
        }
        chunk.bytes().as_chunks::<8>().0.iter().for_each(|number| out.emit(u64::from_le_bytes(*number), 1));
        Ok(())
    }
}

const NUMBERS: Numbers = Numbers { on_sample: || () };

/// Returns `count` numbers. Each half has every number once, in a different order.
fn numbers(count: u64) -> Vec<u8> {
    let half = count / 2;
    let first = (0..half).map(|n| n * 7919 % half);
    first.chain(0..half).flat_map(u64::to_le_bytes).collect()
}

/// Runs a job over `bytes`, in which every number must occur twice; returns its plan and its summary.
fn run(
    program: &Numbers,
    bytes: &[u8],
    change: impl Fn(Job<'_, Numbers>) -> Job<'_, Numbers>,
) -> (Vec<Choice>, Summary) {
    let input = Input::bytes("numbers", bytes).expect("memory");
    let mut plan = Vec::new();
    let job = change(Job::new(program, input).records(Records::Fixed(8)));
    let (counts, summary) = job.on_plan(|choices| plan.extend_from_slice(choices)).run().expect("the job runs");
    let expected: Vec<(u64, u64)> = (0..bytes.len() as u64 / 16).map(|number| (number, 2)).collect();
    assert!(counts.iter().eq(expected), "every number occurs twice");
    assert_eq!(summary.deaths, Vec::<String>::new());
    (plan, summary)
}

fn chosen<'p>(plan: &'p [Choice], what: &str) -> &'p str {
    &plan.iter().find(|choice| choice.what == what).expect("a choice of this name").chosen
}

fn sampled() {
    // A sample takes a few milliseconds at most, so on a busy machine it may fail.
    let mut looks = (0..50).map(|_| run(&NUMBERS, &numbers(1 << 20), |job| job).0);
    let plan = looks.find(|plan| chosen(plan, "sample") != "none").expect("one of fifty looks is in time");
    assert_eq!(chosen(&plan, "sample"), "3 pieces, 24 KiB");
    // A sleep of a tenth of a millisecond in each piece makes a lot of work out of little input, on any number of
    // processors.
    let slow = Numbers { on_sample: || std::thread::sleep(Duration::from_micros(100)) };
    let (plan, summary) = run(&slow, &numbers(1 << 17), |job| job);
    let cpus = gristmill_os::machine::processors().usable;
    assert!(chosen(&plan, "workers").starts_with(&cpus.min(4).to_string()) || cpus > 4, "{plan:?}");
    assert!(
        summary.tasks > 4,
        "1 MiB, which is no more than four splits of the usual size, was cut into {}",
        summary.tasks
    );
}

fn not_sampled() {
    let bytes = numbers(1 << 14);
    let none = |change: fn(Job<'_, Numbers>) -> Job<'_, Numbers>| {
        let (plan, _) = run(&NUMBERS, &bytes, change);
        assert_eq!(chosen(&plan, "sample"), "none");
    };
    none(|job| job.sample(false));
    none(|job| job.workers(2).split_bytes(4096));
    none(|job| job.isolation(Isolation::Thread));
    let (plan, _) = run(&NUMBERS, &numbers(100), |job| job);
    assert_eq!((chosen(&plan, "sample"), chosen(&plan, "workers")), ("none", "1, which maps and reduces"));
}

fn told() {
    // With `--buffer array --combine both`, the plan once claimed to combine in map, but nothing was combined there.
    // The number of partitions, and of workers that map at once, was printed but could not be chosen.
    let bytes = numbers(2000);
    let tell = |change: fn(Job<'_, Numbers>) -> Job<'_, Numbers>, what: &str| {
        let (plan, summary) = run(&NUMBERS, &bytes, change);
        let counters = Counters::sum(summary.workers.iter().map(|worker| &worker.counters));
        // The 1000 pairs of the result are sent, too.
        let sent = counters.get(Count::PairsSent) - 1000;
        (chosen(&plan, what).to_owned(), sent)
    };
    let (both, sent) = tell(|job| job.workers(1).combine(Combining::Both), "combining");
    assert_eq!((&both[..], sent), ("in map and in reduce", 1000));
    let (array, sent) = tell(|job| job.workers(1).buffer(Buffer::Array).combine(Combining::Both), "combining");
    assert_eq!((&array[..], sent), ("in reduce", 2000));
    let (map, sent) = tell(|job| job.workers(1).combine(Combining::Map), "combining");
    assert_eq!((&map[..], sent), ("in map, and at the end", 1000));
    assert_eq!(tell(|job| job.workers(1).combine(Combining::Off), "combining").0, "at the end");
    assert_eq!(tell(|job| job.workers(1).combine_after(3), "combine-after").0, "ignored");
    for (asked, partitions) in [(1, "2"), (2, "2"), (3, "4"), (4096, "4096")] {
        let (plan, _) = run(&NUMBERS, &bytes, |job| job.workers(2).partitions(asked));
        assert_eq!(chosen(&plan, "partitions"), partitions);
    }
    let refused = Job::new(&NUMBERS, Input::bytes("numbers", &bytes).expect("memory")).partitions(4097).run();
    let why = refused.err().expect("too many").to_string();
    assert!(why.starts_with("4097 partitions were asked for; a job has between 1 and 4096"), "{why}");
}

fn crashing() {
    let crashes: [fn(); 3] = [|| std::process::abort(), || std::process::exit(0), || panic!("a piece is small")];
    for on_sample in crashes {
        let (plan, _) = run(&Numbers { on_sample }, &numbers(1 << 17), |job| job);
        assert_eq!(chosen(&plan, "sample"), "none");
    }
}

fn never_ending() {
    let program = Numbers { on_sample: || std::thread::sleep(Duration::from_secs(1000)) };
    let began = Instant::now();
    let (plan, _) = run(&program, &numbers(1 << 17), |job| job.split_bytes(256 << 10));
    assert_eq!(chosen(&plan, "sample"), "none");
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
}

fn past_the_table() {
    // Twenty times the capacity of the table, and no number occurs twice before it is full.
    let bytes = numbers(400_000);
    let passed = |change: fn(Job<'_, Numbers>) -> Job<'_, Numbers>| {
        let (_, summary) = run(&NUMBERS, &bytes, change);
        let counters = Counters::sum(summary.workers.iter().map(|worker| &worker.counters));
        assert_eq!(counters.get(Count::PairsEmitted), 400_000);
        counters.get(Count::PairsPassed)
    };
    assert!(passed(|job| job.workers(2)) > 200_000);
    assert!(passed(|job| job.workers(1).combine(Combining::Map)) > 200_000);
    // A buffer that the user chose never rests.
    assert_eq!(passed(|job| job.workers(2).buffer(Buffer::Hash)), 0);
}

fn chosen_words() {
    // Words whose first half made a factor of a published hash zero once had one hash: 80,000 of them took 8 s instead
    // of 0.03, and no time-out ended that.
    struct Words;
    impl MapReduce for Words {
        type Key = Bytes;
        type Value = u64;

        fn combiner(&self) -> Option<impl Fn(u64, u64) -> u64> {
            Some(|a, b| a + b)
        }

        fn map(&self, chunk: &mut Chunk<'_>, out: &mut impl Emit<Bytes, u64>) -> Result<(), ProgramError> {
            chunk.bytes().as_chunks::<16>().0.iter().for_each(|word| out.emit(word, 1));
            Ok(())
        }
    }
    let word = |number: u64| [0x9e37_79b9_7f4a_7c15, number.to_be()].map(u64::to_le_bytes).as_flattened().to_vec();
    let bytes: Vec<u8> = (0..400_000).flat_map(|number| word(number / 2)).collect();
    for combine in [Combining::Both, Combining::Map, Combining::Reduce] {
        let input = Input::bytes("words", &bytes).expect("memory");
        let began = Instant::now();
        let job = Job::new(&Words, input).records(Records::Fixed(16)).workers(2).combine(combine);
        let (counts, _) = job.run().expect("the job runs");
        let took = began.elapsed();
        assert_eq!(counts.len(), 200_000);
        let mut expected = 0..;
        assert!(
            counts.iter().all(|(key, count)| (key, count) == (&word(expected.next().expect("more"))[..], 2)),
            "{combine:?}"
        );
        assert!(took < Duration::from_secs(20), "{took:?}, of which hardly any should go into looking for keys");
    }
}

fn skewed() {
    /// Half of all pairs have one key; the other keys are all different.
    struct Skewed;
    impl MapReduce for Skewed {
        type Key = u64;
        type Value = u64;

        fn combiner(&self) -> Option<impl Fn(u64, u64) -> u64> {
            Some(|a, b| a + b)
        }

        fn map(&self, chunk: &mut Chunk<'_>, out: &mut impl Emit<u64, u64>) -> Result<(), ProgramError> {
            for number in chunk.bytes().as_chunks::<8>().0 {
                out.emit(u64::from_le_bytes(*number) + 1, 1);
                out.emit(0, 1);
            }
            Ok(())
        }
    }
    let bytes: Vec<u8> = (0..50_000u64).flat_map(u64::to_le_bytes).collect();
    let skews = |after: Option<u32>, combine: Combining| {
        let input = Input::bytes("numbers", &bytes).expect("memory");
        let job = Job::new(&Skewed, input).records(Records::Fixed(8)).workers(2).page_bytes(4096).combine(combine);
        let job = if let Some(after) = after { job.combine_after(after) } else { job };
        let (counts, summary) = job.run().expect("the job runs");
        let expected = std::iter::once((0, 50_000)).chain((1..=50_000).map(|key| (key, 1)));
        assert!(counts.iter().eq(expected), "{after:?} {combine:?}");
        let counters = Counters::sum(summary.workers.iter().map(|worker| &worker.counters));
        // In the end a reducer holds one pair for each key, however it came to that.
        assert_eq!(counters.get(Count::Keys), 50_001);
        counters.get(Count::SkewsFound)
    };
    // One reducer has the frequent key. It is detected once, and combined as it comes from then on.
    assert_eq!(skews(Some(1000), Combining::Off), 1);
    assert_eq!(skews(Some(60_000), Combining::Off), 0);
    assert_eq!(skews(None, Combining::Off), 0);
    // If it is combined in map, the key arrives only a few times; if it is combined in reduce, no values are kept.
    assert_eq!(skews(Some(1000), Combining::Map), 0);
    assert_eq!(skews(Some(1), Combining::Both), 0);
}
