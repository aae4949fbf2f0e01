//! Random jobs whose workers are killed from outside at random moments. The result is the oracle's, or there is one
//! clear error if the job's limits are really exceeded; the job never hangs and leaves nothing behind.
//!
//! `ci/kill.sh [COUNT] [SEED] [spill]` runs many jobs; with `spill`, jobs that do not fit in their memory. Each job has
//! its own seed, and `ci/kill.sh 1 SEED` repeats it.

mod common;

use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use common::{Case, Random, WATCHDOG, kill, random_text, start};
use gristmill::{Buffer, Combining, Count, Exchange, Order, PagePolicy};
use rustix::process::Signal;

/// The number of jobs that `cargo test` runs.
const SHORT: u64 = 40;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with("--test")).collect();
    let spills = arguments.last().is_some_and(|argument| argument == "spill");
    if let [flag, seed, input, ..] = &arguments[..]
        && flag == "--job"
    {
        return job(seed.parse().expect("a seed"), spills, Path::new(input));
    }
    let numbers: Vec<u64> = arguments.iter().filter_map(|argument| argument.parse().ok()).collect();
    let (count, first) = (numbers.first().copied().unwrap_or(SHORT), numbers.get(1).copied().unwrap_or(1));
    let began = Instant::now();
    let mut tally = Tally::default();
    for seed in first..first + count {
        let outcome = one(seed, spills);
        match &outcome {
            Ok(Outcome { kills, deaths, runs, answered }) => {
                tally.spilled += u64::from(*runs > 0);
                tally.kills += kills;
                tally.deaths += deaths;
                if *answered { tally.answers += 1 } else { tally.errors += 1 }
            }
            Err(why) => {
                tally.failed += 1;
                println!("seed {seed} FAILED (repeat it with ci/kill.sh 1 {seed}): {why}");
            }
        }
    }
    let Tally { kills, deaths, spilled, answers, errors, failed } = tally;
    println!(
        "{count} jobs from seed {first} on, {:.0} s: {kills} kills, {deaths} deaths, {spilled} spilled; {answers} right answers, {errors} clear errors",
        began.elapsed().as_secs_f64()
    );
    println!("{} claims passed, {failed} failed", answers + errors);
    ExitCode::from(u8::from(failed > 0))
}

#[derive(Default)]
struct Tally {
    kills: u64,
    deaths: u64,
    spilled: u64,
    answers: u64,
    errors: u64,
    failed: u64,
}

struct Outcome {
    kills: u64,
    deaths: u64,
    /// Spilled runs.
    runs: u64,
    answered: bool,
}

/// Makes a job and its text from `seed`. If it `spills`, they do not fit in the memory of the job.
fn random_case(seed: u64, spills: bool) -> (Case, Vec<u8>) {
    let mut random = Random(seed);
    let count = random.below(3) > 0;
    let split = (random.below(2) == 0).then(|| (1 + random.below(3) as usize, 1 + random.below(3) as usize));
    // Some results are larger than all pages of a worker together.
    let large = random.below(6) == 0 || spills;
    let bytes = if large { 2_000_000 } else { random.below(120_000) as usize };
    let vocabulary = if large { 1 << 40 } else { 1 << random.below(14) };
    let giants = random.below(4) == 0;
    let word_bytes = 4 + random.below(60);
    let text = random_text(&mut random, bytes, vocabulary, word_bytes, giants);
    let combine = random.pick(&[Combining::Both, Combining::Both, Combining::Map, Combining::Reduce, Combining::Off]);
    let combines_in_map = count && matches!(combine, Combining::Both | Combining::Map);
    let buffer = random.pick(&[Buffer::Auto, Buffer::Array, Buffer::Hash]);
    let splits = 1 + random.below(80);
    let case = Case {
        count,
        // Now and then many more than there are processors, most of which are started when they are sent something.
        workers: if random.below(12) == 0 { 40 } else { 1 + random.below(7) as usize },
        split,
        exchange: random.pick(&[Exchange::Pipelined, Exchange::Pipelined, Exchange::Barrier]),
        buffer: if buffer == Buffer::Hash && !combines_in_map { Buffer::Array } else { buffer },
        combine,
        pages: random.pick(&[PagePolicy::Reuse, PagePolicy::Reuse, PagePolicy::Fresh, PagePolicy::Prealloc]),
        page_bytes: 4096 * random.pick(&[1, 1, 2, 8]),
        split_bytes: 1 + text.len() as u64 / splits,
        order: random.pick(&[Order::ByKey, Order::ByValueDescending, Order::Unordered]),
        limit: if random.below(5) == 0 { 1 + random.below(20) as usize } else { usize::MAX },
        retries: random.pick(&[0, 2, 2, 5]) as u32,
        map_pause: Duration::from_micros(random.pick(&[0, 0, 100, 1000])),
        take_pause: Duration::from_micros(random.pick(&[0, 0, 0, 1000])),
        // With progress, the coordinator looks ten times a second, which would hide a lost wake-up.
        progress: random.below(4) == 0,
        steps: if random.below(3) == 0 { 1 + random.below(if spills { 3 } else { 7 }) as u32 } else { 0 },
        least_memory: random.below(3) == 0 || spills,
        deterministic: random.below(6) == 0,
        sink: random.below(4) == 0,
        timeline: random.below(2) == 0,
        by_node: random.below(4) == 0,
    };
    (case, text)
}

