//! The plan: what it learns from a sample, and that neither the sample, nor what is planned, nor the types change an answer.

mod common;
#[path = "plan/types.rs"]
mod types;

use std::time::{Duration, Instant};

use common::Test;
use gristmill::{
    Buffer, Bytes, Choice, Combine, Combining, Count, Counters, Emit, Input, Isolation, Job, MapReduce, Records, Split,
    Summary,
};

const TESTS: [Test; 12] = [
    ("a_sample_is_taken_from_several_places_and_decides_how_many_workers_start", sampled),
    ("no_sample_is_taken_where_it_is_of_no_use_or_of_no_good", not_sampled),
    ("a_map_function_that_crashes_on_the_sample_is_planned_without", crashing),
    ("a_map_function_that_never_ends_on_the_sample_is_planned_without", never_ending),
    ("keys_that_hardly_repeat_go_past_the_table_and_are_combined_all_the_same", past_the_table),
    ("a_key_with_too_many_values_is_combined_early_and_other_jobs_are_left_alone", skewed),
    ("the_plan_that_is_told_is_the_plan_that_is_run", told),
    ("words_chosen_to_have_one_hash_are_counted_as_fast_as_others", chosen_words),
    ("keys_are_their_bytes_whatever_a_type_says_of_them", types::own_keys),
    ("a_type_that_breaks_its_contract_ends_the_job_with_a_sentence", types::broken_contracts),
    ("values_of_any_width_combine_in_any_plan_to_the_same_answer", types::values_of_any_width),
    ("a_pair_of_four_gib_is_refused_where_it_is_emitted", types::huge_pairs),
];

fn main() {
    common::run(&TESTS, &[]);
}

/// Numbers of eight bytes, and how often each occurs. On small chunks, which only a sample has, it does something else.
struct Numbers {
    on_sample: fn(),
}

impl MapReduce for Numbers {
    type Key = u64;
    type Value = u64;
    const COMBINE: Option<Combine<u64>> = Some(|a, b| a + b);

    fn map(&self, split: &mut Split<'_>, out: &mut impl Emit<u64, u64>) {
        if split.bytes().len() < 16 << 10 {
            (self.on_sample)();
        }
        split.bytes().as_chunks::<8>().0.iter().for_each(|number| out.emit(u64::from_le_bytes(*number), 1));
    }
}

const NUMBERS: Numbers = Numbers { on_sample: || () };

/// `count` numbers, of which each half has every one once, in different orders.
fn numbers(count: u64) -> Vec<u8> {
    let half = count / 2;
    let first = (0..half).map(|n| n * 7919 % half);
    first.chain(0..half).flat_map(u64::to_le_bytes).collect()
}

/// Runs a job over `bytes`; every number must occur twice. Returns its plan, too.
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
    // A look at the input takes a few milliseconds at most, so on a machine under load it may come to nothing.
    let mut looks = (0..50).map(|_| run(&NUMBERS, &numbers(1 << 20), |job| job).0);
    let plan = looks.find(|plan| chosen(plan, "sample") != "none").expect("one of fifty looks is in time");
    assert_eq!(chosen(&plan, "sample"), "3 pieces, 24 KiB");
    // A sleep of a tenth of a millisecond in each piece makes little input a lot of work, on as many processors as there are.
    let slow = Numbers { on_sample: || std::thread::sleep(Duration::from_micros(100)) };
    let (plan, summary) = run(&slow, &numbers(1 << 17), |job| job);
    let cpus = std::thread::available_parallelism().expect("known").get();
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
    // `--buffer array --combine both` told of combining in map, and combined nothing there. And the number of partitions, and of
    // workers that map at once, was every user's to read and nobody's to choose.
    let bytes = numbers(2000);
    let tell = |change: fn(Job<'_, Numbers>) -> Job<'_, Numbers>, what: &str| {
        let (plan, summary) = run(&NUMBERS, &bytes, change);
        let counters = Counters::sum(summary.workers.iter().map(|worker| &worker.counters));
        // Those of the result, 1000, are sent as well.
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
    assert_eq!(tell(|job| job.workers(1).combine_after(3), "heavy keys").0, "no key gathers 3 values");
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
    // Twenty times what the table holds, and no number comes twice before it is full.
    let bytes = numbers(400_000);
    let passed = |change: fn(Job<'_, Numbers>) -> Job<'_, Numbers>| {
        let (_, summary) = run(&NUMBERS, &bytes, change);
        let counters = Counters::sum(summary.workers.iter().map(|worker| &worker.counters));
        assert_eq!(counters.get(Count::PairsEmitted), 400_000);
        counters.get(Count::PairsPassed)
    };
    assert!(passed(|job| job.workers(2)) > 200_000);
    assert!(passed(|job| job.workers(1).combine(Combining::Map)) > 200_000);
    // Who names a buffer gets it.
    assert_eq!(passed(|job| job.workers(2).buffer(Buffer::Hash)), 0);
}

fn chosen_words() {
    // Words whose first half made a factor of a published hash zero had one hash: 80,000 of them took 8 s instead of 0.03, and no
    // time-out ended that.
    struct Words;
    impl MapReduce for Words {
        type Key = Bytes;
        type Value = u64;
        const COMBINE: Option<Combine<u64>> = Some(|a, b| a + b);

        fn map(&self, split: &mut Split<'_>, out: &mut impl Emit<Bytes, u64>) {
            split.bytes().as_chunks::<16>().0.iter().for_each(|word| out.emit(word, 1));
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
    /// Half of all pairs have one key; the others are all different.
    struct Skewed;
    impl MapReduce for Skewed {
        type Key = u64;
        type Value = u64;
        const COMBINE: Option<Combine<u64>> = Some(|a, b| a + b);

        fn map(&self, split: &mut Split<'_>, out: &mut impl Emit<u64, u64>) {
            for number in split.bytes().as_chunks::<8>().0 {
                out.emit(u64::from_le_bytes(*number) + 1, 1);
                out.emit(0, 1);
            }
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
        // What is counted as held at the end has no more than a pair for each key, however it came to that.
        assert_eq!(counters.get(Count::Keys), 50_001);
        counters.get(Count::SkewsFound)
    };
    // One reducer has the frequent key. It is found once, and then combined as it comes.
    assert_eq!(skews(Some(1000), Combining::Off), 1);
    assert_eq!(skews(Some(60_000), Combining::Off), 0);
    assert_eq!(skews(None, Combining::Off), 0);
    // Combined in map, the key comes a few times only; combined in reduce, nothing is kept.
    assert_eq!(skews(Some(1000), Combining::Map), 0);
    assert_eq!(skews(Some(1), Combining::Both), 0);
}
