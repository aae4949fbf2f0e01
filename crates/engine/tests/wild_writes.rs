//! Random jobs in which a worker overwrites a word that it shares with others, as a stray pointer in a map function
//! would. Each gives the answer of ten sequential lines, or ends with one error; no job hangs, no coordinator panics,
//! and nothing is left behind.
//!
//! `ci/wild.sh [COUNT] [SEED]` runs many jobs. Each job has its own seed, and `ci/wild.sh 1 SEED` repeats it.

mod common;

use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use common::random_case::random_case;
use common::{Case, Random, WATCHDOG, start};
use gristmill::internal::Moment;
use gristmill::{Accumulator, Bytes, Chunk, Emit, MapReduce, Order, ProgramError, Summary};

/// The number of jobs that `cargo test` runs.
const SHORT: u64 = 24;
/// The moments to which workers that map come, and those that reduce. They come to `Drained` once in a round.
const MAPS: [Moment; 6] =
    [Moment::Drawn, Moment::Claimed, Moment::Pushed, Moment::Sent, Moment::Flushed, Moment::Committed];
const REDUCES: [Moment; 3] = [Moment::Received, Moment::Received, Moment::Drained];

/// The errors of such jobs.
const ERRORS: [&str; 2] = ["a shared word was overwritten", "signal 11 (SIGSEGV)"];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with("--test")).collect();
    if let [flag, seed, input] = &arguments[..]
        && flag == "--job"
    {
        return job(seed.parse().expect("a seed"), Path::new(input));
    }
    let numbers: Vec<u64> = arguments.iter().filter_map(|argument| argument.parse().ok()).collect();
    let (count, first) = (numbers.first().copied().unwrap_or(SHORT), numbers.get(1).copied().unwrap_or(1));
    let began = Instant::now();
    let (mut answers, mut errors, mut unwritten, mut failed) = (0, 0, 0, 0);
    for seed in first..first + count {
        match one(seed) {
            Ok(Outcome::Answer) => answers += 1,
            Ok(Outcome::Error) => errors += 1,
            Ok(Outcome::Unwritten) => unwritten += 1,
            Err(why) => {
                failed += 1;
                println!("seed {seed} FAILED (repeat it with ci/wild.sh 1 {seed}): {why}");
            }
        }
    }
    println!(
        "{count} jobs from seed {first} on, {:.0} s: after a stray write {answers} right answers and {errors} errors; {unwritten} ended before it",
        began.elapsed().as_secs_f64()
    );
    println!("{} claims passed, {failed} failed", answers + errors + unwritten);
    ExitCode::from(u8::from(failed > 0 || answers + errors < count / 2))
}

enum Outcome {
    /// The right answer, after a stray write.
    Answer,
    /// One error, after a stray write.
    Error,
    /// The right answer, and the worker never came to the moment of its stray write.
    Unwritten,
}

/// Makes a job and its text from `seed`.
fn wild_case(seed: u64) -> (Case, Vec<u8>) {
    let (case, text) = random_case(seed, false);
    let mut random = Random(!seed);
    // The first worker that maps, or the last that reduces: the others may have nothing to do.
    let (maps, last) = case.split.map_or((true, 1), |(map, reduce)| (false, map + reduce));
    let (worker, moment) = match random.below(3) {
        0 => (last, random.pick(&REDUCES)),
        _ => (1 + random.below(2) as usize * usize::from(maps && case.workers > 1), random.pick(&MAPS)),
    };
    let nth = if moment == Moment::Drained { 1 } else { 1 + random.below(3) };
    let overwrite = (worker, moment, nth, random.next());
    let task_timeout = random.pick(&[None, Some(Duration::from_secs(2))]);
    // With ticks a job that stands still is noticed within seconds, otherwise within half a minute.
    let progress = task_timeout.is_none();
    (Case { overwrite: Some(overwrite), task_timeout, progress, take_pause: Duration::ZERO, ..case }, text)
}

/// Counts words, and adds up how many there are.
struct Added<'a> {
    count: common::Count,
    words: &'a Accumulator,
}

impl MapReduce for Added<'_> {
    type Key = Bytes;
    type Value = u64;

    fn combiner(&self) -> Option<impl Fn(u64, u64) -> u64> {
        Some(|a, b| a + b)
    }

    fn map(&self, chunk: &mut Chunk<'_>, out: &mut impl Emit<Bytes, u64>) -> Result<(), ProgramError> {
        let words = chunk.bytes().split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
        self.words.add(words.count() as i64);
        self.count.map(chunk, out)
    }
}

/// Runs a case that counts words with an accumulator, or another one with a checkpoint.
fn check_otherwise(case: &Case, input: &Path) -> Result<Summary, String> {
    let count = common::Count { pause: case.map_pause };
    let words = Accumulator::sum();
    let (found, summary) = if case.count {
        let program = Added { count, words: &words };
        let ran = case.run_with(&program, input, |job| job.accumulates(&words));
        let (found, summary) = ran.map_err(|error| error.to_string())?;
        let all: u64 = common::oracle(&std::fs::read(input).expect("read"), true, Order::ByKey, usize::MAX)
            .iter()
            .map(|(_, count)| count)
            .sum();
        let total = summary.total(&words).unwrap_or(0);
        if total != all as i64 {
            return Err(format!("WRONG ANSWER: {total} words instead of {all}"));
        }
        (found, summary)
    } else {
        let dir = tempfile::tempdir().expect("a folder");
        let places = common::Places { pause: case.map_pause };
        let ran = case.run_with(&places, input, |job| job.checkpoint(dir.path(), "wild", Duration::ZERO));
        ran.map_err(|error| error.to_string())?
    };
    case.judge(input, found)?;
    Ok(summary)
}

/// Runs the job in its own process, and reports its outcome in the last line.
fn job(seed: u64, input: &Path) -> ExitCode {
    let case = wild_case(seed).0;
    let otherwise = seed.is_multiple_of(2) && case.steps == 0 && !case.sink && !case.least_memory;
    match if otherwise { check_otherwise(&case, input) } else { case.check(input, &[]) } {
        Ok(summary) => {
            println!("answer after {:#?}", summary.deaths);
            ExitCode::SUCCESS
        }
        Err(why) => {
            println!("error: {why}");
            ExitCode::from(2)
        }
    }
}

/// Runs the job of `seed` and judges its end.
fn one(seed: u64) -> Result<Outcome, String> {
    let (case, text) = wild_case(seed);
    let (_dir, input) = common::input_of(&text);
    let mut job = start(&["--job", &seed.to_string(), input.to_str().expect("a plain path")]);
    let status = job.wait(WATCHDOG, |_| {});
    let context =
        |why: String| format!("{why}\n  {case:?}, {} bytes of text\n  it printed: {}", text.len(), job.printed());
    let status = status.map_err(context)?;
    job.leftovers().map_err(context)?;
    let printed = job.printed();
    let has_written = printed.contains(" becomes ");
    if std::env::var_os("SHOW").is_some() {
        println!("seed {seed}: {printed}");
    }
    match status.code() {
        Some(0) if has_written => Ok(Outcome::Answer),
        Some(0) => Ok(Outcome::Unwritten),
        // The kernel ends a worker that writes where it may not, and that may be one death too many.
        Some(2) if has_written && ERRORS.iter().any(|error| printed.contains(error)) => Ok(Outcome::Error),
        _ => Err(context(format!("{status}"))),
    }
}