/// Runs the job in its own process, and reports its outcome in the last line.
fn job(seed: u64, spills: bool, input: &Path) -> ExitCode {
    let (case, _) = random_case(seed, spills);
    match case.check(input, &[]) {
        Ok(summary) => {
            let runs: u64 = summary.workers.iter().map(|worker| worker.counters.get(Count::Runs)).sum();
            println!("answer after {} deaths, {runs} runs, in {} rounds", summary.deaths.len(), summary.rounds);
            ExitCode::SUCCESS
        }
        Err(why) => {
            println!("error: {why}");
            ExitCode::from(2)
        }
    }
}

/// Runs the job of `seed` and kills some of its workers.
fn one(seed: u64, spills: bool) -> Result<Outcome, String> {
    let (case, text) = random_case(seed, spills);
    let (_dir, input) = common::input_of(&text);
    let mut random = Random(!seed);
    // 1. Choose when to kill: most of these jobs take 5 to 200 ms.
    let span_us = random.pick(&[6_000, 20_000, 60_000, 200_000]) * if spills { 5 } else { 1 };
    let kills_planned = random.below(6);
    let mut moments: Vec<Duration> = (0..kills_planned).map(|_| Duration::from_micros(random.below(span_us))).collect();
    moments.sort();
    moments.reverse();
    // 2. Run the job, and kill.
    let seed_text = seed.to_string();
    let kind = if spills { "spill" } else { "any" };
    let mut job = start(&["--job", &seed_text, input.to_str().expect("a plain path"), kind]);
    let began = Instant::now();
    let mut kills = 0;
    let status = job.wait(WATCHDOG, |job| {
        while moments.last().is_some_and(|moment| began.elapsed() >= *moment) {
            let workers = job.workers();
            if workers.is_empty() && began.elapsed() < Duration::from_secs(1) {
                break; // The job has not begun, or it is between a death and a replacement.
            }
            moments.pop();
            if !workers.is_empty() {
                kill(random.pick(&workers), Signal::KILL);
                kills += 1;
            }
        }
    });
    let context = |why: String| format!("{why}\n  {case:?}, {} bytes of text, {kills} kills", text.len());
    let status = status.map_err(context)?;
    job.leftovers().map_err(context)?;
    // 3. Read its report.
    let printed = job.printed();
    match status.code() {
        Some(0) => {
            let number = |nth| printed.split_whitespace().nth(nth).and_then(|word| word.parse().ok()).unwrap_or(0);
            Ok(Outcome { kills, deaths: number(2), runs: number(4), answered: true })
        }
        // A task whose worker was killed more often than the task is retried.
        Some(2) if kills > u64::from(case.retries) && printed.contains("signal 9 (SIGKILL). The task was tried") => {
            Ok(Outcome { kills, deaths: kills, runs: 0, answered: false })
        }
        _ => Err(context(format!("{status}, it printed: {printed}"))),
    }
}
