//! Jobs with a checkpoint: however a run ends, running it again gives the same result, and does not repeat finished
//! work.
//!
//! `ci/resume.sh [COUNT] [SEED]` kills the coordinators of many random jobs. Each job has its own seed, and
//! `ci/resume.sh 1 SEED` repeats it.

mod common;
#[path = "resume/planted.rs"]
mod planted;

use std::fs;
use std::hash::{BuildHasher, RandomState};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use common::{Answer, Case, Count, Places, Random, WATCHDOG, input_of, kill, random_text, start, start_with};
use gristmill::internal::{MOMENTS, Moment};
use gristmill::{
    Bytes, Chunk, Emit, Error, Input, Isolation, Job, MapReduce, Next, Order, ProgramError, Records, Result, Summary,
};
use rustix::process::{Resource, Rlimit, Signal, getrlimit, setrlimit};

/// The number of jobs that `cargo test` runs.
const SHORT: u64 = 8;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match &arguments[..] {
        [flag, seed, input, dir] if flag == "--job" => {
            return job(seed.parse().expect("a seed"), Path::new(input), Path::new(dir));
        }
        [flag, input, dir] if flag == "--drawn" => return drawn_job(Path::new(input), Path::new(dir)),
        [count, seed] if !count.starts_with('-') => {
            return killed_jobs(count.parse().expect("a count"), seed.parse().expect("a seed"));
        }
        _ => {}
    }
    common::run(
        &[
            ("a_killed_job_continues_to_the_same_result", killed),
            ("a_killed_job_with_random_keys_counts_each_record_once_or_fails", drawn),
            ("finished_tasks_are_not_repeated", continued),
            ("a_job_that_is_done_only_delivers_its_result", delivered_again),
            ("a_worker_killed_at_any_moment_of_any_stage_changes_nothing", any_moment),
            ("changed_input_options_or_programs_are_refused_with_the_reason", changed),
            ("a_damaged_checkpoint_never_gives_a_wrong_result", damaged),
            ("checkpoint_intervals_and_task_timeouts_may_be_infinite", no_hurry),
            ("a_full_disk_is_one_clear_error_and_the_job_continues_when_there_is_room", full_disk),
            ("jobs_that_cannot_be_continued_are_refused", refused),
            ("a_second_run_with_the_same_checkpoint_is_refused", in_use),
            ("a_log_with_absurd_facts_is_a_clear_error", planted::absurd_logs),
            ("a_log_with_random_facts_causes_no_panic", planted::random_logs),
            ("planted_files_in_a_checkpoint_are_refused", planted::planted_files),
        ],
        &[("waiting_job", waiting_job)],
    );
}

// Random jobs whose coordinators are killed.

/// Makes a job and its text from `seed`.
fn random_case(seed: u64) -> (Case, Vec<u8>) {
    let mut random = Random(seed);
    let count = random.below(3) > 0;
    let split = (random.below(2) == 0).then(|| (1 + random.below(2) as usize, 1 + random.below(3) as usize));
    let large = random.below(4) == 0;
    let bytes = if large { 2_000_000 } else { random.below(120_000) as usize };
    let vocabulary = if large { 1 << 40 } else { 1 << random.below(14) };
    let word_bytes = 4 + random.below(60);
    let giants = random.below(4) == 0;
    let text = random_text(&mut random, bytes, vocabulary, word_bytes, giants);
    let splits = 1 + random.below(60);
    let base = match split {
        Some((map, reduce)) => Case::split(map, reduce),
        None => Case::fused(1 + random.below(3) as usize),
    };
    let case = Case {
        count,
        split_bytes: 1 + text.len() as u64 / splits,
        order: random.pick(&[Order::ByKey, Order::ByValueDescending, Order::Unordered]),
        limit: if random.below(5) == 0 { 1 + random.below(20) as usize } else { usize::MAX },
        map_pause: Duration::from_micros(random.pick(&[0, 300, 1000, 3000])),
        take_pause: Duration::from_micros(random.pick(&[0, 0, 1000])),
        least_memory: random.below(3) == 0,
        deterministic: random.below(4) == 0,
        ..base
    };
    (case, text)
}

