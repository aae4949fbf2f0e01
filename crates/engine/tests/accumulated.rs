//! Accumulators count each record once, whoever dies.

mod common;

use std::cell::RefCell;

use gristmill::internal::Moment;
use gristmill::{
    Accumulator, Chunk, Emit, Error, Input, Isolation, Job, MapReduce, Next, Pairs, ProgramError, Records,
};

fn main() {
    common::run(
        &[
            ("accumulators_count_each_record_once", accumulators_count_each_record_once),
            (
                "accumulators_do_not_count_records_that_were_set_aside",
                accumulators_do_not_count_records_that_were_set_aside,
            ),
            ("each_step_has_totals_of_its_own", each_step_has_totals_of_its_own),
            (
                "an_accumulator_that_the_job_does_not_have_is_an_error",
                an_accumulator_that_the_job_does_not_have_is_an_error,
            ),
        ],
        &[],
    );
}

/// Counts numbers, and fails on some of them.
struct Numbers<'a> {
    sum: &'a Accumulator,
    least: &'a Accumulator,
    greatest: &'a Accumulator,
    /// Panics at these numbers, after it has added them.
    bad: fn(u32) -> bool,
}

impl MapReduce for Numbers<'_> {
    type Key = u32;
    type Value = u64;

    fn combiner(&self) -> Option<impl Fn(u64, u64) -> u64> {
        Some(|a, b| a + b)
    }

    fn map(&self, chunk: &mut Chunk<'_>, out: &mut impl Emit<u32, u64>) -> Result<(), ProgramError> {
        for number in chunk.bytes().as_chunks().0 {
            let number = u32::from_le_bytes(*number);
            self.sum.add(i64::from(number));
            self.least.add(i64::from(number) - 1_000);
            self.greatest.add(i64::from(number));
            assert!(!(self.bad)(number), "{number} is bad");
            out.emit(number % 1_000, 1);
        }
        Ok(())
    }

    fn map_pairs(&self, pairs: &Pairs<'_, u32, u64>, out: &mut impl Emit<u32, u64>) -> Result<(), ProgramError> {
        for (number, count) in pairs.iter() {
            self.sum.add(count as i64);
            out.emit(number / 2, count);
        }
        Ok(())
    }
}

fn numbers() -> Vec<u32> {
    (0..30_000u32).map(|n| n.wrapping_mul(2_654_435_761) >> 8).collect()
}

fn input() -> Input {
    let bytes: Vec<u8> = numbers().iter().flat_map(|number| number.to_le_bytes()).collect();
    Input::bytes("numbers", &bytes).expect("made")
}

fn accumulators_count_each_record_once() {
    let [sum, least, greatest, unused] =
        [Accumulator::sum(), Accumulator::least(), Accumulator::greatest(), Accumulator::sum()];
    let program = Numbers { sum: &sum, least: &least, greatest: &greatest, bad: |_| false };
    let job = || {
        let job = Job::new(&program, input()).records(Records::Fixed(4)).split_bytes(2_000);
        job.accumulates(&sum).accumulates(&least).accumulates(&greatest).accumulates(&unused).accumulates(&sum)
    };
    let with = |isolation: Isolation, workers: usize| job().isolation(isolation).workers(workers);
    let mut jobs = vec![
        with(Isolation::Process, 2),
        with(Isolation::Process, 7),
        with(Isolation::Thread, 2),
        with(Isolation::Thread, 7),
        job().map_workers(2).reduce_workers(2),
    ];
    for moment in [Moment::Claimed, Moment::Sent, Moment::Flushed, Moment::Committed, Moment::Drained] {
        jobs.push(with(Isolation::Process, 2).die_at(1, moment, 1).die_at(2, moment, 1));
        jobs.push(job().map_workers(2).reduce_workers(2).die_at(1, moment, 2).die_at(4, moment, 1));
    }
    let numbers = numbers();
    for (number, job) in jobs.into_iter().enumerate() {
        let (counts, summary) = job.run().expect("it runs");
        assert_eq!(counts.iter().map(|(_, count)| count).sum::<u64>(), 30_000);
        assert_eq!(summary.total(&sum), Some(numbers.iter().map(|n| i64::from(*n)).sum()), "job {number}");
        assert_eq!(summary.total(&least), numbers.iter().min().map(|n| i64::from(*n) - 1_000), "job {number}");
        assert_eq!(summary.total(&greatest), numbers.iter().max().map(|n| i64::from(*n)), "job {number}");
        assert_eq!(summary.total(&unused), None);
    }
}

fn accumulators_do_not_count_records_that_were_set_aside() {
    let [sum, least, greatest] = [Accumulator::sum(), Accumulator::least(), Accumulator::greatest()];
    let program = Numbers { sum: &sum, least: &least, greatest: &greatest, bad: |number| number % 5_000 == 3 };
    for isolation in [Isolation::Process, Isolation::Thread] {
        let job = Job::new(&program, input()).records(Records::Fixed(4)).split_bytes(2_000).isolation(isolation);
        let job = job.accumulates(&sum).accumulates(&least).accumulates(&greatest).workers(2);
        let (_, summary) = job.skip_bad_records(100).run().expect("it runs");
        assert!(!summary.bad_records.is_empty());
        let good = numbers().into_iter().filter(|number| number % 5_000 != 3);
        assert_eq!(summary.total(&sum), Some(good.map(i64::from).sum()));
    }
}

fn each_step_has_totals_of_its_own() {
    let [sum, least, greatest] = [Accumulator::sum(), Accumulator::least(), Accumulator::greatest()];
    let program = Numbers { sum: &sum, least: &least, greatest: &greatest, bad: |_| false };
    let all: i64 = numbers().iter().map(|n| i64::from(*n)).sum();
    for kill in [None, Some(Moment::Kept), Some(Moment::Committed)] {
        let job = Job::new(&program, input()).records(Records::Fixed(4)).split_bytes(2_000).workers(2);
        let job = job.accumulates(&sum).accumulates(&least).accumulates(&greatest);
        let job = kill.into_iter().fold(job, |job, moment| job.die_at(1, moment, 3).die_at(2, moment, 40));
        let found = RefCell::new(Vec::new());
        let summary = job.iterate(&[], |step| {
            found.borrow_mut().push((step.total(&sum), step.total(&least).is_some()));
            [Next::Pairs, Next::Input, Next::Pairs, Next::Stop][step.number() as usize]
        });
        let expected = [(Some(all), true), (Some(30_000), false), (Some(all), true), (Some(30_000), false)];
        assert_eq!(found.into_inner(), expected, "{kill:?}");
        assert_eq!(summary.expect("it runs").total(&sum), Some(2 * (all + 30_000)), "{kill:?}");
    }
}

fn an_accumulator_that_the_job_does_not_have_is_an_error() {
    let [sum, least, greatest] = [Accumulator::sum(), Accumulator::least(), Accumulator::greatest()];
    let program = Numbers { sum: &sum, least: &least, greatest: &greatest, bad: |_| false };
    let job = || Job::new(&program, input()).records(Records::Fixed(4)).workers(1).retries(0);
    let error = job().accumulates(&sum).run().map(drop).expect_err("two are missing").to_string();
    assert!(error.contains("adds to an accumulator that the job was not given: Job::accumulates"), "{error}");
    let dir = tempfile::tempdir().expect("a folder");
    let saved = job().accumulates(&sum).checkpoint(dir.path().join("c"), "numbers", std::time::Duration::from_secs(1));
    let error = saved.run().map(drop).expect_err("they are not saved");
    assert!(matches!(&error, Error::Setting(what) if what.contains("accumulators are not saved")), "{error}");
}
