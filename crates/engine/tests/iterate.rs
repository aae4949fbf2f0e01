//! Jobs in steps: every step gives the result of ten sequential lines, whichever worker dies in it, and pairs that
//! cannot be kept are one clear error.

mod common;

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use common::{Case, Random, die_at_every, input_of, least_memory_in_steps, random_text, resident_kib};
use gristmill::internal::{MOMENTS, Moment};
use gristmill::options::{Buffer, Combining, Exchange, PagePolicy};
use gristmill::stats::Count;
use gristmill::{Bytes, Chunk, Emit, Input, Isolation, Job, MapReduce, Next, Pairs, ProgramError, Records, Summary};
use rustix::process::{Resource, Rlimit, setrlimit};

fn main() {
    common::run(
        &[
            ("every_plan_gives_the_same_result_for_each_step", plans),
            ("a_fused_worker_killed_at_any_moment_of_any_step_changes_nothing", fused_worker),
            ("a_map_worker_killed_at_any_moment_of_any_step_changes_nothing", map_worker),
            ("a_reduce_worker_killed_at_any_moment_of_any_step_changes_nothing", reduce_worker),
            ("deaths_change_nothing_with_every_pair_kept", every_pair),
            ("deaths_change_nothing_with_barrier_late_combining_and_fresh_pages", barrier),
            ("replacements_may_die_too", replacements),
            ("published_partitions_of_a_dead_reducer_are_not_repeated", published),
            ("a_thousand_steps_start_workers_once", many_steps),
            ("a_step_without_pairs_is_followed_by_another", nothing_left),
            ("pairs_that_outgrow_memory_and_disk_are_one_clear_error", limit),
            ("steps_stay_within_the_memory", memory),
            ("pairs_kept_on_disk_give_the_same_results_whoever_dies", kept_on_disk),
            ("steps_that_spill_give_the_same_results_whoever_dies", spills),
            ("a_reduce_function_makes_the_pairs_of_each_step", reduces),
            ("a_pair_larger_than_an_extent_is_one_clear_error", giant),
            ("a_longer_state_is_a_clear_panic", longer_state),
            ("used_pages_fault_once_and_fresh_ones_each_time", faults),
        ],
        &[],
    );
}

fn small_text() -> Vec<u8> {
    random_text(&mut Random(1), 6_000, 300, 24, false)
}

fn plans() {
    let (_dir, input) = input_of(&random_text(&mut Random(2), 60_000, 5_000, 40, true));
    for topology in [Case::fused(1), Case::fused(3), Case::split(2, 2)] {
        for pages in [PagePolicy::Reuse, PagePolicy::Fresh, PagePolicy::Prealloc] {
            for (count, combine) in [(true, Combining::Both), (true, Combining::Off), (false, Combining::Off)] {
                let case = Case { pages, count, combine, steps: 6, split_bytes: 6000, ..topology.clone() };
                case.check(&input, &[]).unwrap_or_else(|why| panic!("{why}\n{case:?}"));
            }
        }
    }
}

/// Kills a worker at every moment of a job of five steps, which map the pairs twice and the input once again.
fn die_at_all(case: &Case, worker: usize, comes_to: &[Moment]) {
    let (_dir, input) = input_of(&small_text());
    let case = Case { steps: 5, map_pause: Duration::from_micros(200), ..case.clone() };
    for moment in MOMENTS {
        let died = die_at_every(&case, &input, worker, moment, SPARSER);
        println!("worker {worker}: {died} deaths at {moment:?}");
        assert!(died > 0 || !comes_to.contains(&moment), "worker {worker} never died at {moment:?}");
    }
}

/// There are many hand-overs, so from the tenth on some are skipped.
const SPARSER: fn(u64) -> u64 = |nth| nth + 1 + nth / 10 * 3;

const MAPS: [Moment; 5] = [Moment::Drawn, Moment::Claimed, Moment::Sent, Moment::Flushed, Moment::Committed];
const REDUCES: [Moment; 4] = [Moment::Received, Moment::Drained, Moment::Keeping, Moment::Kept];

fn fused_worker() {
    die_at_all(&Case::fused(2), 1, &[MAPS.as_slice(), &REDUCES].concat());
    die_at_all(&Case::fused(1), 1, &[MAPS.as_slice(), &REDUCES].concat());
}

fn map_worker() {
    die_at_all(&Case::split(2, 2), 1, &MAPS);
}

fn reduce_worker() {
    die_at_all(&Case::split(2, 2), 3, &REDUCES);
}