/// Runs `case` with a checkpoint in `dir`, with a stage for every task or two, and prints the news.
fn run<J>(
    case: &Case,
    program: &J,
    input: &Path,
    dir: &Path,
    fates: &[(usize, Moment, u64)],
) -> Result<(Answer, Summary)>
where
    J: MapReduce<Key = Bytes, Value = u64>,
{
    case.run_with(program, input, |job| {
        let job = job.checkpoint(dir, "a test", Duration::ZERO).on_news(|news| println!("{news}"));
        fates.iter().fold(job, |job, (worker, moment, nth)| job.die_at(*worker, *moment, *nth))
    })
}

/// Runs `case` with the program that it names.
fn run_case(case: &Case, input: &Path, dir: &Path, fates: &[(usize, Moment, u64)]) -> Result<(Answer, Summary)> {
    let pause = case.map_pause;
    if case.count {
        run(case, &Count { pause }, input, dir, fates)
    } else {
        run(case, &Places { pause }, input, dir, fates)
    }
}

/// Returns the number of tasks that workers have mapped.
fn mapped(summary: &Summary) -> usize {
    summary.workers.iter().map(|worker| worker.counters.get(gristmill::stats::Count::Tasks) as usize).sum()
}

/// Runs the job of `seed` in its own process, until it is killed.
fn job(seed: u64, input: &Path, dir: &Path) {
    let (case, _) = random_case(seed);
    let (pairs, summary) = run_case(&case, input, dir, &[]).unwrap_or_else(|why| panic!("{why}"));
    case.judge(input, pairs).unwrap_or_else(|why| panic!("{why}"));
    if summary.deaths.is_empty() {
        assert_eq!(mapped(&summary), summary.tasks, "each task once");
    }
    println!("right: {} tasks, {} before", summary.tasks, summary.resumed_tasks);
}

/// Returns how many tasks were done when a run began, from its output.
fn resumed(printed: &str) -> usize {
    let line = printed.lines().find_map(|line| line.strip_prefix("continuing: "));
    line.map_or(0, |line| line.split(' ').next().and_then(|number| number.parse().ok()).expect("a number"))
}

/// Runs the job of `seed` repeatedly and kills it, until it may run to its end. Returns how often it was killed, and
/// how many tasks the last run found done.
fn one(seed: u64) -> std::result::Result<(usize, usize), String> {
    let (case, text) = random_case(seed);
    let (dir, input) = input_of(&text);
    let checkpoint = dir.path().join("checkpoint");
    let mut random = Random(!seed);
    let (kills, span_us) = (random.below(8) as usize, random.pick(&[10_000, 30_000, 100_000]));
    let mut found_before = 0;
    for turn in 0.. {
        let paths = [&input, &checkpoint].map(|path| path.to_str().expect("a plain path"));
        let mut job = start(&["--job", &seed.to_string(), paths[0], paths[1]]);
        let context = |why: String| format!("turn {turn}: {why}\n  {case:?}, {} bytes of text", text.len());
        let (began, moment) = (Instant::now(), Duration::from_micros(random.below(span_us)));
        // Sometimes a worker is killed first.
        let worker_too = random.below(3) == 0;
        let mut is_killed = turn >= kills;
        let status = job.wait(WATCHDOG, |job| {
            if !is_killed && began.elapsed() >= moment {
                if worker_too && let [worker, ..] = job.workers()[..] {
                    kill(worker, Signal::KILL);
                    std::thread::sleep(moment / 10);
                }
                kill(job.pid(), Signal::KILL);
                is_killed = true;
            }
        });
        let status = status.map_err(context)?;
        job.leftovers().map_err(context)?;
        let printed = job.printed();
        // A run that is killed early has not yet printed what it found.
        let found = resumed(&printed);
        if found < found_before && (found > 0 || status.success()) {
            return Err(context(format!("{found_before} tasks were done, and now only {found}")));
        }
        found_before = found.max(found_before);
        if status.success() {
            return if printed.contains("right: ") { Ok((turn, found)) } else { Err(context(printed)) };
        } else if status.code().is_some() {
            return Err(context(format!("{status}, it printed: {printed}")));
        }
    }
    unreachable!()
}

/// Counts records by keys that are drawn anew in each call.
struct Drawn;

impl MapReduce for Drawn {
    type Key = u64;
    type Value = u64;

    fn combiner(&self) -> Option<impl Fn(u64, u64) -> u64> {
        Some(|a, b| a + b)
    }

    fn map(&self, chunk: &mut Chunk<'_>, out: &mut impl Emit<u64, u64>) -> Result<(), ProgramError> {
        std::thread::sleep(Duration::from_millis(1));
        let random = RandomState::new();
        (0..chunk.bytes().len()).for_each(|record| out.emit(random.hash_one(record) % 1000, 1));
        Ok(())
    }
}

