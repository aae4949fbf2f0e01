//! Map functions that emit other pairs when they are called again: random keys, the time as a key, swapped values, more
//! or fewer pairs. After a death, part of the result is made anew and the rest is kept, so such a function could lose
//! some records and double others. The result must be that of one call for each record, or one clear error.

use std::hash::{BuildHasher, RandomState};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use gristmill::internal::Moment;
use gristmill::options::Buffer;
use gristmill::sinks::{Part, Row, Target};
use gristmill::{
    Chunk, Emit, Error, Input, Isolation, Job, MapReduce, Next, Order, Pairs, ProgramError, Records, SharedOutput,
    Summary,
};

use crate::common::{Random, input_of};

/// The number of records: the numbers below it, four bytes each. There are enough that a sample is searched for ranges
/// of the result.
const RECORDS: u32 = 5000;
const SPLIT_BYTES: u64 = 400;

/// How the map function differs between calls.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Mood {
    /// Every key is random.
    Random,
    /// The key is the time.
    Clock,
    /// The keys stay, and values are swapped among them.
    Permuted,
    /// Half of the calls emit one more pair, with a value of zero.
    Count,
}

const MOODS: [Mood; 4] = [Mood::Random, Mood::Clock, Mood::Permuted, Mood::Count];

/// Emits each number of the input once, as one record and its sum, under some key.
struct Moody<const COMBINES: bool> {
    mood: Mood,
    /// The key domain, if a dense buffer is to be used.
    keys: Option<usize>,
    /// A worker that finds this file removes it, and dies.
    killer: Option<PathBuf>,
    /// Whether to reject every hundredth record.
    rejects: bool,
}

impl<const COMBINES: bool> Moody<COMBINES> {
    fn new(mood: Mood) -> Self {
        Moody { mood, keys: None, killer: None, rejects: false }
    }

    fn key(&self, random: &mut Random) -> u32 {
        let key = match self.mood {
            Mood::Clock => SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_nanos() as u64,
            _ => random.next(),
        };
        (key % self.keys.unwrap_or(1 << 20) as u64) as u32
    }

    fn emit(&self, numbers: &mut [u32], out: &mut impl Emit<u32, (u64, u64)>) {
        let mut random = Random(RandomState::new().hash_one(0));
        let steady: Vec<u32> = numbers.iter().map(|number| number % 200).collect();
        if self.mood == Mood::Permuted {
            (1..numbers.len()).rev().for_each(|at| numbers.swap(at, random.below(at as u64 + 1) as usize));
        }
        for (number, steady) in numbers.iter().zip(steady) {
            let key = if self.mood == Mood::Permuted { steady } else { self.key(&mut random) };
            out.emit(key, (1, u64::from(*number)));
        }
        if self.mood == Mood::Count && random.below(2) == 0 {
            out.emit(0, (0, 0));
        }
    }
}

impl<const COMBINES: bool> MapReduce for Moody<COMBINES> {
    type Key = u32;
    type Value = (u64, u64);

    fn keys(&self) -> Option<usize> {
        self.keys
    }

    fn combiner(&self) -> Option<impl Fn((u64, u64), (u64, u64)) -> (u64, u64)> {
        COMBINES.then_some(|a: (u64, u64), b: (u64, u64)| (a.0 + b.0, a.1 + b.1))
    }

    fn map(&self, chunk: &mut Chunk<'_>, out: &mut impl Emit<u32, (u64, u64)>) -> Result<(), ProgramError> {
        if chunk.bytes().len() > 4 {
            std::thread::sleep(Duration::from_micros(200));
        }
        if let Some(killer) = &self.killer
            && chunk.offset() > 0
            && std::fs::remove_file(killer).is_ok()
        {
            panic!("the file said so");
        }
        let number = |bytes: &[u8; 4]| u32::from_le_bytes(*bytes);
        let mut numbers: Vec<u32> = chunk.bytes().as_chunks::<4>().0.iter().map(number).collect();
        if self.rejects
            && let Some(at) = numbers.iter().position(|number| number % 100 == 0)
        {
            return Err(chunk.reject(4 * at, "no hundreds"));
        }
        self.emit(&mut numbers, out);
        Ok(())
    }