/// Kills workers at the most important moments, for both topologies and both roles.
fn variants(change: impl Fn(Case) -> Case) {
    let (_dir, input) = input_of(&small_text());
    for (case, worker) in [(Case::fused(2), 2), (Case::split(2, 2), 2), (Case::split(2, 2), 4)] {
        let case = Case { steps: 4, map_pause: Duration::from_micros(200), ..change(case) };
        for moment in [Moment::Sent, Moment::Committed, Moment::Kept] {
            let died = die_at_every(&case, &input, worker, moment, SPARSER);
            println!("worker {worker}: {died} deaths at {moment:?}");
        }
    }
}

fn every_pair() {
    variants(|case| Case { count: false, ..case });
}

fn barrier() {
    variants(|case| Case {
        exchange: Exchange::Barrier,
        buffer: Buffer::Array,
        combine: Combining::Off,
        pages: PagePolicy::Fresh,
        ..case
    });
}

fn replacements() {
    let (_dir, input) = input_of(&small_text());
    let mut died = 0;
    for (case, workers) in [(Case::fused(2), 1..7), (Case::split(2, 2), 3..9)] {
        let case = Case { steps: 5, retries: 10, ..case };
        for moment in [Moment::Received, Moment::Drained, Moment::Keeping, Moment::Kept, Moment::Committed] {
            for nth in [1, 2, 5, 9, 40, 100] {
                let fates: Vec<_> = workers.clone().map(|worker| (worker, moment, nth)).collect();
                let summary = case.check(&input, &fates).unwrap_or_else(|why| panic!("{moment:?} {nth}: {why}"));
                died += summary.deaths.len();
            }
        }
    }
    assert!(died > 100, "only {died} died");
}

fn published() {
    let (_dir, input) = input_of(&small_text());
    // The reducer of all 64 partitions dies after the last one of the second step: all of them are published.
    let case = Case { steps: 3, ..Case::split(1, 1) };
    let summary = case.check(&input, &[(2, Moment::Kept, 128)]).expect("the answer");
    assert_eq!((summary.deaths.len(), summary.rounds), (1, 3), "{:?}", summary.deaths);
    // It dies one partition earlier: that one is made again, in one more round.
    let summary = case.check(&input, &[(2, Moment::Kept, 127)]).expect("the answer");
    assert_eq!((summary.deaths.len(), summary.rounds), (1, 4), "{:?}", summary.deaths);
}

/// Numbers that double in each step: 0, 1, 2, ... below `2^step`.
struct Doubling;

impl MapReduce for Doubling {
    type Key = u64;
    type Value = u8;

    fn combiner(&self) -> Option<impl Fn(u8, u8) -> u8> {
        Some(|a, b| a | b)
    }

    fn map(&self, chunk: &mut Chunk<'_>, out: &mut impl Emit<u64, u8>) -> Result<(), ProgramError> {
        chunk.bytes().iter().for_each(|byte| out.emit(u64::from(*byte), 1));
        Ok(())
    }

    fn map_pairs(&self, pairs: &Pairs<'_, u64, u8>, out: &mut impl Emit<u64, u8>) -> Result<(), ProgramError> {
        for (number, _) in pairs.iter() {
            out.emit(number * 2, 1);
            out.emit(number * 2 + 1, 1);
        }
        Ok(())
    }
}

fn doubling<'j, J: MapReduce>(program: &'j J) -> Job<'j, J> {
    Job::new(program, Input::bytes("one byte", &[0]).expect("memory")).records(Records::Fixed(1)).workers(2)
}

fn many_steps() {
    let mut steps = 0;
    let summary = doubling(&Doubling)
        .iterate(&[], |step| {
            assert_eq!((step.number(), step.pairs(), step.get(0)), (steps, 1, Some(1)));
            steps += 1;
            if steps == 1000 { Next::Stop } else { Next::Input }
        })
        .expect("a thousand steps");
    assert_eq!((summary.steps, summary.rounds, summary.workers.len()), (1000, 1000, 2));
}

fn nothing_left() {
    let (_dir, input) = input_of(b"");
    for isolation in [Isolation::Process, Isolation::Thread] {
        let job = Job::new(&Doubling, Input::paths([&input])).records(Records::Fixed(1)).workers(2);
        let mut found = Vec::new();
        job.isolation(isolation)
            .iterate(&[], |step| {
                found.push(step.pairs());
                [Next::Pairs, Next::Input, Next::Pairs, Next::Stop][step.number() as usize]
            })
            .expect("nothing is an answer too");
        assert_eq!(found, [0; 4]);
    }
}