/// Runs a job with such keys in its own process, until it is killed.
fn drawn_job(input: &Path, dir: &Path) {
    let job = Job::new(&Drawn, Input::paths([input])).records(Records::Fixed(1)).split_bytes(100).page_bytes(4096);
    let job = job.workers(2).checkpoint(dir, "drawn", Duration::ZERO).on_news(|news| println!("{news}"));
    let mut counted = 0;
    match job.run_each(|_, count| counted += count) {
        Ok(_) => println!("counted {counted}"),
        Err(why @ Error::Unrepeatable { .. }) => println!("refused: {why}"),
        Err(why) => panic!("{why}"),
    }
}

/// If a job that draws its keys at random is killed, a stage of its checkpoint must not be made of two runs of a task.
fn drawn() {
    let (dir, input) = input_of(&[b'r'; 4000]);
    let (mut random, mut continued) = (Random(17), 0);
    for job in 0..8 {
        let checkpoint = dir.path().join(format!("checkpoint-{job}"));
        for turn in 0..5 {
            let paths = [&input, &checkpoint].map(|path| path.to_str().expect("a plain path"));
            let mut job = start(&["--drawn", paths[0], paths[1]]);
            let (began, moment) = (Instant::now(), Duration::from_micros(random.below(60_000)));
            let (worker_too, mut is_killed) = (random.below(2) == 0, turn == 4);
            let status = job.wait(WATCHDOG, |job| {
                if !is_killed && began.elapsed() >= moment {
                    if worker_too && let [worker, ..] = job.workers()[..] {
                        kill(worker, Signal::KILL);
                        std::thread::sleep(moment / 10);
                    }
                    kill(job.pid(), Signal::KILL);
                    is_killed = true;
                }
            });
            let status = status.expect("the job ends");
            job.leftovers().expect("nothing is left");
            let printed = job.printed();
            continued += usize::from(resumed(&printed) > 0);
            if status.success() {
                let is_right = printed.contains("counted 4000\n") || printed.contains("Let the map function depend on");
                assert!(is_right, "turn {turn}: {printed}");
                break;
            }
            assert!(turn < 4 && status.code().is_none(), "turn {turn}: {status}: {printed}");
        }
    }
    assert!(continued > 0, "no job was continued");
}

fn killed_jobs(count: u64, first: u64) {
    let (mut kills, mut continued, mut failed) = (0, 0, 0);
    for seed in first..first + count {
        match one(seed) {
            Ok((killed, found)) => {
                kills += killed;
                continued += usize::from(found > 0);
            }
            Err(why) => {
                failed += 1;
                println!("seed {seed} FAILED (repeat it with ci/resume.sh 1 {seed}): {why}");
            }
        }
    }
    println!("{count} jobs from seed {first} on, killed {kills} times; {continued} continued; {failed} failed");
    std::process::exit(i32::from(failed > 0));
}

fn killed() {
    for seed in 1..=SHORT {
        one(seed).unwrap_or_else(|why| panic!("seed {seed} (repeat it with ci/resume.sh 1 {seed}): {why}"));
    }
}

// One job that fails late.

/// Counts words. The word `crash` ends the worker as long as this file exists; the word `panic` always panics.
struct Crashes(PathBuf);

impl MapReduce for Crashes {
    type Key = Bytes;
    type Value = u64;

    fn combiner(&self) -> Option<impl Fn(u64, u64) -> u64> {
        Some(|a, b| a + b)
    }

    fn map(&self, chunk: &mut Chunk<'_>, out: &mut impl Emit<Bytes, u64>) -> Result<(), ProgramError> {
        for word in chunk.bytes().split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()) {
            assert!(word != b"panic", "the word is panic");
            if word == b"crash" && self.0.exists() {
                std::process::abort();
            }
            out.emit(word, 1);
        }
        Ok(())
    }
}

/// Returns a text with one word replaced in the middle, and one close to the end.
fn text_with(early: &str, late: &str) -> Vec<u8> {
    let mut text = random_text(&mut Random(1), 12_000, 300, 8, false);
    for (at, word) in [(11_000, late), (2_000, early)] {
        let at = at + text[at..].iter().position(u8::is_ascii_whitespace).expect("a space");
        text.splice(at..at, format!(" {word}").into_bytes());
    }
    text
}