    fn map_pairs(
        &self,
        pairs: &Pairs<'_, u32, (u64, u64)>,
        out: &mut impl Emit<u32, (u64, u64)>,
    ) -> Result<(), ProgramError> {
        std::thread::sleep(Duration::from_micros(200));
        let mut random = Random(RandomState::new().hash_one(0));
        pairs.iter().for_each(|(_, value)| out.emit(self.key(&mut random), value));
        Ok(())
    }
}

/// Writes pairs as rows of text.
struct Rows;

impl Row<u32, (u64, u64)> for Rows {
    fn bytes(&self, _: u32, _: (u64, u64)) -> usize {
        24
    }

    fn write(&self, key: u32, (records, sum): (u64, u64), to: &mut Vec<u8>) {
        to.extend_from_slice(format!("{key:>10} {records:>2} {sum:>9}\n").as_bytes());
    }
}

/// The number of records, and their sum.
type Total = (u64, u64);

fn total_of(records: impl Iterator<Item = u32>) -> Total {
    records.fold((0, 0), |(count, sum), number| (count + 1, sum + u64::from(number)))
}

fn expected() -> Total {
    total_of(0..RECORDS)
}

fn add(total: &mut Total, value: Total) {
    *total = (total.0 + value.0, total.1 + value.1);
}

fn numbers() -> (tempfile::TempDir, PathBuf) {
    input_of(&(0..RECORDS).flat_map(u32::to_le_bytes).collect::<Vec<u8>>())
}

/// Separate map and reduce workers, or workers that do both.
#[derive(Clone, Copy, Debug)]
enum Workers {
    Fused(usize),
    Chunk(usize, usize),
}

const TOPOLOGIES: [Workers; 2] = [Workers::Fused(2), Workers::Chunk(2, 2)];

fn job<'j, const C: bool>(program: &'j Moody<C>, input: &Path, workers: Workers) -> Job<'j, Moody<C>> {
    let job = Job::new(program, Input::paths([input])).records(Records::Fixed(4));
    let job = job.split_bytes(SPLIT_BYTES).page_bytes(4096);
    match workers {
        Workers::Fused(workers) => job.workers(workers),
        Workers::Chunk(map, reduce) => job.map_workers(map).reduce_workers(reduce),
    }
}

/// The outcomes of jobs.
#[derive(Debug, Default)]
struct Tally {
    died: usize,
    begun_anew: u32,
    refused: usize,
}

impl Tally {
    /// Adds an outcome. A job that lost or doubled a record fails the test; one that could not be finished must say
    /// why.
    fn add(&mut self, outcome: gristmill::Result<Summary>, total: Total, expected: Total, what: &str) {
        match outcome {
            Ok(summary) => {
                assert_eq!(total, expected, "{what}: {:#?}", summary.deaths);
                self.died += summary.deaths.len();
                self.begun_anew += summary.begun_anew;
            }
            Err(error @ Error::Unrepeatable { .. }) => {
                let why = error.to_string();
                assert!(why.contains("Let the map function depend on nothing but its chunk"), "{why}");
                self.refused += 1;
            }
            Err(error) => panic!("{what}: {error}"),
        }
    }
}

/// Runs a job and adds up its result.
fn run<const C: bool>(tally: &mut Tally, job: Job<'_, Moody<C>>, what: &str) {
    let mut total = Total::default();
    let outcome = job.run_each(|_, value| add(&mut total, value));
    tally.add(outcome, total, expected(), what);
}

/// A word count whose keys were drawn at random (to spread a hot key) once silently lost and doubled thousands of
/// records when the kernel killed a worker.
pub fn random_keys() {
    let (_dir, input) = numbers();
    for mood in MOODS {
        let mut tally = Tally::default();
        for workers in TOPOLOGIES {
            let reducer = if let Workers::Chunk(..) = workers { 4 } else { 2 };
            for (moment, nth) in [(Moment::Received, 2), (Moment::Received, 9), (Moment::Drained, 1), (Moment::Sent, 4)]
            {
                let die = |at: (Buffer, Order)| format!("{mood:?} {workers:?} {at:?} {moment:?} {nth}");
                for at in [(Buffer::Hash, Order::ByKey), (Buffer::Array, Order::Unordered)] {
                    let program = Moody::<true>::new(mood);
                    let job = job(&program, &input, workers).buffer(at.0).order(at.1);
                    run(&mut tally, job.die_at(reducer, moment, nth), &die(at));
                }
                let dense = Moody::<true> { keys: Some(256), ..Moody::new(mood) };
                run(&mut tally, job(&dense, &input, workers).die_at(reducer, moment, nth), "dense");
                // If pairs are not combined, partitions are ranges of the result.
                let kept = Moody::<false>::new(mood);
                let at = (Buffer::Auto, Order::ByKey);
                run(&mut tally, job(&kept, &input, workers).order(at.1).die_at(reducer, moment, nth), &die(at));
            }
        }
        println!("{mood:?}: {tally:?}");
        assert!(tally.died > 10 && tally.begun_anew > 10, "{mood:?}: {tally:?}");
    }
}

