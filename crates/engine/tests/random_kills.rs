//! Random jobs whose workers are killed from outside at random moments. The result is the oracle's, or there is one
//! clear error if the job's limits are really exceeded; the job never hangs and leaves nothing behind.
//!
//! `ci/kill.sh [COUNT] [SEED] [spill]` runs many jobs; with `spill`, jobs that do not fit in their memory. Each job has
//! its own seed, and `ci/kill.sh 1 SEED` repeats it.

mod common;

use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use common::random_case::random_case;
use common::{Random, WATCHDOG, kill, start};
use gristmill::stats::Count;
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