fn continued() {
    let text = text_with("panic", "crash");
    let (dir, input) = input_of(&text);
    let mut expected = common::oracle(&text, true, Order::ByKey, usize::MAX);
    expected.retain(|(word, _)| word != b"panic");
    for (number, case) in [Case::fused(2), Case::split(2, 2)].into_iter().enumerate() {
        let (mark, checkpoint) = (dir.path().join("mark"), dir.path().join(format!("checkpoint{number}")));
        let run = || {
            let program = Crashes(mark.clone());
            case.run_with(&program, &input, |job| {
                job.checkpoint(&checkpoint, "a test", Duration::ZERO).skip_bad_records(1).max_failures(0)
            })
        };
        fs::write(&mark, "").expect("made");
        let error = run().expect_err("it crashes");
        assert!(matches!(error, Error::TooManyFailures { limit: 0, .. }), "{error}");
        fs::remove_file(&mark).expect("removed");
        let (pairs, summary) = run().expect("it does not crash any more");
        assert!(pairs == expected);
        // Two tasks of about 2000 bytes may be in the stage that failed.
        assert!(summary.resumed_tasks >= 2, "{} tasks were done", summary.resumed_tasks);
        assert_eq!(mapped(&summary), summary.tasks);
        assert_eq!(summary.resumed_tasks + summary.tasks, text.len().div_ceil(2000));
        // The first run set it aside.
        assert_eq!(summary.bad_records.len(), 1);
        assert_eq!(summary.bad_records[0].cause, "it panicked: the word is panic");
    }
}

fn delivered_again() {
    let text = random_text(&mut Random(2), 50_000, 1 << 30, 20, true);
    let (dir, input) = input_of(&text);
    for (number, order) in [Order::ByKey, Order::ByValueDescending, Order::Unordered].into_iter().enumerate() {
        for count in [true, false] {
            let checkpoint = dir.path().join(format!("checkpoint{number}{count}"));
            let case = Case { count, order, split_bytes: 10_000, ..Case::fused(2) };
            for turn in 0..3 {
                let (pairs, summary) = run_case(&case, &input, &checkpoint, &[]).expect("it runs");
                case.judge(&input, pairs).unwrap_or_else(|why| panic!("{why}"));
                let tasks = if turn == 0 { text.len().div_ceil(10_000) } else { 0 };
                assert_eq!((summary.tasks, mapped(&summary)), (tasks, tasks));
            }
            gristmill::remove_checkpoint(&checkpoint).expect("removed");
            assert!(!checkpoint.exists());
        }
    }
}

/// Moments that occur only in other jobs.
const OTHERS: [Moment; 5] = [Moment::Latched, Moment::Merged, Moment::Keeping, Moment::Kept, Moment::Spilled];

fn any_moment() {
    let text = random_text(&mut Random(3), 6_000, 300, 8, false);
    let (dir, input) = input_of(&text);
    let mut died = 0;
    for (case, worker) in [(Case::fused(2), 1), (Case::split(1, 2), 2), (Case::split(1, 2), 1)] {
        for moment in MOMENTS.into_iter().filter(|moment| !OTHERS.contains(moment)) {
            for nth in [1, 4] {
                let checkpoint = dir.path().join("checkpoint");
                let fates = [(worker, moment, nth)];
                let (pairs, summary) = run_case(&case, &input, &checkpoint, &fates).expect("it is made good");
                case.judge(&input, pairs).unwrap_or_else(|why| panic!("{moment:?} {nth}: {why}"));
                died += summary.deaths.len();
                let (pairs, summary) = run_case(&case, &input, &checkpoint, &[]).expect("it only delivers");
                case.judge(&input, pairs).unwrap_or_else(|why| panic!("again after {moment:?} {nth}: {why}"));
                assert_eq!(summary.tasks, 0);
                gristmill::remove_checkpoint(&checkpoint).expect("removed");
            }
        }
    }
    assert!(died > 15, "only {died} died");
}