/// The same in jobs whose workers are threads.
pub fn random_keys_in_threads() {
    let (dir, input) = numbers();
    let mut tally = Tally::default();
    for (nth, mood) in MOODS.into_iter().cycle().take(12).enumerate() {
        let killer = dir.path().join("killer");
        std::fs::write(&killer, "").expect("written");
        let program = Moody::<true> { killer: Some(killer), ..Moody::new(mood) };
        let buffer = [Buffer::Hash, Buffer::Array][nth % 2];
        run(
            &mut tally,
            job(&program, &input, Workers::Fused(2)).buffer(buffer).isolation(Isolation::Thread),
            "threads",
        );
    }
    assert!(tally.begun_anew > 2, "{tally:?}");
}

/// A caller that had received half of a result was once given the rest of another.
pub fn what_was_delivered() {
    let (_dir, input) = numbers();
    let mut tally = Tally::default();
    for workers in TOPOLOGIES {
        let (last, first) = if let Workers::Chunk(..) = workers { (4, 1) } else { (2, 12) };
        for nth in first..first + 12 {
            let program = Moody::<false>::new(Mood::Random);
            let mut total = Total::default();
            let outcome = job(&program, &input, workers)
                .order(Order::ByValueDescending)
                .die_at(last, Moment::Sent, nth)
                .run_each(|_, value| {
                    add(&mut total, value);
                    if total.0.is_multiple_of(100) {
                        std::thread::sleep(Duration::from_micros(200));
                    }
                });
            if let Err(Error::Unrepeatable { place, first, again, anew: 0 }) = &outcome {
                let of_numbers = place.contains("bytes ") && *first == SPLIT_BYTES / 4 && first == again;
                assert!(of_numbers, "{place} {first} {again}");
            }
            tally.add(outcome, total, expected(), "delivered");
        }
    }
    assert!(tally.refused > 0, "{tally:?}");
}

/// A job whose workers die again and again would start over for ever.
pub fn bounded() {
    let (dir, input) = numbers();
    let killer = dir.path().join("killer");
    std::fs::write(&killer, "").expect("written");
    let program = Moody::<true> { killer: Some(killer.clone()), ..Moody::new(Mood::Random) };
    let news = Mutex::new(Vec::new());
    let job = job(&program, &input, Workers::Fused(2)).on_news(|told| {
        if told.contains("so the job begins anew") {
            std::fs::write(&killer, "").expect("written");
            news.lock().expect("no panic").push(told.to_owned());
        }
    });
    let error = job.run().map(|_| ()).expect_err("no attempt is left alone");
    let why = error.to_string();
    assert!(matches!(error, Error::Unrepeatable { anew: 3, .. }), "{why}");
    assert!(why.contains("when it was mapped again after a death; the job had begun anew 3 times"), "{why}");
    assert_eq!(news.lock().expect("no panic").len(), 3, "{news:?}");
}

/// An iteration once kept part of a step and made the rest from other pairs.
pub fn steps() {
    let (_dir, input) = numbers();
    let mut tally = Tally::default();
    for (workers, reducer) in [(Workers::Fused(2), 2), (Workers::Chunk(2, 2), 4)] {
        for (moment, from) in [(Moment::Received, 1), (Moment::Drained, 1), (Moment::Kept, 1), (Moment::Keeping, 2)] {
            for nth in from..from + 6 {
                let program = Moody::<false>::new(Mood::Random);
                let (mut total, mut steps) = (Total::default(), 0);
                let outcome = job(&program, &input, workers).die_at(reducer, moment, nth).iterate(&[], |step| {
                    let mut of_step = Total::default();
                    step.for_each(|_, value| add(&mut of_step, value));
                    assert_eq!(of_step, expected(), "step {} {workers:?} {moment:?} {nth}", step.number());
                    (total, steps) = (of_step, steps + 1);
                    if step.number() == 2 { Next::Stop } else { Next::Pairs }
                });
                if let Err(Error::Unrepeatable { place, .. }) = &outcome {
                    assert!(steps > 0 && place.contains(" in step "), "nothing was seen of the first step: {place}");
                }
                tally.add(outcome, total, expected(), "steps");
            }
        }
    }
    assert!(tally.begun_anew > 0 && tally.refused > 0, "{tally:?}");
}