fn limit() {
    // Nothing may be written to the spill folder: so much must stay free there.
    let mut reached = 0;
    let outcome = doubling(&Doubling).keep_bytes(2 << 20).keep_free(1 << 60).iterate(&[], |step| {
        assert_eq!(step.pairs(), 1 << step.number());
        reached = step.number();
        Next::Pairs
    });
    let error = outcome.expect_err("2^40 numbers do not fit 2 MiB").to_string();
    // 2^16 pairs of 9 bytes take 0.56 MiB, and those of the step before half as much.
    assert!(reached >= 15, "step {reached}");
    let expected = format!("step {} did not fit: the pairs of two steps in a row may take 2097152 bytes", reached + 1);
    assert!(error.contains(&expected) && error.contains("Job::keep_bytes"), "{error}");
    // A limit on file sizes bounds the file as well, and the room in it counts.
    setrlimit(Resource::Fsize, Rlimit { current: Some(8 << 20), maximum: None }).expect("set");
    let outcome = doubling(&Doubling).memory(64 << 20).keep_bytes(2 << 20).iterate(&[], |_| Next::Pairs);
    let error = outcome.expect_err("2^40 numbers do not fit 10 MiB").to_string();
    assert!(error.contains("may take 10485760 bytes together, in memory and in the spill folder"), "{error}");
}

fn memory() {
    let before_kib = resident_kib();
    for (budget, keep_bytes) in [(32, Some(2 << 20)), (32, Some(16 << 20)), (48, None)] {
        // The last two steps take 57 MB.
        const LAST: u32 = 22;
        let (mut peak_kib, mut sum) = (0, 0);
        let job = doubling(&Doubling).memory(budget << 20);
        let job = if let Some(bytes) = keep_bytes { job.keep_bytes(bytes) } else { job };
        let outcome = job.iterate(&[], |step| {
            assert_eq!(step.pairs(), 1 << step.number());
            peak_kib = peak_kib.max(resident_kib());
            if step.number() < LAST {
                return Next::Pairs;
            }
            step.for_each(|number, _| sum += number);
            Next::Stop
        });
        outcome.expect("there is room on the disk");
        assert_eq!(sum, (0..1 << LAST).sum::<u64>());
        println!("{budget} MiB: {peak_kib} KiB, {before_kib} KiB before");
        assert!(peak_kib - before_kib < budget as u64 * 1024, "{peak_kib} KiB of {budget} MiB");
    }
}

fn kept_on_disk() {
    let (_dir, input) = input_of(&random_text(&mut Random(78), 400_000, 1 << 30, 10, false));
    for (isolation, workers) in [(Isolation::Process, 2), (Isolation::Process, 7), (Isolation::Thread, 2)] {
        for moment in [None, Some(Moment::Claimed), Some(Moment::Keeping), Some(Moment::Kept)] {
            let kills = match (moment, isolation) {
                (Some(moment), Isolation::Process) => vec![(1, moment, 3), (2, moment, 40)],
                _ => vec![],
            };
            let job = kills.iter().fold(
                Job::new(&Doubled, Input::paths([&input])).isolation(isolation).workers(workers).split_bytes(20_000),
                |job, (worker, moment, nth)| job.die_at(*worker, *moment, *nth),
            );
            // Two steps of one extent for each worker: nearly everything is in the file.
            let mut last = Vec::new();
            let summary = job.keep_bytes(1 << 20).iterate(&[], |step| {
                if step.number() < 3 {
                    return Next::Pairs;
                }
                step.for_each(|word, count| last.push((word.to_vec(), count)));
                Next::Stop
            });
            let summary = summary.expect("there is room on the disk");
            assert_eq!(summary.deaths.is_empty(), kills.is_empty(), "{moment:?}: {:?}", summary.deaths);
            last.sort();
            let text = fs::read(&input).expect("read");
            let mut expected = BTreeMap::<Vec<u8>, u64>::new();
            let words = text.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
            words.for_each(|word| *expected.entry(word.to_vec()).or_default() += 8);
            assert!(last.into_iter().eq(expected), "{isolation:?}, {workers} workers, {moment:?}");
        }
    }
}

/// Counts words, and doubles the counts in each step.
struct Doubled;

impl MapReduce for Doubled {
    type Key = Bytes;
    type Value = u64;

    fn combiner(&self) -> Option<impl Fn(u64, u64) -> u64> {
        Some(|a, b| a + b)
    }

    fn map(&self, chunk: &mut Chunk<'_>, out: &mut impl Emit<Bytes, u64>) -> Result<(), ProgramError> {
        let words = chunk.bytes().split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
        words.for_each(|word| out.emit(word, 1));
        Ok(())
    }

    fn map_pairs(&self, pairs: &Pairs<'_, Bytes, u64>, out: &mut impl Emit<Bytes, u64>) -> Result<(), ProgramError> {
        pairs.iter().for_each(|(word, count)| out.emit(word, 2 * count));
        Ok(())
    }
}