fn changed() {
    let (dir, input) = input_of(&text_with("frog", "pond"));
    let checkpoint = dir.path().join("checkpoint");
    let program = Count { pause: Duration::ZERO };
    let case = Case::fused(2);
    run(&case, &program, &input, &checkpoint, &[]).expect("it runs");
    let why = |case: &Case, program: &str| {
        let ran = case.run_with(&Count { pause: Duration::ZERO }, &input, |job| {
            job.checkpoint(&checkpoint, program, Duration::ZERO)
        });
        let error = ran.expect_err("refused");
        assert!(matches!(error, Error::CheckpointOfAnother { .. }), "{error}");
        error.to_string()
    };
    let program = why(&case, "another test");
    assert!(program.contains(r#"the program was "a test", and is "another test""#), "{program}");
    let options = why(&Case { order: Order::Unordered, ..case.clone() }, "a test");
    assert!(options.contains("options was \"ByKey "), "{options}");
    // The number of workers does not affect the result, and stays as it was.
    let other = run(&Case::fused(3), &Count { pause: Duration::ZERO }, &input, &checkpoint, &[]).expect("the same job");
    assert_eq!(other.1.workers.len(), 2);
    // Same size and time, different content.
    let facts = fs::metadata(&input).expect("there");
    let mut text = fs::read(&input).expect("read");
    text[10] ^= 1;
    fs::write(&input, &text).expect("written");
    let file = fs::File::options().write(true).open(&input).expect("opened");
    file.set_modified(facts.modified().expect("a time")).expect("set");
    let changed = why(&case, "a test");
    let expected = format!("{} was ", input.display());
    assert!(changed.contains(&expected) && changed.contains("Remove that folder to begin anew"), "{changed}");
}

fn damaged() {
    let text = random_text(&mut Random(4), 30_000, 1 << 30, 20, false);
    let (dir, input) = input_of(&text);
    let mut random = Random(5);
    let mut noticed = 0;
    for turn in 0..40 {
        let checkpoint = dir.path().join(format!("checkpoint{turn}"));
        let case = Case { split_bytes: 6_000, ..Case::fused(2) };
        run_case(&case, &input, &checkpoint, &[]).expect("it runs");
        let name = random.pick(&["0.pairs", "1.pairs", "0.result", "1.result", "checkpoint.log"]);
        let path = checkpoint.join(name);
        let mut bytes = fs::read(&path).expect("read");
        let at = random.below(bytes.len() as u64) as usize;
        if random.below(3) == 0 {
            bytes.truncate(at);
        } else {
            bytes[at] ^= 1 << random.below(8);
        }
        fs::write(&path, bytes).expect("written");
        match run_case(&case, &input, &checkpoint, &[]) {
            Ok((pairs, _)) => case.judge(&input, pairs).unwrap_or_else(|why| panic!("{name} {at}: {why}")),
            Err(Error::CheckpointDamaged { .. } | Error::Checkpoint { .. }) => noticed += 1,
            Err(other) => panic!("{name} {at}: {other}"),
        }
    }
    assert!(noticed > 5, "{noticed} were noticed");
}

/// Emits the places of words, on a disk that is full as long as this file exists: no file may grow.
struct Full(PathBuf);

impl MapReduce for Full {
    type Key = Bytes;
    type Value = u64;

    fn map(&self, chunk: &mut Chunk<'_>, out: &mut impl Emit<Bytes, u64>) -> Result<(), ProgramError> {
        if chunk.offset() > 10_000 && self.0.exists() {
            let limit = Rlimit { current: Some(1000), maximum: getrlimit(Resource::Fsize).maximum };
            setrlimit(Resource::Fsize, limit).expect("a lower limit is allowed");
        }
        Places { pause: Duration::ZERO }.map(chunk, out)
    }
}

fn full_disk() {
    let (dir, input) = input_of(&random_text(&mut Random(6), 30_000, 1 << 30, 20, false));
    // Every worker that maps also saves.
    for case in [Case::fused(1), Case::fused(2)] {
        let case = Case { count: false, ..case };
        let (mark, checkpoint) = (dir.path().join("mark"), dir.path().join("checkpoint"));
        fs::write(&mark, "").expect("made");
        let error = run(&case, &Full(mark.clone()), &input, &checkpoint, &[]).expect_err("there is no room");
        let expected = format!("cannot use the checkpoint in {}: File too large", checkpoint.display());
        assert!(error.to_string().starts_with(&expected), "{error}");
        fs::remove_file(&mark).expect("removed");
        let (pairs, summary) = run(&case, &Full(mark), &input, &checkpoint, &[]).expect("there is room");
        case.judge(&input, pairs).unwrap_or_else(|why| panic!("{why}"));
        assert!(summary.resumed_tasks > 0);
        gristmill::remove_checkpoint(&checkpoint).expect("removed");
    }
}

fn no_hurry() {
    // An infinite interval between saves once made the coordinator overflow, or gave stages of one task.
    let (dir, input) = input_of(&random_text(&mut Random(6), 30_000, 1 << 30, 20, false));
    let case = Case::fused(2);
    let checkpoint = dir.path().join("checkpoint");
    let outcome = case.run_with(&Count { pause: Duration::ZERO }, &input, |job| {
        job.checkpoint(checkpoint, "count", Duration::MAX).task_timeout(Duration::MAX)
    });
    let (pairs, summary) = outcome.expect("the job runs");
    case.judge(&input, pairs).unwrap_or_else(|why| panic!("{why}"));
    assert_eq!(summary.deaths, Vec::<String>::new());
}

fn refused() {
    let (dir, input) = input_of(b"a\n");
    let program = Count { pause: Duration::ZERO };
    let with = |job: Job<'_, Count>| job.checkpoint(dir.path().join("c"), "", Duration::ZERO).run().map(|_| ());
    let from_memory = Job::new(&program, Input::bytes("bytes", b"a\n").expect("made"));
    let why = with(from_memory).expect_err("refused").to_string();
    assert!(why.starts_with("what came through a pipe, or was made in memory, cannot be read again"), "{why}");
    let job = Job::new(&program, Input::paths([&input])).checkpoint(dir.path().join("c"), "", Duration::ZERO);
    let why = job.iterate(&[], |_| Next::Stop).map(|_| ()).expect_err("refused").to_string();
    assert!(why.starts_with("a job in steps cannot be continued"), "{why}");
    let threads = Job::new(&program, Input::paths([&input])).isolation(Isolation::Thread).records(Records::Lines);
    with(threads).expect("threads leave the same behind");
    fs::write(dir.path().join("c").join("checkpoint.log"), "mine").expect("written");
    let why = with(Job::new(&program, Input::paths([&input]))).expect_err("refused").to_string();
    assert!(why.contains("is something else"), "{why}");
}

/// Counts words, but waits for a file first.
struct Waits<'d>(&'d Path);

impl MapReduce for Waits<'_> {
    type Key = Bytes;
    type Value = u64;

    fn combiner(&self) -> Option<impl Fn(u64, u64) -> u64> {
        Some(|a, b| a + b)
    }

    fn map(&self, chunk: &mut Chunk<'_>, out: &mut impl Emit<Bytes, u64>) -> Result<(), ProgramError> {
        fs::write(self.0.join("maps"), "").expect("made");
        while !self.0.join("go").exists() {
            std::thread::sleep(Duration::from_millis(1));
        }
        Count { pause: Duration::ZERO }.map(chunk, out)
    }
}