/// A sort once wrote some ranges from one run of the map function, and the others from another.
pub fn written() {
    let (dir, input) = numbers();
    let mut tally = Tally::default();
    let path = dir.path().join("sorted");
    for (workers, reducer) in [(Workers::Fused(2), 2), (Workers::Chunk(2, 2), 4)] {
        for (moment, nth) in [(Moment::Received, 1), (Moment::Received, 3), (Moment::Drained, 1), (Moment::Written, 1)]
        {
            let program = Moody::<false>::new(Mood::Random);
            let file = std::fs::File::create(&path).expect("created");
            let target = Target::File { file: &file, start: 0 };
            // If the sample yields no cuts, one reducer has everything.
            let job = job(&program, &input, workers).die_at(reducer - 1, moment, nth).die_at(reducer, moment, nth);
            let outcome = job.write(&path, target, &Rows);
            let outcome = outcome.map(|(parts, summary)| {
                assert_eq!(parts.iter().map(|part: &Part| part.records).sum::<u64>(), u64::from(RECORDS));
                summary
            });
            let text = std::fs::read_to_string(&path).expect("read");
            let total = total_of(text.lines().filter_map(|row| row.split_whitespace().nth(2)?.parse().ok()));
            let seen = if moment == Moment::Written && outcome.is_err() { expected() } else { total };
            tally.add(outcome, seen, expected(), "written");
        }
    }
    assert!(tally.begun_anew > 0 && tally.refused > 0, "{tally:?}");
}

/// Records were once set aside by one attempt, and counted by another.
pub fn set_aside() {
    let (_dir, input) = numbers();
    let rest = total_of((0..RECORDS).filter(|number| number % 100 != 0));
    let mut tally = Tally::default();
    for (workers, reducer) in [(Workers::Fused(2), 2), (Workers::Chunk(2, 2), 4)] {
        for (moment, nth) in [(Moment::Received, 2), (Moment::Received, 9), (Moment::Drained, 1), (Moment::Sent, 4)] {
            let program = Moody::<true> { rejects: true, ..Moody::new(Mood::Random) };
            let job = job(&program, &input, workers).skip_bad_records(RECORDS).die_at(reducer, moment, nth);
            let mut total = Total::default();
            let outcome = job.run_each(|_, value| add(&mut total, value));
            if let Ok(summary) = &outcome {
                assert_eq!(summary.bad_records.len() as u32, RECORDS / 100);
            }
            tally.add(outcome, total, rest, "set aside");
        }
    }
    assert!(tally.begun_anew > 0, "{tally:?}");
}

/// Emits one pair of one key for each task, so that no page ever fills up.
struct Quiet;

impl MapReduce for Quiet {
    type Key = u32;
    type Value = (u64, u64);

    fn combiner(&self) -> Option<impl Fn((u64, u64), (u64, u64)) -> (u64, u64)> {
        Some(|a: (u64, u64), b: (u64, u64)| (a.0 + b.0, a.1 + b.1))
    }

    fn map(&self, chunk: &mut Chunk<'_>, out: &mut impl Emit<u32, (u64, u64)>) -> Result<(), ProgramError> {
        std::thread::sleep(Duration::from_millis(2));
        out.emit(0, (chunk.bytes().len() as u64 / 4, 0));
        Ok(())
    }
}

/// When one of two workers was killed, everything that it had ever mapped was once mapped again, because it had emitted
/// too little to commit any of it. Until then progress stayed at zero.
pub fn costs() {
    let (_dir, input) = numbers();
    let mut half_done = false;
    let job = Job::new(&Quiet, Input::paths([&input])).records(Records::Fixed(4)).split_bytes(50);
    let job = job.map_workers(2).reduce_workers(1).die_at(1, Moment::Claimed, 150).on_progress(|progress| {
        half_done |= progress.done_bytes * 4 > progress.total_bytes && !progress.finishing;
    });
    let (pairs, summary) = job.run().expect("the death is made good");
    assert_eq!(pairs.get(0), Some((u64::from(RECORDS), 0)));
    assert_eq!(summary.deaths.len(), 1);
    let mapped = |worker: &gristmill::stats::Worker| worker.counters.get(gristmill::stats::Count::Tasks) as usize;
    let again = summary.workers.iter().map(mapped).sum::<usize>() - summary.tasks;
    // A task takes at least 2 ms, so at most fifty begin in 100 ms.
    assert!(again <= 52, "{again} tasks of {} were mapped again", summary.tasks);
    assert!(half_done, "progress is seen on the way");
}