fn spills() {
    let runs_of =
        |summary: &Summary| -> u64 { summary.workers.iter().map(|worker| worker.counters.get(Count::Runs)).sum() };
    let text = random_text(&mut Random(77), 600_000, 1 << 30, 10, false);
    let (_dir, input) = input_of(&text);
    for count in [true, false] {
        let case =
            Case { count, steps: 2, least_memory: true, split_bytes: 20_000, page_bytes: 8192, ..Case::fused(2) };
        for combine in [Combining::Both, Combining::Map, Combining::Off] {
            let summary = Case { combine, ..case }.check(&input, &[]).expect("the answer");
            assert!(runs_of(&summary) > 10, "{count} {combine:?}: {} runs", runs_of(&summary));
        }
        for (moment, nth) in [(Moment::Spilled, 2), (Moment::Spilled, 7), (Moment::Keeping, 9), (Moment::Kept, 40)] {
            let summary = case.check(&input, &[(1, moment, nth)]).expect("the answer");
            assert_eq!(summary.deaths.len(), 1, "{count} {moment:?} {nth}");
        }
    }
}

fn reduces() {
    // The reduce function drops one in sixteen of the numbers that a step makes.
    let is_kept = |number: u64| number % 16 != 15;
    let job = || {
        doubling(&Doubling).keep_bytes(16 << 20).reduce(move |number, values, emit| {
            assert_eq!(values.owned().collect::<Vec<_>>(), [1]);
            if is_kept(number) {
                emit(number, 2);
            }
            Ok(())
        })
    };
    for job in [job(), job().memory(least_memory_in_steps(job()))] {
        let mut expected = vec![0];
        let summary = job.iterate(&[], |step| {
            let mut found: Vec<u64> = Vec::new();
            step.for_each(|number, value| {
                assert_eq!(value, 2);
                found.push(number);
            });
            found.sort();
            assert!(found == expected, "step {}", step.number());
            expected =
                expected.iter().flat_map(|number| [number * 2, number * 2 + 1]).filter(|n| is_kept(*n)).collect();
            if step.number() == 19 { Next::Stop } else { Next::Pairs }
        });
        summary.expect("it runs");
    }
}

/// Emits a value that is larger than an extent.
struct Giant;

impl MapReduce for Giant {
    type Key = u64;
    type Value = gristmill::Bytes;

    fn map(&self, _: &mut Chunk<'_>, out: &mut impl Emit<u64, gristmill::Bytes>) -> Result<(), ProgramError> {
        out.emit(1, &vec![7; (1 << 20) + 1]);
        Ok(())
    }
}

fn giant() {
    let error = doubling(&Giant).iterate(&[], |_| Next::Stop).expect_err("too large").to_string();
    assert!(error.contains("a pair of 1048589 bytes in step 0 is larger than 1048560 bytes"), "{error}");
}

fn longer_state() {
    let outcome = std::panic::catch_unwind(|| {
        doubling(&Doubling).iterate(&[0; 3], |step| {
            step.set_state(&[0; 9]);
            Next::Stop
        })
    });
    let panic = outcome.expect_err("it does not fit");
    let words = panic.downcast_ref::<String>().expect("words");
    assert!(words.contains("a state of 9 bytes was set, and the job began with room for 8"), "{words}");
}

/// Compares the page faults per step of jobs with used and with fresh pages.
fn faults() {
    /// Passes its pairs on.
    struct Stay;
    impl MapReduce for Stay {
        type Key = u64;
        type Value = u64;

        fn combiner(&self) -> Option<impl Fn(u64, u64) -> u64> {
            Some(|a, b| a + b)
        }

        fn map(&self, chunk: &mut Chunk<'_>, out: &mut impl Emit<u64, u64>) -> Result<(), ProgramError> {
            (0..100_000).for_each(|number| out.emit(number, u64::from(chunk.bytes()[0])));
            Ok(())
        }
    }
    let faults = |pages: PagePolicy, steps: u32| {
        let summary: Summary = doubling(&Stay)
            .pages(pages)
            .iterate(&[], |step| if step.number() + 1 == steps { Next::Stop } else { Next::Pairs })
            .expect("the job runs");
        summary.workers.iter().map(|worker| worker.counters.get(Count::MinorFaults)).sum::<u64>()
    };
    // Two generations of 1.6 MB, and tables of twice that size: after a few steps all memory has been touched. The
    // first steps vary by a few hundred faults, because chance decides which worker maps what, so the longer job may
    // even have fewer.
    let each = |pages| faults(pages, 24).saturating_sub(faults(pages, 8)) / 16;
    let (reused, fresh) = (each(PagePolicy::Reuse), each(PagePolicy::Fresh));
    println!("minor faults per step: {reused} with used pages, {fresh} with fresh ones");
    assert!(reused * 10 < fresh, "{reused} faults per step with used pages, {fresh} with fresh ones");
}