const FOLDER: &str = "GRISTMILL_TEST_FOLDER";

fn waiting_run(dir: &Path) -> Result<(Answer, Summary)> {
    run(&Case::fused(2), &Waits(dir), &dir.join("text"), &dir.join("checkpoint"), &[])
}

/// Runs the first of the two jobs.
fn waiting_job() {
    let dir = PathBuf::from(std::env::var_os(FOLDER).expect("a folder"));
    let (pairs, _) = waiting_run(&dir).expect("it runs");
    Case::fused(2).judge(&dir.join("text"), pairs).unwrap_or_else(|why| panic!("{why}"));
    println!("right");
}

fn in_use() {
    let (dir, _) = input_of(&random_text(&mut Random(7), 6_000, 300, 8, false));
    let mut first = start_with(&["--alone", "waiting_job"], &[(FOLDER, dir.path())]);
    let began = Instant::now();
    while !dir.path().join("maps").exists() {
        assert!(began.elapsed() < WATCHDOG, "the first run does not begin: {}", first.printed());
        std::thread::sleep(Duration::from_millis(1));
    }
    let error = waiting_run(dir.path()).expect_err("refused");
    assert!(matches!(error, Error::CheckpointInUse { .. }), "{error}");
    let expected = format!("the checkpoint in {} is in use", dir.path().join("checkpoint").display());
    let error = error.to_string();
    assert!(error.starts_with(&expected) && error.contains("name another folder with Job::checkpoint"), "{error}");
    fs::write(dir.path().join("go"), "").expect("made");
    let status = first.wait(WATCHDOG, |_| {}).unwrap_or_else(|why| panic!("{why}"));
    assert!(status.success() && first.printed().ends_with("right\n"), "{}", first.printed());
    first.leftovers().unwrap_or_else(|why| panic!("{why}"));
}