/// For each number, writes to one random element of ten in an array.
struct Scatter<'o> {
    array: &'o SharedOutput<u32>,
    /// Whether to emit pairs, too.
    emits: bool,
}

impl MapReduce for Scatter<'_> {
    type Key = u32;
    type Value = u64;

    fn map(&self, chunk: &mut Chunk<'_>, out: &mut impl Emit<u32, u64>) -> Result<(), ProgramError> {
        std::thread::sleep(Duration::from_micros(200));
        let mut random = Random(RandomState::new().hash_one(0));
        let first = chunk.offset() as usize / 4;
        let count = chunk.bytes().len() / 4;
        self.array.write(|array| {
            for number in first..first + count {
                array[10 * number + random.below(10) as usize] = number as u32 + 1;
                if self.emits {
                    out.emit(random.next() as u32, 1);
                }
            }
        });
        Ok(())
    }
}

/// An array once held what two calls of the map function had written for one record: the worker of the first call died
/// after others could see its changes, and before its task was committed.
pub fn arrays() {
    let (_dir, input) = numbers();
    let mut tally = Tally::default();
    for (worker, moment, every) in
        [(4, Moment::Received, 3), (1, Moment::Merged, 1), (1, Moment::Merged, 4), (1, Moment::Flushed, 1)]
    {
        for (nth, emits) in (1..6).flat_map(|nth| [(nth, true), (nth, false)]) {
            let mut array = SharedOutput::new("places", 10 * RECORDS as usize).expect("mapped");
            let program = Scatter { array: &array, emits };
            let job = Job::new(&program, Input::paths([&input])).records(Records::Fixed(4)).split_bytes(SPLIT_BYTES);
            let job = job.page_bytes(4096).map_workers(2).reduce_workers(2).writes(&array);
            let outcome = job.die_at(worker, moment, every * nth).run();
            let (pairs, summary) = outcome.expect("nothing was delivered");
            assert_eq!(pairs.len(), if emits { RECORDS as usize } else { 0 });
            let written = array.values().chunks(10).map(|ten| ten.iter().filter(|element| **element > 0).count());
            assert!(written.into_iter().all(|written| written == 1), "each record was written once: {moment:?} {nth}");
            tally.died += summary.deaths.len();
            tally.begun_anew += summary.begun_anew;
        }
    }
    assert!(tally.begun_anew > 10, "{tally:?}");
}

/// A job that continued from its checkpoint once mixed two runs of the stage in which a worker died.
pub fn checkpoints() {
    let (dir, input) = numbers();
    let mut tally = Tally::default();
    let continued = AtomicU32::new(0);
    for (workers, reducer) in [(Workers::Fused(2), 2), (Workers::Chunk(2, 2), 4)] {
        for (moment, nth) in [(Moment::Received, 3), (Moment::Received, 9), (Moment::Drained, 2), (Moment::Saved, 3)] {
            let checkpoint = dir.path().join("checkpoint");
            let program = Moody::<true>::new(Mood::Random);
            let job = || {
                let job = job(&program, &input, workers).checkpoint(&checkpoint, "moody", Duration::ZERO);
                job.on_news(|told| {
                    continued.fetch_add(u32::from(told.starts_with("continuing: ")), Ordering::Relaxed);
                })
            };
            // The receiver of the result stops at the first pair, so the next run only delivers.
            let stopped = job().die_at(reducer, moment, nth).run_each(|_, _| std::ops::ControlFlow::Break(()));
            let begun_anew = stopped.as_ref().map_or(0, |summary| summary.begun_anew);
            tally.begun_anew += begun_anew;
            assert!(stopped.is_ok(), "{:?}", stopped.err());
            run(&mut tally, job(), "continued");
            gristmill::remove_checkpoint(&checkpoint).expect("removed");
        }
    }
    assert!(tally.begun_anew > 0 && continued.into_inner() > 8, "{tally:?}");
}
